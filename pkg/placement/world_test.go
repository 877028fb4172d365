// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// node is a node of the fake cluster. Only the resources in used are occupied initially.
type node struct {
	name       string
	gpus, cpus int
	label      string
	rack       string
	block      string
	free       []int // filled by newCluster: gpus, cpus
}

// class contains the requirements of the pods of one class.
type class struct {
	gpus, cpus int
	label      string   // node must have it; "": any
	follows    string   // the node's rack must hold a pod of a class with this sameRack; "": no such constraint
	sameRack   string   // pods of all classes with this value share a rack; "": no such constraint
	apart      string   // pods of all classes with this value require separate nodes; "": no such constraint
	spreads    []spread // hard, over the pods of the class
	area       placement.Area
	base       int // 1 + the class that Within was asked for; 0: none
}

// spread is a hard topology spread constraint: no domain may have more than skew pods of the class more than any
// other.
type spread struct {
	over func(n node) string
	skew int
}

func byRack(n node) string { return n.rack }
func byNode(n node) string { return n.name }

// cluster is a fake World: resources, one label and one rack per node, best fit by free GPUs. It fails the test if
// Undo removes more pods than were placed.
type cluster struct {
	t         testing.TB
	nodes     []node
	classes   []class
	stack     []fakePlacement
	calls     int // of Place
	refused   int
	asked     int         // calls of Capacity and Weight
	listed    int         // calls of Domains
	over      func() bool // Place must not be called after it returned true; nil: there is no time limit
	explained int         // calls of Explain

	all       []int          // indexes of nodes
	index     map[string]int // by name of a node
	areas     []fakeArea     // by Area, from 1 on
	divisions map[divided]*division
}

type fakePlacement struct{ class, node int }

func newCluster(t testing.TB, classes []class, nodes ...node) *cluster {
	t.Helper()
	w := &cluster{t: t, classes: classes, index: map[string]int{}, divisions: map[divided]*division{}}
	for i, n := range nodes {
		if n.name == "" {
			n.name = fmt.Sprintf("node-%d", i)
		}
		n.free = []int{n.gpus, n.cpus}
		w.index[n.name] = i
		w.all = append(w.all, i)
		w.nodes = append(w.nodes, n)
	}
	return w
}

// rackOf returns the rack that the group's placed pods share.
func (w *cluster) rackOf(group string) (string, bool) {
	for _, p := range w.stack {
		if w.classes[p.class].sameRack == group {
			return w.nodes[p.node].rack, true
		}
	}
	return "", false
}

// rackOfAll returns the racks to which classes are bound.
func (w *cluster) rackOfAll() []string {
	var racks []string
	for _, c := range w.classes {
		rack := ""
		if c.sameRack != "" {
			rack, _ = w.rackOf(c.sameRack)
		}
		racks = append(racks, rack)
	}
	return racks
}

// skewed reports whether another pod of the class on the node would violate the constraint.
func (w *cluster) skewed(n node, class int, s spread) bool {
	pods := map[string]int{}
	for _, other := range w.nodes {
		if c := w.classes[class]; c.label == "" || other.label == c.label {
			pods[s.over(other)] += 0
		}
	}
	for _, p := range w.stack {
		if p.class == class {
			pods[s.over(w.nodes[p.node])]++
		}
	}
	fewest := len(w.stack)
	for _, k := range pods {
		fewest = min(fewest, k)
	}
	return pods[s.over(n)]+1-fewest > s.skew
}

// reason returns why a node of the area of the class does not take a pod, "" if it does.
func (w *cluster) reason(n node, class int, domain string) string {
	c := w.classes[class]
	switch {
	case domain != "" && n.rack != domain && "="+n.name != domain:
		return "node is not in the domain"
	case c.label != "" && n.label != c.label:
		return "node(s) didn't match Pod's node affinity/selector"
	case n.free[0] < c.gpus:
		return "Insufficient nvidia.com/gpu"
	case n.free[1] < c.cpus:
		return "Insufficient cpu"
	}
	if c.apart != "" && slices.ContainsFunc(w.stack, func(p fakePlacement) bool {
		return w.classes[p.class].apart == c.apart && w.nodes[p.node].name == n.name
	}) {
		return "node(s) didn't match pod anti-affinity rules"
	}
	for _, s := range c.spreads {
		if w.skewed(n, class, s) {
			return "node(s) didn't match pod topology spread constraints"
		}
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
	w.t.Helper()
	if w.over != nil && w.over() {
		w.t.Fatal("Place is called although the time is over")
	}
	w.calls++
	best := -1
	for _, i := range w.nodesIn(w.classes[class].area) {
		if n := w.nodes[i]; w.reason(n, class, domain) == "" && (best < 0 || n.free[0] < w.nodes[best].free[0] || n.free[0] == w.nodes[best].free[0] && n.free[1] < w.nodes[best].free[1]) {
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
	w.explained++
	reasons := map[string]int{}
	for i, n := range w.nodes {
		if !w.contains(w.classes[class].area, i) {
			reasons["node is not in the area"]++
		} else if r := w.reason(n, class, domain); r != "" {
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
	case c.follows != "" || len(c.spreads) > 0:
		return placement.Dependent
	case c.sameRack != "":
		return placement.SharesDomain
	}
	return placement.Independent
}

// Domains returns the racks with room for the needed pods of the classes that share a rack with this class, assuming
// that nothing is placed. Racks with room for all classes that share any rack come first, then the fullest.
func (w *cluster) Domains(class int, need []int) []string {
	w.listed++
	type rack struct {
		name string
		all  bool
		gpus int
	}
	var racks []*rack
	byName := map[string][]int{}
	for i, n := range w.nodes {
		if byName[n.rack] == nil {
			racks = append(racks, &rack{name: n.rack})
		}
		byName[n.rack] = append(byName[n.rack], i)
	}
	racks = slices.DeleteFunc(racks, func(r *rack) bool {
		r.all = w.holds(byName[r.name], need, func(c int) bool { return w.classes[c].sameRack != "" })
		for _, i := range byName[r.name] {
			r.gpus += w.nodes[i].gpus
		}
		return !w.holds(byName[r.name], need, func(c int) bool { return w.classes[c].sameRack == w.classes[class].sameRack })
	})
	slices.SortStableFunc(racks, func(a, b *rack) int {
		if a.all != b.all {
			if a.all {
				return -1
			}
			return 1
		}
		return a.gpus - b.gpus
	})
	var names []string
	for _, r := range racks {
		names = append(names, r.name)
	}
	return names
}

// Open returns false only for pods that must follow others of which none is placed.
func (w *cluster) Open(class int, _ string) bool {
	if w.classes[class].follows == "" {
		return true
	}
	_, ok := w.rackOf(w.classes[class].follows)
	return ok
}

func (w *cluster) Nodes(class, most int) []string {
	var names []string
	for _, i := range w.nodesIn(w.classes[class].area) {
		if n := w.nodes[i]; w.slots(class, n) > 0 {
			names = append(names, "="+n.name)
		}
	}
	if len(names) > most {
		return nil
	}
	return names
}

// holds reports whether the sum of the resources of the nodes suffices for the needed pods of some classes.
func (w *cluster) holds(nodes []int, need []int, of func(class int) bool) bool {
	gpus, cpus := 0, 0
	for _, i := range nodes {
		gpus, cpus = gpus+w.nodes[i].gpus, cpus+w.nodes[i].cpus
	}
	for c, n := range need {
		if !of(c) {
			continue
		}
		gpus, cpus = gpus-n*w.classes[c].gpus, cpus-n*w.classes[c].cpus
		slots := 0
		for _, i := range nodes {
			if w.contains(w.classes[c].area, i) {
				slots += w.slots(c, w.nodes[i])
			}
		}
		if slots < n {
			return false
		}
	}
	return gpus >= 0 && cpus >= 0
}

// slots returns how many pods of the class fit on the node, one of its area, if nothing is placed.
func (w *cluster) slots(class int, n node) int {
	c := w.classes[class]
	if c.label != "" && n.label != c.label {
		return 0
	}
	fit := 1 << 20
	if c.gpus > 0 {
		fit = min(fit, n.gpus/c.gpus)
	}
	if c.cpus > 0 {
		fit = min(fit, n.cpus/c.cpus)
	}
	if c.apart != "" {
		fit = min(fit, 1)
	}
	return fit
}

func (w *cluster) Capacity(class int) placement.Capacity {
	w.asked++
	capacity := placement.Capacity{}
	for _, i := range w.nodesIn(w.classes[class].area) {
		if fit := w.slots(class, w.nodes[i]); fit > 0 {
			capacity.Nodes++
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
