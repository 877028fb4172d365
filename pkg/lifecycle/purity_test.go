package lifecycle_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPure keeps this package and naming pure: the standard library without its clock, processes, files and logs, and the
// packages named here. Types of package time are arguments; its functions that read the clock are not called.
func TestPure(t *testing.T) {
	t.Parallel()
	const module = "github.com/muster-project/muster/pkg/"
	for dir, allowed := range map[string][]string{
		".":         {module + "naming"},
		"../naming": {module + "apis/grove/v1alpha1"},
	} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no Go files: %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				first, _, _ := strings.Cut(path, "/")
				impure := []string{"os", "io", "net", "log", "syscall", "runtime", "math/rand", "sync", "context"}
				if !slices.Contains(allowed, path) && (strings.Contains(first, ".") || slices.Contains(impure, path) || slices.Contains(impure, first)) {
					t.Errorf("%s imports %s", file, path)
				}
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "Sleep", "Tick", "NewTimer"}, s.Sel.Name) {
						t.Errorf("%s calls time.%s: take the time as an argument", file, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
}
