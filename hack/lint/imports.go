// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

var importsAnalyzer = &analysis.Analyzer{
	Name: "imports",
	Doc:  "check what a package imports, under which name and in which order",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, f := range pass.Files {
			name := fileOf(pass, f.FileStart)
			checkImportOrder(pass, f)
			for _, spec := range f.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return nil, err
				}
				if problem := importName(path, spec.Name); problem != "" {
					pass.Reportf(spec.Pos(), "%s", problem)
				}
				if needsReason(pass.Pkg.Name(), name, spec) {
					pass.Reportf(spec.Pos(), "a blank import needs a comment that says what for")
				}
				for _, rule := range importRules {
					if problem := rule.problem(name, path); problem != "" {
						pass.Reportf(spec.Pos(), "%s", problem)
					}
				}
			}
		}
		return nil, nil
	},
}

// An importRule restricts what the files of some packages import.
type importRule struct {
	in     []string          // directories, "/..." for those below as well
	except []string          // directories and files that the rule is not for
	tests  bool              // the rule is for test files, too
	only   []string          // if not nil: only the standard library and these
	never  map[string]string // import paths, with those below them, and why
}

// problem returns why a file may not import a path; empty if it may.
func (r importRule) problem(file, path string) string {
	dir, base := split(file)
	if !matchesAny(r.in, dir) || matchesAny(r.except, dir) || matchesAny(r.except, file) || !r.tests && strings.HasSuffix(base, "_test.go") {
		return ""
	}
	for never, why := range r.never {
		if matches(never+"/...", path) {
			return fmt.Sprintf("imports %s: %s", path, why)
		}
	}
	if r.only != nil && !isStandard(path) && !matchesAny(r.only, path) {
		return fmt.Sprintf("imports %s: a pure package knows the standard library and %s", path, strings.Join(r.only, ", "))
	}
	return ""
}

// needsReason reports whether an import is blank and has no comment, outside of programs and tests.
func needsReason(pkg, file string, spec *ast.ImportSpec) bool {
	return spec.Name != nil && spec.Name.Name == "_" && spec.Doc == nil && spec.Comment == nil && spec.Path.Value != `"embed"` &&
		pkg != "main" && !strings.HasSuffix(file, "_test.go")
}

// importName returns the error of the name under which a path is imported; empty if there is none.
func importName(path string, name *ast.Ident) string {
	want, found := importNames[path]
	if !found || name != nil && (name.Name == want || name.Name == "_") {
		return ""
	}
	return fmt.Sprintf("import %q as %s", path, want)
}

// checkImportOrder reports imports that are not in order: the standard library, other modules, this module, with an empty line
// between. Within a group gofmt has sorted them.
func checkImportOrder(pass *analysis.Pass, f *ast.File) {
	last, lastLine := 0, 0
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || path == "C" {
			continue
		}
		group, line := 2, pass.Fset.Position(spec.Pos()).Line
		if isStandard(path) {
			group = 1
		} else if ours(path) {
			group = 3
		}
		switch {
		case group < last:
			pass.Reportf(spec.Pos(), "imports are out of order: first the standard library, then other modules, then this one")
		case last != 0 && group > last && line == lastLine+1:
			pass.Reportf(spec.Pos(), "an empty line is missing between the standard library, other modules and this module")
		}
		last, lastLine = group, line
	}
}
