// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// A rule restricts what the files of some packages use.
type rule struct {
	in     []string          // directories, "/..." for those below as well
	except []string          // directories and files that the rule is not for
	tests  bool              // the rule is for test files, too
	never  map[string]string // import paths, with those below them, and why
	calls  []string          // functions that are neither called nor passed on, such as time.Now
}

// holds reports whether the rule is for a file.
func (r rule) holds(file string) bool {
	dir, base := split(file)
	return matchesAny(r.in, dir) && !matchesAny(r.except, dir) && !matchesAny(r.except, file) && (r.tests || !strings.HasSuffix(base, "_test.go"))
}

var importsAnalyzer = &analysis.Analyzer{
	Name: "imports",
	Doc:  "check what a package imports, under which name and in which order",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, f := range pass.Files {
			name := fileOf(pass, f.FileStart)
			lastGroup, lastLine := 0, 0
			for _, spec := range f.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return nil, err
				}
				for _, problem := range importProblems(pass.Pkg.Name(), name, path, spec) {
					pass.Reportf(spec.Pos(), "%s", problem)
				}
				// Within a group gofmt has sorted them.
				group, line := groupOf(path), pass.Fset.Position(spec.Pos()).Line
				switch {
				case group < lastGroup:
					pass.Reportf(spec.Pos(), "imports are out of order: first the standard library, then other modules, then this one")
				case lastGroup != 0 && group > lastGroup && line == lastLine+1:
					pass.Reportf(spec.Pos(), "an empty line is missing between the standard library, other modules and this module")
				}
				lastGroup, lastLine = group, line
			}
		}
		return nil, nil
	},
}

// importProblems returns what is wrong with an import of a file, apart from its place.
func importProblems(pkg, file, path string, spec *ast.ImportSpec) []string {
	var found []string
	name := ""
	if spec.Name != nil {
		name = spec.Name.Name
	}
	if want := importNames[path]; want != "" && name != want && name != "_" {
		found = append(found, fmt.Sprintf("import %q as %s", path, want))
	}
	if name == "_" && spec.Doc == nil && spec.Comment == nil && path != "embed" && pkg != "main" && !strings.HasSuffix(file, "_test.go") {
		found = append(found, "a blank import needs a comment that says what for")
	}
	for _, r := range rules {
		for never, why := range r.never {
			if matches(never+"/...", path) && r.holds(file) {
				found = append(found, fmt.Sprintf("imports %s: %s", path, why))
			}
		}
	}
	return found
}

// groupOf returns the place of an import: the standard library, whose paths begin without a dot, other modules, this
// one.
func groupOf(path string) int {
	first, _, _ := strings.Cut(path, "/")
	switch {
	case ours(path):
		return 3
	case strings.Contains(first, "."):
		return 2
	}
	return 1
}

var clockAnalyzer = &analysis.Analyzer{
	Name: "clock",
	Doc:  "report uses of the system clock where the time is a parameter or comes from a clock that is passed in",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, f := range pass.Files {
			var forbidden []string
			for _, r := range rules {
				if r.calls != nil && r.holds(fileOf(pass, f.FileStart)) {
					forbidden = append(forbidden, r.calls...)
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if id, is := n.(*ast.Ident); is && forbidden != nil {
					if fn, is := pass.TypesInfo.Uses[id].(*types.Func); is && slices.Contains(forbidden, fn.FullName()) {
						pass.Reportf(id.Pos(), "uses %s.%s: the time is a parameter, or comes from a clock that is passed in", fn.Pkg().Name(), fn.Name())
					}
				}
				return forbidden != nil
			})
		}
		return nil, nil
	},
}

const module = "github.com/muster-project/muster"

// ours reports whether an import path is one of this module.
func ours(path string) bool { return matches(module+"/...", path) }

// fileOf returns the path of a file relative to the module, with slashes: pkg/gang/tree.go.
func fileOf(pass *analysis.Pass, pos token.Pos) string {
	dir := strings.TrimSuffix(strings.TrimPrefix(pass.Pkg.Path(), module+"/"), "_test")
	return dir + "/" + filepath.Base(pass.Fset.Position(pos).Filename)
}

// split returns directory and name of a file.
func split(file string) (dir, base string) {
	i := strings.LastIndex(file, "/")
	return file[:max(i, 0)], file[i+1:]
}

// matches reports whether a path equals the pattern, or, if the pattern ends with "/...", is equal to or below it.
func matches(pattern, path string) bool {
	top, below := strings.CutSuffix(pattern, "/...")
	return path == top || below && (top == "" || strings.HasPrefix(path, top+"/"))
}

func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, path) })
}
