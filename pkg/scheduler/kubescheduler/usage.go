// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// usageTable stores between plans what running pods use. To read it from 40,000 pods takes longer than to decide which of
// them end.
type usageTable struct {
	columns []corev1.ResourceName // the number of pods, and resources
	nodes   []nodeUsage           // by position
}

// nodeUsage is what the pods of one state of a node use, and what they leave.
type nodeUsage struct {
	generation int64   // of the node; 0: never read
	room       []int64 // by column; may be negative
	uses       []int64 // by pod, in the order of the NodeInfo, and column
}

// maxColumns is the number of resources that are kept.
const maxColumns = 16

// update reads what the pods of the nodes that changed use of the resources.
func (t *usageTable) update(nodes []fwk.NodeInfo, resources []corev1.ResourceName) {
	missing := slices.DeleteFunc(slices.Clone(resources), func(name corev1.ResourceName) bool { return slices.Contains(t.columns, name) })
	if len(missing) > 0 {
		if len(t.columns)+len(missing) > maxColumns {
			t.columns, missing = nil, resources
		}
		t.columns = append(slices.Clone(t.columns), missing...)
		t.nodes = nil
	}
	if len(t.nodes) != len(nodes) {
		t.nodes = make([]nodeUsage, len(nodes))
	}
	for i, node := range nodes {
		if u := &t.nodes[i]; u.generation != node.GetGeneration() {
			t.readNode(u, node)
		}
	}
}

// columnOf returns the column of a resource that update was called with.
func (t *usageTable) columnOf(name corev1.ResourceName) int { return slices.Index(t.columns, name) }

func (t *usageTable) readNode(u *nodeUsage, node fwk.NodeInfo) {
	u.generation, u.room, u.uses = node.GetGeneration(), u.room[:0], u.uses[:0]
	for _, name := range t.columns {
		total, used := amountsOf(node, name)
		u.room = append(u.room, total-used)
	}
	for _, p := range node.GetPods() {
		requests := p.CalculateResource().Resource
		for _, name := range t.columns {
			if name == corev1.ResourcePods {
				u.uses = append(u.uses, 1)
			} else {
				u.uses = append(u.uses, amountOf(requests, name))
			}
		}
	}
}
