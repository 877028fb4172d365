// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// While a PodGroup reports that pods are being replaced (v2alpha2.ReplacingAnnotation), the room of a deleted pod is
// reserved for the next pods of its leaf. Users may set that annotation, so its effect is bounded by
// facts that users cannot write:
//
//   - Only a pod that was bound, and counted in a sub-group that was admitted, leaves a reservation: one, of as much as
//     it requested, and on its own node. A pod that never was bound leaves none, however often it is created and
//     deleted.
//   - The room is reserved at no higher priority than the pod's own, which quota and admission have checked.
//   - The time runs from when the pod began to terminate. It is never extended, neither by another annotation nor by a
//     pod that was assumed in its place and released.
//   - The number of reservations is bounded (reservations.Set.Reserve).
//
// After a restart, pods that are still terminating are recognized, and their time runs from the timestamps of their
// objects. Reservations of pods that no longer exist are lost.

// parting is the state of a member that leaves its node.
type parting struct {
	since    time.Time // when it began to terminate, or vanished; zero: neither
	stood    bool      // at that time it counted in an admitted sub-group
	unseen   bool      // stood is not known: the pod was already terminating when it was first observed
	reserved bool      // its room was reserved, and is not reserved again
}

// countsInAdmitted reports whether the member is bound and counts in an admitted sub-group.
func (m *member) countsInAdmitted() bool {
	g := m.gang
	if !m.isBound() || m.misplaced != "" || !g.admitted || g.tree == nil {
		return false
	}
	return g.tree.Root().IsLeaf() || g.admittedGroups.Has(m.leaf)
}

// recordTermination records that a member begins to terminate, if the pod does so with this update and has a node.
// known is false for a pod that is observed for the first time; stood is the result of countsInAdmitted before the
// update.
func (m *member) recordTermination(old *corev1.Pod, known, stood bool, now time.Time) {
	pod := m.pod
	if pod.DeletionTimestamp == nil || pod.Spec.NodeName == "" || !m.parting.since.IsZero() || m.state == count.Succeeded {
		return
	}
	if known {
		if old.DeletionTimestamp == nil {
			m.parting = parting{since: now, stood: stood}
		}
		return
	}
	m.parting = parting{since: terminatingSince(pod, now), unseen: true}
}

// recordEviction records when a pod that was evicted, as condition DisruptionTarget says, began to terminate; if this
// was not observed, that it has ended now.
func (m *member) recordEviction(now time.Time) {
	isTarget := func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	}
	if m.pod.Spec.NodeName == "" || m.state == count.Succeeded || !slices.ContainsFunc(m.pod.Status.Conditions, isTarget) {
		return
	}
	if at := m.parting.since; !at.IsZero() {
		now = at
	}
	m.gang.evictedAt = later(m.gang.evictedAt, now)
}

// terminatingSince returns when the deletion of the pod was requested according to its object, but never a time in
// the future.
func terminatingSince(pod *corev1.Pod, now time.Time) time.Time {
	since := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		since = since.Add(-time.Duration(*grace) * time.Second)
	}
	if since.After(now) {
		return now
	}
	return since
}

// reserveRoom reserves the room of a departing member, if the conditions above are met.
func (r *Registry) reserveRoom(m *member) {
	g, p := m.gang, &m.parting
	if p.since.IsZero() || p.reserved || !g.replacing || r.opts.ReplacementTimeout <= 0 || g.tree == nil || m.misplaced != "" || m.pod.Spec.NodeName == "" {
		return
	}
	if !p.stood && !(p.unseen && g.admitted) {
		return
	}
	x := reservations.Reservation{Owner: m.owner(), Node: m.pod.Spec.NodeName, Priority: min(g.priority(), count.PodPriority(m.pod)), Pod: m.pod}
	if r.opts.Amount != nil {
		x.Amount = r.opts.Amount(m.pod)
	}
	if r.reserved.Reserve(x, p.since.Add(r.opts.ReplacementTimeout), r.now) {
		p.reserved = true
		r.haveReserved.Store(true)
	}
}

// owner returns the owner of the member's reservation.
func (m *member) owner() reservations.Owner {
	return reservations.Owner{Gang: m.gang.key, Leaf: m.leaf}
}

// setReplacing applies the annotation and the tree of the gang's PodGroup to the gang's reservations.
func (r *Registry) setReplacing(g *gangState) {
	was := g.replacing
	g.replacing = g.group != nil && g.group.Annotations[v2alpha2.ReplacingAnnotation] != ""
	switch {
	case !g.replacing:
		r.freeReserved(r.reserved.EndOfGang(g.key, func(x *reservations.Reservation) bool { return !x.Owner.IsGang() }))
	case !was:
		// The annotation may arrive after the deletion to which it refers, because informers are not synchronized
		// with each other.
		var parting []*member
		for _, m := range g.members {
			if !m.parting.since.IsZero() {
				parting = append(parting, m)
			}
		}
		slices.SortFunc(parting, func(a, b *member) int { return strings.Compare(string(a.pod.UID), string(b.pod.UID)) })
		for _, m := range parting {
			r.reserveRoom(m)
		}
	case g.tree != nil:
		r.freeReserved(r.reserved.EndOfGang(g.key, func(x *reservations.Reservation) bool {
			leaf := g.tree.Group(x.Owner.Leaf)
			return x.Owner.Leaf != "" && !x.Owner.IsGang() && (leaf == nil || !leaf.IsLeaf())
		}))
	}
}

// takeReserved lets a member that was assumed, or bound by another scheduler, take a reservation of its leaf or of its
// gang.
func (r *Registry) takeReserved(m *member) {
	if m.misplaced != "" || !r.reserved.HasGang(m.gang.key) {
		return
	}
	var amount reservations.Amount
	if r.opts.Amount != nil && r.reserved.Has(m.owner().Whole()) {
		amount = r.opts.Amount(m.pod)
	}
	r.reserved.Take(m.owner(), m.pod.UID, m.node, amount)
}

// freeReserved records that reservations have ended. The resources of their pods are free for all.
func (r *Registry) freeReserved(ended []*reservations.Reservation) {
	if len(ended) == 0 {
		return
	}
	r.recordMayHelp(everyPriority)
	for _, x := range ended {
		if x.Pod == nil {
			r.vacated = append(r.vacated, &corev1.Pod{Spec: corev1.PodSpec{NodeName: x.Node}})
			continue
		}
		m := r.members[x.Pod.UID]
		if _, gone := r.vanished[x.Pod.UID]; m != nil && m.state == count.Bound && !gone {
			continue // the pod is still on its node
		}
		r.vacated = append(r.vacated, x.Pod)
	}
	if len(r.vacated) > 0 {
		r.recordRoomGrowth()
	}
	r.haveReserved.Store(!r.reserved.IsEmpty())
}

// PodLeaves records that a pod is about to be removed from the scheduler's cache. Its room must be reserved before
// any plan can see it as free. The other handlers process the removal of the pod.
func (r *Registry) PodLeaves(uid types.UID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[uid]
	if m == nil || !m.gang.replacing || m.state != count.Bound && m.state != count.Posted {
		return
	}
	r.beginCall(now)
	r.vanishes(m, now)
}

// vanishes reserves the room of a member that is gone without having been observed terminating.
func (r *Registry) vanishes(m *member, now time.Time) {
	if m.parting.since.IsZero() {
		m.parting = parting{since: now, stood: m.countsInAdmitted()}
		r.reserveRoom(m)
	}
}

// endedByItself ends the reservation of a pod that vanished because it finished, or that reappeared, and was not
// deleted.
func (r *Registry) endedByItself(m *member) {
	if m.pod.DeletionTimestamp == nil && !m.parting.since.IsZero() {
		m.parting = parting{}
		r.freeReserved(r.reserved.EndOf(m.pod.UID))
	}
}

// RemoveNode ends the reservations on a deleted node. Gangs that are promised it choose again.
func (r *Registry) RemoveNode(name string, now time.Time) {
	if !r.haveReserved.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reserved.EndOnNode(name)
	r.recordNodeChanged(name, now)
	r.haveReserved.Store(!r.reserved.IsEmpty())
}

// Reservations returns the reservations that count, nil if there are none. It takes no lock while there are none.
func (r *Registry) Reservations() *reservations.View {
	if !r.haveReserved.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	view := r.reserved.View()
	r.haveReserved.Store(!r.reserved.IsEmpty())
	if view.Len() == 0 {
		return nil
	}
	return view
}
