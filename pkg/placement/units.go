// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
)

func (s *search) newArrangement() *arrangement {
	a := &arrangement{search: s, inside: s.groups[s.group].area, known: map[int32]unit{}, alike: true, refusals: map[place][]refusal{}, usesOf: map[int32][]int64{}}
	levels := a.readWaitingPods()
	if !a.alike {
		for _, class := range a.classes {
			a.usesOf[class] = a.world.Uses(int(class))
		}
		a.uses = len(a.usesOf[a.classes[0]])
	}
	for _, class := range a.classes {
		inside := a.deriveClass(class, a.inside)
		a.total = append(a.total, max(0, a.kinds[inside].capacity.Pods-a.kinds[class].placed))
	}
	for range a.uses {
		a.total = append(a.total, unlimited/2)
	}
	for _, level := range levels {
		a.addTable(level)
	}
	a.sortTables()
	if !a.alike && !a.opaque {
		a.addRests()
	}
	return a
}

// addRests adds to the narrowest level what the domains of wider levels, and the area of all, have room for beside its
// domains: nodes without a label of the level, on which single pods may be.
func (a *arrangement) addRests() {
	t := &a.tables[0]
	for j := 1; j <= len(a.tables); j++ {
		areas, rooms, outerOf := []Area{a.inside}, make([][]int, len(a.total)), func(int) int32 { return 0 } // of all
		for row, n := range a.total {
			rooms[row] = []int{n}
		}
		if j < len(a.tables) {
			areas, rooms = a.tables[j].areas, a.tables[j].room
			outerOf = func(d int) int32 { return t.outer[j][d] }
		}
		rest := make([][]int, len(areas))
		for d := range areas {
			for row := range rooms {
				rest[d] = append(rest[d], rooms[row][d])
			}
		}
		for d := range t.areas {
			if outer := outerOf(d); outer >= 0 {
				for row := range t.room {
					rest[outer][row] -= t.room[row][d]
				}
			}
		}
		for d, area := range areas {
			if !slices.ContainsFunc(rest[d][:len(a.classes)], func(n int) bool { return n > 0 }) {
				continue
			}
			t.areas = append(t.areas, area)
			for row, n := range a.usableRest(rest[d]) {
				t.room[row], t.left[row] = append(t.room[row], n), append(t.left[row], 0)
			}
			for k := 1; k < len(a.tables); k++ {
				outer := int32(-1)
				switch {
				case k == j:
					outer = int32(d)
				case k > j:
					outer = a.tables[j].outer[k][d]
				}
				t.outer[k] = append(t.outer[k], outer)
			}
		}
	}
}

// usableRest returns the room of a rest, by row: no more of each resource than the pods that there is room for can use.
func (a *arrangement) usableRest(rest []int) []int {
	used := make([]int, a.uses)
	for row, class := range a.classes {
		rest[row] = max(0, rest[row])
		for k, uses := range a.usesOf[class] {
			if uses > 0 {
				used[k] += min(rest[row], unlimited/4/len(a.classes)/int(uses)) * int(uses)
			}
		}
	}
	for k, n := range used {
		rest[len(a.classes)+k] = min(max(0, rest[len(a.classes)+k]), n)
	}
	return rest
}

// compareClasses sets what a pod of each class takes. It takes the room of pods of another class if its nodes are among
// theirs, and it leaves no room for as many of them: see podsInsteadOf. What takes the room of pods that take the room
// of others takes that of these.
func (a *arrangement) compareClasses() {
	const maxCompared = 32
	a.podTakes = make([][]taking, len(a.classes))
	for i, class := range a.classes {
		a.podTakes[i] = append(a.podTakes[i], taking{i, 1})
		for r, uses := range a.usesOf[class] {
			if uses > 0 {
				a.podTakes[i] = append(a.podTakes[i], taking{len(a.classes) + r, int(uses)})
			}
		}
	}
	if len(a.classes) > maxCompared {
		return
	}
	nodes := a.classesByNode()
	for i := range a.classes {
		if a.timeIsOver() {
			return
		}
		for k := range a.classes {
			n := a.podsInsteadOf(i, k)
			if i != k && n > 0 && !slices.ContainsFunc(nodes, func(classes uint32) bool { return classes>>i&1 > classes>>k&1 }) {
				a.podTakes[i] = append(a.podTakes[i], taking{k, n})
			}
		}
	}
}

// classesByNode returns the sets of classes, as bits by index in classes, for all of which there is a node.
func (a *arrangement) classesByNode() []uint32 {
	sets := map[string]uint32{}
	for i, class := range a.classes {
		for _, node := range a.world.Nodes(int(a.deriveClass(class, a.inside)), unlimited) {
			sets[node] |= 1 << i
		}
	}
	return slices.Compact(slices.Sorted(maps.Values(sets)))
}

// podsInsteadOf returns, for two indexes in classes, for how many pods of the other class the resources suffice that a
// pod of the class uses. There are no more than each domain has room for in place of the pods of the class: resources
// are not all that pods need.
func (a *arrangement) podsInsteadOf(class, other int) int {
	n := 0
	for r, uses := range a.usesOf[a.classes[other]] {
		if uses > 0 {
			const most = 1 << 16
			if n = min(cmp.Or(n, most), int(min(a.usesOf[a.classes[class]][r]/uses, most))); n == 0 {
				return 0
			}
		}
	}
	for _, t := range a.tables {
		for d, room := range t.room[class] {
			if room > 0 {
				n = min(n, t.room[other][d]/room)
			}
		}
	}
	return n
}

// addTakenRoom adds to what a unit takes the room of lighter classes.
func (a *arrangement) addTakenRoom(u *unit) {
	own := u.takes
	u.takes = slices.Clone(own)
	for _, t := range own {
		if t.row >= len(a.classes) {
			continue
		}
		for _, other := range a.podTakes[t.row] {
			if other.row < len(a.classes) && other.row != t.row {
				u.addTaking(other.row, other.n*t.n)
			}
		}
	}
}

// readWaitingPods records the classes of the waiting pods of the group that is planned, and returns the levels required
// below it.
func (a *arrangement) readWaitingPods() (levels []string) {
	a.visitUnsatisfied(a.group, func(g int32) {
		at := &a.groups[g]
		if at.required != "" && g != a.group && !slices.Contains(levels, at.required) {
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
	})
	return levels
}

// sortTables sorts the tables, and records which domains enclose those of narrower levels.
func (a *arrangement) sortTables() {
	for i := range a.tables {
		t := &a.tables[i]
		for j := range a.tables {
			if i != j && !slices.Contains(a.enclosing(t, &a.tables[j]), -1) {
				t.wider++
			}
		}
	}
	slices.SortStableFunc(a.tables, func(x, y table) int {
		return cmp.Or(cmp.Compare(y.wider, x.wider), cmp.Compare(len(y.areas), len(x.areas)))
	})
	for i := range a.tables {
		t := &a.tables[i]
		t.rests, t.outer = len(t.areas), make([][]int32, len(a.tables))
		for j := i + 1; j < len(a.tables); j++ {
			t.outer[j] = a.enclosing(t, &a.tables[j])
			a.opaque = a.opaque || slices.Contains(t.outer[j], -1)
		}
	}
}

func (a *arrangement) addTable(level string) {
	areas := a.world.Areas(level, a.inside)
	t := table{level: level, areas: make([]Area, len(areas))}
	order := a.usedFirst(a.classes[0], level, a.inside)
	for d, i := range order {
		t.areas[d] = areas[i]
	}
	addRow := func(of func(i int) int) {
		row := make([]int, len(order))
		for d, i := range order {
			row[d] = of(i)
		}
		t.room = append(t.room, row)
	}
	for _, class := range a.classes {
		rooms := a.roomsLeft(class, level, a.inside)
		addRow(func(i int) int { return rooms[i] })
	}
	if a.uses > 0 {
		free := a.world.FreeIn(level, a.inside)
		for k := range a.uses {
			addRow(func(i int) int { return int(free[i][k]) })
		}
	}
	for _, row := range t.room {
		t.left = append(t.left, make([]int, len(row)))
	}
	a.tables = append(a.tables, t)
}

// enclosing returns, by domain of one table, the domain of another that contains it, -1 if there is none.
func (a *arrangement) enclosing(inner, outer *table) []int32 {
	index := indexOfAreas(outer.areas)
	list := make([]int32, len(inner.areas))
	for i, area := range inner.areas {
		list[i] = -1
		if around, ok := a.world.AreaAround(outer.level, a.inside, area); ok {
			list[i] = int32(index[around])
		}
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

// domainsFor returns the table of the level that a group requires, -1 if there is none, and the index of the only
// domain, -1 if it may have any.
func (a *arrangement) domainsFor(g int32) (int, int32) {
	at := &a.groups[g]
	table := slices.IndexFunc(a.tables, func(t table) bool { return t.level == at.required })
	if table < 0 || at.open {
		return table, -1
	}
	// Its area may be inside one of a zone, which has another number.
	t := &a.tables[table]
	around, ok := a.world.AreaAround(t.level, a.inside, at.area)
	if !ok {
		return table, -1
	}
	return table, int32(slices.Index(t.areas, around))
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
	return a.leastSum(g, func(leaf int32) int {
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
	for d := range t.rests {
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

// setChoice prepares the assignment of a choice. If scarce is set, the tightest domain of a unit is that with the least
// room of what is scarce, and each pod of a leaf without a level of its own is assigned a domain of the narrowest
// level: what is left in several of them may be too little for such a pod in each.
func (a *arrangement) setChoice(groups []int32, scarce bool) {
	a.scarce, a.fills = scarce, fills{}
	if scarce && !a.opaque && a.podTakes == nil {
		a.compareClasses()
	}
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
	a.units, a.singles = a.units[:0], a.singles[:0]
	a.appendSection(top, -1)
	a.appendSingles()
	a.chosen = make([]int32, len(a.units))
	if scarce {
		a.shares = a.sharesOfRoom()
	}
	a.findTwins()
}

// appendSingles appends the single pods, the largest first, and of these the ones that may have the fewest domains.
func (a *arrangement) appendSingles() {
	tableOf := func(u unit) int {
		if u.zone < 0 {
			return len(a.tables)
		}
		return a.units[u.zone].table
	}
	slices.SortStableFunc(a.singles, func(x, y unit) int {
		return cmp.Or(cmp.Compare(y.size, x.size), cmp.Compare(x.like, y.like), cmp.Compare(tableOf(x), tableOf(y)), cmp.Compare(x.zone, y.zone))
	})
	a.units = append(a.units, a.singles...)
}

// findTwins finds domains that each unit may have instead of each other: those inside the same wider domains, without
// narrower ones inside, to which no unit is pinned. Only what is left in them may differ.
func (a *arrangement) findTwins() {
	a.twins = a.twins[:0]
	pinned := map[place]bool{}
	for _, u := range a.units {
		pinned[place{u.table, u.pinned}] = true
	}
	for i := range a.tables {
		t := &a.tables[i]
		twins, first, key := make([]int32, len(t.areas)), map[string]int32{}, []byte(nil)
		hasInner := slices.ContainsFunc(a.tables[:i], func(inner table) bool {
			return slices.ContainsFunc(inner.outer[i], func(outer int32) bool { return outer >= 0 })
		})
		for d := range twins {
			twins[d] = int32(d)
			if hasInner || d >= t.rests || pinned[place{i, int32(d)}] {
				continue
			}
			key = key[:0]
			for _, outer := range t.outer {
				if outer != nil {
					key = binary.AppendVarint(key, int64(outer[d]))
				}
			}
			if k, known := first[string(key)]; known {
				twins[d] = k
			} else {
				first[string(key)] = int32(d)
			}
		}
		a.twins = append(a.twins, twins)
	}
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
	at, single := len(a.units), len(a.singles)
	if s.group >= 0 {
		z := unit{group: s.group, isZone: true, zone: zone}
		z.table, z.pinned = a.domainsFor(s.group)
		a.narrowToZone(&z)
		a.units = append(a.units, z)
		zone = at
	}
	if a.scarce && !a.opaque {
		a.splitLoose(s, zone)
	}
	s.sort(a)
	i, k := 0, 0
	for i < len(s.units) || k < len(s.sections) { // the largest first
		if k == len(s.sections) || i < len(s.units) && (s.units[i].pinned >= 0 || s.units[i].size >= s.sections[k].size) {
			u := s.units[i]
			u.zone = zone
			a.narrowToZone(&u)
			if a.scarce && !a.opaque {
				a.addTakenRoom(&u)
			}
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
		if a.scarce && !a.opaque {
			a.addTakenRoom(&u)
		}
		a.units = append(a.units, u)
	}
	if s.group < 0 {
		return
	}
	var z unit
	for _, u := range slices.Concat(a.units[at+1:], a.singles[single:]) {
		if !u.isZone {
			for _, t := range u.takes {
				z.addTaking(t.row, t.n)
			}
		}
	}
	a.units[at].takes = z.takes
}

// splitLoose replaces the leaves of a section without a level of their own by their single pods, if these are of one
// Independent class.
func (a *arrangement) splitLoose(s *section, zone int) {
	s.loose = slices.DeleteFunc(s.loose, func(leaf int32) bool {
		if a.singleClassOf(leaf) < 0 {
			return false
		}
		class := int32(a.groups[leaf].pods[0].Class)
		u := unit{group: -1, loose: []int32{leaf}, single: true, zone: zone, like: -1<<20 - class, pinned: -1, size: 1 + a.weightOf(class)}
		u.pods = 1
		u.addTaking(slices.Index(a.classes, class), 1)
		for k, n := range a.usesOf[class] {
			u.addTaking(len(a.classes)+k, int(n))
		}
		a.addTakenRoom(&u)
		a.singles = append(a.singles, slices.Repeat([]unit{u}, a.groups[leaf].missing())...)
		return true
	})
}

// narrowToZone replaces the level of a unit or zone that is wider than that of the zone around it: it has the zone's
// domain.
func (a *arrangement) narrowToZone(u *unit) {
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
