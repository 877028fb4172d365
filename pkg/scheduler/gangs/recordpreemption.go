// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// Preempting is a decision to be recorded.
type Preempting struct {
	ID         string
	Victims    []evictions.Victim
	Placements []placement.Placement
	// Awaited are the pods on the nodes of the placements that end without this gang's doing: their room is needed too.
	Awaited  []*corev1.Pod
	Resource corev1.ResourceName // of Amount; "": the victims have no extended resources
	Amount   int64               // that the victims have
}

// RecordPreemption records a decision, or, after PreemptConfirm, which of its victims are needed.
func (r *Registry) RecordPreemption(w *Work, d Preempting, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[w.Gang]
	if g == nil || g.group == nil || g.tree != w.Tree || g.plan != nil {
		return Effects{}
	}
	p := &evictions.Eviction{
		ID: d.ID, Gang: g.key, Group: g.group, Priority: w.EvictionPriority, Victims: d.Victims, Decided: now, Awaited: d.Awaited,
		Timeout: r.opts.PreemptionTimeout,
	}
	if r.areTaken(p, g.preemption) {
		g.recordOwnChange() // they end for another, or their gang is being bound, since the search began: it is tried again
		return Effects{}
	}
	var e Effects
	if old := g.preemption; old != nil {
		if old.Stage() != evictions.Announced {
			return Effects{}
		}
		if !old.HasVictims(d.Victims) { // something has changed so that others would end: it is decided anew
			g.recordOwnChange()
			return r.endCall(r.endPreemption(g, evictions.Cancelled))
		}
		p.Succeed(old)
		e.add(r.releaseVictims(old))
		g.cuts = 0 // not before: the confirmation takes as much time as the decision
	}
	r.forgetPromise(g, PromiseCancelled)
	ended := r.reserved.EndOfGang(g.key, isOfGang)
	p.Describe(d.Resource, d.Amount)
	if g.preemption == nil {
		p.Begin(evictions.Decided, now)
	}
	g.preemption, g.hopeless = p, hopeless{}
	e.add(r.chooseVictims(p, w))
	r.reservePlanned(w, p, d.Placements)
	r.freeReserved(slices.DeleteFunc(ended, func(old *reservations.Reservation) bool {
		return slices.ContainsFunc(r.reserved.OnNode(old.Node), func(x *reservations.Reservation) bool { return x.Owner.Gang == g.key })
	}))
	r.recordReserved(g, d.Placements)
	if p.Stage() == evictions.Announced {
		e.add(r.beginEvictionsFor(g))
	}
	r.reindex(g)
	e.Dirty = append(e.Dirty, g.key)
	return r.endCall(e)
}

// areTaken reports whether pods that are to end by a decision end by another one since the search for them began, or
// their gangs are being bound. before is the decision that it confirms; nil: none.
func (r *Registry) areTaken(p, before *evictions.Eviction) bool {
	return slices.ContainsFunc(p.Victims, func(v evictions.Victim) bool {
		loser := r.gangs[v.Gang]
		return r.endsForOther(v.Pod.UID, before) || loser != nil && loser.isBinding() && !loser.yieldsTo(p.Priority)
	})
}

// chooseVictims records who is to end by a decision. Nothing more of their gangs is bound.
func (r *Registry) chooseVictims(p *evictions.Eviction, w *Work) Effects {
	for i := range p.Victims {
		v := &p.Victims[i]
		if m := r.members[v.Pod.UID]; m != nil && v.Gang == m.gang.key {
			m.gang.victimOf = p
		} else if m != nil || v.Gang == (Key{}) { // else it is gone
			r.plainVictims.Choose(v.Pod.UID, p)
		}
	}
	var e Effects
	for _, v := range p.Victims {
		if loser := r.gangs[v.Gang]; loser != nil && loser.victimOf == p && loser.yieldsTo(p.Priority) {
			e.add(r.abortForPreemptor(loser, w.preemptor()))
		}
	}
	for _, pod := range p.Awaited {
		if r.members[pod.UID] == nil && r.plainVictims[pod.UID] == nil {
			r.plainVictims.Await(pod, r.now)
		}
	}
	return e
}

// evictedInVain is why nobody ends for a preemptor during wastedPause, the pause after so many evictions in vain.
const evictedInVain = "pods were evicted for it, and it did not fit afterwards"

func wastedPause(times int) time.Duration {
	return min(firstHopeless<<min(times, 10), longestWasted)
}

// endPreemption ends a preemption. Room that is left is free for all.
func (r *Registry) endPreemption(g *gangState, outcome evictions.Outcome) Effects {
	r.freeReserved(r.reserved.EndOfGang(g.key, isOfGang))
	return r.replacePreemption(g, outcome)
}

// replacePreemption ends a preemption for which the gang is going to decide anew: the room that it has stays reserved.
func (r *Registry) replacePreemption(g *gangState, outcome evictions.Outcome) Effects {
	p := g.preemption
	g.preemption = nil
	r.plainVictims.Forget(r.now)
	switch outcome {
	case evictions.Placed:
		g.wasted = 0
	case evictions.Wasted: // whatever took the room may take it again
		g.wasted++
		g.hopeless = hopeless{why: evictedInVain, until: r.now.Add(wastedPause(g.wasted)), pause: firstHopeless}
	}
	e := r.endEviction(p, outcome)
	e.Dirty = append(e.Dirty, g.key)
	return e
}

// endEviction ends an eviction for which nobody waits any more.
func (r *Registry) endEviction(p *evictions.Eviction, outcome evictions.Outcome) Effects {
	var e Effects
	if !p.IsBusy() { // else this is left to RecordMarked and RecordEvicted
		if p.IsMarked() {
			e.Unmark = append(e.Unmark, p)
		}
		r.enterStage(p, evictions.Ended)
		e.add(r.releaseVictims(p))
	}
	if r.opts.PreemptionEnded != nil {
		r.opts.PreemptionEnded(p, outcome)
	}
	return e
}

// reviewPreemption ends the preemption of a gang that has started, or that cannot start any more. state is what remains
// to be planned.
func (r *Registry) reviewPreemption(g *gangState, task Task, state readiness) Effects {
	p := g.preemption
	isBound := g.hasMinimum()
	switch {
	case g.plan != nil:
		return Effects{}
	case p == nil:
		if r.haveReserved.Load() && (isBound || g.isSettled() && state == idle) {
			r.freeReserved(r.reserved.EndOfGang(g.key, isOfGang)) // see replacePreemption
		}
		return Effects{}
	case isBound:
		return r.endPreemption(g, p.Success())
	case !r.now.Before(p.Until()):
		g.recordOwnChange() // it is tried again, and may decide anew
		return r.endPreemption(g, p.Failure())
	case g.isSettled() && (state == idle || task.isSurplus()):
		return r.endPreemption(g, p.Failure())
	}
	return Effects{}
}

// reviewRefused ends the preemption of a gang that does not fit, twice, although all victims have ended: it may decide
// anew. A decision that could not be confirmed is given up.
func (r *Registry) reviewRefused(g *gangState) Effects {
	p := g.preemption
	if p == nil {
		return Effects{}
	}
	switch {
	case p.Asked && p.Stage() == evictions.Announced:
		g.recordOwnChange() // it is tried again
		return r.endPreemption(g, p.Failure())
	case p.Stage() != evictions.Deleted || p.IsAwaiting(r.isEnding):
		return Effects{}
	case p.Taken:
		return r.replacePreemption(g, p.Failure())
	case !p.Refused:
		p.Refused = true
		g.changed = true // it is tried again
		return Effects{}
	}
	g.changed = g.changed || p.Priority > g.roomPriority // pods of a lower priority may fit: leastPriority
	return r.endPreemption(g, p.Failure())
}
