// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"math"
	"slices"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

const none = -1

// search is the state of FindVictims: the selected units, what they cost, how many pods fit by numbers with them gone,
// and the plan made last. The selected units have no pod in common, and may end together at any time. The World is
// told which pods are free only when it is asked.
type search struct {
	Input
	world   World
	budget  Budget
	demand  *placement.Demand
	classes []int                  // with waiting pods
	needs   []placement.DomainNeed // of required levels
	need    int64                  // amount that the preemptor needs, in the unit of Pod.Amount

	units  []unit
	losses []price // by unit; each eviction that concerns a PodDisruptionBudget counts as a violation
	outer  []int32 // by unit: the smallest one around it, none: there is none
	limit  []int32 // by unit: its limit, none: there is none
	spare  []int   // by limit: how many of its units may still be selected

	first []int     // by workload: the number of its first pod; the others follow
	owner []int32   // by number of a pod: workload
	inner []int32   // by number of a pod: the smallest unit that contains it, none: there is none
	node  []int32   // by number of a pod
	on    [][]int32 // by node: numbers of its pods

	selected  []bool  // by unit
	at        []int   // by unit: its index in list
	list      []int32 // the selected units, in no order
	journal   []int32 // units in the order in which they were selected; the complement of one that was taken back
	freed     []bool  // by number of a pod: a selected unit contains it
	inWorld   []bool  // by number of a pod: it is free in the World
	untold    []int32 // numbers of the pods of which the World may have to be told
	lost      []int   // by workload: pods that selected units contain
	evictions []int   // by PodDisruptionBudget
	total     price

	fit     tally
	slots   [][]int // by index in classes, then by node: pods that fit by numbers
	levels  []level
	ids     [2][]int // only used by idsOn
	around  []int32  // only used by unitsOn
	bundles []int32  // the units of all offers
	changed []int32  // nodes whose slots are not up to date
	stale   []bool   // by node: it is among changed

	placements []placement.Placement
	short      *placement.Shortfall // of the plan made last
	plans      int
	priced     int  // offers
	late       bool // the time is over
	byNumbers  bool // the numbers tell whether there is a plan
	probes     bool // the numbers promise too much: nodes are asked

	// Which units may end at present.
	highest int32   // priority
	barred  []int32 // units
	kept    []bool  // by unit: settle does not leave it out
	proven  bool    // it is certain that there are no victims of these units if none were found

	offers map[market][]offer // as listed

	found     bool
	best      []int32 // units
	bestCost  Cost
	bestPrice price
	ceiling   *price // cover ends nobody beyond it; nil: there is none
}

// newSearch returns a search without a selection.
func newSearch(in Input, w World, budget Budget) *search {
	s := &search{
		Input: in, world: w, budget: budget, demand: placement.NewDemand(in.Problem), highest: math.MaxInt32,
	}
	if s.budget.Plans == 0 {
		s.budget.Plans = defaultPlans
	}
	s.budget.Plan.Skip = 0
	s.classes = s.demand.Classes()
	s.needs = slices.DeleteFunc(placement.DomainNeeds(in.Problem, w), func(n placement.DomainNeed) bool {
		return n.Area != 0 && !slices.Contains(w.Areas(n.Level, 0), n.Area) // the part of a domain that is in a wider one
	})
	s.evictions, s.lost = make([]int, len(in.Allowed)), make([]int, len(in.Workloads))
	for _, class := range s.classes {
		s.need = max(s.need, counted(w.Amount(class)))
	}
	s.need *= int64(s.demand.Fewest())
	required := len(in.Problem.Required)
	s.byNumbers = len(s.classes) == 1 && w.Kind(s.classes[0]) == placement.Independent &&
		(required == 0 || required == 1 && in.Problem.Required[""] != "" && len(s.needs) == 1)
	s.probes = slices.ContainsFunc(s.classes, func(class int) bool { return w.Kind(class) != placement.Independent })
	s.numberPods()
	s.addLevels()
	s.fit, s.changed = s.newTally(), slices.Clone(s.levels[0].nodes[0])
	s.recount()
	return s
}

// numberPods numbers the pods and notes their nodes.
func (s *search) numberPods() {
	s.first = make([]int, len(s.Workloads)+1)
	for i := range s.Workloads {
		s.first[i+1] = s.first[i] + len(s.Workloads[i].Pods)
	}
	n := s.first[len(s.Workloads)]
	s.owner, s.node = make([]int32, 0, n), make([]int32, 0, n)
	s.freed, s.inWorld = make([]bool, n), make([]bool, n)
	perNode := make([]int32, s.world.CountNodes())
	for i := range s.Workloads {
		for k := range s.Workloads[i].Pods {
			node := s.world.NodeOf(s.Workloads[i].Pods[k].ID)
			s.owner, s.node = append(s.owner, int32(i)), append(s.node, int32(node))
			perNode[node]++
		}
	}
	s.on, s.stale = make([][]int32, len(perNode)), make([]bool, len(perNode))
	for range s.classes {
		s.slots = append(s.slots, make([]int, len(s.on)))
	}
	all := make([]int32, n)
	for node, k := range perNode {
		s.on[node], all = all[:0:k], all[k:]
	}
	for number, node := range s.node {
		s.on[node] = append(s.on[node], int32(number))
	}
}

// makeUnits lists the units.
func (s *search) makeUnits() {
	n, most := len(s.freed), 0
	for i := range s.Workloads {
		most = max(most, len(s.Workloads[i].Pods))
	}
	numbers := numbersTo(most)
	units := n + len(s.Workloads) // more only if there are sub-groups
	s.units, s.losses = make([]unit, 0, units), make([]price, 0, units)
	s.outer, s.limit = make([]int32, 0, units), make([]int32, 0, units)
	s.inner = make([]int32, n)
	for i := range s.inner {
		s.inner[i] = none
	}
	counts, known := gang.Counts{}, map[*gang.Group]int32{}
	for i := range s.Workloads {
		w, from := &s.Workloads[i], len(s.units)
		if clear(counts); w.Tree != nil {
			w.count(counts)
		}
		s.units = appendUnits(s.units, i, w, counts, numbers)
		ending := slices.DeleteFunc(s.units[from:], func(u unit) bool {
			return slices.ContainsFunc(u.pods, func(pod int) bool { return w.Pods[pod].Kept })
		})
		s.units = s.units[:from+len(ending)]
		s.addLosses(from)
		s.addLimits(from, counts, known)
		s.nestUnits(from)
	}
	n = len(s.units)
	s.selected, s.kept, s.at = make([]bool, n), make([]bool, n), make([]int, n)
}

// addLosses notes what is lost with the units of one workload.
func (s *search) addLosses(from int) {
	for u := from; u < len(s.units); u++ {
		l := price{pods: int32(len(s.units[u].pods))}
		if s.units[u].rung >= PlainPod {
			l.ended = 1
		}
		for _, i := range s.units[u].pods {
			pod := &s.Workloads[s.units[u].workload].Pods[i]
			l.amount += counted(pod.Amount)
			l.running += counted(pod.Running)
			l.violations += int32(len(pod.Budgets))
			l.grace[graceStep(pod.Grace)]++
		}
		s.losses = append(s.losses, l)
	}
}

// addLimits notes the limits of the units of one workload. known is only used here.
func (s *search) addLimits(from int, counts gang.Counts, known map[*gang.Group]int32) {
	var last *gang.Group
	clear(known)
	for u := from; u < len(s.units); u++ {
		group := s.units[u].limit(counts)
		if group == nil {
			s.limit = append(s.limit, none)
			continue
		}
		if group != last { // neighbours mostly have the same limit
			if _, ok := known[group]; !ok {
				known[group] = int32(len(s.spare))
				s.spare = append(s.spare, spareOf(group, counts))
			}
			last = group
		}
		s.limit = append(s.limit, known[group])
	}
}

// nestUnits notes which of the units of one workload contains which: those around others come last, and of sub-groups
// first.
func (s *search) nestUnits(from int) {
	s.outer = append(s.outer, make([]int32, len(s.units)-from)...)
	nest := func(u int) {
		first := s.first[s.units[u].workload]
		s.outer[u] = none
		for k, pod := range s.units[u].pods {
			if k == 0 {
				s.outer[u] = s.inner[first+pod]
			}
			s.inner[first+pod] = int32(u)
		}
	}
	for rung := WholeGang; rung >= SurplusPod; rung-- {
		for u := from; u < len(s.units); u++ {
			if s.units[u].rung == rung {
				nest(u)
			}
		}
	}
}

// mayEnd reports whether a unit may end at present, beside the selected ones.
func (s *search) mayEnd(u int32) bool {
	return s.priorityOf(u) <= s.highest && (s.limit[u] == none || s.spare[s.limit[u]] > 0)
}

// end selects a unit or, if it may not end beside the selected ones, the smallest unit around it that may. It returns
// false if there is none.
func (s *search) end(u int32) bool {
	for a := u; a != none; a = s.outer[a] {
		if s.selected[a] {
			return true
		}
	}
	if u = s.ending(u); u == none {
		return false
	}
	s.takeInPlaceOfParts(u)
	return true
}

// ending returns the smallest unit around the given one, or this, that may end; none: there is none.
func (s *search) ending(u int32) int32 {
	for ; u != none && !slices.Contains(s.barred, u); u = s.outer[u] {
		if s.mayEnd(u) {
			return u
		}
	}
	return none
}

// takeInPlaceOfParts selects a unit instead of the selected units that are parts of it.
func (s *search) takeInPlaceOfParts(u int32) {
	first := s.first[s.units[u].workload]
	for _, pod := range s.units[u].pods {
		if s.freed[first+pod] {
			part := s.inner[first+pod]
			for !s.selected[part] {
				part = s.outer[part]
			}
			s.leave(part)
		}
	}
	s.take(u)
}

// take selects a unit, leave takes it back.
func (s *search) take(u int32) {
	s.selected[u], s.at[u] = true, len(s.list)
	s.list, s.journal = append(s.list, u), append(s.journal, u)
	s.movePods(u, 1)
}

func (s *search) leave(u int32) {
	s.selected[u] = false
	last := s.list[len(s.list)-1]
	s.list[s.at[u]], s.at[last] = last, s.at[u]
	s.list, s.journal = s.list[:len(s.list)-1], append(s.journal, ^u)
	s.movePods(u, -1)
}

// movePods counts the pods of a unit as freed (1) or not (-1).
func (s *search) movePods(u int32, sign int) {
	if s.limit[u] != none {
		s.spare[s.limit[u]] -= sign
	}
	n := s.units[u].workload
	w, first, before, l := &s.Workloads[n], s.first[n], s.lost[n], s.losses[u]
	l.violations, l.ended = 0, 0
	for _, i := range s.units[u].pods {
		number, pod := first+i, &w.Pods[i]
		s.freed[number] = sign > 0
		s.untold = append(s.untold, int32(number))
		for _, b := range pod.Budgets {
			over := max(0, s.evictions[b]-max(0, s.Allowed[b]))
			s.evictions[b] += sign
			l.violations += int32(sign * (max(0, s.evictions[b]-max(0, s.Allowed[b])) - over))
		}
		if node := s.node[number]; !s.stale[node] {
			s.stale[node] = true
			s.changed = append(s.changed, node)
		}
	}
	s.lost[n] += sign * len(s.units[u].pods)
	if s.lost[n] == len(w.Pods) || before == len(w.Pods) {
		l.ended = 1
	}
	s.total = s.total.plus(&l, int32(sign))
}

// rollBack reverses what was done since the journal had this length.
func (s *search) rollBack(mark int) {
	for len(s.journal) > mark {
		u := s.journal[len(s.journal)-1]
		if u >= 0 {
			s.leave(u)
		} else {
			s.take(^u)
		}
		s.journal = s.journal[:len(s.journal)-2]
	}
}

// selectUnits selects these units and no others.
func (s *search) selectUnits(units []int32) {
	for len(s.list) > 0 {
		s.leave(s.list[len(s.list)-1])
	}
	for _, u := range units {
		s.take(u)
	}
	s.journal = s.journal[:0]
}

// selection returns the selected units, ascending.
func (s *search) selection() []int32 {
	units := slices.Clone(s.list)
	slices.Sort(units)
	return units
}

// partsOf returns the largest units inside of a unit.
func (s *search) partsOf(u int32) []int32 {
	var parts []int32
	first := s.first[s.units[u].workload]
	for _, pod := range s.units[u].pods {
		part := s.inner[first+pod]
		if part == u {
			continue
		}
		for s.outer[part] != u {
			part = s.outer[part]
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	return slices.Compact(parts)
}

// leaveWorld restores everything in the World.
func (s *search) leaveWorld() {
	s.undoPlan()
	s.selectUnits(nil)
	s.updateWorld()
}

// updateWorld makes the pods of the selected units free in the World, and no others. It takes back the plan made last
// unless nothing changes.
func (s *search) updateWorld() {
	var free, restore []int
	for _, number := range s.untold {
		gone := s.freed[number]
		if gone == s.inWorld[number] {
			continue
		}
		if s.inWorld[number] = gone; gone {
			free = append(free, s.idOf(number))
		} else {
			restore = append(restore, s.idOf(number))
		}
	}
	s.untold = s.untold[:0]
	if len(free)+len(restore) > 0 {
		s.undoPlan()
		s.world.Restore(restore)
		s.world.Free(free)
	}
}

func (s *search) idOf(number int32) int {
	w := s.owner[number]
	return s.Workloads[w].Pods[int(number)-s.first[w]].ID
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
	rungs := map[int]Rung{}
	for _, u := range s.list {
		w := s.units[u].workload
		rungs[w] = max(rungs[w], s.units[u].rung)
	}
	var victims []Victim
	for _, w := range s.workloadsOf() {
		v := Victim{Workload: w, Rung: rungs[w]}
		for i, p := range s.Workloads[w].Pods {
			if s.freed[s.first[w]+i] {
				v.Pods = append(v.Pods, p.ID)
			}
		}
		victims = append(victims, v)
	}
	return victims
}

func (s *search) priorityOf(u int32) int32 { return s.Workloads[s.units[u].workload].Priority }
