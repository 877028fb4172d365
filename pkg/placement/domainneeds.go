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

// DomainNeeds returns necessary conditions of a plan for the minimum that follow from required topology levels: one for
// each level, domain and class of groups that may be part of a plan, so that a change of the domains helps only by room
// for one of them. nil: there is none.
func DomainNeeds(p Problem, w World) []DomainNeed {
	if len(p.Required) == 0 { // most gangs
		return nil
	}
	e := estimate{newPlanner(p, w, nil), nil}
	e.countClasses()
	var needs []DomainNeed
	seen := map[DomainNeed]bool{} // without the number of pods
	for i := range e.groups {
		g := &e.groups[i]
		if g.required == "" || g.torn || g.satisfied() || !e.possible[i] {
			continue
		}
		for class := range e.waitingByClass(int32(i)) {
			n := DomainNeed{Level: g.required, Class: int(class)}
			if !g.open {
				n.Area = g.area
			}
			if seen[n] {
				continue
			}
			seen[n] = true
			n.Pods = e.leastInDomain(root, &n)
			needs = append(needs, n)
		}
	}
	slices.SortFunc(needs, func(a, b DomainNeed) int {
		return slices.Compare([]int{a.Class, int(a.Area)}, []int{b.Class, int(b.Area)})
	})
	return needs
}

// estimate is a planner that has placed nothing, with the waiting pods of each leaf by class.
type estimate struct {
	*planner
	counts [][]need // by group; those of a leaf
}

func (e *estimate) countClasses() {
	e.counts = make([][]need, len(e.groups))
	for i := range e.groups {
		for _, pod := range e.groups[i].pods {
			list := e.counts[i]
			at := len(list) - 1 // mostly that of the pod before
			if at < 0 || list[at].class != int32(pod.Class) {
				at = slices.IndexFunc(list, func(n need) bool { return n.class == int32(pod.Class) })
			}
			if at < 0 {
				e.counts[i] = append(list, need{int32(pod.Class), 1})
				continue
			}
			list[at].pods++
		}
	}
}

// leastInDomain returns the fewest pods of the need's class that each plan for a group puts in one domain of the need.
func (e *estimate) leastInDomain(g int32, n *DomainNeed) int {
	at := &e.groups[g]
	switch {
	case at.satisfied() || !e.possible[g]:
		return 0
	case at.required == n.Level && !at.torn && (at.open && n.Area == 0 || !at.open && n.Area == at.area):
		return e.fewestOf(g, int32(n.Class))
	case at.isLeaf():
		return 0
	}
	children, none := 0, 0
	var values []int // of children with a value; a plan contains all children but those with the highest values
	for k := at.first; k < at.end; k++ {
		if e.satisfied(k) || !e.possible[k] {
			continue
		}
		children++
		if value := e.leastInDomain(k, n); value > 0 {
			values = append(values, value)
		} else {
			none++
		}
	}
	missing := at.missing()
	switch {
	case children < missing || missing <= none:
		return 0
	case children == missing:
		return slices.Max(values)
	}
	slices.Sort(values)
	return values[missing-none-1]
}

// fewestOf is fewestOfClass of an estimate.
func (e *estimate) fewestOf(g, class int32) int {
	return e.leastSum(g, func(leaf int32) int {
		at := &e.groups[leaf]
		if i := slices.IndexFunc(e.counts[leaf], func(n need) bool { return n.class == class }); i >= 0 {
			return max(0, at.missing()-(len(at.pods)-e.counts[leaf][i].pods))
		}
		return 0 // it has enough pods of other classes
	})
}

// waitingByClass returns the number of waiting pods below a group by class of the Problem.
func (e *estimate) waitingByClass(g int32) map[int32]int {
	waiting := map[int32]int{}
	var visit func(g int32)
	visit = func(g int32) {
		for _, n := range e.counts[g] {
			waiting[n.class] += n.pods
		}
		for k := e.groups[g].first; k < e.groups[g].end; k++ {
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

// PinnedDomains returns the domains to which waiting pods of the problems are restricted because pods of their groups
// run there, by class: for each class of which no pod may be placed elsewhere, those of the innermost groups. A problem
// may be zero.
func PinnedDomains(w World, problems ...Problem) map[int][]Domain {
	pinned, free := map[int]map[Domain]bool{}, map[int]bool{}
	for _, p := range problems {
		if p.Tree == nil {
			continue
		}
		e := estimate{newPlanner(p, w, nil), nil}
		e.countClasses()
		for i := range e.groups {
			if !e.groups[i].isLeaf() {
				continue
			}
			domain := e.pinnedDomain(int32(i))
			for _, n := range e.counts[i] {
				class := int(n.class)
				switch {
				case domain.Area == 0:
					free[class] = true
				case pinned[class] == nil:
					pinned[class] = map[Domain]bool{domain: true}
				default:
					pinned[class][domain] = true
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

// pinnedDomain returns the domain in which pods of the nearest group at or above the given one run; zero: there is
// none.
func (pl *planner) pinnedDomain(g int32) Domain {
	for ; g >= 0; g = pl.groups[g].parent {
		if at := &pl.groups[g]; at.required != "" && !at.open && !at.torn {
			return Domain{at.required, at.area}
		}
	}
	return Domain{}
}

// Pins returns a function that says where pods below a group must be because pods of the gang run: Group and Level are
// of the nearest group at or above it with such pods, and the only one of Domains is theirs, of which Pods is not set.
// If they are in no single domain, the result is that of the highest group of which this is true, with Torn or Gone.
// Zero: pods that run do not matter.
func Pins(p Problem, w World) func(group string) LevelShortfall {
	pl := newPlanner(p, w, nil)
	return func(name string) (pin LevelShortfall) {
		g := int32(slices.IndexFunc(pl.groups, func(g group) bool { return g.of.Name() == name }))
		for ; g >= 0; g = pl.groups[g].parent {
			switch at := &pl.groups[g]; {
			case at.required == "" || at.open:
			case at.torn:
				pin = LevelShortfall{Group: at.of.Name(), Level: at.required, Torn: !at.gone, Gone: at.gone}
			case pin.Torn || pin.Gone:
				return pin
			default:
				return LevelShortfall{Group: at.of.Name(), Level: at.required, Runs: true, Domains: []DomainRoom{{Area: at.area}}}
			}
		}
		return pin
	}
}
