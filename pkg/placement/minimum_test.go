// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// gpu8 returns n nodes with 8 GPUs each.
func gpu8(n int) []node {
	nodes := make([]node, n)
	for i := range nodes {
		nodes[i] = node{gpus: 8}
	}
	return nodes
}

// prefill is a smaller version of the example of KAI Scheduler's minSubGroups proposal: k of four leaves p0..p3 with
// the given number of pods each.
func prefill(t testing.TB, k, minMember int32) *gang.Tree {
	t.Helper()
	return mustBuild(t, inner("", "", k), leaf("p0", "", minMember), leaf("p1", "", minMember), leaf("p2", "", minMember), leaf("p3", "", minMember))
}

func waiting(lists ...[]placement.Pod) map[string][]placement.Pod {
	byLeaf := map[string][]placement.Pod{}
	for _, list := range lists {
		for _, p := range list {
			name := p.ID[:len(p.ID)-len("-0")]
			if name == "root" {
				name = ""
			}
			byLeaf[name] = append(byLeaf[name], p)
		}
	}
	return byLeaf
}

// lines formats a plan as "leaf pod node".
func lines(plan []placement.Placement) []string {
	var out []string
	for _, p := range plan {
		out = append(out, fmt.Sprintf("%s on %s", p.Pod.ID, p.Node))
	}
	return out
}

func TestMinimumPlans(t *testing.T) {
	t.Parallel()
	gpu := []class{{gpus: 1}, {gpus: 8}, {gpus: 9}}
	tests := map[string]struct {
		tree    func(testing.TB) *gang.Tree
		have    gang.Counts
		bound   gang.Counts
		pods    map[string][]placement.Pod
		classes []class
		nodes   []node
		want    []string
	}{
		"nothing to do": {
			tree:    func(t testing.TB) *gang.Tree { return prefill(t, 1, 2) },
			have:    gang.Counts{"p2": 2},
			pods:    waiting(pods("p0", 0, 2)),
			classes: gpu, nodes: gpu8(1),
		},
		"a PodGroup without sub-groups, more pods than it needs: the first ones": {
			tree:    func(t testing.TB) *gang.Tree { return mustBuild(t, leaf("", "", 2)) },
			pods:    waiting(pods("root", 0, 4)),
			classes: gpu, nodes: gpu8(1),
			want: []string{"root-0 on node-0", "root-1 on node-0"},
		},
		"the smallest set: bound pods count, surplus stays": {
			tree:    func(t testing.TB) *gang.Tree { return prefill(t, 3, 2) },
			have:    gang.Counts{"p0": 2, "p1": 1},
			bound:   gang.Counts{"p0": 2, "p1": 1},
			pods:    waiting(pods("p0", 0, 2), pods("p1", 0, 3), pods("p2", 0, 3), pods("p3", 0, 3)),
			classes: gpu, nodes: gpu8(2),
			want: []string{"p1-0 on node-0", "p2-0 on node-0", "p2-1 on node-0"},
		},
		"two of four satisfied and three needed: one child, not both": {
			tree:    func(t testing.TB) *gang.Tree { return prefill(t, 3, 2) },
			have:    gang.Counts{"p0": 2, "p1": 2},
			pods:    waiting(pods("p2", 0, 2), pods("p3", 0, 2)),
			classes: gpu, nodes: gpu8(2),
			want: []string{"p2-0 on node-0", "p2-1 on node-0"},
		},
		"children with bound pods come before spec order": {
			tree:    func(t testing.TB) *gang.Tree { return prefill(t, 1, 2) },
			have:    gang.Counts{"p2": 1, "p3": 1},
			bound:   gang.Counts{"p3": 1},
			pods:    waiting(pods("p0", 0, 2), pods("p2", 0, 2), pods("p3", 0, 2)),
			classes: gpu, nodes: gpu8(1),
			want: []string{"p3-0 on node-0"},
		},
		"the first child cannot fit but the fourth can": {
			tree:    func(t testing.TB) *gang.Tree { return prefill(t, 3, 1) },
			pods:    waiting(pods("p0", 2, 1), pods("p1", 0, 1), pods("p2", 0, 1), pods("p3", 0, 1)),
			classes: gpu, nodes: gpu8(1),
			want: []string{"p1-0 on node-0", "p2-0 on node-0", "p3-0 on node-0"},
		},
		"a child lacks pods": {
			tree:    func(t testing.TB) *gang.Tree { return prefill(t, 2, 2) },
			pods:    waiting(pods("p0", 0, 2), pods("p1", 0, 1), pods("p3", 0, 2)),
			classes: gpu, nodes: gpu8(1),
			want: []string{"p0-0 on node-0", "p0-1 on node-0", "p3-0 on node-0", "p3-1 on node-0"},
		},
		"a child needs a label that no node has": {
			tree:    func(t testing.TB) *gang.Tree { return prefill(t, 2, 1) },
			pods:    waiting(pods("p0", 1, 1), pods("p1", 0, 1), pods("p2", 0, 1)),
			classes: []class{{gpus: 1}, {gpus: 1, label: "h100"}},
			nodes:   []node{{gpus: 8}, {gpus: 8, label: "a100"}},
			want:    []string{"p1-0 on node-0", "p2-0 on node-0"},
		},
		"two children compete for the last node and a third does not need it": {
			// x and y require the only labelled node. y has no replacement, x has one.
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, gang.Node{}, inner("either", "", 1), leaf("x", "either", 1), leaf("z", "either", 1), leaf("y", "", 1))
			},
			pods:    waiting(pods("x", 1, 1), pods("y", 1, 1), pods("z", 0, 1)),
			classes: []class{{gpus: 8}, {gpus: 8, label: "fast"}},
			nodes:   []node{{gpus: 8, label: "fast"}, {gpus: 8}},
			want:    []string{"y-0 on node-0", "z-0 on node-1"},
		},
		"two children compete for the last node: the choice of leaves deep in the tree is changed": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, gang.Node{},
					inner("a", "", 1), inner("a-left", "a", 2), leaf("al1", "a-left", 1), leaf("al2", "a-left", 1), leaf("ar", "a", 4),
					inner("b", "", 1), leaf("b1", "b", 1))
			},
			pods:    waiting(pods("al1", 0, 1), pods("al2", 1, 1), pods("ar", 0, 4), pods("b1", 1, 1)),
			classes: []class{{gpus: 1}, {gpus: 8}},
			nodes:   []node{{gpus: 8}, {gpus: 4}},
			want:    []string{"b1-0 on node-0", "ar-0 on node-1", "ar-1 on node-1", "ar-2 on node-1", "ar-3 on node-1"},
		},
		"a small pod placed first takes the only node that the big one needs": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, gang.Node{}, leaf("small", "", 1), leaf("big", "", 1))
			},
			pods:    waiting(pods("small", 0, 1), pods("big", 1, 1)),
			classes: []class{{gpus: 1}, {gpus: 8, label: "nvlink"}},
			nodes:   []node{{gpus: 8, label: "nvlink"}, {gpus: 9}},
			want:    []string{"big-0 on node-0", "small-0 on node-1"},
		},
		"a small pod in the same leaf takes the only node that the big one needs": {
			tree:    func(t testing.TB) *gang.Tree { return mustBuild(t, leaf("", "", 2)) },
			pods:    map[string][]placement.Pod{"": {{ID: "small", Class: 0}, {ID: "big", Class: 1}}},
			classes: []class{{gpus: 1}, {gpus: 8, label: "nvlink"}},
			nodes:   []node{{gpus: 8, label: "nvlink"}, {gpus: 9}},
			want:    []string{"big on node-0", "small on node-1"},
		},
		"pods that must share a rack when only the last rack is large enough": {
			tree:    func(t testing.TB) *gang.Tree { return mustBuild(t, leaf("", "", 4)) },
			pods:    waiting(pods("root", 0, 4)),
			classes: []class{{gpus: 4, sameRack: "job"}},
			nodes:   []node{{gpus: 8, rack: "r1"}, {gpus: 4, rack: "r2"}, {gpus: 4, rack: "r2"}, {gpus: 8, rack: "r3"}, {gpus: 8, rack: "r3"}},
			want:    []string{"root-0 on node-3", "root-1 on node-3", "root-2 on node-4", "root-3 on node-4"},
		},
		"leaves that must share a rack together: the first fits everywhere, both only in the last": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, gang.Node{}, leaf("leader", "", 1), leaf("worker", "", 2))
			},
			pods:    waiting(pods("leader", 0, 1), pods("worker", 1, 2)),
			classes: []class{{gpus: 1, sameRack: "job"}, {gpus: 8, sameRack: "job"}},
			nodes:   []node{{gpus: 9, rack: "r1"}, {gpus: 8, rack: "r2"}, {gpus: 8, rack: "r2"}, {gpus: 9, rack: "r3"}, {gpus: 8, rack: "r3"}},
			want:    []string{"worker-0 on node-4", "worker-1 on node-3", "leader-0 on node-3"},
		},
		"two replicas, each in a rack of its own choice, the large one last": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, gang.Node{}, leaf("a", "", 1), leaf("b", "", 2))
			},
			pods:    waiting(pods("a", 0, 1), pods("b", 1, 2)),
			classes: []class{{gpus: 8, sameRack: "a"}, {gpus: 8, sameRack: "b"}},
			nodes:   []node{{gpus: 8, rack: "r1"}, {gpus: 8, rack: "r1"}, {gpus: 8, rack: "r2"}},
			want:    []string{"b-0 on node-0", "b-1 on node-1", "a-0 on node-2"},
		},
		"a child whose rack is too small is replaced by one that needs no rack": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, inner("", "", 1), leaf("a", "", 3), leaf("b", "", 3))
			},
			pods:    waiting(pods("a", 0, 3), pods("b", 1, 3)),
			classes: []class{{gpus: 8, sameRack: "a"}, {gpus: 8}},
			nodes:   []node{{gpus: 8, rack: "r1"}, {gpus: 8, rack: "r1"}, {gpus: 8, rack: "r2"}},
			want:    []string{"b-0 on node-0", "b-1 on node-1", "b-2 on node-2"},
		},
		"a heavy pod that must be near another leaf's pods, declared before them": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, gang.Node{}, leaf("router", "", 1), leaf("worker", "", 1))
			},
			pods:    waiting(pods("router", 0, 1), pods("worker", 1, 1)),
			classes: []class{{gpus: 4, follows: "workers"}, {gpus: 1, sameRack: "workers"}},
			nodes:   []node{{gpus: 3, rack: "r1"}, {gpus: 8, rack: "r2"}},
			want:    []string{"worker-0 on node-1", "router-0 on node-1"},
		},
		"a pod that cannot be placed is skipped inside its leaf": {
			tree:    func(t testing.TB) *gang.Tree { return mustBuild(t, leaf("", "", 2)) },
			pods:    map[string][]placement.Pod{"": {{ID: "huge", Class: 2}, {ID: "one", Class: 0}, {ID: "two", Class: 0}}},
			classes: gpu, nodes: gpu8(1),
			want: []string{"one on node-0", "two on node-0"},
		},
		"the children with more pods come first in spec order but only the smaller ones fit": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, inner("", "", 2), leaf("a", "", 6), leaf("b", "", 5), leaf("c", "", 2))
			},
			pods:    waiting(pods("a", 0, 6), pods("b", 0, 5), pods("c", 0, 2)),
			classes: gpu, nodes: []node{{gpus: 7}},
			want: []string{
				"c-0 on node-0", "c-1 on node-0", "b-0 on node-0", "b-1 on node-0", "b-2 on node-0", "b-3 on node-0", "b-4 on node-0",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := placement.Problem{Tree: tt.tree(t), Have: tt.have, Bound: tt.bound, Pods: tt.pods}
			w := newCluster(t, tt.classes, tt.nodes...)
			plan, short := placement.Minimum(p, w, placement.Budget{})
			if short != nil {
				t.Fatalf("no plan: %+v", short)
			}
			if diff := cmp.Diff(tt.want, lines(plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			checkPlan(t, p, w, plan)
		})
	}
}

// Leader and workers of each replica share a rack. There are as many large enough racks as replicas, all of them last
// in order. Each leaf alone fits in any rack, so a wrong choice of a rack is detected only later.
func TestMinimumFindsARackForEachReplica(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{1, 2, 4, 8} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			t.Parallel()
			var groups []gang.Node
			var classes []class
			var nodes []node
			p := placement.Problem{Pods: map[string][]placement.Pod{}}
			for i := range replicas {
				name, leader, worker := fmt.Sprintf("r%d", i), fmt.Sprintf("r%d-leader", i), fmt.Sprintf("r%d-worker", i)
				groups = append(groups, inner(name, "", 2), leaf(leader, name, 1), leaf(worker, name, 2))
				p.Pods[leader], p.Pods[worker] = pods(leader, 2*i, 1), pods(worker, 2*i+1, 2)
				classes = append(classes, class{gpus: 1, sameRack: name}, class{gpus: 8, sameRack: name})
			}
			for i := range 16 {
				size := 2
				if i >= 16-replicas {
					size = 3
				}
				for range size {
					nodes = append(nodes, node{gpus: 8, rack: fmt.Sprintf("rack%d", i)})
				}
			}
			p.Tree = mustBuild(t, gang.Node{}, groups...)
			w := newCluster(t, classes, nodes...)
			plan, short := placement.Minimum(p, w, placement.Budget{})
			if short != nil {
				t.Fatalf("no plan in %d calls of Place: %+v", w.calls, short)
			}
			t.Logf("%d calls of Place for %d pods", w.calls, len(plan))
			checkPlan(t, p, w, plan)
		})
	}
}

// checkPlan fails the test unless the plan satisfies the tree, would not satisfy it without any one of its pods,
// contains every pod once and in its own leaf, and matches the placements in the World.
func checkPlan(t testing.TB, p placement.Problem, w *cluster, plan []placement.Placement) {
	t.Helper()
	counts, seen := gang.Counts{}, map[string]bool{}
	for name, n := range p.Have {
		counts[name] = n
	}
	for _, pl := range plan {
		known := false
		for _, pod := range p.Pods[pl.Leaf] {
			known = known || pod == pl.Pod
		}
		if !known || seen[pl.Pod.ID] {
			t.Fatalf("%+v is planned twice, or waits elsewhere", pl)
		}
		seen[pl.Pod.ID] = true
		counts[pl.Leaf]++
	}
	if !p.Tree.Satisfied(counts) {
		t.Fatalf("the plan does not satisfy the tree: %v", counts)
	}
	for _, pl := range plan {
		counts[pl.Leaf]--
		if p.Tree.Satisfied(counts) {
			t.Fatalf("the plan does not need %s", pl.Pod.ID)
		}
		counts[pl.Leaf]++
	}
	if len(w.stack) != len(plan) {
		t.Fatalf("the World has %d pods, the plan has %d", len(w.stack), len(plan))
	}
	for i, s := range w.stack {
		if w.nodes[s.node].name != plan[i].Node || w.baseOf(s.class) != plan[i].Pod.Class {
			t.Fatalf("placement %d is %+v in the World, %+v in the plan", i, s, plan[i])
		}
	}
}

func TestMinimumExplains(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		tree    func(testing.TB) *gang.Tree
		have    gang.Counts
		pods    map[string][]placement.Pod
		classes []class
		nodes   []node
		want    placement.Shortfall
	}{
		"3 of 4 x 8 on two nodes: two children fit, each of the others lacks its pods": {
			tree:    func(t testing.TB) *gang.Tree { return prefill(t, 3, 8) },
			have:    gang.Counts{"p2": 3},
			pods:    waiting(pods("p0", 0, 8), pods("p1", 0, 8), pods("p2", 0, 8), pods("p3", 0, 8)),
			classes: []class{{gpus: 1}}, nodes: append(gpu8(2), node{gpus: 2}),
			want: placement.Shortfall{
				Groups: []placement.GroupShortfall{{Group: "", Need: 3, Can: 2}},
				Leaves: []placement.LeafShortfall{
					{Leaf: "p2", Need: 5, Available: 8, Placed: 2, Refusal: &placement.Refusal{Reasons: map[string]int{}}},
					{Leaf: "p3", Need: 8, Available: 8, Placed: 2, Refusal: &placement.Refusal{Reasons: map[string]int{}}},
				},
				Exhausted: true,
			},
		},
		"a leaf with too few pods is not reported as refused by nodes": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, gang.Node{}, inner("decode", "", 2), leaf("dl", "decode", 1), leaf("dw", "decode", 4), leaf("router", "", 1))
			},
			pods:    waiting(pods("dl", 0, 1), pods("dw", 0, 3), pods("router", 1, 1)),
			classes: []class{{gpus: 1}, {gpus: 1, label: "edge"}}, nodes: gpu8(4),
			want: placement.Shortfall{
				Groups: []placement.GroupShortfall{{Group: "", Need: 2, Can: 0}, {Group: "decode", Need: 2, Can: 1}},
				Leaves: []placement.LeafShortfall{
					{Leaf: "dw", Need: 4, Available: 3},
					{Leaf: "router", Need: 1, Available: 1, Class: 1, Refusal: &placement.Refusal{Reasons: map[string]int{"node(s) didn't match Pod's node affinity/selector": 4}}},
				},
				Exhausted: true,
			},
		},
		"a child that was replaced by another is not reported": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, gang.Node{}, inner("either", "", 1), leaf("x", "either", 1), leaf("y", "either", 1), leaf("z", "", 1))
			},
			pods:    waiting(pods("x", 1, 1), pods("y", 0, 1), pods("z", 1, 1)),
			classes: []class{{gpus: 1}, {gpus: 9}}, nodes: gpu8(1),
			want: placement.Shortfall{
				Groups: []placement.GroupShortfall{{Group: "", Need: 2, Can: 1}},
				Leaves: []placement.LeafShortfall{
					{Leaf: "z", Need: 1, Available: 1, Class: 1, Refusal: &placement.Refusal{Reasons: map[string]int{"Insufficient nvidia.com/gpu": 1}}},
				},
				Exhausted: true,
			},
		},
		"pods that must share a rack: the rack that holds the most is reported": {
			tree:    func(t testing.TB) *gang.Tree { return mustBuild(t, leaf("", "", 3)) },
			pods:    waiting(pods("root", 0, 3)),
			classes: []class{{gpus: 8, sameRack: "job"}},
			nodes:   []node{{gpus: 8, rack: "r1"}, {gpus: 8, rack: "r2"}, {gpus: 8, rack: "r2"}},
			want: placement.Shortfall{
				Leaves: []placement.LeafShortfall{
					{Leaf: "", Need: 3, Available: 3, Placed: 2, Refusal: &placement.Refusal{Reasons: map[string]int{"node is not in the domain": 1, "Insufficient nvidia.com/gpu": 2}}},
				},
				Exhausted: true,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := placement.Problem{Tree: tt.tree(t), Have: tt.have, Pods: tt.pods}
			w := newCluster(t, tt.classes, tt.nodes...)
			plan, short := placement.Minimum(p, w, placement.Budget{})
			if short == nil || plan != nil {
				t.Fatalf("plan %v, want none", lines(plan))
			}
			if diff := cmp.Diff(tt.want, *short); diff != "" {
				t.Errorf("shortfall (-want +got):\n%s", diff)
			}
			if len(w.stack) != 0 {
				t.Errorf("the World keeps %d placements of a failed plan", len(w.stack))
			}
		})
	}
}
