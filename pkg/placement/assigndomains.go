// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// assignDomains finds domains for all units of the choice by their numbers.
func (a *arrangement) assignDomains() bool {
	a.left = append(a.left[:0], a.total...)
	a.hash, a.failed, a.steps, a.contents = 0, map[uint64]bool{}, 0, map[place]content{}
	for i := range a.tables {
		t := &a.tables[i]
		for c := range t.room {
			copy(t.left[c], t.room[c])
		}
		t.rankings = t.rankings[:0]
	}
	for i := range a.tables {
		for d := range a.tables[i].areas {
			a.hash += a.hashOfDomain(i, d)
		}
	}
	if a.alike { // what refused pods changes their room
		a.fills = fills{}
	}
	return a.assignFrom(0)
}

// fills are what the units from an index on can take of one row in all, in a domain of the narrowest level. In a domain
// whose room no set of units fills, some is left over, whatever is assigned.
type fills struct {
	isSet   bool // it is known, or known that there is no such row
	row     int
	domains int       // number of domains that the units may be in, from the first one on
	spare   int       // what is left over in all domains if all units have one
	most    [][]int32 // by index in units, then by what is left in a domain: the most that units from this index on take; nil: not known
}

// setFills sets fills for the row of small numbers of which the choice needs the largest share. Parts of the choice
// that need not be in one domain of the narrowest level may fill any domain, and are part of what is spare.
func (a *arrangement) setFills() {
	f := fills{isSet: true, row: -1, domains: a.tables[0].rests}
	if slices.ContainsFunc(a.units, func(u unit) bool { return u.single }) {
		f.domains = len(a.tables[0].areas)
	}
	shares, limit := a.sharesOfRoom(), maxFills/(len(a.units)+1)
	for row, share := range shares {
		isSmall := !slices.ContainsFunc(a.tables[0].room[row][:f.domains], func(n int) bool { return n >= limit }) // not bytes of memory
		isUsed := slices.ContainsFunc(a.units, func(u unit) bool { return !u.isZone && u.table == 0 && u.takesOf(row) > 0 })
		if isSmall && isUsed && (f.row < 0 || share > shares[f.row]) {
			f.row = row
		}
	}
	a.fills.isSet = true
	if f.row < 0 {
		return
	}
	size := 1
	for _, n := range a.tables[0].room[f.row][:f.domains] {
		size = max(size, n+1)
		f.spare += n
	}
	f.most = make([][]int32, len(a.units)+1)
	sums := make([]bool, size) // of sets of units
	sums[0] = true
	f.most[len(a.units)] = make([]int32, size)
	for i := len(a.units) - 1; i >= 0; i-- {
		u := &a.units[i]
		n := u.takesOf(f.row)
		if f.most[i] = f.most[i+1]; n == 0 || u.isZone || u.table != 0 || u.group < 0 && !u.single {
			continue
		}
		f.spare -= n
		f.most[i] = make([]int32, size)
		for sum := size - 1; sum >= n; sum-- {
			sums[sum] = sums[sum] || sums[sum-n]
		}
		most := 0
		for left, ok := range sums {
			if ok {
				most = left
			}
			f.most[i][left] = int32(most)
		}
	}
	a.fills = f
}

// leavesTooMuch reports whether the units from an index on leave more over in the domains than is spare.
func (a *arrangement) leavesTooMuch(i int) bool {
	f := &a.fills
	if f.most == nil {
		return false
	}
	over := 0
	for _, left := range a.tables[0].left[f.row][:f.domains] {
		if left > 0 {
			over += left - int(f.most[i][left])
		}
	}
	return over > f.spare
}

// sharesOfRoom returns, by row, the share of the room in the domains of the narrowest level that the choice needs.
func (a *arrangement) sharesOfRoom() []float64 {
	shares := make([]float64, len(a.tables[0].room))
	for i := range a.units {
		if u := &a.units[i]; !u.isZone {
			for _, t := range u.takes {
				shares[t.row] += float64(t.n)
			}
		}
	}
	for row, rooms := range a.tables[0].room {
		room := 1.0
		for _, n := range rooms {
			room += float64(n)
		}
		shares[row] /= room
	}
	return shares
}

// takesOf returns what a unit takes of a row.
func (u *unit) takesOf(row int) int {
	if i := slices.IndexFunc(u.takes, func(t taking) bool { return t.row == row }); i >= 0 {
		return u.takes[i].n
	}
	return 0
}

// hashOfDomain returns a number for what is left in a domain, the same for twins in which nothing was refused.
func (a *arrangement) hashOfDomain(table, d int) uint64 {
	domain := int(a.twins[table][d])
	if len(a.refusals[place{table, int32(d)}]) > 0 {
		domain = len(a.tables[table].areas) + d
	}
	random := shuffler(1 + uint64(table)<<32 + uint64(domain))
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
		// Units in the zone are confined to this domain: what is left in its twins is no substitute for what is left in
		// it.
		state = shuffler(number ^ uint64(a.chosen[zone]) ^ a.hashOfDomain(a.units[zone].table, int(a.chosen[zone])))
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
	if a.steps >= fillsAfter*len(a.units) && !a.fills.isSet {
		a.setFills()
	}
	u := &a.units[i]
	if u.table < 0 {
		return a.assignLoose(i)
	}
	if u.pinned < 0 && !u.isZone && u.group >= 0 && (i == 0 || a.units[i-1].like != u.like || a.units[i-1].zone != u.zone) && !a.countFits(i) {
		return false
	}
	if a.leavesTooMuch(i) {
		return false
	}
	state := a.state(i)
	if a.failed[state] {
		return false
	}
	for d := range a.domainsByTightness(u) {
		a.chosen[i] = d
		a.takeDomain(u, int(d), 1)
		isPossible := !a.isRefused(u, int(d))
		if isPossible && a.assignFrom(i+1) {
			return true
		}
		a.takeDomain(u, int(d), -1)
		if !isPossible {
			a.steps++
		}
		// The room for others is the same whichever domain a single pod has: it is likely that other units have the
		// wrong ones.
		if isPossible && u.single || !a.alike && a.steps > maxSteps || a.late {
			break
		}
	}
	if !a.late {
		a.failed[state] = true
	}
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
	a.takeDomain(u, 0, 1)
	if !a.isRefused(u, 0) && a.assignFrom(i+1) {
		return true
	}
	a.takeDomain(u, 0, -1)
	return false
}

// mayUse reports whether the unit may have the domain: that of its pods that run, and one inside its zone's.
func (a *arrangement) mayUse(u *unit, d int) bool {
	if u.pinned >= 0 && int(u.pinned) != d || !u.single && d >= a.tables[u.table].rests {
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

// ranking is the domains of a table in the order of what is left of a row, those inside one wider domain beside each
// other. It is kept up to date by take.
type ranking struct {
	row, wider int // wider is the table of these domains; -1: none
	ranks      []rank
}

// rank is a domain in a ranking.
type rank struct {
	outer int32 // the wider domain; 0 if there is none
	left  int
	d     int32
}

func compareRanks(x, y rank) int {
	return cmp.Or(cmp.Compare(x.outer, y.outer), cmp.Compare(x.left, y.left), cmp.Compare(x.d, y.d))
}

// rankingOf returns the ranking of a table by a row.
func (a *arrangement) rankingOf(table, row, wider int) *ranking {
	t := &a.tables[table]
	if i := slices.IndexFunc(t.rankings, func(r ranking) bool { return r.row == row && r.wider == wider }); i >= 0 {
		return &t.rankings[i]
	}
	r := ranking{row: row, wider: wider, ranks: make([]rank, len(t.areas))}
	for d := range t.areas {
		r.ranks[d] = t.rankIn(&r, d)
	}
	slices.SortFunc(r.ranks, compareRanks)
	t.rankings = append(t.rankings, r)
	return &t.rankings[len(t.rankings)-1]
}

func (t *table) rankIn(r *ranking, d int) rank {
	at := rank{left: t.left[r.row][d], d: int32(d)}
	if r.wider >= 0 {
		at.outer = t.outer[r.wider][d]
	}
	return at
}

// changeLeft changes what is left in a domain for each row of takes.
func (t *table) changeLeft(d int, takes []taking, sign int) {
	for _, take := range takes {
		for i := range t.rankings {
			if r := &t.rankings[i]; r.row == take.row {
				r.move(t.rankIn(r, d), sign*take.n)
			}
		}
		t.left[take.row][d] -= sign * take.n
	}
}

// move moves a domain to its place after n was taken from what is left there.
func (r *ranking) move(from rank, n int) {
	to := from
	to.left -= n
	i, _ := slices.BinarySearchFunc(r.ranks, from, compareRanks)
	k, _ := slices.BinarySearchFunc(r.ranks, to, compareRanks)
	if k > i { // from is not there any more
		k--
		copy(r.ranks[i:k], r.ranks[i+1:k+1])
	} else {
		copy(r.ranks[k+1:i+1], r.ranks[k:i])
	}
	r.ranks[k] = to
}

// domainsByTightness yields the domains that the unit may have and that hold it, the tightest first. Between two of
// them what is left must be the same again.
func (a *arrangement) domainsByTightness(u *unit) func(yield func(d int32) bool) {
	return func(yield func(d int32) bool) {
		if u.pinned >= 0 {
			if a.mayUse(u, int(u.pinned)) && a.holds(u, int(u.pinned)) {
				yield(u.pinned)
			}
			return
		}
		if u.zone >= 0 && a.units[u.zone].table == u.table {
			if d := a.chosen[u.zone]; a.holds(u, int(d)) {
				yield(d)
			}
			return
		}
		row, wish := 0, 0 // of a zone, or loose leaves: what fits is enough
		if len(u.needs) > 0 {
			row, wish = slices.Index(a.classes, u.needs[0].class), u.wish[0]
		} else if len(u.takes) > 0 {
			row, wish = u.takes[0].row, u.takes[0].n
		}
		fewest := u.takesOf(row)
		if a.scarce && len(u.takes) > 0 {
			t := slices.MaxFunc(u.takes, func(x, y taking) int { return cmp.Compare(a.shares[x.row], a.shares[y.row]) })
			row, wish, fewest = t.row, t.n, t.n
		}
		wider, outer := -1, int32(0)
		if u.zone >= 0 {
			wider, outer = a.units[u.zone].table, a.chosen[u.zone]
		}
		if wider >= 0 && a.tables[u.table].outer[wider] == nil {
			return // no domain is inside the zone's
		}
		ranks := a.rankingOf(u.table, row, wider).ranks
		find := func(left int) int {
			i, _ := slices.BinarySearchFunc(ranks, rank{outer, left, -1}, compareRanks)
			return i
		}
		for i := find(wish); i < len(ranks) && ranks[i].outer == outer; i++ {
			if d := ranks[i].d; a.holds(u, int(d)) && !yield(d) {
				return
			}
		}
		// None has room for all pods that wait: those with the most room come first.
		for end, low := find(wish), find(fewest); end > low; {
			first := find(ranks[end-1].left)
			for _, at := range ranks[first:end] {
				if a.holds(u, int(at.d)) && !yield(at.d) {
					return
				}
			}
			end = first
		}
	}
}

// holds reports whether the numbers allow the unit in the domain, and in those that enclose it.
func (a *arrangement) holds(u *unit, d int) bool {
	t := &a.tables[u.table]
	if !u.single && d >= t.rests || !a.fitsIn(u, t.left, d) {
		return false
	}
	for j, outer := range t.outer {
		if outer != nil && outer[d] >= 0 && !a.fitsIn(u, a.tables[j].left, int(outer[d])) {
			return false
		}
	}
	return true
}

// takeDomain puts the unit into the domain (1), or takes it back (-1).
func (a *arrangement) takeDomain(u *unit, d, sign int) {
	change := func(table, d int) {
		a.hash -= a.hashOfDomain(table, d)
		if !u.isZone {
			a.tables[table].changeLeft(d, u.takes, sign)
		}
		a.hash += a.hashOfDomain(table, d)
	}
	if u.table >= 0 {
		change(u.table, d)
		for j, outer := range a.tables[u.table].outer {
			if outer != nil && outer[d] >= 0 {
				change(j, int(outer[d]))
			}
		}
	}
	if u.isZone {
		return
	}
	for _, t := range u.takes {
		a.left[t.row] -= sign * t.n
	}
	at := place{u.table, int32(d)}
	if len(a.refusals[at]) == 0 {
		return
	}
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

// countFits reports whether the domains, and those around them, have room for unit i and those like it, by their
// numbers.
func (a *arrangement) countFits(i int) bool {
	u := &a.units[i]
	n := 1
	for i+n < len(a.units) && a.units[i+n].like == u.like && a.units[i+n].zone == u.zone {
		n++
	}
	t := &a.tables[u.table]
	fitting := func(t *table, d int) int {
		most := n
		for _, take := range u.takes {
			most = min(most, max(0, t.left[take.row][d])/take.n)
		}
		return most
	}
	sum, left := 0, make([][]int, len(a.tables)) // by wider table and domain
	for j := u.table + 1; j < len(a.tables) && !a.opaque; j++ {
		for d := range a.tables[j].areas {
			left[j] = append(left[j], fitting(&a.tables[j], d))
		}
	}
	for d := range t.areas {
		if !a.mayUse(u, d) {
			continue
		}
		most := fitting(t, d)
		for j := range left {
			if left[j] != nil && t.outer[j][d] >= 0 {
				most = min(most, left[j][t.outer[j][d]])
			}
		}
		for j := range left {
			if left[j] != nil && t.outer[j][d] >= 0 {
				left[j][t.outer[j][d]] -= most
			}
		}
		if sum += most; sum >= n {
			return true
		}
	}
	return false
}
