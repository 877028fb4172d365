package placement

// UnitRef names a unit of surplus: a sub-group that its parent does without, while all groups above have their minimum.
type UnitRef struct {
	Group string
	Level int // of the group in the tree; 1: directly below the root
}

// UnitPlan is what Unit decides.
type UnitPlan struct {
	UnitRef                // the unit that is planned; zero if there is none
	Placements []Placement // its minimum as a whole; nil: no unit fits
	Refused    []UnitRef   // units that come before it, all if none fits: there is no room for them
	Cut        bool        // the time was over before a unit was found
}

// Unit plans one unit of surplus, its minimum as a whole or nothing: the first that fits of those that have waiting
// pods enough. Upper levels come before lower ones, and below one parent those with bound pods first, then spec order.
// One that looks the same to the World as one that was refused is not tried. With a plan the World keeps the
// placements, without one it is as before. Attempts and Placements of the budget are for each unit, Skip has no
// meaning here.
func Unit(p Problem, w World, budget Budget) UnitPlan {
	pl := newPlanner(p, w, budget.Expired)
	budget.Skip = 0
	var plan UnitPlan
	refusals := pl.newRefusals()
	for unit := range pl.units(pl.possible) {
		if refusals.planned(unit, budget) {
			plan.UnitRef, plan.Placements = pl.ref(unit), pl.placements()
			return plan
		}
		if pl.over() {
			plan.Cut = true
			return plan
		}
		plan.Refused = append(plan.Refused, pl.ref(unit))
	}
	return plan
}

// Singles plans single pods above minMember, in leaves that are satisfied, and every group above them too. What cannot be
// placed never blocks the next. The World keeps the placements. Of the budget only Expired counts: the pods placed until
// then are returned.
func Singles(p Problem, w World, budget Budget) []Placement {
	pl := newPlanner(p, w, budget.Expired)
	pl.placeSingles()
	return pl.placements()
}

// units yields the unsatisfied children of satisfied groups, level by level. Whether a group is satisfied is looked at when
// its turn comes.
func (l *layout) units(possible []bool) func(yield func(unit int32) bool) {
	return func(yield func(unit int32) bool) {
		whole := make([]bool, len(l.groups)) // satisfied, and all groups above too
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

func (l *layout) ref(g int32) UnitRef {
	return UnitRef{Group: l.groups[g].of.Name(), Level: int(l.groups[g].level)}
}

// refusals remembers which units did not fit.
type refusals struct {
	*planner
	like    *likeness
	heights map[int32]int // by likeness: height of the stack then
}

func (pl *planner) newRefusals() *refusals {
	return &refusals{planner: pl, like: pl.newLikeness(), heights: map[int32]int{}}
}

// planned plans a unit. One that looks the same as one that did not fit is not tried: there is no more room now than there
// was then, unless its pods depend on where others are and some were placed since.
func (r *refusals) planned(unit int32, budget Budget) bool {
	n := r.like.of(unit)
	if height, ok := r.heights[n]; ok && (!r.like.dependent[n] || height == len(r.stack)) {
		return false
	}
	if r.plan(unit, budget) {
		r.like.forget(unit)
		return true
	}
	r.heights[n] = len(r.stack)
	return false
}

// placeSingles places waiting pods in leaves that are satisfied, as all groups above them are.
func (pl *planner) placeSingles() {
	for _, leaf := range pl.inSpecOrder() {
		g := &pl.groups[leaf]
		if !g.leaf() || g.waiting() == 0 || !pl.satisfiedUpwards(leaf) {
			continue
		}
		for i := range int32(len(g.pods)) {
			if pl.late {
				return
			}
			if !pl.isTaken(leaf, i) {
				pl.place(leaf, i, "") // a refusal is no reason to stop
			}
		}
	}
}

func (pl *planner) satisfiedUpwards(g int32) bool {
	for ; g >= 0; g = pl.groups[g].parent {
		if !pl.satisfied(g) {
			return false
		}
	}
	return true
}
