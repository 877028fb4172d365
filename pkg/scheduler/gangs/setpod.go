// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/marks"
)

// SetPod processes a pod that an informer added or updated. Pods without a PodGroup are ignored.
func (r *Registry) SetPod(pod *corev1.Pod, now time.Time) Effects {
	class := r.classOf(pod)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	return r.endCall(r.setPod(pod, class, now))
}

// classOf returns the equivalence class of a pod that may wait, "" for other pods. It is expensive to compute, so this
// is done without holding the lock, and not repeated for a pod of which only the status changed.
func (r *Registry) classOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" || pod.Status.Phase == corev1.PodSucceeded {
		return ""
	}
	r.mu.Lock()
	m := r.members[pod.UID]
	var old *corev1.Pod
	class := ""
	if m != nil {
		old, class = m.pod, m.class
	}
	r.mu.Unlock()
	if class == "" && keyOf(pod).Name == "" {
		return ""
	}
	if class != "" && (old == pod || old.Generation == pod.Generation && pod.Generation > 0 && maps.Equal(old.Labels, pod.Labels)) {
		return class
	}
	return podgroup.ClassKey(pod)
}

// setPod processes a pod. The order of the steps matters.
func (r *Registry) setPod(pod *corev1.Pod, class string, now time.Time) Effects {
	m, key := r.members[pod.UID], keyOf(pod)
	r.recordVictim(pod, key)
	gaveUp := r.reviewPreemptor(pod)
	if m == nil && key.Name == "" {
		return gaveUp
	}
	if m != nil && m.state == count.Succeeded && pod.Status.Phase != corev1.PodSucceeded {
		return Effects{} // the other informer lags behind
	}
	// 1. The annotation changed before the pod was bound: the pod belongs to another gang from now on. A change after
	//    the
	// binding is ignored (docs/decisions, G12).
	e := gaveUp
	if m != nil && m.gang.key != key && m.state == count.Pending {
		e.add(r.removeMember(m, now))
		m = nil
		if key.Name == "" {
			r.leftGang[pod.UID] = pendingPod{pod: pod, since: now}
			e.Activate = append(e.Activate, pod)
			return e
		}
	}
	// 2. What the member was is read before it changes.
	known := m != nil
	if !known {
		m = r.addMember(pod, key, now)
	}
	old, stood, waited, forbade := m.pod, m.countsInAdmitted(), m.state == count.Pending, m.forbidsPreemption()
	// 3. Its state follows from the pod and its mark. Its part in a plan ends with the new state.
	m.pod = pod
	r.recordName(m, key)
	r.readMark(m)
	r.forgetVanished(pod.UID)
	delete(r.leftGang, pod.UID)
	r.setState(m, old, class)
	if v := r.plainVictims[pod.UID]; !m.isBound() {
		delete(m.gang.departing, m)
	} else if v.IsDeparting() { // it was no member when its deletion was requested
		r.recordDeparting(m, v.By())
	}
	// 4. Reservations belong to its leaf. The room of a deleted pod is reserved before its plan is aborted, and before
	//    the numbers tell
	// that the pod is gone.
	m.setLeaf()
	if forbade && !m.forbidsPreemption() {
		m.gang.recordOwnChange()
	}
	switch {
	case pod.DeletionTimestamp != nil:
		m.recordTermination(old, known, stood, now)
		m.recordEviction(now)
		r.reserveRoom(m)
	case waited && m.state == count.Bound && r.synced:
		r.takeReserved(m)
	}
	if m.state == count.Bound {
		r.freeReserved(r.reserved.EndTakenBy(pod.UID))
	}
	if p := r.planOf(pod.UID); p != nil && pod.DeletionTimestamp != nil {
		r.abortPlan(p, AbortChanged, "pod "+pod.Name+" was deleted")
	}
	// 5. The member has changed completely: the numbers, and what follows from them.
	r.recountBound(m)
	if !known && m.isBound() { // it was a pod without a gang, if it ran before
		r.recordVictimsChanged(m.gang, count.PodPriority(pod))
	}
	m.gang.dropUnitOfStranger(m)
	e.add(r.evaluate(m.gang, now))
	return e
}

// recordName records whether a member names its gang. A Holder tells only what it names.
func (r *Registry) recordName(m *member, key Key) {
	switch named, known := r.renamed[m]; {
	case m.gang.key == key:
		delete(r.renamed, m)
	case !known || named != key:
		r.renamed[m] = key
		r.recordMayHelp(everyPriority)
	}
}

// addMember adds a waiting member.
func (r *Registry) addMember(pod *corev1.Pod, key Key, now time.Time) *member {
	g := r.findOrAddGang(key)
	g.arrivedAt = now
	m := &member{gang: g, pod: pod, since: now, entry: count.Entry{UID: pod.UID}, tag: marks.PodTag(pod.UID), gpus: podgroup.GPUs(pod)}
	m.run, m.beginsRun = membership.Run(pod)
	r.members[pod.UID], g.members[pod.UID] = m, m
	r.addToRun(m)
	return m
}

// setState determines the state of a member whose pod has changed. A waiting member gets the class.
func (r *Registry) setState(m *member, old *corev1.Pod, class string) {
	pod := m.pod
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		r.endedByItself(m)
		m.state, m.node = count.Succeeded, pod.Spec.NodeName
		r.ranks.Delete(pod.UID)
		r.endPlanOf(m)
	case pod.Spec.NodeName != "":
		r.endedByItself(m)
		m.state, m.node = count.Bound, pod.Spec.NodeName
		m.leaving = m.leaving || m.isReleased()
		r.ranks.Delete(pod.UID)
		r.endPlanOf(m)
	case class != m.class || usabilityChanged(old, pod):
		if rows := m.gang.rows; len(rows) > 0 && rows[0].class == class {
			class = rows[0].class // the same string: like pods are then compared fast
		}
		m.class = class
		m.gang.recordOwnChange()
	}
}

// RemovePod processes the removal of a pod. The scheduler's own informer also removes a pod that has finished; the
// informer of finished pods reports the result by SetPod (Succeeded) or RemoveFailedPod. Until one of them is called
// the pod counts as before, so that Admitted stays stable, and nothing is planned for the gang.
func (r *Registry) RemovePod(uid types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	m := r.members[uid]
	delete(r.leftGang, uid)
	delete(r.plainVictims, uid)
	r.reserved.RemoveOccupant(uid)
	if m == nil {
		return r.endCall(r.forgetPreemptor(uid, (*evictions.Eviction).Failure))
	}
	if m.state == count.Succeeded {
		return Effects{}
	}
	if m.state == count.Bound || m.state == count.Posted {
		r.recordRoomGrowth()
		r.recordNews(m.gang) // the event of its room may have been evaluated before
		if m.pod.DeletionTimestamp == nil {
			if _, known := r.vanished[uid]; !known {
				r.vanishes(m, now)
				r.vanished[uid] = now
				r.vanishedInOrder = append(r.vanishedInOrder, vanishedPod{uid, now})
				m.gang.vanished++
			}
			return r.endCall(r.evaluate(m.gang, now))
		}
	}
	return r.endCall(r.removeMember(m, now))
}

// RemoveFailedPod processes a pod that Failed: it no longer counts, even if its object still exists.
func (r *Registry) RemoveFailedPod(uid types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	m := r.members[uid]
	if m == nil {
		return Effects{}
	}
	r.recordRoomGrowth()
	r.endedByItself(m)
	return r.endCall(r.removeMember(m, now))
}

// RemoveSucceededPod processes the deletion of a succeeded pod.
func (r *Registry) RemoveSucceededPod(uid types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	m := r.members[uid]
	if m == nil {
		return Effects{}
	}
	return r.endCall(r.removeMember(m, now))
}

// recountBound updates the numbers after a change with which a member may count as bound, or not any more.
func (r *Registry) recountBound(m *member) {
	g := m.gang
	changes, strays, mixed, protected := g.numbers.BoundChanges, g.numbers.Flagged(count.IsStray), g.numbers.IsMixed(), g.protectedUpTo()
	m.recount()
	switch {
	case g.numbers.BoundChanges != changes && protected == everyPriority:
		r.recordMayHelp(everyPriority) // other pods may be above the minimum, or be no members, or end without a slow one
	case g.numbers.Flagged(count.IsStray) > strays, mixed && g.numbers.BoundChanges != changes: // it may be preempted by itself, or the gang without it
		r.recordVictimsChanged(g, protected)
	}
}

// recordVictimsChanged records that other pods of a gang may be preempted, or by gangs of another priority. protected
// is what protectedUpTo returned before: gangs of a higher priority were refused as if all of its pods had ended, and
// are not helped.
func (r *Registry) recordVictimsChanged(g *gangState, protected int32) {
	if g.numbers.Flagged(count.IsStanding) > 0 {
		r.recordMayHelp(protected)
		r.recordVictimPriority(g.classPriority())
	}
}

// protectedUpTo returns the highest priority of a gang that may not be able to preempt all bound pods of this one.
// Without a PodGroup each pod has its own priority.
func (g *gangState) protectedUpTo() int32 {
	if g.group != nil && (g.tree == nil || g.isProtected() || g.numbers.Flagged(count.IsSlow) > 0) {
		return everyPriority
	}
	return g.numbers.HighestPriority()
}

// removeMember removes a member.
func (r *Registry) removeMember(m *member, now time.Time) Effects {
	g := m.gang
	if p := r.planOf(m.pod.UID); p != nil {
		r.abortPlan(p, AbortChanged, "pod "+m.pod.Name+" is gone")
		if m.state != count.Assumed {
			p.endMember(m.pod.UID, false)
			r.finishPlan(p)
		}
		if p.gang.plan == p {
			r.left[m.pod.UID] = p
		}
	}
	g.rememberLost(m)
	m.recordEviction(now)
	g.recordOwnChange()
	r.forgetVanished(m.pod.UID)
	r.reserved.GiveBack(m.pod.UID)
	changes, mixed, protected := g.numbers.BoundChanges, g.numbers.IsMixed(), g.protectedUpTo()
	g.removeFromNumbers(m)
	if mixed && g.numbers.BoundChanges != changes { // the minimum that runs may have another priority
		r.recordVictimsChanged(g, protected)
	}
	r.recordDeparted(m.pod, protected)
	m.forgetMark()
	delete(g.members, m.pod.UID)
	delete(r.renamed, m)
	delete(g.departing, m)
	delete(r.members, m.pod.UID)
	r.removeFromRun(m)
	r.ranks.Delete(m.pod.UID)
	if g.leader == m.pod.UID {
		r.enterPhase(g, Complete)
	}
	return r.evaluate(g, now)
}

// forgetVanished records that the fate of a vanished pod is known.
func (r *Registry) forgetVanished(uid types.UID) {
	if _, ok := r.vanished[uid]; ok {
		delete(r.vanished, uid)
		if m := r.members[uid]; m != nil {
			m.gang.vanished--
		}
	}
}

// endPlanOf ends a member's part in its plan, because the member needs no binding any longer. A plan whose barrier has
// not opened is aborted: another scheduler bound the member, or an earlier binding that seemed to fail was accepted.
func (r *Registry) endPlanOf(m *member) {
	if p := r.planOf(m.pod.UID); p != nil {
		r.abortPlan(p, AbortChanged, "pod "+m.pod.Name+" is already bound")
		p.endMember(m.pod.UID, true)
		r.finishPlan(p)
	}
}

// setLeaf determines the leaf of a member, or the reason why it has none. A pod that runs keeps its place whatever it
// names.
func (m *member) setLeaf() {
	m.leaf, m.misplaced = "", ""
	if m.isFormer() {
		m.misplaced = podgroup.FormerRun
		return
	}
	if m.pod.Spec.NodeName == "" {
		m.misplaced = podgroup.DescribeRefusal(m.pod)
	}
	if m.misplaced == "" && m.gang.tree != nil { // without a tree all pods count in one leaf
		m.leaf, m.misplaced = leafOf(m.gang.tree, m.pod)
	}
}

// leafOf returns the leaf to which a pod counts, or the reason why it does not count.
func leafOf(tree *gang.Tree, pod *corev1.Pod) (leaf, misplaced string) {
	name := membership.Leaf(pod)
	if tree.Root().IsLeaf() {
		return "", "" // the label has no meaning without sub-groups
	}
	g := tree.Group(name)
	switch {
	case name == "":
		return "", "has no " + membership.LeafPlace(pod)
	case g == nil:
		return "", podgroup.NoSuchLeaf(name, membership.LeafPlace(pod))
	case !g.IsLeaf():
		return "", "carries sub-group " + strconv.Quote(name) + ", which has sub-groups of its own"
	default:
		return name, ""
	}
}

// keyOf returns the gang that a pod names; its Name is "" if it names none.
func keyOf(pod *corev1.Pod) Key {
	return Key{Namespace: pod.Namespace, Name: membership.Group(pod)}
}

// usabilityChanged reports whether a property that determines if a waiting pod is usable has changed: scheduling gates
// removed, deletion started, another leaf, marks that can be obeyed now; or the labels, which selectors may match.
func usabilityChanged(old, pod *corev1.Pod) bool {
	return old == nil || len(old.Spec.SchedulingGates) != len(pod.Spec.SchedulingGates) ||
		(old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		!maps.Equal(old.Labels, pod.Labels) || membership.Leaf(old) != membership.Leaf(pod) ||
		podgroup.DescribeRefusal(old) != podgroup.DescribeRefusal(pod)
}
