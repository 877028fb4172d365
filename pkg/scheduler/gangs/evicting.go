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

// PreparingUntil returns when a preemption is given up whose victims are being marked. It returns false if it has ended.
func (r *Registry) PreparingUntil(p *Preemption) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.until, p.gang.preemption == p
}

// evictionsEnd returns until when all victims should have ended if their deletion begins now.
func (p *Preemption) evictionsEnd(now time.Time, timeout time.Duration) time.Time {
	return evictions.EndOf(len(p.Victims), p.graceTime(now), timeout, now)
}

// graceTime returns the time after which all victims, and the pods that are awaited, should have ended if they were deleted now.
func (p *Preemption) graceTime(now time.Time) time.Duration {
	longest := time.Duration(0)
	for _, v := range p.Victims {
		longest = max(longest, evictions.GraceOf(v.Pod, now))
	}
	for _, pod := range p.awaited {
		longest = max(longest, evictions.GraceOf(pod, now))
	}
	return longest
}

// RecordMarked records that all victims are marked, or why they cannot be: then nothing is evicted.
func (r *Registry) RecordMarked(p *Preemption, err error, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	if p.gang.preemption != p || err != nil || !r.isStillAllowed(p) {
		// No status says Evicting, so that a part of the marks means nothing to another process.
		e := Effects{Unmark: []*Preemption{p}}
		if p.gang.preemption == p { // otherwise it ended while they were being marked
			p.gang.recordOwnChange() // it is tried again
			e.add(r.endPreemption(p, PreemptionCancelled))
		}
		r.enterStage(p, evictions.Ended)
		e.add(r.releaseVictims(p))
		return r.endCall(e)
	}
	r.enterStage(p, evictions.Marked)
	p.about.Evicting, p.about.Until = true, p.evictionsEnd(now, r.opts.PreemptionTimeout)
	p.until = now.Add(evictions.PreparationTime(len(p.Victims)))
	r.reindex(p.gang)
	return r.endCall(Effects{Dirty: []Key{p.Gang}})
}

// AwaitsRecord reports whether a preemption by the gang goes on when the PodGroup's status says so.
func (r *Registry) AwaitsRecord(key Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[key]
	return g != nil && g.preemption != nil && (g.preemption.stage == evictions.Decided || g.preemption.stage == evictions.Marked)
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
	case p.stage == evictions.Decided:
		r.enterStage(p, evictions.Recorded)
		return Effects{Mark: []*Preemption{p}}
	case p.stage == evictions.Marked && evicting:
		if !r.isStillAllowed(p) {
			g.recordOwnChange()
			return r.endPreemption(p, PreemptionCancelled)
		}
		r.enterStage(p, evictions.Announced)
		if g.phase.isRefused() {
			return r.retryRefused(g)
		}
	}
	return Effects{}
}

// enterStage is the only function that changes the stage of a preemption.
func (r *Registry) enterStage(p *Preemption, s evictions.Stage) {
	if r.enteredStage != nil {
		r.enteredStage(p.stage, s)
	}
	p.stage = s
}

// beginEvictions requests the deletion of the victims, if they may end still.
func (r *Registry) beginEvictions(p *Preemption) Effects {
	if !r.isStillAllowed(p) {
		p.gang.recordOwnChange()
		p.Victims, p.Spared = slices.Concat(p.Victims, p.Spared), nil
		return r.endPreemption(p, PreemptionCancelled)
	}
	r.spareSucceeded(p)
	r.enterStage(p, evictions.Checked)
	p.until = p.evictionsEnd(r.now, r.opts.PreemptionTimeout)
	p.about.Until = p.until
	e := Effects{Evict: []*Preemption{p}, Dirty: []Key{p.Gang}}
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
	r.reindex(p.gang)
	return e
}

// spareSucceeded drops victims that have succeeded since they were chosen: their room is free, and their objects tell that they did.
// While it is called nobody else reads the victims: they are marked, and their deletion has not begun.
func (r *Registry) spareSucceeded(p *Preemption) {
	p.Victims = slices.DeleteFunc(slices.Clone(p.Victims), func(v Victim) bool {
		m := r.members[v.Pod.UID]
		return m != nil && m.state == count.Succeeded
	})
}

// lossOf returns what the gang of a victim says of the preemption.
func (r *Registry) lossOf(p *Preemption, v Victim) *podgroup.Preempted {
	return &podgroup.Preempted{At: r.now, By: p.Gang.String(), Priority: p.Priority, Over: v.Priority, Pods: v.Pods, Whole: v.Whole}
}

// isStillAllowed reports whether neither the gang nor those of the victims have changed in a way that forbids the evictions, or makes it
// unknown whether the gang needs them: each of them loses all of its pods, or keeps its minimum, and that of each sub-group that had it.
func (r *Registry) isStillAllowed(p *Preemption) bool {
	if g := p.gang; g.highestEviction() < p.Priority || g.neverPreempts() || !g.isSettled() {
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
		if g.tree == nil || g.group == nil || g.protection() != "" || g.evictionPriority() >= p.Priority {
			return false
		}
		if len(members) >= g.boundMembers() && g.group.Spec.Preemptibility != v2alpha2.SemiPreemptible {
			continue
		}
		if !g.mayKeepWithout(members) {
			return false
		}
	}
	return true
}

// RecordEvicted records that the deletion of all victims was requested, but of those that are left: they cannot be deleted, and
// stay.
func (r *Registry) RecordEvicted(p *Preemption, left []types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	var e Effects
	for _, uid := range left {
		if m := r.members[uid]; m != nil {
			delete(m.gang.departing, m)
			m.gang.ladder = nil
			e.add(r.evaluate(m.gang, now))
		}
		delete(r.plainVictims, uid)
	}
	for _, v := range p.Victims { // those that are not gone, and were not given up
		m := r.members[v.Pod.UID]
		if by, departs := m.departure(); departs && by == p {
			m.gang.departing[m] = nil
		}
		if x := r.plainVictims[v.Pod.UID]; x != nil && x.of == p {
			r.plainVictims[v.Pod.UID] = &plainVictim{due: now.Add(p.graceTime(now))}
		}
	}
	e.add(r.releaseVictims(p))
	r.enterStage(p, evictions.Deleted)
	if p.gang.preemption != p {
		r.enterStage(p, evictions.Ended)
	} else {
		p.stuck = now.Add(p.graceTime(now) + overdue)
		if p.lentUntil = evictions.LentUntil(p.graceTime(now), now); !p.lentUntil.IsZero() {
			p.lent, p.taken = r.reserved.EndOfGang(p.Gang, isOfGang), true
			r.freeReserved(p.lent)
		}
		r.reindex(p.gang)
		if p.gang.phase.isRefused() && !r.isAwaited(p) { // the victims ended, and it was refused, before: nothing else makes it try again
			e.add(r.retryRefused(p.gang))
		}
	}
	return r.endCall(e)
}

// RecordedEviction is a plan whose evictions had begun according to the status of the gang's PodGroup.
type RecordedEviction struct {
	Gang Key
	Plan string
}

// RecordedEvictions returns, sorted by gang, the recorded evictions of which this process knows nothing: those of an earlier process.
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

// RestorePreemption records a preemption whose evictions an earlier process had recorded. marked are its victims that still
// exist. Those that are not terminating are deleted now. If no deletion was requested, which a witness would show, the preemption is
// given up, because the gang may not need it any more. The room of all of them is reserved: what else the gang needs is not known
// any more. ok is false if there is no such gang any more: nothing was recorded.
func (r *Registry) RestorePreemption(key Key, plan string, marked []MarkedPod, now time.Time) (e Effects, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[key]
	if g == nil || g.group == nil || g.preemption != nil {
		return Effects{}, false
	}
	p := &Preemption{ID: plan, Gang: key, Group: g.group, Priority: g.highestEviction(), gang: g, stage: evictions.Checked}
	begun := false
	pods := make([]*corev1.Pod, len(marked))
	for i, x := range marked {
		pods[i] = x.Pod
		begun = begun || x.Witness || x.Pod.DeletionTimestamp != nil
	}
	if p.Victims = r.victimsOf(pods); !begun && len(marked) > 0 {
		return r.endCall(Effects{Unmark: []*Preemption{p}, Dirty: []Key{key}}), true
	}
	p.about = aboutPreemption(p, Preempting{}) // of all that end, also of those that are terminating
	e.Dirty = []Key{key}
	for _, v := range p.Victims { // the process may have ended before it told their gangs
		loser := r.gangs[v.Gang]
		if loser != nil && loser.group != nil && loser.preempted == nil && !podgroup.SaysPreemptedBy(&loser.group.Status, key.String()) {
			loser.preempted = r.lossOf(p, v)
			e.Dirty = append(e.Dirty, v.Gang)
		}
	}
	p.Victims = r.victimsOfEarlierProcess(p, p.Victims)
	p.until = p.evictionsEnd(now, r.opts.PreemptionTimeout)
	p.about.Evicting, p.about.Until = true, p.until
	r.reserveRoomOf(p, pods)
	g.preemption = p
	r.reindex(g)
	e.Evict = []*Preemption{p}
	return r.endCall(e), true
}

// AbandonedEvictions returns what is left to do for plans whose evictions no PodGroup records: of gangs that have a witness of the
// plan, other victims may have been deleted for a PodGroup that is gone, so they lose the rest. Deletions that were cut off are completed.
// All other marks are of a plan that was given up, and are taken back. No gang preempts before this was called. marked are the pods with the mark of a plan, without
// those of plans that go on.
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
		p := &Preemption{ID: plan, gang: &gangState{}, stage: evictions.Checked}
		p.Victims = r.victimsOfEarlierProcess(p, r.victimsOf(pods))
		p.until = now.Add(p.graceTime(now) + r.opts.PreemptionTimeout)
		if len(p.Victims) > 0 {
			e.Evict = append(e.Evict, p)
		}
		if len(spared) > 0 {
			e.Unmark = append(e.Unmark, &Preemption{ID: plan, Victims: r.victimsOf(spared)})
		}
	}
	return r.endCall(e)
}

// victimsOf returns the pods as victims, with their gangs and what these lose.
func (r *Registry) victimsOf(pods []*corev1.Pod) []Victim {
	victims := make([]Victim, len(pods))
	lost, keeps := map[Key]int{}, map[Key]int{} // pods of each gang
	for i, pod := range pods {
		victims[i] = Victim{Pod: pod, Priority: count.PodPriority(pod), Pods: 1, Whole: true}
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
func (r *Registry) victimsOfEarlierProcess(p *Preemption, all []Victim) []Victim {
	var victims []Victim
	for _, v := range all {
		pod, m := v.Pod, r.members[v.Pod.UID]
		switch {
		case m == nil && count.NeedsDeletion(pod):
			r.plainVictims[pod.UID] = &plainVictim{of: p}
		case m == nil:
			r.awaitPlain(pod)
		case pod.DeletionTimestamp == nil:
			if m.gang.plan != nil { // it was made before this was known
				r.abortPlan(m.gang.plan, AbortChanged, "pods of the gang are being preempted")
			}
			m.gang.victimOf = p // it is not planned before RecordEvicted
			r.recordDeparting(m, p)
		}
		if !count.NeedsDeletion(pod) {
			p.awaited = append(p.awaited, pod)
			continue
		}
		victims = append(victims, v)
	}
	return victims
}

// takeBackRoom keeps the room again that others could use. What they use by now is missing when the gang is tried: then it decides anew.
func (r *Registry) takeBackRoom(p *Preemption) {
	for _, x := range p.lent {
		x := reservations.Reservation{Owner: x.Owner, Node: x.Node, Priority: x.Priority, Amount: x.Amount, Occupied: x.Occupied}
		r.reserved.Reserve(x, p.until, r.now)
	}
	p.lent, p.lentUntil = nil, time.Time{}
	r.haveReserved.Store(!r.reserved.IsEmpty())
}

// overdue is how long a pod may be terminating beyond its grace period before the preemptor says that it waits for it.
const overdue = 5 * time.Second

// nameStuck lets the preemptor name a pod that should have ended.
func (r *Registry) nameStuck(p *Preemption) {
	p.stuck = time.Time{}
	waitsFor := func(pod *corev1.Pod) {
		if p.about.Stuck == "" && r.isEnding(pod.UID) {
			p.about.Stuck = pod.Name
			if pod.Namespace != p.Gang.Namespace {
				p.about.Stuck = pod.Namespace + "/" + pod.Name
			}
		}
	}
	for _, v := range p.Victims {
		waitsFor(v.Pod)
	}
	for _, pod := range p.awaited {
		waitsFor(pod)
	}
}

// releaseVictims lets the gangs that lose pods be planned again.
func (r *Registry) releaseVictims(p *Preemption) Effects {
	var e Effects
	for _, v := range p.Victims {
		if victim := r.plainVictims[v.Pod.UID]; victim != nil && victim.of == p {
			delete(r.plainVictims, v.Pod.UID)
		}
		if g := r.gangs[v.Gang]; g != nil && g.victimOf == p {
			g.victimOf = nil
			e.add(r.evaluate(g, r.now))
		}
	}
	return e
}

// preemptionOf returns the preemption by which a pod, or others of its gang, are about to end; nil: there is none.
func (r *Registry) preemptionOf(uid types.UID) *Preemption {
	if m := r.members[uid]; !m.isPlain() {
		return m.gang.victimOf
	}
	if v := r.plainVictims[uid]; v != nil {
		return v.of
	}
	return nil
}

// endsForOther reports whether a pod, or others of its gang, are about to end by another preemption than p, or their end by it was
// not observed yet. nil: by any.
func (r *Registry) endsForOther(uid types.UID, p *Preemption) bool {
	other := r.preemptionOf(uid)
	return r.members[uid].isDeparting() || r.plainVictims[uid].isDeparting() || other != nil && other != p
}

// isEnding reports whether a victim, or another pod that is awaited, has not ended yet, as far as is known.
func (r *Registry) isEnding(uid types.UID) bool {
	m := r.members[uid]
	return r.plainVictims[uid] != nil || m != nil && m.state != count.Succeeded
}

// plainVictim is a pod that is being preempted as one without a gang, by a gang, or together with pods of gangs.
type plainVictim struct {
	of  *Preemption // by which it is to end; nil: its deletion was accepted
	due time.Time   // when it should have ended; of is nil
}

// isDeparting reports whether the pod ends, whatever happens.
func (v *plainVictim) isDeparting() bool {
	return v != nil && (v.of == nil || (v.of.stage == evictions.Checked || v.of.stage == evictions.Deleted))
}

// isExpected reports whether the deletion of the pod was accepted, and its room is expected in time.
func (r *Registry) isExpected(v *plainVictim) bool {
	return v != nil && v.of == nil && r.now.Before(v.due.Add(r.opts.PreemptionTimeout))
}

// awaitPlain records that a pod is terminating.
func (r *Registry) awaitPlain(pod *corev1.Pod) {
	due := r.now
	if pod.DeletionTimestamp != nil {
		due = pod.DeletionTimestamp.Time
	}
	r.plainVictims[pod.UID] = &plainVictim{due: due}
}

// plainVictimsKept is how long a victim is remembered after it should have ended, if its end is not observed: it may have ended before.
const plainVictimsKept = 10 * time.Minute

// forgetPlainVictims forgets pods that were to end long ago.
func (r *Registry) forgetPlainVictims() {
	for uid, v := range r.plainVictims {
		if v.of == nil && r.now.Sub(v.due) > plainVictimsKept {
			delete(r.plainVictims, uid)
		}
	}
}

// RecordPlainPodGone records that a pod without a gang is gone.
func (r *Registry) RecordPlainPodGone(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordRoomGrowth()
	delete(r.plainVictims, uid)
}
