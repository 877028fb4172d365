// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// TestOwnAnalyzers runs the analyzers of this directory, with policy and suppressions, over packages with one fault per
// line.
func TestOwnAnalyzers(t *testing.T) {
	own := []*analysis.Analyzer{importsAnalyzer, clockAnalyzer, commentsAnalyzer, columnsAnalyzer}
	for _, a := range own {
		withPolicy(a)
	}
	// One analyzer that runs the others, so that all expectations of a file are matched together.
	together := newSuppressionsAnalyzer(own)
	run := together.Run
	together.Requires = nil
	together.Run = func(pass *analysis.Pass) (any, error) {
		for _, a := range own {
			if _, err := a.Run(pass); err != nil {
				return nil, err
			}
		}
		return run(pass)
	}
	analysistest.Run(t, analysistest.TestData(), together,
		module+"/pkg/scheduler/report", module+"/pkg/controllers/podclique", module+"/pkg/apis/grove/v1alpha1", module+"/test/demo",
		module+"/pkg/scheduler", module+"/pkg/scheduler/kubescheduler")
}

// TestAnalyzersOfOthers runs all analyzers over a package with a fault for each of those that are linked from
// elsewhere, or, of go vet and staticcheck, for some.
func TestAnalyzersOfOthers(t *testing.T) {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax,
		Env:  append(os.Environ(), "GOPATH="+analysistest.TestData(), "GO111MODULE=off", "GOPROXY=off"),
	}, module+"/test/faults")
	if err != nil || packages.PrintErrors(pkgs) > 0 {
		t.Fatalf("loading failed: %v", err)
	}
	graph, err := checker.Analyze(all(), pkgs, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, action := range graph.Roots {
		if action.Err != nil {
			t.Errorf("%s: %v", action.Analyzer.Name, action.Err)
		}
		for _, d := range action.Diagnostics {
			got = append(got, fmt.Sprintf("line %d: %s", action.Package.Fset.Position(d.Pos).Line, action.Analyzer.Name))
		}
	}
	content, err := os.ReadFile(pkgs[0].GoFiles[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(content), "\n") {
		_, names, _ := strings.Cut(line, "fault: ")
		for name := range strings.FieldsSeq(names) {
			want = append(want, fmt.Sprintf("line %d: %s", i+1, name))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(slices.Compact(got), want) {
		t.Errorf("found:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnalyzersAreValid(t *testing.T) {
	if err := analysis.Validate(all()); err != nil {
		t.Error(err)
	}
}

// TestPackagesOfOthers checks that packages of other modules are analyzed for facts only, and those of this module
// completely.
func TestPackagesOfOthers(t *testing.T) {
	for content, want := range map[string]bool{
		`{"ImportPath": "k8s.io/api/core/v1", "VetxOnly": true}`:                        true,
		`{"ImportPath": "github.com/muster-project/muster/pkg/gang", "VetxOnly": true}`: false,
		`{"ImportPath": "github.com/muster-project/muster/pkg/gang"}`:                   false,
	} {
		file := t.TempDir() + "/vet.cfg"
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := factsOnly(file); got != want {
			t.Errorf("%s: facts only is %t, want %t", content, got, want)
		}
	}
}

// TestPolicyNamesPackages checks that every directory in policy.go exists, so that the rules of a package move with it.
func TestPolicyNamesPackages(t *testing.T) {
	var named []string
	for _, r := range rules {
		named = append(append(named, r.in...), r.except...)
		for path := range r.never {
			if dir, is := strings.CutPrefix(path, module+"/"); is {
				named = append(named, dir)
			}
		}
	}
	for _, dir := range named {
		dir = strings.TrimSuffix(dir, "/...")
		if strings.HasSuffix(dir, ".go") {
			if _, err := os.Stat("../../" + dir); err != nil {
				t.Error(err)
			}
			continue
		}
		if files, err := os.ReadDir("../../" + dir); err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, error %v", dir, len(files), err)
		}
	}
}
