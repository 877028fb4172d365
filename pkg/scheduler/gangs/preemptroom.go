// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// reservePlanned reserves the room of the pods that are planned after the victims have ended.
func (r *Registry) reservePlanned(w *Work, p *Preemption, placements []placement.Placement) {
	if r.opts.Amount == nil {
		return
	}
	until := p.until.Add(p.graceTime(r.now) + r.opts.PreemptionTimeout)
	occupied := map[string][]reservations.Occupied{} // by node: what the victims have, and pods that are awaited
	for _, v := range p.Victims {
		node := v.Pod.Spec.NodeName
		occupied[node] = append(occupied[node], reservations.Occupied{Pod: v.Pod.UID, Amount: r.opts.Amount(v.Pod)})
	}
	for _, pod := range p.awaited {
		if node := pod.Spec.NodeName; !r.isAwaitedBefore(p, node, pod.UID) {
			occupied[node] = append(occupied[node], reservations.Occupied{Pod: pod.UID, Amount: r.opts.Amount(pod)})
		}
	}
	amounts := map[int]reservations.Amount{} // by class
	for _, pl := range placements {
		amount, known := amounts[pl.Pod.Class]
		if !known {
			amount = r.opts.Amount(w.Classes[pl.Pod.Class])
			amounts[pl.Pod.Class] = amount
		}
		pod := *w.Pods[pl.Pod.Index] // its node is that of the reservation
		pod.Spec.NodeName = pl.Node
		r.reserved.Reserve(reservations.Reservation{
			Owner: reservations.Owner{Gang: p.Gang, Leaf: reservations.EveryLeaf}, Node: pl.Node, Priority: p.Priority,
			Amount: amount, Pod: &pod, Occupied: occupiedPartsOf(amount, occupied[pl.Node]),
		}, until, r.now)
	}
	r.haveReserved.Store(!r.reserved.IsEmpty())
}

// reserveRoomOf reserves the room of pods that end for the gang.
func (r *Registry) reserveRoomOf(p *Preemption, pods []*corev1.Pod) {
	if r.opts.Amount == nil {
		return
	}
	for _, pod := range pods {
		r.reserved.Reserve(reservations.Reservation{
			Owner: reservations.Owner{Gang: p.Gang, Leaf: reservations.EveryLeaf}, Node: pod.Spec.NodeName, Priority: p.Priority,
			Amount: r.opts.Amount(pod), Pod: pod,
		}, p.until, r.now)
	}
	r.haveReserved.Store(!r.reserved.IsEmpty())
}

// isAwaitedBefore reports whether what the pod has is reserved for another gang of the same or a higher priority.
func (r *Registry) isAwaitedBefore(p *Preemption, node string, uid types.UID) bool {
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
func (r *Registry) recordReserved(p *Preemption, placements []placement.Placement) {
	for _, x := range placements {
		r.recordRoomTakenOn(x.Node, p.gang, p.Priority)
	}
}

// recordRoomTaken records whose reserved room a plan uses.
func (r *Registry) recordRoomTaken(plan *Plan) {
	if !r.haveReserved.Load() {
		return
	}
	for i := range plan.members {
		r.recordRoomTakenOn(plan.members[i].node, plan.gang, plan.Priority)
	}
}

func (r *Registry) recordRoomTakenOn(node string, by *gangState, priority int32) {
	for _, x := range r.reserved.OnNode(node) {
		if g := r.gangs[x.Owner.Gang]; x.Owner.IsGang() && g != nil && g != by && g.preemption != nil && x.Priority < priority {
			g.preemption.taken = true
		}
	}
}
