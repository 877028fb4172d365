// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// Update contains the facts that the updates of a PodClique, which replaces pods, of a scaling group, which replaces
// replicas, and of a set, which lets the objects of a replica do so, have in common.
type Update struct {
	// Target is the revision, and for a PodClique the template, that all units must follow.
	Target Target
	// OnDelete: the update strategy is OnDelete. Turn: under RollingRecreate, units may be replaced; DecideSetUpdate
	// sets it. Paused: no further unit is replaced.
	OnDelete, Turn, Paused bool
	// Progress is the progress recorded in the status, Followed the hash of the revision that all units followed last.
	Progress *Progress
	Followed string
	// Wanted is the desired number of units, MinAvailable the number that must be available; 0 for a set.
	Wanted, MinAvailable int32
	// StalledAfter is the time without progress after which an update has stalled. Not positive: never.
	StalledAfter time.Duration
}

// UpdateDecision is the decision how an update continues.
type UpdateDecision struct {
	// Progress must be recorded before a unit is replaced. It is the given one if nothing changes.
	Progress *Progress
	// Current: every unit was created from the template of the target, and no update is in progress. Outdated: one was
	// not, so that the status must not claim that all units follow the target.
	Current, Outdated bool
	// Suspends: the minimum is not judged, because of the update.
	Suspends bool
	// State is the content of the condition Progressing.
	State UpdateState
	// RequeueAfter is when the decision changes without an event; 0: it does not.
	RequeueAfter time.Duration
}

// updateUnit is what an update replaces: a pod, or a replica of a scaling group or a set.
type updateUnit struct {
	// at is its position in the facts, index its index, and name what Progress.Selected says of it.
	at, index int
	name      string
	// outdated: it is of an earlier template than that of the target. unknown: part of it may be. held: the update must
	// not reach it. leaving: it is being deleted or replaced.
	outdated, unknown, held, leaving bool
	// bound: a pod of it has a node. ready: it serves. available: it certainly does, and has for minReadySeconds.
	bound, ready, available bool
	// silence is why it is not known whether the unit serves, because nodes do not answer. The zero value: it is known.
	silence Silence
	// settles is when a unit that is not bound is taken for one that does not fit. Zero: never.
	settles time.Time
}

// isUnfit reports whether the unit does not fit.
func (u updateUnit) isUnfit(now time.Time) bool {
	return !u.bound && !u.settles.IsZero() && !now.Before(u.settles)
}

// isSilent reports whether it is not known whether the unit serves.
func (u updateUnit) isSilent() bool { return u.silence.IsSilent() }

// unitKind is what is particular to the units of an update.
type unitKind interface {
	// compare compares units of an earlier template by the order in which they are replaced.
	compare(a, b updateUnit) int
	// inFlight returns what the selected unit waits for until its replacement is available.
	inFlight(selected string, now time.Time) flight
	// describeOld says that n units are of an earlier template, that they stay, and that they wait for a turn; the last
	// is "" for an update that waits for none.
	describeOld(n int) (are, stay, awaitTurn string)
	// unhealthy says what is wrong with units of the target; those that the update made are the first.
	unhealthy(units []updateUnit) UpdateState
	// remains returns what an update waits for that replaces no further unit. No reason: for none that exists.
	remains(c rolloutCount) UpdateState
	// tooFew says how many units are available, and what the first other one waits for.
	tooFew(available int32, now time.Time) UpdateState
}

// flight is the state of the unit in flight.
type flight struct {
	// waits is what its replacement waits for. No reason: it is available, or no longer desired. isRecorded: the unit
	// was only recorded, and not deleted yet.
	waits      UpdateState
	isRecorded bool
	// replacement is its name. It may be of a template between the selected unit's and the target.
	replacement string
	// ripens: it waits for minReadySeconds, or for an object that tells itself that it has stalled.
	ripens bool
}

// rollout is an update of units of any kind.
type rollout struct {
	Update
	kind unitKind
	// noun is what a unit is called, parts what its states come from.
	noun, parts string
	// units are those that exist. hidden: there may be others.
	units  []updateUnit
	hidden bool
	// oneByOne: also units that do not serve are replaced one after the other.
	oneByOne bool
	// rejected is why the API server rejects the target, "": it does not.
	rejected string
	// made are the indices of units that this pass creates from the template of the target. progressed: a part of a
	// unit has become one of the target.
	made       []int
	progressed bool
	// ripeAfter is when the first unit has been ready for minReadySeconds, 0: an event tells.
	ripeAfter time.Duration
}

// rolloutDecision is the decision how a rollout continues.
type rolloutDecision struct {
	UpdateDecision
	// replace are the units to replace.
	replace []updateUnit
	// isIdle: the update has nothing to do, or no turn. isBlocked: not even a unit that does not serve is replaced.
	isIdle, isBlocked bool
	// flight is about the unit in flight.
	flight flight
}

// rolloutCount divides the units of an update.
type rolloutCount struct {
	// outdated are those of an earlier template, besides leaving and held ones, in the order in which they are
	// replaced; updated are those of the target.
	outdated, updated []updateUnit
	// held, leaving and unknown count units. available and bound count those that are not leaving, missing those that
	// are wanted and not known to exist.
	held, leaving, unknown, missing int
	available, bound                int32
	// isOutdated: one that may be leaving is of an earlier template. isUnknown: not all units are known. ripening: one
	// is ready and not available.
	isOutdated, isUnknown, ripening bool
	// are, stay and awaitTurn describe outdated and held units.
	are, stay, awaitTurn string

	// unhealthy are those of the target that are not available, except those that do not fit. made is the number of
	// those of them that the update has made, which are the first. ripe: one is ready. unready: a bound one is not.
	// settles is when the first of them does not fit, zero: there is none.
	unhealthy     []updateUnit
	made          int
	ripe, unready bool
	settles       time.Time
}

func (r rollout) count() rolloutCount {
	var c rolloutCount
	for _, u := range r.units {
		c.isOutdated = c.isOutdated || u.outdated
		if u.leaving {
			c.leaving++
			continue
		}
		if u.available {
			c.available++
		}
		if u.bound {
			c.bound++
		}
		if u.unknown {
			c.unknown++
		}
		c.ripening = c.ripening || u.ready && !u.available
		switch {
		case u.outdated && u.held:
			c.held++
		case u.outdated:
			c.outdated = append(c.outdated, u)
		case !u.unknown:
			c.updated = append(c.updated, u)
		}
	}
	c.isUnknown = c.unknown > 0 || r.hidden
	c.missing = int(r.Wanted) - len(c.outdated) - c.held - len(c.updated)
	c.are, c.stay, c.awaitTurn = r.kind.describeOld(len(c.outdated) + c.held)
	slices.SortFunc(c.outdated, r.kind.compare)
	return c
}

// lookBack finds what is wrong with units of the target.
func (c *rolloutCount) lookBack(p *Progress, now time.Time) {
	var others []updateUnit
	for _, u := range c.updated {
		if u.available || u.isUnfit(now) {
			continue
		}
		if !u.bound && !u.settles.IsZero() && (c.settles.IsZero() || u.settles.Before(c.settles)) {
			c.settles = u.settles
		}
		c.ripe, c.unready = c.ripe || u.ready, c.unready || u.bound && !u.ready
		if p.Reached.Has(u.index) {
			c.unhealthy = append(c.unhealthy, u)
		} else {
			others = append(others, u)
		}
	}
	c.made = len(c.unhealthy)
	c.unhealthy = append(c.unhealthy, others...)
}

// decide returns how an update continues. Source: Rolling Update, "Order in which resources are selected for update"
// and "When Updates Are Considered Complete"; GREP-291, "OnDelete Strategy"; docs/decisions, U2 to U6, U9.
//
//   - Under OnDelete nothing is replaced. An update begins and ends at the same time; one that was in progress ends.
//   - In its turn, units that do not serve are replaced immediately, except while the update is paused, a unit that it
//     has made is not available, or the replacement of the one in flight has no node or is not ready. One of which it
//     is not known whether it serves, because nodes do not answer, stays until it is.
//   - The next unit that serves is replaced when the one in flight and all units of the target are available, all that
//     the update has reached exist, and MinAvailable others are available, or all others if every unit is needed.
//   - A unit of the target that has had no node for unboundGrace does not fit, and is not waited for.
//   - The update is complete when no unit of an earlier template exists, all desired units do, and those of the target
//     are available. If none is bound, it is complete without MinAvailable available ones.
//   - A unit in flight stays in flight when the target changes or the turn is lost.
//   - While units are unknown, none that serves is replaced, and the update is not complete.
func (r rollout) decide(now time.Time) rolloutDecision {
	c := r.count()
	d := rolloutDecision{UpdateDecision: UpdateDecision{Progress: r.Progress, Outdated: c.isOutdated,
		Current: !c.isOutdated && !c.isUnknown && c.leaving == 0}}
	if d.isIdle = r.decideIdle(&d, c, now); !d.isIdle {
		r.proceed(&d, c, now)
	}
	d.Suspends, _ = d.Progress.suspends(r.StalledAfter, now)
	return d
}

func (r rollout) complete() UpdateState {
	return UpdateState{UpdateComplete, "all " + r.noun + "s match the current template"}
}

// decideIdle decides an update that may replace nothing, and reports whether it is one.
func (r rollout) decideIdle(d *rolloutDecision, c rolloutCount, now time.Time) bool {
	p, isOld := r.Progress, len(c.outdated)+c.held > 0
	switch {
	case r.OnDelete:
		d.Progress = p.onDelete(r.Target, isOld, now)
		if isOld {
			d.State = UpdateState{UpdateOnDelete, c.stay}
		} else if !c.isUnknown {
			d.State = r.complete()
		}
	case c.isUnknown && !p.Open(): // the deletion will change this in a moment
	case isOld && !r.Turn:
		if p.Open() && p.InFlight() {
			d.flight = r.kind.inFlight(p.Selected, now)
		}
		switch {
		case d.flight.waits.Reason != "" && !d.flight.isRecorded:
			d.State = d.flight.waits
		case c.awaitTurn == "", p != nil && !p.Open() && p.Target == r.Target:
			d.State = UpdateState{UpdateDeferred, c.stay + ", or the template changes again"}
		default:
			if p.Open() { // the replica of the set that was being updated has lost its turn
				d.Progress = nil
			}
			d.State = UpdateState{UpdateWaitsForTurn, c.awaitTurn}
		}
		d.State, d.RequeueAfter = d.State.stalled(d.Progress, r.StalledAfter, now)
	case !isOld && !p.Open():
		d.State = r.complete()
	default:
		return false
	}
	return true
}

// proceed decides an update in progress.
func (r rollout) proceed(d *rolloutDecision, c rolloutCount, now time.Time) {
	p := r.Progress.towards(r.Target, r.Followed, now)
	d.Progress = p
	p.recordPause(r.Paused, now)
	p.recordReached(r.made...)
	if r.progressed {
		p.LastProgress = now
	}
	if p.InFlight() {
		if d.flight = r.kind.inFlight(p.Selected, now); d.flight.waits.Reason == "" {
			p.complete(now)
		}
	}
	if r.rejected != "" && (len(c.outdated) > 0 || c.isUnknown) {
		p.countRest(r.StalledAfter, now)
		d.State, d.RequeueAfter = UpdateState{UpdateTemplateRejected, r.rejected}, RetryRejected
		return
	}
	if c.missing <= 0 {
		p.Reached = p.Reached.presentIn(r.units) // what was scaled in is forgotten
	}
	c.lookBack(p, now)
	waits := d.flight.waits.Reason
	d.isBlocked = r.Paused || c.made > 0 || waits == UpdateWaitsForCapacity || waits == UpdateWaitsForReadiness
	next := r.selectUnits(d, c)
	if d.State = r.obstacle(d, c, next, now); d.State.Reason == "" && next != nil {
		d.State = UpdateState{Updating, "replacing " + r.noun + " " + next.name + "; " + c.are}
		if r.oneByOne {
			d.State.Message = "updating " + r.noun + " " + next.name + " since " + Timestamp(now) + "; " + c.are
		}
		if p.Selected != next.name {
			p.selectUnit(next.name, now)
		}
		d.replace = append(d.replace, *next)
	} else if d.State.Reason == "" {
		p.endUpdate(now)
		d.State = r.complete()
	}
	var replaced []int
	for _, u := range d.replace {
		replaced = append(replaced, u.index)
	}
	p.recordReached(replaced...)
	d.Current = d.Current && !p.Open()
	r.checkStall(d, c, now)
}

// selectUnits selects the units that are replaced because they do not serve, and returns the next one that is to be
// replaced unless something is against it, nil: there is none.
func (r rollout) selectUnits(d *rolloutDecision, c rolloutCount) (next *updateUnit) {
	for i := range c.outdated {
		switch u := &c.outdated[i]; {
		case u.isSilent():
		case r.oneByOne: // while an updated one is not available, only what is down already
			if next == nil || len(c.unhealthy) > 0 && next.ready && !u.ready {
				next = u
			}
		case u.ready && d.flight.isRecorded:
			if u.name == d.Progress.Selected {
				next = u
			}
		case u.ready:
			next = cmp.Or(next, u)
		case !d.isBlocked || u.name == d.flight.replacement:
			d.replace = append(d.replace, *u)
		}
	}
	return next
}

// obstacle returns what is against replacing the next unit, if there is one, or against ending the update. No reason:
// nothing.
func (r rollout) obstacle(d *rolloutDecision, c rolloutCount, next *updateUnit, now time.Time) UpdateState {
	// needed: one more unit that serves may be replaced only if the others suffice, or all units are needed and all
	// others are available. Source: docs/decisions, U2.
	others, needed := c.available, min(r.MinAvailable, max(r.Wanted-1, 0))
	if next != nil && next.available {
		others--
	}
	isPaused, paused := r.Paused && len(c.outdated) > 0, UpdateState{UpdatePaused, "the update is paused; " + c.are}
	lacking := d.Progress.lacking(slices.Concat(c.updated, c.outdated), c.missing) // a recorded one may not be deleted yet
	switch {
	case d.flight.waits.Reason != "" && !(d.flight.isRecorded && next != nil):
		return d.flight.waits
	case c.unknown > 0:
		return UpdateState{Updating, "the statuses of " + r.parts + " do not describe the current template yet"}
	case isPaused && r.oneByOne:
		return paused
	case len(c.unhealthy) > 0 && (c.made > 0 || len(c.outdated) == 0 || next != nil && next.ready):
		return r.kind.unhealthy(c.unhealthy)
	case isPaused:
		return paused
	case next != nil && lacking > 0:
		return UpdateState{UpdateWaitsForCreation, message.CountAre(lacking, "updated "+r.noun) + " not created yet"}
	case next != nil && others < needed:
		few := r.kind.tooFew(c.available, now).Message
		return UpdateState{UpdateWaitsForMinAvailable, "no ready " + r.noun + " is replaced, because too few others are available: " + few}
	case next != nil:
		return UpdateState{}
	}
	silent, known := slices.IndexFunc(c.outdated, updateUnit.isSilent), c
	known.outdated = slices.DeleteFunc(slices.Clone(c.outdated), updateUnit.isSilent)
	switch remains := r.kind.remains(known); {
	case remains.Reason != "":
		return remains
	case silent >= 0:
		u := c.outdated[silent]
		return UpdateState{UpdateWaitsForReadiness,
			fmt.Sprintf("%s %s of an earlier template stays while it is not known whether it runs: %s", r.noun, u.name, u.silence)}
	case c.missing > 0:
		return UpdateState{UpdateWaitsForCreation, message.CountAre(c.missing, r.noun) + " not created yet"}
	case c.bound > 0 && c.available < r.MinAvailable:
		return r.kind.tooFew(c.available, now)
	}
	return UpdateState{}
}

// checkStall sets the state of an update that may have stalled, and when the decision changes without an event. An
// update that only waits for minReadySeconds has not stalled.
func (r rollout) checkStall(d *rolloutDecision, c rolloutCount, now time.Time) {
	d.RequeueAfter = r.ripeAfter
	ripens := d.flight.ripens || c.ripening && d.State.Reason == UpdateWaitsForMinAvailable || c.ripe && !c.unready
	if !ripens {
		d.State, d.RequeueAfter = d.State.stalled(d.Progress, r.StalledAfter, now)
	}
	if d.Progress.Open() && (r.Paused || d.State.Reason == UpdatePartitionReached) {
		d.RequeueAfter = Sooner(d.RequeueAfter, d.Progress.countRest(r.StalledAfter, now))
	}
	if is, until := d.Progress.suspends(r.StalledAfter, now); is && !until.IsZero() {
		d.RequeueAfter = Sooner(d.RequeueAfter, delayUntil(until, now))
	}
	if !c.settles.IsZero() {
		d.RequeueAfter = Sooner(d.RequeueAfter, delayUntil(c.settles, now))
	}
}
