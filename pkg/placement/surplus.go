package placement

import "github.com/muster-project/muster/pkg/gang"

// unitBudget is small: a unit that does not fit keeps others waiting.
var unitBudget = Budget{Attempts: 8, Placements: 512}

// Surplus plans what a satisfied tree can have beyond its minimum. First whole sub-groups that their parent does without,
// as units: their own minimum or nothing, those with held pods first, then spec order, upper levels before lower ones.
// Then single pods above minMember, in leaves that are satisfied, and every group above them too. What cannot be placed
// never blocks the next. The World keeps the placements. nil if the tree is not satisfied by Problem.Have.
func Surplus(p Problem, w World) []Placement {
	pl := newPlanner(p, w, nil)
	if !p.Tree.Satisfied(pl.counts) {
		return nil
	}
	pl.placeUnits(p.Tree.Root())
	pl.placeSingles()
	return pl.placements()
}

// placeUnits goes down level by level. Every unsatisfied child of a satisfied group is a unit.
func (pl *planner) placeUnits(root *gang.Group) {
	refused := map[string]int{} // signature of units that did not fit -> height of the stack then
	for level := []*gang.Group{root}; len(level) > 0; {
		var below []*gang.Group
		for _, g := range level {
			for _, unit := range pl.preferred(g) {
				if !unit.Satisfied(pl.possible) {
					continue
				}
				// One that looks the same to the World did not fit, and there is no more room now than there was then.
				signature, independent := pl.signature(unit)
				if height, ok := refused[signature]; ok && (independent || height == len(pl.stack)) {
					continue
				}
				if !pl.plan(unit, unitBudget) {
					refused[signature] = len(pl.stack)
				}
			}
			for _, child := range g.Children() {
				if child.Satisfied(pl.counts) {
					below = append(below, child)
				}
			}
		}
		level = below
	}
}

func (pl *planner) placeSingles() {
	for _, leaf := range pl.problem.Tree.Leaves() {
		if !pl.satisfiedUpwards(leaf) {
			continue
		}
		for _, s := range pl.waiting(leaf) {
			pl.place(s, "") // a refusal is no reason to stop
		}
	}
}

func (pl *planner) satisfiedUpwards(g *gang.Group) bool {
	for ; g != nil; g = g.Parent() {
		if !g.Satisfied(pl.counts) {
			return false
		}
	}
	return true
}
