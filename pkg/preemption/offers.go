// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/muster-project/muster/pkg/placement"
)

// level is a level of the topology, and its domains. The first one has all nodes in one domain.
type level struct {
	name  string
	areas []placement.Area // its domains; elsewhere they are given by their index here
	of    []int32          // by node: domain; none: it is in none
	nodes [][]int32        // by domain
}

// market is what room is priced for: pods of a class in a domain of a level. All three are indexes.
type market struct{ class, level, domain int }

// offer is a way to make room for one more pod on a node.
type offer struct {
	node  int32
	units []int32 // that end
	gain  int     // more pods that fit then in the domain; 0: there is no way
	price price
	skip  int // units on the node that are left out, because others than the numbers refused without them
}

// tally is how many pods fit by numbers, by class, level and domain.
type tally [][][]int

func (s *search) newTally() tally {
	t := make(tally, len(s.classes))
	for c := range t {
		for _, l := range s.levels {
			t[c] = append(t[c], make([]int, len(l.areas)))
		}
	}
	return t
}

func (t tally) at(m market) int { return t[m.class][m.level][m.domain] }

// add adds pods that fit on a node.
func (s *search) add(t tally, class int, node int32, pods int) {
	for l := range s.levels {
		if domain := s.levels[l].of[node]; domain != none {
			t[class][l][domain] += pods
		}
	}
}

// addLevels adds the levels that groups of the Problem require.
func (s *search) addLevels() {
	s.levels = []level{{areas: []placement.Area{0}, of: make([]int32, len(s.on)), nodes: [][]int32{nil}}}
	for node := range s.on {
		s.levels[0].nodes[0] = append(s.levels[0].nodes[0], int32(node))
	}
	for _, name := range s.Problem.Required {
		if s.levelOf(name) > 0 {
			continue
		}
		l := level{name: name, areas: s.world.Areas(name, 0), of: make([]int32, len(s.on))}
		l.nodes = make([][]int32, len(l.areas))
		index := map[placement.Area]int32{}
		for i, area := range l.areas {
			index[area] = int32(i)
		}
		for node := range l.of {
			l.of[node] = none
			if area, ok := s.world.AreaOf(name, 0, s.world.NodeName(node)); ok {
				l.of[node] = index[area]
				l.nodes[index[area]] = append(l.nodes[index[area]], int32(node))
			}
		}
		s.levels = append(s.levels, l)
	}
}

// levelOf returns the index of a level, none if no group requires it.
func (s *search) levelOf(name string) int {
	return slices.IndexFunc(s.levels, func(l level) bool { return l.name == name })
}

// recount brings the numbers up to date.
func (s *search) recount() {
	for _, node := range s.changed {
		s.stale[node] = false
		ended := s.idsOn(0, node, func(number int32) bool { return s.freed[number] && !s.inWorld[number] })
		back := s.idsOn(1, node, func(number int32) bool { return !s.freed[number] && s.inWorld[number] })
		for c, class := range s.classes {
			more := s.world.Slots(class, int(node), ended, back) - s.slots[c][node]
			s.slots[c][node] += more
			s.add(s.fit, c, node, more)
		}
	}
	s.changed = s.changed[:0]
}

// allows reports whether the numbers allow a plan.
func (s *search) allows(t tally) bool {
	return s.demand.MayFit(func(class int) int { return t[slices.Index(s.classes, class)][0][0] }) &&
		!slices.ContainsFunc(s.needs, func(n placement.DomainNeed) bool {
			l := s.levelOf(n.Level)
			rooms := t[slices.Index(s.classes, n.Class)][l]
			if n.Area != 0 {
				i := slices.Index(s.levels[l].areas, n.Area)
				rooms = rooms[i : i+1]
			}
			return n.Pods > 0 && (len(rooms) == 0 || slices.Max(rooms) < n.Pods)
		})
}

// mayFitWithout reports whether the numbers allow a plan if all of these pods end, also those that may not end
// together. Nothing is selected meanwhile.
func (s *search) mayFitWithout(ends func(number int32) bool) bool {
	s.leaveWorld()
	t := s.newTally()
	for node := range s.on {
		ids := s.idsOn(0, int32(node), ends)
		for c, class := range s.classes {
			s.add(t, c, int32(node), s.world.Slots(class, node, ids, nil))
		}
	}
	return s.allows(t)
}

// idsOn returns the IDs of the pods on a node for which a condition is true, until it is called with the same buffer.
func (s *search) idsOn(buffer int, node int32, has func(number int32) bool) []int {
	ids := s.ids[buffer][:0]
	for _, number := range s.on[node] {
		if has(number) {
			ids = append(ids, s.idOf(number))
		}
	}
	s.ids[buffer] = ids
	return ids
}

// listed returns an offer on each node of the domain where there is one, as if nothing was selected, the cheapest for
// each pod that is gained first.
func (s *search) listed(m market) []offer {
	list, known := s.offers[m]
	if known {
		return list
	}
	mark := len(s.journal)
	for _, u := range s.selection() {
		s.leave(u)
	}
	for _, node := range s.levels[m.level].nodes[m.domain] {
		if s.isLate() {
			break
		}
		if o := s.offerOn(m, node, 0); o.gain > 0 {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b offer) int { return s.compareOffers(&a, &b) })
	s.offers[m] = list
	s.rollBack(mark)
	return list
}

func (s *search) compareOffers(a, b *offer) int {
	if order := s.compareRates(&a.price, a.gain, &b.price, b.gain); order != 0 {
		return order
	}
	return cmp.Compare(a.node, b.node)
}

// holds reports whether an offer is as if nothing was selected: nothing is, or is barred, of the workloads on the node,
// and there are no PodDisruptionBudgets.
func (s *search) holds(o *offer) bool {
	return len(s.Allowed) == 0 && o.skip == 0 && !slices.ContainsFunc(s.on[o.node], func(number int32) bool {
		w := s.owner[number]
		return s.lost[w] > 0 || slices.ContainsFunc(s.barred, func(u int32) bool { return s.units[u].workload == int(w) })
	})
}

// offerOn prices one more pod on a node, beside what is selected: by the first units in the order of their loss that
// make room for it, without those of them that are not needed.
func (s *search) offerOn(m market, node int32, skip int) offer {
	s.priced++
	s.recount()
	mark, before, slots, room := len(s.journal), s.total, s.slots[m.class][node], s.fit.at(m)
	o := offer{node: node, units: s.bundles[len(s.bundles):], skip: skip}
	gains := func() bool { s.recount(); return s.slots[m.class][node] > slots }
	units := s.unitsOn(node)
	for _, u := range units[min(skip, len(units)):] {
		if !s.end(u) {
			continue
		}
		if o.units = append(o.units, u); !gains() {
			continue
		}
		for i := len(o.units) - 2; i >= 0; i-- {
			at := len(s.journal)
			if u := o.units[i]; s.selected[u] {
				if s.leave(u); gains() {
					o.units = slices.Delete(o.units, i, i+1)
				} else {
					s.rollBack(at)
				}
			}
		}
		s.recount()
		o.gain, o.price = s.fit.at(m)-room, s.total.plus(&before, -1)
		s.bundles = append(s.bundles, o.units...)
		o.units = slices.Clip(s.bundles[len(s.bundles)-len(o.units):])
		break
	}
	s.rollBack(mark)
	return o
}

// unitsOn returns the units that may end for room on a node, the least loss first, until it is called again.
func (s *search) unitsOn(node int32) []int32 {
	units := s.around[:0]
	for _, number := range s.on[node] {
		if !s.freed[number] && s.inner[number] != none {
			if u := s.ending(s.inner[number]); u != none && !slices.Contains(units, u) {
				units = append(units, u)
			}
		}
	}
	slices.SortFunc(units, s.compareUnits)
	s.around = units
	return units
}

// queue contains offers, the cheapest for each pod that is gained first.
type queue struct {
	*search
	offers []offer
}

func (q *queue) Len() int           { return len(q.offers) }
func (q *queue) Less(i, k int) bool { return q.compareOffers(&q.offers[i], &q.offers[k]) < 0 }
func (q *queue) Swap(i, k int)      { q.offers[i], q.offers[k] = q.offers[k], q.offers[i] }
func (q *queue) Push(x any)         { q.offers = append(q.offers, x.(offer)) }
func (q *queue) Pop() any {
	last := q.offers[len(q.offers)-1]
	q.offers = q.offers[:len(q.offers)-1]
	return last
}

// cover ends the cheapest units, offer by offer, until so many pods fit in the domain by numbers. It returns false if
// this is not reached, or not below the ceiling. An offer whose turn it is, and that does not hold, or gains more than
// is missing, is priced again, and waits in the queue if it has become dearer.
func (s *search) cover(m market, want int) bool {
	list, q := s.listed(m), &queue{search: s}
	s.recount()
	missing := want - s.fit.at(m)
	enqueue := func(o offer) {
		if o.gain = min(o.gain, missing); o.gain > 0 {
			heap.Push(q, o)
		}
	}
	for missing > 0 {
		var o offer
		switch {
		case s.isLate() || len(list)+q.Len() == 0:
			return false
		case q.Len() == 0 || len(list) > 0 && s.compareOffers(&list[0], &q.offers[0]) <= 0:
			o, list = list[0], list[1:]
		default:
			o = heap.Pop(q).(offer)
		}
		before, gain := o.price, o.gain
		if !s.holds(&o) {
			o = s.offerOn(m, o.node, o.skip)
		}
		if o.gain = min(o.gain, missing); o.gain <= 0 {
			continue
		}
		if s.compareRates(&o.price, o.gain, &before, gain) > 0 {
			heap.Push(q, o)
			continue
		}
		mark := len(s.journal)
		for _, u := range o.units {
			s.end(u)
		}
		changed := slices.Clone(s.changed)
		if s.probes && !s.takes(m.class, o.node) {
			s.rollBack(mark)
			enqueue(s.offerOn(m, o.node, o.skip+1))
			continue
		}
		s.recount()
		missing = want - s.fit.at(m)
		if s.ceiling != nil && s.compareRates(&s.total, 1, s.ceiling, 1) > 0 {
			return false
		}
		for _, node := range changed {
			if int(s.levels[m.level].of[node]) == m.domain {
				enqueue(s.offerOn(m, node, 0))
			}
		}
	}
	return true
}

// takes asks the World for one more pod on a node.
func (s *search) takes(class int, node int32) bool {
	s.undoPlan()
	s.updateWorld()
	_, ok := s.world.Place(s.classes[class], "="+s.world.NodeName(int(node)))
	if ok {
		s.world.Undo(1)
	}
	return ok
}
