// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// PreparingUntil returns when a preemption is given up whose victims are being marked. It returns false if it has
// ended.
func (r *Registry) PreparingUntil(p *evictions.Eviction) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.Until(), r.isAwaited(p)
}

// isAwaited reports whether the preemptor waits for the room of the preemption still.
func (r *Registry) isAwaited(p *evictions.Eviction) bool {
	if p.Pod != nil {
		x := r.preemptors[p.Pod.UID]
		return x != nil && x.eviction == p
	}
	return r.preemptorOf(p) != nil
}

// preemptorOf returns the gang that waits for the room of the preemption; nil: none does any more, or it is for a pod
// without a gang.
func (r *Registry) preemptorOf(p *evictions.Eviction) *gangState {
	if g := r.gangs[p.Gang]; g != nil && g.preemption == p {
		return g
	}
	return nil
}

// RecordMarked records that all victims are marked, or why they cannot be: then nothing is evicted.
func (r *Registry) RecordMarked(p *evictions.Eviction, err error, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.preemptorOf(p)
	if !r.isAwaited(p) || err != nil || !r.isStillAllowed(p) {
		// No status says Evicting, so that a part of the marks means nothing to another process.
		e := Effects{Unmark: []*evictions.Eviction{p}}
		if g != nil { // otherwise it ended while they were being marked
			g.recordOwnChange() // it is tried again
			e.add(r.endPreemption(g, evictions.Cancelled))
			if err != nil { // the next marks may be refused too
				g.hopeless = hopeless{refused: err.Error(), until: now.Add(min(wastedPause(g.wasted), longestHopeless))}
				g.wasted++
			}
			r.reindex(g)
		} else if r.isAwaited(p) {
			x, pause := r.preemptors[p.Pod.UID], retryInterval
			if err != nil {
				x.paused, pause = err.Error(), firstHopeless
			}
			e.add(r.endForPod(x, evictions.Cancelled, pause))
		}
		r.enterStage(p, evictions.Ended)
		e.add(r.releaseVictims(p))
		return r.endCall(e)
	}
	if p.Pod != nil { // there is no status in which to record it
		return r.endCall(r.beginEvictions(p))
	}
	r.enterStage(p, evictions.Marked)
	r.reindex(g)
	return r.endCall(Effects{Dirty: []Key{p.Gang}})
}

// AwaitsRecord reports whether a preemption by the gang goes on when the PodGroup's status says so.
func (r *Registry) AwaitsRecord(key Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[key]
	return g != nil && g.preemption != nil && g.preemption.AwaitsRecord()
}

// observeRecord advances a preemption whose stage the PodGroup's status contains by now.
func (r *Registry) observeRecord(g *gangState) Effects {
	p := g.preemption
	if p == nil || g.group == nil {
		return Effects{}
	}
	plan, evicting, ok := podgroup.RecordedPreemption(&g.group.Status)
	switch {
	case !ok || plan != p.ID:
		return Effects{}
	case p.Stage() == evictions.Decided:
		r.enterStage(p, evictions.Recorded)
		return Effects{Mark: []*evictions.Eviction{p}}
	case p.Stage() == evictions.Marked && evicting:
		if !r.isStillAllowed(p) {
			g.recordOwnChange()
			return r.endPreemption(g, evictions.Cancelled)
		}
		r.enterStage(p, evictions.Announced)
		if g.phase.isRefused() {
			return r.retryRefused(g)
		}
	}
	return Effects{}
}

// enterStage changes the stage of a preemption.
func (r *Registry) enterStage(p *evictions.Eviction, s evictions.Stage) {
	if r.enteredStage != nil {
		r.enteredStage(p.Stage(), s)
	}
	p.Enter(s, r.now)
}

// beginEvictionsFor requests the deletion of the victims of a gang, if they may end still.
func (r *Registry) beginEvictionsFor(g *gangState) Effects {
	p := g.preemption
	if !r.isStillAllowed(p) {
		g.recordOwnChange()
		p.Victims, p.Spared = slices.Concat(p.Victims, p.Spared), nil
		return r.endPreemption(g, evictions.Cancelled)
	}
	e := r.beginEvictions(p)
	e.Dirty = append(e.Dirty, g.key)
	r.reindex(g)
	return e
}

// beginEvictions requests the deletion of the victims.
func (r *Registry) beginEvictions(p *evictions.Eviction) Effects {
	r.spareGone(p)
	r.enterStage(p, evictions.Checked)
	e := Effects{Evict: []*evictions.Eviction{p}}
	told := map[Key]bool{}
	for _, v := range p.Victims {
		m := r.members[v.Pod.UID]
		if m == nil {
			continue
		}
		r.recordDeparting(m, p)
		if v.Gang == m.gang.key && !told[v.Gang] {
			told[v.Gang] = true
			m.gang.preempted = r.lossOf(p, v)
			e.Dirty = append(e.Dirty, v.Gang)
		}
	}
	return e
}

// spareGone spares victims whose room is free since they were chosen: those that have succeeded, and their objects tell
// that they did, and pods without a gang that have left their nodes, and wait again if they were not bound. While it is
// called nobody else reads the victims: they are marked, and their deletion has not begun.
func (r *Registry) spareGone(p *evictions.Eviction) {
	var spared, left []evictions.Victim
	for _, v := range p.Victims {
		m := r.members[v.Pod.UID]
		if hasLeft := v.Gang == (Key{}) && r.plainVictims[v.Pod.UID].By() != p; hasLeft || m != nil && m.state == count.Succeeded {
			spared = append(spared, v)
		} else {
			left = append(left, v)
		}
	}
	p.Victims, p.Spared = left, slices.Concat(p.Spared, spared)
}

// lossOf returns what the gang of a victim says of the preemption.
func (r *Registry) lossOf(p *evictions.Eviction, v evictions.Victim) *podgroup.Preempted {
	g := r.gangs[v.Gang]
	return &podgroup.Preempted{At: r.now, By: p.Preemptor(), Priority: p.Priority, Over: v.Priority, IsLower: g != nil && v.Priority < g.priority(),
		Pods: v.Pods, Whole: v.Whole}
}

// isStillAllowed reports whether neither the preemptor nor the gangs of the victims have changed in a way that forbids
// the evictions, or makes it unknown whether the preemptor needs them: each gang loses all of its pods, or keeps its
// minimum, and that of each sub-group that had it.
func (r *Registry) isStillAllowed(p *evictions.Eviction) bool {
	if g := r.preemptorOf(p); g != nil && (g.highestEviction() < p.Priority || g.neverPreempts() || !g.isSettled()) {
		return false
	}
	lost := map[*gangState][]*member{}
	for _, v := range p.Victims {
		m := r.members[v.Pod.UID]
		switch {
		case m == nil, !m.isBound(), v.Gang == Key{} && m.isPlain():
			continue // it has no gang, or does not count any more
		case m.gang.key != v.Gang:
			return false // it counts in a gang by now
		}
		lost[m.gang] = append(lost[m.gang], m)
	}
	for g, members := range lost {
		if g.tree == nil || g.group == nil || g.isBinding() || g.group.Spec.Preemptibility == v2alpha2.NonPreemptible {
			return false
		}
		isAbove := g.evictionPriority() >= p.Priority
		isProtected := func(m *member) bool { return count.PodPriority(m.pod) >= p.Priority }
		if !isAbove && len(members) >= g.boundMembers() && g.group.Spec.Preemptibility != v2alpha2.SemiPreemptible {
			continue
		}
		if !g.mayKeepWithout(members) || isAbove && slices.ContainsFunc(members, isProtected) {
			return false
		}
	}
	return true
}

// RecordEvicted records that the deletion of all victims was requested, but of those that are left: they cannot be
// deleted, and stay.
func (r *Registry) RecordEvicted(p *evictions.Eviction, left []types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	var e Effects
	for _, uid := range left {
		if m := r.members[uid]; m != nil {
			delete(m.gang.departing, m)
			e.add(r.evaluate(m.gang, now))
		}
		delete(r.plainVictims, uid)
	}
	for _, v := range p.Victims { // those that are not gone, and were not given up
		m := r.members[v.Pod.UID]
		if by, departs := m.departure(); departs && by == p {
			m.gang.departing[m] = nil
		}
		r.plainVictims.Accepted(v.Pod.UID, p, now)
	}
	e.add(r.releaseVictims(p))
	r.enterStage(p, evictions.Deleted)
	switch g := r.preemptorOf(p); {
	case !r.isAwaited(p):
		r.enterStage(p, evictions.Ended)
	case g != nil:
		if p.IsLending() {
			p.Lent, p.Taken = r.reserved.EndOfGang(p.Gang, isOfGang), true
			r.freeReserved(p.Lent)
		}
		r.reindex(g)
		if g.phase.isRefused() && !p.IsAwaiting(r.isEnding) { // the victims ended, and it was refused, before: nothing else makes it try again
			e.add(r.retryRefused(g))
		}
	}
	return r.endCall(e)
}

// RecordedEviction is a plan whose evictions had begun according to the status of the gang's PodGroup.
type RecordedEviction struct {
	Gang Key
	Plan string
}

// RecordedEvictions returns, sorted by gang, the recorded evictions of which this process knows nothing: those of an
// earlier process.
func (r *Registry) RecordedEvictions() []RecordedEviction {
	r.mu.Lock()
	defer r.mu.Unlock()
	var recorded []RecordedEviction
	for key, g := range r.gangs {
		if g.group == nil || g.preemption != nil {
			continue
		}
		if plan, evicting, ok := podgroup.RecordedPreemption(&g.group.Status); ok && evicting {
			recorded = append(recorded, RecordedEviction{Gang: key, Plan: plan})
		}
	}
	slices.SortFunc(recorded, func(a, b RecordedEviction) int { return compareNames(a.Gang, b.Gang) })
	return recorded
}

// MarkedPod is a pod with the mark of a plan. Witness: the mark says that the deletions have begun.
type MarkedPod struct {
	Pod     *corev1.Pod
	Witness bool
}

// RestorePreemption records a preemption whose evictions an earlier process had recorded. marked are its victims that
// still exist. Those that are not terminating are deleted now. If no deletion was requested, which a witness would
// show, the preemption is given up, because the gang may not need it any more. The room of all of them is reserved:
// what else the gang needs is not known any more. ok is false if there is no such gang any more: nothing was recorded.
func (r *Registry) RestorePreemption(key Key, plan string, marked []MarkedPod, now time.Time) (e Effects, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[key]
	if g == nil || g.group == nil || g.preemption != nil {
		return Effects{}, false
	}
	p := &evictions.Eviction{ID: plan, Gang: key, Group: g.group, Priority: g.highestEviction(), Timeout: r.opts.PreemptionTimeout}
	begun := false
	var pods, unbound []*corev1.Pod
	for _, x := range marked {
		if begun = begun || x.Witness || x.Pod.DeletionTimestamp != nil; x.Pod.Spec.NodeName == "" {
			unbound = append(unbound, x.Pod)
		} else {
			pods = append(pods, x.Pod)
		}
	}
	e.Dirty = []Key{key}
	if len(unbound) > 0 { // they were about to be bound by the earlier process, and wait again
		e.Unmark = append(e.Unmark, &evictions.Eviction{ID: plan, Victims: r.victimsOf(unbound)})
	}
	if p.Victims = r.victimsOf(pods); !begun {
		e.Unmark = append(e.Unmark, p)
		return r.endCall(e), true
	}
	p.Describe("", 0) // of all that end, also of those that are terminating

	for _, v := range p.Victims { // the process may have ended before it told their gangs
		loser := r.gangs[v.Gang]
		if loser != nil && loser.group != nil && loser.preempted == nil && !podgroup.SaysPreemptedBy(&loser.group.Status, key.String()) {
			loser.preempted = r.lossOf(p, v)
			e.Dirty = append(e.Dirty, v.Gang)
		}
	}
	p.Victims = r.victimsOfEarlierProcess(p, p.Victims)
	p.Begin(evictions.Checked, now)
	r.reserveRoomOf(p, pods)
	g.preemption = p
	r.reindex(g)
	e.Evict = []*evictions.Eviction{p}
	return r.endCall(e), true
}

// AbandonedEvictions returns what is left to do for plans whose evictions no PodGroup records: of gangs that have a
// witness of the plan, other victims may have been deleted for a PodGroup that is gone, so they lose the rest.
// Deletions that were cut off are completed. All other marks are of a plan that was given up, and are taken back. No
// gang preempts before this was called. marked are the pods with the mark of a plan, without those of plans that go on.
func (r *Registry) AbandonedEvictions(marked map[string][]MarkedPod, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	r.resumed = true
	var e Effects
	for _, plan := range slices.Sorted(maps.Keys(marked)) {
		of := marked[plan]
		begun := map[*gangState]bool{}
		for _, x := range of {
			if m := r.members[x.Pod.UID]; m != nil && x.Witness {
				begun[m.gang] = true
			}
		}
		var pods, spared []*corev1.Pod
		for _, x := range of {
			isCutOff := x.Pod.DeletionTimestamp != nil && count.NeedsDeletion(x.Pod)
			if m := r.members[x.Pod.UID]; isCutOff || m != nil && begun[m.gang] {
				pods = append(pods, x.Pod)
			} else {
				spared = append(spared, x.Pod)
			}
		}
		p := &evictions.Eviction{ID: plan, Timeout: r.opts.PreemptionTimeout}
		p.Victims = r.victimsOfEarlierProcess(p, r.victimsOf(pods))
		p.Begin(evictions.Checked, now)
		if len(p.Victims) > 0 {
			e.Evict = append(e.Evict, p)
		}
		if len(spared) > 0 {
			e.Unmark = append(e.Unmark, &evictions.Eviction{ID: plan, Victims: r.victimsOf(spared)})
		}
	}
	return r.endCall(e)
}

// victimsOf returns the pods as victims, with their gangs and what these lose.
func (r *Registry) victimsOf(pods []*corev1.Pod) []evictions.Victim {
	victims := make([]evictions.Victim, len(pods))
	lost, keeps := map[Key]int{}, map[Key]int{} // pods of each gang
	for i, pod := range pods {
		victims[i] = evictions.Victim{Pod: pod, Priority: count.PodPriority(pod), Pods: 1, Whole: true}
		m := r.members[pod.UID]
		if m == nil {
			continue
		}
		key := m.gang.key
		victims[i].Gang, victims[i].Priority = key, min(victims[i].Priority, m.gang.evictionPriority())
		if lost[key]++; lost[key] == 1 {
			keeps[key] = m.gang.boundMembers()
		}
		if m.isBound() && m.misplaced == "" && !m.isDeparting() {
			keeps[key]--
		}
	}
	for i := range victims {
		if v := &victims[i]; v.Gang != (Key{}) {
			v.Pods, v.Whole = lost[v.Gang], keeps[v.Gang] == 0
		}
	}
	return victims
}

// victimsOfEarlierProcess records the victims, and returns those that have to be deleted.
func (r *Registry) victimsOfEarlierProcess(p *evictions.Eviction, all []evictions.Victim) []evictions.Victim {
	var victims []evictions.Victim
	for _, v := range all {
		pod, m := v.Pod, r.members[v.Pod.UID]
		switch {
		case m == nil && count.NeedsDeletion(pod):
			r.plainVictims.Choose(pod.UID, p)
		case m == nil:
			r.plainVictims.Await(pod, r.now)
		case pod.DeletionTimestamp == nil:
			if m.gang.plan != nil { // it was made before this was known
				r.abortPlan(m.gang.plan, AbortChanged, "pods of the gang are being preempted")
			}
			m.gang.victimOf = p // it is not planned before RecordEvicted
			r.recordDeparting(m, p)
		}
		if !count.NeedsDeletion(pod) {
			p.Awaited = append(p.Awaited, pod)
			continue
		}
		victims = append(victims, v)
	}
	return victims
}

// takeBackRoom keeps the room again that others could use. What they use by now is missing when the gang is tried: then
// it decides anew.
func (r *Registry) takeBackRoom(p *evictions.Eviction) {
	for _, x := range p.Lent {
		x := reservations.Reservation{Owner: x.Owner, Node: x.Node, Priority: x.Priority, Amount: x.Amount, Occupied: x.Occupied}
		r.reserved.Reserve(x, p.Until(), r.now)
	}
	p.Lent = nil
	r.haveReserved.Store(!r.reserved.IsEmpty())
}

// releaseVictims lets the gangs that lose pods be planned again.
func (r *Registry) releaseVictims(p *evictions.Eviction) Effects {
	var e Effects
	for _, v := range slices.Concat(p.Victims, p.Spared) {
		r.plainVictims.Release(v.Pod.UID, p)
		if g := r.gangs[v.Gang]; g != nil && g.victimOf == p {
			g.victimOf = nil
			e.add(r.evaluate(g, r.now))
		}
	}
	return e
}

// preemptionOf returns the preemption by which a pod, or others of its gang, are about to end; nil: there is none.
func (r *Registry) preemptionOf(uid types.UID) *evictions.Eviction {
	if m := r.members[uid]; !m.isPlain() {
		return m.gang.victimOf
	}
	return r.plainVictims[uid].By()
}

// endsForOther reports whether a pod, or others of its gang, are about to end by another preemption than p, or their
// end by it was not observed yet. nil: by any.
func (r *Registry) endsForOther(uid types.UID, p *evictions.Eviction) bool {
	other := r.preemptionOf(uid)
	return r.members[uid].isDeparting() || r.plainVictims[uid].IsDeparting() || other != nil && other != p
}

// isEnding reports whether a victim, or another pod that is awaited, has not ended yet, as far as is known.
func (r *Registry) isEnding(uid types.UID) bool {
	m := r.members[uid]
	return r.plainVictims[uid] != nil || m != nil && m.state != count.Succeeded
}

// RecordPlainPodGone records that a pod without a gang is gone.
func (r *Registry) RecordPlainPodGone(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordRoomGrowth()
	delete(r.plainVictims, uid)
}
