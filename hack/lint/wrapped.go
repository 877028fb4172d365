// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/token"

	"github.com/golangci/misspell"
	"github.com/kisielk/errcheck/errcheck"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/packages"
	"honnef.co/go/tools/unused"
	"mvdan.cc/unparam/check"
)

// The checks of this file come without an analyzer, or with one that reports nothing or cannot be configured.

var errcheckAnalyzer = &analysis.Analyzer{
	Name: "errcheck",
	Doc:  "report errors that are not checked",
	Run: func(pass *analysis.Pass) (any, error) {
		checker := errcheck.Checker{Exclusions: errcheck.Exclusions{
			Symbols:          append(append([]string(nil), errcheck.DefaultExcludedSymbols...), uncheckedErrors...),
			BlankAssignments: true,
			TypeAssertions:   true,
		}}
		for _, e := range checker.CheckPackage(packageOf(pass)).Unique().UncheckedErrors {
			pass.Reportf(posOf(pass, e.Pos), "the error of %s is not checked", e.FuncName)
		}
		return nil, nil
	},
}

var unusedAnalyzer = &analysis.Analyzer{
	Name:     "unused",
	Doc:      "report code that nothing uses",
	Requires: []*analysis.Analyzer{unused.Analyzer.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		result := pass.ResultOf[unused.Analyzer.Analyzer].(unused.Result)
		// An object declared in a function appears once per instantiation of it, used or not.
		used := map[token.Position]bool{}
		for _, o := range result.Used {
			used[o.Position] = true
		}
		for _, o := range result.Unused {
			if o.Kind != "type param" && !used[o.Position] {
				pass.Reportf(posOf(pass, o.Position), "%s %s is unused", o.Kind, o.Name)
			}
		}
		return nil, nil
	},
}

var unparamAnalyzer = &analysis.Analyzer{
	Name:     "unparam",
	Doc:      "report parameters that are unused or always the same",
	Requires: []*analysis.Analyzer{buildssa.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		checker := &check.Checker{}
		checker.Packages([]*packages.Package{packageOf(pass)})
		checker.ProgramSSA(pass.ResultOf[buildssa.Analyzer].(*buildssa.SSA).Pkg.Prog)
		issues, err := checker.Check()
		for _, issue := range issues {
			pass.Reportf(issue.Pos(), "%s", issue.Message())
		}
		return nil, err
	},
}

var misspellAnalyzer = &analysis.Analyzer{
	Name: "misspell",
	Doc:  "report misspelled English words",
	Run: func(pass *analysis.Pass) (any, error) {
		replacer := misspell.Replacer{Replacements: misspell.DictMain}
		replacer.Compile()
		for _, f := range pass.Files {
			file := pass.Fset.File(f.FileStart)
			source, err := pass.ReadFile(file.Name())
			if err != nil {
				return nil, err
			}
			_, diffs := replacer.Replace(string(source))
			for _, d := range diffs {
				pass.Reportf(file.LineStart(d.Line)+token.Pos(d.Column), "%q is a misspelling of %q", d.Original, d.Corrected)
			}
		}
		return nil, nil
	},
}

// packageOf returns the package of a pass as the checks want it that load packages themselves.
func packageOf(pass *analysis.Pass) *packages.Package {
	return &packages.Package{
		Fset: pass.Fset, Syntax: pass.Files, Types: pass.Pkg, TypesInfo: pass.TypesInfo, PkgPath: pass.Pkg.Path(), Name: pass.Pkg.Name(),
	}
}

// posOf returns the position in the pass of a place in one of its files.
func posOf(pass *analysis.Pass, at token.Position) token.Pos {
	for _, f := range pass.Files {
		if file := pass.Fset.File(f.FileStart); file.Name() == at.Filename {
			return file.Pos(at.Offset)
		}
	}
	panic(fmt.Sprintf("%s is in no file of %s", at, pass.Pkg.Path()))
}
