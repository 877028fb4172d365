// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// search is the state of FindVictims: the selected units, and the plan made last. The World is told which pods are free only
// when a plan is made, so that selecting many units one by one is cheap.
type search struct {
	Input
	world  World
	budget Budget
	demand *placement.Demand

	units   []unit
	ofGang  [][]int // by workload: its units
	amount  []int64 // by unit
	running []int64 // by unit
	budgets []int   // by unit: its evictions that concern a PodDisruptionBudget
	rank    []int   // by unit: its position by loss, the least first
	byRank  []int   // the units in this order

	first   []int  // by workload: the number of its first pod; the others follow
	ids     []int  // by number of a pod: Pod.ID
	freed   []int  // by number of a pod: selected units that contain it
	inWorld []bool // by number of a pod: it is free in the World
	untold  []int  // numbers of the pods of which the World may have to be told

	selected   []bool        // by unit
	wanted     []bool        // by unit; only used by selectUnits
	list       []int         // the selected units, in no order
	at         []int         // by unit: its index in list
	lost       []int         // by workload: pods that selected units contain
	told       [2][]int      // IDs of those to be freed, and to be restored; only used by updateWorld
	counts     []gang.Counts // by workload: pods by leaf; nil: not asked yet
	left       []gang.Counts // likewise, without those that selected units contain
	placements []placement.Placement
	plans      int
	late       bool // the time is over
	byNumbers  bool // the pods of the preemptor are alike and depend on no domain: the numbers tell whether there is a plan

	found    bool
	best     []int // units
	bestCost Cost
}

// newSearch returns a search among the workloads of at most the highest priority. In the World the pods are free of those whose
// priority is below freed.
func newSearch(in Input, w World, budget Budget, freed, highest int32) *search {
	s := &search{Input: in, world: w, budget: budget, demand: placement.NewDemand(in.Problem), ofGang: make([][]int, len(in.Workloads))}
	if s.budget.Plans == 0 {
		s.budget.Plans = defaultPlans
	}
	s.budget.Plan.Skip = 0
	s.makeUnits(freed, highest)
	n := len(s.units)
	s.list = make([]int, 0, n)
	s.selected, s.wanted, s.at = make([]bool, n), make([]bool, n), make([]int, n)
	s.amount, s.running, s.budgets = make([]int64, n), make([]int64, n), make([]int, n)
	for u := range s.units {
		for _, i := range s.units[u].pods {
			pod := s.podOf(u, i)
			s.amount[u] += pod.Amount
			s.running[u] += pod.Running
			s.budgets[u] += len(pod.Budgets)
		}
	}
	s.rankUnits()
	classes := s.demand.Classes()
	s.byNumbers = len(classes) == 1 && w.Kind(classes[0]) == placement.Independent && len(in.Problem.Required) == 0
	return s
}

// makeUnits lists the units of the workloads, and prepares what is kept by pod: see newSearch.
func (s *search) makeUnits(freed, highest int32) {
	n, pods, most := len(s.Workloads), 0, 0
	s.first = make([]int, n+1)
	for i := range s.Workloads {
		if w := &s.Workloads[i]; w.Priority <= highest {
			pods, most = pods+len(w.Pods), max(most, len(w.Pods))
		}
		s.first[i+1] = pods
	}
	numbers := numbersTo(most)
	s.units = make([]unit, 0, pods+n) // more only if there are sub-groups
	s.ids, s.freed, s.inWorld, s.untold = make([]int, 0, pods), make([]int, pods), make([]bool, pods), make([]int, 0, pods)
	s.lost, s.counts, s.left = make([]int, n), make([]gang.Counts, n), make([]gang.Counts, n)
	ends, counts := make([]int, n), gang.Counts{}
	for i := range s.Workloads {
		if w := &s.Workloads[i]; w.Priority <= highest {
			for k := range w.Pods {
				if w.Priority < freed {
					s.inWorld[len(s.ids)], s.untold = true, append(s.untold, len(s.ids))
				}
				s.ids = append(s.ids, w.Pods[k].ID)
			}
			if clear(counts); w.Tree != nil {
				w.count(counts, nil)
			}
			s.units = appendUnits(s.units, i, w, counts, numbers)
		}
		ends[i] = len(s.units)
	}
	all, start := numbersTo(len(s.units)), 0
	for i, end := range ends {
		s.ofGang[i], start = all[start:end], end
	}
}

// freedOf returns, by pod of a workload, how many selected units contain it.
func (s *search) freedOf(w int) []int { return s.freed[s.first[w]:s.first[w+1]] }

// podOf returns a pod of a unit.
func (s *search) podOf(u, pod int) *Pod { return &s.Workloads[s.units[u].workload].Pods[pod] }

// plan makes a plan with the selected units gone. It replaces the plan made before.
func (s *search) plan() bool {
	s.undoPlan()
	if s.isLate() || !s.mayFit() {
		return false
	}
	s.plans++
	var short *placement.Shortfall
	s.placements, short = placement.Minimum(s.Problem, s.world, s.budget.Plan)
	s.late = short != nil && short.Cut
	return short == nil
}

// fits reports whether there is a plan with the selected units gone. It makes none if the numbers suffice.
func (s *search) fits() bool {
	if !s.byNumbers {
		return s.plan()
	}
	s.undoPlan()
	return !s.isLate() && s.mayFit()
}

// isLate reports whether the time is over.
func (s *search) isLate() bool {
	expired := s.budget.Plan.Expired
	s.late = s.late || expired != nil && expired()
	return s.late
}

// mayFit reports whether the numbers allow a plan with the selected units gone.
func (s *search) mayFit() bool {
	s.updateWorld()
	return mayFit(s.demand, s.world)
}

// planAgain makes the plan of the best selection, which was made in time before.
func (s *search) planAgain() bool {
	if s.late && s.budget.Again != nil {
		s.budget.Again()
		s.late = false
	}
	return s.plan()
}

func (s *search) undoPlan() {
	s.world.Undo(len(s.placements))
	s.placements = nil
}

// isSpent reports whether no further plan is to be made.
func (s *search) isSpent() bool { return s.late || s.plans >= s.budget.Plans }

// fitsWithout reports whether there is a plan if all of the units end, also those that may not end together.
func (s *search) fitsWithout(units []int) bool {
	s.selectUnits(nil)
	s.addAll(units)
	return s.plan()
}

// selectUnits selects these units and no others.
func (s *search) selectUnits(units []int) {
	for _, u := range units {
		s.wanted[u] = true
	}
	for i := len(s.list) - 1; i >= 0; i-- { // unselect moves only what was looked at to i
		if u := s.list[i]; !s.wanted[u] {
			s.unselect(u)
		}
	}
	for _, u := range units {
		if s.wanted[u] = false; !s.selected[u] {
			s.add(u)
		}
	}
}

// addAllowed selects the units in order, without those that may not end beside the ones before.
func (s *search) addAllowed(units []int) {
	for _, u := range units {
		s.addIfAllowed(u)
	}
}

// addIfAllowed selects a unit if it may end beside the selected ones.
func (s *search) addIfAllowed(u int) {
	w := s.units[u].workload
	switch {
	case s.lost[w] == 0 && s.units[u].rung > SurplusSubGroup:
		s.add(u)
		return
	case s.units[u].rung == SurplusPod: // no other unit can be a part of it
		isEnough := s.lost[w] < s.units[u].spare // even if all lost pods are of the leaf, it keeps its minimum
		switch {
		case !isEnough && s.units[u].group.Parent() == nil: // all of them are
		case s.freedOf(w)[s.units[u].pods[0]] > 0:
		case isEnough:
			s.add(u)
		default:
			if s.add(u); !s.isAllowed(w) {
				s.remove(u)
			}
		}
		return
	}
	before := s.selectedOf(w)
	s.addInPlaceOfParts(u)
	if !s.isAllowed(w) {
		s.remove(u)
		s.addAll(slices.DeleteFunc(before, func(u int) bool { return s.selected[u] }))
	}
}

// addInPlaceOfParts selects a unit instead of the units that are parts of it. It does nothing if the unit is a part of a
// selected one.
func (s *search) addInPlaceOfParts(u int) {
	if s.units[u].rung == SurplusPod { // it has no parts
		if s.freedOf(s.units[u].workload)[s.units[u].pods[0]] == 0 {
			s.add(u)
		}
		return
	}
	for _, other := range s.selectedOf(s.units[u].workload) {
		switch {
		case s.isPart(u, other):
			return
		case s.isPart(other, u):
			s.remove(other)
		}
	}
	s.add(u)
}

// isPart reports whether all pods of a unit are also pods of another one of the same gang.
func (s *search) isPart(u, of int) bool {
	if s.units[of].rung > SurplusSubGroup {
		return true
	}
	return !slices.ContainsFunc(s.units[u].pods, func(pod int) bool { return !slices.Contains(s.units[of].pods, pod) })
}

// selectedOf returns the selected units of a workload.
func (s *search) selectedOf(w int) []int {
	var units []int
	for _, u := range s.ofGang[w] {
		if s.selected[u] {
			units = append(units, u)
		}
	}
	return units
}

func (s *search) add(u int) { s.addAll([]int{u}) }

// addAll selects units that are not selected: their pods are freed.
func (s *search) addAll(units []int) {
	for _, u := range units {
		s.selected[u], s.at[u] = true, len(s.list)
		s.list = append(s.list, u)
		w := s.units[u].workload
		for _, pod := range s.units[u].pods {
			number := s.first[w] + pod
			if s.freed[number]++; s.freed[number] == 1 {
				s.lost[w]++
				if s.left[w] != nil {
					s.left[w][s.podOf(u, pod).Leaf]--
				}
				s.untold = append(s.untold, number)
			}
		}
	}
}

func (s *search) remove(u int) { s.removeAll([]int{u}) }

// removeAll takes selected units back.
func (s *search) removeAll(units []int) {
	for _, u := range units {
		s.unselect(u)
	}
}

// unselect takes a selected unit back.
func (s *search) unselect(u int) {
	s.selected[u] = false
	last := s.list[len(s.list)-1]
	s.list[s.at[u]], s.at[last] = last, s.at[u]
	s.list = s.list[:len(s.list)-1]
	w := s.units[u].workload
	for _, pod := range s.units[u].pods {
		number := s.first[w] + pod
		if s.freed[number]--; s.freed[number] == 0 {
			s.lost[w]--
			if s.left[w] != nil {
				s.left[w][s.podOf(u, pod).Leaf]++
			}
			s.untold = append(s.untold, number)
		}
	}
}

// leaveWorld restores everything in the World.
func (s *search) leaveWorld() {
	s.undoPlan()
	s.selectUnits(nil)
	s.updateWorld()
}

// updateWorld makes the pods of the selected units free in the World, and no others. It takes back the plan made last unless
// nothing changes.
func (s *search) updateWorld() {
	free, restore := s.told[0][:0], s.told[1][:0]
	for _, number := range s.untold {
		gone := s.freed[number] > 0
		if gone == s.inWorld[number] {
			continue
		}
		if s.inWorld[number] = gone; gone {
			free = append(free, s.ids[number])
		} else {
			restore = append(restore, s.ids[number])
		}
	}
	s.untold, s.told = s.untold[:0], [2][]int{free, restore}
	if len(free)+len(restore) > 0 {
		s.undoPlan()
		s.world.Restore(restore)
		s.world.Free(free)
	}
}

// restoreBesidePlan takes a unit back if its pods have room beside the plan made last.
func (s *search) restoreBesidePlan(u int) {
	if !s.isRestorable(u) {
		return
	}
	var numbers, ids []int
	for _, pod := range s.units[u].pods {
		if number := s.first[s.units[u].workload] + pod; s.freed[number] == 1 {
			numbers, ids = append(numbers, number), append(ids, s.ids[number])
		}
	}
	if s.world.Restore(ids) {
		for _, number := range numbers {
			s.inWorld[number] = false
		}
		s.unselect(u)
	}
}

// isAllowed reports whether the selected units of a workload may end together.
func (s *search) isAllowed(w int) bool {
	if s.lost[w] == 0 || slices.ContainsFunc(s.ofGang[w], func(u int) bool { return s.selected[u] && s.units[u].rung > SurplusSubGroup }) {
		return true
	}
	all, left := s.countsOf(w)
	return MayKeep(s.Workloads[w].Tree, all, left)
}

// countsOf returns the pods of a workload by leaf: all, and those that no selected unit contains.
func (s *search) countsOf(w int) (all, left gang.Counts) {
	if s.counts[w] == nil {
		s.counts[w] = s.Workloads[w].counts(nil)
		s.left[w] = s.Workloads[w].counts(func(pod int) bool { return s.freedOf(w)[pod] > 0 })
	}
	return s.counts[w], s.left[w]
}

// countLeft adds the pods that selected units contain to those that are left (1), or takes them off again (-1).
func (s *search) countLeft(w int, pods []int, sign int) {
	for _, pod := range pods {
		if s.freedOf(w)[pod] > 0 {
			s.left[w][s.Workloads[w].Pods[pod].Leaf] += sign
		}
	}
}

// areAllowed reports whether what is selected of the workloads of the units may end together.
func (s *search) areAllowed(units []int) bool {
	return !slices.ContainsFunc(units, func(u int) bool { return !s.isAllowed(s.units[u].workload) })
}

// selection returns the selected units, ascending.
func (s *search) selection() []int {
	units := slices.Clone(s.list)
	slices.Sort(units)
	return units
}

// workloadsOf returns the workloads of the selected units, ascending.
func (s *search) workloadsOf() []int {
	list := make([]int, 0, len(s.list))
	for _, u := range s.list {
		list = append(list, s.units[u].workload)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// victims returns what the workloads lose by the selected units.
func (s *search) victims() []Victim {
	var victims []Victim
	for _, w := range s.workloadsOf() {
		v := Victim{Workload: w}
		for _, u := range s.selectedOf(w) {
			v.Rung = max(v.Rung, s.units[u].rung)
		}
		for i, p := range s.Workloads[w].Pods {
			if s.freedOf(w)[i] > 0 {
				v.Pods = append(v.Pods, p.ID)
			}
		}
		victims = append(victims, v)
	}
	return victims
}

func (s *search) priorityOf(u int) int32 { return s.Workloads[s.units[u].workload].Priority }

// prioritiesOf returns the priorities of the units, ascending.
func (s *search) prioritiesOf(units []int) []int32 {
	var priorities []int32
	for _, u := range units {
		if p := s.priorityOf(u); len(priorities) == 0 || priorities[len(priorities)-1] != p { // mostly equal
			priorities = append(priorities, p)
		}
	}
	slices.Sort(priorities)
	return slices.Compact(priorities)
}

// violatesAlone reports whether ending only this unit would exceed what a PodDisruptionBudget allows.
func (s *search) violatesAlone(u int) bool {
	if s.budgets[u] == 0 {
		return false
	}
	evictions := map[int]int{}
	for _, pod := range s.units[u].pods {
		for _, b := range s.podOf(u, pod).Budgets {
			if evictions[b]++; evictions[b] > s.Allowed[b] {
				return true
			}
		}
	}
	return false
}
