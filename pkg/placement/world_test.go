package placement_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// node is a machine of the fake cluster. Nodes are free of pods but for what used says.
type node struct {
	name       string
	gpus, cpus int
	label      string
	rack       string
	free       []int // filled by newCluster: gpus, cpus
}

// class is what pods of one class want.
type class struct {
	gpus, cpus int
	label      string // node must have it; "": any
	follows    string // the node's rack must hold a pod of a class with this sameRack; "": no such constraint
	sameRack   string // pods of all classes with this value share a rack; "": no such constraint
}

// cluster is a fake World: resources, one label and one rack per node, best fit by free GPUs. It fails the test when
// Undo takes back more than was placed.
type cluster struct {
	t       testing.TB
	nodes   []node
	classes []class
	stack   []fakePlacement
	calls   int // of Place
	refused int
	asked   int // calls of Capacity and Weight
}

type fakePlacement struct{ class, node int }

func newCluster(t testing.TB, classes []class, nodes ...node) *cluster {
	t.Helper()
	w := &cluster{t: t, classes: classes}
	for i, n := range nodes {
		if n.name == "" {
			n.name = fmt.Sprintf("node-%d", i)
		}
		n.free = []int{n.gpus, n.cpus}
		w.nodes = append(w.nodes, n)
	}
	return w
}

// rackOf returns the rack that the group's pods share already.
func (w *cluster) rackOf(group string) (string, bool) {
	for _, p := range w.stack {
		if w.classes[p.class].sameRack == group {
			return w.nodes[p.node].rack, true
		}
	}
	return "", false
}

func (w *cluster) reason(n node, c class, domain string) string {
	switch {
	case domain != "" && n.rack != domain:
		return "node is not in the domain"
	case c.label != "" && n.label != c.label:
		return "node(s) didn't match Pod's node affinity/selector"
	case n.free[0] < c.gpus:
		return "Insufficient nvidia.com/gpu"
	case n.free[1] < c.cpus:
		return "Insufficient cpu"
	}
	if c.sameRack != "" {
		if rack, ok := w.rackOf(c.sameRack); ok && rack != n.rack {
			return "node(s) didn't match pod affinity rules"
		}
	}
	if c.follows != "" {
		if rack, ok := w.rackOf(c.follows); !ok || rack != n.rack {
			return "node(s) didn't match pod affinity rules"
		}
	}
	return ""
}

func (w *cluster) Place(class int, domain string) (string, bool) {
	w.calls++
	best := -1
	c := w.classes[class]
	for i, n := range w.nodes {
		if w.reason(n, c, domain) == "" && (best < 0 || n.free[0] < w.nodes[best].free[0] || n.free[0] == w.nodes[best].free[0] && n.free[1] < w.nodes[best].free[1]) {
			best = i
		}
	}
	if best < 0 {
		w.refused++
		return "", false
	}
	w.put(class, best)
	return w.nodes[best].name, true
}

func (w *cluster) Explain(class int, domain string) *placement.Refusal {
	reasons := map[string]int{}
	for _, n := range w.nodes {
		if r := w.reason(n, w.classes[class], domain); r != "" {
			reasons[r]++
		}
	}
	return &placement.Refusal{Reasons: reasons}
}

func (w *cluster) put(class, i int) {
	w.nodes[i].free[0] -= w.classes[class].gpus
	w.nodes[i].free[1] -= w.classes[class].cpus
	w.stack = append(w.stack, fakePlacement{class, i})
}

func (w *cluster) Undo(n int) {
	w.t.Helper()
	if n < 0 || n > len(w.stack) {
		w.t.Fatalf("Undo(%d) with %d placements", n, len(w.stack))
	}
	for ; n > 0; n-- {
		p := w.stack[len(w.stack)-1]
		w.nodes[p.node].free[0] += w.classes[p.class].gpus
		w.nodes[p.node].free[1] += w.classes[p.class].cpus
		w.stack = w.stack[:len(w.stack)-1]
	}
}

func (w *cluster) Kind(class int) placement.Kind {
	switch c := w.classes[class]; {
	case c.follows != "":
		return placement.Dependent
	case c.sameRack != "":
		return placement.SharesDomain
	}
	return placement.Independent
}

func (w *cluster) Domains(class int, _ []int) []string {
	var racks []string
	for _, n := range w.nodes {
		if !slices.Contains(racks, n.rack) {
			racks = append(racks, n.rack)
		}
	}
	return racks
}

func (w *cluster) Capacity(class int) placement.Capacity {
	w.asked++
	capacity := placement.Capacity{}
	c := w.classes[class]
	for _, n := range w.nodes {
		if (c.label == "" || n.label == c.label) && n.gpus >= c.gpus && n.cpus >= c.cpus {
			capacity.Nodes++
			fit := math.MaxInt32
			if c.gpus > 0 {
				fit = min(fit, n.gpus/c.gpus)
			}
			if c.cpus > 0 {
				fit = min(fit, n.cpus/c.cpus)
			}
			capacity.Pods += fit
		}
	}
	return capacity
}

func (w *cluster) Weight(class int) int64 {
	w.asked++
	return int64(1000*w.classes[class].gpus + w.classes[class].cpus)
}

// pods returns n waiting pods of a class for a leaf: leaf-0, leaf-1 ...
func pods(leaf string, class, n int) []placement.Pod {
	var list []placement.Pod
	for i := range n {
		list = append(list, placement.Pod{ID: fmt.Sprintf("%s-%d", leaf, i), Class: class})
	}
	return list
}

func leaf(name, parent string, minMember int32) gang.Node {
	return gang.Node{Name: name, Parent: parent, MinMember: &minMember}
}

func inner(name, parent string, minSubGroup int32) gang.Node {
	return gang.Node{Name: name, Parent: parent, MinSubGroup: &minSubGroup}
}

func mustBuild(t testing.TB, root gang.Node, groups ...gang.Node) *gang.Tree {
	t.Helper()
	tree, err := gang.Build(root, groups)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
