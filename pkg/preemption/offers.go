// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/muster-project/muster/pkg/placement"
)

// market is what a node is priced for: one more pod of a class. What is gained elsewhere counts in the node's domain
// of the level; "": anywhere.
type market struct {
	class int // index in search.classes
	level string
}

// offer is the cheapest way that was found to make room for one more pod on a node.
type offer struct {
	node  int32
	units []int32 // that end
	gain  int     // more pods that fit then, on all nodes that count; 0: there is no way
	price price
	skip  int // units on the node that are left out, because others than the numbers refused without them
	known bool
}

// tally is how many pods fit by numbers.
type tally struct {
	sums  []int   // by index in search.classes
	rooms [][]int // by index in search.needs, then by index of an area: pods of the need's class
}

func (s *search) newTally() tally {
	t := tally{sums: make([]int, len(s.classes))}
	for _, n := range s.needs {
		t.rooms = append(t.rooms, make([]int, len(s.world.Areas(n.Level, 0))))
	}
	return t
}

// add adds pods that fit on a node.
func (s *search) add(t *tally, class, node, pods int) {
	t.sums[class] += pods
	for k, n := range s.needs {
		if area := s.areasOf(n.Level)[node]; area != none && n.Class == s.classes[class] {
			t.rooms[k][area] += pods
		}
	}
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
			s.add(&s.fit, c, int(node), more)
		}
	}
	s.changed = s.changed[:0]
}

// areasOf returns, by node, the index of its domain of a level in World.Areas; none: it is in none.
func (s *search) areasOf(level string) []int32 {
	if list, known := s.areas[level]; known {
		return list
	}
	index, list := map[placement.Area]int32{}, make([]int32, len(s.on))
	for i, area := range s.world.Areas(level, 0) {
		index[area] = int32(i)
	}
	s.areas[level], s.members[level] = list, make([][]int32, len(index))
	for node := range list {
		list[node] = none
		if area, ok := s.world.AreaOf(level, 0, s.world.NodeName(node)); ok {
			list[node] = index[area]
			s.members[level][index[area]] = append(s.members[level][index[area]], int32(node))
		}
	}
	return list
}

// nodesIn returns the nodes of a domain, by its index in World.Areas.
func (s *search) nodesIn(level string, area int) []int32 {
	s.areasOf(level)
	return s.members[level][area]
}

// allows reports whether the numbers allow a plan.
func (s *search) allows(t tally) bool {
	if !s.demand.MayFit(func(class int) int { return t.sums[slices.Index(s.classes, class)] }) {
		return false
	}
	for k, n := range s.needs {
		most := 0
		for i, area := range s.world.Areas(n.Level, 0) {
			if n.Area == 0 || n.Area == area {
				most = max(most, t.rooms[k][i])
			}
		}
		if most < n.Pods {
			return false
		}
	}
	return true
}

// mayFitWithout reports whether the numbers allow a plan if all of these pods end, also those that may not end
// together. Nothing is selected meanwhile.
func (s *search) mayFitWithout(ends func(number int32) bool) bool {
	s.leaveWorld()
	t := s.newTally()
	for node := range s.on {
		ids := s.idsOn(0, int32(node), ends)
		for c, class := range s.classes {
			s.add(&t, c, node, s.world.Slots(class, node, ids, nil))
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

// offerOn prices one more pod on a node, beside what is selected. What is known holds as long as nothing is selected,
// or barred, of the workloads there, and PodDisruptionBudgets allow as much as before.
func (s *search) offerOn(m market, node int32, skip int) offer {
	isTouched := func(number int32) bool { return s.lost[s.owner[number]] > 0 || s.bars[s.owner[number]] > 0 }
	isUntouched := skip == 0 && (len(s.list) == 0 || len(s.Allowed) == 0) && !slices.ContainsFunc(s.on[node], isTouched)
	if s.offers[m] == nil {
		s.offers[m] = make([]offer, len(s.on))
	}
	if cached := &s.offers[m][node]; isUntouched && cached.known {
		return *cached
	}
	units := s.unitsOn(node)
	o := offer{node: node}
	if skip < len(units) {
		o = s.bundle(m, node, units[skip:])
		if len(o.units) > 1 { // few workloads: those that free the most come first
			slices.SortStableFunc(units, func(a, b int32) int {
				return cmp.Compare(s.amountOn(b, node), s.amountOn(a, node))
			})
			if few := s.bundle(m, node, units[skip:]); few.gain > 0 && s.compareRates(few.price, 1, o.price, 1) < 0 {
				o = few
			}
		}
	}
	o.skip, o.known = skip, true
	if isUntouched {
		s.offers[m][node] = o
	}
	return o
}

// unitsOn returns the units that may end for room on a node, the least loss first.
func (s *search) unitsOn(node int32) []int32 {
	var units []int32
	for _, number := range s.on[node] {
		if !s.freed[number] && s.inner[number] != none {
			if u := s.ending(s.inner[number]); u != none && !slices.Contains(units, u) {
				units = append(units, u)
			}
		}
	}
	slices.SortFunc(units, s.compareUnits)
	return units
}

// amountOn returns the amount that a unit holds on a node.
func (s *search) amountOn(u, node int32) int64 {
	w, first := s.units[u].workload, s.first[s.units[u].workload]
	sum := int64(0)
	for _, pod := range s.units[u].pods {
		if s.node[first+pod] == node {
			sum += counted(s.Workloads[w].Pods[pod].Amount)
		}
	}
	return sum
}

// bundle prices one more pod on a node by the first units in order that make room for it, without those of them that
// are not needed.
func (s *search) bundle(m market, node int32, units []int32) offer {
	s.bundles++
	s.recount()
	mark, before, slots, room := len(s.journal), s.total, s.slots[m.class][node], s.roomAround(m, node)
	o := offer{node: node}
	gains := func() bool { s.recount(); return s.slots[m.class][node] > slots }
	for _, u := range units {
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
		o.gain, o.price = s.roomAround(m, node)-room, s.total.less(before)
		break
	}
	s.rollBack(mark)
	s.recount()
	return o
}

// roomAround returns how many pods fit by numbers on the nodes that count for a market, seen from one of them.
func (s *search) roomAround(m market, node int32) int {
	if m.level == "" {
		return s.fit.sums[m.class]
	}
	area := s.areasOf(m.level)[node]
	if area == none {
		return s.slots[m.class][node]
	}
	return s.roomOn(m.class, s.nodesIn(m.level, int(area)))
}

// roomOn returns how many pods of a class fit by numbers on nodes.
func (s *search) roomOn(class int, nodes []int32) int {
	if len(nodes) == len(s.on) {
		return s.fit.sums[class]
	}
	sum := 0
	for _, node := range nodes {
		sum += s.slots[class][node]
	}
	return sum
}

// queue contains offers, the cheapest for each pod that is gained first. Of an offer no more pods count than were
// missing when it was added.
type queue struct {
	*search
	offers []offer
}

func (q *queue) Len() int { return len(q.offers) }
func (q *queue) Less(i, k int) bool {
	a, b := &q.offers[i], &q.offers[k]
	return cmp.Or(q.compareRates(a.price, a.gain, b.price, b.gain), cmp.Compare(a.node, b.node)) < 0
}
func (q *queue) Swap(i, k int) { q.offers[i], q.offers[k] = q.offers[k], q.offers[i] }
func (q *queue) Push(x any)    { q.offers = append(q.offers, x.(offer)) }
func (q *queue) Pop() any {
	last := q.offers[len(q.offers)-1]
	q.offers = q.offers[:len(q.offers)-1]
	return last
}

// cover ends the cheapest units, offer by offer, until so many pods fit on the nodes by numbers. It returns false if
// this is not reached, or the ceiling is.
func (s *search) cover(m market, nodes []int32, want int) bool {
	q := &queue{search: s, offers: slices.Grow(s.queued[:0], len(nodes))}
	defer func() { s.queued = q.offers }()
	s.recount()
	missing := want - s.roomOn(m.class, nodes)
	price := func(node int32, skip int) offer {
		o := s.offerOn(m, node, skip)
		o.gain = min(o.gain, missing)
		return o
	}
	for _, node := range nodes {
		if s.isLate() {
			return false
		}
		if o := price(node, 0); o.gain > 0 {
			q.offers = append(q.offers, o)
		}
	}
	heap.Init(q)
	for missing > 0 {
		if q.Len() == 0 || s.isLate() {
			return false
		}
		old := heap.Pop(q).(offer)
		o := price(old.node, old.skip)
		switch {
		case o.gain <= 0:
			continue
		case q.Len() > 0 && s.compareRates(o.price, o.gain, old.price, old.gain) > 0:
			heap.Push(q, o)
			continue
		}
		mark := len(s.journal)
		for _, u := range o.units {
			s.end(u)
		}
		touched := slices.Clone(s.changed)
		if s.probes && !s.takes(m.class, o.node) {
			s.rollBack(mark)
			s.recount()
			if again := price(o.node, o.skip+1); again.gain > 0 {
				heap.Push(q, again)
			}
			continue
		}
		s.recount()
		missing = want - s.roomOn(m.class, nodes)
		if s.ceiling != nil && s.compareRates(s.total, 1, *s.ceiling, 1) > 0 {
			return false
		}
		for _, node := range touched {
			if len(nodes) < len(s.on) && !slices.Contains(nodes, node) {
				continue
			}
			if o := price(node, 0); o.gain > 0 {
				heap.Push(q, o)
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
