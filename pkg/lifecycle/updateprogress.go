// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Target identifies the revision and template that an update rolls out.
type Target struct {
	// Generation is the hash of the PodCliqueSet's revision.
	Generation string
	// Template is the hash of the clique's template in that revision; "" for sets and scaling groups.
	Template string
}

// Settle returns the indices of the units that exist or are to come back, given the recorded ones, those that exist,
// and the number that is wanted: what was scaled in is forgotten when nothing is missing. A unit that is created at
// another index is scaled out. Not known: nothing is recorded before all units existed once. Source: docs/decisions,
// U9.
func Settle(recorded IndexSet, known bool, present IndexSet, wanted int) IndexSet {
	settled := present
	if present.Len() < wanted {
		settled = recorded.Union(present)
	}
	if !known && present.Len() < wanted || len(settled.String()) > MaxIndicesLength {
		return recorded
	}
	return settled
}

// AwaitsTurn reports whether an object is told a revision that not all of its units follow before its turn has come,
// because it is scaled out during an update: its other units keep their template. Not so after an update under
// OnDelete. p may be nil.
func (p *Progress) AwaitsTurn(generation, followed string, turn bool) bool {
	return !turn && !p.Open() && followed != "" && followed != generation && (p == nil || p.Target.Generation != generation)
}

// Progress is the progress of an update of a PodClique, a PodCliqueScalingGroup or a PodCliqueSet, as recorded in its
// status. nil: there was no update.
type Progress struct {
	// Target is what the update rolls out.
	Target Target
	// StartedAt and EndedAt are when the update began and ended. EndedAt is zero while it is in progress.
	StartedAt, EndedAt time.Time
	// LastProgress is when the update last made progress.
	LastProgress time.Time
	// PausedSince is since when the update is paused. Zero: it is not, or it has ended; not recorded for a set.
	PausedSince time.Time
	// Selected is the ready unit in flight: it was deleted, or, of a set, may be changed, and its replacement has not
	// become available yet. It is the name of a pod, or the index of a replica as text. "": none is in flight.
	// Completed are the units whose replacements became available, in the order of selection, at most maxCompleted; not
	// recorded for a set.
	Selected  string
	Completed []string
	// SelectedAt is when Selected was selected; recorded for a set only.
	SelectedAt time.Time
	// Reached are the indices of the units that the update has made or will make: it has selected or deleted them, or
	// they were created from the template of the target. Other units are recreated from their previous template. Empty
	// under OnDelete.
	Reached IndexSet
	// Previous is the hash of the revision with that template, "" if it is not known.
	Previous string
}

// Templates contains the hashes of the template of each clique of a revision, by the name of the clique. A clique can
// have several hashes with the same meaning.
type Templates map[string][]string

// IsOld reports whether a hash is that of another template of the clique. It returns false if the hash is unknown ("")
// or the revision has no such clique.
func (t Templates) IsOld(clique, hash string) bool {
	hashes, ok := t[clique]
	return ok && hash != "" && !slices.Contains(hashes, hash)
}

// maxCompleted is the maximum number of completed units in a status.
const maxCompleted = 64

// Open reports whether the update is in progress.
func (p *Progress) Open() bool { return p != nil && p.EndedAt.IsZero() }

// InFlight reports whether a ready unit was deleted whose replacement has not become ready yet.
func (p *Progress) InFlight() bool {
	// An earlier version left Selected in the status after the replacement had become ready.
	return p != nil && p.Selected != "" && (len(p.Completed) == 0 || p.Completed[len(p.Completed)-1] != p.Selected)
}

// recordReached records that the update has reached the units with these indices. Negative ones are ignored.
func (p *Progress) recordReached(indices ...int) {
	if reached := p.Reached.Union(Indices(indices...)); len(reached.String()) <= MaxIndicesLength {
		p.Reached = reached
	}
}

// NewlyReaches reports whether the update has reached the unit with an index, and the recorded progress does not say so
// yet. Both may be nil.
func (p *Progress) NewlyReaches(index int, recorded *Progress) bool {
	return p.Open() && p.Reached.Has(index) && !(recorded.Open() && recorded.Target == p.Target && recorded.Reached.Has(index))
}

// towards returns the progress of an update to the target that continues from p. A unit that is in flight stays in
// flight. followed is the hash of the revision that all units followed last.
func (p *Progress) towards(target Target, followed string, now time.Time) *Progress {
	if p.Open() && p.Target == target {
		next := *p
		return &next
	}
	next := &Progress{Target: target, StartedAt: now, LastProgress: now, Previous: p.PreviousOr(followed)}
	if p.Open() && p.InFlight() {
		next.Selected, next.SelectedAt = p.Selected, p.SelectedAt
	}
	return next
}

// PreviousOr returns the hash of the revision with which units are recreated that an update has not reached. followed
// is that of the revision that all units followed last: it applies if no update is in progress, or an earlier version
// began it and did not record the hash. p may be nil.
func (p *Progress) PreviousOr(followed string) string {
	if !p.Open() {
		return followed
	}
	return cmp.Or(p.Previous, followed)
}

// countRest counts the time in which an update must not go on, because it is paused or its template is rejected, as
// progress, so that it has not stalled when it goes on. It returns when it must be called again, 0: it need not.
func (p *Progress) countRest(limit time.Duration, now time.Time) time.Duration {
	if limit <= 0 {
		return 0
	}
	if now.Sub(p.LastProgress) >= limit/2 {
		p.LastProgress = now
	}
	return delayUntil(p.LastProgress.Add(limit/2), now)
}

// recordPause records since when the update is paused.
func (p *Progress) recordPause(paused bool, now time.Time) {
	switch {
	case !paused || !p.Open():
		p.PausedSince = time.Time{}
	case p.PausedSince.IsZero():
		p.PausedSince = wholeSecond(now)
	}
}

// suspends reports whether the update suspends the judgement of the minimum: while it is in progress, but not after it
// has been paused for limit, because nothing is replaced then. until is when that ends, zero: not by itself. A limit
// that is not positive means never. p may be nil. Source: docs/decisions, T6.
func (p *Progress) suspends(limit time.Duration, now time.Time) (is bool, until time.Time) {
	if !p.Open() || p.PausedSince.IsZero() || limit <= 0 {
		return p.Open(), time.Time{}
	}
	until = p.PausedSince.Add(limit)
	return now.Before(until), until
}

// unboundGrace is how long a unit of the target may have no node before it is taken for one that does not fit. A unit
// that does not fit does not keep an update from going on; one that is about to be bound does.
const unboundGrace = 30 * time.Second

// lacking returns how many of the reached units are missing, given those that exist and the number of units that are
// wanted and do not exist.
func (p *Progress) lacking(existing []updateUnit, missing int) int {
	return max(0, min(missing, p.Reached.Len()-p.Reached.presentIn(existing).Len()))
}

// onDelete returns the progress under OnDelete: an update in progress ends, no unit is selected, and none was; an
// update to another target begins and ends at the same time if some pods were created from an earlier template.
func (p *Progress) onDelete(target Target, outdated bool, now time.Time) *Progress {
	switch {
	case outdated && (p == nil || p.Target != target):
		p = &Progress{Target: target, StartedAt: now}
	case p.Open():
		next := *p
		next.Completed, next.Reached, next.Previous = nil, IndexSet{}, ""
		p = &next
	case p != nil && len(p.Completed) > 0: // of an earlier update by RollingRecreate
		next := *p
		next.Completed = nil
		return &next
	default:
		return p
	}
	p.endUpdate(now)
	return p
}

// complete records that the replacement of the selected unit is ready.
func (p *Progress) complete(now time.Time) {
	completed := append(slices.Clone(p.Completed), p.Selected)
	p.Completed, p.Selected, p.SelectedAt = completed[max(0, len(completed)-maxCompleted):], "", time.Time{}
	p.LastProgress = now
}

// selectUnit records that a ready unit is selected for deletion.
func (p *Progress) selectUnit(unit string, now time.Time) {
	p.Completed = slices.DeleteFunc(slices.Clone(p.Completed), func(done string) bool { return done == unit })
	p.Selected, p.SelectedAt, p.LastProgress = unit, now, now
}

// endUpdate records that the update has ended.
func (p *Progress) endUpdate(now time.Time) {
	p.Selected, p.SelectedAt, p.PausedSince, p.EndedAt, p.LastProgress = "", time.Time{}, time.Time{}, now, now
}

// UpdateReason is the state of an update in one word, with the values of the API: the reasons of
// v1alpha1.ConditionProgressing.
type UpdateReason string

// Reasons of UpdateState.
const (
	UpdateComplete             UpdateReason = "UpdateComplete"
	UpdateOnDelete             UpdateReason = "OnDelete"
	UpdateDeferred             UpdateReason = "UpdateDeferred"
	UpdatePaused               UpdateReason = "UpdatePaused"
	UpdatePartitionReached     UpdateReason = "PartitionReached"
	UpdateWaitsForTurn         UpdateReason = "WaitingForTurn"
	Updating                   UpdateReason = "Updating"
	UpdateWaitsForDeletion     UpdateReason = "WaitingForDeletion"
	UpdateWaitsForCreation     UpdateReason = "WaitingForCreation"
	UpdateWaitsForCapacity     UpdateReason = "WaitingForCapacity"
	UpdateWaitsForReadiness    UpdateReason = "WaitingForReadiness"
	UpdateWaitsForMinAvailable UpdateReason = "WaitingForMinAvailable"
	UpdateTemplateRejected     UpdateReason = "TemplateRejected"
	UpdateStalled              UpdateReason = "UpdateStalled"
)

// UpdateState is the content of the condition Progressing. The zero value: nothing new is known.
type UpdateState struct {
	Reason UpdateReason
	// Message is for users. It does not change as long as the state does not.
	Message string
}

// Progressing reports whether the condition is True.
func (s UpdateState) Progressing() bool {
	switch s.Reason {
	case UpdateComplete, UpdateOnDelete, UpdateDeferred, UpdatePaused, UpdatePartitionReached, UpdateWaitsForTurn:
		return false
	}
	return true
}

// IsWait reports whether the reason is one of an update that goes on by itself, such as WaitingForReadiness.
func (r UpdateReason) IsWait() bool {
	return UpdateState{Reason: r}.Progressing() && r != UpdateTemplateRejected && r != UpdateStalled
}

// stalled returns the state of an update in progress, which becomes Stalled after limit without progress, and the time
// until then; 0: it has stalled, or never will. A limit that is not positive means never.
func (s UpdateState) stalled(p *Progress, limit time.Duration, now time.Time) (UpdateState, time.Duration) {
	if !p.Open() || limit <= 0 || !s.Progressing() {
		return s, 0
	}
	if left := p.LastProgress.Add(limit).Sub(now); left > 0 {
		return s, left
	}
	return UpdateState{UpdateStalled, fmt.Sprintf("no progress since %s; %s: %s", Timestamp(p.LastProgress), s.Reason, s.Message)}, 0
}
