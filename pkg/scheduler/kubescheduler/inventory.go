// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// Inventory implements podgroup.Capacities: a copy of the nodes that match one of the classes, or that the problem names, without
// planned pods.
func (w *Snapshot) Inventory(p placement.Problem) *podgroup.Inventory {
	v := &podgroup.Inventory{}
	w.inventoryRequests(v)
	named := map[int]bool{}
	for _, names := range p.Nodes {
		for _, name := range names {
			if i, known := w.nodes.position[name]; known {
				named[i] = true
			}
		}
	}
	nodes := w.inventoryNodes(v, named)
	for _, level := range p.Required {
		if level == "" || v.Levels[level] != nil {
			continue
		}
		if v.Levels == nil {
			v.Levels = map[string][]placement.Area{}
		}
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
	columns := make([]int, resources)
	for r, name := range v.Resources {
		columns[r] = w.usage().columnOf(name)
	}
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
		var reserved reservations.Amount
		if on := w.reserved[i]; on != nil {
			reserved = on.others
		}
		both := amounts[len(amounts) : len(amounts)+2*resources]
		amounts = amounts[:len(amounts)+2*resources]
		n.Total, n.Free = both[:resources], both[resources:]
		total, used := w.amountsOn(i)
		for r, name := range v.Resources {
			kept := reserved.Resources[name]
			if name == corev1.ResourcePods {
				kept = reserved.Pods
			}
			n.Total[r], n.Free[r] = total[columns[r]], max(0, total[columns[r]]-used[columns[r]]-kept)
		}
		v.Nodes, positions = append(v.Nodes, n), append(positions, int32(i))
	}
	return positions
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
