// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/podgroup"
)

// usageTable stores between plans what nodes have and use of resources, and what their running pods use: to look up the
// amounts of thousands of nodes, and more so of their pods, takes longer than to decide by them.
type usageTable struct {
	columns     []corev1.ResourceName // the number of pods, and resources
	generations []int64               // by position: of the state of the node that was read; 0: none
	total, used []int64               // by position, then by column
	pods        []podUsage            // by position

	holders  []podgroup.Holder // of the pods that were read; some may have no pods any more
	numberOf map[podgroup.Holder]int32
}

// podUsage is what the pods of one state of a node use, and who they are, in the order of the NodeInfo.
type podUsage struct {
	generation int64   // of the node; 0: never read
	uses       []int64 // by pod and column
	holders    []int32 // by pod: index into usageTable.holders
}

// maxColumns is the number of resources that are kept.
const maxColumns = 16

// readNodes reads what the nodes that changed have and use of the resources.
func (t *usageTable) readNodes(nodes *nodeTable, resources []corev1.ResourceName) {
	missing := slices.DeleteFunc(slices.Clone(resources), func(name corev1.ResourceName) bool { return slices.Contains(t.columns, name) })
	if len(missing) > 0 {
		if len(t.columns)+len(missing) > maxColumns {
			t.columns, missing = nil, resources
		}
		t.columns = append(slices.Clone(t.columns), missing...)
		t.generations, t.pods = nil, nil
	}
	n := len(t.columns)
	if len(t.generations) != len(nodes.nodes) {
		t.generations = make([]int64, len(nodes.nodes))
		t.total, t.used = make([]int64, n*len(nodes.nodes)), make([]int64, n*len(nodes.nodes))
	}
	for _, i := range changedSince(t.generations, nodes.generations) {
		t.generations[i] = nodes.generations[i]
		for k, name := range t.columns {
			t.total[i*n+k], t.used[i*n+k] = amountsOf(nodes.nodes[i], name)
		}
	}
}

// readPods reads what the pods of the nodes that changed use of the resources that readNodes was called with.
func (t *usageTable) readPods(nodes []fwk.NodeInfo) {
	if len(t.pods) != len(nodes) {
		t.pods = make([]podUsage, len(nodes))
	}
	for i, node := range nodes {
		u := &t.pods[i]
		if u.generation == node.GetGeneration() {
			continue
		}
		u.generation, u.uses, u.holders = node.GetGeneration(), u.uses[:0], u.holders[:0]
		for _, p := range node.GetPods() {
			u.holders = append(u.holders, t.numberHolder(podgroup.HolderOf(p.GetPod())))
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
}

// usesOf returns what the k-th pod of a node uses, by column. readPods must have been called.
func (t *usageTable) usesOf(node, k int) []int64 {
	n := len(t.columns)
	return t.pods[node].uses[k*n : (k+1)*n]
}

// numberHolder returns the index of a holder.
func (t *usageTable) numberHolder(h podgroup.Holder) int32 {
	number, ok := t.numberOf[h]
	if !ok {
		if t.numberOf == nil {
			t.numberOf = map[podgroup.Holder]int32{}
		}
		number = int32(len(t.holders))
		t.holders, t.numberOf[h] = append(t.holders, h), number
	}
	return number
}

// countHolders returns the number of pods by holder. It forgets the holders without pods once they are the majority.
func (t *usageTable) countHolders(nodes []fwk.NodeInfo) []int {
	for {
		t.readPods(nodes)
		pods, used := make([]int, len(t.holders)), 0
		for i := range t.pods {
			for _, h := range t.pods[i].holders {
				if pods[h]++; pods[h] == 1 {
					used++
				}
			}
		}
		if len(pods) <= 2*used+keptHolders {
			return pods
		}
		t.pods, t.holders, t.numberOf = nil, nil, nil
	}
}

// keptHolders is the number of holders without pods that are kept in any case.
const keptHolders = 1024

// columnOf returns the column of a resource that readNodes was called with.
func (t *usageTable) columnOf(name corev1.ResourceName) int { return slices.Index(t.columns, name) }

// usage returns the usageTable with the resources that the classes request. Its columns are the same during the whole
// plan.
func (w *Snapshot) usage() *usageTable {
	t := &w.cache.usage
	if w.usageRead {
		return t
	}
	w.usageRead = true
	resources := []corev1.ResourceName{corev1.ResourcePods}
	for _, c := range w.classes {
		w.findNodesOf(c)
		resources = append(append(resources, c.resource), resourcesOf(c.info.CalculateResource().Resource)...)
	}
	slices.Sort(resources)
	t.readNodes(w.nodes, slices.Compact(resources))
	return t
}

// read returns what a node has and uses, by column, with the pods that run on it.
func (t *usageTable) read(i int) (total, used []int64) {
	n := len(t.columns)
	return t.total[i*n:][:n], t.used[i*n:][:n]
}

// amountsOn returns what a node has and uses without planned and freed pods, by column of usage.
func (w *Snapshot) amountsOn(i int) (total, used []int64) {
	t := w.usage()
	if w.nodes.planned[i].gone == 0 {
		return t.read(i)
	}
	n := len(t.columns)
	total, used = make([]int64, n), make([]int64, n)
	for k, name := range t.columns {
		total[k], used[k] = amountsOf(w.nodes.currentNode(i), name)
	}
	return total, used
}

// columnsOf returns the columns of usage of demand.requests of the class, and after these that of the number of pods.
func (w *Snapshot) columnsOf(c *class) []int {
	if c.columns == nil {
		for _, r := range c.known.demand.requests {
			c.columns = append(c.columns, w.usage().columnOf(r.name))
		}
		c.columns = append(c.columns, w.usage().columnOf(corev1.ResourcePods))
	}
	return c.columns
}
