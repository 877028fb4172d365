// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"strings"
	"sync"

	"golang.org/x/tools/go/analysis"
)

// A suppression is a comment on the line of a finding that accepts it, and why:
//
//	fit, ok := err.(*framework.FitError) //nolint:errorlint // the scheduler makes it and does not wrap it
type suppression struct {
	pos    token.Pos
	checks []string // analyzers, or "staticcheck" for any of its checks
	reason string
}

const suppressionPrefix = "//nolint"

// suppressionsOf returns the suppressions of a file by line.
func suppressionsOf(fset *token.FileSet, f *ast.File) map[int]suppression {
	found := map[int]suppression{}
	for _, group := range f.Comments {
		for _, c := range group.List {
			rest, is := strings.CutPrefix(c.Text, suppressionPrefix)
			if !is {
				continue
			}
			checks, reason, _ := strings.Cut(rest, "//")
			s := suppression{pos: c.Pos(), reason: strings.TrimSpace(reason)}
			if names, named := strings.CutPrefix(strings.TrimSpace(checks), ":"); named {
				s.checks = strings.Split(names, ",")
			}
			found[fset.Position(c.Pos()).Line] = s
		}
	}
	return found
}

// used are the suppressions that accepted a finding. The go command starts lint anew for each package.
var used sync.Map // token.Pos

// withPolicy makes an analyzer leave out what policy.go and suppressions accept, and name itself in what is left.
func withPolicy(a *analysis.Analyzer) {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		filtered := *pass
		filtered.Report = func(d analysis.Diagnostic) {
			if !accepted(pass, a.Name, d) {
				d.Message += " (" + a.Name + ")"
				pass.Report(d)
			}
		}
		return run(&filtered)
	}
}

// accepted reports whether a finding is left out.
func accepted(pass *analysis.Pass, check string, d analysis.Diagnostic) bool {
	file := fileAt(pass, d.Pos)
	if file == nil || ast.IsGenerated(file) || leftOut(check, fileOf(pass, d.Pos)) {
		return true
	}
	s, found := suppressionsOf(pass.Fset, file)[pass.Fset.Position(d.Pos).Line]
	if !found {
		return false
	}
	for _, name := range s.checks {
		if name == check || name == "staticcheck" && isStaticcheck(check) {
			used.Store(s.pos, true)
			return true
		}
	}
	return false
}

// newSuppressionsAnalyzer returns an analyzer that runs after the others and reports suppressions that name no
// analyzer, give no reason, or accept nothing.
func newSuppressionsAnalyzer(others []*analysis.Analyzer) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name:     "suppressions",
		Doc:      "check that each //nolint names analyzers, gives a reason and is needed",
		Requires: others,
		Run: func(pass *analysis.Pass) (any, error) {
			for _, f := range pass.Files {
				for _, s := range suppressionsOf(pass.Fset, f) {
					_, needed := used.Load(s.pos)
					switch {
					case len(s.checks) == 0:
						pass.Reportf(s.pos, "name what is suppressed: //nolint:analyzer // reason (suppressions)")
					case s.reason == "":
						pass.Reportf(s.pos, "give the reason: //nolint:analyzer // reason (suppressions)")
					case !needed:
						pass.Reportf(s.pos, "there is nothing to suppress here (suppressions)")
					}
				}
			}
			return nil, nil
		},
	}
}

func fileAt(pass *analysis.Pass, pos token.Pos) *ast.File {
	for _, f := range pass.Files {
		if f.FileStart <= pos && pos <= f.FileEnd {
			return f
		}
	}
	return nil
}
