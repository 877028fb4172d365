// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// ReleaseMember records that the scheduler released the pod's reservation (Unreserve) because its cycle or its binding
// failed.
func (r *Registry) ReleaseMember(uid types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	r.recordRoomGrowth()
	r.reserved.GiveBack(uid)
	p, m := r.planOf(uid), r.members[uid]
	if m != nil && m.state == count.Assumed {
		m.state, m.node = count.Pending, ""
		m.recount()
	}
	if p == nil {
		return Effects{}
	}
	if s := p.member(uid); s.assumed {
		s.assumed = false
		p.assumed--
		if p.aborted {
			r.unwinding--
		}
		r.recordRelease(p)
	}
	if !p.isDoomed() {
		r.abortPlan(p, AbortUnprepared, unexplained)
	}
	p.endMember(uid, false)
	g := p.gang
	r.finishPlan(p)
	var e Effects
	if g.plan == nil {
		if !p.overtaken {
			g.pauseAfter(p, now)
		}
		e = r.evaluate(g, now)
	}
	if m != nil && m.state == count.Pending && m.gang.key != keyOf(m.pod) {
		e.add(r.setPod(m.pod, m.class, now)) // its annotation changed while it was assumed
	}
	return r.endCall(e)
}

// AbortPlanOf ends a plan whose barrier has not opened.
func (r *Registry) AbortPlanOf(uid types.UID, cause AbortCause, reason string, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	p := r.planOf(uid)
	if p == nil || p.open || p.aborted {
		return Effects{}
	}
	return r.endCall(r.abortAndPause(p, cause, reason, now))
}

// notPlaced is the reason of a plan of which a member has no node after its cycle.
const notPlaced = "a member was not placed where it was planned"

// AbortUnplaced ends the plan that is being committed because the cycle of a member ended before its node was asked or
// reserved for it, by an error: of an HTTP extender for example. It does nothing if the pod is in no such plan, or its
// cycle got further.
func (r *Registry) AbortUnplaced(uid types.UID, why string, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	p := r.planOf(uid)
	if p == nil || p != r.committing {
		return Effects{}
	}
	if s := p.member(uid); s.assumed || s.settled {
		return Effects{}
	}
	return r.endCall(r.abortAndPause(p, AbortRefused, notPlaced+": "+why, now))
}

// abortAndPause is abortPlan, and delays the next plan. If members are assumed, their last release does that.
func (r *Registry) abortAndPause(p *Plan, cause AbortCause, reason string, now time.Time) Effects {
	g := p.gang
	r.abortPlan(p, cause, reason)
	if g.plan != nil {
		return Effects{Dirty: []Key{g.key}}
	}
	g.backOff(p, now)
	return r.evaluate(g, now)
}

// abortPlan ends a plan whose barrier has not opened. Members that were not assumed are free immediately, the others
// when the scheduler releases them.
func (r *Registry) abortPlan(p *Plan, cause AbortCause, reason string) {
	if p.open || p.aborted {
		return
	}
	p.aborted, p.reason = true, reason
	close(p.failed)
	if r.opts.Aborted != nil {
		r.opts.Aborted(p.Gang, cause, reason)
	}
	r.endCommitting(p)
	for i := range p.members {
		s := &p.members[i]
		if s.assumed {
			r.unwinding++
			if !s.arrived { // else it leaves the barrier by itself
				r.cancelled = append(r.cancelled, s.member.pod.UID)
			}
		} else {
			p.endMember(s.member.pod.UID, false)
		}
	}
	r.finishPlan(p)
}

// endMember records that the plan's work on a member is finished. In an aborted plan, an assumed member is settled only
// by its release.
func (p *Plan) endMember(uid types.UID, isBound bool) {
	s := p.member(uid)
	if p.aborted && s.assumed || s.settled {
		return
	}
	s.settled = true
	p.settled++
	p.lost = p.lost || !isBound
}

// finishPlan ends a plan when all of its members are settled.
func (r *Registry) finishPlan(p *Plan) {
	if p.settled < len(p.members) || p.isDoomed() {
		return
	}
	maps.DeleteFunc(r.left, func(_ types.UID, left *Plan) bool { return left == p })
	g := p.gang
	if g.plan == p {
		g.plan = nil
		r.enterPhase(g, Complete)
		if !p.lost {
			g.failures = 0
			delete(r.waiting.unheard, g)
		}
		if g.completeAt.IsZero() {
			g.completeAt = r.now
		}
		r.reindex(g) // evaluated by the caller or by the next Tick
	}
	r.endCommitting(p)
}

// endCommitting records that no further member of the plan is handed out.
func (r *Registry) endCommitting(p *Plan) {
	if r.committing == p {
		r.committing = nil
	}
}

// IsUnwinding reports whether members of aborted plans, or of plans that will be, are still assumed. A plan made now
// would see their reservations.
func (r *Registry) IsUnwinding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unwinding > 0 || len(r.doomed) > 0
}

// IsUnwindingPod reports whether the pod is assumed for a plan that was aborted.
func (r *Registry) IsUnwindingPod(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.planOf(uid)
	return p != nil && p.aborted && p.member(uid).assumed
}

// Reason returns why the plan was aborted.
func (p *Plan) Reason(r *Registry) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.reason
}
