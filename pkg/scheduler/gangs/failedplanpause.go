// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

const (
	// minBackoff and maxBackoff bound the pause after a plan that was aborted or bound only in part; each failure
	// doubles it. After a refusal the gang waits for a change instead.
	minBackoff = 200 * time.Millisecond
	maxBackoff = 10 * time.Second
	// maxEarly is the number of consecutive failures up to which an event ends the pause.
	maxEarly = 4
)

// pauseAfter delays the next election after a failed plan, except after the first failure that leaves the gang
// partially bound. The bound pods are of no use without the others, so the remaining pods are tried immediately, before
// other gangs take their room. There is no pause either after a plan that was wrong about its nodes, if the next one
// will be a different one.
func (g *gangState) pauseAfter(p *Plan, now time.Time) {
	if p.doom.taught && !p.open {
		g.notBefore = time.Time{}
		return
	}
	g.broken = g.broken || p.open && !g.admitted && g.numbers.Flagged(count.IsStanding) > 0
	if g.broken && p.open && g.failures == 0 {
		g.recordFailure(p, now)
		g.notBefore = time.Time{}
		return
	}
	g.backOff(p, now)
}

// recordFailure records that a plan was aborted or bound only in part.
func (g *gangState) recordFailure(p *Plan, now time.Time) {
	if g.failures == 0 {
		g.failing = now
	}
	g.failures++
	g.failure = p.reason
}

// backOff delays the next election after a plan was aborted or bound only in part.
func (g *gangState) backOff(p *Plan, now time.Time) {
	d := minBackoff << min(g.failures, 10)
	g.recordFailure(p, now)
	g.notBefore = now.Add(min(d, maxBackoff))
}

// isPaused reports whether the gang waits for the end of its pause. Surplus may let room grow meanwhile.
func (g *gangState) isPaused(now time.Time) bool {
	return (g.phase == Complete || g.phase == Gated) && now.Before(g.notBefore)
}

// endPause ends the pause of a gang for which an event occurred since its last attempt began: the room that it freed,
// or the node, volume or claim that it changed, may make the next plan succeed. A pause thus delays attempts only in a
// cluster in which the last one failed, and lets no gang of lower rank take room that this one could use
// (docs/decisions, G16).
//
// An event ends one pause of a gang. Those of its own pods end none, unless a bound one is gone, and neither does the
// release of the pods of a plan that failed and was not in force when the attempt began, since their room was free
// then. Two gangs whose plans always fail may wake each other, and events of claims and volumes that a plan wrote
// itself cannot be told from others. So that such gangs stop no others, no event ends the pause after more than
// maxEarly failures.
func (r *Registry) endPause(g *gangState) Effects {
	g.notBefore = time.Time{}
	e := r.evaluate(g, r.now)
	g.retried = g.leader != ""
	r.reindex(g)
	return e
}

// recordHelp records an event that may help gangs whose plans failed. of is its pod; "": it is not of a pod.
func (r *Registry) recordHelp(of types.UID) {
	m := r.members[of]
	if m != nil && m.state == count.Pending {
		return // a plan that failed has released it: see recordRelease
	}
	_, ended := r.vanished[of] // its room is free: that is news for its own gang too
	ended = ended || m != nil && m.state == count.Succeeded
	for g := range r.waiting.unheard {
		if m == nil || m.gang != g || ended {
			r.recordNews(g)
		}
	}
}

// recordRelease records that a plan that fails has released pods, whose room may help gangs that were tried while it
// was in force.
func (r *Registry) recordRelease(p *Plan) {
	if p.told == r.cycles {
		return // a large plan releases thousands, and no other gang was tried since
	}
	p.told = r.cycles
	for g := range r.waiting.unheard {
		if g.newest >= p.ID {
			r.recordNews(g)
		}
	}
}

// recordNews records that an event that may help occurred since the cycle of the gang's leader began.
func (r *Registry) recordNews(g *gangState) {
	delete(r.waiting.unheard, g)
	if g.isPaused(r.now) {
		r.reindex(g)
	}
}

// RecordUnanswered records that the API server did not answer a binding of the gang: either the API server is
// unavailable, or this one request failed. A caller that finds this by AwaitsAnswer must check whether the API server
// answers, and call RecordServerAnswers.
func (r *Registry) RecordUnanswered(key Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unanswered = key
}

// AwaitsAnswer reports whether a binding has received no answer since the last call of RecordServerAnswers, and of
// which gang.
func (r *Registry) AwaitsAnswer() (Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unanswered, r.unanswered != Key{}
}

// RecordServerAnswers records that the API server answers. back: it did not answer before. In that case the failures in
// the meantime are not attributed to the gangs, and all gangs that wait for their back-off are tried immediately.
func (r *Registry) RecordServerAnswers(back bool, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	r.unanswered = Key{}
	var e Effects
	if !back {
		return e
	}
	for _, g := range r.gangs {
		if g.failures > 0 {
			g.failures, g.notBefore = 0, time.Time{}
			e.add(r.evaluate(g, now))
		}
	}
	return r.endCall(e)
}
