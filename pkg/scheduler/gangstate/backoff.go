package gangstate

import "time"

// pause delays the next election after a plan that failed, unless it is the first and left the gang bound in part. What is
// bound is of no use without the rest, so the rest is tried at once, and before others take its room.
func (g *gangState) pause(p *Plan, now time.Time) {
	g.broken = g.broken || p.open && !g.admitted && g.numbers.flag(isStanding) > 0
	if g.broken && p.open && g.failures == 0 {
		g.failures++
		g.notBefore, g.keepUntil = time.Time{}, now.Add(keepFor)
		return
	}
	g.backOff(now)
}

// backOff delays the next election after a plan that failed on its way.
func (g *gangState) backOff(now time.Time) {
	d := minBackoff << min(g.failures, 10)
	g.failures++
	g.notBefore = now.Add(min(d, maxBackoff))
}

// Unanswered tells that the API server gave no answer to a binding of the gang: it is away, or this one request failed on
// its way. Whoever is told so by AwaitsAnswer has to find out, and to call Answers.
func (r *Registry) Unanswered(key Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unanswered = key
}

// AwaitsAnswer reports whether a binding got no answer since Answers was called last, and of which gang.
func (r *Registry) AwaitsAnswer() (Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unanswered, r.unanswered != Key{}
}

// Answers tells that the API server answers; back: after it did not. Then no gang is to blame for what failed meanwhile,
// and all that wait for their back-off are tried at once.
func (r *Registry) Answers(back bool, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(now)
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
	return r.leave(e)
}
