// SPDX-License-Identifier: Apache-2.0

package placement

import "github.com/muster-project/muster/pkg/gang"

// root is the number of the root in every layout.
const root int32 = 0

// layout is a Problem in which the groups of the tree are numbered breadth first. The children of a group are
// therefore neighbours, a group precedes all groups below it, and values per group or per pod are stored in slices.
type layout struct {
	tree    *gang.Tree
	groups  []group
	levels  bool // some group has a required level
	pods    int  // waiting, in all leaves
	classes int  // the highest class of a waiting pod + 1
}

// group is a group of the tree with the number that counts towards its minimum.
type group struct {
	of         *gang.Group
	parent     int32 // -1: the root
	first, end int32 // children: groups[first:end]; a leaf has none
	level      int32 // 0: the root
	min        int32 // as gang.Group.Min
	count      int32 // leaf: pods that count; other group: satisfied children

	bound bool  // a pod below it is bound now
	mixed bool  // leaf: its waiting pods are of more than one class
	class int32 // leaf whose waiting pods are of one class: that class, within area
	start int32 // leaf: index of its first waiting pod if all waiting pods are numbered leaf by leaf
	taken int32 // leaf: waiting pods that are placed
	pods  []Pod // leaf: waiting pods

	required string // topology level of which one domain must hold all pods below; "": none
	area     Area   // in which pods below are placed: of the nearest group above or at it whose domain is known; 0: anywhere
	open     bool   // required is set, and the domain is not known
	nests    bool   // a group below has a required level
	torn     bool   // pods below run in more than one domain, or outside: no other pod can join them; or gone
	gone     bool   // all pods below that run are on nodes that do not exist: no other pod can join them until they are deleted
}

func (g *group) isLeaf() bool { return g.first == g.end }

func (g *group) satisfied() bool { return g.count >= g.min }

// missing returns how many pods a leaf lacks, or how many children any other group lacks.
func (g *group) missing() int { return max(0, int(g.min-g.count)) }

// waiting returns how many waiting pods of a leaf are not placed.
func (g *group) waiting() int { return len(g.pods) - int(g.taken) }

func newLayout(p Problem) layout {
	l := layout{tree: p.Tree, groups: make([]group, 1, 1+len(p.Tree.Groups())), levels: len(p.Required) > 0}
	l.groups[root] = group{of: p.Tree.Root(), parent: -1}
	for i := 0; i < len(l.groups); i++ {
		g := &l.groups[i]
		g.min, g.required = int32(g.of.Min()), p.Required[g.of.Name()]
		if g.of.IsLeaf() {
			l.setLeafPods(g, p)
			continue
		}
		parent, level := int32(i), g.level+1
		g.first = int32(len(l.groups))
		g.end = g.first + int32(len(g.of.Children()))
		for _, child := range g.of.Children() { // append may move the slice: g must not be used below
			l.groups = append(l.groups, group{of: child, parent: parent, level: level})
		}
	}
	for i := len(l.groups) - 1; i > 0; i-- {
		g := &l.groups[i]
		parent := &l.groups[g.parent]
		parent.bound = parent.bound || g.bound
		parent.nests = parent.nests || g.nests || g.required != ""
		if g.satisfied() {
			parent.count++
		}
	}
	return l
}

// setLeafPods adds the pods of a leaf.
func (l *layout) setLeafPods(g *group, p Problem) {
	name := g.of.Name()
	g.count, g.bound = int32(p.Have[name]), p.Bound[name] > 0
	g.pods, g.start = p.Pods[name], int32(l.pods)
	l.pods += len(g.pods)
	for i := range g.pods {
		class := g.pods[i].Class
		g.mixed = g.mixed || class != g.pods[0].Class
		l.classes = max(l.classes, class+1)
	}
	if len(g.pods) > 0 {
		g.class = int32(g.pods[0].Class)
	}
}

// addPods changes the count of a leaf by n pods, and updates the groups above whose minimum becomes met or unmet by
// that.
func (l *layout) addPods(leaf int32, n int32) {
	for i := leaf; i >= 0; i = l.groups[i].parent {
		g := &l.groups[i]
		before := g.satisfied()
		g.count += n
		if g.satisfied() == before {
			return
		}
	}
}

// inSpecOrder returns the numbers of all groups, the root first.
func (l *layout) inSpecOrder() []int32 {
	order := make([]int32, 0, len(l.groups))
	order = append(order, root)
	if len(l.groups) == 1 {
		return order
	}
	numbers := make(map[*gang.Group]int32, len(l.groups))
	for i := range l.groups {
		numbers[l.groups[i].of] = int32(i)
	}
	for _, g := range l.tree.Groups() {
		order = append(order, numbers[g])
	}
	return order
}

// possibilities reports, by group, whether its counted and waiting pods together can satisfy it.
func (l *layout) possibilities() []bool {
	possible := make([]bool, len(l.groups))
	for i := len(l.groups) - 1; i >= 0; i-- {
		g := &l.groups[i]
		if g.torn {
			possible[i] = g.missing() == 0
			continue
		}
		if g.isLeaf() {
			possible[i] = g.missing() <= g.waiting()
			continue
		}
		missing := int(g.min)
		for k := g.first; k < g.end; k++ {
			if possible[k] {
				missing--
			}
		}
		possible[i] = missing <= 0
	}
	return possible
}
