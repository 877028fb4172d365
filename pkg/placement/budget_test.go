// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// clock is a time limit that expires once it has been asked a given number of times.
type clock struct {
	left int
	over bool // it has reported that the time is over
}

func (c *clock) expired() bool {
	c.left--
	c.over = c.over || c.left < 0
	return c.over
}

// TestMinimumStopsWhenTheTimeIsOver lets the time expire at every point of plans of all kinds.
func TestMinimumStopsWhenTheTimeIsOver(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(41, 43))
	cut := 0
	for round := range 400 {
		p, w := randomInstance(t, r, variety{classes: 1 + r.IntN(4), racks: true, spreads: true})
		for asks := 0; ; asks++ {
			c := &clock{left: asks}
			w.over = func() bool { return c.over }
			plan, short := placement.Minimum(p, w, placement.Budget{Expired: c.expired})
			w.over = nil
			if short == nil {
				checkPlan(t, p, w, plan)
				w.Undo(len(plan))
				break
			}
			if len(w.stack) > 0 || plan != nil {
				t.Fatalf("round %d: the World keeps %d placements of a failed plan", round, len(w.stack))
			}
			if short.Cut && !c.over || short.Cut && short.Exhausted {
				t.Fatalf("round %d, after %d questions: %+v, and the time is over: %t", round, asks, short, c.over)
			}
			if !c.over {
				break
			}
			if !short.Cut { // the time was sufficient for the search, but not for the explanation
				continue
			}
			if len(short.Leaves) == 0 {
				t.Fatalf("round %d: the search was cut short: %+v", round, short)
			}
			if cut++; asks > 40 {
				asks += asks / 8
			}
		}
	}
	if cut < 400 {
		t.Errorf("the time was over %d times only", cut)
	}
}

// TestSkipGoesOnWhereTheSearchWasCut plans every instance in time slices. The slices find a plan if and only if an
// uninterrupted search does, and no choice is tried twice.
func TestSkipGoesOnWhereTheSearchWasCut(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(47, 53))
	sliced, found := 0, 0
	for round := range 600 {
		p, w := randomInstance(t, r, variety{classes: 3, racks: round%2 == 0, spreads: round%3 == 0, tight: true})
		_, whole := placement.Minimum(p, w, placement.Budget{})
		w.Undo(len(w.stack))
		slice, skip, attempts := 20, 0, 0
		for {
			c := &clock{left: slice}
			plan, short := placement.Minimum(p, w, placement.Budget{Skip: skip, Expired: c.expired})
			if short == nil {
				checkPlan(t, p, w, plan)
				found++
			}
			if short == nil || !short.Cut {
				if (short == nil) != (whole == nil) {
					t.Fatalf("round %d: in slices %+v, in one piece %+v", round, short, whole)
				}
				break
			}
			sliced++
			if attempts++; short.Tried < skip || attempts > 200 {
				t.Fatalf("round %d: %d choices tried, %d before; %d attempts", round, short.Tried, skip, attempts)
			}
			if short.Tried == skip {
				slice *= 2 // the slice was too short for one choice
			}
			skip = short.Tried
		}
	}
	if sliced < 200 || found < 100 {
		t.Errorf("%d slices and %d plans: the instances are no test", sliced, found)
	}
}

// TestLikePodsArePlannedWhateverTheBudget: the guarantee for equal pods does not depend on budgets.
func TestLikePodsArePlannedWhateverTheBudget(t *testing.T) {
	t.Parallel()
	// The preferred walk cannot succeed: the first half of the leaves is larger than the second.
	build := func(t *testing.T, size int) (placement.Problem, []node) {
		var groups []gang.Node
		p := placement.Problem{Pods: map[string][]placement.Pod{}}
		for i := range 60 {
			name, n := fmt.Sprintf("l%d", i), size
			if i >= 30 {
				n = size / 2
			}
			groups = append(groups, leaf(name, "", int32(n)))
			p.Pods[name] = pods(name, 0, n)
		}
		p.Tree = mustBuild(t, inner("", "", 31), groups...)
		return p, []node{{gpus: 30*(size/2) + size}}
	}
	for _, size := range []int{8, 30, 80, 200} {
		t.Run(fmt.Sprintf("a minimum of leaves with %d pods", size), func(t *testing.T) {
			t.Parallel()
			p, nodes := build(t, size)
			w := newCluster(t, []class{{gpus: 1}}, nodes...)
			plan, short := placement.Minimum(p, w, placement.Budget{Attempts: 1, Placements: 1})
			if short != nil {
				t.Fatalf("no plan: %+v", short)
			}
			checkPlan(t, p, w, plan)
		})
		t.Run(fmt.Sprintf("a unit of surplus with leaves of %d pods", size), func(t *testing.T) {
			t.Parallel()
			p, nodes := build(t, size)
			groups := []gang.Node{leaf("first", "", 1), inner("unit", "", 31)}
			for _, l := range p.Tree.Leaves() {
				groups = append(groups, leaf(l.Name(), "unit", int32(l.Min())))
			}
			p.Tree, p.Have = mustBuild(t, inner("", "", 1), groups...), gang.Counts{"first": 1}
			w := newCluster(t, []class{{gpus: 1}}, nodes...)
			if plan := surplusOf(p, w); len(plan) != nodes[0].gpus {
				t.Errorf("%d pods planned, want %d", len(plan), nodes[0].gpus)
			}
		})
	}
}

// TestWhatNumbersRuleOutIsNotTried: the World is not asked to place anything, and to explain once per class.
func TestWhatNumbersRuleOutIsNotTried(t *testing.T) {
	t.Parallel()
	w := newCluster(t, []class{{gpus: 1}}, gpu8(5)...)
	p := placement.Problem{Tree: mustBuild(t, leaf("", "", 80)), Pods: rootPods(80)}
	_, short := placement.Minimum(p, w, placement.Budget{})
	if short == nil || !short.Exhausted || len(short.Leaves) != 1 || short.Leaves[0].Placed != 40 || short.Leaves[0].Need != 80 {
		t.Errorf("shortfall %+v, want 40 of 80 pods", short)
	}
	if w.calls != 0 || w.explained != 1 {
		t.Errorf("%d calls of Place and %d of Explain, want 0 and 1", w.calls, w.explained)
	}
	big := wide(t, 1024, 8, 1000, 1)
	w = newCluster(t, []class{{gpus: 1}}, gpu8(999)...)
	_, short = placement.Minimum(big, w, placement.Budget{})
	if short == nil || len(short.Groups) != 1 || short.Groups[0].Can != 999 || w.calls != 0 || w.explained != 1 {
		t.Errorf("%d calls of Place and %d of Explain, shortfall of groups %+v, want 0 and 1, 999 of 1000 children", w.calls, w.explained, short.Groups)
	}
}

// TestARackForLeaderAndWorkers: one rack of many has room for all pods. Each rack is inspected once, and placements
// are requested only per pod.
func TestARackForLeaderAndWorkers(t *testing.T) {
	t.Parallel()
	const racks = 312
	for _, full := range []bool{false, true} {
		t.Run(fmt.Sprintf("all racks are too small: %t", full), func(t *testing.T) {
			t.Parallel()
			p, w := leaderAndWorkers(t, racks, full)
			plan, short := placement.Minimum(p, w, placement.Budget{})
			if full {
				if short == nil || len(short.Leaves) != 1 || !short.Exhausted {
					t.Errorf("shortfall %+v, want that of one leaf", short)
				}
			} else {
				if short != nil {
					t.Fatalf("no plan: %+v", short)
				}
				checkPlan(t, p, w, plan)
			}
			if w.calls > 2*128 || w.listed > 16 {
				t.Errorf("%d calls of Place and %d of Domains, want at most 256 and 16", w.calls, w.listed)
			}
		})
	}
}

// leaderAndWorkers returns a leader and 127 workers that must share a rack. All racks except the one in the middle
// lack room for one pod; if full is set, that one does too.
func leaderAndWorkers(t testing.TB, racks int, full bool) (placement.Problem, *cluster) {
	t.Helper()
	p := placement.Problem{
		Tree: mustBuild(t, gang.Node{}, leaf("leader", "", 1), leaf("worker", "", 127)),
		Pods: map[string][]placement.Pod{"leader": pods("leader", 0, 1), "worker": pods("worker", 1, 127)},
	}
	nodes := make([]node, 16*racks)
	for i := range nodes {
		nodes[i] = node{gpus: 8, rack: fmt.Sprintf("rack%d", i/16)}
		if i%16 == 0 && (full || i/16 != racks/2) {
			nodes[i].gpus = 7
		}
	}
	return p, newCluster(t, []class{{gpus: 1, sameRack: "job"}, {gpus: 1, sameRack: "job"}}, nodes...)
}

// TestUnit plans surplus one unit at a time.
func TestUnit(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Tree: mustBuild(t, inner("", "", 1),
			inner("a", "", 1), leaf("a1", "a", 1), leaf("a2", "a", 2), leaf("b", "", 4), leaf("c", "", 4), leaf("d", "", 2)),
		Have: gang.Counts{"a1": 1, "d": 1}, Bound: gang.Counts{"d": 1},
		Pods: waiting(pods("a1", 0, 3), pods("a2", 0, 2), pods("b", 0, 4), pods("c", 0, 4), pods("d", 1, 1)),
	}
	want := []placement.UnitRef{{"d", 1}, {"b", 1}, {"c", 1}, {"a2", 2}}
	w := newCluster(t, []class{{gpus: 1}, {gpus: 9}}, node{gpus: 3})
	plan := placement.Unit(p, w, placement.Budget{})
	if plan.UnitRef != want[3] || !slices.Equal(plan.Refused, want[:3]) || len(plan.Placements) != 2 || plan.Cut {
		t.Errorf("Unit: %+v, want a2, and the others refused", plan)
	}
	if w.calls > 2 || len(w.stack) != 2 {
		t.Errorf("%d calls of Place, %d pods placed: want 2, the others are too many", w.calls, len(w.stack))
	}
	p.Have = after(p, plan.Placements)
	p = withoutPlanned(p, plan.Placements)
	if plan := placement.Unit(p, w, placement.Budget{}); plan.Placements != nil || plan.UnitRef != (placement.UnitRef{}) || len(plan.Refused) != 3 {
		t.Errorf("Unit: %+v, want none, and three refused", plan)
	}
	if singles := lines(placement.Singles(p, w, placement.Budget{})); !slices.Equal(singles, []string{"a1-0 on node-0"}) {
		t.Errorf("Singles: %v, want one of a1's three pods", singles)
	}
	w.Undo(len(w.stack))
	c := &clock{}
	if plan := placement.Unit(p, w, placement.Budget{Expired: c.expired}); !plan.Cut || plan.Placements != nil || len(w.stack) > 0 {
		t.Errorf("Unit without time: %+v, want that it is cut", plan)
	}
	if singles := placement.Singles(p, w, placement.Budget{Expired: c.expired}); singles != nil || len(w.stack) > 0 {
		t.Errorf("Singles without time: %v, want none", singles)
	}
}

// TestSkipLeavesOutADomainForWhichTheTimeIsTooShort: the search in the tightest rack takes longer than an attempt may,
// and the next attempt goes on with the next rack. When all racks have had their time, the search starts over.
func TestSkipLeavesOutADomainForWhichTheTimeIsTooShort(t *testing.T) {
	t.Parallel()
	var nodes []node
	for i := range 24 {
		nodes = append(nodes, node{name: fmt.Sprintf("n%d", i), gpus: 4 + i/12*5, rack: fmt.Sprintf("r%d", i/12)})
	}
	w := newCluster(t, []class{{gpus: 2}, {gpus: 3}}, nodes...) // no node of r0 takes a pod of each class
	p := placement.Problem{Pods: map[string][]placement.Pod{"a": pods("a", 0, 2*8), "b": pods("b", 1, 8)}}
	p.Tree, p.Required = buildLeveled(t, required("rack", gang.Node{}), required("", leaf("a", "", 16)), required("", leaf("b", "", 8)))
	const slice = 40
	c := &clock{left: slice}
	if _, short := placement.Minimum(p, w, placement.Budget{Expired: c.expired}); short == nil || !short.Cut || short.Tried != 1 {
		t.Fatalf("first attempt: %+v, want that it is cut and has left out one rack", short)
	}
	c = &clock{left: slice}
	plan, short := placement.Minimum(p, w, placement.Budget{Skip: 1, Expired: c.expired})
	if short != nil {
		t.Fatalf("second attempt: no plan: %+v", short)
	}
	checkLevels(t, p, w, plan)
	w.Undo(len(plan))

	c = &clock{left: slice / 2}
	if _, short := placement.Minimum(p, w, placement.Budget{Skip: 1, Expired: c.expired}); short == nil || !short.Cut || short.Tried != 2 {
		t.Errorf("second attempt with less time: %+v, want that it is cut and has left out both racks", short)
	}
	c = &clock{left: slice}
	if _, short := placement.Minimum(p, w, placement.Budget{Skip: 2, Expired: c.expired}); short == nil || short.Cut || short.Exhausted {
		t.Errorf("third attempt: %+v, want that it leaves out all racks, and is not certain", short)
	}
}

// TestSkipComesBackToDomains plans problems with required levels in time slices, as the scheduler does: choices for
// which the time was too short are left out until all others were tried; then the search starts over with twice the
// time.
func TestSkipComesBackToDomains(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(59, 61))
	over, found := 0, 0
	for round := range 400 {
		p, w := randomLevels(t, r, leveled{classes: 1 + round%3, nested: round%2 == 0})
		p.Required[""] = []string{"rack", "block"}[round%2]
		_, whole := placement.Minimum(p, w, placement.Budget{})
		w.Undo(len(w.stack))
		slice, skip, stuck := 6, 0, 0
		for attempts := 1; ; attempts++ {
			c := &clock{left: slice << stuck}
			plan, short := placement.Minimum(p, w, placement.Budget{Skip: skip, Expired: c.expired})
			if short == nil {
				checkPlan(t, p, w, plan)
				checkLevels(t, p, w, plan)
				found++
			}
			if short == nil || !short.Cut && skip == 0 {
				if (short == nil) != (whole == nil) {
					t.Fatalf("round %d: in slices %+v, in one piece %+v", round, short, whole)
				}
				break
			}
			if short.Tried < skip && short.Cut || attempts > 200 {
				t.Fatalf("round %d: %d choices tried, %d before; %d attempts", round, short.Tried, skip, attempts)
			}
			switch {
			case !short.Cut:
				over++
				slice, skip, stuck = 2*slice, 0, 0
			case short.Tried == skip:
				stuck++
			default:
				skip, stuck = short.Tried, 0
			}
		}
	}
	if over < 100 || found < 100 {
		t.Errorf("%d searches started over, %d plans: the instances are no test", over, found)
	}
}

// manifold is a cluster whose numbers promise room for thousands of pods in each rack.
type manifold struct{ *cluster }

const promised = 1 << 14

func (w manifold) Rooms(_ int, level string, within placement.Area) []int {
	return slices.Repeat([]int{promised}, len(w.Areas(level, within)))
}

func (w manifold) FreeIn(level string, within placement.Area) [][]int64 {
	return slices.Repeat([][]int64{{promised, promised}}, len(w.Areas(level, within)))
}

func (w manifold) Capacity(class int) placement.Capacity {
	return placement.Capacity{Nodes: w.cluster.Capacity(class).Nodes, Pods: promised}
}

// TestTheTimeIsCheckedForEachRefusedPod: a rack refuses one pod of a class, and thousands like it are assigned to this
// rack. They cost no call of Place, but time.
func TestTheTimeIsCheckedForEachRefusedPod(t *testing.T) {
	t.Parallel()
	const n = 3000
	p := placement.Problem{Pods: map[string][]placement.Pod{"a": pods("a", 0, 1), "s": pods("s", 1, n)}}
	p.Tree, p.Required = buildLeveled(t, leveledNode{}, required("rack", leaf("a", "", 1)), leveledNode{Node: leaf("s", "", n)})
	plan := func(c *clock) (asked int, short *placement.Shortfall, w *cluster) {
		w = newCluster(t, []class{{gpus: 2}, {gpus: 1}}, node{gpus: 4, rack: "r0"}, node{gpus: 4, rack: "r1"})
		_, short = placement.Minimum(p, manifold{w}, placement.Budget{Expired: func() bool {
			asked++
			return c.expired()
		}})
		return asked, short, w
	}
	asked, short, w := plan(&clock{left: 1 << 30})
	if short == nil || short.Cut {
		t.Fatalf("shortfall %+v, want one without a cut", short)
	}
	if others := asked - w.calls; others < n-100 {
		t.Errorf("the time is checked %d times besides the %d calls of Place, want once for each of %d refused pods", others, w.calls, n)
	}
	if _, short, _ := plan(&clock{left: asked / 2}); short == nil || !short.Cut {
		t.Errorf("shortfall %+v, want that the search is cut among the refused pods", short)
	}
}
