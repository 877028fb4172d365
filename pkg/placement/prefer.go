// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// maxDomainsTried is how many domains of a level inside one area are tried for a whole group with a preferred level.
const maxDomainsTried = 8

// preferring plans groups with preferred levels in one walk over the tree. A group takes the first of these that holds
// it: one domain of its level, one of the next wider level and in it few domains of the narrower ones, then few domains
// of each. The walk may fail where a planner that ignores these levels succeeds.
type preferring struct {
	*planner
	levels  [][]string // by group: the levels of which one domain is tried for all its pods, the narrowest first
	below   []bool     // by group: it, or a group below it, has a preferred level
	running [][]string // by group with a preferred level: nodes of the pods that run below it, once for each leaf
	saved   []savedArea
	around  map[int32][]Area // by leaf, for single pods
	wider   map[nestedIn][]int
}

// savedArea is the area of a group before the walk changed it.
type savedArea struct {
	group int32
	area  Area
	open  bool
}

// walkMark identifies what the walk has done so far.
type walkMark struct{ stack, domains, saved int }

// usesPreferences reports whether the problem has preferred levels, and there may be time for them.
func (b *Budget) usesPreferences(p *Problem) bool {
	return len(p.Preferred) > 0 && b.PreferencesExpired != nil
}

// preferencesExpired reports whether the time for preferred levels, or for the plan, is over.
func (b *Budget) preferencesExpired() bool {
	return b.Expired != nil && b.Expired() || b.PreferencesExpired()
}

// preferredLevels returns the preferred level of a group and the wider levels of its topology, the narrowest first, as
// far as they are narrower than the level that the group requires. All of them include that level.
func preferredLevels(required, preferred string) []string {
	var levels []string
	for level := preferred; level != "" && !strings.HasPrefix(required+",", level+","); level = level[:max(0, strings.LastIndexByte(level, ','))] {
		if required == "" || strings.HasPrefix(level, required+",") {
			levels = append(levels, level)
		} else {
			levels = append(levels, required+","+level)
		}
	}
	return levels
}

// planPreferring plans the smallest set of pods that satisfies the tree, as Minimum, with preferred levels. If no pod
// has to follow others that run, it first takes all of these levels for required, which finds the domains in which
// every group is whole. It returns nil and leaves the World unchanged if it finds no plan, which does not mean that
// there is none.
func planPreferring(p Problem, w World, budget Budget) []Placement {
	f := newPreferring(newPlanner(p, w, budget.preferencesExpired), p)
	follows := false // some pods have to follow those that run
	for i := range f.groups {
		follows = follows || len(f.running[i]) > 0 && !f.satisfied(int32(i))
	}
	if !follows {
		narrowed := p
		narrowed.Required = maps.Clone(p.Required)
		if narrowed.Required == nil {
			narrowed.Required = map[string]string{}
		}
		for i := range f.groups {
			if f.prefers(int32(i)) && !f.satisfied(int32(i)) {
				narrowed.Required[f.groups[i].of.Name()] = f.levels[i][0]
			}
		}
		all := newPlanner(narrowed, w, budget.preferencesExpired)
		if all.planGroup(root, budget) {
			return all.placements()
		}
	}
	return f.planUnit(root)
}

// newPreferring returns the walk for a planner of the problem.
func newPreferring(pl *planner, p Problem) *preferring {
	n := len(pl.groups)
	f := &preferring{planner: pl, levels: make([][]string, n), below: make([]bool, n), around: map[int32][]Area{}, wider: map[nestedIn][]int{}}
	for i := n - 1; i >= 0; i-- {
		g := &pl.groups[i]
		f.levels[i] = preferredLevels(g.required, p.Preferred[g.of.Name()])
		f.below[i] = f.below[i] || len(f.levels[i]) > 0
		if g.parent >= 0 {
			f.below[g.parent] = f.below[g.parent] || f.below[i]
		}
	}
	f.running = pl.nodesBelow(p.Nodes, f.prefers)
	for i := range pl.groups {
		if g := &pl.groups[i]; g.open {
			f.levels[i] = append(f.levels[i], g.required)
		}
	}
	return f
}

// prefers reports whether a group has a preferred level, apart from the one that it requires.
func (f *preferring) prefers(g int32) bool {
	return len(f.levels[g]) > 0 && f.levels[g][0] != f.groups[g].required
}

// planUnit plans a group below groups that are satisfied, or the root. nil: there is no plan, and nothing is placed.
func (f *preferring) planUnit(g int32) []Placement {
	if f == nil || f.late {
		return nil
	}
	areas := f.areasFor(g, f.groups[g].parent)
	f.nested++
	defer func() { f.nested-- }()
	if len(areas) > 0 && f.fill(g, areas) {
		return f.placements()
	}
	f.undoTo(walkMark{})
	return nil
}

// areasFor returns the areas to try for pods below a group, the best first, because of the levels of another group and
// those above it. nil: these have no domain yet.
func (f *preferring) areasFor(g, above int32) []Area {
	if above < 0 {
		return []Area{0}
	}
	at, areas := &f.groups[above], f.areasFor(g, f.groups[above].parent)
	switch {
	case at.open || at.torn:
		return nil
	case at.required != "":
		areas = []Area{at.area}
	}
	r := f.requirementOf(g)
	if len(r.needs) == 0 { // single pods
		r.needs = []need{{int32(f.groups[g].pods[0].Class), f.groups[g].waiting()}}
	}
	return f.domainsInOrder(above, r.needs[0], areas)
}

// domainsInOrder returns the domains of the preferred levels of a group inside each of the areas, followed by that
// area.
func (f *preferring) domainsInOrder(g int32, n need, areas []Area) []Area {
	if !f.prefers(g) {
		return areas
	}
	var list []Area
	for _, within := range areas {
		list = append(f.appendFewest(list, f.running[g], n, f.levels[g], within), within)
	}
	return list
}

// fill satisfies a group. Each of its pods is placed in the first area that takes it, if the groups with levels allow
// that. On failure some placements may remain.
func (f *preferring) fill(g int32, areas []Area) bool {
	at := &f.groups[g]
	switch {
	case at.satisfied():
		return true
	case !f.possible[g] || f.timeIsOver():
		return false
	case at.required != "" && !at.open:
		areas = []Area{at.area}
	}
	if len(f.levels[g]) == 0 {
		return f.fillInAreas(g, areas)
	}
	r := f.requirementOf(g)
	if len(f.running[g]) == 0 {
		for k := range f.levels[g] {
			for _, within := range areas {
				for n, area := range f.areasInOrder(f.levels[g][:k+1], within, &r) {
					if n == maxDomainsTried || f.timeIsOver() {
						break
					}
					if f.fillInOneDomain(g, area, f.levels[g][:k], r.needs[0]) {
						return true
					}
				}
			}
		}
	}
	return !at.open && f.fillInAreas(g, f.domainsInOrder(g, r.needs[0], areas))
}

// areasInOrder returns the domains of a level inside an area of which the numbers allow what a group needs: those that
// hold all its waiting pods, or else what it needs, in the fewest domains of the next narrower level first, then in the
// order of roomyAreasOf. levels are the level, last, and the narrower ones.
func (f *preferring) areasInOrder(levels []string, within Area, r *requirement) []Area {
	list := f.roomyAreasOf(levels[len(levels)-1], within, r)
	if len(levels) == 1 || len(list) < 2 {
		return list
	}
	type order struct{ short, inside int }
	of := make(map[Area]order, len(list))
	for _, d := range f.domainsIn(nil, r.needs[0].class, levels[len(levels)-2:], within) {
		if d.room >= r.wish[0] {
			of[d.area] = order{0, needed(roomsInside(d), r.wish[0])}
		} else {
			of[d.area] = order{1, needed(roomsInside(d), r.needs[0].pods)}
		}
	}
	slices.SortStableFunc(list, func(a, b Area) int {
		return cmp.Or(cmp.Compare(of[a].short, of[b].short), cmp.Compare(of[a].inside, of[b].inside))
	})
	return list
}

// fillInOneDomain satisfies a group of which no pod runs in one domain, and in few domains of the narrower levels. On
// failure nothing is placed.
func (f *preferring) fillInOneDomain(g int32, area Area, narrower []string, n need) bool {
	before := f.mark()
	if len(narrower) > 0 || f.hasPreferencesBelow(g) {
		if f.fillInAreas(g, append(f.appendFewest(nil, nil, n, narrower, area), area)) {
			return true
		}
		f.undoTo(before)
	}
	if f.hasPreferencesBelow(g) {
		return false
	}
	f.saveArea(g)
	f.groups[g].open = false
	f.setArea(g, area)
	if f.planGroup(g, Budget{}) {
		return true
	}
	f.undoTo(before)
	return false
}

// hasPreferencesBelow reports whether a group below the given one has a preferred level.
func (f *preferring) hasPreferencesBelow(g int32) bool {
	at := &f.groups[g]
	return slices.Contains(f.below[at.first:at.end], true)
}

// fillInAreas satisfies a group whose own level is observed by the areas.
func (f *preferring) fillInAreas(g int32, areas []Area) bool {
	at := &f.groups[g]
	switch {
	case at.isLeaf():
		return f.fillLeafInAreas(g, areas)
	case !f.hasPreferencesBelow(g) && len(areas) == 1 && areas[0] == at.area && !at.open:
		return f.planGroup(g, Budget{})
	}
	missing := at.missing()
	children := f.childrenInOrder(g, missing)
	for k, child := range children {
		if missing == 0 || len(children)-k < missing {
			break
		}
		before := f.mark()
		if f.fill(child, areas) {
			missing--
		} else {
			f.undoTo(before)
		}
	}
	return missing == 0
}

// childrenInOrder returns the children that may be satisfied, those with bound pods first. If all are needed, those
// with levels come first, then the largest.
func (f *preferring) childrenInOrder(g int32, missing int) []int32 {
	at := &f.groups[g]
	var children []int32
	for _, bound := range []bool{true, false} {
		for k := at.first; k < at.end; k++ {
			if child := &f.groups[k]; child.bound == bound && !child.satisfied() && f.possible[k] {
				children = append(children, k)
			}
		}
	}
	if len(children) == missing {
		hasLevels := func(g int32) bool { return f.below[g] || f.groups[g].required != "" || f.groups[g].nests }
		slices.SortStableFunc(children, func(a, b int32) int {
			return cmp.Or(trueFirst(hasLevels(a), hasLevels(b)), cmp.Compare(f.fewestPods(b), f.fewestPods(a)))
		})
	}
	return children
}

// fillLeafInAreas places as many pods as a leaf lacks, each in the first area that takes it.
func (f *preferring) fillLeafInAreas(leaf int32, areas []Area) bool {
	at := &f.groups[leaf]
	f.saveArea(leaf)
	first := 0 // area that may take another pod
	for i := range int32(len(at.pods)) {
		if at.satisfied() || f.late {
			break
		}
		if f.isTaken(leaf, i) {
			continue
		}
		k, ok := f.placeInFirst(leaf, i, areas[first:])
		if !at.mixed && f.kinds[f.classOf(leaf, i)].kind == Independent {
			if first += k; !ok {
				break
			}
		}
	}
	return at.satisfied()
}

// placeInFirst places a pod in the first area that takes it, and returns its index.
func (f *preferring) placeInFirst(leaf, pod int32, areas []Area) (int, bool) {
	for k, area := range areas {
		f.setArea(leaf, area)
		if f.placePod(leaf, pod, f.domainFor(f.classOf(leaf, pod), "")) {
			return k, true
		}
	}
	return len(areas), false
}

// placeSingle places a pod of a satisfied leaf near those that run.
func (f *preferring) placeSingle(leaf, pod int32, budget Budget) bool {
	if f == nil || budget.preferencesExpired() {
		return false
	}
	areas, known := f.around[leaf]
	if !known {
		areas = f.areasFor(leaf, leaf)
		f.around[leaf] = areas
	}
	before := f.groups[leaf].area
	_, ok := f.placeInFirst(leaf, pod, areas)
	f.setArea(leaf, before)
	return ok
}

// appendFewest appends the domains of the levels in an area in the order that uses the fewest (fewestDomains): those of
// the narrowest level that hold the pods, then all others as far as they have room, each domain of a wider level after
// those inside it.
func (f *preferring) appendFewest(list []Area, running []string, n need, levels []string, within Area) []Area {
	if len(levels) == 0 || f.timeIsOver() {
		return list
	}
	all := f.domainsIn(running, n.class, levels, within)
	for _, d := range fewestDomains(all, len(levels), n.pods) {
		list = append(list, d.area)
	}
	return appendOthers(list, all, len(levels))
}

// appendOthers appends the areas of the domains, of so many levels, and of those inside them, but for the chosen ones
// of the narrowest level.
func appendOthers(list []Area, all []*domain, levels int) []Area {
	for _, chosen := range []bool{true, false} {
		for _, d := range all {
			if d.chosen != chosen || chosen && levels == 1 {
				continue
			}
			list = append(appendOthers(list, d.inside, levels-1), d.area)
		}
	}
	return list
}

func (f *preferring) mark() walkMark { return walkMark{len(f.stack), len(f.domains), len(f.saved)} }

// saveArea records the area of a group whose area is about to change.
func (f *preferring) saveArea(g int32) {
	f.saved = append(f.saved, savedArea{g, f.groups[g].area, f.groups[g].open})
}

// undoTo takes back what was done since.
func (f *preferring) undoTo(m walkMark) {
	f.undoAbove(m.stack)
	f.dropDomains(m.domains)
	for len(f.saved) > m.saved {
		last := f.saved[len(f.saved)-1]
		f.saved = f.saved[:len(f.saved)-1]
		f.setArea(last.group, last.area)
		f.groups[last.group].open = last.open
	}
}
