// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// fairAfter is the time after which a gang that saw an event may use the share of repeated attempts too, the
	// longest waiting one first. Otherwise gangs of higher rank with constant events could use up the share of both.
	fairAfter = 5 * time.Second
	// repeatShare and eventShare limit the attempts that may fail again (those of gangs that were refused although
	// enough fits), of all gangs together, to 1/20 = 5 % of the scheduling loop's time if no event occurred since the
	// last attempt of the gang, and to 1/4 after one, or after a change of the gang itself. Those of gangs that are
	// promised room have another 1/20.
	repeatShare, eventShare = 20, 4
	// maxSpent is how far these attempts may exceed their share temporarily, so that a few gangs do not wait for each
	// other.
	maxSpent = 250 * time.Millisecond
	// longest is the maximum time that a refused gang waits if enough of its pods fit, as in the stock scheduler: not
	// every object that a filter reads causes an event (for example labels of namespaces).
	longest = 5 * time.Minute
	// refreshAfter is the time after which a refused gang is tried again for its numbers alone, if what is free has
	// changed since (docs/decisions, G14).
	refreshAfter = 20 * time.Second
	// recheckAfter is the time after which a gang's condition is evaluated again without an event.
	recheckAfter = time.Second
)

// recordHeard records that an event may help a gang of which enough pods fit, or that a refused gang has changed.
func (r *Registry) recordHeard(g *gangState) {
	g.wait.heard = true
	g.wait.repeat = earlier(g.wait.repeat, g.refusedAt.Add(fairAfter))
	g.wait.turn = earlier(g.wait.turn, g.wait.repeat)
	r.reindex(g)
}

// isHeard reports whether a gang that was refused, or whose plan failed, waits for its turn after an event.
func (r *Registry) isHeard(g *gangState) bool {
	if g.phase.isRefused() {
		return g.wait.heard
	}
	_, unheard := r.waiting.unheard[g]
	return !unheard && g.isPaused(r.now) && g.failures <= maxEarly
}

// endClaim ends the precedence of a gang that is tried again, and its claim to room.
func (r *Registry) endClaim(g *gangState) {
	if g.retried && g.wait != nil {
		for _, n := range g.wait.Needs {
			r.waiting.freed[n.Shape] = struct{}{}
		}
	}
	g.retried = false
}

// RetryWaiting records that more pods of the raised shapes fit on some node, and events with the topics. Refused gangs
// that may fit by now are tried again, and after an EventOf those that pause because their plans failed: their leaders
// are activated, and gangs of lower rank let them go first until their attempts have ended. It must also be called
// periodically, and before a gang is planned: gangs that precede it are tried first.
func (r *Registry) RetryWaiting(raised []Shape, topics []Topic, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	x := &r.waiting
	x.callReleases()
	var lacking, units []*gangState
	reachGang := func(g *gangState) {
		g.hopeless.seen = 0
		r.retryHopeless(g)
		switch {
		case g.phase == Lacking:
			lacking = append(lacking, g)
		case g.phase == Parked:
			if !g.wait.heard && g.wait.isFulfilled() {
				r.recordHeard(g)
			}
		case g.phase == Popped, g.phase == Planning:
			g.wait.missed = true
		case g.passed > 0 && !g.phase.isRefused(): // other surplus will be tried, and its units may fit by now
			units = append(units, g)
		}
	}
	for _, s := range raised {
		x.visitFitting(s, reachGang)
	}
	for _, topic := range topics {
		of := x.byTopic[topic]
		switch event, isEvent := topic.(EventOf); {
		case isEvent:
			r.recordHelp(types.UID(event))
		case topic == Anything:
			of = x.all
			r.recordHelp("")
		}
		for g := range of {
			reachGang(g)
		}
	}
	e := r.retryPromised()
	for _, g := range units {
		g.passed = 0
		e.add(r.evaluate(g, now))
		if g.phase == Elected {
			g.retried = true
			r.reindex(g)
		}
	}
	e.add(r.retryReady(lacking))
	return r.endCall(e)
}

// retryReady lets gangs be tried again: refused ones whose turn has come, those that lacked room until now, and those
// that saw an event.
func (r *Registry) retryReady(lacking []*gangState) Effects {
	x := &r.waiting
	var e Effects
turns:
	for g, ok := x.turns.First(); ok && !r.now.Before(g.wait.turn); g, ok = x.turns.First() {
		next := r.now.Add(recheckAfter)
		switch holds := g.wait.isFulfilled(); {
		case holds && g.phase == Lacking:
			lacking = append(lacking, g)
		case (holds || g.changed && g.wait.heard) && !r.now.Before(g.wait.repeat):
			if !x.withoutEvent.affords(g.wait.Took, r.now) {
				break turns
			}
			e.add(r.retryRefused(g))
			continue
		case r.isOutdated(g):
			if x.withoutEvent.affords(g.wait.Took, r.now) {
				e.add(r.retryRefused(g))
				continue
			}
		case holds:
			next = earlier(g.wait.repeat, r.now.Add(refreshAfter))
		}
		g.wait.turn = next
		x.turns.Set(g)
	}
	for s := range x.freed {
		x.visitFitting(s, func(g *gangState) {
			if g.phase == Lacking {
				lacking = append(lacking, g)
			}
		})
	}
	clear(x.freed)
	e.add(r.retryLacking(lacking))
	for g, ok := r.firstByRank(x.heard); ok; g, ok = r.firstByRank(x.heard) {
		switch {
		case !g.phase.isRefused():
			e.add(r.endPause(g))
		case !x.afterEvents.isOpen(r.now):
			return e
		case !g.changed && !g.wait.isFulfilled(): // another event has to change that
			g.wait.heard = false
			r.reindex(g)
		default:
			x.afterEvents.affords(g.wait.Took, r.now)
			e.add(r.retryRefused(g))
		}
	}
	return e
}

// retryLacking lets gangs that lacked room until now be tried, in the order of the queue, as long as the room is enough
// for all gangs that claim some of it. The others are checked again when these have been tried.
func (r *Registry) retryLacking(lacking []*gangState) Effects {
	claiming := sets.New[*gangState]()
	for _, g := range lacking {
		if g.wait.isFulfilled() {
			claiming.Insert(g)
		}
	}
	if len(claiming) == 0 {
		return Effects{}
	}
	for _, g := range r.index.first.Items() {
		if g.wait != nil {
			claiming.Insert(g)
		}
	}
	gangs := claiming.UnsortedList()
	sortGangs(gangs)
	var e Effects
	claimed := claims{}
	for _, g := range gangs {
		if g.phase == Lacking {
			if !claimed.leaveRoom(g.wait) {
				continue
			}
			e.add(r.retryRefused(g))
		}
		if g.retried && g.wait != nil {
			for _, n := range g.wait.Needs {
				claimed[n.Shape] += n.Pods
			}
		}
	}
	return e
}

// claims are the numbers of pods for which gangs claim room that are tried.
type claims map[Shape]int

// leaveRoom reports whether the claims leave room for what a gang waits for, or for its sub-groups that were refused
// before.
func (c claims) leaveRoom(w *wait) bool {
	return w != nil && (!slices.ContainsFunc(w.Needs, func(n Need) bool { return w.fitsOf(n.Shape)-c[n.Shape] < n.Pods }) || c.leaveRoom(w.units))
}

// retryRefused lets a refused gang be tried again.
func (r *Registry) retryRefused(g *gangState) Effects {
	r.recordRoomGrowth()
	g.passed = 0
	e := r.evaluate(g, r.now) // other surplus may have to let units go first now
	e.Dirty = nil
	if g.phase.isRefused() {
		r.enterPhase(g, Elected)
		e.Activate = append(e.Activate, g.wakeLeader(r.now)...)
	}
	if g.phase == Elected { // maybe for another task, which was refused before
		g.retried = true
		r.reindex(g)
	}
	return e
}

// budget is the time of the scheduling loop, 1/share of it, that attempts may use.
type budget struct {
	share int
	spent time.Time // until when it is used up
}

// isOpen reports whether the budget exceeds its share by at most maxSpent.
func (b *budget) isOpen(now time.Time) bool { return b.spent.Sub(now) <= maxSpent }

// affords is isOpen, and if so, it accounts for an attempt of the given duration.
func (b *budget) affords(took time.Duration, now time.Time) bool {
	if !b.isOpen(now) {
		return false
	}
	b.spent = later(b.spent, now).Add(time.Duration(b.share) * took)
	return true
}
