// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// serviceOf returns a gang of so many sub-groups of one pod, of which one is above the minimum.
func serviceOf(t testing.TB, name string, subGroups int) Workload {
	t.Helper()
	groups := []gang.Node{innerOf("", "", int32(subGroups-1))}
	for k := range subGroups {
		groups = append(groups, leafOf(fmt.Sprint(k), "", 1))
	}
	return Workload{Name: name, Tree: mustBuild(t, groups[0], groups[1:]...)}
}

// fillService adds a service with a pod in each sub-group, eight on each node.
func (i *instance) fillService(t testing.TB, name string, subGroups int) {
	t.Helper()
	var leaves []string
	var nodes []int
	for k := range subGroups {
		if k%8 == 0 {
			i.nodes = append(i.nodes, fakeNode{gpus: 8})
		}
		leaves, nodes = append(leaves, fmt.Sprint(k)), append(nodes, len(i.nodes)-1)
	}
	i.fill(serviceOf(t, name, subGroups), leaves, nodes...)
}

// TestOneOfManySubGroups takes the one sub-group that an elastic service has above its minimum, or the service as a
// whole. How many sub-groups there are hardly matters.
func TestOneOfManySubGroups(t *testing.T) {
	t.Parallel()
	for _, subGroups := range []int{16, 128, 480, 1000} {
		for pods, want := range map[int]int{1: 1, 2: subGroups} {
			i := &instance{classes: []fakeClass{{gpus: 1}}}
			i.fillService(t, "service", subGroups)
			i.in.Problem = problemOf(t, pods)
			w := i.world(t)
			d, result := FindVictims(i.in, w, Budget{})
			w.check(d, i.in.Workloads)
			if d == nil || d.Cost.Pods != want {
				t.Errorf("%d sub-groups, %d pods: decision %+v, result %d, want %d victims", subGroups, pods, d, result, want)
			}
			if w.steps > 500*subGroups {
				t.Errorf("%d sub-groups, %d pods: %d steps", subGroups, pods, w.steps)
			}
		}
	}
}

// TestServiceBesideFlatGangs: gangs that are larger than what is needed do not delay the choice of a service's surplus.
func TestServiceBesideFlatGangs(t *testing.T) {
	t.Parallel()
	i := &instance{classes: []fakeClass{{gpus: 1}}}
	i.fillService(t, "service", 128)
	for k := range 20 {
		i.nodes = append(i.nodes, fakeNode{gpus: 4})
		n := len(i.nodes) - 1
		i.fill(Workload{Name: fmt.Sprint(k), Tree: mustBuild(t, leafOf("", "", 4))}, []string{"", "", "", ""}, n, n, n, n)
	}
	i.in.Problem = problemOf(t, 3)
	w := i.world(t)
	d, _ := FindVictims(i.in, w, Budget{})
	w.check(d, i.in.Workloads)
	if d == nil || d.Cost.Ended != 1 || d.Cost.Pods != 4 {
		t.Errorf("decision %+v, want one gang of four", d)
	}
}

// TestCheaperRack: of two racks the one is taken in which fewer pods end, whatever their names and ages.
func TestCheaperRack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		i := &instance{classes: []fakeClass{{gpus: 1}}, nodes: []fakeNode{{gpus: 2, rack: "a"}, {gpus: 2, rack: "a"}, {gpus: 2, rack: "b"}, {gpus: 2, rack: "b"}}}
		for _, n := range []int{0, 0, 1, 1, 2, 3} {
			i.fill(Workload{Name: fmt.Sprint(r.IntN(100))}, []string{""}, n)
			i.in.Workloads[len(i.in.Workloads)-1].Pods[0].Running = r.Int64N(1000)
		}
		i.in.Problem = problemOf(t, 4)
		i.in.Problem.Required = map[string]string{"": "rack"}
		w := i.world(t)
		d, _ := FindVictims(i.in, w, Budget{})
		w.check(d, i.in.Workloads)
		if d == nil || d.Cost.Pods != 2 {
			t.Errorf("seed %d: decision %+v, want the two pods in rack b", seed, d)
		}
	}
}

// TestWhoIsNeededStays: the preemptor has to be near a pod that could be a victim, or is spread over racks that are
// empty without the victims.
func TestWhoIsNeededStays(t *testing.T) {
	t.Parallel()
	near := &instance{classes: []fakeClass{{gpus: 1, near: true}}, nodes: []fakeNode{{gpus: 2, rack: "a"}, {gpus: 2, rack: "b"}}}
	for _, n := range []int{0, 0, 1, 1} {
		near.fill(Workload{Name: fmt.Sprint(len(near.pods))}, []string{""}, n)
	}
	near.pods[2].like = true
	near.in.Problem = problemOf(t, 1)
	spread := &instance{classes: []fakeClass{{gpus: 2, spread: true}}, nodes: []fakeNode{{gpus: 4, rack: "a"}, {gpus: 1, rack: "b"}, {gpus: 1, rack: "b"}}}
	for _, n := range []int{0, 0, 0, 0, 1, 2} {
		spread.fill(Workload{Name: fmt.Sprint(len(spread.pods))}, []string{""}, n)
	}
	spread.pods[4].like, spread.pods[5].like = true, true
	spread.in.Problem = problemOf(t, 2)
	for name, tc := range map[string]struct {
		i    *instance
		want []int
	}{"affinity": {near, []int{3}}, "spread": {spread, []int{0, 1, 2, 3}}} {
		w := tc.i.world(t)
		d, result := FindVictims(tc.i.in, w, Budget{})
		w.check(d, tc.i.in.Workloads)
		if d == nil || !slices.Equal(w.freedPods(), tc.want) {
			t.Errorf("%s: decision %+v, result %d, want victims %v", name, d, result, tc.want)
		}
	}
}

// TestNotFoundIsNoProof: the answer that nothing helps is given only if it is certain.
func TestNotFoundIsNoProof(t *testing.T) {
	t.Parallel()
	i := &instance{classes: []fakeClass{{gpus: 1, near: true}}, nodes: []fakeNode{{gpus: 1, rack: "a"}}}
	i.fill(Workload{Name: "service"}, []string{""}, 0)
	i.pods[0].like = true
	i.in.Problem = problemOf(t, 1)
	if d, result := FindVictims(i.in, i.world(t), Budget{}); d != nil || result != NotFound {
		t.Errorf("decision %+v, result %d, want %d", d, result, NotFound)
	}
	i.in.Problem = problemOf(t, 2)
	if d, result := FindVictims(i.in, i.world(t), Budget{}); d != nil || result != Hopeless {
		t.Errorf("decision %+v, result %d for more pods than GPUs, want %d", d, result, Hopeless)
	}
}

// TestGracePeriods: of equal victims the one that ends sooner is chosen, and nobody who takes longer than is allowed.
// Numbers that make no sense do no harm.
func TestGracePeriods(t *testing.T) {
	t.Parallel()
	i := &instance{classes: []fakeClass{{gpus: 1}}, nodes: []fakeNode{{gpus: 3}}}
	for _, name := range []string{"a", "b", "c"} {
		i.fill(Workload{Name: name}, []string{""}, 0)
	}
	victim := func(pods int) []int {
		i.in.Problem = problemOf(t, pods)
		w := i.world(t)
		d, _ := FindVictims(i.in, w, Budget{})
		w.check(d, i.in.Workloads)
		return w.freedPods()
	}
	pod := func(k int) *Pod { return &i.in.Workloads[k].Pods[0] }
	pod(0).Grace, pod(1).Grace, pod(2).Grace = 3600, 29, 0
	pod(2).Running = 10
	if got := victim(1); !slices.Equal(got, []int{1}) {
		t.Errorf("victims %v, want that of up to 30 s that has run for the shortest time", got)
	}
	pod(0).Kept = true
	if got := victim(3); len(got) > 0 {
		t.Errorf("victims %v, although one is kept", got)
	}
	pod(0).Kept = false
	for k, n := range []int64{math.MaxInt64, math.MinInt64, math.MaxInt64} {
		pod(k).Grace, pod(k).Running, pod(k).Amount = n, n, n
	}
	if got := victim(1); !slices.Equal(got, []int{1}) {
		t.Errorf("victims %v, want the one whose numbers are the lowest", got)
	}
	if got := victim(3); len(got) != 3 {
		t.Errorf("victims %v, want all", got)
	}
}

// TestOneGangOrFourSmallOnes: the fewest workloads end unless they hold more than twice what is needed.
func TestOneGangOrFourSmallOnes(t *testing.T) {
	t.Parallel()
	for large, want := range map[int]int{8: 1, 16: 1, 17: 4, 128: 4} {
		i := &instance{classes: []fakeClass{{gpus: 1}}, nodes: []fakeNode{{gpus: 128}, {gpus: 8}}}
		i.nodes[0].gpus = large
		i.fill(Workload{Name: "large", Tree: mustBuild(t, leafOf("", "", int32(large)))}, make([]string, large), make([]int, large)...)
		for k := range 4 {
			i.fill(Workload{Name: fmt.Sprint(k), Tree: mustBuild(t, leafOf("", "", 2))}, []string{"", ""}, 1, 1)
		}
		i.in.Problem = problemOf(t, 8)
		d, _ := FindVictims(i.in, i.world(t), Budget{})
		if d == nil || d.Cost.Ended != want {
			t.Errorf("one gang of %d GPUs, or four of 2: decision %+v, want %d to end", large, d, want)
		}
	}
}

// TestTheClockIsLookedAt counts the steps between two looks at the clock, and after the time is over, in searches of
// any shape.
func TestTheClockIsLookedAt(t *testing.T) {
	t.Parallel()
	const nodes = 1250
	full, list, pods := fullCluster(t, nodes)
	one := &instance{classes: []fakeClass{{gpus: 1}}}
	one.fillService(t, "service", 1024)
	for name, tc := range map[string]struct {
		workloads []Workload
		need      int
		gpus      int
		rack      bool
	}{
		"flat gangs": {full.Workloads, 64, 1, false}, "nodes as a whole": {full.Workloads, 32, 8, false}, "a rack": {full.Workloads, 64, 1, true},
		"sub-groups": {groupedGangs(t, full.Workloads, 40), 64, 8, false}, "sub-groups in a rack": {groupedGangs(t, full.Workloads, 40), 64, 1, true},
		"one gang": {one.in.Workloads, 2, 1, false}, "everybody": {full.Workloads, 8 * nodes, 1, false},
	} {
		in := Input{Problem: problemOf(t, tc.need), Workloads: tc.workloads}
		list := slices.Clone(list)
		for n := range list {
			list[n].rack = fmt.Sprint(n / 16)
		}
		if tc.rack {
			in.Problem.Required = map[string]string{"": "rack"}
		}
		for _, limit := range []int{1, 100, 3000, 40000, math.MaxInt} {
			w := newCluster(t, list, []fakeClass{{gpus: tc.gpus}}, pods)
			looked, most, over := 0, 0, 0
			w.expired = func() bool { return over > 0 }
			d, result := FindVictims(in, w, Budget{Plan: placement.Budget{Expired: func() bool {
				if over == 0 {
					most, looked = max(most, w.steps-looked), w.steps
				}
				if w.steps > limit && over == 0 {
					over = w.steps
				}
				return over > 0
			}}})
			w.check(d, in.Workloads)
			const everything = 3 * 8 * nodes // each pod and node a few times
			if most > everything || over > 0 && w.steps-over > everything {
				t.Errorf("%s: %d steps between two looks at the clock, %d after the time was over (result %d)", name, most, w.steps-over, result)
			}
		}
	}
}

// TestRacksInOneZone: groups that require racks, of a gang that requires a zone, get theirs in the zone that is chosen
// for all, not in the cheapest racks of others.
func TestRacksInOneZone(t *testing.T) {
	t.Parallel()
	const groups = 6
	i := &instance{classes: []fakeClass{{gpus: 1}}}
	for rack := range 2*groups - 1 {
		n := fakeNode{gpus: 3, rack: fmt.Sprint(rack), zone: "a"}
		pods := n.gpus
		if rack >= groups { // one rack too few, and in each one pod fits without an eviction
			n.gpus, n.zone, pods = 2, "b", 1
		}
		i.nodes = append(i.nodes, n)
		for range pods {
			i.fill(Workload{Name: fmt.Sprint(len(i.pods))}, []string{""}, rack)
			i.in.Workloads[len(i.in.Workloads)-1].Pods[0].Running = int64(rack / 4 % 2) // in zone a two racks are dearer
		}
	}
	root := gang.Node{MinSubGroup: new(int32(groups))}
	var leaves []gang.Node
	i.in.Problem = placement.Problem{Pods: map[string][]placement.Pod{}, Required: map[string]string{"": "zone"}}
	for k := range groups {
		name := fmt.Sprint(k)
		leaves = append(leaves, gang.Node{Name: name, MinMember: new(int32(2))})
		i.in.Problem.Required[name] = "rack"
		i.in.Problem.Pods[name] = []placement.Pod{{ID: name + "-0"}, {ID: name + "-1"}}
	}
	i.in.Problem.Tree = mustBuild(t, root, leaves...)
	w := i.world(t)
	d, result := FindVictims(i.in, w, Budget{Plans: 25}) // with no look at the zone these are spent before there is one
	w.check(d, i.in.Workloads)
	if d == nil || d.Cost.Pods != 2*groups {
		t.Errorf("decision %+v, result %d, want %d pods of zone a", d, result, 2*groups)
	}
	if w.plans > 210 {
		t.Errorf("classes were planned %d times, want 182", w.plans)
	}
}

// TestWhoMakesNoRoomDoesNotCount: pods without GPUs beside a victim do not make its node dear.
func TestWhoMakesNoRoomDoesNotCount(t *testing.T) {
	t.Parallel()
	i := &instance{classes: []fakeClass{{gpus: 1}}, nodes: []fakeNode{{gpus: 1}, {gpus: 1}}}
	for k := range 6 {
		i.fill(Workload{Name: fmt.Sprint(k)}, []string{""}, 0)
		i.pods[k].gpus, i.in.Workloads[k].Pods[0].Amount = 0, 0
	}
	for node, running := range []int64{5, 10} {
		i.fill(Workload{Name: fmt.Sprint(6 + node)}, []string{""}, node)
		i.in.Workloads[6+node].Pods[0].Running = running
	}
	i.in.Problem = problemOf(t, 1)
	w := i.world(t)
	d, result := FindVictims(i.in, w, Budget{})
	w.check(d, i.in.Workloads)
	if got := w.freedPods(); !slices.Equal(got, []int{6}) {
		t.Errorf("victims %v, result %d, want the one that has run for the shortest time", got, result)
	}
}
