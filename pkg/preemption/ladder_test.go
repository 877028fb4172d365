// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/gang"
)

func TestUnitsWith(t *testing.T) {
	t.Parallel()
	oneOfThree := mustBuild(t, innerOf("", "", 1), leafOf("x", "", 1), leafOf("y", "", 1), leafOf("z", "", 2))
	racks := mustBuild(t, innerOf("", "", 1), innerOf("r", "", 1), innerOf("s", "", 1),
		leafOf("r0", "r", 1), leafOf("s0", "s", 2), leafOf("s1", "s", 2))
	for name, tc := range map[string]struct {
		w    Workload
		pods []int
		want []Unit
	}{
		"single pods above the minimum, the last ones": {
			w: workloadOf(mustBuild(t, leafOf("", "", 2)), "", "", "", ""), pods: []int{0, 1, 2},
			want: []Unit{{SurplusPod, []int{2}, []int{2}}, {SurplusPod, []int{1}, []int{1}}, {WholeGang, []int{0, 1, 2, 3}, []int{0}}},
		},
		"the last sub-groups of those with a pod here": {
			w: workloadOf(oneOfThree, "x", "y", "z", "z"), pods: []int{0, 1, 2},
			want: []Unit{{SurplusSubGroup, []int{1}, []int{1}}, {SurplusSubGroup, []int{2, 3}, []int{2}}, {WholeGang, []int{0, 1, 2, 3}, []int{0}}},
		},
		"any sub-group if only its pods are here": {
			w: workloadOf(oneOfThree, "x", "y", "z", "z"), pods: []int{0},
			want: []Unit{{SurplusSubGroup, []int{0}, []int{0}}},
		},
		"a sub-group whose pods end singly leaves its place to another": {
			w: workloadOf(mustBuild(t, innerOf("", "", 1), leafOf("x", "", 1), leafOf("y", "", 1)), "x", "y", "y"), pods: []int{0, 2},
			want: []Unit{{SurplusPod, []int{2}, []int{2}}, {SurplusSubGroup, []int{0}, []int{0}}},
		},
		"inner sub-groups before those around them": {
			w: workloadOf(racks, "r0", "s0", "s0", "s1", "s1"), pods: []int{1, 3},
			want: []Unit{{SurplusSubGroup, []int{3, 4}, []int{3}}, {SurplusSubGroup, []int{1, 2, 3, 4}, []int{1}}},
		},
		"a gang below its minimum as a whole": {
			w: workloadOf(oneOfThree, "z"), pods: []int{0}, want: []Unit{{WholeGang, []int{0}, []int{0}}},
		},
		"a sub-group of which a pod has completed is kept": {
			w:    Workload{Tree: oneOfThree, Pods: []Pod{{Leaf: "x"}, {Leaf: "z"}}, Completed: gang.Counts{"z": 1}, MinimumProtected: true},
			pods: []int{1}, want: []Unit{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, NewLadder(&tc.w).UnitsWith(tc.pods, nil)); diff != "" {
				t.Errorf("units (-want +got):\n%s", diff)
			}
		})
	}
}

func workloadOf(tree *gang.Tree, leaves ...string) Workload {
	w := Workload{Tree: tree}
	for _, leaf := range leaves {
		w.Pods = append(w.Pods, Pod{Leaf: leaf})
	}
	return w
}

// TestAnyOfTheUnitsMayEnd ends every subset of the units that are returned for random pods of random gangs.
func TestAnyOfTheUnitsMayEnd(t *testing.T) {
	t.Parallel()
	rungs := map[Rung]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := randomWorkload(r)
		var pods []int
		for i := range w.Pods {
			if r.IntN(2) == 0 {
				pods = append(pods, i)
			}
		}
		units := NewLadder(&w).UnitsWith(pods, nil)
		if len(units) > 10 {
			units = units[len(units)-10:]
		}
		for _, u := range units {
			rungs[u.Rung]++
		}
		for subset := range 1 << len(units) {
			ended := make([]bool, len(w.Pods))
			for k, u := range units {
				for _, pod := range u.Pods {
					ended[pod] = ended[pod] || subset>>k&1 == 1
				}
			}
			if why := tornBy(&w, ended); why != "" {
				t.Fatalf("seed %d: of %+v, given pods %v, units %b of %+v end, and %s", seed, w, pods, subset, units, why)
			}
		}
	}
	for rung, name := range map[Rung]string{SurplusPod: "single pods", SurplusSubGroup: "sub-groups", WholeGang: "whole gangs"} {
		if rungs[rung] < 500 {
			t.Errorf("%d units were %s: too few to say anything", rungs[rung], name)
		}
	}
}

// randomWorkload returns a gang whose tree has up to three levels, with any number of pods in each leaf.
func randomWorkload(r *rand.Rand) Workload {
	var groups []gang.Node
	var leaves []string
	var add func(name string, depth int) gang.Node
	add = func(name string, depth int) gang.Node {
		n := gang.Node{Name: name}
		if depth == 0 || name != "" && r.IntN(3) == 0 {
			minimum := int32(1 + r.IntN(3))
			n.MinMember = &minimum
			leaves = append(leaves, name)
			return n
		}
		children := 1 + r.IntN(3)
		minimum := int32(1 + r.IntN(children))
		n.MinSubGroup = &minimum
		for k := range children {
			child := add(name+string(rune('a'+k)), depth-1)
			child.Parent = name
			groups = append(groups, child)
		}
		return n
	}
	root := add("", r.IntN(3))
	slices.SortFunc(groups, func(a, b gang.Node) int { return len(a.Name) - len(b.Name) })
	tree, err := gang.Build(root, groups)
	if err != nil {
		panic(err)
	}
	w := Workload{Tree: tree, MinimumProtected: r.IntN(3) == 0, Completed: gang.Counts{}}
	for _, leaf := range leaves {
		for range r.IntN(5) {
			w.Pods = append(w.Pods, Pod{Leaf: leaf})
		}
		if r.IntN(4) == 0 {
			w.Completed[leaf] = 1
		}
	}
	return w
}

// tornBy returns what is wrong after pods have ended: a gang keeps none of its pods or its minimum, and a sub-group
// that had its minimum has it or is empty. It counts by the definition of a minimum.
func tornBy(w *Workload, ended []bool) string {
	var count func(g *gang.Group, now bool) int
	var has func(g *gang.Group, now bool) bool
	count = func(g *gang.Group, now bool) int {
		n := w.Completed[g.Name()]
		for i, p := range w.Pods {
			if p.Leaf == g.Name() && g.IsLeaf() && !(now && ended[i]) {
				n++
			}
		}
		for _, child := range g.Children() {
			n += count(child, now)
		}
		return n
	}
	has = func(g *gang.Group, now bool) bool {
		if g.IsLeaf() {
			return count(g, now) >= g.Min()
		}
		n := 0
		for _, child := range g.Children() {
			if has(child, now) {
				n++
			}
		}
		return n >= g.Min()
	}
	if !slices.Contains(ended, true) || !w.MinimumProtected && !slices.Contains(ended, false) {
		return "" // nothing has ended, or all of the gang
	}
	if !has(w.Tree.Root(), true) {
		return "the gang is below its minimum"
	}
	for _, g := range w.Tree.Groups() {
		if has(g, false) && !has(g, true) && count(g, true) > 0 {
			return "a part of sub-group " + g.Name() + " is left"
		}
	}
	return ""
}
