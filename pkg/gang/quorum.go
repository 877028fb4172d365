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
}

// Missing returns the groups below their minimum, each before its children; empty if the tree is satisfied. Groups
// below a satisfied one are left out: to fill them would add surplus. Siblings are sorted: those that have pods already
// (which would be wasted) come first, then those with the smallest share of the pods they need, then in spec order.
// Source: KAI Scheduler's minSubGroups proposal, "Scheduler Logic Changes".
func (t *Tree) Missing(c Counts) []Lack { return t.root.appendMissing(nil, c) }

func (g *Group) appendMissing(list []Lack, c Counts) []Lack {
	have := c[g.name]
	if !g.IsLeaf() {
		have = g.SatisfiedChildren(c)
	}
	if have >= g.min {
		return list
	}
	list = append(list, Lack{Group: g, Have: have, Need: g.min})
	children := slices.Clone(g.children)
	slices.SortStableFunc(children, func(a, b *Group) int {
		if startedA, startedB := a.podsBelow(c) > 0, b.podsBelow(c) > 0; startedA != startedB {
			if startedA {
				return -1
			}
			return 1
		}
		return b.MissingPods(c)*a.minPods - a.MissingPods(c)*b.minPods // the larger share first
	})
	for _, child := range children {
		list = child.appendMissing(list, c)
	}
	return list
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

// SurplusPods returns how many pods of c the minimum of a satisfied tree does not need. The minimum uses the satisfied
// children that need the fewest pods, the first ones in spec order among equals.
func (t *Tree) SurplusPods(c Counts) int { return t.root.podsBelow(c) - t.root.podsOfMinimum(c) }

// podsOfMinimum returns how many pods the minimum of a satisfied group uses.
func (g *Group) podsOfMinimum(c Counts) int {
	if g.IsLeaf() {
		return g.min
	}
	satisfied := slices.DeleteFunc(slices.Clone(g.children), func(child *Group) bool { return !child.Satisfied(c) })
	slices.SortStableFunc(satisfied, func(a, b *Group) int { return a.minPods - b.minPods })
	n := 0
	for _, child := range satisfied[:g.min] {
		n += child.podsOfMinimum(c)
	}
	return n
}
