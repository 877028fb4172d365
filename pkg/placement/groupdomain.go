// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// derivation identifies a class that World.Within returned.
type derivation struct {
	class int32
	area  Area
}

// classWithin returns the class of a Problem's class within an area that setArea has set.
func (pl *planner) classWithin(class int32, area Area) int32 {
	if area == 0 {
		return class
	}
	return pl.derived[derivation{class, area}]
}

// baseOf returns the class of the Problem from which a class was derived.
func (pl *planner) baseOf(number int32) int {
	if base, ok := pl.bases[number]; ok {
		return int(base)
	}
	return int(number)
}

// placedLike returns how many pods of a class of the Problem are on the stack, within whatever area.
func (pl *planner) placedLike(class int) int {
	n := pl.kinds[class].placed
	for number, base := range pl.bases {
		if int(base) == class {
			n += pl.kinds[number].placed
		}
	}
	return n
}

// deriveClass asks the World for the class within an area.
func (pl *planner) deriveClass(base int32, area Area) int32 {
	if area == 0 {
		return base
	}
	key := derivation{base, area}
	if number, ok := pl.derived[key]; ok {
		return number
	}
	number := int32(pl.world.Within(int(base), area))
	if pl.derived == nil {
		pl.derived, pl.bases = map[derivation]int32{}, map[int32]int32{}
	}
	pl.derived[key], pl.bases[number] = number, base
	for len(pl.kinds) <= int(number) {
		pl.kinds = append(pl.kinds, class{})
	}
	pl.initClass(int(number), &pl.kinds[number])
	return number
}

// setArea restricts all pods below a group to an area. Groups with a required level below it are open then.
func (pl *planner) setArea(g int32, area Area) {
	at := &pl.groups[g]
	at.area = area
	if at.isLeaf() && len(at.pods) > 0 {
		if at.mixed {
			for i := range at.pods {
				pl.deriveClass(int32(at.pods[i].Class), area)
			}
		} else {
			at.class = pl.deriveClass(int32(at.pods[0].Class), area)
		}
	}
	for k := at.first; k < at.end; k++ {
		pl.groups[k].open = pl.groups[k].required != ""
		pl.setArea(k, area)
	}
}

// areaAbove returns the area of the group above, 0 for the root.
func (pl *planner) areaAbove(g int32) Area {
	if parent := pl.groups[g].parent; parent >= 0 {
		return pl.groups[parent].area
	}
	return 0
}

// setDomain chooses the domain of an open group.
func (pl *planner) setDomain(g int32, area Area) {
	pl.groups[g].open = false
	pl.setArea(g, area)
	pl.domains = append(pl.domains, g)
}

// dropDomain takes back setDomain, and all its later calls.
func (pl *planner) dropDomain(g int32) { pl.dropDomains(slices.Index(pl.domains, g)) }

// dropDomains takes back all calls of setDomain but the first n.
func (pl *planner) dropDomains(n int) {
	for len(pl.domains) > n {
		g := pl.domains[len(pl.domains)-1]
		pl.domains = pl.domains[:len(pl.domains)-1]
		pl.groups[g].open = true
		pl.setArea(g, pl.areaAbove(g))
	}
}

// pinGroups sets the domains of groups with a required level by the nodes of the pods that run. Groups without such
// pods are open. Nodes that do not exist say nothing about the domain: their pods will be deleted soon.
func (pl *planner) pinGroups(nodes map[string][]string) {
	below := pl.nodesBelow(nodes, func(g int32) bool { return pl.groups[g].required != "" })
	for i := range pl.groups { // a group precedes the groups below it
		g := &pl.groups[i]
		if g.parent >= 0 {
			g.torn, g.gone = pl.groups[g.parent].torn, pl.groups[g.parent].gone
		}
		if g.required == "" || g.torn {
			continue
		}
		g.open = len(below[i]) == 0
		nodes := slices.DeleteFunc(below[i], func(node string) bool { return !pl.world.HasNode(node) })
		if len(nodes) == 0 && !g.open {
			g.torn, g.gone = true, true
		}
		var first Area
		for k, node := range nodes {
			area, ok := pl.world.AreaOf(g.required, pl.areaAbove(int32(i)), node)
			if k == 0 {
				first = area
			}
			g.torn = g.torn || !ok || area != first
		}
		if !g.open && !g.torn {
			pl.setArea(int32(i), first)
		}
	}
}

// nodesBelow returns, by group with a level, the nodes of the pods that run below it, by leaf in nodes.
func (pl *planner) nodesBelow(nodes map[string][]string, hasLevel func(g int32) bool) [][]string {
	below := make([][]string, len(pl.groups))
	for i := range pl.groups {
		if g := &pl.groups[i]; g.isLeaf() {
			for up := int32(i); up >= 0; up = pl.groups[up].parent {
				if hasLevel(up) {
					below[up] = append(below[up], nodes[g.of.Name()]...)
				}
			}
		}
	}
	return below
}

// openAbove returns the highest open group above the given one, -1 if there is none.
func (pl *planner) openAbove(g int32) int32 {
	open := int32(-1)
	for up := pl.groups[g].parent; up >= 0; up = pl.groups[up].parent {
		if pl.groups[up].open {
			open = up
		}
	}
	return open
}

// need is how many pods of a class of the Problem a group needs at least.
type need struct {
	class int32
	pods  int
}

// requirement is what a group needs of a domain.
type requirement struct {
	pods  int    // the fewest pods that satisfy the group
	needs []need // by class: the fewest, if as many pods of the other classes are placed as wait; the heaviest pods first
	wish  []int  // likewise: pods that wait
}

// requirementOf returns what a group that has enough waiting pods needs. The classes are those of the Problem.
func (pl *planner) requirementOf(g int32) requirement {
	waiting := map[int32]int{}
	pl.visitUnsatisfied(g, func(g int32) {
		for i, pod := range pl.groups[g].pods {
			if !pl.isTaken(g, int32(i)) {
				waiting[int32(pod.Class)]++
			}
		}
	})
	r := requirement{pods: pl.fewestPods(g)}
	for class := range waiting {
		n := r.pods
		if len(waiting) > 1 {
			n = pl.fewestOfClass(g, class)
		}
		r.needs = append(r.needs, need{class, n})
	}
	slices.SortFunc(r.needs, func(a, b need) int {
		return cmp.Or(cmp.Compare(pl.weightOf(b.class)*int64(b.pods), pl.weightOf(a.class)*int64(a.pods)), cmp.Compare(a.class, b.class))
	})
	for _, n := range r.needs {
		r.wish = append(r.wish, waiting[n.class])
	}
	return r
}

// fewestOfClass returns the fewest pods of a class of the Problem with which a group that has enough waiting pods can
// be satisfied.
func (pl *planner) fewestOfClass(g, class int32) int {
	return pl.leastSum(g, func(leaf int32) int {
		at, others := &pl.groups[leaf], 0
		for i := range at.pods {
			if !pl.isTaken(leaf, int32(i)) && int32(at.pods[i].Class) != class {
				others++
			}
		}
		return max(0, at.missing()-others)
	})
}

// fits reports whether the numbers allow the group in a domain. room returns how many pods of a class fit, by index in
// needs.
func (r *requirement) fits(room func(k int) int) bool {
	sum := 0
	for k, n := range r.needs {
		left := room(k)
		if left < n.pods {
			return false
		}
		sum += min(left, r.wish[k])
	}
	return sum >= r.pods
}

// tightness orders domains by their room for the class of the heaviest pods: the tightest that has room for all waiting
// pods comes first, then that with the most room.
func (r *requirement) tightness(room int) int {
	if room >= r.wish[0] {
		return room - r.wish[0]
	}
	return 1<<40 - room
}

// roomyAreas returns the domains of an open group that may hold a group below it, or this group itself, the best first.
func (pl *planner) roomyAreas(open int32, r *requirement) []Area {
	return pl.roomyAreasOf(pl.groups[open].required, pl.areaAbove(open), r)
}

// roomyAreasOf returns the domains of a level inside an area of which the numbers allow what a group needs, the best
// first.
func (pl *planner) roomyAreasOf(level string, within Area, r *requirement) []Area {
	areas := pl.world.Areas(level, within)
	rooms := make([][]int, len(r.needs))
	for k, n := range r.needs {
		rooms[k] = pl.roomsLeft(n.class, level, within)
	}
	order := slices.DeleteFunc(pl.usedFirst(r.needs[0].class, level, within), func(i int) bool {
		return !r.fits(func(k int) int { return rooms[k][i] })
	})
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.tightness(rooms[0][a]), r.tightness(rooms[0][b])) })
	list := make([]Area, len(order))
	for k, i := range order {
		list[k] = areas[i]
	}
	return list
}

// usedFirst returns the indexes of the domains of a level in the order in which equal ones are preferred: those in the
// wider domain with the least room for the class first, so that other wider domains remain whole. The wider domains are
// those of the outer keys of the level.
func (pl *planner) usedFirst(class int32, level string, within Area) []int {
	areas := pl.world.Areas(level, within)
	order := make([]int, len(areas))
	for i := range order {
		order[i] = i
	}
	// The innermost of the outer keys decides, so it comes last.
	for k := range len(level) {
		if level[k] != ',' {
			continue
		}
		outer := level[:k]
		wider := pl.world.Areas(outer, within)
		room := make(map[Area]int, len(wider))
		for i, n := range pl.roomsLeft(class, outer, within) {
			room[wider[i]] = n
		}
		left := make([]int, len(areas))
		for i, area := range areas {
			around, _ := pl.world.AreaAround(outer, within, area)
			left[i] = room[around]
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(left[a], left[b]) })
	}
	return order
}

// roomsKey identifies an answer of World.Rooms.
type roomsKey struct {
	class  int32
	level  string
	within Area
}

// roomsLeft returns World.Rooms less the pods of the class that are on the stack.
func (pl *planner) roomsLeft(class int32, level string, within Area) []int {
	key := roomsKey{class, level, within}
	rooms, known := pl.rooms[key]
	if !known {
		if pl.rooms == nil {
			pl.rooms = map[roomsKey][]int{}
		}
		rooms = pl.world.Rooms(int(class), level, within)
		pl.rooms[key] = rooms
	}
	if len(pl.stack) == 0 {
		return rooms
	}
	rooms = slices.Clone(rooms)
	index := indexOfAreas(pl.world.Areas(level, within))
	for _, s := range pl.stack {
		if pl.baseOf(s.class) != int(class) {
			continue
		}
		if area, ok := pl.world.AreaOf(level, within, s.node); ok {
			rooms[index[area]] = max(0, rooms[index[area]]-1)
		}
	}
	return rooms
}

// indexOfAreas returns the index of each area in the list.
func indexOfAreas(areas []Area) map[Area]int {
	index := make(map[Area]int, len(areas))
	for i, area := range areas {
		index[area] = i
	}
	return index
}

// planInSomeArea calls plan, which plans a group, with each domain of an open group, which is this group or one above
// it, until it succeeds. Each domain counts as a choice of the search. It counts as tried also if it was the first one,
// and the time was over in it: otherwise the next attempt would end there, too, and never reach the others.
func (pl *planner) planInSomeArea(open, g int32, budget Budget, plan func() bool) bool {
	mark, outermost, proven := len(pl.stack), pl.nested == 0, true
	r := pl.requirementOf(g)
	pl.nested++
	defer func() { pl.nested-- }()
	for i, area := range pl.roomyAreas(open, &r) {
		if outermost && i < budget.Skip {
			pl.tried, proven = i+1, false
			continue
		}
		if pl.isStopped() || pl.timeIsOver() {
			proven = false
			break
		}
		if outermost {
			pl.attempts++
		}
		pl.setDomain(open, area)
		if plan() {
			return true
		}
		proven = proven && pl.exhausted
		pl.undoAbove(mark)
		pl.dropDomain(open)
		if outermost && (!pl.late || i == budget.Skip) {
			pl.tried = i + 1
		}
	}
	pl.exhausted = proven
	return false
}

// hasLevelsBelow reports whether a group that is not satisfied, below the given one, has a required level.
func (pl *planner) hasLevelsBelow(g int32) bool {
	found := false
	pl.visitUnsatisfied(g, func(k int32) { found = found || k != g && pl.groups[k].required != "" })
	return found
}

// fillDomain is fillGroup for a group with a required level. Of an open group it takes the best domain or, if none may
// hold the group, the one that has room for the most of what it needs.
func (pl *planner) fillDomain(g int32, with *explanation) bool {
	at, mark := &pl.groups[g], len(pl.stack)
	chosen := false
	if at.open && pl.possible[g] {
		r := pl.requirementOf(g)
		areas := pl.roomyAreas(g, &r)
		if len(areas) == 0 {
			areas = pl.roomiestArea(g, &r)
		}
		if len(areas) > 0 {
			pl.setDomain(g, areas[0])
			chosen = true
		}
	}
	if !at.open && !at.torn && pl.fillBelow(g, with) {
		return true
	}
	pl.undoAbove(mark)
	if chosen {
		pl.dropDomain(g)
	}
	if with != nil {
		if !chosen && (at.open || at.torn) {
			with.recordUntried(g)
		}
		with.recordLevel(g)
	}
	return false
}

// roomiestArea returns the domain that has room for the most of what an open group needs, none if there is no domain.
func (pl *planner) roomiestArea(g int32, r *requirement) []Area {
	level, within := pl.groups[g].required, pl.areaAbove(g)
	areas := pl.world.Areas(level, within)
	if len(areas) == 0 {
		return nil
	}
	held := make([]int, len(areas))
	for k, n := range r.needs {
		for i, room := range pl.roomsLeft(n.class, level, within) {
			held[i] += min(room, max(n.pods, min(r.pods, r.wish[k])))
		}
	}
	best := 0
	for i := range areas {
		if held[i] > held[best] {
			best = i
		}
	}
	return areas[best : best+1]
}
