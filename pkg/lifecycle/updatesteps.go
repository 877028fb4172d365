// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// rollout is what the updates of a PodClique, which replaces pods, of a scaling group, which replaces replicas, and of a set,
// which lets the objects of a replica do so, have in common. That of a set takes the last two of these steps:
//
//  1. decideIdle: an update that may replace nothing is decided.
//  2. proceed: the unit in flight is waited for.
//  3. The caller replaces units that are not available, unless something is against it.
//  4. advance: one available unit is replaced, or the update waits, or it ends.
//  5. checkStall: an update without progress has stalled.
type rollout struct {
	target   Target
	progress *Progress // as recorded
	followed string    // the hash of the revision that all units followed last
	// onDelete, turn, paused and stalledAfter are as in CliqueUpdate. known: the states of all units are known.
	onDelete, turn, paused, known bool
	stalledAfter                  time.Duration
	// outdated is the number of units of an earlier template that are not being replaced, old says so.
	outdated int
	old      string
	// awaitsTurn and complete are messages.
	awaitsTurn, complete string
	// inFlight returns what the replacement of a unit waits for. No reason: it is available, or no longer desired.
	inFlight func(unit string) UpdateState
}

// decideIdle returns the progress and the state of an update that replaces nothing. ok: the update is one.
func (r rollout) decideIdle(now time.Time) (p *Progress, state UpdateState, requeueAfter time.Duration, ok bool) {
	stays := r.old + message.Plural(r.outdated, "; it is replaced when it is deleted", "; each is replaced when it is deleted")
	p, ok = r.progress, true
	switch {
	case r.onDelete:
		p = p.onDelete(r.target, r.outdated > 0, now)
		if r.outdated > 0 {
			state = UpdateState{UpdateOnDelete, stays}
		} else if r.known {
			state = UpdateState{UpdateComplete, r.complete}
		}
	case !r.known && !p.Open(): // the deletion will change this in a moment
	case r.outdated > 0 && !r.turn:
		p, state = p.withoutTurn(r.target, r.inFlight, UpdateState{UpdateWaitsForTurn, r.old + "; " + r.awaitsTurn}, deferred(stays))
		state, requeueAfter = state.stalled(p, r.stalledAfter, now)
	case r.outdated == 0 && !p.Open():
		state = UpdateState{UpdateComplete, r.complete}
	default:
		ok = false
	}
	return p, state, requeueAfter, ok
}

// proceed returns the progress of the update to the target, and what the unit in flight waits for.
func (r rollout) proceed(now time.Time) (p *Progress, waits UpdateState) {
	p = r.progress.towards(r.target, r.followed, now)
	p.recordPause(r.paused, now)
	if p.InFlight() {
		if waits = r.inFlight(p.Selected); waits.Reason == "" {
			p.complete(now)
		}
	}
	return p, waits
}

// isBlocked reports whether no unit is replaced, not even one that is not available. hasFailed: one that the update has
// made is not available.
func (r rollout) isBlocked(hasFailed bool, waits UpdateState) bool {
	return r.paused || hasFailed || waits.Reason == UpdateWaitsForCapacity || waits.Reason == UpdateWaitsForReadiness
}

// advance returns the state of the update, and whether the next available unit is replaced: replacing says so, "": there is
// none. obstacle is what is against it, and remaining what the update waits for when there is no other unit.
func (r rollout) advance(p *Progress, obstacle UpdateState, replacing string, remaining UpdateState, now time.Time) (state UpdateState, replaces bool) {
	switch {
	case obstacle.Reason != "":
		return obstacle, false
	case replacing != "":
		return UpdateState{Updating, replacing + "; " + r.old}, true
	case remaining.Reason != "":
		return remaining, false
	}
	p.endUpdate(now)
	return UpdateState{UpdateComplete, r.complete}, false
}

// checkStall returns the state of an update, which may have stalled, and the time until the decision changes without an
// event. ripens: the update only waits for minReadySeconds, which is no stall and ends after ripeAfter, 0: with an
// event. settles is when a unit that is not bound is taken for one that does not fit, zero: there is none.
func (r rollout) checkStall(p *Progress, state UpdateState, ripens bool, ripeAfter time.Duration, settles, now time.Time) (UpdateState, time.Duration) {
	requeueAfter := ripeAfter
	if !ripens {
		state, requeueAfter = state.stalled(p, r.stalledAfter, now)
	}
	if r.paused && p.Open() {
		requeueAfter = Sooner(requeueAfter, p.countRest(r.stalledAfter, now))
	}
	if is, until := p.suspends(r.stalledAfter, now); is && !until.IsZero() {
		requeueAfter = Sooner(requeueAfter, delayUntil(until, now))
	}
	if !settles.IsZero() {
		requeueAfter = Sooner(requeueAfter, delayUntil(settles, now))
	}
	return state, requeueAfter
}
