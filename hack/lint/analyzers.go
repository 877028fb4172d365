// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"codeberg.org/polyfloyd/go-errorlint/errorlint"
	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/gostaticanalysis/nilerr"
	"github.com/kkHAIKE/contextcheck"
	"github.com/sivchari/containedctx"
	"github.com/timonwong/loggercheck"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/suite/vet"
	"honnef.co/go/tools/analysis/facts/deprecated"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/quickfix"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
)

// factsOfOthers are the analyzers for packages of other modules.
var factsOfOthers = []*analysis.Analyzer{deprecated.Analyzer, printf.Analyzer, ctrlflow.Analyzer}

// all returns every analyzer for a package of ours, with the exceptions of policy.go built in.
func all() []*analysis.Analyzer {
	analyzers := slices.Clone(vet.Suite)
	analyzers = append(analyzers,
		ineffassign.Analyzer,    // a value that is never read
		errorlint.NewAnalyzer(), // wrapped errors compared by ==
		nilerr.Analyzer,         // nil returned where there is an error
		containedctx.Analyzer,   // a context in a struct outlives its call
		newContextCheck(),       // a call that drops the caller's context
		loggercheck.NewAnalyzer(loggercheck.WithDisable([]string{"kitlog", "slog", "zap"})), // an odd number of keys and values
		errcheckAnalyzer, // errors that are not checked
		unusedAnalyzer,   // unused code
		unparamAnalyzer,  // a parameter that is always the same
		misspellAnalyzer,
		importsAnalyzer,  // imports point down only; their names and order
		clockAnalyzer,    // no clock where the time is passed in
		commentsAnalyzer, // programs and exported names have comments; contexts come first
		columnsAnalyzer,  // comments wrap
	)
	for _, list := range [][]*lint.Analyzer{staticcheck.Analyzers, simple.Analyzers, stylecheck.Analyzers, quickfix.Analyzers} {
		for _, check := range list {
			if !checksLeftOut[check.Analyzer.Name] {
				analyzers = append(analyzers, check.Analyzer)
			}
		}
	}
	for _, a := range analyzers {
		withPolicy(a)
	}
	// Last: it reports suppressions that no other analyzer needed.
	return append(analyzers, newSuppressionsAnalyzer(analyzers))
}

// newContextCheck adds the requirements of contextcheck on the SSA form, which it does not declare.
func newContextCheck() *analysis.Analyzer {
	a := contextcheck.NewAnalyzer(contextcheck.Configuration{})
	a.Requires = append(a.Requires, ctrlflow.Analyzer, inspect.Analyzer)
	return a
}
