// SPDX-License-Identifier: Apache-2.0

// Command lint checks the source of this repository. It is a tool of go vet:
//
//	go vet -vettool=bin/lint ./...
//
// It links the analyzers of go vet, those of staticcheck, a few others, and those of this directory, which know what is
// particular to this repository; policy.go has their settings. The go command runs it for one package at a time and
// caches the result, so a package is analyzed again only if it or something it imports has changed.
package main

import (
	"encoding/json"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
)

func main() {
	unitchecker.Main(analyzersFor(os.Args[len(os.Args)-1])...)
}

// analyzersFor returns the analyzers for the package that the last argument of the command line describes. If it does
// not describe one, the go command asks for lint's flags or version.
func analyzersFor(argument string) []*analysis.Analyzer {
	if strings.HasSuffix(argument, ".cfg") && factsOnly(argument) {
		return factsOfOthers
	}
	return all()
}

// factsOnly reports whether the file describes a package of another module, which is analyzed only for facts that are
// cheap to compute: deprecations, wrappers of Printf, functions that do not return. Facts that need the SSA form of a
// thousand vendored packages would take minutes.
func factsOnly(file string) bool {
	var unit struct {
		ImportPath string
		VetxOnly   bool // the package is analyzed only for the facts that packages importing it need
	}
	data, err := os.ReadFile(file)
	return err == nil && json.Unmarshal(data, &unit) == nil && unit.VetxOnly && !ours(unit.ImportPath)
}
