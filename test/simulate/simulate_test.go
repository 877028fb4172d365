// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sand is a stream of small jobs, of which one of the two nodes is always in use: each begins before the other one
// ends. The couch is a gang that needs both nodes, and comes early.
func sand(grains int) []job {
	jobs := []job{{submit: 0, duration: 20, pods: 1, gpus: 8}, {submit: 5, duration: 60, pods: 2, gpus: 8}}
	for i := 1; i < grains; i++ {
		jobs = append(jobs, job{submit: 10 * float64(i), duration: 20, pods: 1, gpus: 8})
	}
	return jobs
}

// waitOf returns how long the only job of 9 to 63 GPUs waits, in seconds.
func waitOf(t *testing.T, jobs []job, nodes int, p policy) float64 {
	t.Helper()
	f, err := simulate(t.Context(), jobs, nodes, p)
	if err != nil {
		t.Fatal(err)
	}
	if f.Classes[1].Jobs != 1 {
		t.Fatalf("%d jobs of %s GPUs, want 1", f.Classes[1].Jobs, f.Classes[1].Name)
	}
	return f.Classes[1].Max
}

func policyNamed(t *testing.T, name string) policy {
	t.Helper()
	list, err := choose(policies, name, func(p policy) string { return p.name })
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// TestSandStarvesTheCouch: with greedy a gang waits as long as the stream of small jobs lasts, however long that is;
// with fifo until what runs has ended; with reservations for five minutes, and then until what runs has ended.
func TestSandStarvesTheCouch(t *testing.T) {
	t.Parallel()
	for _, grains := range []int{50, 500} {
		jobs := sand(grains)
		lasts := 10*float64(grains-1) + 20
		if got := waitOf(t, jobs, 2, policyNamed(t, "greedy")); got != lasts-5 {
			t.Errorf("greedy, %d small jobs: waited %.0f s, want until the last one has ended, %.0f s", grains, got, lasts-5)
		}
		if got := waitOf(t, jobs, 2, policyNamed(t, "fifo")); got != 15 {
			t.Errorf("fifo, %d small jobs: waited %.0f s, want 15 s", grains, got)
		}
		for _, name := range []string{"reservations", "backfill", "backfill-2-10"} {
			most := min(lasts-5, (reservationAfter+tick).Seconds()+20)
			if got := waitOf(t, jobs, 2, policyNamed(t, name)); got > most {
				t.Errorf("%s, %d small jobs: waited %.0f s, want at most %.0f s", name, grains, got, most)
			}
		}
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	jobs := []job{ // on two nodes of 8 GPUs
		{submit: 0, duration: 100, pods: 1, gpus: 8},
		{submit: 10, duration: 40, pods: 2, gpus: 8}, // from 100 to 140
		{submit: 20, duration: 30, pods: 1, gpus: 4}, // passes it, from 20 to 50
		{submit: 50, duration: 200, pods: 1, gpus: 1},
	}
	f, err := simulate(t.Context(), jobs, 2, policyNamed(t, "greedy"))
	if err != nil {
		t.Fatal(err)
	}
	// The last one passes the second, too, which then waits for it.
	type want struct {
		Jobs            int
		P50, P99, Max   float64
		SlowdownTenfold float64
	}
	var got []want
	for _, c := range f.Classes {
		got = append(got, want{c.Jobs, c.P50, c.P99, c.Max, math.Round(10 * c.Slowdown)})
	}
	if diff := cmp.Diff([]want{{3, 0, 0, 0, 10}, {1, 240, 240, 240, 47}, {}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := (8*50 + 4*30) / (16 * 50.0); math.Abs(f.Utilisation-want) > 1e-9 {
		t.Errorf("utilisation %g, want %g", f.Utilisation, want)
	}
	sum := 0.0
	for _, used := range f.use {
		sum += used
	}
	if want := 100*8 + 40*16 + 30*4 + 200.0; math.Abs(sum-want) > 1e-6 {
		t.Errorf("%g GPU-seconds in use, want %g", sum, want)
	}
	if f.Makespan != 290 || f.LowerBound != 250 || f.Inversions != 2 {
		t.Errorf("makespan %g, want 290; lower bound %g, want 250; %d inversions, want 2", f.Makespan, f.LowerBound, f.Inversions)
	}
}

func TestJobsThatNeverStart(t *testing.T) {
	t.Parallel()
	_, err := simulate(t.Context(), []job{{duration: 1, pods: 3, gpus: 8}}, 2, policyNamed(t, "greedy"))
	if err == nil || !strings.Contains(err.Error(), "job-000000 with 3 pods of 8 GPUs never starts") {
		t.Errorf("error %v", err)
	}
}

// TestTheBurst: nine rounds of 120 s are the least.
func TestTheBurst(t *testing.T) {
	t.Parallel()
	jobs, err := settings[0].read()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range policies {
		f, err := simulate(t.Context(), jobs, settings[0].nodes, p)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		if f.LowerBound != 1080 || f.Makespan < f.LowerBound || f.Makespan > 1.1*f.LowerBound {
			t.Errorf("%s: makespan %g, lower bound %g, want 1080", p.name, f.Makespan, f.LowerBound)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	got := map[string][2]int{} // jobs, pods
	for _, at := range settings {
		jobs, err := at.read()
		if err != nil {
			t.Fatal(err)
		}
		pods := 0
		for _, j := range jobs {
			pods += j.pods
			if j.pods*j.gpus > at.nodes*gpusPerNode || j.gpus > gpusPerNode {
				t.Errorf("%s: %+v does not fit on %d nodes", at.name, j, at.nodes)
			}
		}
		got[at.name] = [2]int{len(jobs), pods}
		for _, load := range []float64{0.7, 1.1} {
			loaded, err := atLoad(jobs, load, at.nodes*gpusPerNode)
			if err != nil {
				t.Fatal(err)
			}
			if at.name != "burst" && math.Abs(loadOf(loaded, at.nodes*gpusPerNode)-load) > 1e-3 {
				t.Errorf("%s: load %g, want %g", at.name, loadOf(loaded, at.nodes*gpusPerNode), load)
			}
			if !slices.IsSortedFunc(loaded, func(a, b job) int { return int(math.Copysign(1, a.submit-b.submit)) }) {
				t.Errorf("%s: the jobs are not in the order in which they come", at.name)
			}
		}
	}
	want := map[string][2]int{
		"burst": {53, 288}, "helios-gangs-24h": {1193, 1992}, "helios-7d": {6571, 16513}, "helios-20d": {15211, 27533},
		"itp-7d": {2577 + 7*12, 2749 + 7*768}, "kalos-philly-7d": {14268 + 38, 14285 + 2244},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInversions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		values []float64
		want   int
	}{{nil, 0}, {[]float64{1, 2, 2, 3}, 0}, {[]float64{3, 2, 1}, 3}, {[]float64{2, 1, 3, 1}, 3}} {
		if got := inversions(slices.Clone(tt.values)); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.values, got, tt.want)
		}
	}
}

// TestOutput: the table has a row for each policy, the lines are JSON, and the pictures are XML.
func TestOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "jobs.csv")
	if err := os.WriteFile(path, []byte("submit_s,duration_s,pods,gpus_per_pod\n0,60,2,8\n30,60,1,4\n60,600,9,8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options{settings: []setting{file(path, 16)}, policies: policies, loads: []float64{0.1}, out: filepath.Join(dir, "out")}
	var out bytes.Buffer
	if err := o.run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(o.out, "runs.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != len(policies) {
		t.Errorf("%d lines, want %d", len(lines), len(policies))
	}
	for i, line := range lines {
		var f figures
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Policy != policies[i].name || f.Jobs != 3 || len(f.Classes) != 3 {
			t.Errorf("line %q: error %v", line, err)
		}
	}
	for _, p := range policies {
		if !strings.Contains(out.String(), "\n| "+p.name+" | ") {
			t.Errorf("no row of %s in:\n%s", p.name, out.String())
		}
	}
	svg, err := os.ReadFile(filepath.Join(o.out, "jobs.csv-0.1.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}
