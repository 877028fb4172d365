// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// updateResults judges the changed nodes for a class. The nodes that take the class only because of freed pods come
// last in its order, the one with the least room first.
func (w *Snapshot) updateResults(c *class, changed []int32) {
	few := len(changed) <= fewNodes
	for _, i := range changed {
		if few {
			c.removeFreedNode(i)
		}
		reason, slots, free := w.resultWithFreed(c, int(i))
		c.known.setResult(int(i), c.known.generations[i], reason, slots, free)
		if few {
			c.insertFreedNode(i)
		}
	}
	if !few {
		c.scan.order = c.scan.order[:c.unfreed.takers]
		for i := range c.known.reasons {
			if c.takesDueToFreed(int32(i)) {
				c.scan.order = append(c.scan.order, int32(i))
			}
		}
		slices.SortFunc(c.scan.order[c.unfreed.takers:], c.compareFreedNodes)
	}
	c.scan.reached, c.scans, c.rank = c.scan.reached[:0], nil, nil
}

// takesDueToFreed reports whether the node takes the class, and did not before pods were freed.
func (c *class) takesDueToFreed(i int32) bool {
	return c.known.reasons[i] == 0 && c.unfreed.known.reasons[i] != 0
}

func (c *class) compareFreedNodes(a, b int32) int {
	return cmp.Or(cmp.Compare(c.known.free[a], c.known.free[b]), cmp.Compare(a, b))
}

// removeFreedNode removes a node whose result will change from the order, if it is there due to freed pods.
func (c *class) removeFreedNode(i int32) {
	if c.takesDueToFreed(i) {
		n := c.unfreed.takers
		k, _ := slices.BinarySearchFunc(c.scan.order[n:], i, c.compareFreedNodes)
		c.scan.order = slices.Delete(c.scan.order, n+k, n+k+1)
	}
}

// insertFreedNode reverses removeFreedNode after the result has changed.
func (c *class) insertFreedNode(i int32) {
	if c.takesDueToFreed(i) {
		n := c.unfreed.takers
		k, _ := slices.BinarySearchFunc(c.scan.order[n:], i, c.compareFreedNodes)
		c.scan.order = slices.Insert(c.scan.order, n+k, i)
	}
}

// resultWithFreed returns the result of plainFilters for a node without its freed pods.
func (w *Snapshot) resultWithFreed(c *class, i int) (reason uint16, slots int32, free int64) {
	u := c.unfreed
	reason, slots, free = u.known.reasons[i], u.known.slots[i], w.freed.roomOf(i)[u.main]
	if w.nodes.planned[i].gone == 0 || reason != 0 && !w.cache.reasons[reason].resolvable {
		return reason, slots, free
	}
	room := w.freed.roomOf(i)
	n, lacking := c.known.demand.countSlots(func(k int) int64 { return room[c.columns[k]] })
	slots = int32(n)
	switch {
	case reason == 0: // with fewer pods on it, it still takes the class
		return 0, max(1, slots), free
	case slots == 0 && lacking < 0:
		return w.cache.internReason(plainReason{"Too many pods", true, names.NodeResourcesFit}), 0, free
	case slots == 0:
		return u.lacking[lacking], 0, free
	case u.countsDecide:
		return 0, slots, free
	}
	c.state.SetSkipFilterPlugins(w.withoutPlainFilters(c))
	status := w.f.RunFilterPlugins(w.ctx, c.state, c.info.Pod, w.nodes.currentNode(i))
	c.state.SetSkipFilterPlugins(c.skip)
	if !status.IsSuccess() {
		return w.cache.internReason(plainReason{firstReason(status), status.Code() == fwk.Unschedulable, status.Plugin()}), 0, free
	}
	return 0, slots, free
}

// tellListeners updates the PreFilter states of the classes that listen, and how the classes affect each other.
func (w *Snapshot) tellListeners(ids []int, freed bool) {
	for _, c := range w.classes {
		switch {
		case !c.listens:
			continue
		case freed:
			w.tellListener(c, ids, w.f.RunPreFilterExtensionRemovePod)
		case c.spread == nil:
			w.tellListener(c, ids, w.f.RunPreFilterExtensionAddPod)
		default: // PodTopologySpread does not find the domains with the fewest pods again when pods are added
			c.state = c.unfreed.state.Clone()
			w.tellListener(c, w.freed.freedIDs(), w.f.RunPreFilterExtensionRemovePod)
		}
	}
	for _, c := range w.classes {
		c.blocked, c.blocks, c.spread = nil, nil, nil
		c.near, c.attracts, c.follows, c.links, c.linked, c.anchor, c.domainKey = nil, nil, nil, nil, nil, nil, ""
	}
	w.relateClasses()
}

// extensionStep is AddPod or RemovePod of the PreFilter plugins.
type extensionStep func(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.PodInfo, node fwk.NodeInfo) *fwk.Status

// tellListener updates the PreFilter state of a class for running pods. The plugins for which a class listens read only
// the object of the node.
func (w *Snapshot) tellListener(c *class, ids []int, step extensionStep) {
	for _, id := range ids {
		p, i := w.runningPod(id)
		c.state.SetSkipFilterPlugins(c.skipFor(p.GetPod()))
		if status := step(w.ctx, c.state, c.info.Pod, p, w.nodes.nodes[i]); !status.IsSuccess() {
			w.logger.Error(status.AsError(), "Failed to update the state of a class for a freed pod", "pod", klog.KObj(p.GetPod()))
		}
	}
	c.state.SetSkipFilterPlugins(c.skip)
}

// skipFor returns the plugins whose state of the class does not count a running pod: PodTopologySpread ignores pods
// that are terminating, and VolumeRestrictions pods of other namespaces, but neither considers that when a pod is
// removed.
func (c *class) skipFor(pod *corev1.Pod) sets.Set[string] {
	skip := c.skip
	if pod.DeletionTimestamp != nil && !skip.Has(names.PodTopologySpread) {
		skip = skip.Clone().Insert(names.PodTopologySpread)
	}
	if pod.Namespace != c.info.Pod.Namespace && !skip.Has(names.VolumeRestrictions) {
		skip = skip.Clone().Insert(names.VolumeRestrictions)
	}
	return skip
}
