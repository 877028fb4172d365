// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"

	"github.com/muster-project/muster/pkg/placement"
)

// plan makes a plan with the selected units gone. It replaces the plan made before.
func (s *search) plan() bool {
	s.undoPlan()
	s.plans++
	var short *placement.Shortfall
	s.placements, short = placement.Minimum(s.Problem, s.world, s.budget.Plan)
	s.late = s.late || short != nil && short.Cut
	return short == nil
}

func (s *search) undoPlan() {
	s.world.Undo(len(s.placements))
	s.placements = nil
}

// spent reports whether no further plan is to be made.
func (s *search) spent() bool { return s.late || s.plans >= s.budget.Plans }

// cut reports whether a search without a result was cut short.
func (s *search) cut() bool { return s.spent() }

// fitsWithout reports whether there is a plan if all of the units end, also those that may not end together.
func (s *search) fitsWithout(units []int) bool {
	s.selectUnits(units)
	return s.plan()
}

// selectUnits selects these units and no others.
func (s *search) selectUnits(units []int) {
	s.undoPlan()
	wanted := make([]bool, len(s.units))
	for _, u := range units {
		wanted[u] = true
	}
	for u, is := range s.selected {
		if is && !wanted[u] {
			s.remove(u)
		}
	}
	for _, u := range units {
		if !s.selected[u] {
			s.add(u)
		}
	}
}

// selectAllowed selects the units in order, without those that may not end beside the ones before.
func (s *search) selectAllowed(units []int) {
	s.selectUnits(nil)
	for _, u := range units {
		s.addIfAllowed(u)
	}
}

// addIfAllowed selects a unit if it may end beside the selected ones.
func (s *search) addIfAllowed(u int) {
	before := s.selectedOf(s.units[u].workload)
	s.addInPlaceOfParts(u)
	if s.isAllowed(s.units[u].workload) {
		return
	}
	s.remove(u)
	for _, part := range before {
		if !s.selected[part] {
			s.add(part)
		}
	}
}

// addInPlaceOfParts selects a unit instead of the units that are parts of it. It does nothing if the unit is a part of a
// selected one.
func (s *search) addInPlaceOfParts(u int) {
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
	return !slices.ContainsFunc(s.units[u].pods, func(pod int) bool { return !slices.Contains(s.units[of].pods, pod) })
}

// selectedOf returns the selected units of a workload.
func (s *search) selectedOf(w int) []int {
	return slices.DeleteFunc(slices.Clone(s.ofGang[w]), func(u int) bool { return !s.selected[u] })
}

// add selects a unit: its pods are freed.
func (s *search) add(u int) {
	s.undoPlan()
	s.selected[u] = true
	s.world.Free(s.idsOf(u, 0))
	for _, pod := range s.units[u].pods {
		s.freed[s.units[u].workload][pod]++
	}
}

// remove takes a unit back.
func (s *search) remove(u int) {
	s.undoPlan()
	s.selected[u] = false
	s.world.Restore(s.idsOf(u, 1))
	for _, pod := range s.units[u].pods {
		s.freed[s.units[u].workload][pod]--
	}
}

// idsOf returns the IDs of the pods of a unit that so many selected units contain.
func (s *search) idsOf(u, times int) []int {
	var ids []int
	w := s.units[u].workload
	for _, pod := range s.units[u].pods {
		if s.freed[w][pod] == times {
			ids = append(ids, s.Workloads[w].Pods[pod].ID)
		}
	}
	return ids
}

// isAllowed reports whether the selected units of a workload may end together.
func (s *search) isAllowed(w int) bool {
	selected := s.selectedOf(w)
	return len(selected) == 0 ||
		slices.ContainsFunc(selected, func(u int) bool { return s.units[u].rung > SurplusSubGroup }) ||
		s.Workloads[w].mayLose(func(pod int) bool { return s.freed[w][pod] > 0 })
}

// selection returns the selected units.
func (s *search) selection() []int {
	units := []int{}
	for u, is := range s.selected {
		if is {
			units = append(units, u)
		}
	}
	return units
}

// victims returns what the workloads lose by the selected units.
func (s *search) victims() []Victim {
	var victims []Victim
	for w := range s.Workloads {
		v := Victim{Workload: w}
		for _, u := range s.ofGang[w] {
			if s.selected[u] {
				v.Rung = max(v.Rung, s.units[u].rung)
			}
		}
		for i, p := range s.Workloads[w].Pods {
			if s.freed[w][i] > 0 {
				v.Pods = append(v.Pods, p.ID)
			}
		}
		if len(v.Pods) > 0 {
			victims = append(victims, v)
		}
	}
	return victims
}

func (s *search) unitsWhere(is func(u int) bool) []int {
	var units []int
	for u := range s.units {
		if is(u) {
			units = append(units, u)
		}
	}
	return units
}

func (s *search) priorityOf(u int) int32 { return s.Workloads[s.units[u].workload].Priority }

// prioritiesOf returns the priorities of the units, ascending.
func (s *search) prioritiesOf(units []int) []int32 {
	var priorities []int32
	for _, u := range units {
		priorities = append(priorities, s.priorityOf(u))
	}
	slices.Sort(priorities)
	return slices.Compact(priorities)
}

// violatesAlone reports whether ending only this unit would exceed what a PodDisruptionBudget allows.
func (s *search) violatesAlone(u int) bool {
	evictions := map[int]int{}
	for _, pod := range s.podsOf(u) {
		for _, b := range pod.Budgets {
			if evictions[b]++; evictions[b] > s.allowed[b] {
				return true
			}
		}
	}
	return false
}

// podsOf returns the pods of a unit.
func (s *search) podsOf(u int) []Pod {
	pods := make([]Pod, len(s.units[u].pods))
	for i, pod := range s.units[u].pods {
		pods[i] = s.Workloads[s.units[u].workload].Pods[pod]
	}
	return pods
}

func (s *search) amountOf(u int) int64 {
	var sum int64
	for _, p := range s.podsOf(u) {
		sum += p.Amount
	}
	return sum
}

func (s *search) runningOf(u int) int64 {
	var sum int64
	for _, p := range s.podsOf(u) {
		sum += p.Running
	}
	return sum
}

// budgetsOf returns how many evictions of a unit concern a PodDisruptionBudget.
func (s *search) budgetsOf(u int) int {
	n := 0
	for _, p := range s.podsOf(u) {
		n += len(p.Budgets)
	}
	return n
}
