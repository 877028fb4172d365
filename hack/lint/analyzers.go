// SPDX-License-Identifier: Apache-2.0

package main

import (
	"codeberg.org/polyfloyd/go-errorlint/errorlint"
	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/gostaticanalysis/nilerr"
	"github.com/kkHAIKE/contextcheck"
	"github.com/sivchari/containedctx"
	"github.com/timonwong/loggercheck"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/appends"
	"golang.org/x/tools/go/analysis/passes/asmdecl"
	"golang.org/x/tools/go/analysis/passes/assign"
	"golang.org/x/tools/go/analysis/passes/atomic"
	"golang.org/x/tools/go/analysis/passes/bools"
	"golang.org/x/tools/go/analysis/passes/buildtag"
	"golang.org/x/tools/go/analysis/passes/cgocall"
	"golang.org/x/tools/go/analysis/passes/composite"
	"golang.org/x/tools/go/analysis/passes/copylock"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/defers"
	"golang.org/x/tools/go/analysis/passes/directive"
	"golang.org/x/tools/go/analysis/passes/errorsas"
	"golang.org/x/tools/go/analysis/passes/framepointer"
	"golang.org/x/tools/go/analysis/passes/hostport"
	"golang.org/x/tools/go/analysis/passes/httpresponse"
	"golang.org/x/tools/go/analysis/passes/ifaceassert"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/analysis/passes/loopclosure"
	"golang.org/x/tools/go/analysis/passes/lostcancel"
	"golang.org/x/tools/go/analysis/passes/nilfunc"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/passes/shift"
	"golang.org/x/tools/go/analysis/passes/sigchanyzer"
	"golang.org/x/tools/go/analysis/passes/slog"
	"golang.org/x/tools/go/analysis/passes/stdmethods"
	"golang.org/x/tools/go/analysis/passes/stdversion"
	"golang.org/x/tools/go/analysis/passes/stringintconv"
	"golang.org/x/tools/go/analysis/passes/structtag"
	"golang.org/x/tools/go/analysis/passes/testinggoroutine"
	"golang.org/x/tools/go/analysis/passes/tests"
	"golang.org/x/tools/go/analysis/passes/timeformat"
	"golang.org/x/tools/go/analysis/passes/unmarshal"
	"golang.org/x/tools/go/analysis/passes/unreachable"
	"golang.org/x/tools/go/analysis/passes/unsafeptr"
	"golang.org/x/tools/go/analysis/passes/unusedresult"
	"golang.org/x/tools/go/analysis/passes/waitgroup"
	"honnef.co/go/tools/analysis/facts/deprecated"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/quickfix"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
)

// factsOfOthers are the analyzers for packages of other modules.
var factsOfOthers = []*analysis.Analyzer{deprecated.Analyzer, printf.Analyzer, ctrlflow.Analyzer}

// govet are the analyzers of go vet, in the order of cmd/vet.
var govet = []*analysis.Analyzer{
	appends.Analyzer, asmdecl.Analyzer, assign.Analyzer, atomic.Analyzer, bools.Analyzer, buildtag.Analyzer, cgocall.Analyzer,
	composite.Analyzer, copylock.Analyzer, defers.Analyzer, directive.Analyzer, errorsas.Analyzer, framepointer.Analyzer,
	hostport.Analyzer, httpresponse.Analyzer, ifaceassert.Analyzer, loopclosure.Analyzer, lostcancel.Analyzer, nilfunc.Analyzer,
	printf.Analyzer, shift.Analyzer, sigchanyzer.Analyzer, slog.Analyzer, stdmethods.Analyzer, stdversion.Analyzer,
	stringintconv.Analyzer, structtag.Analyzer, testinggoroutine.Analyzer, tests.Analyzer, timeformat.Analyzer,
	unmarshal.Analyzer, unreachable.Analyzer, unsafeptr.Analyzer, unusedresult.Analyzer, waitgroup.Analyzer,
}

// all returns every analyzer for a package of ours, with the exceptions of policy.go built in.
func all() []*analysis.Analyzer {
	analyzers := append([]*analysis.Analyzer(nil), govet...)
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
		commentsAnalyzer, // exported names and packages have comments; contexts come first
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
