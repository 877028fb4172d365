// SPDX-License-Identifier: Apache-2.0

package gang

import "slices"

// Counts is a number of pods per leaf, by the leaf's name. The caller decides which pods count: created, planned,
// bound. A leaf without an entry has no pods. Names that are not leaves are ignored.
type Counts map[string]int

// Satisfied reports whether the tree's minimum is met. Source: KAI Scheduler's minSubGroups proposal, "Desired State".
func (t *Tree) Satisfied(c Counts) bool { return t.root.Satisfied(c) }

// Satisfied reports whether a leaf has enough pods, or any other group has enough satisfied children.
func (g *Group) Satisfied(c Counts) bool {
	if g.IsLeaf() {
		return c[g.name] >= g.min
	}
	return g.SatisfiedChildren(c) >= g.min
}

// SatisfiedChildren returns how many direct children are satisfied. 0 for a leaf.
func (g *Group) SatisfiedChildren(c Counts) int {
	n := 0
	for _, child := range g.children {
		if child.Satisfied(c) {
			n++
		}
	}
	return n
}

// MinPods returns the fewest pods that satisfy the tree: 24 for 3 of 4 children with 8 pods each.
func (t *Tree) MinPods() int { return t.root.minPods }

// MinPods returns the fewest pods that satisfy the group. At least 1.
func (g *Group) MinPods() int { return g.minPods }

// MissingPods returns the fewest pods that satisfy the tree if they are added to c. 0: satisfied.
func (t *Tree) MissingPods(c Counts) int { return t.root.MissingPods(c) }

// MissingPods returns the fewest pods that satisfy the group if they are added to c. An inner group counts its
// cheapest children.
func (g *Group) MissingPods(c Counts) int {
	if g.IsLeaf() {
		return max(0, g.min-c[g.name])
	}
	missing := make([]int, len(g.children))
	for i, child := range g.children {
		missing[i] = child.MissingPods(c)
	}
	slices.Sort(missing)
	sum := 0
	for _, n := range missing[:g.min] {
		sum += n
	}
	return sum
}

// Lack is a group below its minimum.
type Lack struct {
	Group *Group
	Have  int // less than Need; leaf: pods, else satisfied direct children
	Need  int // Group.Min
	// Optional: a group above has its minimum without this one. Filling this group adds surplus and does not help the
	// tree.
	Optional bool
}

// Missing returns every group below its minimum, most urgent first; empty if there is none. A group comes before its
// children. Groups that the tree needs come first, then the optional ones. Siblings are sorted: those that have pods
// already (which would be wasted) come first, then those with the smallest share of the pods they need, then in spec
// order.
// Source: KAI Scheduler's minSubGroups proposal, "Scheduler Logic Changes".
func (t *Tree) Missing(c Counts) []Lack {
	var needed, optional []Lack
	var visit func(g *Group, spare bool)
	visit = func(g *Group, spare bool) {
		have := c[g.name]
		if !g.IsLeaf() {
			have = g.SatisfiedChildren(c)
		}
		if have < g.min {
			lack := Lack{Group: g, Have: have, Need: g.min, Optional: spare}
			if spare {
				optional = append(optional, lack)
			} else {
				needed = append(needed, lack)
			}
		}
		for _, child := range starvingOrder(g.children, c) {
			visit(child, spare || have >= g.min)
		}
	}
	visit(t.root, false)
	return append(needed, optional...)
}

func starvingOrder(groups []*Group, c Counts) []*Group {
	type starving struct {
		group        *Group
		pods         int
		missing, min int
	}
	all := make([]starving, len(groups))
	for i, g := range groups {
		all[i] = starving{g, g.podsBelow(c), g.MissingPods(c), g.minPods}
	}
	slices.SortStableFunc(all, func(a, b starving) int {
		if (a.pods > 0) != (b.pods > 0) {
			return b.pods - a.pods
		}
		return b.missing*a.min - a.missing*b.min // larger missing/min first
	})
	ordered := make([]*Group, len(all))
	for i, s := range all {
		ordered[i] = s.group
	}
	return ordered
}

// podsBelow returns the pods of all leaves below the group.
func (g *Group) podsBelow(c Counts) int {
	if g.IsLeaf() {
		return c[g.name]
	}
	n := 0
	for _, child := range g.children {
		n += child.podsBelow(c)
	}
	return n
}

// Surplus returns, per leaf, the pods of c that the tree's minimum does not need; leaves without any are left out. In
// a leaf that the minimum uses these are the pods above minMember, in any other leaf all of them.
//
// The minimum uses the satisfied children that need the fewest pods first, then children that have pods, then those
// that lack the fewest; in spec order among equals. If the smallest children are satisfied, the number of pods
// outside the surplus is MinPods.
func (t *Tree) Surplus(c Counts) Counts {
	surplus := Counts{}
	var visit func(g *Group, spare bool)
	visit = func(g *Group, spare bool) {
		if g.IsLeaf() {
			n := c[g.name]
			if !spare {
				n -= g.min
			}
			if n > 0 {
				surplus[g.name] = n
			}
			return
		}
		for i, child := range minimumOrder(g.children, c) {
			visit(child, spare || i >= g.min)
		}
	}
	visit(t.root, false)
	return surplus
}

// minimumOrder returns the groups in the order in which a parent's minimum uses them.
func minimumOrder(groups []*Group, c Counts) []*Group {
	type member struct {
		group   *Group
		missing int
		empty   bool
	}
	all := make([]member, len(groups))
	for i, g := range groups {
		all[i] = member{g, g.MissingPods(c), g.podsBelow(c) == 0}
	}
	slices.SortStableFunc(all, func(a, b member) int {
		switch {
		case (a.missing == 0) != (b.missing == 0):
			if a.missing == 0 {
				return -1
			}
			return 1
		case a.empty != b.empty:
			if b.empty {
				return -1
			}
			return 1
		case a.missing != b.missing:
			return a.missing - b.missing
		default:
			return a.group.minPods - b.group.minPods
		}
	})
	ordered := make([]*Group, len(all))
	for i, m := range all {
		ordered[i] = m.group
	}
	return ordered
}
