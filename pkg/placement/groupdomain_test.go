// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// fakeArea is a domain of a level: nodes with these values of its labels, in the area within.
type fakeArea struct {
	level, values string
	within        placement.Area
	nodes         []int
}

// division is an area divided into domains of a level, in the order of their first nodes.
type division struct {
	areas []placement.Area
	of    map[int]placement.Area // by node
}

type divided struct {
	level  string
	within placement.Area
}

// valuesOf returns the values of a level's labels on a node, false if it lacks one of them.
func valuesOf(n node, level string) (string, bool) {
	values := ""
	for key := range strings.SplitSeq(level, ",") {
		value := ""
		switch key {
		case "rack":
			value = n.rack
		case "block":
			value = n.block
		case "host":
			value = n.name
		}
		if value == "" {
			return "", false
		}
		if values != "" {
			values += ","
		}
		values += value
	}
	return values, true
}

// nodesIn returns the indexes of the nodes of an area.
func (w *cluster) nodesIn(area placement.Area) []int {
	if area == 0 {
		return w.all
	}
	return w.areas[area-1].nodes
}

func (w *cluster) contains(area placement.Area, node int) bool {
	_, ok := slices.BinarySearch(w.nodesIn(area), node)
	return ok
}

// divide returns the domains of a level inside an area. Labels must not change after the first call.
func (w *cluster) divide(level string, within placement.Area) *division {
	key := divided{level, within}
	if d := w.divisions[key]; d != nil {
		return d
	}
	d, byValues := &division{of: map[int]placement.Area{}}, map[string]placement.Area{}
	for _, i := range w.nodesIn(within) {
		values, ok := valuesOf(w.nodes[i], level)
		if !ok {
			continue
		}
		if byValues[values] == 0 {
			w.areas = append(w.areas, fakeArea{level: level, values: values, within: within})
			byValues[values] = placement.Area(len(w.areas))
			d.areas = append(d.areas, byValues[values])
		}
		a := &w.areas[byValues[values]-1]
		a.nodes = append(a.nodes, i)
		d.of[i] = byValues[values]
	}
	w.divisions[key] = d
	return d
}

func (w *cluster) AreaOf(level string, within placement.Area, name string) (placement.Area, bool) {
	i, ok := w.index[name]
	if !ok {
		return 0, false
	}
	area, ok := w.divide(level, within).of[i]
	return area, ok
}

func (w *cluster) Areas(level string, within placement.Area) []placement.Area {
	return w.divide(level, within).areas
}

func (w *cluster) Rooms(class int, level string, within placement.Area) []int {
	var rooms []int
	for _, area := range w.Areas(level, within) {
		room := 0
		for _, i := range w.nodesIn(area) {
			room += w.slots(class, w.nodes[i])
		}
		rooms = append(rooms, room)
	}
	return rooms
}

func (w *cluster) AreaAround(level string, within, inner placement.Area) (placement.Area, bool) {
	for _, outer := range w.Areas(level, within) {
		if !slices.ContainsFunc(w.nodesIn(inner), func(i int) bool { return !w.contains(outer, i) }) {
			return outer, true
		}
	}
	return 0, false
}

func (w *cluster) HasNode(name string) bool {
	_, ok := w.index[name]
	return ok
}

func (w *cluster) Within(class int, area placement.Area) int {
	if area == 0 {
		return class
	}
	derived := w.classes[class]
	derived.area, derived.base = area, class+1
	w.classes = append(w.classes, derived)
	return len(w.classes) - 1
}

func (w *cluster) Uses(class int) []int64 {
	return []int64{int64(w.classes[class].gpus), int64(w.classes[class].cpus)}
}

func (w *cluster) FreeIn(level string, within placement.Area) [][]int64 {
	var free [][]int64
	for _, area := range w.Areas(level, within) {
		sum := []int64{0, 0}
		for _, i := range w.nodesIn(area) {
			sum[0], sum[1] = sum[0]+int64(w.nodes[i].gpus), sum[1]+int64(w.nodes[i].cpus)
		}
		free = append(free, sum)
	}
	return free
}

// baseOf returns the class that Within was asked for.
func (w *cluster) baseOf(class int) int {
	if base := w.classes[class].base; base > 0 {
		return base - 1
	}
	return class
}

// leveledNode is the specification of a group with a required level, "" for none.
type leveledNode struct {
	gang.Node
	level string
}

func required(level string, n gang.Node) leveledNode { return leveledNode{n, level} }

// buildLeveled returns the tree, and the levels by group.
func buildLeveled(t testing.TB, root leveledNode, groups ...leveledNode) (*gang.Tree, map[string]string) {
	t.Helper()
	levels := map[string]string{}
	root.Name = ""
	nodes := make([]gang.Node, len(groups))
	for i, g := range append([]leveledNode{root}, groups...) {
		if g.level != "" {
			levels[g.Name] = g.level
		}
		if i > 0 {
			nodes[i-1] = g.Node
		}
	}
	return mustBuild(t, root.Node, nodes...), levels
}

// checkLevels checks that the pods below each group with a required level are in one domain.
func checkLevels(t testing.TB, p placement.Problem, w *cluster, plan []placement.Placement) {
	t.Helper()
	domains := map[*gang.Group]string{}
	check := func(leaf, name string, planned bool) {
		if !w.HasNode(name) {
			return
		}
		n := w.nodes[slices.IndexFunc(w.nodes, func(n node) bool { return n.name == name })]
		for g := p.Tree.Group(leaf); g != nil; g = g.Parent() {
			level := p.Required[g.Name()]
			if level == "" {
				continue
			}
			values, ok := valuesOf(n, level)
			if !ok && planned {
				t.Fatalf("a pod of %q is on node %s, which is in no domain of %s", leaf, name, level)
			}
			if other, ok := domains[g]; ok && other != values && planned {
				t.Fatalf("pods of %q are in %s %q and %q: %v", g.Path(), level, other, values, lines(plan))
			}
			domains[g] = values
		}
	}
	for leaf, nodes := range p.Nodes {
		for _, n := range nodes {
			check(leaf, n, false)
		}
	}
	for _, pl := range plan {
		check(pl.Leaf, pl.Node, true)
	}
}

// leveled determines the features of random instances with required levels.
type leveled struct {
	classes int
	nested  bool // required levels may be below each other
	uneven  bool // levels that do not nest, and nodes without labels
	bound   bool // some leaves have pods that run
}

// randomLevels generates a small problem with required levels.
func randomLevels(t testing.TB, r *rand.Rand, v leveled) (placement.Problem, *cluster) {
	t.Helper()
	p, w := randomInstance(t, r, variety{classes: v.classes, tight: true})
	levels := []string{"rack", "block", "block,rack", "host"}
	nodes := make([]node, 3+r.IntN(4))
	for i := range nodes {
		rack := r.IntN(4)
		nodes[i] = node{name: fmt.Sprintf("node-%d", i), gpus: 1 + r.IntN(4), cpus: 6, label: w.nodes[r.IntN(len(w.nodes))].label,
			rack: fmt.Sprintf("r%d", rack), block: fmt.Sprintf("b%d", rack/2)}
		if v.uneven {
			nodes[i].block = []string{"b0", "b1", ""}[r.IntN(3)]
			nodes[i].rack = []string{nodes[i].rack, nodes[i].rack, ""}[r.IntN(3)]
		}
	}
	for i := range w.classes {
		w.classes[i].gpus, w.classes[i].cpus = 1+r.IntN(2), 0
	}
	w = newCluster(t, w.classes, nodes...)
	var groups []gang.Node
	p.Required = map[string]string{}
	root := gang.Node{MinSubGroup: new(int32(p.Tree.Root().Min()))}
	if r.IntN(4) == 0 {
		p.Required[""] = levels[r.IntN(len(levels))]
	}
	for _, g := range p.Tree.Groups() {
		n := gang.Node{Name: g.Name(), Parent: g.Parent().Name()}
		if g.IsLeaf() {
			n.MinMember = new(int32(g.Min()))
		} else {
			n.MinSubGroup = new(int32(g.Min()))
		}
		above := false
		for up := g.Parent(); up != nil; up = up.Parent() {
			above = above || p.Required[up.Name()] != ""
		}
		if (!above || v.nested) && r.IntN(3) > 0 {
			p.Required[g.Name()] = levels[r.IntN(len(levels))]
		}
		groups = append(groups, n)
	}
	p.Tree = mustBuild(t, root, groups...)
	p.Have, p.Bound, p.Nodes = gang.Counts{}, gang.Counts{}, map[string][]string{}
	if v.bound {
		for _, l := range p.Tree.Leaves() {
			if r.IntN(3) == 0 {
				n := &w.nodes[r.IntN(len(w.nodes))]
				if n.gpus > 0 { // the running pod takes its room
					n.gpus, n.free[0] = n.gpus-1, n.free[0]-1
					p.Have[l.Name()], p.Bound[l.Name()], p.Nodes[l.Name()] = 1, 1, []string{n.name}
				}
			}
		}
	}
	return p, w
}

// solvableWithLevels is the exhaustive solver for problems with required levels: every set of leaves, every set of
// their pods and every node for each pod. used is nil, or limits the domains of the preferred levels that are used.
func solvableWithLevels(p placement.Problem, w *cluster, used *usedDomains) bool {
	type wanted struct {
		leaf  *gang.Group
		class int
	}
	leaves := p.Tree.Leaves()
	counts := gang.Counts{}
	for name, n := range p.Have {
		counts[name] = n
	}
	domains := map[*gang.Group]string{}
	// enter fixes the domains of the groups above a leaf by a node; undo takes that back.
	enter := func(leaf *gang.Group, n node) (undo func(), ok bool) {
		var set []*gang.Group
		undo = func() {
			for _, g := range set {
				delete(domains, g)
			}
		}
		for g := leaf; g != nil; g = g.Parent() {
			level := p.Required[g.Name()]
			if level == "" {
				continue
			}
			values, in := valuesOf(n, level)
			other, fixed := domains[g]
			if !in || fixed && other != values {
				undo()
				return nil, false
			}
			if !fixed {
				domains[g] = values
				set = append(set, g)
			}
		}
		return undo, true
	}
	torn := map[*gang.Group]bool{}
	for _, l := range leaves {
		for _, name := range p.Nodes[l.Name()] {
			n := w.nodes[slices.IndexFunc(w.nodes, func(n node) bool { return n.name == name })]
			for g := l; g != nil; g = g.Parent() {
				level := p.Required[g.Name()]
				if level == "" {
					continue
				}
				values, in := valuesOf(n, level)
				if other, fixed := domains[g]; !in || fixed && other != values {
					torn[g] = true
				}
				domains[g] = values
			}
		}
	}
	isTorn := func(g *gang.Group) bool {
		for ; g != nil; g = g.Parent() {
			if torn[g] {
				return true
			}
		}
		return false
	}
	var place func(list []wanted, from int) bool
	place = func(list []wanted, from int) bool {
		if len(list) == 0 {
			return true
		}
		for i := from; i < len(w.nodes); i++ {
			if w.reason(w.nodes[i], list[0].class, "") != "" {
				continue
			}
			undo, ok := enter(list[0].leaf, w.nodes[i])
			if !ok {
				continue
			}
			w.put(list[0].class, i)
			next := 0
			if len(list) > 1 && list[1] == list[0] {
				next = i
			}
			ok = used.add(list[0].leaf, w.nodes[i], 1) && place(list[1:], next)
			used.add(list[0].leaf, w.nodes[i], -1)
			w.Undo(1)
			undo()
			if ok {
				return true
			}
		}
		return false
	}
	var needed []wanted
	var chooseLeaves func(i int) bool
	var choosePods func(next int, leaf *gang.Group, list []placement.Pod, missing int) bool
	chooseLeaves = func(i int) bool {
		if i == len(leaves) {
			return p.Tree.Satisfied(counts) && place(needed, 0)
		}
		if chooseLeaves(i + 1) {
			return true
		}
		l := leaves[i]
		missing := l.Min() - p.Have[l.Name()]
		if missing <= 0 || len(p.Pods[l.Name()]) < missing || isTorn(l) {
			return false
		}
		counts[l.Name()] += missing
		defer func() { counts[l.Name()] -= missing }()
		return choosePods(i+1, l, p.Pods[l.Name()], missing)
	}
	choosePods = func(next int, leaf *gang.Group, list []placement.Pod, missing int) bool {
		if missing == 0 {
			return chooseLeaves(next)
		}
		tried := map[int]bool{}
		for i := 0; i+missing <= len(list); i++ {
			if class := list[i].Class; !tried[class] {
				tried[class] = true
				needed = append(needed, wanted{leaf, class})
				ok := choosePods(next, leaf, list[i+1:], missing-1)
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

// TestLevelsAgainstExhaustiveSearch measures how often a plan with required levels is found if one exists: always for
// equal pods whose levels nest.
func TestLevelsAgainstExhaustiveSearch(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		leveled
		floor float64
	}{
		"like pods":                              {leveled{classes: 1}, 1},
		"like pods, levels that do not nest":     {leveled{classes: 1, uneven: true}, 1},
		"like pods, some run":                    {leveled{classes: 1, bound: true}, 1},
		"like pods, nested levels":               {leveled{classes: 1, nested: true}, 1},
		"three classes":                          {leveled{classes: 3}, 0.995},
		"three classes, nested levels, some run": {leveled{classes: 3, nested: true, bound: true}, 0.995},
		"three classes, levels that do not nest": {leveled{classes: 3, nested: true, uneven: true}, 0.995},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(31, 37))
			feasible, found, certain, infeasible := 0, 0, 0, 0
			for round := range 1500 {
				p, w := randomLevels(t, r, tt.leveled)
				classes := slices.Clone(w.classes)
				want := solvableWithLevels(p, w, nil)
				plan, short := placement.Minimum(p, w, placement.Budget{})
				again := newCluster(t, classes, w.nodes...)
				for i := range again.nodes {
					again.nodes[i].free = []int{again.nodes[i].gpus, again.nodes[i].cpus}
				}
				planAgain, brief := placement.Minimum(p, again, placement.Budget{Unexplained: true})
				if !slices.Equal(plan, planAgain) {
					t.Fatalf("round %d: two plans for the same facts: %v, %v", round, lines(plan), lines(planAgain))
				}
				if short != nil && (brief.Exhausted != short.Exhausted || brief.Attempts != short.Attempts || brief.Cut != short.Cut || len(again.stack) > 0) {
					t.Fatalf("round %d: the search ends with %+v, unexplained with %+v and %d placements", round, short, brief, len(again.stack))
				}
				if short == nil {
					checkPlan(t, p, w, plan)
					checkLevels(t, p, w, plan)
				} else if len(w.stack) != 0 || len(short.Leaves) == 0 {
					t.Fatalf("round %d: a failed plan leaves %d placements, and names %d leaves", round, len(w.stack), len(short.Leaves))
				}
				switch {
				case want && short == nil:
					feasible++
					found++
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
				default:
					infeasible++
					if short.Exhausted {
						certain++
					}
				}
			}
			rate := float64(found) / float64(feasible)
			t.Logf("%s: %d of %d solvable instances solved (%.2f %%); certain that there is no plan for %d of %d", name, found, feasible, 100*rate, certain, infeasible)
			if rate < tt.floor {
				t.Errorf("solved %.2f %% of the solvable instances, want at least %.2f %%", 100*rate, 100*tt.floor)
			}
		})
	}
}
