// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// freedPods are the running pods of a Snapshot, and which of them are freed: taken off their nodes to see what would
// fit if they ended.
type freedPods struct {
	first []int32 // by node: ID of its first pod; the others follow in the order of the NodeInfo
	node  []int32 // by ID
	freed []bool  // by ID

	// The rest is set when a pod is freed for the first time.
	usage   *usageTable
	room    []int64 // by node and column of usage: what is left without planned pods; may be negative
	left    []int64 // only used by Slots
	listens bool    // a class listens

	changed   []int32 // nodes, in one call of Free or Restore
	isChanged []bool  // by node: whether it is among changed
}

// roomOf returns what is left on a node, by column.
func (f *freedPods) roomOf(i int) []int64 {
	n := len(f.usage.columns)
	return f.room[i*n : (i+1)*n]
}

// usesOf returns what a running pod uses, by column.
func (f *freedPods) usesOf(id int) []int64 {
	i := f.node[id]
	return f.usage.usesOf(int(i), id-int(f.first[i]))
}

// unfreedResults are the results of a class for the nodes with all of their running pods.
type unfreedResults struct {
	known   *filterResults // may belong to the FilterCache
	state   fwk.CycleState // without freed pods; nil: the class does not listen
	takers  int            // number of nodes that take the class, which come first in its order
	lacking []uint16       // by index of demand.requests: the reason of a node that has too little of it
	main    int            // column of the main resource
	// countsDecide: a node that plainFilters refuse, but only because of its pods, takes the class as soon as there is
	// enough of what demand.requests contains.
	countsDecide bool
}

// VisitPods calls visit with every pod that is bound or assumed on the nodes of the snapshot. id identifies the pod
// for Free and Restore.
func (w *Snapshot) VisitPods(visit func(id int, pod *corev1.Pod)) {
	id := 0
	for _, node := range w.nodes.nodes {
		for _, p := range node.GetPods() {
			visit(id, p.GetPod())
			id++
		}
	}
}

// runningPods numbers the running pods at the first call.
func (w *Snapshot) runningPods() *freedPods {
	if w.freed != nil {
		return w.freed
	}
	f := &freedPods{first: make([]int32, len(w.nodes.nodes))}
	for i, node := range w.nodes.nodes {
		f.first[i] = int32(len(f.node))
		for range node.GetPods() {
			f.node = append(f.node, int32(i))
		}
	}
	f.freed = make([]bool, len(f.node))
	w.freed = f
	return f
}

// runningPod returns a pod by its ID, and its node.
func (w *Snapshot) runningPod(id int) (fwk.PodInfo, int) {
	i := int(w.freed.node[id])
	return w.nodes.nodes[i].GetPods()[id-int(w.freed.first[i])], i
}

// WhyFreedRoomIsUnknown returns why the Snapshot cannot tell which pods would fit if running pods ended, "" if it can:
// an HTTP extender filters the nodes of a class, and can be asked only about nodes as they are, or about the victims on
// one node.
func (w *Snapshot) WhyFreedRoomIsUnknown() string {
	for _, c := range w.classes {
		for _, x := range w.f.Extenders() {
			if (x.IsFilter() || x.SupportsPreemption()) && x.IsInterested(c.info.Pod) {
				return fmt.Sprintf("extender %s has a say in the nodes of the pods, and cannot be asked about nodes whose pods have ended", x.Name())
			}
		}
	}
	return ""
}

// Free implements preemption.World: it takes running pods off their nodes. It must not be called while pods are
// planned.
//
// Room, host ports and volumes of the pods are free then, and the pods do not count for affinity and spreading. What is
// reserved for their replacements counts instead of them. Devices of their ResourceClaims are not seen as free, because
// they are only when the claim is deallocated, and what a node refused in a real cycle remains known: nobody should end
// for room that may be refused.
func (w *Snapshot) Free(ids []int) {
	if len(ids) == 0 {
		return
	}
	f := w.runningPods()
	if f.usage == nil {
		w.prepareFree(f)
	}
	f.moveRoom(ids, 1)
	w.updateFreed(ids, true)
}

// Restore implements preemption.World: it puts freed pods back. It must not be called while pods are planned.
func (w *Snapshot) Restore(ids []int) {
	if len(ids) == 0 {
		return
	}
	w.freed.moveRoom(ids, -1)
	w.updateFreed(ids, false)
}

// UseOnly implements backfill.World.
func (w *Snapshot) UseOnly(nodes []string) {
	w.only = nil
	if nodes != nil {
		w.only = sets.New(nodes...)
	}
	for _, c := range w.classes { // which nodes refuse them is different now
		c.scan.reached, c.scans = c.scan.reached[:0], nil
	}
}

// CountNodes implements preemption.World.
func (w *Snapshot) CountNodes() int { return len(w.nodes.nodes) }

// NodeOf implements preemption.World.
func (w *Snapshot) NodeOf(id int) int { return int(w.runningPods().node[id]) }

// NodeName implements preemption.World.
func (w *Snapshot) NodeName(node int) string { return w.nodes.objects[node].Name }

// Slots implements preemption.World. Of a node from which pods are gone it goes by what plainFilters count, and by
// what is reserved.
func (w *Snapshot) Slots(index, i int, ended, back []int) int {
	c, _ := w.classAt(index)
	f := w.runningPods()
	if f.usage == nil {
		w.prepareFree(f)
	}
	if c.refuse != nil {
		return 0
	}
	known := c.unfreed.known
	reason, reserved, nominated := known.reasons[i], w.reservedOn(i), len(w.nominatedOn(i)) > 0
	if int(w.nodes.planned[i].gone)+len(ended) == len(back) && !(reason == 0 && nominated) {
		_, limited := c.limits[i]
		switch {
		case reason != 0:
			return 0
		case len(back) == 0 && (limited || reserved != nil || c.devices != nil || c.volumes != nil):
			return w.slotsOn(c, i)
		}
		return int(known.slots[i])
	}
	if reason != 0 && !w.cache.reasons[reason].resolvable {
		return 0
	}
	f.left = append(f.left[:0], f.roomOf(i)...)
	for k := range f.left {
		for _, id := range ended {
			f.left[k] += f.usesOf(id)[k]
		}
		for _, id := range back {
			f.left[k] -= f.usesOf(id)[k]
		}
	}
	demand := &c.known.demand
	var others reservations.Amount
	if reserved != nil {
		others.Add(w.keptFrom(c, i), 1)
	}
	if nominated {
		w.addNominated(&others, c, i)
	}
	slots, _ := demand.countSlots(func(k int) int64 { return f.left[c.columns[k]] - demand.reservedOf(others, k) })
	if reason == 0 && reserved == nil && !nominated { // with fewer pods on it, it takes no fewer
		slots = max(slots, int(known.slots[i]))
	}
	return slots
}

// addNominated adds what pods use that are nominated for the node and that the filters count there for the class.
func (w *Snapshot) addNominated(sum *reservations.Amount, c *class, i int) {
	for _, p := range w.nominatedOn(i) {
		if p.pod.UID != c.info.Pod.UID && corev1helpers.PodPriority(p.pod) >= corev1helpers.PodPriority(c.info.Pod) {
			sum.Add(p.uses, 1)
		}
	}
}

// Amount implements preemption.World.
func (w *Snapshot) Amount(index int) int64 {
	c, _ := w.classAt(index)
	if !podgroup.IsExtended(c.resource) {
		return 0
	}
	return c.request
}

// prepareFree judges the nodes for each class with all of their pods, and keeps the results.
func (w *Snapshot) prepareFree(f *freedPods) {
	f.usage = w.usage()
	f.usage.readPods(w.nodes.nodes)
	f.isChanged, f.room = make([]bool, len(w.nodes.nodes)), slices.Clone(f.usage.total)
	for k, used := range f.usage.used {
		f.room[k] -= used
	}
	for _, c := range w.classes {
		if c.refuse == nil {
			w.keepResults(f, c)
		}
	}
}

// keepResults gives a class its own copy of the results, and keeps the original.
func (w *Snapshot) keepResults(f *freedPods, c *class) {
	u := &unfreedResults{known: c.known, takers: len(c.scan.order), main: f.usage.columnOf(c.resource)}
	w.columnsOf(c) // class.columns is read from here on
	for _, r := range c.known.demand.requests {
		u.lacking = append(u.lacking, w.cache.internReason(plainReason{"Insufficient " + string(r.name), true, names.NodeResourcesFit}))
	}
	u.countsDecide = c.known.demand.complete && c.devices == nil && w.cache.roomIsFilteredLast() &&
		(c.skip.Has(names.DynamicResources) || !w.cache.enabledPlugins(names.DynamicResources))
	if c.listens {
		f.listens = true
		u.state = c.state.Clone()
	}
	known := *c.known
	known.generations, known.reasons = slices.Clone(known.generations), slices.Clone(known.reasons)
	known.slots, known.free = slices.Clone(known.slots), slices.Clone(known.free)
	c.known, c.unfreed = &known, u
	c.scan.order = slices.Clone(c.scan.order) // the ranking may be cached
}

// roomIsFilteredLast reports whether a node that NodeResourcesFit refuses has passed all filters that do not depend on
// its pods.
func (v *FilterCache) roomIsFilteredLast() bool {
	room := slices.Index(v.filters, names.NodeResourcesFit)
	return !slices.ContainsFunc(v.filters[room+1:], func(name string) bool { return plainFilters.Has(name) && name != names.NodePorts })
}

// moveRoom adds what the pods use to the room of their nodes (1), or subtracts it (-1), and records which nodes change.
func (f *freedPods) moveRoom(ids []int, sign int64) {
	for _, id := range ids {
		i := f.node[id]
		if !f.isChanged[i] {
			f.isChanged[i] = true
			f.changed = append(f.changed, i)
		}
		room := f.roomOf(int(i))
		for k, n := range f.usesOf(id) {
			room[k] += sign * n
		}
	}
}

func (f *freedPods) clearChanged() {
	for _, i := range f.changed {
		f.isChanged[i] = false
	}
	f.changed = f.changed[:0]
}

// updateFreed records that the pods are freed or restored, and updates what depends on the changed nodes.
func (w *Snapshot) updateFreed(ids []int, freed bool) {
	f, delta := w.freed, int32(-1)
	if freed {
		delta = 1
	}
	for _, id := range ids {
		f.freed[id] = freed
		i := int(f.node[id])
		w.nodes.countFreed(i, delta, f.freed[f.first[i]:])
	}
	for _, c := range w.classes {
		if c.refuse == nil {
			w.updateResults(c, f.changed)
		}
		if c.volumes != nil {
			clear(c.volumes.room)
		}
	}
	if w.reserved != nil {
		for _, i := range f.changed {
			w.readReservedFreed(int(i))
		}
	}
	if f.listens {
		w.tellListeners(ids, freed)
	}
	f.clearChanged()
}

// freedIDs returns the IDs of the freed pods.
func (f *freedPods) freedIDs() []int {
	var ids []int
	for id, freed := range f.freed {
		if freed {
			ids = append(ids, id)
		}
	}
	return ids
}
