// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
)

// Inventory implements podgroup.Capacities: a copy of the nodes that match one of the classes, or that the problem names, without
// planned pods. Of pods of a single class that do not exclude each other only the number in a domain matters: the nodes of a domain
// are one, with podgroup.Places.
func (w *Snapshot) Inventory(p placement.Problem) *podgroup.Inventory {
	if len(w.classes) == 1 {
		w.findNodesOf(w.classes[0])
		if len(w.apartOn(w.classes[0], nil)) == 0 {
			return w.inventoryByDomain(p)
		}
	}
	return w.inventoryByNode(p)
}

// inventoryByNode returns an Inventory with each node by itself.
func (w *Snapshot) inventoryByNode(p placement.Problem) *podgroup.Inventory {
	v := &podgroup.Inventory{Levels: map[string][]placement.Area{}}
	w.inventoryRequests(v)
	nodes := w.inventoryNodes(v, w.positionsOf(p.Nodes))
	for _, level := range levelsOf(p) {
		list, areas := w.Areas(level, 0), make([]placement.Area, len(nodes))
		for k, i := range nodes {
			areas[k], _ = w.areaAt(list, int(i))
		}
		v.Levels[level] = areas
	}
	for _, c := range w.classes {
		v.Apart = append(v.Apart, w.apartOn(c, nodes))
	}
	return v
}

// levelsOf returns the topology levels that groups of the problem require.
func levelsOf(p placement.Problem) []string {
	levels := slices.DeleteFunc(slices.Sorted(maps.Values(p.Required)), func(level string) bool { return level == "" })
	return slices.Compact(levels)
}

// positionsOf returns the positions of the nodes that exist.
func (w *Snapshot) positionsOf(nodes map[string][]string) map[int]bool {
	positions := map[int]bool{}
	for _, names := range nodes {
		for _, name := range names {
			if i, known := w.nodes.position[name]; known {
				positions[i] = true
			}
		}
	}
	return positions
}

// inventoryRequests sets the resources, and the requests of the classes.
func (w *Snapshot) inventoryRequests(v *podgroup.Inventory) {
	v.Resources = append([]corev1.ResourceName{corev1.ResourcePods}, w.resources()...)
	for index, c := range w.classes {
		pods := int64(0)
		if c.known.demand.pods {
			pods = 1
		}
		v.Requests = append(v.Requests, append([]int64{pods}, w.Uses(index)...))
	}
}

// inventoryNodes adds the nodes, and returns their positions in the snapshot. named are those that need not match a class.
func (w *Snapshot) inventoryNodes(v *podgroup.Inventory, named map[int]bool) (positions []int32) {
	uses := make([][]nodeUse, len(w.classes))
	for k, c := range w.classes {
		uses[k] = w.usesOf(c)
	}
	v.Nodes, positions = make([]podgroup.InventoryNode, 0, len(w.nodes.nodes)), make([]int32, 0, len(w.nodes.nodes))
	// All nodes share two arrays: thousands of small ones would cost more than what is written to them.
	classes, resources := len(w.classes), len(v.Resources)
	flags := make([]bool, 0, 3*classes*len(w.nodes.nodes))
	amounts := make([]int64, 0, 2*resources*len(w.nodes.nodes))
	columns := w.columnsIn(v.Resources)
	for i := range w.nodes.nodes {
		all := flags[len(flags) : len(flags)+3*classes]
		n := podgroup.InventoryNode{Matches: all[:classes], Closed: all[classes : 2*classes], Taken: all[2*classes:]}
		for k := range w.classes {
			n.Matches[k], n.Closed[k], n.Taken[k] = uses[k][i].matches, uses[k][i].closed, uses[k][i].taken
		}
		switch {
		case named[i]:
			n.Name = w.nodes.objects[i].Name
		case !slices.Contains(n.Matches, true):
			continue
		}
		flags = flags[:len(flags)+3*classes]
		both := amounts[len(amounts) : len(amounts)+2*resources]
		amounts = amounts[:len(amounts)+2*resources]
		n.Total, n.Free = both[:resources], both[resources:]
		w.addInventoryAmounts(i, v.Resources, columns, n.Total, n.Free)
		v.Nodes, positions = append(v.Nodes, n), append(positions, int32(i))
	}
	return positions
}

// columnsIn returns the columns of usage of the resources.
func (w *Snapshot) columnsIn(resources []corev1.ResourceName) []int {
	columns := make([]int, len(resources))
	for r, name := range resources {
		columns[r] = w.usage().columnOf(name)
	}
	return columns
}

// addInventoryAmounts adds what a node has, and has free beside what is reserved for others, of each of the resources.
func (w *Snapshot) addInventoryAmounts(i int, resources []corev1.ResourceName, columns []int, total, free []int64) {
	has, used := w.amountsOn(i)
	var on *reservedOnNode
	if len(w.reserved) > 0 {
		on = w.reserved[i]
	}
	for r, column := range columns {
		left := has[column] - used[column]
		switch {
		case on == nil:
		case resources[r] == corev1.ResourcePods:
			left -= on.others.Pods
		default:
			left -= on.others.Resources[resources[r]]
		}
		total[r] += has[column]
		free[r] += max(0, left)
	}
}

// inventoryByDomain returns an Inventory for the only class, in which the nodes of a domain are one. Closed nodes, those of which pods
// use a host port, and those that the problem names, are apart.
func (w *Snapshot) inventoryByDomain(p placement.Problem) *podgroup.Inventory {
	v := &podgroup.Inventory{Levels: map[string][]placement.Area{}, Apart: [][][]int32{nil}}
	w.inventoryRequests(v)
	columns, c, named := w.columnsIn(v.Resources), w.classes[0], w.positionsOf(p.Nodes)
	uses, parts, places := w.usesOf(c), w.newInventoryParts(levelsOf(p)), len(columns)
	v.Resources, v.Requests[0] = append(v.Resources, podgroup.Places), append(v.Requests[0], 1)
	v.Nodes = make([]podgroup.InventoryNode, 0, len(w.areas))
	total, free := make([]int64, places), make([]int64, places)
	for i := range w.nodes.nodes {
		isNamed := len(named) > 0 && named[i]
		if !uses[i].matches && !isNamed {
			continue
		}
		number := parts.numberOf(i, part{nodeUse: uses[i]}, isNamed)
		if number == len(v.Nodes) {
			flags, amounts := []bool{uses[i].matches, uses[i].closed, uses[i].taken}, make([]int64, 2*(places+1))
			v.Nodes = append(v.Nodes, podgroup.InventoryNode{
				Matches: flags[:1:1], Closed: flags[1:2:2], Taken: flags[2:], Total: amounts[:places+1], Free: amounts[places+1:],
			})
		}
		n := &v.Nodes[number]
		if isNamed {
			n.Name = w.nodes.objects[i].Name
		}
		w.addInventoryAmounts(i, v.Resources, columns, n.Total, n.Free)
		n.Total[places] += int64(w.emptySlots(c, int32(i)))
		if w.nodes.planned[i].gone == 0 && (len(w.reserved) == 0 || w.reserved[i] == nil) {
			n.Free[places] += int64(w.roomOn(c, i).free)
			continue
		}
		clear(total)
		clear(free)
		w.addInventoryAmounts(i, v.Resources, columns, total, free)
		n.Free[places] += slotsIn(free, v.Requests[0])
	}
	for k, level := range parts.levels {
		v.Levels[level] = parts.areas[k]
	}
	return v
}

// inventoryParts numbers the parts of an Inventory: nodes that are alike and in the same domains.
type inventoryParts struct {
	levels  []string
	tops    []*topology
	lists   [][]placement.Area // by level: all of it
	areas   [][]placement.Area // by level, then by number of a part; 0: none
	groups  map[inside]int32
	numbers map[part]int

	count int

	values []int32 // of the last node, by level
	last   part    // its part: neighbours are often alike and need no look-up
	number int     // of its part
}

// part is nodes that are alike.
type part struct {
	nodeUse
	group int32 // those in the same domains have the same; -1: a node by itself; 0: not known yet
}

// inside is a value of a level inside the domains of the levels before it.
type inside struct{ group, value int32 }

func (w *Snapshot) newInventoryParts(levels []string) *inventoryParts {
	ps := &inventoryParts{levels: levels, groups: make(map[inside]int32, len(w.areas)), numbers: make(map[part]int, len(w.areas)),
		values: make([]int32, len(levels))}
	for _, level := range levels {
		ps.lists, ps.tops = append(ps.lists, w.Areas(level, 0)), append(ps.tops, w.nodes.topologyOf(level))
		ps.areas = append(ps.areas, make([]placement.Area, 0, len(w.areas)))
	}
	return ps
}

// numberOf returns the number of the part of a node, which is by itself if the problem names it.
func (ps *inventoryParts) numberOf(i int, at part, isNamed bool) int {
	isLast := ps.last.group > 0
	for k, top := range ps.tops {
		isLast = isLast && ps.values[k] == top.value[i]
		ps.values[k] = top.value[i]
	}
	if at.group = ps.last.group; isLast && at == ps.last && !isNamed {
		return ps.number
	}
	at.group = 1
	for _, value := range ps.values {
		in := inside{at.group, value}
		if ps.groups[in] == 0 {
			ps.groups[in] = int32(len(ps.groups) + 2)
		}
		at.group = ps.groups[in]
	}
	number, known := ps.numbers[at]
	if !known || isNamed {
		number = ps.count
		ps.count++
		for k, top := range ps.tops {
			area := placement.Area(0)
			if value := ps.values[k]; value >= 0 && len(ps.lists[k]) > 0 {
				area = ps.lists[k][top.ranks()[value]]
			}
			ps.areas[k] = append(ps.areas[k], area)
		}
	}
	if isNamed {
		at.group = -1
	} else {
		ps.numbers[at] = number
	}
	ps.last, ps.number = at, number
	return number
}

// slotsIn returns for how many pods the amounts suffice.
func slotsIn(amounts, requests []int64) int64 {
	slots := int64(math.MaxInt32)
	for r, amount := range amounts {
		if requests[r] > 0 {
			slots = min(slots, amount/requests[r])
		}
	}
	return slots
}

// apartOn returns the domains of the nodes over which pods of the class exclude each other: because of podAntiAffinity, or of
// host ports.
func (w *Snapshot) apartOn(c *class, nodes []int32) [][]int32 {
	var apart [][]int32
	if c.known.demand.alone {
		each := make([]int32, len(nodes))
		for k := range each {
			each[k] = int32(k)
		}
		apart = append(apart, each)
	}
	for _, top := range w.exclusiveTopologies(c) {
		domains := make([]int32, len(nodes))
		for k, i := range nodes {
			domains[k] = top.value[i]
		}
		apart = append(apart, domains)
	}
	return apart
}
