// SPDX-License-Identifier: Apache-2.0

package gangs

import "time"

// Tick repeats activations that may have been lost and starts attempts whose waiting time is over. It must be called
// several times a second, before RetryWaiting.
func (r *Registry) Tick(now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	var e Effects
	if p := r.committing; p != nil && now.Sub(p.progress) > commitTimeout {
		// This is only possible if members come through the queue by themselves, and one of them never does.
		e.add(r.abortAndPause(p, AbortLate, "a member did not leave the queue in time", now))
	}
	e.add(r.endDoomedPlans(now))
	for len(r.vanishedInOrder) > 0 && now.Sub(r.vanishedInOrder[0].since) >= departure {
		d := r.vanishedInOrder[0]
		r.vanishedInOrder = r.vanishedInOrder[1:]
		if since, ok := r.vanished[d.uid]; ok && since.Equal(d.since) {
			e.add(r.removeMember(r.members[d.uid], now))
		}
	}
	for uid, f := range r.leftGang {
		e.Activate = append(e.Activate, f.pod)
		if now.Sub(f.since) >= departure {
			delete(r.leftGang, uid)
		}
	}
	e.add(r.retryPreemptors())
	e.add(r.retryBeneath())
	r.freeReserved(r.reserved.Expire(now))
	e.Dirty = append(e.Dirty, r.tickPromises(now)...)
	if r.retried != r.mayHelp {
		r.retried = r.mayHelp
		for g := range r.waiting.all {
			r.retryHopeless(g)
		}
	}
	r.retryFirstHopeless()
	var due []*gangState
	for {
		g, ok := r.index.timers.First()
		if !ok || now.Before(g.due) {
			break
		}
		r.index.timers.Remove(g)
		due = append(due, g)
	}
	sortGangs(due)
	for _, g := range due {
		e.add(r.fireTimer(g, now))
		r.reindex(g)
	}
	e.Dirty = append(e.Dirty, r.updateLine(now)...)
	return r.endCall(e)
}

// fireTimer performs the actions that are due for a gang.
func (r *Registry) fireTimer(g *gangState, now time.Time) Effects {
	switch {
	case r.gangs[g.key] != g || g.plan != nil:
		return Effects{}
	case g.preemption != nil && g.preemption.NameStuck(now, r.isEnding):
		return Effects{Dirty: []Key{g.key}}
	case g.preemption != nil && g.preemption.EndsLending(now):
		r.takeBackRoom(g.preemption)
		return Effects{}
	case g.leader == "", g.preemption != nil && !now.Before(g.preemption.Until()):
		return r.evaluate(g, now)
	case g.phase == Yielding:
		r.enterPhase(g, Elected) // the queue drops this activation if the leader's own cycle has not ended yet
	case g.phase == Elected:
	case !g.phase.isRefused():
		return Effects{}
	case g.changed && !g.wait.heard && !now.Before(g.dueAfterChange()):
		r.recordHeard(g)
		return Effects{}
	case !g.wait.Until.IsZero() && !now.Before(g.wait.Until):
		return r.retryRefused(g)
	case g.hasFurtherSurplus():
		if now.Before(r.furtherSurplusDue(g)) {
			return Effects{}
		}
		g.unitRefusal = g.refusal
		g.unitRefusal.At = g.refusedAt
		g.passed = g.task
		return r.evaluate(g, now)
	default:
		return Effects{}
	}
	return Effects{Activate: g.wakeLeader(now)}
}
