// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"encoding/binary"
	"slices"
)

const (
	// maxSteps bounds the steps of one assignment of domains to pods that are not alike.
	maxSteps = 1 << 16
	// maxAssignments bounds the assignments of one choice of units that are tried, if its pods are not alike.
	maxAssignments = 64
)

// arrangement assigns domains to the groups with a required level below the group that is planned. It counts first, and
// places the pods of an assignment that the numbers allow. What a domain refuses changes the numbers for the next
// assignment.
//
// Groups with a required level above others are zones; the lowest ones are units, and so are the leaves of a zone without a
// level of their own. For pods of one Independent class, if each domain of a level is inside one of every wider level, an
// assignment is found whenever there is one: of the pods in a domain only the number matters.
type arrangement struct {
	*search
	alike   bool // all waiting pods are of one Independent class
	opaque  bool // some domain is not inside one of a wider level: a unit is planned as a whole with the levels below it
	inside  Area
	classes []int32 // of the Problem
	uses    int     // resources that World.Uses counts; 0 if the pods are alike
	usesOf  map[int32][]int64
	tables  []table // the level with the most domains first
	total   []int   // by row: room in all

	known map[int32]unit // by group

	// Of one choice:
	units    []unit  // a zone is followed by those in it
	chosen   []int32 // by index in units: index of the domain
	anyOf    bool    // the domains of the only level are interchangeable: each unit may have any
	order    []int   // indexes in units, without zones, in the order in which they are placed
	left     []int   // of total
	hash     uint64
	failed   map[uint64]bool
	steps    int
	refusals map[place][]refusal
	contents map[place]content
}

// table is the room in the domains of one level. Its rows are the classes, then the resources.
type table struct {
	level string
	areas []Area
	room  [][]int   // by row, then by domain
	left  [][]int   // likewise, less what the current assignment puts there
	outer [][]int32 // by wider table: for each domain the one that encloses it; nil: the table is not wider
}

// unit is a part of a choice whose pods share a domain.
type unit struct {
	requirement
	group  int32   // -1: loose
	loose  []int32 // leaves without a level of their own
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
// that is planned, below which no other has one.
func (c *chooser) isUnit(g int32) bool {
	at := &c.groups[g]
	return at.isLeaf() || at.required != "" && g != c.group && (c.opaque || !at.nests)
}

func (s *search) newArrangement() *arrangement {
	a := &arrangement{search: s, inside: s.groups[s.group].area, known: map[int32]unit{}, alike: true, refusals: map[place][]refusal{}, usesOf: map[int32][]int64{}}
	var levels []string
	var visit func(g int32)
	visit = func(g int32) {
		at := &a.groups[g]
		if at.satisfied() || !a.possible[g] {
			return
		}
		if at.required != "" && g != s.group && !slices.Contains(levels, at.required) {
			levels = append(levels, at.required)
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
	if !a.alike {
		for _, class := range a.classes {
			a.usesOf[class] = a.world.Uses(int(class))
		}
		a.uses = len(a.usesOf[a.classes[0]])
	}
	for _, class := range a.classes {
		inside := a.derive(class, a.inside)
		a.total = append(a.total, max(0, a.kinds[inside].capacity.Pods-a.kinds[class].placed))
	}
	for range a.uses {
		a.total = append(a.total, unlimited/2)
	}
	for _, level := range levels {
		a.addTable(level)
	}
	slices.SortStableFunc(a.tables, func(x, y table) int { return cmp.Compare(len(y.areas), len(x.areas)) })
	for i := range a.tables {
		t := &a.tables[i]
		t.outer = make([][]int32, len(a.tables))
		for j := i + 1; j < len(a.tables); j++ {
			t.outer[j] = a.enclosing(t, &a.tables[j])
			a.opaque = a.opaque || slices.Contains(t.outer[j], -1)
		}
	}
	return a
}

func (a *arrangement) addTable(level string) {
	t := table{level: level, areas: a.world.Areas(level, a.inside)}
	for _, class := range a.classes {
		t.room = append(t.room, slices.Clone(a.roomsLeft(class, level, a.inside, t.areas)))
	}
	if a.uses > 0 {
		free := a.world.FreeIn(level, a.inside)
		for k := range a.uses {
			row := make([]int, len(free))
			for d := range free {
				row[d] = int(free[d][k])
			}
			t.room = append(t.room, row)
		}
	}
	for _, row := range t.room {
		t.left = append(t.left, make([]int, len(row)))
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

// unitOf returns a group with a required level, or a leaf, as a unit.
func (a *arrangement) unitOf(g int32) unit {
	if u, ok := a.known[g]; ok {
		return u
	}
	u := unit{requirement: a.requirementOf(g), group: g, like: a.choices.like.numberOf(g)}
	u.table, u.pinned = a.domainsFor(g)
	for _, n := range u.needs {
		u.addTaking(slices.Index(a.classes, n.class), n.pods)
		u.size += int64(n.pods) * (1 + a.weightOf(n.class))
	}
	u.size = cmp.Or(u.size, int64(u.pods))
	for k := range a.uses {
		u.addTaking(len(a.classes)+k, a.leastUse(g, k))
	}
	a.known[g] = u
	return u
}

// domainsFor returns the table of the level that a group requires, -1 if there is none, and the index of the only domain, -1
// if it may have any.
func (a *arrangement) domainsFor(g int32) (int, int32) {
	at := &a.groups[g]
	table := slices.IndexFunc(a.tables, func(t table) bool { return t.level == at.required })
	if table < 0 || at.open {
		return table, -1
	}
	// Its area may be inside one of a zone, which has another number.
	t := &a.tables[table]
	return table, int32(slices.IndexFunc(t.areas, func(area Area) bool { return area == at.area || a.world.Encloses(area, at.area) }))
}

func (u *unit) addTaking(row, n int) {
	if n == 0 {
		return
	}
	if i := slices.IndexFunc(u.takes, func(t taking) bool { return t.row == row }); i >= 0 {
		u.takes[i].n += n
		return
	}
	u.takes = append(u.takes, taking{row, n})
}

// leastUse returns the least amount of a resource that a group that has enough waiting pods needs.
func (a *arrangement) leastUse(g int32, resource int) int {
	return a.least(g, func(leaf int32) int {
		at := &a.groups[leaf]
		var amounts []int
		for i := range at.pods {
			if !a.isTaken(leaf, int32(i)) {
				amounts = append(amounts, int(a.usesOf[int32(at.pods[i].Class)][resource]))
			}
		}
		return sumOfSmallest(amounts, at.missing())
	})
}

// judgeUnit estimates whether a unit or a leaf can be placed alone.
func (a *arrangement) judgeUnit(g int32) feasibility {
	if a.groups[g].required == "" {
		if a.alike || a.groups[g].area != a.inside || a.zoneAround(g) >= 0 {
			return fits
		}
		return a.judgeLeaf(g)
	}
	u := a.unitOf(g)
	t := &a.tables[u.table]
	for d := range t.areas {
		if (u.pinned < 0 || u.pinned == int32(d)) && a.fitsIn(&u, t.room, d) {
			return fits
		}
	}
	return impossible
}

// fitsIn reports whether the rows of a table allow the unit in a domain.
func (a *arrangement) fitsIn(u *unit, rows [][]int, d int) bool {
	for _, t := range u.takes {
		if rows[t.row][d] < t.n {
			return false
		}
	}
	if len(u.needs) < 2 {
		return true
	}
	return u.fits(func(k int) int { return rows[slices.Index(a.classes, u.needs[k].class)][d] })
}

// section is a zone of a choice, or all that is in no zone.
type section struct {
	group    int32 // -1: no zone
	units    []unit
	loose    []int32
	sections []*section
	size     int64
}

// setChoice prepares the assignment of a choice.
func (a *arrangement) setChoice(groups []int32) {
	top := &section{group: -1}
	zones := map[int32]*section{}
	var zoneOf func(g int32) *section
	zoneOf = func(g int32) *section {
		up := a.zoneAround(g)
		if up < 0 {
			return top
		}
		if zones[up] == nil {
			zones[up] = &section{group: up}
			around := zoneOf(up)
			around.sections = append(around.sections, zones[up])
		}
		return zones[up]
	}
	for _, g := range groups {
		if g == a.group {
			top.loose = append(top.loose, g)
			continue
		}
		if s := zoneOf(g); a.groups[g].required != "" {
			s.units = append(s.units, a.unitOf(g))
		} else {
			s.loose = append(s.loose, g)
		}
	}
	a.units = a.units[:0]
	a.appendSection(top, -1)
	a.chosen = make([]int32, len(a.units))
	a.anyOf = len(a.tables) == 1 && !slices.ContainsFunc(a.units, func(u unit) bool { return u.pinned >= 0 })
}

// zoneAround returns the nearest group above with a required level, below the group that is planned; -1: none.
func (a *arrangement) zoneAround(g int32) int32 {
	for up := a.groups[g].parent; up >= 0 && up != a.group; up = a.groups[up].parent {
		if a.groups[up].required != "" {
			return up
		}
	}
	return -1
}

// keyOfUnits returns equal strings for choices that look the same to the World: like groups in the same zones.
func (a *arrangement) keyOfUnits(groups []int32) string {
	pairs := make([]uint64, len(groups))
	for i, g := range groups {
		pairs[i] = uint64(a.zoneAround(g)+1)<<32 | uint64(a.choices.like.numberOf(g))
	}
	slices.Sort(pairs)
	key := []byte{'u'}
	for _, pair := range pairs {
		key = binary.AppendUvarint(key, pair)
	}
	return string(key)
}

// appendSection appends the units of a section, and what it takes in all to the zone.
func (a *arrangement) appendSection(s *section, zone int) {
	at := len(a.units)
	if s.group >= 0 {
		z := unit{group: s.group, isZone: true, zone: zone}
		z.table, z.pinned = a.domainsFor(s.group)
		a.narrow(&z)
		a.units = append(a.units, z)
		zone = at
	}
	s.sort(a)
	i, k := 0, 0
	for i < len(s.units) || k < len(s.sections) { // the largest first
		if k == len(s.sections) || i < len(s.units) && (s.units[i].pinned >= 0 || s.units[i].size >= s.sections[k].size) {
			u := s.units[i]
			u.zone = zone
			a.narrow(&u)
			a.units = append(a.units, u)
			i++
		} else {
			a.appendSection(s.sections[k], zone)
			k++
		}
	}
	if len(s.loose) > 0 {
		u := unit{group: -1, loose: s.loose, zone: zone, like: -1 - int32(at), table: -1, pinned: -1}
		if zone >= 0 {
			u.table = a.units[zone].table
		}
		for _, leaf := range s.loose {
			for _, t := range a.unitOf(leaf).takes {
				u.addTaking(t.row, t.n)
			}
		}
		a.units = append(a.units, u)
	}
	if s.group < 0 {
		return
	}
	var z unit
	for _, u := range a.units[at+1:] {
		if !u.isZone {
			for _, t := range u.takes {
				z.addTaking(t.row, t.n)
			}
		}
	}
	a.units[at].takes = z.takes
}

// narrow replaces the level of a unit or zone that is wider than that of the zone around it: it has the zone's domain.
func (a *arrangement) narrow(u *unit) {
	if u.zone < 0 {
		return
	}
	if z := &a.units[u.zone]; z.table <= u.table {
		u.table, u.pinned = z.table, z.pinned
	}
}

// sort sorts units by size, like ones beside each other, and sections by size.
func (s *section) sort(a *arrangement) {
	slices.SortStableFunc(s.units, func(x, y unit) int {
		return cmp.Or(cmp.Compare(min(y.pinned, 0), min(x.pinned, 0)), cmp.Compare(y.size, x.size), cmp.Compare(x.like, y.like))
	})
	for _, inner := range s.sections {
		inner.size = inner.sizeOf(a)
	}
	slices.SortStableFunc(s.sections, func(x, y *section) int { return cmp.Compare(y.size, x.size) })
}

func (s *section) sizeOf(a *arrangement) int64 {
	sum := int64(0)
	for _, u := range s.units {
		sum += u.size
	}
	for _, leaf := range s.loose {
		sum += a.unitOf(leaf).size
	}
	for _, inner := range s.sections {
		sum += inner.sizeOf(a)
	}
	return sum
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
	if !a.anyOf || len(a.refusals) > 0 {
		random = shuffler(1 + uint64(table)<<32 + uint64(d))
	}
	number := random.number()
	for _, row := range a.tables[table].left {
		random = shuffler(number ^ uint64(row[d]))
		number = random.number()
	}
	return number
}

// state identifies what is left for unit i and those after it.
func (a *arrangement) state(i int) uint64 {
	state := shuffler(a.hash + uint64(i)<<48)
	number := state.number()
	for zone := a.units[i].zone; zone >= 0; zone = a.units[zone].zone {
		state = shuffler(number ^ uint64(a.chosen[zone]))
		number = state.number()
	}
	return number
}

func (a *arrangement) assignFrom(i int) bool {
	if i == len(a.units) {
		return true
	}
	a.steps++
	if !a.alike && a.steps > maxSteps || a.steps%64 == 0 && a.timeIsOver() {
		a.planner.spent = true
		return false
	}
	u := &a.units[i]
	if u.table < 0 {
		return a.assignLoose(i)
	}
	t := &a.tables[u.table]
	if u.pinned < 0 && !u.isZone && u.group >= 0 && (i == 0 || a.units[i-1].like != u.like || a.units[i-1].zone != u.zone) && !a.countFits(i) {
		return false
	}
	state := a.state(i)
	if a.failed[state] {
		return false
	}
	tried, triedAt := -1, -1 // tightness and index of the last domain tried
	for {
		best, bestAt := 0, -1
		for d := range t.areas {
			if !a.mayUse(u, d) {
				continue
			}
			tight := a.tightnessOf(u, d)
			if tight < tried || tight == tried && d <= triedAt || bestAt >= 0 && tight >= best || !a.holds(u, d) {
				continue
			}
			best, bestAt = tight, d
		}
		if bestAt < 0 || a.late {
			break
		}
		tried, triedAt = best, bestAt
		a.chosen[i] = int32(bestAt)
		if u.isZone {
			if a.assignFrom(i + 1) {
				return true
			}
		} else {
			a.take(u, bestAt, 1)
			if !a.isRefused(u, bestAt) && a.assignFrom(i+1) {
				return true
			}
			a.take(u, bestAt, -1)
		}
		if !a.alike && a.steps > maxSteps || a.late {
			return false
		}
	}
	a.failed[state] = true
	return false
}

// assignLoose counts leaves that may be anywhere, which come last.
func (a *arrangement) assignLoose(i int) bool {
	u := &a.units[i]
	for _, t := range u.takes {
		if a.left[t.row] < t.n {
			return false
		}
	}
	a.take(u, 0, 1)
	if !a.isRefused(u, 0) && a.assignFrom(i+1) {
		return true
	}
	a.take(u, 0, -1)
	return false
}

// mayUse reports whether the unit may have the domain: that of its pods that run, and one inside its zone's.
func (a *arrangement) mayUse(u *unit, d int) bool {
	if u.pinned >= 0 && int(u.pinned) != d {
		return false
	}
	if u.zone < 0 {
		return true
	}
	z := &a.units[u.zone]
	if z.table == u.table {
		return a.chosen[u.zone] == int32(d)
	}
	outer := a.tables[u.table].outer[z.table]
	return outer != nil && outer[d] == a.chosen[u.zone]
}

// tightnessOf orders the domains for a unit.
func (a *arrangement) tightnessOf(u *unit, d int) int {
	t := &a.tables[u.table]
	switch {
	case len(u.needs) > 0:
		return u.tightness(t.left[slices.Index(a.classes, u.needs[0].class)][d])
	case len(u.takes) > 0: // a zone, or loose leaves
		return max(0, t.left[u.takes[0].row][d])
	}
	return 0
}

// holds reports whether the numbers allow the unit in the domain, and in those that enclose it.
func (a *arrangement) holds(u *unit, d int) bool {
	t := &a.tables[u.table]
	if !a.fitsIn(u, t.left, d) {
		return false
	}
	for j, outer := range t.outer {
		if outer != nil && outer[d] >= 0 && !a.fitsIn(u, a.tables[j].left, int(outer[d])) {
			return false
		}
	}
	return true
}

// take puts the unit into the domain (1), or takes it back (-1).
func (a *arrangement) take(u *unit, d, sign int) {
	change := func(table, d int) {
		a.hash -= a.mix(table, d)
		for _, t := range u.takes {
			a.tables[table].left[t.row][d] -= sign * t.n
		}
		a.hash += a.mix(table, d)
	}
	if u.table >= 0 {
		change(u.table, d)
		for j, outer := range a.tables[u.table].outer {
			if outer != nil && outer[d] >= 0 {
				change(j, int(outer[d]))
			}
		}
	}
	for _, t := range u.takes {
		a.left[t.row] -= sign * t.n
	}
	if len(a.refusals) == 0 {
		return
	}
	at := place{u.table, int32(d)}
	if a.contents[at] == nil {
		a.contents[at] = content{}
	}
	a.contents[at][u.like] += sign
	random := shuffler(uint64(u.table+1)<<56 ^ uint64(d)<<32 ^ uint64(uint32(u.like)))
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
	for i+n < len(a.units) && a.units[i+n].like == u.like && a.units[i+n].zone == u.zone {
		n++
	}
	t := &a.tables[u.table]
	for d := range t.areas {
		if !a.mayUse(u, d) {
			continue
		}
		most := n
		for _, take := range u.takes {
			most = min(most, max(0, t.left[take.row][d])/take.n)
		}
		if n -= most; n <= 0 {
			return true
		}
	}
	return false
}

// placeChoice places the pods of the choice for which assign has found domains.
func (a *arrangement) placeChoice() bool {
	thrifty := a.planner.thrifty
	defer func() { a.planner.thrifty = thrifty }()
	base := len(a.stack)
	for _, cheapest := range []bool{false, true} {
		if thrifty && !cheapest {
			continue
		}
		a.planner.thrifty = cheapest
		if a.placeAssigned(base, finestFirst) {
			return true
		}
		if a.isStopped() {
			break
		}
	}
	return !a.alike && (!a.isStopped() && a.placeAssigned(base, heaviestFirst) || !a.isStopped() && a.placeAssigned(base, looseFirst))
}

// sequence is the order in which the units of an assignment are placed at first.
type sequence int

const (
	finestFirst   sequence = iota // those with the most domains first, leaves without a level of their own last
	heaviestFirst                 // those with the heaviest pods first
	looseFirst                    // leaves without a level of their own first
)

// placeAssigned places the units in the domains of one assignment after another. If a unit does not fit, and the order
// matters, it is placed first; then it is learned what its domain refuses. On failure nothing is placed.
func (a *arrangement) placeAssigned(base int, by sequence) bool {
	clear(a.refusals)
	defer clear(a.refusals)
	domains := len(a.domains)
	for n := 0; a.alike || n < maxAssignments; n++ {
		if !a.assign() {
			return false
		}
		a.setOrder(by)
		at, culprits := 0, []int(nil)
		for {
			if at = a.placeUnits(); at == len(a.order) {
				return true
			}
			if a.isStopped() || a.alike || at == 0 || len(culprits) == maxOrders || slices.Contains(culprits, a.order[at]) {
				break
			}
			culprits = append(culprits, a.order[at])
			a.order = move(a.order, a.order[at], toFront)
			a.undoUnits(base, domains)
		}
		learned := !a.isStopped() && (a.planner.thrifty || !a.alike) && a.learn(at, base)
		a.undoUnits(base, domains)
		if !learned {
			return false
		}
	}
	return false
}

// setOrder sets the order in which the units are placed.
func (a *arrangement) setOrder(by sequence) {
	a.order = a.order[:0]
	for i := range a.units {
		if !a.units[i].isZone {
			a.order = append(a.order, i)
		}
	}
	rank := func(u *unit) int {
		switch {
		case u.group < 0 && by == looseFirst:
			return -1
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
		finer, heavier := cmp.Compare(rank(x), rank(y)), cmp.Compare(a.heaviest(y), a.heaviest(x))
		if by == heaviestFirst {
			return cmp.Or(heavier, finer)
		}
		return cmp.Or(finer, heavier)
	})
}

// heaviest returns the weight of the unit's heaviest pods, 0 if all are alike.
func (a *arrangement) heaviest(u *unit) int64 {
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

// placeUnits places the units in their domains, and returns the index in order of the first one that does not fit.
func (a *arrangement) placeUnits() int {
	for i := range a.units { // a zone precedes those in it
		if u := &a.units[i]; u.group >= 0 && u.pinned < 0 {
			a.setDomain(u.group, a.tables[u.table].areas[a.chosen[i]])
		}
	}
	for k, i := range a.order {
		u := &a.units[i]
		ok := false
		a.planner.nested++
		if u.group < 0 {
			ok = a.packLeaves(u.loose, a.extra)
		} else {
			ok = a.planGroup(u.group, Budget{})
		}
		a.planner.nested--
		if !ok {
			return k
		}
	}
	return len(a.order)
}

// undoUnits removes all placements above the given height, and drops the domains that were chosen since.
func (a *arrangement) undoUnits(height, domains int) {
	a.undoAbove(height)
	a.dropDomains(domains)
}

// learn records why the unit with that index in order could not be placed in its domain. It returns false if that is known
// already.
func (a *arrangement) learn(at, base int) bool {
	i := a.order[at]
	u := &a.units[i]
	if !a.alike {
		return a.refuse(at)
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
		return a.opaque && a.refuse(at)
	}
	*known = room
	return true
}

// refuse records that a unit, by its index in order, could not be placed beside those before it whose domains overlap with
// its own. It returns false if that is known already.
func (a *arrangement) refuse(at int) bool {
	placeOf := func(k int) place {
		i := a.order[k]
		if u := &a.units[i]; u.table >= 0 {
			return place{u.table, a.chosen[i]}
		}
		return place{-1, 0}
	}
	in := placeOf(at)
	refused := refusal{}
	for k := range at + 1 {
		if other := placeOf(k); a.overlap(in, other) {
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

// overlap reports whether two domains may have nodes in common.
func (a *arrangement) overlap(x, y place) bool {
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

// tryUnits tries choices of units and leaves: the preferred one, the cheapest one, and those derived from it with fewer of
// one kind. For pods that are alike only the time limits them.
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
	pl.exhausted = !pl.spent && !s.late && (a.alike && !a.opaque || s.unproven == 0)
	return false
}
