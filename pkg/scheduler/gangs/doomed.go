// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A plan is doomed as soon as the node of one member has refused it: it will not be bound. It is not aborted at once.
// The remaining members have their cycles too, so that one attempt finds every node that refuses (docs/decisions,
// G18).

const (
	// tryLimit is how long the members of a doomed plan are handed out. A plan of a thousand members takes about as
	// long.
	tryLimit = 500 * time.Millisecond
	// prepareLimit is how long a plan that was doomed by the preparation of a member (PreBind) waits for that of the
	// others, when no further member is handed out.
	prepareLimit = 100 * time.Millisecond
)

// unexplained is the reason of a plan of which a member failed, until the member's own reason is known.
const unexplained = "a member could not be placed or prepared"

// doom is the state of a plan of which a member was refused. Guarded by Registry.mu.
type doom struct {
	reason      string // of the first refusal; "" = none
	cause       AbortCause
	since       time.Time      // when a member was first refused
	at          map[place]bool // where members were refused; further members of the class need not be tried there
	idle        int            // members that are not waited for: they are not tried, or not prepared
	unexplained int            // members that the scheduler returned and whose failure is not known yet
	until       time.Time      // when the plan is aborted, whatever the others do; zero = members are being handed out
	loop        bool           // a member was refused in its scheduling cycle: the plan need not be prepared any further
	taught      bool           // a refusal was recorded, so the next plan will be a different one
}

// place is a node, for the pods of one class.
type place struct{ class, node string }

// isDoomed reports whether a member of the plan was refused, and the plan has not been aborted yet.
func (p *Plan) isDoomed() bool { return p.doom.reason != "" && !p.aborted }

// refuseMember records that the node of a member refused it.
func (r *Registry) refuseMember(p *Plan, uid types.UID, cause AbortCause, reason string, now time.Time) {
	d := &p.doom
	if d.reason == "" {
		d.reason, d.cause, d.since, d.at = reason, cause, now, map[place]bool{}
		if p != r.committing {
			d.until = now.Add(prepareLimit)
		}
		r.doomed = append(r.doomed, p)
	}
	s := p.member(uid)
	d.at[place{s.member.class, s.node}] = true
}

// RecordMemberRefused records that the node of a member refused it in its scheduling cycle. taught: the next plan takes
// the refusal into account. The plan is aborted by EndDoomedPlans when the nodes of the other members were tried.
// first: no member of the plan was refused before.
func (r *Registry) RecordMemberRefused(uid types.UID, reason string, taught bool, now time.Time) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	p := r.planOf(uid)
	if p == nil || p.open || p.aborted || p.member(uid).settled {
		return true
	}
	first = p.doom.reason == ""
	r.refuseMember(p, uid, AbortRefused, reason, now)
	p.doom.loop, p.doom.taught = true, p.doom.taught || taught
	p.endMember(uid, false)
	return first
}

// ReleaseUnexplained is ReleaseMember for a plugin that learns later why the scheduler releases the member. fails: the
// member itself failed, on its node, so that RecordReason must be called with the reason; explained: the plan is not
// carried out anyway, because another member failed before.
func (r *Registry) ReleaseUnexplained(uid types.UID, now time.Time) (e Effects, fails, explained bool) {
	r.mu.Lock()
	switch p := r.planOf(uid); {
	case p == nil || p.open:
	case p.aborted:
		explained = !p.member(uid).arrived // else it may be the one that has waited too long
	case !p.member(uid).settled:
		fails, explained = true, p.doom.reason != ""
		r.refuseMember(p, uid, AbortUnprepared, unexplained, now)
		p.doom.unexplained++
		p.doom.loop = p.doom.loop || !p.member(uid).permitted
		r.unexplained[uid] = p
	}
	r.mu.Unlock()
	return r.ReleaseMember(uid, now), fails, explained
}

// RecordReason records why a member failed for which ReleaseUnexplained returned true. taught: the next plan takes it
// into account.
func (r *Registry) RecordReason(uid types.UID, why string, taught bool, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.unexplained[uid]
	if p == nil {
		return Effects{}
	}
	r.beginCall(now)
	delete(r.unexplained, uid)
	p.doom.unexplained--
	if p.doom.reason == unexplained {
		p.doom.reason = why
	}
	p.doom.taught = p.doom.taught || taught
	return r.endCall(r.endDoomedPlans(now))
}

// IsDoomed reports whether the pod's plan need not be prepared any further, because a node refused a member in its
// scheduling cycle.
func (r *Registry) IsDoomed(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.planOf(uid)
	return p != nil && p.isDoomed() && p.doom.loop
}

// HoldOnNode records that an assumed member of a doomed plan is not prepared: it keeps its node until the plan is
// aborted. It returns false if the plan was aborted in the meantime.
func (r *Registry) HoldOnNode(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.planOf(uid)
	if p == nil || !p.isDoomed() {
		return false
	}
	p.doom.idle++
	return true
}

// EndDoomedPlans aborts the doomed plans of which no further member needs to be tried.
func (r *Registry) EndDoomedPlans(now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.doomed) == 0 {
		return Effects{}
	}
	r.beginCall(now)
	return r.endCall(r.endDoomedPlans(now))
}

func (r *Registry) endDoomedPlans(now time.Time) Effects {
	var e Effects
	plans := r.doomed
	r.doomed = nil
	for _, p := range plans {
		switch {
		case p.aborted:
			continue
		case p == r.committing || p.doom.unexplained > 0 || now.Before(p.doom.until) && p.settled+p.arrived+p.doom.idle < len(p.members):
			r.doomed = append(r.doomed, p)
			continue
		}
		g := p.gang
		r.abortPlan(p, p.doom.cause, p.doom.reason)
		if g.plan == nil {
			g.pauseAfter(p, now)
			e.add(r.evaluate(g, now))
		}
	}
	return e
}

// skipsNext reports whether the next member of the plan is not tried: it failed already, or the plan is doomed and the
// member's cycle would teach nothing.
func (p *Plan) skipsNext(now time.Time) bool {
	s := &p.members[p.next]
	if s.settled {
		return true
	}
	if !p.isDoomed() || now.Sub(p.doom.since) < tryLimit && !p.doom.at[place{s.member.class, s.node}] {
		return false
	}
	p.doom.idle++
	return true
}

// endHandingOut records that all members of the plan that need a cycle had one.
func (r *Registry) endHandingOut(p *Plan, now time.Time) {
	r.endCommitting(p)
	if !p.isDoomed() {
		return
	}
	if p.doom.until = now; !p.doom.loop {
		p.doom.until = now.Add(prepareLimit)
	}
}

// PodsBeside returns which pods are members of the pod's plan, nil once they are being bound, and those that are
// assumed on the pod's node beside it. late: the plan was aborted, and beside are those that were planned there.
// isMember may be kept, and called without the registry: it keeps one set for all members of a plan, and none of their
// pods.
func (r *Registry) PodsBeside(uid types.UID) (isMember func(types.UID) bool, beside []*corev1.Pod, late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.planOf(uid)
	if p == nil {
		return nil, nil, true
	}
	own := p.member(uid)
	for _, i := range p.onNode(own.node) {
		if s := &p.members[i]; s != own && (p.aborted || s.assumed && !s.settled) {
			beside = append(beside, s.member.pod)
		}
	}
	if p.open {
		return nil, beside, p.aborted
	}
	places := p.places
	return func(uid types.UID) bool { _, ok := places[uid]; return ok }, beside, p.aborted
}
