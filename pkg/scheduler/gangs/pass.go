// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// While the members of a plan are handed out, which takes seconds for thousands, a gang of a higher priority may pass
// (docs/decisions, G16): it is planned, and its members are handed out before the rest of that plan. The members of the
// plan that was passed that have not had their cycle keep their room meanwhile (PromisedPods). Then it is continued.

// MayPass reports whether the pod leads a gang that may pass the plan that is being committed. If the gang was refused
// before, it passes only within the share of attempts that may fail again: one that fails beside the plan is repeated
// when the plan has ended.
func (r *Registry) MayPass(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[uid]
	return m != nil && m.gang.leader == uid && r.mayPass(m)
}

func (r *Registry) mayPass(leader *member) bool {
	p, g := r.committing, leader.gang
	return p != nil && p.passable && !p.isDoomed() && g.leaderRank().Priority > p.Priority && g.dropped != p.ID &&
		!g.task.followsMinimums() && !dependsBeyondNode(leader.pod) && (g.wait == nil || r.waiting.withoutEvent.isOpen(maxSpent, r.now))
}

// Passes reports whether the attempt is made while another plan is being committed. If it finds no plan, it must be
// dropped instead of refused: the gang may fit when the other plan has ended, and what it lacks is known only then.
func (w *Work) Passes() bool { return w.passes != nil }

// IsPassable reports whether on its nodes the plan will occupy all that other pods could take from it, so that they can
// see it there. TakesMoreThanRoom must have been set. Only such a gang passes a plan, and only the plan of such a gang
// is passed.
func (w *Work) IsPassable() bool {
	return !w.TakesMoreThanRoom && !slices.ContainsFunc(w.Classes, dependsBeyondNode)
}

// DropAttempt ends an attempt without a plan or a refusal. The leader enters the queue again when its cycle has ended
// (RecordRequeued). Beside this plan it is not tried again, and no other gang waits for it.
func (r *Registry) DropAttempt(w *Work, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[w.Gang]
	if g == nil {
		return r.endCall(Effects{})
	}
	g.progress, g.dropped = w.Progress, w.passes.ID
	if g.wait != nil {
		r.waiting.withoutEvent.affords(cmp.Or(g.wait.Took, leastTook), maxSpent, now)
	}
	r.endClaim(g)
	r.wakeLeaderAgain(g)
	return r.endCall(Effects{Dirty: []Key{g.key}})
}

// waitsForPlan reports whether the gang was found not to fit beside a plan that is still being handed out.
func (r *Registry) waitsForPlan(g *gangState) bool {
	for p := r.committing; p != nil; p = p.passes {
		if p.ID == g.dropped {
			return true
		}
	}
	return false
}

// endCommitting records that no further member of the plan is handed out. If it was being committed, the plan that it
// passes is continued.
func (r *Registry) endCommitting(p *Plan) {
	if r.committing == p {
		if r.committing = p.passes; r.committing != nil {
			r.committing.progress = r.now // it may have waited for longer than commitTimeout
		}
	}
	for other := r.committing; other != nil; other = other.passes {
		if other.passes == p {
			other.passes = p.passes
		}
	}
	p.passes = nil
}
