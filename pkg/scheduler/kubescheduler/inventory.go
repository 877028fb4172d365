// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

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
	v.Resources = []corev1.ResourceName{corev1.ResourcePods}
	for _, c := range w.classes {
		w.findNodesOf(c)
		for _, r := range c.known.demand.requests {
			if !slices.Contains(v.Resources, r.name) {
				v.Resources = append(v.Resources, r.name)
			}
		}
	}
	for _, c := range w.classes {
		requests := make([]int64, len(v.Resources))
		if c.known.demand.pods {
			requests[0] = 1
		}
		for _, r := range c.known.demand.requests {
			requests[slices.Index(v.Resources, r.name)] = r.amount
		}
		v.Requests = append(v.Requests, requests)
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
		for k, c := range w.classes {
			n.Matches[k], n.Closed[k], n.Taken[k] = uses[k][i].matches, uses[k][i].closed, w.isPortTaken(c, i)
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

// addInventoryAmounts sets what a node has, and has free beside what is reserved for others, of each of the resources.
func (w *Snapshot) addInventoryAmounts(i int, resources []corev1.ResourceName, columns []int, total, free []int64) {
	has, used := w.amountsOn(i)
	on := w.reserved[i]
	for r, column := range columns {
		left := has[column] - used[column]
		switch {
		case on == nil:
		case resources[r] == corev1.ResourcePods:
			left -= on.others.Pods
		default:
			left -= on.others.Resources[resources[r]]
		}
		total[r], free[r] = has[column], max(0, left)
	}
}

// inventoryByDomain returns an Inventory for the only class, in which the nodes of a domain are one. Closed nodes, those of which pods
// use a host port, and those that the problem names, are apart.
func (w *Snapshot) inventoryByDomain(p placement.Problem) *podgroup.Inventory {
	v := &podgroup.Inventory{Levels: map[string][]placement.Area{}, Apart: [][][]int32{nil}}
	w.inventoryRequests(v)
	columns := w.columnsIn(v.Resources)
	v.Resources, v.Requests[0] = append(v.Resources, podgroup.Places), append(v.Requests[0], 1)
	c, levels, named := w.classes[0], levelsOf(p), w.positionsOf(p.Nodes)
	uses, lists := w.usesOf(c), make([][]placement.Area, len(levels))
	for k, level := range levels {
		lists[k] = w.Areas(level, 0)
	}
	type part struct {
		nodeUse
		taken bool
		group int32 // nodes in the same domains
	}
	type inside struct {
		group int32
		area  placement.Area
	}
	groups, parts := map[inside]int32{}, map[part]int{}
	places := len(columns)
	total, free := make([]int64, places), make([]int64, places)
	areas, before := make([]placement.Area, len(levels)), make([]placement.Area, len(levels))
	last, number := part{}, 0 // neighbours are often alike: no look-up
	for i := range w.nodes.nodes {
		isNamed := len(named) > 0 && named[i]
		if !uses[i].matches && !isNamed {
			continue
		}
		for k, list := range lists {
			areas[k], _ = w.areaAt(list, i)
		}
		at := part{nodeUse: uses[i], taken: w.isPortTaken(c, i), group: last.group}
		if isNamed || len(v.Nodes) == 0 || at != last || !slices.Equal(areas, before) {
			at.group = 0
			for _, area := range areas {
				in := inside{at.group, area}
				if groups[in] == 0 {
					groups[in] = int32(len(groups) + 1)
				}
				at.group = groups[in]
			}
			known := false
			if number, known = parts[at]; !known || isNamed {
				number = len(v.Nodes)
				n := podgroup.InventoryNode{Matches: []bool{at.matches}, Closed: []bool{at.closed}, Taken: []bool{at.taken}}
				n.Total, n.Free = make([]int64, places+1), make([]int64, places+1)
				v.Nodes = append(v.Nodes, n)
				for k, level := range levels {
					v.Levels[level] = append(v.Levels[level], areas[k])
				}
			}
			if last = at; isNamed {
				v.Nodes[number].Name = w.nodes.objects[i].Name
				last = part{group: -1} // it stays by itself
			} else {
				parts[at] = number
			}
			copy(before, areas)
		}
		w.addInventoryAmounts(i, v.Resources, columns, total, free)
		n := &v.Nodes[number]
		n.Total[places], n.Free[places] = n.Total[places]+slotsIn(total, v.Requests[0]), n.Free[places]+slotsIn(free, v.Requests[0])
		for r := range total {
			n.Total[r], n.Free[r] = n.Total[r]+total[r], n.Free[r]+free[r]
		}
	}
	return v
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

// amountsOf returns how much of a resource, or how many pods, a node has and uses.
func amountsOf(node fwk.NodeInfo, name corev1.ResourceName) (total, used int64) {
	if name == corev1.ResourcePods {
		return int64(node.GetAllocatable().GetAllowedPodNumber()), int64(len(node.GetPods()))
	}
	return amountOf(node.GetAllocatable(), name), amountOf(node.GetRequested(), name)
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
	for _, term := range c.info.GetRequiredAntiAffinityTerms() {
		if !term.Matches(c.info.Pod, w.namespaceLabels(c.info.Pod.Namespace)) {
			continue
		}
		values, domains := w.nodes.topologyOf(term.TopologyKey).value, make([]int32, len(nodes))
		for k, i := range nodes {
			domains[k] = values[i]
		}
		apart = append(apart, domains)
	}
	return apart
}
