// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// racksOf returns nodes of one GPU: racks with so many nodes, in blocks of two racks.
func racksOf(sizes ...int) []node {
	var nodes []node
	for i, size := range sizes {
		for k := range size {
			nodes = append(nodes, node{name: fmt.Sprintf("r%d-%d", i, k), gpus: 1, rack: fmt.Sprintf("r%d", i), block: fmt.Sprintf("b%d", i/2)})
		}
	}
	return nodes
}

// racksUsed returns the rack of each leaf's pods, "" if they are in several.
func racksUsed(w *cluster, plan []placement.Placement) map[string]string {
	racks := map[string]string{}
	for _, pl := range plan {
		rack := w.nodes[slices.IndexFunc(w.nodes, func(n node) bool { return n.name == pl.Node })].rack
		if other, ok := racks[pl.Leaf]; ok && other != rack {
			rack = ""
		}
		racks[pl.Leaf] = rack
	}
	return racks
}

func TestLevelsChooseDomains(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		root   leveledNode
		groups []leveledNode
		pods   map[string]int
		bound  map[string][]string
		racks  []int
		want   map[string]string // rack by leaf; nil: no plan
	}{
		"the tightest rack that fits": {
			root: required("rack", leaf("", "", 3)), pods: map[string]int{"": 3}, racks: []int{5, 3, 4}, want: map[string]string{"": "r1"},
		},
		"a zone of the same level as the units in it": {
			groups: []leveledNode{required("rack", leaf("u5", "", 5)), required("rack", leaf("u4", "", 4)), required("rack", leaf("u3", "", 3)),
				required("rack", gang.Node{Name: "z"}), required("rack", leaf("z3", "z", 3)), required("rack", leaf("z2", "z", 2))},
			pods: map[string]int{"u5": 5, "u4": 4, "u3": 3, "z3": 3, "z2": 2}, racks: []int{7, 10},
			want: map[string]string{"u5": "r1", "z3": "r1", "z2": "r1", "u4": "r0", "u3": "r0"},
		},
		"the tightest rack with room for the surplus too, if there is one": {
			root: required("rack", leaf("", "", 2)), pods: map[string]int{"": 4}, racks: []int{2, 6, 4}, want: map[string]string{"": "r2"},
		},
		"the largest rack, if none has room for the surplus": {
			root: required("rack", leaf("", "", 2)), pods: map[string]int{"": 9}, racks: []int{2, 6, 4}, want: map[string]string{"": "r1"},
		},
		"enough room, but in two racks": {
			root: required("rack", leaf("", "", 4)), pods: map[string]int{"": 4}, racks: []int{3, 3}, want: nil,
		},
		"among equals the rack in the block with the least room": {
			root: required("block,rack", leaf("", "", 3)), pods: map[string]int{"": 3}, racks: []int{3, 3, 3, 2}, want: map[string]string{"": "r2"},
		},
		"among equals the racks of children in the block with the least room": {
			root: required("", gang.Node{}), groups: []leveledNode{required("block,rack", leaf("a", "", 3)), required("block,rack", leaf("b", "", 3))},
			pods: map[string]int{"a": 3, "b": 3}, racks: []int{3, 4, 4, 4, 3, 3}, want: map[string]string{"a": "r4", "b": "r5"},
		},
		// The first child alone would fit best in the only rack that holds the second one.
		"greedy child (KEP-6012)": {
			root: required("", gang.Node{}), groups: []leveledNode{required("rack", leaf("a", "", 2)), required("rack", leaf("b", "", 3))},
			pods: map[string]int{"a": 2, "b": 3}, racks: []int{3, 4}, want: map[string]string{"a": "r1", "b": "r0"},
		},
		// A child without a level must not use the rooms that a later child needs in one rack.
		"stolen slots (KEP-6012)": {
			root: required("", gang.Node{}), groups: []leveledNode{required("", leaf("a", "", 2)), required("rack", leaf("b", "", 3))},
			pods: map[string]int{"a": 2, "b": 3}, racks: []int{3, 1, 1}, want: map[string]string{"a": "", "b": "r0"},
		},
		"two racks of one block": {
			root: required("block", gang.Node{}), groups: []leveledNode{required("rack", leaf("a", "", 3)), required("rack", leaf("b", "", 3))},
			pods: map[string]int{"a": 3, "b": 3}, racks: []int{3, 2, 3, 3}, want: map[string]string{"a": "r2", "b": "r3"},
		},
		"a refill stays in its rack": {
			root: required("rack", leaf("", "", 3)), pods: map[string]int{"": 2}, bound: map[string][]string{"": {"r0-0"}}, racks: []int{4, 4},
			want: map[string]string{"": "r0"},
		},
		"a refill waits if its rack is full": {
			root: required("rack", leaf("", "", 3)), pods: map[string]int{"": 2}, bound: map[string][]string{"": {"r0-0"}}, racks: []int{2, 4}, want: nil,
		},
		"a pod on a node that is gone does not count for the rack": {
			root: required("rack", leaf("", "", 3)), pods: map[string]int{"": 1}, bound: map[string][]string{"": {"gone", "r1-0"}}, racks: []int{4, 4},
			want: map[string]string{"": "r1"},
		},
		"a refill waits while all pods are on nodes that are gone": {
			root: required("rack", leaf("", "", 3)), pods: map[string]int{"": 2}, bound: map[string][]string{"": {"gone"}}, racks: []int{4, 4}, want: nil,
		},
		"no pod joins those that run in two racks": {
			root: required("rack", leaf("", "", 3)), pods: map[string]int{"": 2}, bound: map[string][]string{"": {"r0-0", "r1-0"}}, racks: []int{4, 4}, want: nil,
		},
		"of three racks two are needed": {
			root:   required("", inner("", "", 2)),
			groups: []leveledNode{required("rack", leaf("a", "", 4)), required("rack", leaf("b", "", 2)), required("rack", leaf("c", "", 3))},
			pods:   map[string]int{"a": 4, "b": 2, "c": 3}, racks: []int{3, 2}, want: map[string]string{"b": "r1", "c": "r0"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCluster(t, []class{{gpus: 1}}, racksOf(tt.racks...)...)
			p := placement.Problem{Have: gang.Counts{}, Bound: gang.Counts{}, Nodes: tt.bound, Pods: map[string][]placement.Pod{}}
			p.Tree, p.Required = buildLeveled(t, tt.root, tt.groups...)
			for leaf, nodes := range tt.bound {
				p.Have[leaf], p.Bound[leaf] = len(nodes), len(nodes)
				for _, name := range nodes {
					if i := slices.IndexFunc(w.nodes, func(n node) bool { return n.name == name }); i >= 0 {
						w.nodes[i].gpus, w.nodes[i].free[0] = 0, 0
					}
				}
			}
			for leaf, n := range tt.pods {
				p.Pods[leaf] = pods(leaf, 0, n)
			}
			plan, short := placement.Minimum(p, w, placement.Budget{})
			if tt.want == nil {
				if short == nil || !short.Exhausted || len(short.Levels) == 0 {
					t.Fatalf("plan %v, shortfall %+v, want a certain refusal that names a level", lines(plan), short)
				}
				return
			}
			if short != nil {
				t.Fatalf("no plan: %+v", short)
			}
			checkPlan(t, p, w, plan)
			checkLevels(t, p, w, plan)
			if diff := cmp.Diff(tt.want, racksUsed(w, plan)); diff != "" {
				t.Errorf("racks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSurplusStaysInItsDomain checks that units and single pods of surplus join the domain of their group.
func TestSurplusStaysInItsDomain(t *testing.T) {
	t.Parallel()
	newProblem := func(bound map[string][]string) (placement.Problem, *cluster) {
		w := newCluster(t, []class{{gpus: 1}}, racksOf(4, 9, 9)...)
		p := placement.Problem{Have: gang.Counts{"a": 2}, Bound: gang.Counts{"a": 2}, Nodes: bound}
		p.Tree, p.Required = buildLeveled(t, leveledNode{}, required("rack", inner("replica", "", 1)), required("", leaf("a", "replica", 2)), required("", leaf("b", "replica", 1)))
		p.Pods = map[string][]placement.Pod{"a": pods("a", 0, 5), "b": pods("b", 0, 1)}
		for _, name := range bound["a"] {
			i := slices.IndexFunc(w.nodes, func(n node) bool { return n.name == name })
			w.nodes[i].gpus, w.nodes[i].free[0] = 0, 0
		}
		return p, w
	}
	t.Run("unit", func(t *testing.T) {
		t.Parallel()
		p, w := newProblem(map[string][]string{"a": {"r0-0", "r0-1"}})
		plan := placement.Unit(p, w, placement.Budget{})
		if diff := cmp.Diff(map[string]string{"b": "r0"}, racksUsed(w, plan.Placements)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("singles", func(t *testing.T) {
		t.Parallel()
		p, w := newProblem(map[string][]string{"a": {"r0-0", "r0-1"}})
		plan := placement.Singles(p, w, placement.Budget{})
		if diff := cmp.Diff(map[string]string{"a": "r0"}, racksUsed(w, plan)); diff != "" || len(plan) != 2 {
			t.Errorf("%d pods: %s", len(plan), diff)
		}
	})
	t.Run("all pods of the group have ended", func(t *testing.T) {
		t.Parallel()
		p, w := newProblem(nil)
		if plan := placement.Singles(p, w, placement.Budget{}); len(plan) == 0 || racksUsed(w, plan)["a"] == "" {
			t.Errorf("%v are not in one rack", lines(plan))
		}
		p, w = newProblem(nil)
		if plan := placement.Unit(p, w, placement.Budget{}); racksUsed(w, plan.Placements)["b"] == "" {
			t.Errorf("%v are not in one rack", lines(plan.Placements))
		}
	})
	t.Run("pods of the group run in two racks", func(t *testing.T) {
		t.Parallel()
		p, w := newProblem(map[string][]string{"a": {"r0-0", "r1-1"}})
		if plan := placement.Singles(p, w, placement.Budget{}); len(plan) > 0 {
			t.Errorf("%v join them", lines(plan))
		}
		if plan := placement.Unit(p, w, placement.Budget{}); len(plan.Placements) > 0 {
			t.Errorf("%v join them", lines(plan.Placements))
		}
	})
}

// TestLevelsExplainNodesThatAreGone: a group waits while all of its pods are on nodes that are gone, and says so.
func TestLevelsExplainNodesThatAreGone(t *testing.T) {
	t.Parallel()
	p := placement.Problem{Tree: mustBuild(t, leaf("", "", 3)), Required: map[string]string{"": "rack"}, Have: gang.Counts{"": 1}, Bound: gang.Counts{"": 1},
		Nodes: map[string][]string{"": {"gone"}}, Pods: map[string][]placement.Pod{"": pods("", 0, 2)}}
	_, short := placement.Minimum(p, newCluster(t, []class{{gpus: 1}}, racksOf(4, 4)...), placement.Budget{})
	if short == nil {
		t.Fatal("the group has moved to another rack")
	}
	if diff := cmp.Diff([]placement.LevelShortfall{{Level: "rack", Gone: true}}, short.Levels); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}

// TestUnitRefusedInsideADomain: a unit that must be in the domain of a group above is not like one that may be
// anywhere.
func TestUnitRefusedInsideADomain(t *testing.T) {
	t.Parallel()
	w := newCluster(t, []class{{gpus: 1}}, racksOf(3, 3)...)
	p := placement.Problem{Have: gang.Counts{"a1": 1, "b1": 1}, Pods: map[string][]placement.Pod{"a2": pods("a2", 0, 4), "b2": pods("b2", 0, 4)}}
	p.Tree, p.Required = buildLeveled(t, leveledNode{}, // the pods of a1 and b1 have succeeded
		required("rack", inner("a", "", 1)), required("", leaf("a1", "a", 1)), required("", leaf("a2", "a", 4)),
		required("", inner("b", "", 1)), required("", leaf("b1", "b", 1)), required("", leaf("b2", "b", 4)))
	plan := placement.Unit(p, w, placement.Budget{})
	if plan.Group != "b2" || len(plan.Placements) != 4 {
		t.Errorf("unit %q with %d pods, want b2 with 4", plan.Group, len(plan.Placements))
	}
}

// TestFewDomainsInsideAWiderOne: a level with fewer domains than another may be the narrower one.
func TestFewDomainsInsideAWiderOne(t *testing.T) {
	t.Parallel()
	nodes := racksOf(3, 2)
	for i := range 8 {
		nodes = append(nodes, node{name: fmt.Sprintf("n%d", i), gpus: 1, block: fmt.Sprintf("b%d", 1+i/4)})
	}
	w := newCluster(t, []class{{gpus: 1}}, nodes...)
	p := placement.Problem{Pods: map[string][]placement.Pod{"l1": pods("l1", 0, 3), "l2": pods("l2", 0, 3)}}
	p.Tree, p.Required = buildLeveled(t, leveledNode{}, required("block", gang.Node{Name: "z1"}), required("rack", leaf("l1", "z1", 3)),
		required("block", gang.Node{Name: "z2"}), required("rack", leaf("l2", "z2", 3)))
	if plan, short := placement.Minimum(p, w, placement.Budget{}); short == nil || !short.Exhausted {
		t.Errorf("plan %v, shortfall %+v, want a certain refusal: only one rack has three nodes", lines(plan), short)
	}
}

// TestLevelsExplainWithTheTightestDomains: the room that is reported for a group is what the domains leave that a plan
// would choose for those before it.
func TestLevelsExplainWithTheTightestDomains(t *testing.T) {
	t.Parallel()
	w := newCluster(t, []class{{gpus: 1}}, racksOf(5, 3, 1, 1)...)
	p := placement.Problem{Pods: map[string][]placement.Pod{"a": pods("a", 0, 3), "b": pods("b", 0, 6)}}
	p.Tree, p.Required = buildLeveled(t, leveledNode{}, required("rack", leaf("a", "", 3)), required("rack", leaf("b", "", 6)))
	_, short := placement.Minimum(p, w, placement.Budget{})
	areas := w.Areas("rack", 0)
	want := []placement.LevelShortfall{{Group: "b", Level: "rack", Pods: 6, Need: 6, Others: 1,
		Domains: []placement.DomainRoom{{Area: areas[0], Pods: 5}, {Area: areas[2], Pods: 1}, {Area: areas[3], Pods: 1}}}}
	if short == nil {
		t.Fatal("a plan where there is none")
	}
	if diff := cmp.Diff(want, short.Levels); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}

func TestLevelsExplain(t *testing.T) {
	t.Parallel()
	w := newCluster(t, []class{{gpus: 1}}, append(racksOf(6, 4, 3, 2, 2), node{name: "bare", gpus: 8})...)
	p := placement.Problem{Tree: mustBuild(t, gang.Node{}, leaf("decode", "", 8), leaf("frontend", "", 1)), Required: map[string]string{"decode": "rack"},
		Pods: map[string][]placement.Pod{"decode": pods("decode", 0, 8), "frontend": pods("frontend", 0, 1)}}
	_, short := placement.Minimum(p, w, placement.Budget{})
	areas := w.Areas("rack", 0)
	want := []placement.LevelShortfall{{Group: "decode", Level: "rack", Pods: 8, Need: 8, Others: 2,
		Domains: []placement.DomainRoom{{Area: areas[0], Pods: 6}, {Area: areas[1], Pods: 4}, {Area: areas[2], Pods: 3}}}}
	if diff := cmp.Diff(want, short.Levels); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
	if !short.Exhausted || short.Attempts > 0 {
		t.Errorf("not certain by the numbers: %+v", short)
	}
}

// plantedLevels generates a gang that is too large for an exhaustive solver and has a plan: racks of different size,
// full of the pods of a solution but for spare GPUs on some nodes. Replicas require a rack, sets of replicas a block.
// With others each rack has one more node, which is full of the pods of a replica that may be on no other nodes than
// these. spareCPUs is likewise for CPUs, which the classes need in other proportions than GPUs; -1: they need none.
func plantedLevels(t testing.TB, r *rand.Rand, classes, spare, unlabeled int, others bool, spareCPUs int) (placement.Problem, *cluster) {
	t.Helper()
	var nodes []node
	racks := 6 + r.IntN(10)
	var free [][]int // by rack: positions of nodes
	for rack := range racks {
		free = append(free, nil)
		for range 2 + r.IntN(5) {
			free[rack] = append(free[rack], len(nodes))
			nodes = append(nodes, node{name: fmt.Sprintf("n%d", len(nodes)), gpus: 0, rack: fmt.Sprintf("r%d", rack), block: fmt.Sprintf("b%d", rack/3)})
		}
	}
	free = append(free, nil) // without labels
	for range unlabeled {
		free[racks] = append(free[racks], len(nodes))
		nodes = append(nodes, node{name: fmt.Sprintf("n%d", len(nodes))})
	}
	kinds := []class{{gpus: 1}, {gpus: 2}, {gpus: 4}}[:classes]
	if spareCPUs >= 0 {
		kinds = []class{{gpus: 1, cpus: 3}, {gpus: 2, cpus: 1}, {gpus: 4, cpus: 6}}[:classes]
	}
	const room, roomOfCPUs = 8, 16
	used, usedCPUs := make([]int, len(nodes)), make([]int, len(nodes))
	p := placement.Problem{Pods: map[string][]placement.Pod{}}
	var groups []leveledNode
	// place puts up to n pods of a class into a rack.
	place := func(name, parent, level string, rack, n, c int) bool {
		placed := 0
		for _, i := range free[rack] {
			for placed < n && used[i]+kinds[c].gpus <= room && usedCPUs[i]+kinds[c].cpus <= roomOfCPUs {
				used[i] += kinds[c].gpus
				usedCPUs[i] += kinds[c].cpus
				placed++
			}
		}
		if placed == 0 {
			return false
		}
		groups = append(groups, required(level, leaf(name, parent, int32(placed))))
		p.Pods[name] = pods(name, c, placed)
		return true
	}
	for block := range (racks + 2) / 3 {
		set := ""
		if r.IntN(2) == 0 {
			set = fmt.Sprintf("set%d", block)
		}
		made := 0
		for rack := 3 * block; rack < min(racks, 3*block+3); rack++ {
			for k := range 1 + r.IntN(3) {
				if place(fmt.Sprintf("replica%d-%d", rack, k), set, "rack", rack, 1+r.IntN(20), r.IntN(classes)) {
					made++
				}
			}
		}
		if set != "" && made > 0 {
			groups = append(groups, required("block", gang.Node{Name: set}))
		}
	}
	for k := range 2 {
		place(fmt.Sprintf("loose%d", k), "", "", r.IntN(racks), 1+r.IntN(6), r.IntN(classes))
	}
	for k := range unlabeled {
		place(fmt.Sprintf("outside%d", k), "", "", racks, 1+r.IntN(6), r.IntN(classes))
	}
	for i := range nodes {
		nodes[i].gpus, nodes[i].cpus = min(room, used[i]+r.IntN(1+spare)), usedCPUs[i]
		if spareCPUs > 0 {
			nodes[i].cpus = min(roomOfCPUs, usedCPUs[i]+r.IntN(1+spareCPUs))
		}
	}
	if others {
		const own, other, size = "own", "other", 6 * room // there is room for as many of these pods as for all smaller ones in a rack
		for i := range nodes {
			nodes[i].label = own
		}
		for i := range kinds {
			kinds[i].label = own
		}
		for rack := range racks {
			name := fmt.Sprintf("other%d", rack)
			nodes = append(nodes, node{name: name, gpus: size, label: other, rack: fmt.Sprintf("r%d", rack), block: fmt.Sprintf("b%d", rack/3)})
			groups = append(groups, required("rack", leaf(name, "", size)))
			p.Pods[name] = pods(name, len(kinds), size)
		}
		kinds = append(kinds, class{gpus: 1, label: other})
	}
	p.Tree, p.Required = buildLeveled(t, leveledNode{}, groups...)
	return p, newCluster(t, kinds, nodes...)
}

// TestLevelsFindPlantedPlans measures how often a plan is found for gangs of some hundred pods that have one, on
// clusters with little or no room to spare.
func TestLevelsFindPlantedPlans(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		classes, spare, unlabeled int
		others                    bool
		spareCPUs                 int
		floor                     float64
	}{
		{1, 0, 0, false, -1, 1}, {1, 1, 0, false, -1, 1}, {2, 0, 0, false, -1, 0.98}, {2, 1, 0, false, -1, 0.98}, {3, 0, 0, false, -1, 0.98}, {3, 1, 0, false, -1, 0.98},
		{2, 0, 3, false, -1, 0.98}, {3, 0, 3, false, -1, 0.98}, {3, 0, 0, true, -1, 0.98},
		{1, 0, 0, false, 0, 1}, {2, 0, 0, false, 0, 0.2}, {2, 2, 0, false, 0, 0.2}, {2, 0, 0, false, 6, 0.2}, {3, 0, 0, false, 0, 0.2}, {3, 2, 0, false, 0, 0.2}, {3, 2, 0, false, 6, 0.2},
	} {
		t.Run(fmt.Sprintf("%d classes, spare %d, %d nodes without labels, nodes of others %t, spare CPUs %d", tt.classes, tt.spare, tt.unlabeled, tt.others, tt.spareCPUs), func(t *testing.T) {
			t.Parallel()
			const rounds = 100
			r := rand.New(rand.NewPCG(67, uint64(71+10*tt.classes+tt.spare)))
			found, calls, planned := 0, 0, 0
			for range rounds {
				p, w := plantedLevels(t, r, tt.classes, tt.spare, tt.unlabeled, tt.others, tt.spareCPUs)
				plan, short := placement.Minimum(p, w, placement.Budget{})
				calls += w.calls
				if short == nil {
					found++
					planned += len(plan)
					checkPlan(t, p, w, plan)
					checkLevels(t, p, w, plan)
				} else if short.Exhausted {
					t.Error("the search claims to be exhausted, but there is a plan")
				}
			}
			t.Logf("%d of %d plans found; %d calls of Place for %d pods planned", found, rounds, calls, planned)
			if rate := float64(found) / rounds; rate < tt.floor {
				t.Errorf("%.1f %% of the plans found, want at least %.1f %%", 100*rate, 100*tt.floor)
			}
		})
	}
}

// A zone whose pods run has but one domain, also if it is planned after others: domains are not interchangeable then.
func TestZoneThatRunsAmongOpenOnes(t *testing.T) {
	t.Parallel()
	w := newCluster(t, []class{{gpus: 1}}, racksOf(10, 8, 5)...)
	p := placement.Problem{Have: gang.Counts{"l2": 2}, Bound: gang.Counts{"l2": 2}, Nodes: map[string][]string{"l2": {"r0-0", "r0-1"}},
		Pods: map[string][]placement.Pod{"l1": pods("l1", 0, 8), "l2": pods("l2", 0, 6), "l3": pods("l3", 0, 5)}}
	var groups []leveledNode
	for _, z := range []struct {
		name string
		min  int32
	}{{"3", 5}, {"1", 8}, {"2", 8}} {
		groups = append(groups, required("rack", gang.Node{Name: "z" + z.name}), required("rack", leaf("l"+z.name, "z"+z.name, z.min)))
	}
	p.Tree, p.Required = buildLeveled(t, leveledNode{}, groups...)
	for i := range 2 {
		w.nodes[i].gpus, w.nodes[i].free[0] = 0, 0
	}
	plan, short := placement.Minimum(p, w, placement.Budget{})
	if short != nil {
		t.Fatalf("no plan: %+v", short)
	}
	checkLevels(t, p, w, plan)
}

// Two choices with like units differ if these are in different zones.
func TestLikeUnitsInDifferentZones(t *testing.T) {
	t.Parallel()
	var nodes []node
	add := func(name, rack, block string, gpus int) {
		nodes = append(nodes, node{name: name, gpus: gpus, rack: rack, block: block})
	}
	for i := range 4 {
		add(fmt.Sprintf("x1-%d", i), "x1", "X", 1)
	}
	for i := range 2 {
		add(fmt.Sprintf("x2-%d", i), "x2", "X", 1)
	}
	add("y", "y1", "Y", 3)
	w := newCluster(t, []class{{gpus: 1}}, nodes...)
	p := placement.Problem{Pods: map[string][]placement.Pod{"zc": pods("zc", 0, 2)}}
	for _, name := range []string{"pa", "za"} {
		p.Pods[name] = pods(name, 0, 3)
	}
	for _, name := range []string{"pb", "zb"} {
		p.Pods[name] = pods(name, 0, 4)
	}
	p.Tree, p.Required = buildLeveled(t, leveledNode{},
		required("", inner("p", "", 1)), required("host", leaf("pa", "p", 3)), required("rack", leaf("pb", "p", 4)),
		required("block", gang.Node{Name: "z"}), required("", leaf("zc", "z", 2)), required("", inner("zg", "z", 1)),
		required("host", leaf("za", "zg", 3)), required("rack", leaf("zb", "zg", 4)))
	plan, short := placement.Minimum(p, w, placement.Budget{})
	if short != nil {
		t.Fatalf("no plan: %+v", short)
	}
	checkLevels(t, p, w, plan)
}

// optimist is a cluster in which a GPU that is in use looks free in the racks with the given sizes.
type optimist struct {
	*cluster
	extra map[int]int // by index of a rack: pods that do not fit there
}

func (w *optimist) Rooms(class int, level string, within placement.Area) []int {
	rooms := w.cluster.Rooms(class, level, within)
	for i, n := range w.extra {
		if level == "rack" && within == 0 {
			rooms[i] += n
		}
	}
	return rooms
}

func (w *optimist) Capacity(class int) placement.Capacity {
	capacity := w.cluster.Capacity(class)
	for _, n := range w.extra {
		capacity.Pods += n
	}
	return capacity
}

// TestLevelsLearnFromAllDomains: racks that have less room than the numbers say are found in one assignment.
func TestLevelsLearnFromAllDomains(t *testing.T) {
	t.Parallel()
	const n = 20
	var sizes []int
	extra := map[int]int{}
	for i := range 3 * n {
		sizes = append(sizes, []int{4, 3, 6}[i/n])
		if i/n == 1 {
			extra[i] = 2
		}
	}
	w := &optimist{newCluster(t, []class{{gpus: 1}}, racksOf(sizes...)...), extra}
	p := placement.Problem{Pods: map[string][]placement.Pod{}}
	var groups []leveledNode
	for i := range 2 * n {
		name := fmt.Sprintf("l%d", i)
		groups = append(groups, required("rack", leaf(name, "", 4)))
		p.Pods[name] = pods(name, 0, 4)
	}
	p.Tree, p.Required = buildLeveled(t, leveledNode{}, groups...)
	plan, short := placement.Minimum(p, w, placement.Budget{})
	if short != nil {
		t.Fatalf("no plan: %+v", short)
	}
	checkPlan(t, p, w.cluster, plan)
	checkLevels(t, p, w.cluster, plan)
	if most := 4 * len(plan); w.calls > most {
		t.Errorf("%d calls of Place for %d pods, want at most %d", w.calls, len(plan), most)
	}
}

// TestMixedPodsKeepTheirOrder: if the racks that a gang of unlike pods is assigned first do not fit, it still completes
// the child that has bound pods (docs/decisions, G5).
func TestMixedPodsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var nodes []node
	for rack, n := range []int{2, 3} { // r0 has room for both groups by number, but not on its nodes
		for i := range n {
			nodes = append(nodes, node{name: fmt.Sprintf("r%d-%d", rack, i), gpus: 4, rack: fmt.Sprintf("r%d", rack)})
		}
	}
	w := newCluster(t, []class{{gpus: 3}, {gpus: 2}}, append(nodes, node{name: "full", rack: "r0"})...)
	p := placement.Problem{
		Have: gang.Counts{"a": 1}, Bound: gang.Counts{"a": 1}, Nodes: map[string][]string{"a": {"full"}},
		Pods: map[string][]placement.Pod{"a": pods("a", 1, 2), "b": pods("b", 1, 1), "h": pods("h", 0, 2)},
	}
	p.Tree, p.Required = buildLeveled(t, leveledNode{}, required("rack", inner("u", "", 1)),
		leveledNode{Node: leaf("a", "u", 3)}, leveledNode{Node: leaf("b", "u", 1)}, required("rack", leaf("h", "", 2)))
	plan, short := placement.Minimum(p, w, placement.Budget{})
	if short != nil {
		t.Fatalf("no plan: %+v", short)
	}
	checkLevels(t, p, w, plan)
	if !slices.ContainsFunc(plan, func(pl placement.Placement) bool { return pl.Leaf == "a" }) {
		t.Errorf("b is started beside a, which has a bound pod: %v", plan)
	}
}

// TestEqualRacksInABlockAreTriedOnce: of the racks of a block only what is left in them matters. Otherwise 735,471 sets
// of racks for the larger replicas would be tried before it is certain that there is no plan.
func TestEqualRacksInABlockAreTriedOnce(t *testing.T) {
	t.Parallel()
	var nodes []node
	for i := range 24 {
		nodes = append(nodes, node{name: fmt.Sprintf("n%d", i), gpus: 10, rack: fmt.Sprintf("r%d", i), block: "b"})
	}
	groups := []leveledNode{required("block", gang.Node{Name: "set"})}
	p := placement.Problem{Pods: map[string][]placement.Pod{}}
	for i := range 16 + 17 { // beside 16 replicas of 6 pods there is room for 16 of 5
		name, n := fmt.Sprintf("l%d", i), 6
		if i >= 16 {
			n = 5
		}
		groups = append(groups, required("rack", leaf(name, "set", int32(n))))
		p.Pods[name] = pods(name, 0, n)
	}
	p.Tree, p.Required = buildLeveled(t, leveledNode{}, groups...)
	c := &clock{left: 1000}
	_, short := placement.Minimum(p, newCluster(t, []class{{gpus: 1}}, nodes...), placement.Budget{Expired: c.expired})
	if short == nil || short.Cut || !short.Exhausted {
		t.Errorf("%+v, want that it is certain that there is no plan", short)
	}
}

// What fills the racks exactly is also found if there is a node outside of all racks, which no unit may use.
func TestRacksAreFilledBesideANodeWithoutALabel(t *testing.T) {
	t.Parallel()
	nodes := []node{{name: "outside", gpus: 20}}
	for i := range 8 {
		nodes = append(nodes, node{name: fmt.Sprintf("n%d", i), gpus: 20, rack: fmt.Sprintf("r%d", i), block: "b"})
	}
	groups := []leveledNode{required("rack", leaf("other", "", 1))}
	p := placement.Problem{Pods: map[string][]placement.Pod{"other": pods("other", 1, 1)}}
	for _, like := range []struct{ n, pods int }{{4, 9}, {3, 8}, {2, 7}, {3, 6}, {6, 5}, {7, 4}, {3, 3}} {
		for i := range like.n {
			name := fmt.Sprintf("l%d-%d", like.pods, i)
			groups = append(groups, required("rack", leaf(name, "", int32(like.pods))))
			p.Pods[name] = pods(name, 0, like.pods)
		}
	}
	p.Tree, p.Required = buildLeveled(t, leveledNode{}, groups...)
	w := newCluster(t, []class{{gpus: 1}, {gpus: 1}}, nodes...)
	plan, short := placement.Minimum(p, w, placement.Budget{})
	if short != nil {
		t.Fatalf("no plan after %d attempts", short.Attempts)
	}
	checkLevels(t, p, w, plan)
}
