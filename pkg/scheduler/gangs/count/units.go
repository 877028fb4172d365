// SPDX-License-Identifier: Apache-2.0

package count

import "github.com/muster-project/muster/pkg/gang"

// units determines which surplus sub-groups a pool could form: sub-groups that are not satisfied, whose parent is
// satisfied, and that the waiting pods would satisfy. Each such sub-group is useful by itself, but only as a whole.
type units struct {
	is       []bool                 // by index of the group: it is not bound, but could be satisfied
	children []int                  // by index of the group: number of its children for which `is` is true
	open     []int                  // by index of the group: children if it is satisfied, else 0
	levels   [gang.MaxDepth + 1]int // by depth of the parent: number of groups for which open is not 0
	all      int                    // number of such groups
	units    int                    // sum of open
}

func newUnits(tree *gang.Tree) units {
	n := len(tree.Groups()) + 1
	return units{is: make([]bool, n), children: make([]int, n), open: make([]int, n)}
}

// refresh updates the groups above a leaf whose pods have changed.
func (u *units) refresh(bound, usable *gang.Tally, leaf *gang.Group) {
	for g := leaf; g != nil; g = g.Parent() {
		i := g.Index()
		if parent := g.Parent(); parent != nil {
			if is := !bound.Satisfied(g) && usable.Satisfied(g); is != u.is[i] {
				u.is[i] = is
				if is {
					u.children[parent.Index()]++
				} else {
					u.children[parent.Index()]--
				}
			}
		}
		open, before := 0, u.open[i]
		if bound.Satisfied(g) {
			open = u.children[i]
		}
		u.open[i] = open
		u.units += open - before
		switch d := depthOf(g); {
		case open > 0 && before == 0:
			u.levels[d]++
			u.all++
		case open == 0 && before > 0:
			u.levels[d]--
			u.all--
		}
	}
}

// highestLevel returns the highest level at which a unit could be formed, 0 for direct children of the root.
func (u *units) highestLevel() int {
	for level, n := range u.levels {
		if n > 0 {
			return level
		}
	}
	return 0
}

func depthOf(g *gang.Group) int {
	d := 0
	for p := g.Parent(); p != nil; p = p.Parent() {
		d++
	}
	return d
}

// spares counts the sub-groups of a gang beyond its minimums.
type spares struct {
	tree *gang.Tree
	of   []int // by index of the group
	all  int
}

func newSpares(tree *gang.Tree) spares {
	return spares{tree: tree, of: make([]int, len(tree.Groups())+1)}
}

// refresh updates the groups above a leaf whose bound pods have changed.
func (s *spares) refresh(bound *gang.Tally, leaf *gang.Group) {
	for g := leaf.Parent(); g != nil; g = g.Parent() {
		n := max(0, bound.Have(g)-g.Min())
		s.all += n - s.of[g.Index()]
		s.of[g.Index()] = n
	}
}
