// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// ledger compares, by class and for each domain, what the narrowest domains inside have room for with what units need that have the
// domain, but no narrowest one yet. What is left in a domain may be of no use: eight free GPUs of a host of which a unit takes five
// have no room for two pods of four; and a unit that has a block, but no host, will need some of its hosts.
//
// If the sizes of all pods divide each other, as 1, 2, 4 and 8 do, single pods for which the ledger has room can have domains.
type ledger struct {
	room    [][][]int // by table, class and domain: for how many pods there is room beside what is pledged; the last table is for all nodes
	inside  [][][]int // likewise: the sum of room in the next narrower domains
	pledged [][][]int // likewise: of how many pods the units that have the domain, but no narrowest one, need the room
}

// openLedger starts the ledger of an assignment that follows what is scarce: everything is pledged to all nodes.
func (a *arrangement) openLedger() {
	l := ledger{}
	for i := range len(a.tables) + 1 {
		size := 1
		if i < len(a.tables) {
			size = len(a.tables[i].areas)
		}
		for _, of := range []*[][][]int{&l.room, &l.inside, &l.pledged} {
			rows := make([][]int, len(a.classes))
			for class := range rows {
				rows[class] = make([]int, size)
			}
			*of = append(*of, rows)
		}
	}
	a.ledger = l
	for i := range a.units {
		if u := &a.units[i]; !u.isZone {
			a.pledgeRoom(u, len(a.tables), 0, 1)
		}
	}
	for d := range a.tables[0].areas {
		a.updateRoom(0, d)
	}
}

// domainAround returns the table and the index of the next wider domain around one: the last table for all nodes.
func (a *arrangement) domainAround(table, d int) (int, int) {
	for j := table + 1; j < len(a.tables); j++ {
		if outer := a.tables[table].outer[j][d]; outer >= 0 {
			return j, int(outer)
		}
	}
	return len(a.tables), 0
}

// updateRoom follows a change of what is left, or pledged, in a domain and those around it.
func (a *arrangement) updateRoom(table, d int) {
	for {
		outer, o := 0, 0
		if table < len(a.tables) {
			outer, o = a.domainAround(table, d)
		}
		for class, takes := range a.podTakes {
			room := unlimited
			for _, take := range takes {
				if table == 0 || take.row < len(a.classes) {
					room = min(room, max(0, a.unpledged(take.row, table, d))/take.n)
				}
			}
			more := room - a.ledger.room[table][class][d]
			a.ledger.room[table][class][d] = room
			if table < len(a.tables) {
				a.ledger.inside[outer][class][o] += more
			}
		}
		if table == len(a.tables) {
			return
		}
		table, d = outer, o
	}
}

// unpledged returns what a domain has of a row beside what is pledged.
func (a *arrangement) unpledged(row, table, d int) int {
	switch {
	case row >= len(a.classes):
		return a.tables[table].left[row][d]
	case table == 0:
		return a.tables[0].left[row][d] - a.ledger.pledged[0][row][d]
	}
	return a.ledger.inside[table][row][d] - a.ledger.pledged[table][row][d]
}

// hasRoom reports whether a narrowest domain, and those around it inside that of the zone, have room for a single pod.
func (a *arrangement) hasRoom(u *unit, d int) bool {
	class, zone := u.takes[0].row, len(a.tables)
	if u.zone >= 0 {
		zone = a.units[u.zone].table
	}
	for table := u.table; table < zone; table, d = a.domainAround(table, d) {
		if a.ledger.room[table][class][d] < 1 {
			return false
		}
	}
	return true
}

// pledgeRoom adds what a unit takes to a domain, with that sign.
func (a *arrangement) pledgeRoom(u *unit, table, d, sign int) {
	for _, take := range u.takes {
		if take.row < len(a.classes) {
			a.ledger.pledged[table][take.row][d] += sign * take.n
		}
	}
}

// movePledge moves what is pledged to a unit from the domain of its zone to its own, in which it is placed if this is a narrowest one.
// It is called for each of the unit's domains.
func (a *arrangement) movePledge(u *unit, table, d, sign int) {
	zone, in := len(a.tables), 0
	if u.zone >= 0 {
		zone, in = a.units[u.zone].table, int(a.chosen[u.zone])
	}
	if table == u.table && (table > 0 || u.isZone) {
		a.pledgeRoom(u, table, d, sign)
	}
	if table == zone && d == in {
		a.pledgeRoom(u, table, d, -sign)
	}
}

// isOverdrawn reports whether a domain, or one of those around it, has pledged more than it has room for, if there is a ledger.
func (a *arrangement) isOverdrawn(table, d int) bool {
	for a.ledger.room != nil {
		for class := range a.classes {
			if a.unpledged(class, table, d) < 0 {
				return true
			}
		}
		if table == len(a.tables) {
			return false
		}
		table, d = a.domainAround(table, d)
	}
	return false
}

// domainsByLoss returns the tightest domains that unit i may have, one of each set of twins in which the same is left, in the order in
// which it costs the least room that others may need. This is room for heavier pods, of which it uses a part. all: there are no others.
func (a *arrangement) domainsByLoss(i int) (domains []int32, all bool) {
	type candidate struct {
		d    int32
		loss float64
	}
	u, nodes := &a.units[i], len(a.tables)
	most := max(8, maxSteps/8/(1+len(a.units)-len(a.singles))) // an eighth of the steps, if each unit has its domain at the first try
	before := make([]int, len(a.classes))
	for class := range before {
		before[class] = a.unpledged(class, nodes, 0)
	}
	var list []candidate
	seen := map[uint64]bool{}
	all = true
	for d := range a.domainsByTightness(u) {
		state := a.hashOfDomain(u.table, int(d))
		if seen[state] {
			continue
		}
		if len(seen) == most {
			all = false
			break
		}
		seen[state] = true
		if a.steps++; a.steps%64 == 0 && a.timeIsOver() {
			break
		}
		a.chosen[i] = d
		a.takeDomain(u, int(d), 1)
		if !a.isOverdrawn(u.table, int(d)) {
			loss := 0.0
			for class, n := range before {
				loss += float64(n-a.unpledged(class, nodes, 0)) / float64(1+n)
			}
			list = append(list, candidate{d, loss})
		}
		a.takeDomain(u, int(d), -1)
	}
	slices.SortStableFunc(list, func(x, y candidate) int { return cmp.Compare(x.loss, y.loss) })
	for _, c := range list {
		domains = append(domains, c.d)
	}
	return domains, all
}
