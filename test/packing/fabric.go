// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/test/shapes"
	"github.com/muster-project/muster/test/wrappers"
)

const (
	blockLabel = "topology.example.com/block"
	rackLabel  = "topology.example.com/rack"
	// rackLevel is the level of the racks of a Topology, as the planner has it.
	rackLevel = blockLabel + "," + rackLabel
)

// fabric is a tree of nodes with the same number of GPUs each.
type fabric struct {
	gpus  int // of a node
	nodes []node
	names [levels][]int // numbers that stand for the names of the domains, by level
	sizes [levels][]int // nodes of each domain, by level
}

// node is a node with the indexes of its domains.
type node struct {
	name string
	in   [levels]int
}

// level is an index of fabric.sizes.
type level int

const (
	rack level = iota
	block
	levels
)

// newFabric returns the fabric of a node tree. blocks are the names of the blocks to use; nil: all.
func newFabric(t shapes.Topology, blocks []string) *fabric {
	f := &fabric{gpus: t.GPUs}
	numbers := [levels]map[string]int{rack: {}, block: {}}
	for _, n := range t.Nodes {
		if blocks != nil && !slices.Contains(blocks, n.Block) {
			continue
		}
		var in [levels]int
		for l, name := range [levels]string{rack: n.Zone + "/" + n.Block + "/" + n.Rack, block: n.Zone + "/" + n.Block} {
			k, known := numbers[l][name]
			if !known {
				k = len(f.sizes[l])
				numbers[l][name], f.sizes[l] = k, append(f.sizes[l], 0)
			}
			in[l] = k
			f.sizes[l][k]++
		}
		f.nodes = append(f.nodes, node{in: in})
	}
	return f
}

// shuffled returns the fabric with random names of nodes and domains, since names decide between equal ones.
func (f *fabric) shuffled(random *rand.Rand) *fabric {
	g := *f
	g.nodes = slices.Clone(f.nodes)
	for i, k := range random.Perm(len(g.nodes)) {
		g.nodes[i].name = fmt.Sprintf("n%03d", k)
	}
	for l := range levels {
		g.names[l] = random.Perm(len(f.sizes[l]))
	}
	return &g
}

// objects returns the nodes with the labels of their domains.
func (f *fabric) objects() []*corev1.Node {
	var list []*corev1.Node
	for _, n := range f.nodes {
		list = append(list, wrappers.MakeNode(n.name).GPUs(int64(f.gpus)).
			Label(blockLabel, fmt.Sprintf("b%02d", f.names[block][n.in[block]])).
			Label(rackLabel, fmt.Sprintf("r%03d", f.names[rack][n.in[rack]])).Obj())
	}
	return list
}

// holds returns whether a domain of the level holds the job if it is empty.
func (f *fabric) holds(l level, j job) bool {
	return slices.Max(f.sizes[l])*(f.gpus/j.GPUs) >= j.Pods
}

// occupancy is the free GPUs of each node as far as the placements tell: the judge of all contestants.
type occupancy struct {
	*fabric
	free  []int // by index of the node
	index map[string]int
}

func newOccupancy(f *fabric) *occupancy {
	o := &occupancy{fabric: f, index: map[string]int{}}
	for i, n := range f.nodes {
		o.free, o.index[n.name] = append(o.free, f.gpus), i
	}
	return o
}

// take subtracts GPUs of a node, or adds them if they are less than 0. It fails if the node does not have them.
func (o *occupancy) take(name string, gpus int) error {
	i, known := o.index[name]
	if !known || o.free[i] < gpus || o.free[i]-gpus > o.gpus {
		return fmt.Errorf("node %q does not have %d GPUs", name, gpus)
	}
	o.free[i] -= gpus
	return nil
}

// rooms returns how many pods fit in each domain of the level.
func (o *occupancy) rooms(l level, gpus int) []int {
	rooms := make([]int, len(o.sizes[l]))
	for i, n := range o.nodes {
		rooms[n.in[l]] += o.free[i] / gpus
	}
	return rooms
}

// fewest returns in how many domains of the level the job fits, at least; 0 if it does not fit in all of them.
func (o *occupancy) fewest(l level, j job) int {
	rooms := o.rooms(l, j.GPUs)
	slices.Sort(rooms)
	n, left := 0, j.Pods
	for ; left > 0 && n < len(rooms); n++ {
		left -= rooms[len(rooms)-1-n]
	}
	if left > 0 {
		return 0
	}
	return n
}

// used returns in how many domains of the level the nodes are.
func (o *occupancy) used(l level, names []string) int {
	domains := map[int]bool{}
	for _, name := range names {
		domains[o.nodes[o.index[name]].in[l]] = true
	}
	return len(domains)
}

// largestFree returns the number of GPUs of the largest domain of the level of which no GPU is used.
func (o *occupancy) largestFree(l level) int {
	free := slices.Clone(o.sizes[l])
	for i, n := range o.nodes {
		if o.free[i] < o.gpus {
			free[n.in[l]] = 0
		}
	}
	return slices.Max(free) * o.gpus
}
