// SPDX-License-Identifier: Apache-2.0

package shapes

import (
	"slices"
	"strings"
	"testing"
)

// TestGangsHaveThePodsOfTheirRoles compares the pods and GPUs of the groups, of all and of the minimum, with the sums
// of the file.
func TestGangsHaveThePodsOfTheirRoles(t *testing.T) {
	t.Parallel()
	gangs, err := Gangs()
	if err != nil {
		t.Fatal(err)
	}
	if len(gangs) != 66 {
		t.Errorf("%d gangs, want 66", len(gangs))
	}
	for _, g := range gangs {
		pods, gpus := 0, 0
		for _, group := range g.Groups {
			pods, gpus = pods+group.Pods, gpus+group.Pods*group.GPUs
		}
		if minPods, minGPUs := g.minimum(""); pods != g.pods || gpus != g.gpus || minPods != g.minPods || minGPUs != g.minGPU {
			t.Errorf("%s has %d pods with %d GPUs, at least %d with %d; want %d, %d, %d, %d", g.Name, pods, gpus, minPods, minGPUs, g.pods, g.gpus, g.minPods, g.minGPU)
		}
		names := map[string]bool{}
		for i, group := range g.Groups {
			if names[group.Name] || i > 0 && !names[group.Parent] {
				t.Errorf("%s: group %q is there twice, or before its parent", g.Name, group.Name)
			}
			names[group.Name] = true
		}
	}
}

// minimum returns the pods and GPUs of the first children that a group needs.
func (g Gang) minimum(name string) (pods, gpus int) {
	group := g.Groups[slices.IndexFunc(g.Groups, func(group Group) bool { return group.Name == name })]
	if group.Pods > 0 {
		return group.Min, group.Min * group.GPUs
	}
	children := 0
	for _, child := range g.Groups[1:] {
		if child.Parent == name && children < group.Min {
			children++
			p, n := g.minimum(child.Name)
			pods, gpus = pods+p, gpus+n
		}
	}
	return pods, gpus
}

func TestTopologies(t *testing.T) {
	t.Parallel()
	topologies, err := Topologies()
	if err != nil {
		t.Fatal(err)
	}
	for _, topology := range topologies {
		racks, names := map[Node]bool{}, map[string]bool{}
		for _, n := range topology.Nodes {
			names[n.Name] = true
			racks[Node{Zone: n.Zone, Block: n.Block, Rack: n.Rack}] = true
		}
		want := map[string]int{"uneven-64x8": 15, "irregular-255": 29, "nvl72-36racks": 36, "lingjun-847": 119}[topology.Name]
		if len(racks) != want || len(names) != len(topology.Nodes) {
			t.Errorf("%s has %d racks, want %d; %d names of %d nodes", topology.Name, len(racks), want, len(names), len(topology.Nodes))
		}
	}
}

// TestStreams compares the streams with the figures of their README.
func TestStreams(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][3]int{ // jobs, pods, GPU-hours
		"helios-venus-gangs-24h": {1193, 1992, 21628}, "helios-venus-storm-24h": {1701, 6836, 22467}, "helios-venus-7d": {6571, 16513, 127119},
		"helios-venus-20d": {15211, 27533, 308435}, "itp-c04-7d": {2577, 2749, 104888}, "philly-7d": {14268, 14285, 135295},
		"kalos-large": {205, 12353, 455668}, "knavigator-gang-53": {53, 288, 77}, "gang-64-every-2h": {12, 768, 6144},
	} {
		jobs, err := Stream(name)
		if err != nil {
			t.Fatal(err)
		}
		pods, seconds := 0, 0
		for _, j := range jobs {
			pods, seconds = pods+j.Pods, seconds+j.Pods*j.GPUs*j.Duration
		}
		if got := [3]int{len(jobs), pods, (seconds + 1800) / 3600}; got != want {
			t.Errorf("%s has %d jobs, pods, GPU-hours, want %d", name, got, want)
		}
	}
}

func TestParseStream(t *testing.T) {
	t.Parallel()
	const header = "submit_s,duration_s,pods,gpus_per_pod"
	for name, tt := range map[string]struct {
		text string
		want string // of the error; "": none
	}{
		"empty":                 {text: ""},
		"no jobs":               {text: header + "\n"},
		"a further column":      {text: header + ",status\n0,1,1,1,completed\n"},
		"a column is missing":   {text: "submit_s,duration_s,pods\n0,1,1\n", want: "row 1 has 3 columns"},
		"rows differ in length": {text: header + "\n0,1,1,1\n0,1,1\n", want: "wrong number of fields"},
		"no number":             {text: header + "\n0,1.5,1,1\n", want: `parsing "1.5"`},
		"no pods":               {text: header + "\n0,1,0,1\n", want: "row 1: a job of"},
		"no order":              {text: header + "\n5,1,1,1\n4,1,1,1\n", want: "row 2 comes before row 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseStream([]byte(tt.text))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
