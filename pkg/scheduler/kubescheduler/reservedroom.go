// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// AmountOf returns the resources that a pod uses on a node, in the units of the function amount.
func AmountOf(pod *corev1.Pod) reservations.Amount {
	info, err := framework.NewPodInfo(pod)
	if err != nil { // its affinity cannot be parsed; it was bound nevertheless
		info = &framework.PodInfo{Pod: pod}
	}
	requests := info.CalculateResource().Resource
	out := reservations.Amount{Pods: 1, Resources: map[corev1.ResourceName]int64{}}
	for _, name := range resourcesOf(requests) {
		out.Resources[name] = amountOf(requests, name)
	}
	return out
}

// RoomReserved is the reason of a node that has room for a pod only in room that is reserved for others.
const RoomReserved = "node(s) keep room for pods of other gangs"

// FitsBeside reports whether the node has room for what a pod without a gang uses, beside what is reserved, and what is
// planned for members of a plan. It also returns true if the node has no room at all: this is left to NodeResourcesFit,
// which knows which resources count.
func FitsBeside(reserved *reservations.View, planned reservations.Amount, node fwk.NodeInfo, pod reservations.Amount, a reservations.Asker) bool {
	kept := reservedFrom(a, node, reserved.On(node.Node().Name))
	if kept.IsEmpty() && planned.IsEmpty() {
		return true
	}
	crosses := func(name corev1.ResourceName, wanted, kept int64) bool {
		if kept <= 0 || wanted <= 0 {
			return false
		}
		free := freeOn(node, name)
		return free >= wanted && free-kept < wanted
	}
	if crosses(corev1.ResourcePods, pod.Pods, kept.Pods+planned.Pods) {
		return false
	}
	for name, wanted := range pod.Resources {
		if crosses(name, wanted, kept.Resources[name]+planned.Resources[name]) {
			return false
		}
	}
	return true
}

// readReservations reads what is reserved.
func (w *Snapshot) readReservations(reserved *reservations.View, a reservations.Asker, leaves []string) {
	w.reservedView, w.asker = reserved, a
	w.reserved = w.nodes.reservedFrom(reserved, a)
	for i, c := range w.classes {
		if i < len(leaves) {
			c.leaf = leaves[i]
		}
	}
}

// AskForLater makes all that is reserved count, also what the pods may use now because they end before it is needed, or
// replace others: what is planned from now on is for later. It must not be called while pods are planned.
func (w *Snapshot) AskForLater() {
	if w.asker.Ends.IsZero() && !w.asker.Refill {
		return
	}
	w.asker.Ends, w.asker.Refill = time.Time{}, false
	w.reserved = w.nodes.reservedFrom(w.reservedView, w.asker)
	for i := range w.reservedFreed {
		w.readReservedFreed(i)
	}
}

// readReservedFreed reads what is reserved on a node of which pods were freed or restored.
func (w *Snapshot) readReservedFreed(i int) {
	list := w.reservedView.On(w.nodes.objects[i].Name)
	switch {
	case len(list) == 0:
	case w.nodes.planned[i].gone == 0:
		delete(w.reservedFreed, i)
	default:
		if w.reservedFreed == nil {
			w.reservedFreed = map[int]*reservedOnNode{}
		}
		w.reservedFreed[i] = readReservedOn(w.asker, w.nodes.currentNode(i), list)
	}
}

// reservedOn returns what is reserved on a node from pods of the gang. nil: nothing.
func (w *Snapshot) reservedOn(i int) *reservedOnNode {
	if w.reserved == nil {
		return nil
	}
	if on, ok := w.reservedFreed[i]; ok {
		return on
	}
	return w.reserved.on[i]
}

// keptFrom returns what is reserved on a node from pods of the class. Pods planned for another leaf use the room of
// that leaf, so they never make room for this one. The caller must not change it.
func (w *Snapshot) keptFrom(c *class, i int) reservations.Amount {
	on := w.reservedOn(i)
	if on == nil {
		return reservations.Amount{}
	}
	if len(on.own) == 0 {
		return on.others
	}
	var sum reservations.Amount
	sum.Add(on.others, 1)
	for leaf, reserved := range on.own {
		if leaf != c.leaf {
			sum.AddRest(reserved, w.ownPlanned[i][leaf])
		}
	}
	return sum
}

// hasOnlyReserved reports whether the node has room for another pod of the class only in room that is reserved for
// others.
func (w *Snapshot) hasOnlyReserved(c *class, i int) bool {
	on := w.reservedOn(i)
	if on == nil {
		return false
	}
	if p := &w.nodes.planned[i]; len(p.pods) == 0 && p.gone == 0 && len(on.own) == 0 {
		return on.slotsFor(c.known.kind, &c.known.demand, w.nodes.nodes[i]).only
	}
	node := w.nodes.nodeWithPlanned(i)
	return c.known.demand.slotsOnNode(node) > 0 && c.known.demand.slotsBeside(node, w.keptFrom(c, i)) == 0
}

// slotsBeside returns for how many pods of the class a node has room beside what is reserved, without planned pods.
func (w *Snapshot) slotsBeside(c *class, i int) int {
	on := w.reservedOn(i)
	switch {
	case on == nil:
		return math.MaxInt32
	case w.nodes.planned[i].gone == 0 && len(on.own) == 0:
		return on.slotsFor(c.known.kind, &c.known.demand, w.nodes.nodes[i]).slots
	}
	return c.known.demand.slotsBeside(w.nodes.currentNode(i), w.keptFrom(c, i))
}

// reservedSlots returns how many slots of the class are reserved for other gangs, and on how many nodes all are.
func (w *Snapshot) reservedSlots(c *class) reservedSum {
	sum, ok := w.reserved.sums[c.known.kind]
	if ok && sum.reads == w.reserved.reads {
		return sum
	}
	sum = reservedSum{reads: w.reserved.reads}
	settled := true
	for i := range w.reserved.on {
		settled = settled && c.known.generations[i] != unsettled
		if c.known.reasons[i] != 0 {
			continue
		}
		slots := w.slotsBeside(c, i)
		sum.slots += max(0, int(c.known.slots[i])-slots)
		if slots == 0 {
			sum.nodes++
		}
	}
	if settled {
		w.reserved.keepSum(c.known.kind, sum)
	}
	return sum
}

// countReserved records a pod of the class that was added to (1) or removed from (-1) a node of the plan.
func (w *Snapshot) countReserved(c *class, i, delta int) {
	on := w.reservedOn(i)
	if on == nil || len(on.own) == 0 {
		return
	}
	if w.ownPlanned[i] == nil {
		if w.ownPlanned == nil {
			w.ownPlanned = map[int]map[string]reservations.Amount{}
		}
		w.ownPlanned[i] = map[string]reservations.Amount{}
	}
	sum := w.ownPlanned[i][c.leaf]
	sum.Add(AmountOf(c.info.Pod), int64(delta))
	w.ownPlanned[i][c.leaf] = sum
}
