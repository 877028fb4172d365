// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLinesAndTheirPicture(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "results")
	all, err := plans("big-gang", options{repeat: 1, gpus: 8, nodes: 200, out: dir})
	if err != nil {
		t.Fatal(err)
	}
	to := newLines(all[0])
	to.now = func() time.Time { return time.Unix(1000, 5).UTC() }
	took := func(seconds float64) (r outcome) {
		r.add(firstToLast, seconds)
		return r
	}
	// Another number of nodes: not comparable.
	other := newLines(plan{shape: all[0].shape, o: options{nodes: 5, gpus: 8, gangs: 1, podsPerGang: 1000, out: dir}})
	if err := other.write(variant{kind: "alike"}, muster, 0, took(100)); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		variant    variant
		contestant string
		r          outcome
	}{
		{variant{kind: "alike"}, floor, took(3)},
		{variant{kind: "alike"}, muster, took(1)},
		{variant{kind: "alike"}, coscheduling, unfinishedOutcome("slow")},
		{variant{kind: "index"}, muster, took(2)},
		{variant{kind: "alike"}, muster, took(4)},
	} {
		if err := to.write(one.variant, one.contestant, 0, one.r); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := readLines(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := line{Time: time.Unix(1000, 0).UTC(), Shape: "big-gang", Variant: "alike", Contestant: "floor", Round: 1, CPUs: lines[1].CPUs,
		Nodes: 200, GPUs: 8, Gangs: 1, Pods: 1000, Figures: map[string]float64{"first_to_last_bind_seconds": 3}}
	if diff := cmp.Diff(want, lines[1]); diff != "" {
		t.Errorf("second line (-want +got):\n%s", diff)
	}
	var got []panel
	for _, p := range panels(lines) {
		if len(p.bars) > 0 {
			got = append(got, p)
		}
	}
	// The unfinished run has a bar in both, because it has no figures.
	wantPanels := []panel{
		{title: "big-gang: first to last bind, s", bars: []bar{
			{label: "alike muster", class: muster, values: []float64{1, 4}},
			{label: "alike coscheduling", class: coscheduling},
			{label: "alike floor", class: floor, values: []float64{3}},
			{label: "index muster", class: muster, values: []float64{2}},
		}},
		{title: "big-gang: last pod created to first bind, ms", bars: []bar{{label: "alike coscheduling", class: coscheduling}}},
	}
	if diff := cmp.Diff(wantPanels, got, cmp.AllowUnexported(panel{}, bar{})); diff != "" {
		t.Errorf("panels (-want +got):\n%s", diff)
	}
	wantTables := "**big-gang**, 1970-01-01, 200 nodes, " + strconv.Itoa(runtime.NumCPU()) + ` CPUs, one round:

| | muster | coscheduling | floor |
|---|---|---|---|
| alike first to last bind, s | 2.50 (1.00 to 4.00) | did not finish | 3.00 |
| index first to last bind, s | 2.00 | - | - |

`
	if diff := cmp.Diff(wantTables, markdown(lines)); diff != "" {
		t.Errorf("markdown (-want +got):\n%s", diff)
	}
	if err := writePicture(dir); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(filepath.Join(dir, "results.svg"))
	if err != nil || !strings.Contains(string(picture), "big-gang: first to last bind, s") {
		t.Errorf("results.svg: %v, %s", err, picture)
	}
}

func unfinishedOutcome(why string) outcome { return outcome{unfinished: why} }
