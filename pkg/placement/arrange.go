// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

const (
	// maxSteps bounds the steps of one assignment of domains to pods that are not alike.
	maxSteps = 1 << 16
	// maxAssignments bounds the assignments of one choice of units that are tried, if its pods are not alike.
	maxAssignments = 64
	// fillsAfter is the number of steps per unit after which an assignment uses fills: most are found with fewer.
	fillsAfter = 64
	// maxFills bounds the size of fills.
	maxFills = 1 << 20
)

// arrangement assigns domains to the groups with a required level below the group that is planned. It counts first, and
// places the pods of an assignment that the numbers allow. What a domain refuses changes the numbers for the next
// assignment.
//
// Groups with a required level above others are zones; the lowest ones are units, and so are the leaves of a zone
// without a level of their own. For pods of one Independent class, if each domain of a level is inside one of every
// wider level, an assignment is found whenever there is one: of the pods in a domain only the number matters.
type arrangement struct {
	*search
	alike   bool // all waiting pods are of one Independent class
	opaque  bool // some domain is not inside one of a wider level: a unit is planned as a whole with the levels below it
	inside  Area
	classes []int32 // of the Problem
	uses    int     // resources that World.Uses counts; 0 if the pods are alike
	usesOf  map[int32][]int64
	tables  []table // narrower levels first, among those that do not enclose each other the one with the most domains
	total   []int   // by row: room in all

	known    map[int32]unit // by group
	podTakes [][]taking     // by index in classes: see compareClasses

	// Of one choice:
	scarce   bool      // see setChoice
	shares   []float64 // if scarce: see sharesOfRoom
	units    []unit    // a zone is followed by those in it
	chosen   []int32   // by index in units: index of the domain
	singles  []unit    // single pods, until all other units are in units
	twins    [][]int32 // by table and domain: the first domain that each unit may have instead
	order    []int     // indexes in units, without zones, in the order in which they are placed
	left     []int     // of total
	hash     uint64
	failed   map[uint64]bool
	steps    int
	fills    fills
	refusals map[place][]refusal
	contents map[place]content
}

// table is the room in the domains of one level. Its rows are the classes, then the resources.
type table struct {
	level string
	areas []Area    // see usedFirst; those from rests on are wider areas, of which only the nodes in no domain of the level count
	rests int       // index in areas; only single pods may be in these
	wider int       // number of tables of which some domain encloses each domain of this one
	room  [][]int   // by row, then by domain
	left  [][]int   // likewise, less what the current assignment puts there
	outer [][]int32 // by wider table: for each domain the one that encloses it; nil: the table is not wider

	rankings []ranking // of the current assignment
}

// unit is a part of a choice whose pods share a domain.
type unit struct {
	requirement
	group  int32   // -1: loose
	loose  []int32 // leaves without a level of their own
	single bool    // one pod of a leaf, which may have any domain of the narrowest level inside that of the zone
	isZone bool
	zone   int // index in units of the zone around it; -1: none
	like   int32
	table  int   // -1: loose, and in no zone
	pinned int32 // index of the only domain; -1: any
	takes  []taking
	size   int64
}

// taking is what a unit takes of a row.
type taking struct{ row, n int }

// place is a domain of a table.
type place struct {
	table int
	area  int32
}

// likeIn is a unit, and those like it, in a domain.
type likeIn struct {
	place
	like int32
}

// content is the number of units by likeness.
type content map[int32]int

// refusal is the content of a domain, and of those that it overlaps, with which it has refused a unit.
type refusal map[place]content

// holds reports whether the domains have at least the content of the refusal.
func (r refusal) holds(contents map[place]content) bool {
	for at, c := range r {
		for like, n := range c {
			if contents[at][like] < n {
				return false
			}
		}
	}
	return true
}

// isUnit reports whether a choice takes the group as a whole: a leaf, or a group with a required level other than the
// one that is planned, below which no other has one.
func (c *chooser) isUnit(g int32) bool {
	at := &c.groups[g]
	return at.isLeaf() || at.required != "" && g != c.group && (c.opaque || !at.nests)
}

// placeChoice places the pods of the choice for which assign has found domains. If they are not alike, and do not fit
// as they are assigned, domains are assigned by what is scarce.
func (a *arrangement) placeChoice(groups []int32) bool {
	thrifty := a.planner.thrifty
	defer func() { a.planner.thrifty = thrifty }()
	try := func(cheapest bool, assignments int) bool {
		a.planner.thrifty = cheapest
		return a.placeAssigned(len(a.stack), assignments)
	}
	if a.alike {
		return !thrifty && try(false, maxAssignments) || !a.isStopped() && try(true, maxAssignments)
	}
	isCut := a.scarce // the plain assignment takes too many steps
	if !isCut && try(thrifty, 1) {
		return true
	}
	if a.isStopped() {
		return false
	}
	a.setChoice(groups, true)
	if try(thrifty, maxAssignments) || !thrifty && a.steps <= maxSteps && !a.isStopped() && try(true, maxAssignments) {
		return true
	}
	if isCut {
		return false
	}
	a.setChoice(groups, false)
	return !a.isStopped() && try(true, maxAssignments)
}

// placeAssigned places the units in the domains of one assignment after another; if the pods are not alike, of at most
// the given number of them. If a unit does not fit, and the order matters, it is placed first; then it is learned what
// its domain refuses, and those of the units after it that do not fit either. On failure nothing is placed.
func (a *arrangement) placeAssigned(base, assignments int) bool {
	clear(a.refusals)
	defer clear(a.refusals)
	domains := len(a.domains)
	for n := 0; a.alike || n < assignments; n++ {
		if a.isStopped() || !a.assignDomains() {
			return false
		}
		a.setOrder()
		at, culprits := 0, []int(nil)
		for {
			a.setDomains()
			if at = a.placeUnits(0); at == len(a.order) {
				return true
			}
			if a.isStopped() || a.alike || a.scarce || at == 0 || len(culprits) == maxOrders || slices.Contains(culprits, a.order[at]) {
				break
			}
			culprits = append(culprits, a.order[at])
			a.order = withFirst(a.order, a.order[at])
			a.undoUnits(base, domains)
		}
		learned, seen := false, map[likeIn]bool{}
		for ; at < len(a.order) && !a.timeIsOver() && !a.isStopped() && (a.planner.thrifty || !a.alike); at = a.placeUnits(at + 1) {
			// Of a class that a domain refuses there may be thousands of pods, and nothing is learned from the others.
			if key := (likeIn{a.placeOf(at), a.units[a.order[at]].like}); a.alike || !seen[key] {
				seen[key] = true
				learned = a.learnRefusal(at, base) || learned
			}
		}
		a.undoUnits(base, domains)
		if !learned {
			return false
		}
	}
	return false
}

// setOrder sets the order in which the units are placed at first: those with the most domains first, leaves without a
// level of their own last, and of these the ones with the heaviest pods first.
func (a *arrangement) setOrder() {
	a.order = a.order[:0]
	for i := range a.units {
		if !a.units[i].isZone {
			a.order = append(a.order, i)
		}
	}
	rank := func(u *unit) int {
		switch {
		case u.table < 0:
			return 2 * len(a.tables)
		case u.group < 0:
			return 2*u.table + 1
		default:
			return 2 * u.table
		}
	}
	slices.SortStableFunc(a.order, func(i, k int) int {
		x, y := &a.units[i], &a.units[k]
		return cmp.Or(cmp.Compare(rank(x), rank(y)), cmp.Compare(a.heaviestWeight(y), a.heaviestWeight(x)))
	})
}

// heaviestWeight returns the weight of the unit's heaviest pods, 0 if all are alike.
func (a *arrangement) heaviestWeight(u *unit) int64 {
	most := int64(0)
	if a.alike {
		return 0
	}
	for _, t := range u.takes {
		if t.row < len(a.classes) {
			most = max(most, a.weightOf(a.classes[t.row]))
		}
	}
	return most
}

// setDomains chooses the domains of the assignment.
func (a *arrangement) setDomains() {
	for i := range a.units { // a zone precedes those in it
		if u := &a.units[i]; u.group >= 0 && u.pinned < 0 {
			a.setDomain(u.group, a.tables[u.table].areas[a.chosen[i]])
		}
	}
}

// placeUnits places the units in their domains, from an index in order on, and returns the index of the first one that
// does not fit.
func (a *arrangement) placeUnits(from int) int {
	for k := from; k < len(a.order); k++ {
		u := &a.units[a.order[k]]
		ok := false
		a.planner.nested++
		switch {
		case u.single:
			ok = a.placePodIn(u.loose[0], a.tables[u.table].areas[a.chosen[a.order[k]]])
		case u.group < 0:
			ok = a.packLeaves(u.loose, a.extra)
		default:
			ok = a.planGroup(u.group, Budget{})
		}
		a.planner.nested--
		if !ok {
			return k
		}
	}
	return len(a.order)
}

// placePodIn places one waiting pod of a leaf in an area inside the leaf's own.
func (a *arrangement) placePodIn(leaf int32, area Area) bool {
	own := a.groups[leaf].area
	a.setArea(leaf, area)
	placed, _ := a.fillLeafIn(leaf, "", 1, nil)
	a.setArea(leaf, own)
	if placed == 0 && a.blamed.leaf == leaf {
		a.blamed.class = a.groups[leaf].class // not the one that is confined to the area
	}
	return placed == 1
}

// undoUnits removes all placements above the given height, and drops the domains that were chosen since.
func (a *arrangement) undoUnits(height, domains int) {
	a.undoAbove(height)
	a.dropDomains(domains)
}

// learnRefusal records why the unit with that index in order could not be placed in its domain. It returns false if
// that is known already.
func (a *arrangement) learnRefusal(at, base int) bool {
	i := a.order[at]
	u := &a.units[i]
	if !a.alike {
		return a.recordRefusal(at)
	}
	room := 0
	for _, s := range a.stack[base:] {
		if u.table >= 0 {
			t := &a.tables[u.table]
			if area, ok := a.world.AreaOf(t.level, a.inside, s.node); !ok || area != t.areas[a.chosen[i]] {
				continue
			}
		}
		room++
	}
	leaves := u.loose
	if u.group >= 0 {
		leaves = a.leavesBelow(u.group, nil)
	}
	more, refused := a.countMore(leaves)
	room += more
	known := &a.total[0]
	if u.table >= 0 {
		known = &a.tables[u.table].room[0][a.chosen[i]]
	}
	if room >= *known || !refused {
		return a.opaque && a.recordRefusal(at)
	}
	*known = room
	return true
}

// recordRefusal records that a unit, by its index in order, could not be placed beside those before it whose domains
// overlap with its own. It returns false if that is known already.
func (a *arrangement) recordRefusal(at int) bool {
	in := a.placeOf(at)
	refused := refusal{}
	for k := range at + 1 {
		if other := a.placeOf(k); a.domainsOverlap(in, other) {
			if refused[other] == nil {
				refused[other] = content{}
			}
			refused[other][a.units[a.order[k]].like]++
		}
	}
	if slices.ContainsFunc(a.refusals[in], func(r refusal) bool { return r.holds(refused) }) {
		return false
	}
	for other := range refused {
		a.refusals[other] = append(a.refusals[other], refused)
	}
	return true
}

// placeOf returns the domain of a unit, by its index in order.
func (a *arrangement) placeOf(at int) place {
	i := a.order[at]
	if u := &a.units[i]; u.table >= 0 {
		return place{u.table, a.chosen[i]}
	}
	return place{-1, 0}
}

// domainsOverlap reports whether two domains may have nodes in common.
func (a *arrangement) domainsOverlap(x, y place) bool {
	if x.table < 0 || y.table < 0 {
		return true
	}
	if x.table == y.table {
		return x.area == y.area
	}
	if x.table > y.table {
		x, y = y, x
	}
	outer := a.tables[x.table].outer[y.table][x.area]
	return outer < 0 || outer == y.area
}

// leavesBelow appends the leaves below a group, or the group itself if it is one.
func (pl *planner) leavesBelow(g int32, list []int32) []int32 {
	at := &pl.groups[g]
	if at.isLeaf() {
		return append(list, g)
	}
	for k := at.first; k < at.end; k++ {
		list = pl.leavesBelow(k, list)
	}
	return list
}

// countMore returns how many pods of the leaves can be placed until one is refused, and places none.
func (pl *planner) countMore(leaves []int32) (pods int, refused bool) {
	mark := len(pl.stack)
	for _, leaf := range leaves {
		for i := range int32(len(pl.groups[leaf].pods)) {
			if !refused && !pl.isTaken(leaf, i) {
				refused = !pl.placePod(leaf, i, "")
			}
		}
	}
	pods = len(pl.stack) - mark
	pl.undoAbove(mark)
	return pods, refused
}

// tryUnits tries choices of units and leaves: the preferred one, the cheapest one, and those derived from it with fewer
// of one kind. For pods that are alike only the time limits them.
func (s *search) tryUnits() bool {
	pl := s.planner
	a := s.newArrangement()
	s.choices = newChooser(pl, s.group, a.judgeUnit, a.opaque)
	s.seen = map[string]bool{}
	if a.alike {
		pl.limit, s.most = s.outerLimit, 1<<30
	}
	try := func(groups []int32) bool {
		if s.markTried(a.keyOfUnits(groups)) {
			return false
		}
		a.setChoice(groups, false)
		ok := a.assignDomains()
		if !ok && !a.alike && a.steps > maxSteps {
			a.setChoice(groups, true)
			ok = a.assignDomains()
		}
		if !ok {
			return false
		}
		s.unproven++
		return s.attemptChoice(func() bool { return a.placeChoice(groups) })
	}
	preferred, ok := s.choices.chooseLeaves(nil, preferredFirst)
	if !ok {
		pl.exhausted = !s.late
		return false
	}
	if !pl.thrifty && try(preferred) {
		return true
	}
	open := [][]limit{nil} // FIFO queue
	for considered := 0; len(open) > 0; considered++ {
		if s.timeIsOver() || s.isStopped() || !a.alike && (considered == maxConsidered || s.begun >= s.most) {
			pl.spent = true
			break
		}
		limits := open[0]
		open = open[1:]
		groups, ok := s.choices.chooseLeaves(limits, cheapestFirst)
		if !ok {
			continue
		}
		open = append(open, s.deriveLimits(groups, limits)...)
		if try(groups) {
			return true
		}
	}
	pl.exhausted = !pl.spent && !s.late && (a.alike && !a.opaque || s.unproven == 0)
	return false
}
