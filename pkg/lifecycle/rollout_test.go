// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// plain are units that are replaced by their indices. flights are the states of those in flight, by name.
type plain struct{ flights map[string]flight }

func (plain) compare(a, b updateUnit) int                    { return cmp.Compare(a.index, b.index) }
func (k plain) inFlight(selected string, _ time.Time) flight { return k.flights[selected] }
func (plain) describeOld(int) (are, stay, awaitTurn string)  { return "old", "stay", "await" }
func (plain) unhealthy(units []updateUnit) UpdateState {
	return waitsFor(UpdateWaitsForReadiness, units[0].name)
}
func (plain) tooFew(available int32, _ time.Time) UpdateState {
	return waitsFor(UpdateWaitsForReadiness, strconv.Itoa(int(available)))
}
func waitsFor(reason UpdateReason, message string) UpdateState { return UpdateState{reason, message} }
func (plain) remains(c rolloutCount) (state UpdateState) {
	if c.held > 0 {
		state.Reason = UpdatePartitionReached
	} else if len(c.outdated)+c.leaving > 0 {
		state.Reason = UpdateWaitsForDeletion
	}
	return state
}

// unitsOf returns units from a text such as "old, new down": old or new, and what else holds for them.
func unitsOf(text string) []updateUnit {
	var units []updateUnit
	for i, words := range strings.Split(text, ", ") {
		u := updateUnit{index: i, name: strconv.Itoa(i), bound: true, ready: true, available: true}
		for word := range strings.FieldsSeq(words) {
			switch word {
			case "old":
				u.outdated = true
			case "unknown":
				u.unknown = true
			case "held":
				u.held = true
			case "leaving":
				u.leaving = true
			case "ripe": // ready, and not for minReadySeconds
				u.available = false
			case "down":
				u.ready, u.available = false, false
			case "pending", "unfit": // without a node, just created or for long
				u.bound, u.ready, u.available, u.settles = false, false, false, noon
				if word == "pending" {
					u.settles = noon.Add(10 * time.Second)
				}
			}
		}
		units = append(units, u)
	}
	return units
}

// TestRollout: which units an update replaces, and what it waits for. Its units have begun to change a minute ago.
func TestRollout(t *testing.T) {
	t.Parallel()
	type change = func(*rollout)
	target := Target{Generation: "b"}
	needs := func(n int32) change { return func(r *rollout) { r.MinAvailable = n } }
	wanted := func(n int32) change { return func(r *rollout) { r.Wanted = n } }
	reached := func(indices ...int) change { return func(r *rollout) { r.Progress.Reached = Indices(indices...) } }
	inFlight := func(unit string, f flight) change {
		return func(r *rollout) { r.Progress.Selected, r.kind = unit, plain{map[string]flight{unit: f}} }
	}
	waits := func(reason UpdateReason) flight { return flight{waits: waitsFor(reason, "")} }
	paused := func(r *rollout) { r.Paused = true }
	noTurn := func(r *rollout) { r.Turn = false }
	onDelete := func(r *rollout) { r.OnDelete, r.Turn = true, false }
	oneByOne := func(r *rollout) { r.oneByOne = true }
	ended := func(r *rollout) { r.Progress.EndedAt = noon }
	never := func(r *rollout) { r.Progress = nil }
	edited := func(r *rollout) { r.Target.Generation = "c" }
	stallsAfter := func(d time.Duration) change { return func(r *rollout) { r.StalledAfter = d } }
	for _, tc := range []struct {
		name, units string
		changes     []change
		replaces    string
		reason      UpdateReason
		selected    string        // "ended", "none": there is no progress
		after       time.Duration // when it changes without an event
	}{
		{"all of the target: the end", "new, new", nil, "", UpdateComplete, "ended", 0},
		{"nothing was ever updated", "new, new", []change{never}, "", UpdateComplete, "none", 0},
		{"an update begins", "old, new", []change{never}, "0", Updating, "0", 0},
		{"one that ended stays ended", "new, new down", []change{ended}, "", UpdateComplete, "ended", 0},

		// The order and the minimum.
		{"what is down goes at once, below the minimum too", "old down, old pending, old", []change{needs(2)}, "0 1", UpdateWaitsForMinAvailable, "", 0},
		{"and with it the next that serves", "old down, old, old", []change{needs(1)}, "0 1", Updating, "1", 0},
		{"all are needed: all others must be available", "old, new, new", []change{needs(3)}, "0", Updating, "0", 0},
		{"one of them is not", "old, old ripe, new", []change{needs(3)}, "", UpdateWaitsForMinAvailable, "", 0},
		{"what is ready serves", "old ripe, old, old", []change{needs(2)}, "0", Updating, "0", 0},
		{"only what is down is left", "old down, new", nil, "0", UpdateWaitsForDeletion, "", 0},

		// It looks back.
		{"one of the target is not available", "old, new down", nil, "", UpdateWaitsForReadiness, "", 0},
		{"it is not of this update: what is down goes", "old down, old, new down", nil, "0", UpdateWaitsForReadiness, "", 0},
		{"it is: nothing goes", "old down, old, new down", []change{reached(2)}, "", UpdateWaitsForReadiness, "", 0},
		{"one may be about to be bound", "old, new pending", nil, "", UpdateWaitsForReadiness, "", 10 * time.Second},
		{"one does not fit", "old, new unfit", nil, "0", Updating, "0", 0},
		{"one that the update has reached is gone", "old, old", []change{wanted(3), reached(2)}, "", UpdateWaitsForCreation, "", 0},
		{"one that it has not reached is gone", "old, old", []change{wanted(3)}, "0", Updating, "0", 0},
		{"the last ones are down", "new, new down", nil, "", UpdateWaitsForReadiness, "", 0},

		// One is in flight.
		{"it terminates: what is down goes", "old down, old", []change{inFlight("2", waits(UpdateWaitsForDeletion))}, "0", UpdateWaitsForDeletion, "2", 0},
		{"it is not ready: nothing goes", "old down, old", []change{inFlight("2", waits(UpdateWaitsForReadiness))}, "", UpdateWaitsForReadiness, "2", 0},
		{"it has no node: nothing goes", "old down, old", []change{inFlight("2", waits(UpdateWaitsForCapacity))}, "", UpdateWaitsForCapacity, "2", 0},
		{"its replacement is of a template in between, and down", "old down, old down",
			[]change{inFlight("2", flight{waits: waitsFor(UpdateWaitsForReadiness, ""), replacement: "1"})}, "1", UpdateWaitsForReadiness, "2", 0},
		{"it was not deleted yet", "old, old", []change{inFlight("1", flight{waits: waitsFor(Updating, ""), isRecorded: true})}, "1", Updating, "1", 0},
		{"it was not deleted yet, and one that the update has not reached is gone", "old, old",
			[]change{wanted(3), reached(1), inFlight("1", flight{waits: waitsFor(Updating, ""), isRecorded: true})}, "1", Updating, "1", 0},
		{"what was down and not deleted yet serves again, and another one is gone", "old, new", []change{wanted(3), reached(0, 1)}, "0", Updating, "0", 0},
		{"it was not deleted yet, and may not be now", "old, old, old down",
			[]change{needs(2), inFlight("1", flight{waits: waitsFor(Updating, ""), isRecorded: true})}, "2", UpdateWaitsForMinAvailable, "1", 0},
		{"it is available: the next", "old, new", []change{inFlight("1", flight{})}, "0", Updating, "0", 0},
		{"the target changes: it stays in flight", "old, old", []change{edited, inFlight("2", waits(UpdateWaitsForReadiness))}, "", UpdateWaitsForReadiness, "2", 0},

		// The end.
		{"one leaves", "new, old leaving", nil, "", UpdateWaitsForDeletion, "", 0},
		{"one is missing", "new", []change{wanted(2)}, "", UpdateWaitsForCreation, "", 0},
		{"too few are available", "new, new unfit", []change{needs(2)}, "", UpdateWaitsForReadiness, "", 0},
		{"none fits", "new unfit, new unfit", []change{needs(2)}, "", UpdateComplete, "ended", 0},
		{"one is unknown: what is down goes", "old down, old, unknown", nil, "0", Updating, "", 0},
		{"one is unknown, and no update: no state", "old, unknown", []change{ended}, "", "", "ended", 0},
		{"others may be hidden", "new", []change{never, func(r *rollout) { r.hidden = true }}, "", "", "none", 0},

		// Paused, and the turn.
		{"paused", "old down, old", []change{paused}, "", UpdatePaused, "", 0},
		{"paused: what is in flight is completed", "old, old", []change{paused, inFlight("2", waits(UpdateWaitsForReadiness))}, "", UpdateWaitsForReadiness, "2", 0},
		{"paused, and nothing is left", "new, new", []change{paused}, "", UpdateComplete, "ended", 0},
		{"no turn", "old down, old", []change{noTurn, never}, "", UpdateWaitsForTurn, "none", 0},
		{"the turn is lost", "old, old", []change{noTurn}, "", UpdateWaitsForTurn, "none", 0},
		{"the turn is lost before one was deleted", "old, old",
			[]change{noTurn, inFlight("1", flight{waits: waitsFor(Updating, ""), isRecorded: true})}, "", UpdateWaitsForTurn, "none", 0},
		{"the turn is lost with one in flight", "old, old", []change{noTurn, inFlight("2", waits(UpdateWaitsForCapacity))}, "", UpdateWaitsForCapacity, "2", 0},

		// OnDelete.
		{"OnDelete: it begins and ends", "old, new", []change{onDelete, never}, "", UpdateOnDelete, "ended", 0},
		{"OnDelete: one in progress ends", "old down, old", []change{onDelete, inFlight("2", waits(UpdateWaitsForDeletion))}, "", UpdateOnDelete, "ended", 0},
		{"OnDelete: all were deleted", "new, new", []change{onDelete, ended}, "", UpdateComplete, "ended", 0},
		{"back to RollingRecreate", "old, new", []change{noTurn, ended}, "", UpdateDeferred, "ended", 0},
		{"and the next edit", "old, new", []change{edited, ended}, "0", Updating, "0", 0},

		// One by one.
		{"of those that are down the first", "old down, old down, old", []change{oneByOne}, "0", Updating, "0", 0},
		{"one in flight: none", "old down, old", []change{oneByOne, inFlight("2", waits(Updating))}, "", Updating, "2", 0},
		{"one of the target is down: only what is down already", "old, old down, new down", []change{oneByOne}, "1", Updating, "1", 0},
		{"the update has made it", "old, old down, new down", []change{oneByOne, reached(2)}, "", UpdateWaitsForReadiness, "", 0},
		{"paused is said first", "old, new down", []change{oneByOne, paused, reached(1)}, "", UpdatePaused, "", 0},
		{"what it must not reach stays", "old held, new", []change{oneByOne}, "", UpdatePartitionReached, "", 0},
		{"and the others go", "old held, old, new", []change{oneByOne}, "1", Updating, "1", 0},
		{"the template is rejected", "old down, old", []change{func(r *rollout) { r.rejected = "no" }}, "", UpdateTemplateRejected, "", RetryRejected},

		// Stalled.
		{"it will stall", "old, new down", []change{stallsAfter(90 * time.Second)}, "", UpdateWaitsForReadiness, "", 30 * time.Second},
		{"it has stalled", "old, new down", []change{stallsAfter(time.Minute)}, "", UpdateStalled, "", 0},
		{"minReadySeconds is no stall", "old, new ripe", []change{stallsAfter(time.Minute)}, "", UpdateWaitsForReadiness, "", 0},
		{"another one is down", "old, new ripe, new down", []change{stallsAfter(time.Minute)}, "", UpdateStalled, "", 0},
		{"a pause is none", "old, new", []change{paused, stallsAfter(time.Minute)}, "", UpdatePaused, "", 30 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			began := noon.Add(-time.Minute)
			r := rollout{Update: Update{Target: target, Turn: true, Progress: &Progress{Target: target, StartedAt: began, LastProgress: began}},
				kind: plain{}, noun: "unit", units: unitsOf(tc.units)}
			r.Wanted = int32(len(r.units))
			for _, change := range tc.changes {
				change(&r)
			}
			d := r.decide(noon)
			var replaces []string
			for _, u := range d.replace {
				replaces = append(replaces, u.name)
			}
			selected := "none"
			if d.Progress != nil {
				selected = d.Progress.Selected
				if !d.Progress.Open() {
					selected = "ended"
				}
			}
			got := fmt.Sprintf("replaces %q, %s, selected %q, after %s", strings.Join(replaces, " "), d.State.Reason, selected, d.RequeueAfter)
			if want := fmt.Sprintf("replaces %q, %s, selected %q, after %s", tc.replaces, tc.reason, tc.selected, tc.after); got != want {
				t.Errorf("%s (%s)\nwant %s", got, d.State.Message, want)
			}
			if isComplete := d.Current; isComplete != (tc.reason == UpdateComplete) {
				t.Errorf("current: %v", isComplete)
			}
			if d.Suspends != d.Progress.Open() {
				t.Errorf("suspends: %v", d.Suspends)
			}
			for _, u := range d.replace {
				if !d.Progress.Reached.Has(u.index) {
					t.Errorf("unit %s is replaced, and not reached: %s", u.name, d.Progress.Reached)
				}
			}
		})
	}
}
