// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// results are what the tests of a folder have said. A test with subtests counts by them.
type results struct {
	ran, failed, skipped map[string]bool
	again                []string // failed, and passed when it was run again
	broken               string   // why not all tests have run; empty: they have
	done                 bool
	open                 map[string]*bytes.Buffer // the output of tests that run
}

func newResults() *results {
	return &results{ran: map[string]bool{}, failed: map[string]bool{}, skipped: map[string]bool{}, open: map[string]*bytes.Buffer{}}
}

// add adds an event, a line of JSON of test2json. Another line is output of no test. The output of a test is written to
// the log if it has failed.
func (r *results) add(line []byte, log io.Writer) {
	var event struct{ Action, Test, Output string }
	if err := json.Unmarshal(line, &event); err != nil {
		fmt.Fprintf(log, "%s\n", line)
		return
	}
	name := event.Test
	if name == "" {
		r.done = r.done || event.Output == "PASS\n" || event.Output == "FAIL\n"
		fmt.Fprint(log, event.Output)
		return
	}
	switch event.Action {
	case "run":
		r.open[name] = &bytes.Buffer{}
		r.ran[name] = true
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			delete(r.ran, parent)
		}
	case "output":
		if text := r.open[name]; text != nil {
			text.WriteString(event.Output)
		}
	case "pass", "skip", "fail":
		if event.Action == "skip" {
			r.skipped[name] = true
			delete(r.ran, name)
		}
		if event.Action == "fail" {
			fmt.Fprintf(log, "%s", r.open[name])
			// A test fails with its subtests.
			if !slices.ContainsFunc(slices.Collect(maps.Keys(r.failed)), func(f string) bool { return within(f, name) }) {
				r.failed[name], r.ran[name] = true, true
			}
		}
		delete(r.open, name)
	}
}

// within reports whether a test is another one, or a subtest of it.
func within(name, of string) bool { return name == of || strings.HasPrefix(name, of+"/") }

// passed reports whether a test has run, and no part of it has failed.
func (r *results) passed(name string) bool {
	ran := slices.ContainsFunc(slices.Collect(maps.Keys(r.ran)), func(n string) bool { return within(n, name) })
	return ran && len(r.failed) == 0
}

// unexpected returns the tests that failed and that no difference is about, sorted.
func (r *results) unexpected(folder string, expected []difference) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.failed)), func(name string) bool {
		return slices.ContainsFunc(expected, func(d difference) bool { return d.is(folder, name) })
	})
}

// exactly returns the pattern of -test.run for a test and its subtests.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// difference is tests that say something else of muster-scheduler than of kube-scheduler.
type difference struct {
	folder string
	tests  *regexp.Regexp // the whole name of a test without subtests
	why    string         // and where it was decided
}

func differs(folder, tests, why string) difference {
	return difference{folder: folder, tests: regexp.MustCompile("^(?:" + tests + ")$"), why: why}
}

func (d difference) is(folder, name string) bool {
	return folder == d.folder && d.tests.MatchString(name)
}

// report returns the results of folders, and whether all are as expected. some: only some tests have run.
func report(folders []string, all []*results, expected []difference, some bool) (string, bool) {
	var text strings.Builder
	ok := true
	wrong := func(format string, args ...any) {
		fmt.Fprintf(&text, "  WRONG: "+format+"\n", args...)
		ok = false
	}
	ran, failed := 0, 0
	for i, folder := range folders {
		r := all[i]
		ran, failed = ran+len(r.ran), failed+len(r.failed)
		fmt.Fprintf(&text, "%s: %d run, %d passed", folder, len(r.ran), len(r.ran)-len(r.failed))
		if len(r.skipped) > 0 {
			fmt.Fprintf(&text, "; %d skip themselves", len(r.skipped))
		}
		fmt.Fprintln(&text)
		for _, name := range r.again {
			fmt.Fprintf(&text, "  passed at the second attempt: %s\n", name)
		}
		if r.broken != "" {
			wrong("%s", r.broken)
		}
		for _, name := range r.unexpected(folder, expected) {
			wrong("%s fails", name)
		}
		for _, d := range expected {
			if d.folder != folder {
				continue
			}
			differ := 0
			for _, name := range slices.Sorted(maps.Keys(r.ran)) {
				switch {
				case !d.is(folder, name):
				case r.failed[name]:
					differ++
				default:
					wrong("%s passes", name)
				}
			}
			if differ > 0 {
				fmt.Fprintf(&text, "  %d of %s: %s\n", differ, strings.TrimSuffix(strings.TrimPrefix(d.tests.String(), "^(?:"), ")$"), d.why)
			} else if !some {
				wrong("there is no test %s that fails", d.tests)
			}
		}
	}
	fmt.Fprintf(&text, "in all %d run, %d passed, %d differ\n", ran, ran-failed, failed)
	return text.String(), ok
}
