// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"slices"
)

// DomainNeed is a necessary condition of a plan: some domain of the level has room for so many pods of the class.
type DomainNeed struct {
	Level string
	Area  Area // the only domain that counts, where pods of the group run; 0: any
	Class int
	Pods  int // 0: a plan may do without it
}

// DomainNeeds returns necessary conditions of a plan for the minimum that follow from required topology levels: one for each
// level, domain and class of groups that may be part of a plan, so that a change of the domains helps only by room for one of
// them. nil: there is none.
func DomainNeeds(p Problem, w World) []DomainNeed {
	if len(p.Required) == 0 { // most gangs
		return nil
	}
	pl := newPlanner(p, w, nil)
	var needs []DomainNeed
	seen := map[DomainNeed]bool{} // without the number of pods
	for i := range pl.groups {
		g := &pl.groups[i]
		if g.required == "" || g.torn || g.satisfied() || !pl.possible[i] {
			continue
		}
		for class := range pl.waitingByClass(int32(i)) {
			n := DomainNeed{Level: g.required, Class: int(class)}
			if !g.open {
				n.Area = g.area
			}
			if seen[n] {
				continue
			}
			seen[n] = true
			n.Pods = pl.leastInDomain(root, &n)
			needs = append(needs, n)
		}
	}
	slices.SortFunc(needs, func(a, b DomainNeed) int {
		return slices.Compare([]int{a.Class, int(a.Area)}, []int{b.Class, int(b.Area)})
	})
	return needs
}

// leastInDomain returns the fewest pods of the need's class that each plan for a group puts in one domain of the need.
func (pl *planner) leastInDomain(g int32, n *DomainNeed) int {
	at := &pl.groups[g]
	switch {
	case at.satisfied() || !pl.possible[g]:
		return 0
	case at.required == n.Level && !at.torn && (at.open && n.Area == 0 || !at.open && n.Area == at.area):
		return pl.fewestOfClass(g, int32(n.Class))
	case at.isLeaf():
		return 0
	}
	var values []int // a plan contains all children but those with the highest values
	for k := at.first; k < at.end; k++ {
		if !pl.satisfied(k) && pl.possible[k] {
			values = append(values, pl.leastInDomain(k, n))
		}
	}
	if len(values) < at.missing() {
		return 0
	}
	slices.Sort(values)
	return values[at.missing()-1]
}

// waitingByClass returns the number of waiting pods below a group by class of the Problem.
func (pl *planner) waitingByClass(g int32) map[int32]int {
	waiting := map[int32]int{}
	var visit func(g int32)
	visit = func(g int32) {
		at := &pl.groups[g]
		for i := range at.pods {
			waiting[int32(at.pods[i].Class)]++
		}
		for k := at.first; k < at.end; k++ {
			visit(k)
		}
	}
	visit(g)
	return waiting
}

// Domain is a domain of a topology level.
type Domain struct {
	Level string
	Area  Area
}

// PinnedDomains returns the domains to which waiting pods of the problems are restricted because pods of their groups run
// there, by class: for each class of which no pod may be placed elsewhere, those of the innermost groups. A problem may be
// zero.
func PinnedDomains(w World, problems ...Problem) map[int][]Domain {
	pinned, free := map[int]map[Domain]bool{}, map[int]bool{}
	for _, p := range problems {
		if p.Tree == nil {
			continue
		}
		pl := newPlanner(p, w, nil)
		for i := range pl.groups {
			if !pl.groups[i].isLeaf() {
				continue
			}
			domain := pl.pinnedDomain(int32(i))
			for class := range pl.waitingByClass(int32(i)) {
				switch {
				case domain.Area == 0:
					free[int(class)] = true
				case pinned[int(class)] == nil:
					pinned[int(class)] = map[Domain]bool{domain: true}
				default:
					pinned[int(class)][domain] = true
				}
			}
		}
	}
	out := map[int][]Domain{}
	for class, domains := range pinned {
		if !free[class] {
			out[class] = slices.SortedFunc(maps.Keys(domains), func(a, b Domain) int { return int(a.Area - b.Area) })
		}
	}
	return out
}

// pinnedDomain returns the domain in which pods of the nearest group at or above the given one run; zero: there is none.
func (pl *planner) pinnedDomain(g int32) Domain {
	for ; g >= 0; g = pl.groups[g].parent {
		if at := &pl.groups[g]; at.required != "" && !at.open && !at.torn {
			return Domain{at.required, at.area}
		}
	}
	return Domain{}
}
