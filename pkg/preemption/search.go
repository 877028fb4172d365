// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"slices"
	"sort"

	"github.com/muster-project/muster/pkg/placement"
)

// World is the cluster of package placement, from whose nodes running pods can be removed. Free is called only while no
// pod of a plan is placed.
type World interface {
	placement.World
	// Free removes running pods from their nodes.
	Free(pods []int)
	// Restore puts pods back that Free removed. It returns false and changes nothing if pods of the plan that are
	// placed now do not fit beside them; without such pods it returns true.
	Restore(pods []int) bool
}

// Input is what a Decision depends on, besides the World. It is not modified.
type Input struct {
	Problem   placement.Problem // of the preemptor
	Workloads []Workload        // of lower priority
	Allowed   []int             // by PodDisruptionBudget: evictions that it allows now
}

// Budget limits the search.
type Budget struct {
	Plan placement.Budget // of each plan; Expired is that of the whole search. Skip is ignored.
	// Plans bounds the plans of the whole search; 0: 512. The search that finds the first victims is not bounded by it.
	Plans int
}

const defaultPlans = 512

// Victim is what one workload loses.
type Victim struct {
	Workload int   // index
	Rung     Rung  // the greatest loss
	Pods     []int // Pod.ID, in the order of Workload.Pods
}

// Decision is the cheapest set of victims that was found, and the plan that it makes possible. The placements and the
// freed pods remain in the World.
type Decision struct {
	Victims []Victim // in the order of Input.Workloads; none: the gang fits without
	Plan    []placement.Placement
	Cost    Cost
}

// Result is the outcome of a search without a Decision.
type Result int

const (
	Decided  Result = iota // there is a Decision
	Hopeless               // the planner finds no plan even if all victims end
	Cut                    // the time or the number of plans was spent before a set of victims was found
)

// FindVictims returns the cheapest set of victims that it finds with which the preemptor's minimum can be placed. Without
// a Decision the World is left unchanged.
func FindVictims(in Input, w World, budget Budget) (*Decision, Result) {
	s := newSearch(in, w, budget)
	if !s.run() {
		s.selectUnits(nil)
		if s.cut() {
			return nil, Cut
		}
		return nil, Hopeless
	}
	s.selectUnits(s.best)
	if !s.plan() {
		s.selectUnits(nil) // the planner is deterministic: only because the time is over
		return nil, Cut
	}
	return &Decision{Victims: s.victims(), Plan: s.placements, Cost: s.bestCost}, Decided
}

// search is the state of FindVictims: the selected units, whose pods are free in the World, and the plan made last.
type search struct {
	Input
	world   World
	budget  Budget
	allowed []int
	units   []unit
	ofGang  [][]int // by workload: its units

	selected   []bool  // by unit
	freed      [][]int // by workload and pod: selected units that contain it
	placements []placement.Placement
	plans      int
	late       bool

	best     []int // units; nil: none was found
	found    bool
	bestCost Cost
}

func newSearch(in Input, w World, budget Budget) *search {
	s := &search{Input: in, world: w, budget: budget, allowed: in.Allowed, ofGang: make([][]int, len(in.Workloads))}
	if s.budget.Plans == 0 {
		s.budget.Plans = defaultPlans
	}
	s.budget.Plan.Skip = 0
	for i := range in.Workloads {
		for _, u := range unitsOf(i, &in.Workloads[i]) {
			s.ofGang[i] = append(s.ofGang[i], len(s.units))
			s.units = append(s.units, u)
		}
		s.freed = append(s.freed, make([]int, len(in.Workloads[i].Pods)))
	}
	s.selected = make([]bool, len(s.units))
	return s
}

// run looks for the cheapest set of victims, and reports whether it found one.
func (s *search) run() bool {
	if s.plan() {
		s.record() // nobody has to end
		return true
	}
	all := s.unitsWhere(func(int) bool { return true })
	if !s.fitsWithout(all) {
		return false
	}
	for _, violating := range []bool{false, true} {
		pool := slices.DeleteFunc(slices.Clone(all), func(u int) bool { return !violating && s.violatesAlone(u) })
		s.searchByPriority(pool)
		if s.found && s.bestCost.Violations == 0 {
			break
		}
	}
	return s.found
}

// searchByPriority looks for victims in the pool: of the lowest priorities that are sufficient, and surplus before
// anything else.
func (s *search) searchByPriority(pool []int) {
	priorities := s.prioritiesOf(pool)
	upTo := func(p int32) []int {
		return slices.DeleteFunc(slices.Clone(pool), func(u int) bool { return s.priorityOf(u) > p })
	}
	low := sort.Search(len(priorities), func(i int) bool { return s.fitsWithout(upTo(priorities[i])) })
	for _, p := range priorities[low:] {
		before := s.found
		part := upTo(p)
		surplus := slices.DeleteFunc(slices.Clone(part), func(u int) bool { return s.units[u].rung > SurplusSubGroup })
		for _, units := range [][]int{surplus, part} {
			if len(units) > 0 && s.fitsWithout(units) {
				s.searchIn(units)
			}
			if s.found && !before {
				break
			}
		}
		if s.found && s.bestCost.Violations == 0 || s.spent() {
			return
		}
	}
}

// searchIn looks for the cheapest set of victims among the units, all of which together are sufficient.
func (s *search) searchIn(units []int) {
	for _, compare := range s.orders() {
		sorted := slices.Clone(units)
		slices.SortStableFunc(sorted, compare)
		n := s.sufficientPrefix(sorted)
		if n < 0 {
			continue
		}
		for _, valuable := range [][]int{reversed(sorted), s.byValue(sorted)} {
			s.selectAllowed(sorted[:n])
			if s.reduce(valuable) {
				s.record()
			}
			if s.spent() {
				return
			}
		}
	}
	if !s.found {
		s.branch(units)
	}
	if s.found {
		s.exchange(units)
	}
}

// sufficientPrefix returns how many of the units, in order, are sufficient; -1 if all of those that may end together are
// not.
func (s *search) sufficientPrefix(units []int) int {
	fits := func(n int) bool {
		s.selectAllowed(units[:n])
		return s.plan()
	}
	if !fits(len(units)) {
		return -1
	}
	low, high := 0, len(units) // high units are sufficient, low are not
	for high-low > 1 && !s.spent() {
		if mid := (low + high) / 2; fits(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// reduce takes units back, in the given order, as long as there is a plan without them. It returns false if there is no
// plan in the first place. The result is minimal.
func (s *search) reduce(order []int) bool {
	if !s.plan() {
		return false
	}
	s.restoreBesidePlan(order)
	for _, u := range order {
		if !s.selected[u] || s.late {
			continue
		}
		if !s.planWithout(u) && s.units[u].rung == WholeGang {
			s.planWithSurplusOf(u)
		}
	}
	return true
}

// restoreBesidePlan takes back units whose pods have room beside the plan made last.
func (s *search) restoreBesidePlan(order []int) {
	for _, u := range order {
		if s.selected[u] {
			s.restoreUnit(u)
		}
	}
}

// restoreUnit takes a unit back if its pods have room beside the plan, and the rest of the gang's units may end without it.
func (s *search) restoreUnit(u int) {
	w := s.units[u].workload
	if !s.isRestorable(u) {
		return
	}
	if !s.world.Restore(s.idsOf(u, 1)) {
		return
	}
	s.selected[u] = false
	for _, pod := range s.units[u].pods {
		s.freed[w][pod]--
	}
}

// isRestorable reports whether the other selected units of the gang may end without this one. It returns true if not all
// selected ones may end together: see branch.
func (s *search) isRestorable(u int) bool {
	w := s.units[u].workload
	if s.units[u].rung > SurplusSubGroup || !s.isAllowed(w) {
		return true
	}
	without := func(pod int) bool { return s.freed[w][pod] > 0 && !slices.Contains(s.units[u].pods, pod) }
	return s.Workloads[w].mayLose(without)
}

// planWithout takes a unit back if there is another plan without it.
func (s *search) planWithout(u int) bool {
	if !s.isRestorable(u) {
		return false
	}
	s.remove(u)
	if s.plan() {
		return true
	}
	s.add(u)
	return false
}

// planWithSurplusOf ends only surplus of the gang instead of the whole gang, if there is a plan then.
func (s *search) planWithSurplusOf(whole int) bool {
	w := s.units[whole].workload
	s.remove(whole)
	if s.planWithPartsOf(w, slices.DeleteFunc(slices.Clone(s.ofGang[w]), func(u int) bool { return u == whole })) {
		return true
	}
	for _, u := range s.selectedOf(w) {
		s.remove(u)
	}
	s.add(whole)
	return false
}

// planWithPartsOf selects units of a workload, of which it has none, so that there is a plan and they may end together.
// It leaves out one after another of the units that may not.
func (s *search) planWithPartsOf(w int, units []int) bool {
	if len(units) == 0 || s.spent() {
		return false
	}
	for _, u := range units {
		s.addInPlaceOfParts(u)
	}
	if s.plan() {
		for _, u := range s.selectedOf(w) {
			s.planWithout(u)
		}
		selected := s.selectedOf(w)
		if s.isAllowed(w) {
			return true
		}
		for _, out := range selected {
			for _, u := range s.selectedOf(w) {
				s.remove(u)
			}
			if s.planWithPartsOf(w, slices.DeleteFunc(slices.Clone(units), func(u int) bool { return u == out })) {
				return true
			}
		}
	}
	for _, u := range s.selectedOf(w) {
		s.remove(u)
	}
	return false
}

// branch looks for a selection that may end together, by leaving out one after another of the units that may not. It
// finds one if there is one, unless the budget is spent.
func (s *search) branch(units []int) bool {
	if s.spent() || !s.fitsWithout(units) {
		return false
	}
	s.selectUnits(nil)
	for _, u := range units {
		s.addInPlaceOfParts(u)
	}
	if !s.reduce(s.byValue(units)) {
		return false
	}
	for w := range s.Workloads {
		if s.isAllowed(w) {
			continue
		}
		for _, u := range s.ofGang[w] {
			if s.selected[u] && s.branch(slices.DeleteFunc(slices.Clone(units), func(other int) bool { return other == u })) {
				return true
			}
		}
		return false
	}
	s.record()
	return true
}

// exchange replaces one or two of the best units by another one as long as this is cheaper.
func (s *search) exchange(units []int) {
	for improved := true; improved && !s.spent(); {
		improved = false
		best := s.byValue(s.best)
		for i := range best {
			for k := i; k < len(best) && !improved; k++ {
				improved = s.exchangeFor([]int{best[i], best[k]}, units)
			}
			if improved || s.spent() {
				break
			}
		}
	}
}

// exchangeFor replaces the units by another one, or by the surplus of another gang, if this is cheaper.
func (s *search) exchangeFor(out, units []int) bool {
	for _, in := range units {
		if slices.Contains(s.best, in) || s.spent() {
			continue
		}
		s.selectUnits(slices.DeleteFunc(slices.Clone(s.best), func(u int) bool { return slices.Contains(out, u) }))
		if s.addIfAllowed(in); !s.selected[in] || s.cost().Compare(s.bestCost) >= 0 {
			continue
		}
		if s.reduce(s.byValue(s.selection())) && s.record() {
			return true
		}
	}
	return false
}

// record keeps the selection if it is the cheapest one so far.
func (s *search) record() bool {
	if c := s.cost(); !s.found || c.Compare(s.bestCost) < 0 {
		s.best, s.bestCost, s.found = s.selection(), c, true
		return true
	}
	return false
}

// orders are the orders in which units are freed until there is a plan.
func (s *search) orders() []func(a, b int) int {
	node := s.lossByUnit()
	return []func(a, b int) int{
		func(a, b int) int { return -s.compareValue(a, b) },
		func(a, b int) int { // few workloads: those that free the most
			return cmp.Or(cmp.Compare(s.amountOf(b), s.amountOf(a)), -s.compareValue(a, b))
		},
		func(a, b int) int { return cmp.Or(cmp.Compare(node[a], node[b]), -s.compareValue(a, b)) },
	}
}

// lossByUnit returns, by unit, how much a unit frees per workload that it ends.
func (s *search) lossByUnit() []int64 {
	loss := make([]int64, len(s.units))
	for u := range s.units {
		loss[u] = int64(len(s.units[u].pods)) - s.amountOf(u)
	}
	return loss
}

// byValue returns the units with the most valuable first.
func (s *search) byValue(units []int) []int {
	units = slices.Clone(units)
	slices.SortStableFunc(units, s.compareValue)
	return units
}

// compareValue returns a negative number if the loss of a is greater than that of b.
func (s *search) compareValue(a, b int) int {
	ends := func(u int) int {
		if s.units[u].rung > SurplusSubGroup {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(s.budgetsOf(b), s.budgetsOf(a)),
		cmp.Compare(s.priorityOf(b), s.priorityOf(a)),
		cmp.Compare(ends(b), ends(a)),
		cmp.Compare(s.amountOf(b), s.amountOf(a)),
		cmp.Compare(len(s.units[b].pods), len(s.units[a].pods)),
		cmp.Compare(s.runningOf(b), s.runningOf(a)),
		cmp.Compare(s.Workloads[s.units[b].workload].Name, s.Workloads[s.units[a].workload].Name),
		cmp.Compare(b, a),
	)
}

func reversed(units []int) []int {
	units = slices.Clone(units)
	slices.Reverse(units)
	return units
}
