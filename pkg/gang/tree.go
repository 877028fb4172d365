// SPDX-License-Identifier: Apache-2.0

package gang

import "strings"

// Tree is a PodGroup's tree of groups. Read-only; safe for concurrent use.
type Tree struct {
	root   *Group
	groups []*Group          // without the root, in spec order
	leaves []*Group          // in spec order; the root alone if there are no sub-groups
	byName map[string]*Group // with the root, under ""
}

// Group is one node of a tree: the root or a sub-group. A leaf contains pods, any other group contains children.
type Group struct {
	name     string
	index    int      // 0: the root; the sub-groups in spec order from 1
	parent   *Group   // nil: the root
	children []*Group // in spec order; empty: a leaf
	min      int      // at least 1; leaf: pods, else satisfied children, at most len(children)
	minPods  int      // fewest pods that satisfy the group
}

// newTree builds the tree of a valid specification.
func newTree(root Node, groups []Node) *Tree {
	t := &Tree{root: &Group{}, byName: make(map[string]*Group, len(groups)+1)}
	t.byName[""] = t.root
	for i, n := range groups {
		g := &Group{name: n.Name, index: i + 1}
		t.groups = append(t.groups, g)
		t.byName[n.Name] = g
	}
	for i, n := range groups {
		g, parent := t.groups[i], t.byName[n.Parent]
		g.parent = parent
		parent.children = append(parent.children, g)
	}
	t.root.min = minimumOf(root, t.root)
	for i, n := range groups {
		t.groups[i].min = minimumOf(n, t.groups[i])
	}
	if t.root.IsLeaf() {
		t.leaves = []*Group{t.root}
	}
	for _, g := range t.groups {
		if g.IsLeaf() {
			t.leaves = append(t.leaves, g)
		}
	}
	t.root.setMinPods()
	return t
}

// Subtree returns the tree of a group by itself: the group is its root, and the groups below keep their names.
func (g *Group) Subtree() *Tree {
	var groups []Node
	var add func(of *Group, name, parent string) Node
	add = func(of *Group, name, parent string) Node {
		minimum := int32(of.min)
		for _, child := range of.children {
			groups = append(groups, add(child, child.name, name))
		}
		return Node{Name: name, Parent: parent, MinMember: &minimum, MinSubGroup: &minimum} // minimumOf reads the one that applies
	}
	root := add(g, "", "")
	return newTree(root, groups)
}

// minimumOf returns the minimum of g: pods for a leaf (1 if unset), direct children otherwise (all if unset).
func minimumOf(n Node, g *Group) int {
	switch {
	case g.IsLeaf() && n.MinMember == nil:
		return 1
	case g.IsLeaf():
		return int(*n.MinMember)
	case n.MinSubGroup == nil:
		return len(g.children)
	default:
		return int(*n.MinSubGroup)
	}
}

// setMinPods sets minPods of g and of all groups below it.
func (g *Group) setMinPods() {
	for _, child := range g.children {
		child.setMinPods()
	}
	g.minPods = g.MissingPods(nil)
}

// Root returns the group that represents the whole PodGroup.
func (t *Tree) Root() *Group { return t.root }

// Group returns the group of that name, the root for "", nil for an unknown name.
func (t *Tree) Group(name string) *Group { return t.byName[name] }

// Leaves returns the groups that contain pods, in spec order: the root alone if there are no sub-groups. Not to be
// modified.
func (t *Tree) Leaves() []*Group { return t.leaves }

// Groups returns all sub-groups, without the root, in spec order. Not to be modified.
func (t *Tree) Groups() []*Group { return t.groups }

// Index returns the number of the group, which is unique in its tree: 0 for the root, the index in Groups plus 1 for
// a sub-group.
func (g *Group) Index() int { return g.index }

// Name returns the sub-group's name, "" for the root.
func (g *Group) Name() string { return g.name }

// Parent returns the group above, nil for the root.
func (g *Group) Parent() *Group { return g.parent }

// Children returns the groups directly below, in spec order. Not to be modified.
func (g *Group) Children() []*Group { return g.children }

// IsLeaf reports whether the group contains pods rather than children.
func (g *Group) IsLeaf() bool { return len(g.children) == 0 }

// Min returns how much the group needs, at least 1: pods for a leaf, satisfied direct children otherwise.
func (g *Group) Min() int { return g.min }

// Path returns the names from below the root down to the group, "decode/decode-workers"; "root" for the root.
func (g *Group) Path() string {
	if g.parent == nil {
		return "root"
	}
	names := []string{g.name}
	for p := g.parent; p.parent != nil; p = p.parent {
		names = append([]string{p.name}, names...)
	}
	return strings.Join(names, "/")
}
