// SPDX-License-Identifier: Apache-2.0

package shapes

import (
	"slices"
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
