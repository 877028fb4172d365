// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
)

// area is what a placement.Area stands for: the nodes that one domain of a topology level has in another area.
type area struct {
	topology *topology // of the level; nil: all nodes
	value    int32     // of the topology
	within   placement.Area
	nodes    []int32 // positions; not empty unless there are no nodes at all
}

// levelIn is a topology level inside an area.
type levelIn struct {
	level  string
	within placement.Area
}

// confinedClass is what a number returned by Within stands for: pods of a class that must be placed in an area.
type confinedClass struct {
	class int
	area  placement.Area
}

// classAt returns the class of a number, and the area in which the pods must be placed. A class and those confined to
// areas share all that is known about it; only the nodes to choose from differ.
func (w *Snapshot) classAt(index int) (*class, placement.Area) {
	if index < len(w.classes) {
		return w.classes[index], 0
	}
	n := w.confined[index-len(w.classes)]
	return w.classes[n.class], n.area
}

// Areas implements placement.World. The areas are sorted by the values of the labels. An empty value is a value like
// any other. A level of which a key is empty, or a label of no node, has no areas.
func (w *Snapshot) Areas(level string, within placement.Area) []placement.Area {
	key := levelIn{level, within}
	list, known := w.areasOf[key]
	if known || level == "" { // the topology of "" would be the names of the nodes
		return list
	}
	list = w.divideArea(w.nodes.topologyOf(level), within)
	if w.areasOf == nil {
		w.areasOf = map[levelIn][]placement.Area{}
	}
	w.areasOf[key] = list
	return list
}

// divideArea adds an area for each domain of the topology with nodes in the given area.
func (w *Snapshot) divideArea(top *topology, within placement.Area) []placement.Area {
	first, rank := len(w.areas), top.ranks()
	if within == 0 {
		w.areas = append(w.areas, make([]area, len(rank))...)
		for v, k := range rank {
			w.areas[first+int(k)] = area{top, int32(v), within, top.nodes[v]}
		}
	} else {
		nodes := slices.DeleteFunc(slices.Clone(w.areas[within].nodes), func(i int32) bool { return top.value[i] < 0 })
		slices.SortFunc(nodes, func(a, b int32) int {
			return cmp.Or(cmp.Compare(rank[top.value[a]], rank[top.value[b]]), cmp.Compare(a, b))
		})
		for len(nodes) > 0 {
			v, n := top.value[nodes[0]], 1
			for n < len(nodes) && top.value[nodes[n]] == v {
				n++
			}
			w.areas = append(w.areas, area{top, v, within, nodes[:n:n]})
			nodes = nodes[n:]
		}
	}
	list := make([]placement.Area, len(w.areas)-first)
	for k := range list {
		list[k] = placement.Area(first + k)
	}
	return list
}

// ranks returns, by value, the position in the order of the names.
func (t *topology) ranks() []int32 {
	if t.rank == nil {
		order := make([]int32, len(t.names))
		for v := range order {
			order[v] = int32(v)
		}
		slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(t.names[a], t.names[b]) })
		t.rank = make([]int32, len(order))
		for k, v := range order {
			t.rank[v] = int32(k)
		}
	}
	return t.rank
}

// Rooms implements placement.World.
func (w *Snapshot) Rooms(index int, level string, within placement.Area) []int {
	c, _ := w.classAt(index)
	w.findNodesOf(c)
	exclusions := w.exclusionsOf(c)
	return w.roomsOf(index, level, within, func(nodes []int32) int { return w.capacityOn(c, nodes, exclusions).Pods })
}

// roomsOf returns Rooms of a class, of which so many pods fit on some nodes.
func (w *Snapshot) roomsOf(index int, level string, within placement.Area, fitting func(nodes []int32) int) []int {
	_, confines := w.classAt(index)
	list := w.Areas(level, within)
	rooms := make([]int, len(list))
	for k, a := range list {
		nodes := w.areas[a].nodes
		if confines != 0 {
			nodes = slices.DeleteFunc(slices.Clone(nodes), func(i int32) bool { return !w.isIn(confines, i) })
		}
		rooms[k] = fitting(nodes)
	}
	return rooms
}

// resources returns the resources that the classes request, as far as NodeResourcesFit counts them.
func (w *Snapshot) resources() []corev1.ResourceName {
	if w.requested == nil {
		w.requested = []corev1.ResourceName{}
		for _, c := range w.classes {
			w.findNodesOf(c)
			for _, r := range c.known.demand.requests {
				if !slices.Contains(w.requested, r.name) {
					w.requested = append(w.requested, r.name)
				}
			}
		}
	}
	return w.requested
}

// Uses implements placement.World.
func (w *Snapshot) Uses(index int) []int64 {
	c, _ := w.classAt(index)
	names := w.resources()
	uses := make([]int64, len(names))
	for _, r := range c.known.demand.requests {
		uses[slices.Index(names, r.name)] = r.amount
	}
	return uses
}

// FreeIn implements placement.World. It counts the nodes that take a pod of any class.
func (w *Snapshot) FreeIn(level string, within placement.Area) [][]int64 {
	names := w.resources()
	takesAny := func(i int32) bool {
		return slices.ContainsFunc(w.classes, func(c *class) bool { return c.refuse == nil && c.known.reasons[i] == 0 })
	}
	return w.sumIn(level, within, len(names), takesAny, func(i int32, row []int64) {
		node := w.nodes.currentNode(int(i))
		for r, name := range names {
			row[r] = max(0, freeOn(node, name))
		}
	})
}

// sumIn returns, for each of Areas(level, within), the sums of the amounts on the nodes that count.
func (w *Snapshot) sumIn(level string, within placement.Area, amounts int, counts func(i int32) bool, read func(i int32, row []int64)) [][]int64 {
	list, row := w.Areas(level, within), make([]int64, amounts)
	sums := make([][]int64, len(list))
	for k, a := range list {
		sums[k] = make([]int64, amounts)
		for _, i := range w.areas[a].nodes {
			if !counts(i) {
				continue
			}
			read(i, row)
			for r, amount := range row {
				sums[k][r] += amount
			}
		}
	}
	return sums
}

// AreaOf implements placement.World.
func (w *Snapshot) AreaOf(level string, within placement.Area, node string) (placement.Area, bool) {
	list := w.Areas(level, within)
	i, known := w.nodes.position[node]
	if !known || !w.isIn(within, int32(i)) {
		return 0, false
	}
	return w.areaAt(list, i)
}

// areaAt returns which of the areas of a level contains a node of the area in which they are.
func (w *Snapshot) areaAt(list []placement.Area, i int) (placement.Area, bool) {
	if len(list) == 0 {
		return 0, false
	}
	top := w.areas[list[0]].topology
	if top.value[i] < 0 {
		return 0, false
	}
	if len(list) == len(top.rank) { // all domains of the level
		return list[top.rank[top.value[i]]], true
	}
	k, found := slices.BinarySearchFunc(list, top.rank[top.value[i]], func(a placement.Area, rank int32) int {
		return cmp.Compare(top.rank[w.areas[a].value], rank)
	})
	if !found {
		return 0, false
	}
	return list[k], true
}

// AreaName returns the key of the innermost label of an area's level, and the value of that label, after those of the
// labels before it if that of another domain is the same: b0/r0. Both are "" for area 0; the value may be "" for
// others, too.
func (w *Snapshot) AreaName(a placement.Area) (key, value string) {
	if a == 0 {
		return "", ""
	}
	top := w.areas[a].topology
	key, value = top.key[strings.LastIndex(top.key, ",")+1:], top.names[w.areas[a].value]
	if top.repeats {
		return key, strings.ReplaceAll(value, ",", podgroup.DomainSeparator)
	}
	return key, value[strings.LastIndex(value, ",")+1:]
}

// AreaValue returns the values of the labels of an area's level, separated by commas. "": area 0, or the value of its
// label.
func (w *Snapshot) AreaValue(a placement.Area) string {
	if a == 0 {
		return ""
	}
	return w.areas[a].topology.names[w.areas[a].value]
}

// LabelsOf returns the labels of a node with the keys.
func (w *Snapshot) LabelsOf(node string, keys sets.Set[string]) map[string]string {
	labels := map[string]string{}
	if i, ok := w.nodes.position[node]; ok {
		for key := range keys { // fewer than a node has labels
			if value, ok := w.nodes.objects[i].Labels[key]; ok {
				labels[key] = value
			}
		}
	}
	return labels
}

// isIn reports whether a node is in the area.
func (w *Snapshot) isIn(a placement.Area, i int32) bool {
	for a != 0 {
		at := &w.areas[a]
		if at.topology.value[i] != at.value {
			return false
		}
		a = at.within
	}
	return true
}

// HasNode implements placement.World.
func (w *Snapshot) HasNode(name string) bool {
	_, known := w.nodes.position[name]
	return known
}

// AreaAround implements placement.World.
func (w *Snapshot) AreaAround(level string, within, inner placement.Area) (placement.Area, bool) {
	nodes := w.areas[inner].nodes
	if len(nodes) == 0 || !w.isIn(within, nodes[0]) {
		return 0, false
	}
	around, ok := w.areaAt(w.Areas(level, within), int(nodes[0]))
	return around, ok && w.encloses(around, inner)
}

// encloses reports whether all nodes of the inner area are in the outer one.
func (w *Snapshot) encloses(outer, inner placement.Area) bool {
	if outer == 0 || outer == inner {
		return true
	}
	nodes := w.areas[inner].nodes
	return len(nodes) <= len(w.areas[outer].nodes) && !slices.ContainsFunc(nodes, func(i int32) bool { return !w.isIn(outer, i) })
}

// Within implements placement.World.
func (w *Snapshot) Within(index int, a placement.Area) int {
	if a == 0 {
		return index
	}
	key := confinedClass{index, a}
	n, known := w.confinedNumber[key]
	if !known {
		n = len(w.classes) + len(w.confined)
		w.confined = append(w.confined, key)
		if w.confinedNumber == nil {
			w.confinedNumber = map[confinedClass]int{}
		}
		w.confinedNumber[key] = n
	}
	return n
}

// nodesIn returns the nodes of a domain that are in the area; "" means all of the area.
func (w *Snapshot) nodesIn(a placement.Area, domain string) []int32 {
	nodes := w.areas[a].nodes
	if domain == "" {
		return nodes
	}
	key, value, _ := strings.Cut(domain, "=")
	top := w.nodes.topologyOf(key)
	v, found := top.number[value]
	switch {
	case !found:
		return nil
	case a == 0:
		return top.nodes[v]
	case len(top.nodes[v]) < len(nodes):
		return slices.DeleteFunc(slices.Clone(top.nodes[v]), func(i int32) bool { return !w.isIn(a, i) })
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(i int32) bool { return top.value[i] != v })
}

// nodesByValue returns the nodes that each domain of the topology has in the area, by value, in no order.
func (w *Snapshot) nodesByValue(top *topology, a placement.Area) iter.Seq2[int, []int32] {
	if a == 0 {
		return slices.All(top.nodes)
	}
	nodes := map[int][]int32{}
	for _, i := range w.areas[a].nodes {
		if v := int(top.value[i]); v >= 0 {
			nodes[v] = append(nodes[v], i)
		}
	}
	return maps.All(nodes)
}

// FindUnnested returns the first of the pairs of labels of which neither divides the domains of the other on the nodes
// that have both.
func (w *Snapshot) FindUnnested(pairs []podgroup.LabelPair) (u podgroup.UnnestedLabels, found bool) {
	for _, pair := range pairs {
		inner, outer := w.nodes.topologyOf(pair.Inner), w.nodes.topologyOf(pair.Outer)
		a, b, split := inner.firstSplitBy(outer)
		if _, _, other := outer.firstSplitBy(inner); !split || !other {
			continue
		}
		return podgroup.UnnestedLabels{
			LabelPair: pair, Value: inner.names[inner.value[a]],
			OuterValues: [2]string{outer.names[outer.value[a]], outer.names[outer.value[b]]},
			Nodes:       [2]string{w.nodes.objects[a].Name, w.nodes.objects[b].Name},
		}, true
	}
	return u, false
}

// firstSplitBy returns two nodes of one domain that are in different domains of the other topology.
func (t *topology) firstSplitBy(other *topology) (a, b int, split bool) {
	first := make([]int, len(t.names)) // by value: the position after that of a node in both topologies; 0: none
	for i, v := range t.value {
		switch {
		case v < 0 || other.value[i] < 0:
		case first[v] == 0:
			first[v] = i + 1
		case other.value[first[v]-1] != other.value[i]:
			return first[v] - 1, i, true
		}
	}
	return 0, 0, false
}

// needIn returns, by class, how many of the needed pods must be placed in the area. need is by number of a class.
func (w *Snapshot) needIn(a placement.Area, need []int) []int {
	in := make([]int, len(w.classes))
	if a == 0 {
		copy(in, need)
	}
	for k, n := range need[min(len(need), len(in)):] {
		if of := w.confined[k]; n > 0 && w.encloses(a, of.area) {
			in[of.class] += n
		}
	}
	return in
}
