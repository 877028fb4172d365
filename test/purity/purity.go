// SPDX-License-Identifier: Apache-2.0

package purity

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Module is the import path prefix of this module.
const Module = "github.com/muster-project/muster"

// Check fails the test for everything that makes the package in the test's directory impure. In addition to the
// computing packages of the standard library it may import the allowed ones; "path/..." allows all packages below a
// path. To allow "time" is to allow its types: functions of it that read the clock or wait are rejected in every
// package.
func Check(t *testing.T, allowed ...string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(files) == 0 {
		t.Fatal("there are no Go files here")
	}
	used := map[string]bool{}
	for _, name := range files {
		found, err := impurities(name, nil, allowed, used)
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range found {
			t.Error(what)
		}
	}
	for _, pattern := range allowed {
		if !used[pattern] {
			t.Errorf("%s is allowed, but not imported", pattern)
		}
	}
}

// computing are the packages of the standard library, with those below them, that only compute.
var computing = []string{"bytes", "cmp", "container", "encoding", "errors", "fmt", "hash", "iter", "maps", "math", "reflect", "regexp",
	"slices", "sort", "strconv", "strings", "unicode"}

// forbidden are the functions that read a clock, wait or print, in packages that may be imported.
var forbidden = map[string][]string{
	"time":                                 {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
	"fmt":                                  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// impurities returns the violations in a file, and records in used which of the allowed patterns it needs. Source is
// the file's content; nil: it is read.
func impurities(name string, source any, allowed []string, used map[string]bool) ([]string, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []string
	add := func(at token.Pos, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: %s", name, files.Position(at).Line, fmt.Sprintf(format, args...)))
	}

	functions := map[string][]string{} // forbidden functions, by the name of the package in this file
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		local := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." {
			add(spec.Pos(), "imports %s without a name: who reads it cannot tell what is whose", path)
		}
		functions[local] = forbidden[path]
		if i := slices.IndexFunc(allowed, func(pattern string) bool { return matches(pattern, path) }); i >= 0 {
			used[allowed[i]] = true
		} else if path == "math/rand" || matches("math/rand/...", path) ||
			!slices.ContainsFunc(computing, func(p string) bool { return matches(p, path) || matches(p+"/...", path) }) {
			add(spec.Pos(), "imports %s: a pure package may not; take what it would give as an argument", path)
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n.Pos(), "starts a goroutine")
		case *ast.SelectorExpr:
			if x, is := n.X.(*ast.Ident); is && slices.Contains(functions[x.Name], n.Sel.Name) {
				add(n.Pos(), "uses %s.%s: take what it would give as an argument", x.Name, n.Sel.Name)
			}
		case *ast.CallExpr:
			if f, is := n.Fun.(*ast.Ident); is && (f.Name == "print" || f.Name == "println") {
				add(n.Pos(), "prints")
			}
		}
		return true
	})
	return found, nil
}

// matches reports whether a path matches the pattern: it is equal, or below a pattern that ends in "/...".
func matches(pattern, path string) bool {
	above, all := strings.CutSuffix(pattern, "/...")
	if all {
		return strings.HasPrefix(path, above+"/")
	}
	return path == pattern
}
