// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

func TestSurplus(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		tree    func(testing.TB) *gang.Tree
		have    gang.Counts
		bound   gang.Counts
		pods    map[string][]placement.Pod
		classes []class
		nodes   []node
		want    []string
	}{
		"nothing before the minimum": {
			tree: func(t testing.TB) *gang.Tree { return prefill(t, 2, 2) },
			have: gang.Counts{"p0": 2, "p1": 1}, pods: waiting(pods("p0", 0, 1), pods("p1", 0, 1), pods("p2", 0, 2)),
			classes: []class{{gpus: 1}}, nodes: gpu8(1),
		},
		"whole sub-groups come before single pods, both in spec order": {
			tree: func(t testing.TB) *gang.Tree { return prefill(t, 1, 2) },
			have: gang.Counts{"p1": 2}, pods: waiting(pods("p0", 0, 3), pods("p1", 0, 2), pods("p3", 0, 2)),
			classes: []class{{gpus: 1}}, nodes: gpu8(1),
			want: []string{
				"p0-0 on node-0", "p0-1 on node-0", "p3-0 on node-0", "p3-1 on node-0",
				"p0-2 on node-0", "p1-0 on node-0", "p1-1 on node-0",
			},
		},
		"a unit that cannot fit does not block the next": {
			tree: func(t testing.TB) *gang.Tree { return prefill(t, 1, 2) },
			have: gang.Counts{"p0": 2}, pods: waiting(pods("p1", 1, 2), pods("p2", 0, 2)),
			classes: []class{{gpus: 1}, {gpus: 9}}, nodes: gpu8(1),
			want: []string{"p2-0 on node-0", "p2-1 on node-0"},
		},
		"an unsatisfied optional child gets all its minimum or nothing": {
			tree: func(t testing.TB) *gang.Tree { return prefill(t, 1, 3) },
			have: gang.Counts{"p0": 3}, pods: waiting(pods("p1", 0, 3), pods("p2", 0, 2)),
			classes: []class{{gpus: 1}}, nodes: []node{{gpus: 2}},
		},
		"a unit is recursive: its own minimum, then its own surplus": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, inner("", "", 1), leaf("z", "", 1),
					inner("unit", "", 1), leaf("u1", "unit", 2), leaf("u2", "unit", 1), leaf("u3", "unit", 1))
			},
			have: gang.Counts{"z": 1}, pods: waiting(pods("z", 0, 1), pods("u1", 1, 2), pods("u2", 0, 2), pods("u3", 0, 1)),
			classes: []class{{gpus: 1}, {gpus: 9}}, nodes: gpu8(1),
			want: []string{"u2-0 on node-0", "u3-0 on node-0", "z-0 on node-0", "u2-1 on node-0"},
		},
		"a satisfied leaf in an unsatisfied optional group gets no single pods": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, inner("", "", 1), leaf("z", "", 1),
					inner("unit", "", 2), leaf("u1", "unit", 1), leaf("u2", "unit", 1))
			},
			have: gang.Counts{"z": 1, "u1": 1}, pods: waiting(pods("u1", 0, 2)),
			classes: []class{{gpus: 1}}, nodes: gpu8(1),
		},
		"an optional child that has pods already is completed first": {
			tree: func(t testing.TB) *gang.Tree { return prefill(t, 1, 2) },
			have: gang.Counts{"p0": 2, "p3": 1}, bound: gang.Counts{"p0": 2, "p3": 1}, pods: waiting(pods("p1", 0, 2), pods("p3", 0, 1)),
			classes: []class{{gpus: 1}}, nodes: []node{{gpus: 2}},
			want: []string{"p3-0 on node-0"},
		},
		"a single pod that cannot fit does not block the next": {
			tree: func(t testing.TB) *gang.Tree { return mustBuild(t, leaf("", "", 1)) },
			have: gang.Counts{"": 1}, pods: map[string][]placement.Pod{"": {{ID: "huge", Class: 1}, {ID: "one", Class: 0}}},
			classes: []class{{gpus: 1}, {gpus: 9}}, nodes: gpu8(1),
			want: []string{"one on node-0"},
		},
		"a unit whose small pod would take the big one's node": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, inner("", "", 1), leaf("z", "", 1), inner("unit", "", 2), leaf("u1", "unit", 1), leaf("u2", "unit", 1))
			},
			have: gang.Counts{"z": 1}, pods: waiting(pods("u1", 0, 1), pods("u2", 1, 1)),
			classes: []class{{gpus: 1}, {gpus: 8, label: "nvlink"}}, nodes: []node{{gpus: 8, label: "nvlink"}, {gpus: 9}},
			want: []string{"u2-0 on node-0", "u1-0 on node-1"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := placement.Problem{Tree: tt.tree(t), Have: tt.have, Bound: tt.bound, Pods: tt.pods}
			w := newCluster(t, tt.classes, tt.nodes...)
			plan := surplusOf(p, w)
			if diff := cmp.Diff(tt.want, lines(plan)); diff != "" {
				t.Errorf("surplus (-want +got):\n%s", diff)
			}
			if len(w.stack) != len(plan) {
				t.Errorf("the World has %d pods, the plan has %d", len(w.stack), len(plan))
			}
		})
	}
}

// A class that was refused is not tried again: 500 identical pods, or units, that cannot fit cost one question.
func TestSurplusAsksOncePerRefusedClass(t *testing.T) {
	t.Parallel()
	t.Run("single pods", func(t *testing.T) {
		t.Parallel()
		w := newCluster(t, []class{{gpus: 1}}, node{gpus: 3})
		p := placement.Problem{Tree: mustBuild(t, leaf("", "", 1)), Have: gang.Counts{"": 1}, Pods: waiting(pods("root", 0, 500))}
		plan := surplusOf(p, w)
		if len(plan) != 3 || w.calls != 4 {
			t.Errorf("%d pods placed with %d calls, want 3 with 4", len(plan), w.calls)
		}
	})
	t.Run("units", func(t *testing.T) {
		t.Parallel()
		groups := []gang.Node{leaf("first", "", 1)}
		waiting := map[string][]placement.Pod{}
		for _, p := range pods("unit", 0, 500) {
			groups = append(groups, leaf(p.ID, "", 2))
			waiting[p.ID] = pods(p.ID, 0, 2)
		}
		w := newCluster(t, []class{{gpus: 1}}, node{gpus: 3})
		p := placement.Problem{Tree: mustBuild(t, inner("", "", 1), groups...), Have: gang.Counts{"first": 1}, Pods: waiting}
		plan := surplusOf(p, w)
		if len(plan) != 2 || w.calls > 2+8 {
			t.Errorf("%d pods placed with %d calls, want 2 with at most 10", len(plan), w.calls)
		}
	})
}

// For any surplus, the tree stays satisfied, no leaf outside a satisfied group gains pods that it cannot use, and no
// unit is placed in part.
func TestSurplusOfRandomTrees(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 13))
	for round := range 3000 {
		p, w := randomInstance(t, r, variety{classes: 3})
		plan, _ := placement.Minimum(p, w, placement.Budget{})
		if len(plan) == 0 {
			continue
		}
		p.Have = after(p, plan)
		surplus := surplusOf(withoutPlanned(p, plan), w)
		whole := after(p, surplus)
		for _, s := range surplus {
			for g := p.Tree.Group(s.Leaf); g != nil; g = g.Parent() {
				if !g.Satisfied(whole) {
					t.Fatalf("round %d: %s is placed, but %s is not satisfied", round, s.Pod.ID, g.Path())
				}
			}
		}
		if len(w.stack) != len(plan)+len(surplus) {
			t.Fatalf("round %d: the World has %d pods, want %d + %d", round, len(w.stack), len(plan), len(surplus))
		}
	}
}

// surplusOf plans all pods of a satisfied tree beyond its minimum, as the scheduler does over many cycles: units as
// long as one fits, then single pods.
func surplusOf(p placement.Problem, w placement.World) []placement.Placement {
	var plan []placement.Placement
	for {
		unit := placement.Unit(p, w, placement.Budget{Attempts: 8, Placements: 512})
		if len(unit.Placements) == 0 {
			return append(plan, placement.Singles(p, w, placement.Budget{})...)
		}
		plan = append(plan, unit.Placements...)
		p.Have = after(p, unit.Placements)
		p = withoutPlanned(p, unit.Placements)
	}
}

// after returns the pods of each leaf once the plan is bound.
func after(p placement.Problem, plan []placement.Placement) gang.Counts {
	counts := gang.Counts{}
	for name, n := range p.Have {
		counts[name] = n
	}
	for _, pl := range plan {
		counts[pl.Leaf]++
	}
	return counts
}

// withoutPlanned returns the problem without the pods of a plan.
func withoutPlanned(p placement.Problem, plan []placement.Placement) placement.Problem {
	planned := map[string]bool{}
	for _, pl := range plan {
		planned[pl.Pod.ID] = true
	}
	rest := map[string][]placement.Pod{}
	for name, list := range p.Pods {
		for _, pod := range list {
			if !planned[pod.ID] {
				rest[name] = append(rest[name], pod)
			}
		}
	}
	p.Pods = rest
	return p
}
