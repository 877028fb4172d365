// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RecordRoomGrowth records that a node was added or has grown, or a bound pod was removed. Single surplus pods wait for
// some time after it (Options.SingleSurplusAfter). It wakes no gang: see Changed.
func (r *Registry) RecordRoomGrowth() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordRoomGrowth()
}

// RecordCycleFailed records that the pod's scheduling cycle or binding has failed. If the attempt of a leader ended
// without a plan, a refusal or another gang to wait for (for example because the scheduler failed before the attempt),
// the leader is woken again after a pause. The pause grows while its cycles end before an attempt begins.
func (r *Registry) RecordCycleFailed(uid types.UID, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[uid]
	if m == nil {
		return
	}
	g := m.gang
	if g.leader != uid || g.phase != Queued && g.phase != Popped && g.phase != Planning {
		return
	}
	r.beginCall(now)
	pause := min(retryInterval<<min(g.lost, 10), maxBackoff)
	if g.phase == Popped { // a failure before any attempt may persist
		g.lost++
	}
	r.endClaim(g)
	r.enterPhase(g, Elected)
	g.woken = now.Add(pause - wakeInterval)
	r.reindex(g)
}

// RecordRequeued records that the queue contains the pod of a failed cycle again, and no node does. A leader whose
// attempt is to be repeated is activated now: until the next Tick, gangs that follow it could be tried before.
func (r *Registry) RecordRequeued(uid types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	delete(r.plainVictims, uid)
	m := r.members[uid]
	if m == nil || m.gang.leader != uid || m.gang.phase != Elected || now.Before(m.gang.woken) { // else it pauses: see RecordCycleFailed
		return r.endCall(Effects{})
	}
	e := Effects{Activate: m.gang.wakeLeader(now)}
	r.reindex(m.gang)
	return r.endCall(e)
}

// wakeLeader returns the leader, to be activated.
func (g *gangState) wakeLeader(now time.Time) []*corev1.Pod {
	m := g.members[g.leader]
	if m == nil {
		return nil
	}
	g.woken = now
	return []*corev1.Pod{m.pod}
}

// wakeLeaderAgain lets the leader be woken once more, because its cycle ended without a plan or a refusal: by
// RecordRequeued, or by Tick.
func (r *Registry) wakeLeaderAgain(g *gangState) {
	if g.leader != "" {
		r.enterPhase(g, Elected)
	}
	r.reindex(g)
}

// PostponeAttempt ends the attempt of a gang of which pods are not back in the queue after an aborted plan. Tick wakes
// the leader after a short pause.
func (r *Registry) PostponeAttempt(gang Key, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	if g := r.gangs[gang]; g != nil && g.phase == Planning {
		g.woken = now.Add(wakeInterval)
		r.wakeLeaderAgain(g)
	}
}

// MustYield reports whether the leader's gang must let another gang go first. This is a gang that precedes it in the
// queue (docs/decisions, G16) but whose leader is delayed by the queue's back-off or was activated only just now,
// because the gang is retried or has yielded itself; or a gang that a failed binding left partially bound a moment ago.
// Without this rule, room that an old gang waits for would go to the youngest. The gang that yields is woken when the
// other one was tried, and yields for at most one second in total, so that many old gangs cannot block it forever.
func (r *Registry) MustYield(pod *corev1.Pod, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	m := r.members[pod.UID]
	if m == nil || m.gang.leader != pod.UID {
		return false
	}
	g := m.gang
	if !g.yieldedAt.IsZero() && now.Sub(g.yieldedAt) >= yieldLimit {
		return false
	}
	first := r.firstPreceding(g)
	if first == nil {
		return false
	}
	r.enterPhase(g, Yielding)
	g.retried = true // others that follow it let it go first, too
	if g.yieldedAt.IsZero() {
		g.yieldedAt = now
	}
	r.reindex(g)
	r.wakeLeaderAgain(first)
	return true
}

// firstPreceding returns the first gang in rank order that others let go first, if it precedes the given one. nil: none
// does.
func (r *Registry) firstPreceding(g *gangState) *gangState {
	first, ok := r.firstByRank(r.index.first)
	if !ok || first == g || first.rank.Compare(g.leaderRank()) >= 0 {
		return nil
	}
	return first
}
