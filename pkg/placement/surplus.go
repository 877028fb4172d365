// SPDX-License-Identifier: Apache-2.0

package placement

// UnitRef identifies a unit of surplus: a sub-group that its parent does not need for its minimum, while all groups
// above have theirs.
type UnitRef struct {
	Group string
	Level int // of the group in the tree; 1: directly below the root
}

// UnitPlan is the result of Unit.
type UnitPlan struct {
	UnitRef                // the planned unit; zero if there is none
	Placements []Placement // of the unit's whole minimum; nil: no unit fits
	Refused    []UnitRef   // units that precede it and did not fit; all units if none fits
	Cut        bool        // the time was over before a unit was found
}

// Unit plans one unit of surplus: the minimum of the first unit that fits, as a whole, among those with enough
// waiting pods. Upper levels come before lower ones; below one parent, units with bound pods come first, then spec
// order decides. A unit that looks the same to the World as one that was refused is not tried. If there is a plan,
// its placements remain in the World; otherwise the World is left unchanged. Budget.Attempts and Budget.Placements
// apply to each unit; Budget.Skip is ignored.
func Unit(p Problem, w World, budget Budget) UnitPlan {
	pl := newPlanner(p, w, budget.Expired)
	budget.Skip = 0
	var plan UnitPlan
	refusals := pl.newRefusals()
	if budget.usesPreferences(&p) {
		refusals.near = newPreferring(newPlanner(p, w, budget.preferencesExpired), p)
	}
	for unit := range pl.unsatisfiedUnits(pl.possible) {
		if plan.Placements = refusals.planUnit(unit, budget); plan.Placements != nil {
			plan.UnitRef = pl.unitRef(unit)
			return plan
		}
		if pl.timeIsOver() {
			plan.Cut = true
			return plan
		}
		plan.Refused = append(plan.Refused, pl.unitRef(unit))
	}
	return plan
}

// Singles plans single pods above minMember in leaves that are satisfied, provided that all groups above are
// satisfied too. A pod that cannot be placed does not block the next one. The placements remain in the World. Only
// Budget.Expired is used; when the time is over, the pods placed so far are returned.
func Singles(p Problem, w World, budget Budget) []Placement {
	pl := newPlanner(p, w, budget.Expired)
	var near *preferring
	if budget.usesPreferences(&p) {
		near = newPreferring(pl, p)
	}
	pl.placeSingles(near, budget)
	return pl.placements()
}

// unsatisfiedUnits yields the unsatisfied children of satisfied groups, level by level. Whether a group is satisfied is
// evaluated when the iteration reaches it.
func (l *layout) unsatisfiedUnits(possible []bool) func(yield func(unit int32) bool) {
	return func(yield func(unit int32) bool) {
		whole := make([]bool, len(l.groups)) // the group and all groups above it are satisfied
		for i := range l.groups {
			g := &l.groups[i]
			whole[i] = g.satisfied() && (g.parent < 0 || whole[g.parent])
			if !whole[i] {
				continue
			}
			for _, bound := range []bool{true, false} {
				for k := g.first; k < g.end; k++ {
					if child := &l.groups[k]; child.bound == bound && !child.satisfied() && possible[k] && !yield(k) {
						return
					}
				}
			}
		}
	}
}

func (l *layout) unitRef(g int32) UnitRef {
	return UnitRef{Group: l.groups[g].of.Name(), Level: int(l.groups[g].level)}
}

// refusals records which units did not fit.
type refusals struct {
	*planner
	near    *preferring // nil: no level is preferred
	like    *likeness
	heights map[likeUnit]int // height of the stack when the unit was refused
}

// likeUnit is what distinguishes a unit for the World: its likeness, and the levels of the open groups above it.
type likeUnit struct {
	like  int32
	above string
}

func (pl *planner) newRefusals() *refusals {
	return &refusals{planner: pl, like: pl.newLikeness(), heights: map[likeUnit]int{}}
}

// planUnit returns the plan of a unit, nil if there is none. A unit that looks the same as one that did not fit
// is not tried: the available room has not grown since, unless its pods depend on the location of other pods and some
// of these were placed since.
func (r *refusals) planUnit(unit int32, budget Budget) []Placement {
	n := r.like.numberOf(unit)
	key := likeUnit{like: n}
	for up := r.groups[unit].parent; up >= 0; up = r.groups[up].parent {
		if r.groups[up].open {
			key.above += r.groups[up].required + "\n"
		}
	}
	if height, ok := r.heights[key]; ok && (!r.like.dependent[n] || height == len(r.stack)) {
		return nil
	}
	if plan := r.near.planUnit(unit); plan != nil {
		return plan
	}
	if r.planUnitBelow(unit, budget) {
		return r.placements()
	}
	r.heights[key] = len(r.stack)
	return nil
}

// planUnitBelow plans a unit below groups whose pods have all ended, which may have any domain.
func (pl *planner) planUnitBelow(unit int32, budget Budget) bool {
	if open := pl.openAbove(unit); open >= 0 {
		return pl.planInSomeArea(open, unit, budget, func() bool { return pl.planUnitBelow(unit, budget) })
	}
	return pl.planGroup(unit, budget)
}

// placeSingles places waiting pods in leaves that are satisfied, together with all groups above them. near may be nil.
func (pl *planner) placeSingles(near *preferring, budget Budget) {
	for _, leaf := range pl.inSpecOrder() {
		g := &pl.groups[leaf]
		if !g.isLeaf() || g.waiting() == 0 || g.torn || !pl.satisfiedUpwards(leaf) {
			continue
		}
		for i := range int32(len(g.pods)) {
			if pl.late {
				return
			}
			if !pl.isTaken(leaf, i) && !near.placeSingle(leaf, i, budget) {
				pl.placeSingle(leaf, i) // a refused pod does not end the loop
			}
		}
	}
}

// placeSingle places a pod of a satisfied leaf. If all pods of the leaf, or of a group above it, have ended, the group
// may have any domain.
func (pl *planner) placeSingle(leaf, pod int32) bool {
	open := pl.openAbove(leaf)
	if open < 0 && pl.groups[leaf].open {
		open = leaf
	}
	if open < 0 {
		return pl.placePod(leaf, pod, "")
	}
	base, waiting := int32(pl.groups[leaf].pods[pod].Class), pl.groups[leaf].waiting()
	r := requirement{pods: 1, needs: []need{{base, 1}}, wish: []int{waiting}}
	for _, area := range pl.roomyAreas(open, &r) {
		if pl.timeIsOver() {
			break
		}
		pl.setDomain(open, area)
		if pl.placeSingle(leaf, pod) {
			return true
		}
		pl.dropDomain(open)
	}
	return false
}

func (pl *planner) satisfiedUpwards(g int32) bool {
	for ; g >= 0; g = pl.groups[g].parent {
		if !pl.satisfied(g) {
			return false
		}
	}
	return true
}
