// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/muster-project/muster/pkg/placement"
)

// World is the cluster of package placement, from whose nodes running pods can be removed. Free is called only while no
// pod of a plan is placed.
type World interface {
	placement.World
	// Free removes running pods from their nodes.
	Free(pods []int)
	// IsApart reports whether no pod of the plan is placed on the nodes of these pods.
	IsApart(pods []int) bool
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
	Plan  placement.Budget // of each plan; Expired is that of the whole search, Skip is ignored
	Plans int              // plans after which the first victims that were found are not improved any more; 0: 512
	// Again gives more time, to the World as well, if the time is over and the plan for victims that were found in time has to be
	// made once more. nil: there is no more.
	Again func()
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

// Result is the outcome of a search.
type Result int

const (
	Decided  Result = iota // there is a Decision
	Hopeless               // there is no plan even if all victims end
	Cut                    // the time was spent before victims were found that are all needed, or the number of plans before any were found
)

// FindVictims returns the cheapest set of victims that it finds with which the preemptor's minimum can be placed. Victims
// that were found in time are returned if the plan for them, which has to be made once more, is made in time, too. Without a Decision the World
// is left unchanged.
func FindVictims(in Input, w World, budget Budget) (*Decision, Result) {
	fits, freed, highest := mayFit(placement.NewDemand(in.Problem), w), int32(math.MinInt32), int32(math.MaxInt32)
	if !fits {
		var ok bool
		if highest, ok = freeByNumbers(in, w); !ok {
			return nil, Hopeless
		}
		freed = highest
	}
	s := newSearch(in, w, budget, freed, highest)
	if !(fits && s.plan() && s.record()) {
		s.findBest()
	}
	isHigher := func(w Workload) bool { return w.Priority > highest }
	if !s.isSpent() && !(s.found && s.bestCost.Violations == 0) && slices.ContainsFunc(in.Workloads, isHigher) {
		s.leaveWorld()
		s = newSearch(in, w, budget, math.MinInt32, math.MaxInt32)
		s.findBest()
	}
	spent := s.isSpent()
	s.selectUnits(s.best)
	switch {
	case s.found && s.planAgain():
		return &Decision{Victims: s.victims(), Plan: s.placements, Cost: s.bestCost}, Decided
	case s.found || spent:
		s.leaveWorld()
		return nil, Cut
	}
	s.leaveWorld()
	return nil, Hopeless
}

// findBest looks for the cheapest set of victims.
func (s *search) findBest() {
	all := s.byRank
	sparing := slices.DeleteFunc(slices.Clone(all), s.violatesAlone)
	s.findByPriority(sparing)
	if len(sparing) < len(all) && !(s.found && s.bestCost.Violations == 0) {
		s.findByPriority(all)
	}
}

// findByPriority looks for victims among the units, which are in the order of rank: of the lowest priorities that are
// sufficient, and surplus before anything else.
func (s *search) findByPriority(units []int) {
	priorities := s.prioritiesOf(units)
	low := s.sufficientPriority(units, priorities)
	for _, p := range priorities[low:] {
		part := slices.DeleteFunc(slices.Clone(units), func(u int) bool { return s.priorityOf(u) > p })
		surplus := slices.DeleteFunc(slices.Clone(part), func(u int) bool { return s.units[u].rung > SurplusSubGroup })
		if s.fitsWithout(surplus) {
			s.findAmong(surplus)
		}
		if !s.found || s.bestCost.Violations > 0 {
			s.findAmong(part)
		}
		if s.found && s.bestCost.Violations == 0 || s.isSpent() {
			return
		}
	}
}

// findAmong looks for the cheapest set of victims among the units, which are in the order of rank.
func (s *search) findAmong(units []int) {
	var tooLittle []int  // all that may end together in an order, if it is not sufficient
	firstFailed := false // the same, of the first order
	for i, orderOf := range []func() []int{
		func() []int { return units },
		func() []int { return sortedBy(units, func(u int) int64 { return -s.amount[u] }) },      // few workloads: those that free the most come first
		func() []int { return sortedBy(units, func(u int) int { return s.units[u].workload }) }, // neighbours come together
	} {
		if i == byWorkload && firstFailed { // it changes no order within a workload, so the same units may end together
			continue
		}
		order := orderOf()
		if i > 0 && slices.Equal(order, units) {
			continue
		}
		if tooLittle != nil {
			s.selectUnits(nil)
			if s.addAllowed(order); slices.Equal(s.selection(), tooLittle) {
				continue
			}
		}
		if !s.selectSufficientPrefix(order) {
			tooLittle, firstFailed = s.selection(), firstFailed || i == 0
			continue
		}
		sufficient := slices.Clone(s.list)
		s.restoreApart()
		few := slices.Clone(s.list)
		for _, start := range [][]int{few, sufficient} { // the second one only if a planner that is not exact fails now
			if s.selectUnits(start); s.reduce() {
				s.record()
				break
			}
		}
		if s.isSpent() {
			return
		}
	}
	if !s.found && len(units) <= maxLeftOut {
		s.findByLeavingOut(units)
	}
	if s.found {
		s.exchange(units)
	}
}

// sufficientPriority returns the index of the lowest of the priorities, ascending, for which there is a plan if all units
// up to it end, also those that may not end together; the number of priorities if there is none.
func (s *search) sufficientPriority(units []int, priorities []int32) int {
	s.selectUnits(nil)
	units = sortedBy(units, s.priorityOf)
	for i, p := range priorities {
		n := slices.IndexFunc(units, func(u int) bool { return s.priorityOf(u) > p })
		if n < 0 {
			n = len(units)
		}
		s.addAll(units[:n])
		if units = units[n:]; s.plan() {
			return i
		}
	}
	return len(priorities)
}

// selectSufficientPrefix selects the fewest units, in order, that are sufficient, without those that may not end beside the
// ones before, and makes a plan with them. It returns false if all of the units are not sufficient, or the time is over.
func (s *search) selectSufficientPrefix(units []int) bool {
	s.selectUnits(nil)
	var before []int // the selection of the first low units, which are not sufficient
	low, high := 0, 1
	for ; ; high *= 2 {
		high = min(high, len(units))
		s.addAllowed(units[low:high])
		if s.plan() {
			break
		}
		if low = high; high == len(units) {
			return false
		}
		before = slices.Clone(s.list)
	}
	sufficient, latest := slices.Clone(s.list), true
	for high-low > 1 && !s.isSpent() {
		mid := (low + high) / 2
		if latest {
			s.selectUnits(before)
		}
		s.addAllowed(units[low:mid])
		if latest = s.plan(); latest {
			high, sufficient = mid, slices.Clone(s.list)
		} else {
			low, before = mid, slices.Clone(s.list)
		}
	}
	if !latest {
		s.selectUnits(sufficient)
	}
	return latest || s.plan()
}

// restoreApart takes the units back on whose nodes the plan made last puts nothing: they are most of the units that come
// before the needed ones in an order.
func (s *search) restoreApart() {
	var ids []int
	for _, u := range s.selection() {
		ids = ids[:0]
		for _, pod := range s.units[u].pods {
			ids = append(ids, s.podOf(u, pod).ID)
		}
		if s.world.IsApart(ids) && s.isRestorable(u) {
			s.unselect(u)
		}
	}
}

// reduce takes units back as long as there is a plan without them, the most valuable first. The result is minimal.
// It returns false if there is no plan in the first place, or if the time is over before each unit was tried: somebody would end who
// is not needed.
func (s *search) reduce() bool {
	if !s.plan() {
		return false
	}
	start := s.selection()
	units := s.byValue(start)
	for _, u := range units {
		s.restoreBesidePlan(u)
	}
	for _, u := range units {
		if s.selected[u] && !s.late && !s.planWithout(u) {
			s.planWithLess(u)
		}
	}
	if s.byNumbers && !s.plan() && !s.late { // a filter refuses what the numbers allow
		s.byNumbers = false
		s.selectUnits(start)
		return s.reduce()
	}
	return !s.late
}

// isRestorable reports whether the other selected units of the gang may end without this one. It returns true if not all
// selected ones may end together: see findByLeavingOut.
func (s *search) isRestorable(u int) bool {
	w := s.units[u].workload
	if s.units[u].rung > SurplusSubGroup || s.units[u].group.Parent() == nil || !s.isAllowed(w) {
		return true // also a pod of a gang without sub-groups: the more are left the better
	}
	before, left := s.countsOf(w)
	s.countLeft(w, s.units[u].pods, 1)
	defer s.countLeft(w, s.units[u].pods, -1)
	return MayKeep(s.Workloads[w].Tree, before, left)
}

// planWithout takes a unit back if there is another plan without it.
func (s *search) planWithout(u int) bool {
	if !s.isRestorable(u) {
		return false
	}
	s.remove(u)
	if s.fits() {
		return true
	}
	s.add(u)
	return false
}

// planWithLess ends only parts of a unit, if there is a plan then.
func (s *search) planWithLess(u int) {
	parts := slices.DeleteFunc(slices.Clone(s.ofGang[s.units[u].workload]), func(part int) bool {
		return len(s.units[part].pods) >= len(s.units[u].pods) || !s.isPart(part, u) // a unit of the same pods is no less
	})
	if len(parts) == 0 {
		return
	}
	s.remove(u)
	if !s.planWithPartsOf(u, parts) {
		s.add(u)
	}
}

// planWithPartsOf selects some of the parts of a unit, of which none is selected, so that there is a plan and the gang's
// selected units may end together, and keeps a pod of the unit. It leaves out one after another of the parts otherwise. Without a
// result none of the parts is selected.
func (s *search) planWithPartsOf(u int, parts []int) bool {
	if len(parts) == 0 || s.late {
		return false
	}
	for _, part := range parts {
		s.addInPlaceOfParts(part)
	}
	fits := s.fits()
	if fits && s.byNumbers {
		s.plans++ // the ways to leave parts out are bounded
	}
	if fits {
		for _, part := range parts {
			if s.selected[part] && !s.byNumbers {
				s.restoreBesidePlan(part)
			}
		}
		for _, part := range parts {
			if s.selected[part] && !s.planWithout(part) {
				s.planWithLess(part)
			}
		}
		w := s.units[u].workload
		keepsPod := slices.ContainsFunc(s.units[u].pods, func(pod int) bool { return s.freedOf(w)[pod] == 0 })
		if keepsPod && s.isAllowed(w) {
			return true
		}
	}
	selected := slices.DeleteFunc(s.selectedOf(s.units[u].workload), func(part int) bool { return !s.isPart(part, u) })
	s.removeAll(selected)
	return fits && slices.ContainsFunc(selected, func(out int) bool {
		return !s.isSpent() && s.planWithPartsOf(u, slices.DeleteFunc(slices.Clone(parts), func(part int) bool { return part == out }))
	})
}

// findByLeavingOut looks for units that may end together, by leaving out one after another of those that may not. It
// finds some if there are any, unless the budget is spent.
func (s *search) findByLeavingOut(units []int) bool {
	if s.isSpent() {
		return false
	}
	s.selectUnits(nil)
	for _, u := range units {
		s.addInPlaceOfParts(u)
	}
	if !s.reduce() {
		return false
	}
	for w := range s.Workloads {
		if s.isAllowed(w) {
			continue
		}
		return slices.ContainsFunc(s.selectedOf(w), func(out int) bool {
			return s.findByLeavingOut(slices.DeleteFunc(slices.Clone(units), func(u int) bool { return u == out }))
		})
	}
	s.record()
	return true
}

const byWorkload = 2 // index of the order of findAmong in which neighbours come together

const (
	maxLeftOut    = 256 // units up to which every way to leave some of them out is tried
	maxExchanged  = 16  // selected units, the most valuable, that are exchanged, and for pairs of them a quarter
	maxCandidates = 64  // units, the least valuable, that replace them
)

// exchange replaces one or two of the best units by another one as long as this is cheaper.
func (s *search) exchange(units []int) {
	units = units[:min(len(units), maxCandidates)]
	for improved := true; improved; {
		improved = false
		best := s.byValue(s.best)
		best = best[:min(len(best), maxExchanged)]
		for i := range best {
			for k := i; k < len(best) && !improved && !s.isSpent(); k++ {
				if k == i || k < maxExchanged/4 || len(s.best) <= maxExchanged {
					improved = s.exchangeFor([]int{best[i], best[k]}, units)
				}
			}
		}
	}
}

// exchangeFor replaces the units by another one if this is cheaper.
func (s *search) exchangeFor(out, units []int) bool {
	for _, in := range units {
		if slices.Contains(s.best, in) || s.isSpent() {
			continue
		}
		s.selectUnits(slices.DeleteFunc(slices.Clone(s.best), func(u int) bool { return slices.Contains(out, u) }))
		s.addIfAllowed(in)
		if s.selected[in] && s.areAllowed(out) && s.isCheaper() && s.reduce() && s.record() {
			return true
		}
	}
	return false
}

// record keeps the selection if it is the cheapest one so far.
func (s *search) record() bool {
	if !s.found || s.isCheaper() {
		s.best, s.bestCost, s.found = s.selection(), s.cost(), true
		return true
	}
	return false
}

// sortedBy returns the units in the order of few distinct keys, those with the same key in the order given.
func sortedBy[K cmp.Ordered](units []int, keyOf func(u int) K) []int {
	keys := make([]K, len(units))
	for i, u := range units {
		keys[i] = keyOf(u)
	}
	if slices.IsSorted(keys) {
		return units
	}
	runs := map[K][][]int{} // neighbours mostly have the same key
	for start, end := 0, 0; start < len(units); start = end {
		for end = start + 1; end < len(units) && keys[end] == keys[start]; end++ {
		}
		runs[keys[start]] = append(runs[keys[start]], units[start:end])
	}
	sorted := make([]int, 0, len(units))
	for _, key := range slices.Sorted(maps.Keys(runs)) {
		for _, run := range runs[key] {
			sorted = append(sorted, run...)
		}
	}
	return sorted
}

// byValue returns the units with the most valuable first.
func (s *search) byValue(units []int) []int {
	units = slices.Clone(units)
	slices.SortFunc(units, func(a, b int) int { return cmp.Compare(s.rank[b], s.rank[a]) })
	return units
}

// mayFit reports whether the numbers allow a plan. It asks only for the capacity of each class.
func mayFit(demand *placement.Demand, w World) bool {
	return demand.MayFit(func(class int) int {
		if w.Kind(class) != placement.Independent {
			return math.MaxInt
		}
		return w.Capacity(class).Pods
	})
}

// freeByNumbers returns the lowest priority for which the numbers allow a plan if all pods up to it end that may. Those below it
// remain free in the World. It returns false, and frees nothing, if there is none: it refuses most hopeless gangs before anything is
// prepared for a search.
func freeByNumbers(in Input, w World) (highest int32, ok bool) {
	n := 0
	for i := range in.Workloads {
		n += len(in.Workloads[i].Pods)
	}
	ids := make([]int, 0, n)
	appendPods := func(w *Workload) {
		for i := range w.Pods {
			ids = append(ids, w.Pods[i].ID)
		}
	}
	for i := range in.Workloads {
		appendPods(&in.Workloads[i])
	}
	demand := placement.NewDemand(in.Problem)
	if w.Free(ids); !mayFit(demand, w) {
		w.Restore(ids)
		return 0, false
	}
	ids = ids[:0]
	var priorities []int32 // ascending
	var starts []int       // in ids, by priority
	for _, i := range sortedBy(numbersTo(len(in.Workloads)), func(i int) int32 { return in.Workloads[i].Priority }) {
		if p := in.Workloads[i].Priority; len(starts) == 0 || priorities[len(priorities)-1] != p {
			priorities, starts = append(priorities, p), append(starts, len(ids))
		}
		appendPods(&in.Workloads[i])
	}
	for i, start := range slices.Backward(starts) {
		w.Restore(ids[start:])
		if ids = ids[:start]; !mayFit(demand, w) {
			return priorities[i], true
		}
	}
	return math.MinInt32, true // it fits without
}
