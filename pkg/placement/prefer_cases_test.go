// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

func never() bool { return false }

// preferringNow is a budget without limits of time.
func preferringNow() placement.Budget { return placement.Budget{PreferencesExpired: never} }

// podsByRack returns, by leaf, the pods of a plan in each rack.
func podsByRack(w *cluster, plan []placement.Placement) map[string]map[string]int {
	var racks map[string]map[string]int
	for _, pl := range plan {
		if racks == nil {
			racks = map[string]map[string]int{}
		}
		if racks[pl.Leaf] == nil {
			racks[pl.Leaf] = map[string]int{}
		}
		racks[pl.Leaf][w.nodes[slices.IndexFunc(w.nodes, func(n node) bool { return n.name == pl.Node })].rack]++
	}
	return racks
}

type racks = map[string]map[string]int

func TestPreferredLevels(t *testing.T) {
	t.Parallel()
	minimum := func(p placement.Problem, w placement.World) []placement.Placement {
		plan, _ := placement.Minimum(p, w, preferringNow())
		return plan
	}
	unit := func(p placement.Problem, w placement.World) []placement.Placement {
		return placement.Unit(p, w, preferringNow()).Placements
	}
	singles := func(p placement.Problem, w placement.World) []placement.Placement {
		return placement.Singles(p, w, preferringNow())
	}
	pair := []leveledNode{required("", leaf("a", "", 5)), required("", leaf("b", "", 3))}
	surplus := []leveledNode{required("", leaf("a", "", 1)), required("", leaf("b", "", 2))}
	tests := map[string]struct {
		plan      func(placement.Problem, placement.World) []placement.Placement // nil: Minimum
		root      leveledNode
		groups    []leveledNode
		preferred map[string]string
		pods      map[string]int
		bound     map[string][]string
		racks     []int // in blocks of two
		unlabeled int   // nodes without labels
		want      racks
	}{
		"the tightest rack that fits": {
			root: required("", leaf("", "", 3)), preferred: map[string]string{"": "block,rack"}, pods: map[string]int{"": 3}, racks: []int{5, 3, 4},
			want: racks{"": {"r1": 3}},
		},
		"the tightest rack with room for the surplus too": {
			root: required("", leaf("", "", 2)), preferred: map[string]string{"": "rack"}, pods: map[string]int{"": 4}, racks: []int{2, 6, 4},
			want: racks{"": {"r2": 2}},
		},
		"no rack fits: one block": {
			root: required("", leaf("", "", 6)), preferred: map[string]string{"": "block,rack"}, pods: map[string]int{"": 6}, racks: []int{4, 1, 3, 3},
			want: racks{"": {"r2": 3, "r3": 3}},
		},
		"no rack fits, and only racks count: the fewest": {
			root: required("", leaf("", "", 6)), preferred: map[string]string{"": "rack"}, pods: map[string]int{"": 6}, racks: []int{1, 1, 4, 3, 2},
			want: racks{"": {"r2": 4, "r4": 2}},
		},
		"no block fits: the fewest blocks, and the fewest racks in them": {
			root: required("", leaf("", "", 7)), preferred: map[string]string{"": "block,rack"}, pods: map[string]int{"": 7}, racks: []int{1, 1, 2, 1, 3, 2},
			want: racks{"": {"r4": 3, "r5": 2, "r2": 2}},
		},
		"no block fits: the largest racks of two equal blocks": {
			root: required("", leaf("", "", 8)), preferred: map[string]string{"": "block,rack"}, pods: map[string]int{"": 8}, racks: []int{4, 3, 4, 1, 1, 1},
			want: racks{"": {"r0": 4, "r2": 4}},
		},
		"of two blocks that hold all in two racks the tightest": {
			root: required("", leaf("", "", 4)), preferred: map[string]string{"": "block,rack"}, pods: map[string]int{"": 4}, racks: []int{2, 2, 3, 3},
			want: racks{"": {"r0": 2, "r1": 2}},
		},
		"of equal choices the last block is the tightest": {
			root: required("", leaf("", "", 6)), preferred: map[string]string{"": "block,rack"}, pods: map[string]int{"": 6}, racks: []int{5, 0, 5, 0, 2, 0},
			want: racks{"": {"r0": 5, "r4": 1}},
		},
		"the rack of a gang that runs, then its block, then the fewest others": {
			root: required("", leaf("", "", 8)), preferred: map[string]string{"": "block,rack"}, pods: map[string]int{"": 7}, bound: map[string][]string{"": {"r0-0"}},
			racks: []int{2, 3, 5, 1, 3, 3}, want: racks{"": {"r0": 1, "r1": 3, "r2": 3}},
		},
		"nodes without the label are used last": {
			root: required("", leaf("", "", 4)), preferred: map[string]string{"": "block,rack"}, pods: map[string]int{"": 4}, racks: []int{1, 2}, unlabeled: 5,
			want: racks{"": {"r0": 1, "r1": 2, "": 1}},
		},
		"only nodes without the label": {
			root: required("", leaf("", "", 2)), preferred: map[string]string{"": "rack"}, pods: map[string]int{"": 2}, unlabeled: 2,
			want: racks{"": {"": 2}},
		},
		"too few nodes": {root: required("", leaf("", "", 3)), preferred: map[string]string{"": "rack"}, pods: map[string]int{"": 3}, racks: []int{1, 1}},
		"the group that fits in no rack is spread, the other is not": {
			root: required("", gang.Node{}), groups: pair, preferred: map[string]string{"a": "rack", "b": "rack"}, pods: map[string]int{"a": 5, "b": 3}, racks: []int{3, 4, 1},
			want: racks{"a": {"r1": 4, "r2": 1}, "b": {"r0": 3}},
		},
		"both fit, in one way only": {
			root: required("", gang.Node{}), groups: pair, preferred: map[string]string{"a": "rack", "b": "rack"}, pods: map[string]int{"a": 5, "b": 3}, racks: []int{5, 3},
			want: racks{"a": {"r0": 5}, "b": {"r1": 3}},
		},
		"a group with a level leaves the rest to one without": {
			root: required("", gang.Node{}), groups: pair, preferred: map[string]string{"b": "rack"}, pods: map[string]int{"a": 5, "b": 3}, racks: []int{2, 3, 3},
			want: racks{"a": {"r0": 2, "r2": 3}, "b": {"r1": 3}},
		},
		"a group with a level goes first, also if pods of another run": {
			root: required("", gang.Node{}), groups: append(slices.Clone(pair), required("", leaf("c", "", 2))), preferred: map[string]string{"b": "rack", "c": "rack"},
			pods: map[string]int{"a": 5, "b": 3, "c": 1}, bound: map[string][]string{"c": {"r2-0"}}, racks: []int{2, 3, 5},
			want: racks{"a": {"r0": 2, "r2": 3}, "b": {"r1": 3}, "c": {"r2": 1}},
		},
		"a rack each, all in one block": {
			root:   required("", gang.Node{}),
			groups: []leveledNode{required("", leaf("a", "", 2)), required("", leaf("b", "", 2))}, preferred: map[string]string{"": "block", "a": "rack", "b": "rack"},
			pods: map[string]int{"a": 2, "b": 2}, racks: []int{2, 1, 1, 3, 2, 2}, want: racks{"a": {"r4": 2}, "b": {"r5": 2}},
		},
		"a required block, and the fewest racks in it": {
			root: required("block", leaf("", "", 4)), preferred: map[string]string{"": "block,rack"}, pods: map[string]int{"": 4}, racks: []int{3, 0, 2, 2},
			want: racks{"": {"r2": 2, "r3": 2}},
		},
		"a level as wide as the required one": {
			root: required("block,rack", leaf("", "", 2)), preferred: map[string]string{"": "block"}, pods: map[string]int{"": 2}, racks: []int{1, 2},
			want: racks{"": {"r1": 2}},
		},
		"a refill follows its rack": {
			root: required("", leaf("", "", 3)), preferred: map[string]string{"": "rack"}, pods: map[string]int{"": 2}, bound: map[string][]string{"": {"r0-0"}}, racks: []int{4, 2},
			want: racks{"": {"r0": 2}},
		},
		"a refill whose rack is full stays in the block": {
			root: required("", leaf("", "", 3)), preferred: map[string]string{"": "block,rack"}, pods: map[string]int{"": 2}, bound: map[string][]string{"": {"r2-0"}}, racks: []int{2, 3, 2, 1},
			want: racks{"": {"r2": 1, "r3": 1}},
		},
		"a refill of pods in two racks": {
			root: required("", leaf("", "", 6)), preferred: map[string]string{"": "rack"}, pods: map[string]int{"": 3}, bound: map[string][]string{"": {"r0-0", "r1-0", "r1-1"}},
			racks: []int{3, 3, 9}, want: racks{"": {"r0": 2, "r1": 1}},
		},
		"two children are needed, and two have a rack": {
			root: required("", inner("", "", 2)), groups: []leveledNode{required("", leaf("a", "", 3)), required("", leaf("b", "", 2)), required("", leaf("c", "", 2))},
			preferred: map[string]string{"a": "rack", "b": "rack", "c": "rack"}, pods: map[string]int{"a": 3, "b": 2, "c": 2}, racks: []int{2, 2},
			want: racks{"b": {"r0": 2}, "c": {"r1": 2}},
		},
		"a unit of surplus follows its gang": {
			plan: unit, root: required("", inner("", "", 1)), groups: surplus, preferred: map[string]string{"": "rack"}, pods: map[string]int{"b": 2},
			bound: map[string][]string{"a": {"r1-0"}}, racks: []int{2, 4, 2}, want: racks{"b": {"r1": 2}},
		},
		"a unit of surplus that does not fit beside its gang": {
			plan: unit, root: required("", inner("", "", 1)), groups: surplus, preferred: map[string]string{"": "rack", "b": "rack"}, pods: map[string]int{"b": 2},
			bound: map[string][]string{"a": {"r1-0"}}, racks: []int{1, 2, 3}, want: racks{"b": {"r2": 2}},
		},
		"single pods follow their gang, then fill another rack": {
			plan: singles, root: required("", leaf("", "", 1)), preferred: map[string]string{"": "rack"}, pods: map[string]int{"": 5},
			bound: map[string][]string{"": {"r1-0"}}, racks: []int{2, 3, 3}, want: racks{"": {"r1": 2, "r2": 3}},
		},
		"single pods stay in a required block": {
			plan: singles, root: required("block", leaf("", "", 1)), preferred: map[string]string{"": "block,rack"}, pods: map[string]int{"": 5},
			bound: map[string][]string{"": {"r1-0"}}, racks: []int{1, 3, 3}, want: racks{"": {"r1": 2, "r0": 1}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := racksOf(tt.racks...)
			for i := range tt.unlabeled {
				nodes = append(nodes, node{name: fmt.Sprintf("u-%d", i), gpus: 1})
			}
			w := newCluster(t, []class{{gpus: 1}}, nodes...)
			p := placement.Problem{Have: gang.Counts{}, Bound: gang.Counts{}, Nodes: tt.bound, Preferred: tt.preferred, Pods: map[string][]placement.Pod{}}
			p.Tree, p.Required = buildLeveled(t, tt.root, tt.groups...)
			for leaf, nodes := range tt.bound {
				p.Have[leaf], p.Bound[leaf] = len(nodes), len(nodes)
				for _, name := range nodes {
					i := slices.IndexFunc(w.nodes, func(n node) bool { return n.name == name })
					w.nodes[i].gpus, w.nodes[i].free[0] = 0, 0
				}
			}
			for leaf, n := range tt.pods {
				p.Pods[leaf] = pods(leaf, 0, n)
			}
			if tt.plan == nil {
				tt.plan = minimum
			}
			plan := tt.plan(p, w)
			checkLevels(t, p, w, plan)
			if diff := cmp.Diff(tt.want, podsByRack(w, plan)); diff != "" {
				t.Errorf("pods by rack (-want +got):\n%s", diff)
			}
			if len(w.stack) != len(plan) {
				t.Errorf("%d placements in the World, %d in the plan", len(w.stack), len(plan))
			}
		})
	}
}

// TestPreferredLevelsAreIgnoredWithoutTime: a Budget without PreferencesExpired, and one whose time is over.
func TestPreferredLevelsAreIgnoredWithoutTime(t *testing.T) {
	t.Parallel()
	p := placement.Problem{Tree: mustBuild(t, leaf("", "", 3)), Pods: rootPods(3)}
	plan := func(budget placement.Budget) []string {
		w := newCluster(t, []class{{gpus: 1}}, racksOf(2, 3)...)
		got, _ := placement.Minimum(p, w, budget)
		return lines(got)
	}
	want := plan(placement.Budget{})
	p.Preferred = map[string]string{"": "rack"}
	if got := plan(placement.Budget{}); !slices.Equal(got, want) {
		t.Errorf("plan %v, want %v", got, want)
	}
	if got := plan(placement.Budget{PreferencesExpired: func() bool { return true }}); !slices.Equal(got, want) {
		t.Errorf("plan %v, want %v", got, want)
	}
	if got := plan(preferringNow()); slices.Equal(got, want) {
		t.Errorf("plan %v although a rack is preferred", got)
	}
}

// BenchmarkPreferredLevels plans gangs on 5,000 nodes in 312 racks; the World costs next to nothing.
func BenchmarkPreferredLevels(b *testing.B) {
	tests := []struct {
		name      string
		pods      int
		preferred string
		free      int // places of each node
	}{
		{"64 pods, no preference", 64, "", 8},
		{"64 pods in a rack", 64, "rack", 8},
		{"64 pods in the fewest racks", 64, "rack", 1},
		{"4,096 pods in the fewest racks", 4096, "rack", 8},
		{"4,096 pods in the fewest blocks and racks", 4096, "block,rack", 8},
	}
	for _, tt := range tests {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			p := placement.Problem{Tree: mustBuild(b, leaf("", "", int32(tt.pods))), Pods: rootPods(tt.pods)}
			if tt.preferred != "" {
				p.Preferred = map[string]string{"": tt.preferred}
			}
			for b.Loop() {
				w := &racked{racks: 312, nodes: 16, free: tt.free, racksOfBlock: 8, used: make([]int, 312)}
				if _, short := placement.Minimum(p, w, placement.Budget{Expired: never, PreferencesExpired: never}); short != nil {
					b.Fatalf("no plan: %+v", short)
				}
			}
		})
	}
}
