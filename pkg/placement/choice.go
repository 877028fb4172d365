// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// kind identifies the children of one group that look the same to the World.
type kind struct {
	parent   int32
	likeness int32
}

// limit bounds how many children of a kind may be chosen.
type limit struct {
	kind
	most int
}

// order is the order in which the children of a group are chosen.
type order int

const (
	preferredFirst order = iota // those with bound pods first, then in spec order
	cheapestFirst               // those that lack the fewest pods first, among equals as preferredFirst
)

// maxKinds bounds the number of alternatives that are derived from one choice.
const maxKinds = 16

// chooser makes choices of children. It reuses its slices from one choice to the next.
type chooser struct {
	*planner
	like   *likeness
	group  int32
	opaque bool    // a group with a required level is a unit although groups below have one too
	below  []int32 // the group and all groups below it that are neither satisfied nor impossible, a group before its children

	estimates []feasibility // by likeness, of leaves
	judge     func(leaf int32) feasibility

	// Of one choice, by group:
	ok     []bool
	pods   []int // pods lacking in the leaves chosen below
	picks  []span
	spare  [][2]int32 // likenesses of up to two different kinds of children that were not chosen; 0: none
	arena  []int32
	wanted []option
}

// span is a section of chooser.arena: the chosen children of one group, in order.
type span struct{ first, end int32 }

type option struct {
	group int32
	pods  int
}

// feasibility is the estimate whether a leaf can have its minimum if nothing else is placed.
type feasibility int8

const (
	unknown    feasibility = iota
	fits                   // or nothing is known that rules it out
	impossible             // cannot be placed, neither alone nor beside others
)

func newChooser(pl *planner, g int32, judge func(leaf int32) feasibility, opaque bool) *chooser {
	c := &chooser{planner: pl, like: pl.newLikeness(), group: g, judge: judge, opaque: opaque}
	c.below = append(c.below, g)
	for i := 0; i < len(c.below); i++ {
		at := &pl.groups[c.below[i]]
		if c.isUnit(c.below[i]) {
			continue
		}
		for k := at.first; k < at.end; k++ {
			if !pl.satisfied(k) && pl.possible[k] {
				c.below = append(c.below, k)
			}
		}
	}
	n := len(pl.groups)
	c.ok, c.pods = make([]bool, n), make([]int, n)
	c.picks, c.spare = make([]span, n), make([][2]int32, n)
	return c
}

// chooseLeaves returns the leaves to fill so that the group is satisfied. Of each group it chooses as many children as
// the group lacks: the first ones in the given order. It returns false if the limits, or impossible leaves, leave too
// few children.
func (c *chooser) chooseLeaves(limits []limit, by order) (leaves []int32, ok bool) {
	c.arena = c.arena[:0]
	for _, g := range slices.Backward(c.below) {
		if c.isUnit(g) {
			c.ok[g], c.pods[g] = c.feasibilityOf(g) != impossible, c.fewestPods(g)
		} else {
			c.pickChildren(g, limits, by)
		}
	}
	if !c.ok[c.group] {
		return nil, false
	}
	return c.appendChosenLeaves(c.group, nil), true
}

// pickChildren chooses the children of a group.
func (c *chooser) pickChildren(g int32, limits []limit, by order) {
	at := &c.groups[g]
	c.wanted = c.wanted[:0]
	for _, bound := range []bool{true, false} {
		for k := at.first; k < at.end; k++ {
			if c.groups[k].bound == bound && !c.satisfied(k) && c.possible[k] && c.ok[k] {
				c.wanted = append(c.wanted, option{k, c.pods[k]})
			}
		}
	}
	byPods := func(a, b option) int { return cmp.Compare(a.pods, b.pods) }
	if by == cheapestFirst && !slices.IsSortedFunc(c.wanted, byPods) {
		slices.SortStableFunc(c.wanted, byPods)
	}
	missing := at.missing()
	c.pods[g], c.spare[g] = 0, [2]int32{}
	c.picks[g] = span{int32(len(c.arena)), int32(len(c.arena))}
	limited := slices.ContainsFunc(limits, func(l limit) bool { return l.parent == g })
	var chosen []int // by limits
	if limited {
		chosen = make([]int, len(limits))
	}
	for _, o := range c.wanted {
		if limited {
			i := slices.IndexFunc(limits, func(l limit) bool { return l.parent == g && l.likeness == c.like.numberOf(o.group) })
			if i >= 0 {
				if chosen[i]++; chosen[i] > limits[i].most {
					continue
				}
			}
		}
		if missing > 0 {
			missing--
			c.arena = append(c.arena, o.group)
			c.picks[g].end++
			c.pods[g] += o.pods
			continue
		}
		spare := &c.spare[g]
		switch n := c.like.numberOf(o.group); {
		case spare[0] == 0:
			spare[0] = n
		case n != spare[0]:
			spare[1] = n
		}
		if spare[1] != 0 {
			break
		}
	}
	c.ok[g] = missing == 0
}

// countChosen returns how many children of the kind are chosen.
func (c *chooser) countChosen(k kind) int {
	n := 0
	for _, child := range c.arena[c.picks[k.parent].first:c.picks[k.parent].end] {
		if c.like.numberOf(child) == k.likeness {
			n++
		}
	}
	return n
}

// appendChosenLeaves appends the leaves chosen below the group.
func (c *chooser) appendChosenLeaves(g int32, list []int32) []int32 {
	if c.isUnit(g) {
		return append(list, g)
	}
	for _, child := range c.arena[c.picks[g].first:c.picks[g].end] {
		list = c.appendChosenLeaves(child, list)
	}
	return list
}

// replaceable returns the kinds of chosen children that other children could replace, with the number chosen of each.
// Kinds of the given leaves come first, each followed by the kinds of the groups above it.
func (c *chooser) replaceable(leaves []int32) []limit {
	var kinds []limit
	for _, leaf := range leaves {
		for g := leaf; g != c.group && len(kinds) < maxKinds; g = c.groups[g].parent {
			k := kind{c.groups[g].parent, c.like.numberOf(g)}
			spare := c.spare[k.parent]
			if spare[0] == 0 || spare[0] == k.likeness && spare[1] == 0 {
				continue
			}
			if !slices.ContainsFunc(kinds, func(l limit) bool { return l.kind == k }) {
				kinds = append(kinds, limit{k, c.countChosen(k)})
			}
		}
		if len(kinds) == maxKinds {
			break
		}
	}
	return kinds
}

// feasibilityOf judges each leaf once. Leaves that look the same share one estimate.
func (c *chooser) feasibilityOf(leaf int32) feasibility {
	n := int(c.like.numberOf(leaf))
	for len(c.estimates) <= n {
		c.estimates = append(c.estimates, unknown)
	}
	if c.estimates[n] == unknown {
		c.estimates[n] = c.judge(leaf)
	}
	return c.estimates[n]
}
