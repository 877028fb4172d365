// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// integration is where the tests are that need a control plane, which is not part of the report.
const integration = "test/integration/"

// seam is a row of a table in docs/upstream.md that names a test.
type seam struct {
	section string
	what    string   // the first cell, without markup
	files   []string // below the root of the repository
	tests   []string
}

var (
	fileName = regexp.MustCompile("`([\\w/]+\\.go)`(?:\\]\\(\\.\\./([\\w/]+\\.go)\\))?")
	testName = regexp.MustCompile("`(Test[A-Z]\\w*)`")
	link     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// seamsOf returns the rows that name a test. A file without a path is in pkg/scheduler/kubescheduler.
func seamsOf(markdown string) []seam {
	var seams []seam
	section := ""
	for line := range strings.Lines(markdown) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		tests := namesIn(testName, cells[len(cells)-1])
		if !strings.HasPrefix(line, "|") || len(tests) == 0 {
			continue
		}
		s := seam{section: section, what: strings.TrimSpace(link.ReplaceAllString(strings.ReplaceAll(cells[0], "`", ""), "$1")), tests: tests}
		for _, match := range fileName.FindAllStringSubmatch(line, -1) {
			file := match[2]
			if file == "" {
				file = "pkg/scheduler/kubescheduler/" + match[1]
			}
			s.files = append(s.files, file)
		}
		seams = append(seams, s)
	}
	return seams
}

func namesIn(expression *regexp.Regexp, text string) []string {
	var names []string
	for _, match := range expression.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// testsOf returns the tests of all seams, each once, sorted.
func testsOf(seams []seam) []string {
	var tests []string
	for _, s := range seams {
		tests = append(tests, s.tests...)
	}
	slices.Sort(tests)
	return slices.Compact(tests)
}

// results are what the compiler and the tests have said.
type results struct {
	errors map[string][]string // by file: "line:column: message"
	passed map[string]bool     // by test; a test that did not run is in neither
	output map[string]string   // of tests that failed
	// unreached are the folders of packages that were not compiled because they import one that does not compile.
	unreached map[string]bool
}

// module is what the import paths of Muster begin with.
const module = "github.com/muster-project/muster/"

// markUnreached reads a line per package: its folder, and the import paths of all that it depends on.
func (r *results) markUnreached(dependencies string) {
	r.unreached = map[string]bool{}
	for line := range strings.Lines(dependencies) {
		fields := strings.Fields(line)
		for file := range r.errors {
			if len(fields) > 0 && slices.Contains(fields[1:], module+path.Dir(file)) {
				r.unreached[fields[0]] = true
			}
		}
	}
}

var compilerError = regexp.MustCompile(`^(?:vet: )?((?:[\w.-]+/)+[\w.-]+\.go):(\d+:\d+: .+)$`)

// addErrors adds what the compiler has written.
func (r *results) addErrors(output string) {
	for line := range strings.Lines(output) {
		if match := compilerError.FindStringSubmatch(strings.TrimSpace(line)); match != nil && !slices.Contains(r.errors[match[1]], match[2]) {
			r.errors[match[1]] = append(r.errors[match[1]], match[2])
		}
	}
}

// resultsOf reads the output of go test -json. Lines before and between the events are skipped.
func resultsOf(output []byte) (*results, error) {
	r := &results{errors: map[string][]string{}, passed: map[string]bool{}, output: map[string]string{}}
	for line := range bytes.Lines(output) {
		if !bytes.HasPrefix(line, []byte("{")) {
			r.addErrors(string(line))
			continue
		}
		var event struct{ Action, Test, Output string }
		if err := json.Unmarshal(line, &event); errors.Is(err, io.ErrUnexpectedEOF) {
			break // interrupted
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of go test -json: %w", err)
		}
		test, _, _ := strings.Cut(event.Test, "/")
		switch {
		case event.Action == "build-output":
			r.addErrors(event.Output)
		case test == "":
		case event.Action == "output" && !strings.HasPrefix(strings.TrimSpace(event.Output), "==="):
			r.output[test] += event.Output
		case event.Test == test && (event.Action == "pass" || event.Action == "fail"):
			r.passed[test] = event.Action == "pass"
		}
	}
	return r, nil
}

// shownLines is how many lines of a file's errors, or of a failed test, a report has at most.
const shownLines = 40

// report tells of each seam whether its files compile and what its tests say, then why, each file and test once.
// packages are the folders of the tests.
func report(seams []seam, packages map[string]string, r *results) string {
	var table, reasons strings.Builder
	section := ""
	files, told := maps.Clone(r.errors), map[string]bool{}
	for _, s := range seams {
		if s.section != section {
			section = s.section
			fmt.Fprintf(&table, "\n%s\n", section)
		}
		compiles, count := "compiles", 0
		for _, file := range s.files {
			count += len(r.errors[file])
			delete(files, file)
			if r.unreached[path.Dir(file)] {
				compiles = "not tried"
			}
		}
		if count > 0 {
			compiles = fmt.Sprintf("%d errors", count)
		}
		fmt.Fprintf(&table, "  %-10s %-10s %s (%s)\n", compiles, verdict(s.tests, packages, r), s.what, strings.Join(s.tests, ", "))
		for _, test := range s.tests {
			if passed, ran := r.passed[test]; ran && !passed && !told[test] {
				told[test] = true
				fmt.Fprintf(&reasons, "\n%s fails\n%s", test, indent(strings.Split(strings.TrimSpace(r.output[test]), "\n")))
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(r.errors)) {
		where := ""
		if _, ok := files[file]; ok {
			where = ", which no row names"
		}
		fmt.Fprintf(&reasons, "\n%s%s\n%s", file, where, indent(r.errors[file]))
	}
	return table.String() + reasons.String()
}

// verdict puts into a word what the tests of a seam have said.
func verdict(tests []string, packages map[string]string, r *results) string {
	ran := 0
	for _, test := range tests {
		passed, ok := r.passed[test]
		if ok && !passed {
			return "FAILS"
		}
		if ok || strings.HasPrefix(packages[test], integration) {
			ran++
		}
	}
	switch ran {
	case len(tests):
		return "passes"
	case 0:
		return "not built"
	default:
		return "in part"
	}
}

func indent(lines []string) string {
	var out strings.Builder
	for i, line := range lines {
		if i == shownLines {
			fmt.Fprintf(&out, "    ... and %d more lines\n", len(lines)-i)
			break
		}
		fmt.Fprintf(&out, "    %s\n", line)
	}
	return out.String()
}
