// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// reservePlanned reserves the room of the pods that are planned after the victims have ended.
func (r *Registry) reservePlanned(w *Work, p *evictions.Eviction, placements []placement.Placement) {
	if r.opts.Amount == nil {
		return
	}
	until := p.KeptUntil(r.now)
	occupied := map[string][]reservations.Occupied{} // by node: what the victims have, and pods that are awaited
	for _, v := range p.Victims {
		node := v.Pod.Spec.NodeName
		occupied[node] = append(occupied[node], reservations.Occupied{Pod: v.Pod.UID, Amount: r.opts.Amount(v.Pod)})
	}
	for _, pod := range p.Awaited {
		if node := pod.Spec.NodeName; !r.isAwaitedBefore(p, node, pod.UID) {
			occupied[node] = append(occupied[node], reservations.Occupied{Pod: pod.UID, Amount: r.opts.Amount(pod)})
		}
	}
	amounts, planned := map[int]reservations.Amount{}, roomByNode{} // amounts: by class
	for _, pl := range placements {
		amount, known := amounts[pl.Pod.Class]
		if !known {
			amount = r.opts.Amount(w.Classes[pl.Pod.Class])
			amounts[pl.Pod.Class] = amount
		}
		planned.add(pl.Node, amount)
	}
	r.reserveForGang(p, planned, occupied, until)
}

// reserveRoomOf reserves the room of pods that end for the gang.
func (r *Registry) reserveRoomOf(p *evictions.Eviction, pods []*corev1.Pod) {
	if r.opts.Amount == nil {
		return
	}
	room, occupied := roomByNode{}, map[string][]reservations.Occupied{}
	for _, pod := range pods {
		node, amount := pod.Spec.NodeName, r.opts.Amount(pod)
		room.add(node, amount)
		occupied[node] = append(occupied[node], reservations.Occupied{Pod: pod.UID, Amount: amount})
	}
	r.reserveForGang(p, room, occupied, p.Until())
}

// roomByNode is an amount of room on each of some nodes.
type roomByNode map[string]*reservations.Amount

func (room roomByNode) add(node string, amount reservations.Amount) {
	if room[node] == nil {
		room[node] = &reservations.Amount{}
	}
	room[node].Add(amount, 1)
}

// reserveForGang reserves room for the gang. occupied is what pods that end have of it, by node. However many pods the
// gang has, there is one reservation on a node.
func (r *Registry) reserveForGang(p *evictions.Eviction, room roomByNode, occupied map[string][]reservations.Occupied, until time.Time) {
	for _, node := range slices.Sorted(maps.Keys(room)) { // an order, if there are too many
		amount := *room[node]
		r.reserved.Reserve(reservations.Reservation{
			Owner: reservations.Owner{Gang: p.Gang, Leaf: reservations.EveryLeaf}, Node: node, Priority: p.Priority,
			Amount: amount, Occupied: occupiedPartsOf(amount, occupied[node]),
		}, until, r.now)
	}
	r.haveReserved.Store(!r.reserved.IsEmpty())
}

// isAwaitedBefore reports whether what the pod has is reserved for another gang of the same or a higher priority.
func (r *Registry) isAwaitedBefore(p *evictions.Eviction, node string, uid types.UID) bool {
	return slices.ContainsFunc(r.reserved.OnNode(node), func(x *reservations.Reservation) bool {
		return x.Owner.Gang != p.Gang && x.Priority >= p.Priority && slices.ContainsFunc(x.Occupied, func(o reservations.Occupied) bool { return o.Pod == uid })
	})
}

// occupiedPartsOf returns the parts of an amount that the pods have, and subtracts these from what is left of the pods.
func occupiedPartsOf(amount reservations.Amount, pods []reservations.Occupied) []reservations.Occupied {
	var parts []reservations.Occupied
	var rest reservations.Amount
	rest.Add(amount, 1)
	for i := range pods {
		part := rest.TakeFrom(&pods[i].Amount)
		if part.IsEmpty() {
			continue
		}
		rest.Add(part, -1)
		parts = append(parts, reservations.Occupied{Pod: pods[i].Pod, Amount: part})
	}
	return parts
}

func isOfGang(x *reservations.Reservation) bool { return x.Owner.IsGang() }

// recordReserved records whose reserved room is reserved for a gang of higher priority now.
func (r *Registry) recordReserved(g *gangState, placements []placement.Placement) {
	for _, x := range placements {
		r.recordRoomTakenOn(x.Node, g, g.preemption.Priority)
	}
}

// recordRoomTaken records whose reserved room a plan uses.
func (r *Registry) recordRoomTaken(plan *Plan) {
	if !r.haveReserved.Load() {
		return
	}
	for i := range plan.members {
		r.recordRoomTakenOn(plan.members[i].node, plan.gang, max(plan.gang.roomPriority, plan.gang.leastPriority()))
	}
}

func (r *Registry) recordRoomTakenOn(node string, by *gangState, priority int32) {
	for _, x := range r.reserved.OnNode(node) {
		if g := r.gangs[x.Owner.Gang]; x.Owner.IsGang() && g != nil && g != by && g.preemption != nil && x.Priority < priority {
			g.preemption.Taken = true
		}
	}
}
