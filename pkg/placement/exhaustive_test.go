// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// variety determines the features of random instances.
type variety struct {
	classes int
	racks   bool // pods of some classes share a rack
	apart   bool // pods of some classes require nodes of their own
	spreads bool // some classes have one hard spread constraint, some two
	tight   bool // leaves lack no pod, and nodes are small
	dense   bool // one leaf and one class, on nodes with room for one to three pods each
}

// randomInstance generates a small problem: at most 5 leaves, 4 nodes and the given number of classes. Leaves have a
// few pods more or fewer than they need, some of them bound.
func randomInstance(t testing.TB, r *rand.Rand, v variety) (placement.Problem, *cluster) {
	t.Helper()
	if v.dense {
		return denseInstance(t, r, v)
	}
	classes := v.classes
	parents := []string{""}
	var groups []gang.Node
	inners := r.IntN(3)
	for i := range inners {
		name := fmt.Sprintf("inner%d", i)
		groups = append(groups, gang.Node{Name: name, Parent: parents[r.IntN(len(parents))]})
		parents = append(parents, name)
	}
	children := map[string]int{}
	for _, g := range groups {
		children[g.Parent]++
	}
	addLeaf := func(parent string) {
		groups = append(groups, gang.Node{Name: fmt.Sprintf("leaf%d", len(groups)), Parent: parent, MinMember: new(int32(1 + r.IntN(3)))})
		children[parent]++
	}
	for _, parent := range parents {
		if children[parent] == 0 {
			addLeaf(parent)
		}
	}
	for range 2 + r.IntN(3) {
		if len(groups)-inners < 5 {
			addLeaf(parents[r.IntN(len(parents))])
		}
	}
	root := gang.Node{}
	for _, n := range append([]*gang.Node{&root}, pointers(groups[:inners])...) {
		if r.IntN(3) > 0 {
			n.MinSubGroup = new(int32(1 + r.IntN(children[n.Name])))
		}
	}
	p := placement.Problem{Tree: mustBuild(t, root, groups...), Have: gang.Counts{}, Bound: gang.Counts{}, Pods: map[string][]placement.Pod{}}
	for _, l := range p.Tree.Leaves() {
		class, mixed := r.IntN(classes), r.IntN(3) == 0
		if r.IntN(8) == 0 {
			p.Have[l.Name()] = r.IntN(l.Min() + 1)
			p.Bound[l.Name()] = p.Have[l.Name()]
		}
		fewer := 1
		if v.tight {
			fewer = 0
		}
		for i := range max(0, l.Min()-p.Have[l.Name()]+r.IntN(4)-fewer) {
			if mixed {
				class = r.IntN(classes)
			}
			p.Pods[l.Name()] = append(p.Pods[l.Name()], placement.Pod{ID: fmt.Sprintf("%s-%d", l.Name(), i), Class: class})
		}
	}

	labels := []string{"", "", "x", "y"}
	kinds := make([]class, classes)
	for i := range kinds {
		kinds[i] = class{gpus: 1 + r.IntN(4), cpus: r.IntN(4), label: labels[r.IntN(3)]}
		if v.apart && r.IntN(2) == 0 {
			kinds[i].apart = fmt.Sprintf("group%d", r.IntN(2))
		}
		if v.spreads && r.IntN(2) == 0 {
			kinds[i].spreads = []spread{{byRack, 1 + r.IntN(2)}, {byNode, 1 + r.IntN(2)}}[r.IntN(2):]
			if r.IntN(2) == 0 {
				kinds[i].spreads = kinds[i].spreads[:1]
			}
		} else if v.racks && r.IntN(2) == 0 {
			kinds[i].sameRack = fmt.Sprintf("block%d", r.IntN(2))
		}
	}
	nodes := make([]node, 2+r.IntN(3))
	for i := range nodes {
		gpus := 1 + r.IntN(8)
		if v.tight {
			gpus = 1 + gpus/2
		}
		nodes[i] = node{gpus: gpus, cpus: 2 + r.IntN(6), label: labels[r.IntN(4)], rack: fmt.Sprintf("rack%d", r.IntN(3))}
	}
	return p, newCluster(t, kinds, nodes...)
}

// denseInstance generates equal pods with hard spread constraints over racks and nodes.
func denseInstance(t testing.TB, r *rand.Rand, v variety) (placement.Problem, *cluster) {
	t.Helper()
	c := class{gpus: 1, spreads: []spread{{byRack, 1 + r.IntN(2)}, {byNode, 1 + r.IntN(2)}}}
	if !v.spreads {
		c.spreads = nil
	}
	nodes := make([]node, 3+r.IntN(4))
	room := 0
	for i := range nodes {
		nodes[i] = node{gpus: 1 + r.IntN(3), rack: fmt.Sprintf("rack%d", r.IntN(3))}
		room += nodes[i].gpus
	}
	n := 2 + r.IntN(room-1)
	p := placement.Problem{Tree: mustBuild(t, leaf("", "", int32(n))), Pods: map[string][]placement.Pod{"": pods("root", 0, n)}}
	return p, newCluster(t, []class{c}, nodes...)
}

func pointers(nodes []gang.Node) []*gang.Node {
	list := make([]*gang.Node, len(nodes))
	for i := range nodes {
		list[i] = &nodes[i]
	}
	return list
}

// solvable is the exhaustive solver: it tries every set of leaves, every set of their pods and every node for each
// pod. With shrink the nodes keep only the GPUs that the solution uses.
func solvable(p placement.Problem, w *cluster, shrink bool) bool {
	leaves := p.Tree.Leaves()
	var needed []int // classes of pods to be placed
	counts := gang.Counts{}
	for name, n := range p.Have {
		counts[name] = n
	}
	var choosePods func(next int, list []placement.Pod, missing int) bool
	var chooseLeaves func(i int) bool
	chooseLeaves = func(i int) bool {
		if i == len(leaves) {
			classes := slices.Clone(needed)
			slices.Sort(classes)
			return p.Tree.Satisfied(counts) && assignable(w, classes, 0, shrink, map[string]bool{})
		}
		if chooseLeaves(i + 1) {
			return true
		}
		missing := leaves[i].Min() - p.Have[leaves[i].Name()]
		if missing <= 0 || len(p.Pods[leaves[i].Name()]) < missing {
			return false
		}
		counts[leaves[i].Name()] += missing
		defer func() { counts[leaves[i].Name()] -= missing }()
		return choosePods(i+1, p.Pods[leaves[i].Name()], missing)
	}
	choosePods = func(next int, list []placement.Pod, missing int) bool {
		if missing == 0 {
			return chooseLeaves(next)
		}
		tried := map[int]bool{}
		for i := 0; i+missing <= len(list); i++ {
			if class := list[i].Class; !tried[class] {
				tried[class] = true
				needed = append(needed, class)
				ok := choosePods(next, list[i+1:], missing-1)
				needed = needed[:len(needed)-1]
				if ok {
					return true
				}
			}
		}
		return false
	}
	return chooseLeaves(0)
}

// assignable reports whether pods of these classes, sorted, fit together, pods of one class on nodes in ascending
// order from the given one. For pods with spread constraints the order of placement matters, so every order is tried;
// failed contains the states of the cluster from which no solution was found.
func assignable(w *cluster, classes []int, from int, shrink bool, failed map[string]bool) bool {
	if len(classes) == 0 {
		for i := range w.nodes {
			if n := &w.nodes[i]; shrink {
				n.gpus, n.free[0] = n.gpus-n.free[0], 0
			}
		}
		return true
	}
	ordered := len(w.classes[classes[0]].spreads) > 0
	state := ""
	if ordered {
		from = 0
		held := make([]int, len(w.nodes))
		for _, p := range w.stack {
			if p.class == classes[0] {
				held[p.node]++
			}
		}
		for i, n := range w.nodes {
			state += fmt.Sprint(n.free, held[i])
		}
		state += fmt.Sprint(len(classes), w.rackOfAll())
		if failed[state] {
			return false
		}
	}
	for i := from; i < len(w.nodes); i++ {
		if w.reason(w.nodes[i], classes[0], "") != "" {
			continue
		}
		w.put(classes[0], i)
		next := 0
		if len(classes) > 1 && classes[1] == classes[0] {
			next = i
		}
		ok := assignable(w, classes[1:], next, shrink, failed)
		w.Undo(1)
		if ok {
			return true
		}
	}
	if ordered {
		failed[state] = true
	}
	return false
}

// TestMinimumAgainstExhaustiveSearch measures how often a plan is found if one exists, with the default budgets:
// always for equal pods, otherwise at least at the rate of the floor. A plan must never be found if none exists.
func TestMinimumAgainstExhaustiveSearch(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		variety
		rounds int  // 0: 2000
		exact  bool // shrink the nodes to what one solution uses, so that no node has room to spare
		floor  float64
	}{
		"like pods":                                           {variety: variety{classes: 1}, floor: 1},
		"like pods, no GPU to spare":                          {variety: variety{classes: 1}, exact: true, floor: 1},
		"like pods, some on nodes of their own":               {variety: variety{classes: 1, apart: true}, floor: 1},
		"like pods, some that share a rack":                   {variety: variety{classes: 1, racks: true}, floor: 0.995},
		"like pods, some with hard spread constraints":        {variety: variety{classes: 1, spreads: true}, floor: 0.995},
		"like pods, two hard spread constraints, little room": {variety: variety{classes: 1, spreads: true, dense: true}, rounds: 1000, floor: 0.995},
		"three classes":                                       {variety: variety{classes: 3}, floor: 0.995},
		"three classes, no GPU to spare":                      {variety: variety{classes: 3}, exact: true, floor: 0.995},
		"racks":                                               {variety: variety{classes: 3, racks: true}, floor: 0.995},
		"racks, no GPU to spare":                              {variety: variety{classes: 3, racks: true}, exact: true, floor: 0.995},
		"anti-affinity":                                       {variety: variety{classes: 3, apart: true}, floor: 0.995},
		"anti-affinity, no GPU to spare":                      {variety: variety{classes: 3, apart: true}, exact: true, floor: 0.995},
		"hard spread constraints":                             {variety: variety{classes: 3, spreads: true}, floor: 0.995},
		"all together":                                        {variety: variety{classes: 4, racks: true, apart: true, spreads: true}, floor: 0.995},
		"small nodes":                                         {variety: variety{classes: 3, tight: true}, exact: true, floor: 0.995},
		"small nodes, racks":                                  {variety: variety{classes: 3, racks: true, tight: true}, exact: true, floor: 0.995},
		"small nodes, all together":                           {variety: variety{classes: 4, racks: true, apart: true, spreads: true, tight: true}, exact: true, floor: 0.995},
		"all together, no GPU to spare":                       {variety: variety{classes: 4, racks: true, apart: true, spreads: true}, exact: true, floor: 0.995},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(17, 19))
			var feasible, found, searched, certain, calls, planned int
			for round := range cmp.Or(tt.rounds, 2000) {
				p, w := randomInstance(t, r, tt.variety)
				want := solvable(p, w, tt.exact)
				plan, short := placement.Minimum(p, w, placement.Budget{})
				calls += w.calls
				again := newCluster(t, w.classes, w.nodes...)
				if planAgain, _ := placement.Minimum(p, again, placement.Budget{}); !slices.Equal(plan, planAgain) {
					t.Fatalf("round %d: two plans for the same facts: %v, %v", round, lines(plan), lines(planAgain))
				}
				if short != nil {
					if len(w.stack) != 0 || plan != nil {
						t.Fatalf("round %d: a failed plan leaves %d placements", round, len(w.stack))
					}
					if len(short.Leaves) == 0 {
						t.Fatalf("round %d: the shortfall names no leaf: %+v", round, short)
					}
				} else {
					checkPlan(t, p, w, plan)
					planned += len(plan)
				}
				if !want && short != nil && short.Exhausted {
					certain++
				}
				switch {
				case want && short == nil:
					feasible++
					found++
					if w.calls > len(plan) {
						searched++
					}
				case want:
					feasible++
					if short.Exhausted {
						t.Errorf("round %d: the search claims to be exhausted, but there is a plan", round)
					}
					if tt.floor == 1 {
						t.Fatalf("round %d: no plan was found, but there is one: %+v", round, short)
					}
				case short == nil:
					t.Fatalf("round %d: a plan was found where there is none: %v", round, lines(plan))
				}
			}
			rate := float64(found) / float64(feasible)
			t.Logf("%s: %d of %d solvable instances solved (%.2f %%), %d of them by searching; certain that there is no plan for %d; %d calls of Place for %d pods planned",
				name, found, feasible, 100*rate, searched, certain, calls, planned)
			if rate < tt.floor {
				t.Errorf("solved %.2f %% of the solvable instances, want at least %.2f %%", 100*rate, 100*tt.floor)
			}
		})
	}
}

// TestMinimumOfOneClassIsExact checks the guarantee on trees too large for the exhaustive solver: for one class only
// numbers matter, so a plan exists if and only if the cheapest choice of leaves with enough pods does not exceed the
// capacity.
func TestMinimumOfOneClassIsExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(23, 29))
	solved := 0
	for round := range 2000 {
		var groups []gang.Node
		for i := range 1 + r.IntN(6) {
			parent := fmt.Sprintf("inner%d", i)
			n := 1 + r.IntN(6)
			groups = append(groups, inner(parent, "", int32(1+r.IntN(n))))
			for j := range n {
				groups = append(groups, leaf(fmt.Sprintf("leaf%d-%d", i, j), parent, int32(1+r.IntN(5))))
			}
		}
		p := placement.Problem{Have: gang.Counts{}, Pods: map[string][]placement.Pod{}}
		p.Tree = mustBuild(t, gang.Node{}, groups...)
		top := p.Tree.Root().Children()
		p.Tree = mustBuild(t, inner("", "", int32(1+r.IntN(len(top)))), groups...)
		for _, l := range p.Tree.Leaves() {
			if r.IntN(3) == 0 {
				p.Have[l.Name()] = r.IntN(l.Min() + 1)
			}
			p.Pods[l.Name()] = pods(l.Name(), 0, r.IntN(2*l.Min()+2))
		}
		room := 0
		var nodes []node
		for range 1 + r.IntN(8) {
			n := node{gpus: r.IntN(9)}
			room += n.gpus / 2
			nodes = append(nodes, n)
		}
		w := newCluster(t, []class{{gpus: 2}}, nodes...)
		plan, short := placement.Minimum(p, w, placement.Budget{Attempts: 1, Placements: 1})
		cost, possible := cheapest(p, p.Tree.Root())
		if want := possible && cost <= room; want != (short == nil) {
			t.Fatalf("round %d: cheapest choice %d pods (possible %v), room for %d, shortfall %+v", round, cost, possible, room, short)
		}
		if short == nil {
			solved++
			checkPlan(t, p, w, plan)
		}
	}
	if solved < 500 || solved > 1500 {
		t.Errorf("%d of 2000 instances have a plan: the instances are no test", solved)
	}
}

// cheapest returns the fewest pods that satisfy the group, considering only leaves that have enough pods.
func cheapest(p placement.Problem, g *gang.Group) (int, bool) {
	if g.IsLeaf() {
		missing := max(0, g.Min()-p.Have[g.Name()])
		return missing, missing <= len(p.Pods[g.Name()])
	}
	var costs []int
	for _, child := range g.Children() {
		if cost, ok := cheapest(p, child); ok {
			costs = append(costs, cost)
		}
	}
	if len(costs) < g.Min() {
		return 0, false
	}
	slices.Sort(costs)
	sum := 0
	for _, cost := range costs[:g.Min()] {
		sum += cost
	}
	return sum, true
}
