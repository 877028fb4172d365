// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/test/shapes"
)

// TestMusterSplitsNoMoreThanStock plays the burst, and some hours of the day with the most large jobs.
func TestMusterSplitsNoMoreThanStock(t *testing.T) {
	t.Parallel()
	for _, at := range settings[:2] {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			f, jobs, err := at.read(1)
			if err != nil {
				t.Fatal(err)
			}
			if len(jobs) > 300 {
				jobs = jobs[150:300]
			}
			all := map[string]*figures{}
			for _, c := range contestants {
				r, err := c.run(t.Context(), f, jobs, at.window)
				if err != nil { // overcommitted, refused in spite of room, or required and split
					t.Fatalf("%s: %v", c.name, err)
				}
				if r.jobs != len(jobs) {
					t.Errorf("%s: %d jobs were placed, want %d", c.name, r.jobs, len(jobs))
				}
				if c.gangs && r.needless != [levels]int{} {
					t.Errorf("%s: %v gangs were split over racks and blocks of which one had room", c.name, r.needless)
				}
				if c.required && r.split[rack] > 0 {
					t.Errorf("%s: %d gangs that require a rack were split", c.name, r.split[rack])
				}
				all[c.name] = r
			}
			for _, c := range contestants {
				if !c.gangs && all[c.name].needless[rack] == 0 {
					t.Errorf("%s split no gang for which a rack had room: the sample says nothing", c.name)
				}
				for _, stock := range []string{"least-allocated", "most-allocated"} {
					if got, most := all[c.name].split[rack], all[stock].split[rack]; c.gangs && got > most {
						t.Errorf("%s split %d gangs over racks, %s %d", c.name, got, stock, most)
					}
				}
			}
		})
	}
}

// scripted places jobs on the nodes of a script, in their order; "" refuses.
type scripted struct{ script []string }

func (s *scripted) place(job) ([]*corev1.Pod, error) {
	nodes := s.script[0]
	s.script = s.script[1:]
	var pods []*corev1.Pod
	for _, name := range strings.Fields(nodes) {
		pods = append(pods, &corev1.Pod{Spec: corev1.PodSpec{NodeName: name}})
	}
	return pods, nil
}

func (s *scripted) remove([]*corev1.Pod) error { return nil }

// twoBlocks returns nodes of 2 GPUs: a0, a1 and a2 in one rack, b0 in another of the same block, c0 and c1 in another
// block.
func twoBlocks(t *testing.T) *fabric {
	t.Helper()
	nodes := []shapes.Node{{Block: "skipped", Rack: "s"}, {Block: "x", Rack: "a"}, {Block: "x", Rack: "a"}, {Block: "x", Rack: "a"},
		{Block: "x", Rack: "b"}, {Block: "y", Rack: "a"}, {Block: "y", Rack: "a"}}
	f := newFabric(shapes.Topology{GPUs: 2, Nodes: nodes}, []string{"x", "y"})
	for i, name := range []string{"a0", "a1", "a2", "b0", "c0", "c1"} {
		f.nodes[i].name = name
	}
	return f
}

func TestFigures(t *testing.T) {
	t.Parallel()
	jobs := []job{
		{Submit: 0, Duration: 100, Pods: 2, GPUs: 2},  // in rack a
		{Submit: 10, Duration: 40, Pods: 2, GPUs: 1},  // split, although rack b had room
		{Submit: 10, Duration: 20, Pods: 3, GPUs: 2},  // split over blocks after 20 s: no rack, no block had room
		{Submit: 60, Duration: 100, Pods: 1, GPUs: 1}, // is no gang
	}
	got, err := play(twoBlocks(t), jobs, 50, &scripted{[]string{"a0 a1", "a2 c0", "", "b0 c1 a2", "c0"}}, func(job) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	want := &figures{
		jobs: 4, wait: 40, // from 10 to 50
		gangs: [levels]int{3, 3}, split: [levels]int{2, 2}, needless: [levels]int{1, 1},
		racks: 1 + 2 + 3, fewest: 1 + 1 + 2,
		window: 50, used: 4*50 + 2*40, free: [levels]int{4*10 + 2*40, 4 * 10}, leastFree: [levels]int{2, 0},
		makespan: 160,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(figures{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPlayFindsFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script   []string
		required bool
		want     string
	}{
		"too much on a node":           {script: []string{"a0 a1", "a2 a1"}, want: `node "a1" does not have 2 GPUs`},
		"no such node":                 {script: []string{"a0 d0"}, want: `node "d0" does not have 2 GPUs`},
		"a part of a gang":             {script: []string{"a0"}, want: "1 pods of job"},
		"refused in spite of room":     {script: []string{"a0 a1", ""}, want: "there is room"},
		"required, and split":          {script: []string{"a0 b0"}, required: true, want: "requires a rack, and is in 2"},
		"required, and one has room":   {script: []string{"a0 a1", ""}, required: true, want: "there is room"},
		"required, and none has room":  {script: []string{"a0 a1", "c0 c1", "", "a0 a1"}, required: true},
		"not required":                 {script: []string{"a0 a1", "c0 c1", "a2 b0"}},
		"placed where another one ran": {script: []string{"a0 a1", "c0 c1", "", "a1 a2"}, required: true},
		"placed before another ended":  {script: []string{"a0 a1", "c0 c1", "a2 a1"}, required: true, want: `node "a1" does not have 2 GPUs`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scripted{tt.script}
			jobs := []job{{Duration: 9, Pods: 2, GPUs: 2}, {Submit: 1, Duration: 9, Pods: 2, GPUs: 2}, {Submit: 2, Duration: 9, Pods: 2, GPUs: 2}}
			_, err := play(twoBlocks(t), jobs, 9, s, func(job) bool { return tt.required })
			if tt.want == "" && err != nil || tt.want != "" && !strings.Contains(fmt.Sprint(err), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if tt.want == "" && len(s.script) > 0 {
				t.Errorf("not asked for %q", s.script)
			}
		})
	}
}

// TestSettings compares the data with the figures of their sources.
func TestSettings(t *testing.T) {
	t.Parallel()
	got := map[string][]int{} // nodes, racks, blocks, jobs, pods
	for _, at := range settings {
		f, jobs, err := at.read(7)
		if err != nil {
			t.Fatal(err)
		}
		pods := 0
		for _, j := range jobs {
			pods += j.Pods
		}
		got[at.name] = []int{len(f.nodes), len(f.sizes[rack]), len(f.sizes[block]), len(jobs), pods}
	}
	want := map[string][]int{
		"burst":   {64, 15, 2, 53, 288},
		"gangs":   {64, 15, 2, 1193, 1992},
		"storm":   {64, 15, 2, 1701, 6836},
		"lingjun": {179, 29, 1, 3 * 1193, 3 * 1992},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
