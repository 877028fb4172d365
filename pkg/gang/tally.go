// SPDX-License-Identifier: Apache-2.0

package gang

// Tally counts pods per leaf of one tree and keeps up to date which groups they satisfy. It returns the same results
// as Satisfied without walking the tree; each change costs one step per level above the leaf. Not safe for concurrent
// use.
type Tally struct {
	tree    *Tree
	have    []int    // by index of the group; leaf: pods, else satisfied direct children
	pods    []int    // by index of the group: pods of all leaves below
	partial []*Group // sub-groups that have pods and are not satisfied, in no order
	place   []int    // by index of the group: 1 + its place in partial; 0: not in it
}

// NewTally returns a Tally of the tree with no pods.
func NewTally(tree *Tree) *Tally {
	n := len(tree.groups) + 1
	return &Tally{tree: tree, have: make([]int, n), pods: make([]int, n), place: make([]int, n)}
}

// Clone returns a copy that shares no mutable state.
func (t *Tally) Clone() *Tally {
	c := *t
	c.have, c.pods, c.place = append([]int(nil), t.have...), append([]int(nil), t.pods...), append([]int(nil), t.place...)
	c.partial = append([]*Group(nil), t.partial...)
	return &c
}

// Add adds pods to a leaf of the tree; a negative number removes pods.
func (t *Tally) Add(leaf *Group, pods int) {
	if pods == 0 {
		return
	}
	change := pods // change of have
	for g := leaf; g != nil; g = g.parent {
		was := t.have[g.index] >= g.min
		t.have[g.index] += change
		t.pods[g.index] += pods
		is := t.have[g.index] >= g.min
		t.notePartial(g, is)
		switch {
		case is && !was:
			change = 1
		case was && !is:
			change = -1
		default:
			change = 0
		}
	}
}

// notePartial updates the list of partial groups.
func (t *Tally) notePartial(g *Group, satisfied bool) {
	if g.parent == nil {
		return
	}
	at := t.place[g.index]
	switch is := t.pods[g.index] > 0 && !satisfied; {
	case is && at == 0:
		t.partial = append(t.partial, g)
		t.place[g.index] = len(t.partial)
	case !is && at > 0:
		last := t.partial[len(t.partial)-1]
		t.partial[at-1] = last
		t.place[last.index] = at
		t.partial = t.partial[:len(t.partial)-1]
		t.place[g.index] = 0
	}
}

// Satisfied reports whether the group is satisfied by the pods counted.
func (t *Tally) Satisfied(g *Group) bool { return t.have[g.index] >= g.min }

// Have returns the pods of a leaf, or the satisfied direct children of any other group.
func (t *Tally) Have(g *Group) int { return t.have[g.index] }

// Pods returns the pods of all leaves below the group, or of the leaf itself.
func (t *Tally) Pods(g *Group) int { return t.pods[g.index] }

// Partial returns the sub-groups that have pods and are not satisfied, in no order. Not to be modified, and valid until
// the next change.
func (t *Tally) Partial() []*Group { return t.partial }

// Counts returns the pods of all leaves that have any.
func (t *Tally) Counts() Counts {
	c := Counts{}
	for _, leaf := range t.tree.leaves {
		if n := t.have[leaf.index]; n != 0 {
			c[leaf.name] = n
		}
	}
	return c
}
