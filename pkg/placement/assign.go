// SPDX-License-Identifier: Apache-2.0

package placement

import "slices"

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
