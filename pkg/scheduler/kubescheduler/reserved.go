// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Asker identifies the pods for which room is checked. Gang is zero for pods without a gang.
type Asker struct {
	Gang     types.NamespacedName
	Leaf     string
	Priority int32
}

// Reservation is the room of one pod that is kept on a node for pods of a leaf.
type Reservation struct {
	Gang     types.NamespacedName
	Leaf     string
	Priority int32
	Node     string
	// Pod is the pod that had the room. While it is on the node it occupies the room itself, and the room is not
	// counted again.
	Pod *corev1.Pod
}

// against reports whether the room is kept from the asker: it belongs to another leaf of the asker's gang, or to
// another gang whose priority is not lower.
func (r *Reservation) against(a Asker) bool {
	if r.Gang == a.Gang {
		return r.Leaf != a.Leaf
	}
	return r.Priority >= a.Priority
}

// Reserved is the room that is currently kept on nodes: requests and the number of pods. Host ports, volumes and devices
// of claims are not kept. Safe for concurrent use; the zero value is empty, and nil is too.
type Reserved struct {
	mu      sync.RWMutex
	version uint64 // incremented with every change
	byPod   map[types.UID]*reservation
	byNode  map[string][]*reservation
	gangs   map[types.NamespacedName]int // number of rooms
}

type reservation struct {
	Reservation
	room room
}

// room is an amount of resources: a number of pods, and amounts by resource in the units of the function amount.
type room struct {
	pods    int64
	amounts map[corev1.ResourceName]int64
}

// Keep adds the room of a pod that has none yet.
func (r *Reserved) Keep(x Reservation) {
	kept := &reservation{Reservation: x, room: roomOf(x.Pod)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byPod == nil {
		r.byPod, r.byNode, r.gangs = map[types.UID]*reservation{}, map[string][]*reservation{}, map[types.NamespacedName]int{}
	}
	r.version++
	r.byPod[x.Pod.UID] = kept
	r.byNode[x.Node] = append(r.byNode[x.Node], kept)
	r.gangs[x.Gang]++
}

// End removes the room of the pod that had it.
func (r *Reserved) End(pod types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.byPod[pod]
	if x == nil {
		return
	}
	r.version++
	delete(r.byPod, pod)
	onNode := r.byNode[x.Node]
	i := slices.Index(onNode, x)
	if r.byNode[x.Node] = slices.Delete(onNode, i, i+1); len(onNode) == 1 {
		delete(r.byNode, x.Node)
	}
	if r.gangs[x.Gang]--; r.gangs[x.Gang] == 0 {
		delete(r.gangs, x.Gang)
	}
}

// Len returns the number of rooms.
func (r *Reserved) Len() int {
	if r == nil {
		return 0
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byPod)
}

// roomOf returns the resources that a pod uses on a node.
func roomOf(pod *corev1.Pod) room {
	out := room{pods: 1, amounts: map[corev1.ResourceName]int64{}}
	info, err := framework.NewPodInfo(pod)
	if err != nil { // its affinity cannot be parsed; it was bound nevertheless
		info = &framework.PodInfo{Pod: pod}
	}
	requests := info.CalculateResource().Resource
	for _, name := range resourcesOf(requests) {
		out.amounts[name] = amount(requests, name)
	}
	return out
}

// add adds k times the other room; a negative k subtracts it.
func (r *room) add(o room, k int64) {
	r.pods += k * o.pods
	for name, n := range o.amounts {
		if r.amounts == nil {
			r.amounts = map[corev1.ResourceName]int64{}
		}
		r.amounts[name] += k * n
	}
}

// addRest adds the part of room o that remains after taken is subtracted from it.
func (r *room) addRest(o, taken room) {
	r.pods += max(0, o.pods-taken.pods)
	for name, n := range o.amounts {
		if rest := n - taken.amounts[name]; rest > 0 {
			if r.amounts == nil {
				r.amounts = map[corev1.ResourceName]int64{}
			}
			r.amounts[name] += rest
		}
	}
}

func (r *room) isEmpty() bool { return r.pods == 0 && len(r.amounts) == 0 }

// on returns the room that is kept from the asker on the node. It returns false if there is none.
func (r *Reserved) on(node fwk.NodeInfo, a Asker) (room, bool) {
	if r == nil {
		return room{}, false
	}
	var sum room
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, x := range r.byNode[node.Node().Name] {
		if x.against(a) && !hasPod(node, x.Pod.UID) {
			sum.add(x.room, 1)
		}
	}
	return sum, !sum.isEmpty()
}

func hasPod(node fwk.NodeInfo, uid types.UID) bool {
	return slices.ContainsFunc(node.GetPods(), func(p fwk.PodInfo) bool { return p.GetPod().UID == uid })
}

// RoomKept is the reason of a node that has room for a pod only in room that is kept for others.
const RoomKept = "node(s) keep room for pods that are being replaced"

// Request contains the resources that a pod without a gang uses on a node.
type Request struct{ room room }

// RequestOf returns the resources that the pod uses on a node.
func RequestOf(pod *corev1.Pod) Request { return Request{roomOf(pod)} }

// Spares reports whether the node has room for the request without using room that is kept from the asker. It also
// returns true if the node has no room at all: this is left to NodeResourcesFit, which knows which resources count.
func (r *Reserved) Spares(node fwk.NodeInfo, q Request, a Asker) bool {
	kept, any := r.on(node, a)
	if !any {
		return true
	}
	crosses := func(free, wanted, kept int64) bool {
		return kept > 0 && wanted > 0 && free >= wanted && free-kept < wanted
	}
	allocatable, requested := node.GetAllocatable(), node.GetRequested()
	if crosses(int64(allocatable.GetAllowedPodNumber()-len(node.GetPods())), q.room.pods, kept.pods) {
		return false
	}
	for name, wanted := range q.room.amounts {
		if crosses(amount(allocatable, name)-amount(requested, name), wanted, kept.amounts[name]) {
			return false
		}
	}
	return true
}

// reservedOn is the room that is kept on one node, seen from the plan of one gang.
type reservedOn struct {
	foreign room            // kept for other gangs
	own     map[string]room // by leaf of the gang
	planned map[string]room // by leaf: resources of the pods planned on the node so far
}

// reserve reads the kept room. Nodes on which no room is kept from the gang have no entry.
func (w *Snapshot) reserve(reserved *Reserved, a Asker, leaves []string) {
	if reserved == nil {
		return
	}
	reserved.mu.RLock()
	defer reserved.mu.RUnlock()
	for name, list := range reserved.byNode {
		i, ok := w.nodes.position[name]
		if !ok {
			continue
		}
		on := &reservedOn{own: map[string]room{}, planned: map[string]room{}}
		for _, x := range list {
			switch {
			case hasPod(w.nodes.nodes[i], x.Pod.UID):
			case x.Gang == a.Gang:
				sum := on.own[x.Leaf]
				sum.add(x.room, 1)
				on.own[x.Leaf] = sum
			case x.Priority >= a.Priority:
				on.foreign.add(x.room, 1)
			}
		}
		if on.foreign.isEmpty() && len(on.own) == 0 {
			continue
		}
		if w.reserved == nil {
			w.reserved = map[int]*reservedOn{}
		}
		w.reserved[i] = on
	}
	for i, c := range w.classes {
		if i < len(leaves) {
			c.leaf = leaves[i]
		}
		if len(w.reserved) > 0 {
			c.takes = roomOf(c.info.Pod)
		}
	}
}

// against returns the room that is kept from pods of the leaf. Pods planned for another leaf use the room kept for
// that leaf, so they never make room for this one.
func (on *reservedOn) against(leaf string) room {
	if len(on.own) == 0 {
		return on.foreign
	}
	var sum room
	sum.add(on.foreign, 1)
	for other, kept := range on.own {
		if other != leaf {
			sum.addRest(kept, on.planned[other])
		}
	}
	return sum
}

// keeps reports whether the node has room for another pod of the class only in room that is kept for others.
func (w *Snapshot) keeps(c *class, i int) bool {
	on := w.reserved[i]
	if on == nil {
		return false
	}
	node, kept := w.nodes.node(i), on.against(c.leaf)
	return c.known.demand.slots(node) > 0 && c.known.demand.slotsBeside(node, kept) == 0
}

// noteReserved records a pod of the class that was added to (1) or removed from (-1) a node of the plan.
func (w *Snapshot) noteReserved(c *class, i, delta int) {
	if on := w.reserved[i]; on != nil && len(on.own) > 0 {
		sum := on.planned[c.leaf]
		sum.add(c.takes, int64(delta))
		on.planned[c.leaf] = sum
	}
}

// slotsBeside returns how many such pods the node has room for without using kept room.
func (d *demand) slotsBeside(node fwk.NodeInfo, kept room) int {
	n := int64(d.slots(node))
	allocatable, requested := node.GetAllocatable(), node.GetRequested()
	if d.pods {
		n = min(n, int64(allocatable.GetAllowedPodNumber()-len(node.GetPods()))-kept.pods)
	}
	for _, r := range d.requests {
		if k := kept.amounts[r.name]; k > 0 {
			n = min(n, (amount(allocatable, r.name)-amount(requested, r.name)-k)/r.amount)
		}
	}
	return int(max(0, n))
}
