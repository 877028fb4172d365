// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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

// reservedFrom returns what is reserved on the node and not available to the asker.
func reservedFrom(a reservations.Asker, node fwk.NodeInfo, list []*reservations.Reservation) reservations.Amount {
	var sum reservations.Amount
	for _, x := range list {
		if x.Restricts(a) {
			sum.Add(x.Rest(func(uid types.UID) bool { return hasPodOnNode(node, uid) }), 1)
		}
	}
	return sum
}

func hasPodOnNode(node fwk.NodeInfo, uid types.UID) bool {
	return slices.ContainsFunc(node.GetPods(), func(p fwk.PodInfo) bool { return p.GetPod().UID == uid })
}

// RoomReserved is the reason of a node that has room for a pod only in room that is reserved for others.
const RoomReserved = "node(s) keep room for pods of other gangs"

// FitsBeside reports whether the node has room for what a pod without a gang uses, beside what is reserved, and what is
// planned for members of a plan. It also returns true if the node has no room at all: this is left to NodeResourcesFit,
// which knows which resources count.
func FitsBeside(reserved *reservations.View, planned reservations.Amount, node fwk.NodeInfo, pod reservations.Amount, a reservations.Asker) bool {
	kept := reservedFrom(a, node, reserved.On(node.Node().Name))
	kept.Add(planned, 1)
	crosses := func(free, wanted, kept int64) bool {
		return kept > 0 && wanted > 0 && free >= wanted && free-kept < wanted
	}
	if crosses(freeOn(node, corev1.ResourcePods), pod.Pods, kept.Pods) {
		return false
	}
	for name, wanted := range pod.Resources {
		if crosses(freeOn(node, name), wanted, kept.Resources[name]) {
			return false
		}
	}
	return true
}

// reservedOnNode is what is reserved on one node, seen from the plan of one gang. nil: nothing.
type reservedOnNode struct {
	others  reservations.Amount            // for other gangs
	own     map[string]reservations.Amount // by leaf of the gang
	planned map[string]reservations.Amount // by leaf: resources of the pods planned on the node so far
}

// readReservations reads what is reserved. Nodes on which nothing is reserved from pods of the gang have no entry.
func (w *Snapshot) readReservations(reserved *reservations.View, a reservations.Asker, leaves []string) {
	w.reservedView, w.asker = reserved, a
	if reserved.Len() == 0 {
		return
	}
	for name, list := range reserved.ByNode() {
		if i, ok := w.nodes.position[name]; ok {
			w.readReservationsOn(i, list)
		}
	}
	for i, c := range w.classes {
		c.uses = AmountOf(c.info.Pod)
		if i < len(leaves) {
			c.leaf = leaves[i]
		}
	}
}

// readReservationsOn reads what is reserved on a node on which no pod is planned. list is all that is reserved there.
func (w *Snapshot) readReservationsOn(i int, list []*reservations.Reservation) {
	node := w.nodes.currentNode(i)
	on := &reservedOnNode{
		others: reservedFrom(w.asker, node, list), own: map[string]reservations.Amount{}, planned: map[string]reservations.Amount{},
	}
	for _, x := range list {
		if x.Owner.Gang == w.asker.Gang && !x.Owner.IsGang() && !hasPodOnNode(node, x.Pod.UID) {
			sum := on.own[x.Owner.Leaf]
			sum.Add(x.Amount, 1)
			on.own[x.Owner.Leaf] = sum
		}
	}
	delete(w.reserved, i)
	switch {
	case !on.others.IsEmpty() || len(on.own) > 0:
		if w.reserved == nil {
			w.reserved = map[int]*reservedOnNode{}
		}
		w.reserved[i] = on
	case len(w.reserved) == 0:
		w.reserved = nil
	}
}

// AskForLater makes all that is reserved count, also what the pods may use now because they end before it is needed, or
// replace others: what is planned from now on is for later. It must not be called while pods are planned.
func (w *Snapshot) AskForLater() {
	if w.asker.Ends.IsZero() && !w.asker.Refill {
		return
	}
	w.asker.Ends, w.asker.Refill = time.Time{}, false
	for name, list := range w.reservedView.ByNode() {
		if i, ok := w.nodes.position[name]; ok {
			w.readReservationsOn(i, list)
		}
	}
}

// from returns what is reserved from pods of the leaf. Pods planned for another leaf use the room of that leaf, so they
// never make room for this one.
func (on *reservedOnNode) from(leaf string) reservations.Amount {
	if on == nil {
		return reservations.Amount{}
	}
	if len(on.own) == 0 {
		return on.others
	}
	var sum reservations.Amount
	sum.Add(on.others, 1)
	for other, reserved := range on.own {
		if other != leaf {
			sum.AddRest(reserved, on.planned[other])
		}
	}
	return sum
}

// hasOnlyReserved reports whether the node has room for another pod of the class only in room that is reserved for
// others.
func (w *Snapshot) hasOnlyReserved(c *class, i int) bool {
	on := w.reserved[i]
	if on == nil {
		return false
	}
	node := w.nodes.nodeWithPlanned(i)
	return c.known.demand.slotsOnNode(node) > 0 && c.known.demand.slotsBeside(node, on.from(c.leaf)) == 0
}

// countReserved records a pod of the class that was added to (1) or removed from (-1) a node of the plan.
func (w *Snapshot) countReserved(c *class, i, delta int) {
	if on := w.reserved[i]; on != nil && len(on.own) > 0 {
		sum := on.planned[c.leaf]
		sum.Add(c.uses, int64(delta))
		on.planned[c.leaf] = sum
	}
}
