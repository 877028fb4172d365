// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// TestOwnAnalyzers runs the analyzers of this directory, with policy and suppressions, over packages with one fault per line.
func TestOwnAnalyzers(t *testing.T) {
	own := []*analysis.Analyzer{importsAnalyzer, clockAnalyzer, commentsAnalyzer}
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
		module+"/pkg/gang", module+"/pkg/controllers/podclique",
		module+"/pkg/scheduler", module+"/pkg/scheduler/kubescheduler")
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

// TestPolicyNamesPackages checks that every directory and file in policy.go exists, so that the rules of a package move with it.
func TestPolicyNamesPackages(t *testing.T) {
	named := append(append([]string(nil), takesTime...), waits...)
	for _, rule := range importRules {
		named = append(append(named, rule.in...), rule.except...)
		for _, path := range rule.only {
			named = append(named, strings.TrimPrefix(path, module+"/"))
		}
		for path := range rule.never {
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
