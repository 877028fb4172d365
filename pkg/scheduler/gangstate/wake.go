// SPDX-License-Identifier: Apache-2.0

package gangstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/podgroup"
)

// RoomGrew records that a node was added or has grown, or a bound pod was removed. Single surplus pods wait for some time
// after it (Options.SingleSurplusAfter). It wakes no gang: the caller knows on which facts each refusal is based, and
// names the gangs to Wake.
func (r *Registry) RoomGrew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordGrowth()
}

// CycleFailed records that the pod's scheduling cycle or binding has failed. If the attempt of a leader ended without
// a plan, a refusal or another gang to wait for (for example because the scheduler failed before the attempt), the
// leader is woken again after a pause. The pause grows while its cycles end before an attempt begins.
func (r *Registry) CycleFailed(uid types.UID, now time.Time) {
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
	r.enter(now)
	pause := min(retryInterval<<min(g.lost, 10), maxBackoff)
	if g.phase == Popped { // a failure before any attempt may persist
		g.lost++
	}
	r.enterPhase(g, Elected)
	g.woken = now.Add(pause - wakeInterval)
	r.reindex(g)
}

// Refuse records that the leader's attempt found no plan. The gang is parked: it waits until a relevant change
// occurs.
func (r *Registry) Refuse(key Key, v podgroup.Refusal, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(now)
	g := r.gangs[key]
	if g == nil {
		return Effects{}
	}
	g.refusal, g.refusedAt = v, now
	e := Effects{Dirty: []Key{key}}
	switch {
	case g.phase != Planning:
		g.retried = g.leader != "" // another leader was elected in the meantime
	case g.missed:
		g.missed = false
		r.enterPhase(g, Parked)
		e.add(r.revive(g, now))
	default:
		r.enterPhase(g, Parked)
	}
	r.reindex(g)
	return r.leave(e)
}

// Wake reports that the facts on which the refusals of these gangs were based may have changed. Each parked gang
// among them is retried: its leader is activated, and gangs of lower rank let it go first until its attempt begins, or
// it has nothing left to plan. Of other gangs, an attempt that is running is repeated if it is refused, and single pods
// let their sub-groups go first again. Unknown gangs are ignored.
func (r *Registry) Wake(keys []Key, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(now)
	var e Effects
	grown := false
	for _, key := range keys {
		g := r.gangs[key]
		if g == nil {
			continue
		}
		if g.plan != nil {
			g.unitsTried = false // single pods are being bound, and units come next
			continue
		}
		if !grown && g.leader != "" {
			grown = true
			r.index.grewAt = now
		}
		switch {
		case g.phase == Parked:
			e.add(r.revive(g, now))
		case g.phase == Popped, g.phase == Planning:
			g.missed = true
		case g.unitsTried: // its single pods wait, and its units may fit by now
			g.unitsTried = false
			e.add(r.evaluate(g, now))
		}
	}
	return r.leave(e)
}

// Idle returns those gangs that have nothing to plan: they are gone, are no longer complete, or are fully scheduled.
func (r *Registry) Idle(keys []Key) []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Key
	for _, key := range keys {
		if g := r.gangs[key]; g == nil || g.completeAt.IsZero() {
			out = append(out, key)
		}
	}
	return out
}

// revive lets a parked gang be tried again.
func (r *Registry) revive(g *gangState, now time.Time) Effects {
	g.unitsTried = false
	e := r.evaluate(g, now) // its single pods may have to let units go first now
	e.Dirty = nil
	if g.phase == Parked {
		r.enterPhase(g, Elected)
		g.retried = true
		e.Activate = append(e.Activate, r.wake(g, now)...)
	}
	r.reindex(g)
	return e
}

// wake returns the leader, to be activated.
func (r *Registry) wake(g *gangState, now time.Time) []*corev1.Pod {
	m := g.members[g.leader]
	if m == nil {
		return nil
	}
	g.woken = now
	return []*corev1.Pod{m.pod}
}

// again lets Tick wake the leader once more, because its cycle ended without a plan or a refusal.
func (r *Registry) again(g *gangState) {
	if g.leader != "" {
		r.enterPhase(g, Elected)
	}
	r.reindex(g)
}

// Retry makes a refused gang eligible immediately: the state its last attempt was based on has changed.
func (r *Registry) Retry(key Key, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(now)
	g := r.gangs[key]
	if g == nil {
		return Effects{}
	}
	g.changed = true // for an attempt that is running
	if g.phase != Parked {
		return Effects{}
	}
	return r.leave(r.revive(g, now))
}

// Yields reports whether the leader's gang must let another gang go first. This is either a retried gang that precedes
// it in the queue (docs/decisions, G16) but whose leader is delayed by the queue's back-off or was activated only
// just now, or a gang that a failed binding left partially bound a moment ago. Without this rule, room that an old
// gang waits for would go to the youngest. The gang that yields is woken when the other one was tried, and yields for
// at most one second in total, so that many old gangs cannot block it forever.
func (r *Registry) Yields(pod *corev1.Pod, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(now)
	m := r.members[pod.UID]
	if m == nil || m.gang.leader != pod.UID {
		return false
	}
	g := m.gang
	if !g.yieldedAt.IsZero() && now.Sub(g.yieldedAt) >= yieldLimit {
		return false
	}
	first := r.firstBefore(g)
	if first == nil || first.rank.Compare(r.leaderRank(g)) >= 0 {
		return false
	}
	r.enterPhase(g, Yielding)
	g.yieldedTo = first
	first.yielders = append(first.yielders, g)
	if g.yieldedAt.IsZero() {
		g.yieldedAt = now
	}
	r.reindex(g)
	r.again(first)
	return true
}

// firstBefore returns the first gang in rank order that is worth an attempt, except the given one. nil: none.
func (r *Registry) firstBefore(but *gangState) *gangState {
	for {
		var first *gangState
		items := r.index.first.items
		for _, g := range items[:min(len(items), 3)] { // the heap's first item, or one of the two next to it
			if g != but && (first == nil || g.rank.Compare(first.rank) < 0) {
				first = g
			}
		}
		if first == nil {
			return nil
		}
		if r.reindex(first); first.inFirst > 0 { // room is not kept forever
			return first
		}
	}
}

// endYield ends a gang's wait for another gang.
func (g *gangState) endYield() {
	if h := g.yieldedTo; h != nil {
		for i, y := range h.yielders {
			if y == g {
				h.yielders = append(h.yielders[:i], h.yielders[i+1:]...)
				break
			}
		}
	}
	g.yieldedTo, g.yieldOver = nil, false
}
