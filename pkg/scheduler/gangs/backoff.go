// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// pauseAfter delays the next election after a failed plan, except after the first failure that leaves the gang partially
// bound. The bound pods are of no use without the others, so the remaining pods are tried immediately, before other
// gangs take their room. There is no pause either after a plan that was wrong about its nodes, if the next one will be
// a different one.
func (g *gangState) pauseAfter(p *Plan, now time.Time) {
	if p.doom.taught && !p.open {
		g.notBefore = time.Time{}
		return
	}
	g.broken = g.broken || p.open && !g.admitted && g.numbers.Flagged(count.IsStanding) > 0
	if g.broken && p.open && g.failures == 0 {
		g.failures++
		g.notBefore = time.Time{}
		return
	}
	g.backOff(now)
}

// backOff delays the next election after a plan was aborted or bound only in part.
func (g *gangState) backOff(now time.Time) {
	d := minBackoff << min(g.failures, 10)
	g.failures++
	g.notBefore = now.Add(min(d, maxBackoff))
}

// RecordUnanswered records that the API server did not answer a binding of the gang: either the API server is unavailable,
// or this one request failed. A caller that finds this by AwaitsAnswer must check whether the API server answers, and
// call RecordServerAnswers.
func (r *Registry) RecordUnanswered(key Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unanswered = key
}

// AwaitsAnswer reports whether a binding has received no answer since the last call of RecordServerAnswers, and of which gang.
func (r *Registry) AwaitsAnswer() (Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unanswered, r.unanswered != Key{}
}

// RecordServerAnswers records that the API server answers. back: it did not answer before. In that case the failures in the
// meantime are not attributed to the gangs, and all gangs that wait for their back-off are tried immediately.
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
