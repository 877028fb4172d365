// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

const (
	// maxSteps bounds the steps of one assignment of domains to pods that are not alike.
	maxSteps = 1 << 14
	// maxAssignments bounds the assignments of one choice of units that are tried, if its pods are not alike.
	maxAssignments = 256
)

// arrangement assigns domains to the units of a choice: the highest groups with a required level below the group that is
// planned. It counts first, and places the pods of an assignment that the numbers allow. What a domain refuses changes
// the numbers for the next assignment.
//
// For pods of one Independent class, and with one required level on each path, an assignment is found whenever there is
// one: of the pods in a domain only the number matters.
type arrangement struct {
	*search
	alike   bool // all waiting pods are of one Independent class
	exact   bool // and each domain of a level is in one of every other level, and no unit has such levels below
	inside  Area
	classes []int32 // of the Problem
	tables  []table // the level with the most domains first
	total   []int   // by index in classes: room in all

	known map[int32]unit // by group

	// Of one choice:
	units    []unit
	loose    []int32 // leaves without a required level
	looseOf  requirement
	chosen   []int32 // by index in units: index of the domain
	order    []int   // indexes in units, in the order in which they are placed
	left     []int   // of total
	hash     uint64
	failed   map[uint64]bool
	steps    int
	refusals map[place][]refusal
	contents map[place]content
}

// table is the room in the domains of one level.
type table struct {
	level string
	areas []Area
	room  [][]int // by index in classes, then by domain
	left  [][]int // likewise, less what the current assignment puts there
	outer [][]int32
}

// unit is one group with a required level.
type unit struct {
	requirement
	group  int32
	like   int32
	table  int
	pinned int32 // index of the only domain; -1: any
	class  []int // by index in needs: index in arrangement.classes
}

// place is a domain of a table.
type place struct {
	table int
	area  int32
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

// isUnit reports whether a choice takes the group as a whole: a leaf, or a group with a required level other than the one
// that is planned.
func (c *chooser) isUnit(g int32) bool {
	return c.groups[g].isLeaf() || c.groups[g].required != "" && g != c.group
}

func (s *search) newArrangement() *arrangement {
	a := &arrangement{search: s, inside: s.groups[s.group].area, known: map[int32]unit{}, alike: true, refusals: map[place][]refusal{}}
	var visit func(g int32)
	visit = func(g int32) {
		at := &a.groups[g]
		if at.satisfied() || !a.possible[g] {
			return
		}
		for i := range at.pods {
			if class := int32(at.pods[i].Class); !slices.Contains(a.classes, class) {
				a.classes = append(a.classes, class)
				a.alike = a.alike && len(a.classes) == 1 && a.kinds[class].kind == Independent
			}
			if !at.mixed {
				break
			}
		}
		for k := at.first; k < at.end; k++ {
			visit(k)
		}
	}
	visit(s.group)
	for _, class := range a.classes {
		inside := a.derive(class, a.inside)
		a.total = append(a.total, max(0, a.kinds[inside].capacity.Pods-a.kinds[class].placed))
	}
	for _, g := range s.choices.below {
		if s.choices.isUnit(g) && a.groups[g].required != "" {
			a.addTable(a.groups[g].required)
		}
	}
	a.exact = a.alike
	for _, g := range s.choices.below {
		a.exact = a.exact && (!s.choices.isUnit(g) || !a.hasLevelsBelow(g))
	}
	slices.SortStableFunc(a.tables, func(x, y table) int { return cmp.Compare(len(y.areas), len(x.areas)) })
	for i := range a.tables {
		t := &a.tables[i]
		t.outer = make([][]int32, len(a.tables))
		for j := range a.tables {
			if j > i {
				t.outer[j] = a.enclosing(t, &a.tables[j])
				a.exact = a.exact && !slices.Contains(t.outer[j], -1)
			}
		}
	}
	return a
}

func (a *arrangement) addTable(level string) {
	if slices.ContainsFunc(a.tables, func(t table) bool { return t.level == level }) {
		return
	}
	t := table{level: level, areas: a.world.Areas(level, a.inside)}
	for _, class := range a.classes {
		room := slices.Clone(a.roomsLeft(class, level, a.inside, t.areas))
		t.room, t.left = append(t.room, room), append(t.left, make([]int, len(room)))
	}
	a.tables = append(a.tables, t)
}

// enclosing returns, by domain of one table, the domain of another that contains it, -1 if there is none.
func (a *arrangement) enclosing(inner, outer *table) []int32 {
	list := make([]int32, len(inner.areas))
	for i, area := range inner.areas {
		list[i] = int32(slices.IndexFunc(outer.areas, func(o Area) bool { return a.world.Encloses(o, area) }))
	}
	return list
}

// unitOf returns a group with a required level as a unit.
func (a *arrangement) unitOf(g int32) unit {
	if u, ok := a.known[g]; ok {
		return u
	}
	at := &a.groups[g]
	u := unit{requirement: a.requirementOf(g), group: g, like: a.choices.like.numberOf(g), pinned: -1}
	u.table = slices.IndexFunc(a.tables, func(t table) bool { return t.level == at.required })
	if !at.open {
		u.pinned = int32(slices.Index(a.tables[u.table].areas, at.area))
	}
	for _, n := range u.needs {
		u.class = append(u.class, slices.Index(a.classes, n.class))
	}
	a.known[g] = u
	return u
}

// judgeUnit estimates whether a unit or a leaf can be placed alone.
func (a *arrangement) judgeUnit(g int32) feasibility {
	if a.groups[g].required == "" {
		if a.alike {
			return fits
		}
		return a.judgeLeaf(g)
	}
	u := a.unitOf(g)
	t := &a.tables[u.table]
	for i := range t.areas {
		if (u.pinned < 0 || u.pinned == int32(i)) && u.fits(func(k int) int { return t.room[u.class[k]][i] }) {
			return fits
		}
	}
	return impossible
}

// setChoice prepares the assignment of a choice.
func (a *arrangement) setChoice(groups []int32) {
	a.units, a.loose, a.looseOf = a.units[:0], a.loose[:0], requirement{}
	for _, g := range groups {
		if a.groups[g].required != "" {
			a.units = append(a.units, a.unitOf(g))
			continue
		}
		a.loose = append(a.loose, g)
		for _, n := range a.requirementOf(g).needs {
			i := slices.IndexFunc(a.looseOf.needs, func(o need) bool { return o.class == n.class })
			if i < 0 {
				i = len(a.looseOf.needs)
				a.looseOf.needs = append(a.looseOf.needs, need{class: n.class})
			}
			a.looseOf.needs[i].pods += n.pods
		}
	}
	slices.SortStableFunc(a.units, func(x, y unit) int {
		return cmp.Or(cmp.Compare(x.table, y.table), cmp.Compare(boolOf(x.pinned < 0), boolOf(y.pinned < 0)),
			cmp.Compare(y.weight(a.planner), x.weight(a.planner)), cmp.Compare(x.like, y.like))
	})
	a.chosen = make([]int32, len(a.units))
}

func boolOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// weight is the size of what the unit needs.
func (u *unit) weight(pl *planner) int64 {
	sum := int64(0)
	for _, n := range u.needs {
		sum += int64(n.pods) * (1 + pl.weightOf(n.class))
	}
	return cmp.Or(sum, int64(u.pods))
}

// assign finds domains for all units of the choice by their numbers.
func (a *arrangement) assign() bool {
	a.left = append(a.left[:0], a.total...)
	a.hash, a.failed, a.steps, a.contents = 0, map[uint64]bool{}, 0, map[place]content{}
	for i := range a.tables {
		t := &a.tables[i]
		for c := range t.room {
			copy(t.left[c], t.room[c])
		}
		for d := range t.areas {
			a.hash += a.mix(i, d)
		}
	}
	return a.assignFrom(0)
}

// mix returns a number for what is left in a domain. Domains of the only level in which nothing was refused are
// interchangeable.
func (a *arrangement) mix(table, d int) uint64 {
	random := shuffler(0)
	if len(a.tables) > 1 || len(a.refusals) > 0 || len(a.units) > 0 && a.units[0].pinned >= 0 {
		random = shuffler(1 + uint64(table)<<32 + uint64(d))
	}
	number := random.number()
	for c := range a.classes {
		random = shuffler(number ^ uint64(a.tables[table].left[c][d]))
		number = random.number()
	}
	return number
}

func (a *arrangement) assignFrom(i int) bool {
	if i == len(a.units) {
		return a.looseFit()
	}
	a.steps++
	if !a.alike && a.steps > maxSteps || a.steps%64 == 0 && a.timeIsOver() {
		a.planner.spent = true
		return false
	}
	u := &a.units[i]
	t := &a.tables[u.table]
	if u.pinned < 0 && (i == 0 || a.units[i-1].like != u.like) && !a.countFits(i) {
		return false
	}
	key := shuffler(a.hash + uint64(i)<<48)
	state := key.number()
	if a.failed[state] {
		return false
	}
	tried, triedAt := -1, -1 // tightness and index of the last domain tried
	for {
		best, bestAt := 0, -1
		for d := range t.areas {
			if u.pinned >= 0 && int(u.pinned) != d {
				continue
			}
			tight := 0
			if len(u.needs) > 0 {
				tight = u.tightness(t.left[u.class[0]][d])
			}
			if tight < tried || tight == tried && d <= triedAt || bestAt >= 0 && tight >= best || !a.holds(u, d) {
				continue
			}
			best, bestAt = tight, d
		}
		if bestAt < 0 || a.late {
			break
		}
		tried, triedAt = best, bestAt
		a.take(u, bestAt, 1)
		a.chosen[i] = int32(bestAt)
		if !a.isRefused(u, bestAt) && a.assignFrom(i+1) {
			return true
		}
		a.take(u, bestAt, -1)
		if !a.alike && a.steps > maxSteps || a.late {
			return false
		}
	}
	a.failed[state] = true
	return false
}

// holds reports whether the numbers allow the unit in the domain, and in those that enclose it.
func (a *arrangement) holds(u *unit, d int) bool {
	t := &a.tables[u.table]
	if !u.fits(func(k int) int { return t.left[u.class[k]][d] }) {
		return false
	}
	for j, outer := range t.outer {
		if outer == nil || outer[d] < 0 {
			continue
		}
		if !u.fits(func(k int) int { return a.tables[j].left[u.class[k]][outer[d]] }) {
			return false
		}
	}
	return true
}

// take puts the unit into the domain (1), or takes it back (-1).
func (a *arrangement) take(u *unit, d, sign int) {
	change := func(table, d int) {
		a.hash -= a.mix(table, d)
		for k, n := range u.needs {
			a.tables[table].left[u.class[k]][d] -= sign * n.pods
		}
		a.hash += a.mix(table, d)
	}
	change(u.table, d)
	for j, outer := range a.tables[u.table].outer {
		if outer != nil && outer[d] >= 0 {
			change(j, int(outer[d]))
		}
	}
	for k, n := range u.needs {
		a.left[u.class[k]] -= sign * n.pods
	}
	if len(a.refusals) == 0 {
		return
	}
	at := place{u.table, int32(d)}
	if a.contents[at] == nil {
		a.contents[at] = content{}
	}
	a.contents[at][u.like] += sign
	random := shuffler(uint64(u.table)<<56 ^ uint64(d)<<24 ^ uint64(u.like))
	a.hash += uint64(sign) * random.number()
}

// isRefused reports whether the domain has refused what the assignment puts there.
func (a *arrangement) isRefused(u *unit, d int) bool {
	at := place{u.table, int32(d)}
	return slices.ContainsFunc(a.refusals[at], func(r refusal) bool { return r.holds(a.contents) })
}

// countFits reports whether the domains have room for unit i and those like it, by their numbers.
func (a *arrangement) countFits(i int) bool {
	u := &a.units[i]
	n := 1
	for i+n < len(a.units) && a.units[i+n].like == u.like {
		n++
	}
	t := &a.tables[u.table]
	for d := range t.areas {
		most := n
		for k, need := range u.needs {
			if need.pods > 0 {
				most = min(most, max(0, t.left[u.class[k]][d])/need.pods)
			}
		}
		if n -= most; n <= 0 {
			return true
		}
	}
	return false
}

// looseFit reports whether the numbers leave room for the leaves without a level.
func (a *arrangement) looseFit() bool {
	for _, n := range a.looseOf.needs {
		if a.left[slices.Index(a.classes, n.class)] < n.pods {
			return false
		}
	}
	return true
}

// placeChoice places the pods of the choice for which assign has found domains. If a unit does not fit, and the order
// matters, it is placed first; then it is learned what its domain refuses.
func (a *arrangement) placeChoice() bool {
	thrifty := a.planner.thrifty
	defer func() { a.planner.thrifty = thrifty }()
	base := len(a.stack)
	for _, cheapest := range []bool{false, true} {
		if thrifty && !cheapest {
			continue
		}
		a.planner.thrifty = cheapest
		clear(a.refusals)
		if a.placeAssigned(base, a.placeLoose) {
			return true
		}
		a.undoUnits(base)
		if a.isStopped() {
			return false
		}
	}
	if !a.alike && len(a.loose) > 0 && a.placeLoose() { // the leaves without a level may have to come first
		clear(a.refusals)
		if a.placeAssigned(base, func() bool { return true }) {
			return true
		}
	}
	a.undoUnits(base)
	return false
}

// placeAssigned places the units above the stack's present height, in the domains of one assignment after another, and
// then the rest.
func (a *arrangement) placeAssigned(base int, rest func() bool) bool {
	mark := len(a.stack)
	for n := 0; a.alike || n < maxAssignments; n++ {
		if !a.assign() {
			return false
		}
		a.order = a.order[:0]
		for i := range a.units {
			a.order = append(a.order, i)
		}
		at, culprits := 0, []int(nil)
		for {
			a.undoUnits(mark)
			if at = a.placeUnits(); at == len(a.units) && rest() {
				return true
			}
			if a.isStopped() {
				return false
			}
			if a.alike || at == 0 || at == len(a.units) || len(culprits) == maxOrders || slices.Contains(culprits, a.order[at]) {
				break
			}
			culprits = append(culprits, a.order[at])
			a.order = move(a.order, a.order[at], toFront)
		}
		if !a.planner.thrifty && a.alike || !a.learn(at, base) {
			return false
		}
		a.undoUnits(mark)
	}
	return false
}

func (a *arrangement) placeLoose() bool {
	return len(a.loose) == 0 || a.packLeaves(a.loose, a.extra)
}

// placeUnits places the units in their domains, and returns the index in order of the first one that does not fit.
func (a *arrangement) placeUnits() int {
	for k, i := range a.order {
		u := &a.units[i]
		if u.pinned < 0 {
			a.setDomain(u.group, a.tables[u.table].areas[a.chosen[i]])
		}
		a.planner.nested++
		ok := a.planGroup(u.group, Budget{})
		a.planner.nested--
		if !ok {
			return k
		}
	}
	return len(a.units)
}

// undoUnits removes all placements above the given height, and drops the domains of the units.
func (a *arrangement) undoUnits(height int) {
	a.undoAbove(height)
	for i := range a.units {
		if u := &a.units[i]; u.pinned < 0 && !a.groups[u.group].open {
			a.dropDomain(u.group)
		}
	}
}

// learn records why the unit with that index in order could not be placed in its domain, or the leaves without a level after
// all units. It returns false if that is known already.
func (a *arrangement) learn(at, base int) bool {
	if at == len(a.units) {
		if !a.alike {
			return len(a.units) > 0 && a.refuse(at-1, func(place) bool { return true })
		}
		room := len(a.stack) - base + a.countMore(a.loose)
		learned := room < a.total[0]
		a.total[0] = min(a.total[0], room)
		return learned
	}
	i := a.order[at]
	u := &a.units[i]
	t := &a.tables[u.table]
	if a.alike {
		room := 0
		for _, s := range a.stack[base:] {
			if area, ok := a.world.AreaOf(t.level, a.inside, s.node); ok && area == t.areas[a.chosen[i]] {
				room++
			}
		}
		room += a.countMore(a.leavesBelow(u.group, nil))
		if room < t.room[0][a.chosen[i]] {
			t.room[0][a.chosen[i]] = room
			return true
		}
	}
	in := place{u.table, a.chosen[i]}
	return a.refuse(at, func(other place) bool { return a.overlap(in, other) })
}

// refuse records that a unit, by its index in order, could not be placed beside those before it whose domains matter. It
// returns false if that is known already.
func (a *arrangement) refuse(at int, matters func(place) bool) bool {
	in := place{a.units[a.order[at]].table, a.chosen[a.order[at]]}
	refused := refusal{}
	for _, i := range a.order[:at+1] {
		o := &a.units[i]
		if other := (place{o.table, a.chosen[i]}); matters(other) {
			if refused[other] == nil {
				refused[other] = content{}
			}
			refused[other][o.like]++
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

// overlap reports whether two domains may have nodes in common.
func (a *arrangement) overlap(x, y place) bool {
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

// countMore returns how many pods of the leaves can be placed, and places none.
func (pl *planner) countMore(leaves []int32) int {
	mark := len(pl.stack)
	for _, leaf := range leaves {
		g := &pl.groups[leaf]
		for i := range int32(len(g.pods)) {
			if !pl.isTaken(leaf, i) && !pl.placePod(leaf, i, "") {
				break
			}
		}
	}
	n := len(pl.stack) - mark
	pl.undoAbove(mark)
	return n
}

// tryUnits tries choices of units and leaves: the preferred one, the cheapest one, and those derived from it with fewer of
// one kind. For pods that are alike only the time limits them.
func (s *search) tryUnits() bool {
	pl := s.planner
	var a *arrangement
	s.choices = newChooser(pl, s.group, func(g int32) feasibility { return a.judgeUnit(g) })
	a = s.newArrangement()
	s.seen = map[string]bool{}
	if a.alike {
		pl.limit, s.most = s.outerLimit, 1<<30
	}
	try := func(groups []int32) bool {
		if s.markTried(s.keyOf(groups)) {
			return false
		}
		a.setChoice(groups)
		if !a.assign() {
			return false
		}
		s.unproven++
		return s.attemptChoice(a.placeChoice)
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
	pl.exhausted = !pl.spent && !s.late && (a.exact || s.unproven == 0)
	return false
}
