package lifecycle

import (
	"fmt"
	"slices"
	"time"
)

// Target is what an update leads to.
type Target struct {
	// Generation is the hash of the PodCliqueSet's revision.
	Generation string
	// Template is the hash of the clique's template in that revision; "" for sets and scaling groups.
	Template string
}

// Progress is how far an update of a PodClique, a PodCliqueScalingGroup or a PodCliqueSet has come, as its status records it.
// nil: there was none.
type Progress struct {
	// Target is what the update leads to.
	Target Target
	// StartedAt and EndedAt are when it began and ended. EndedAt is zero while it is open.
	StartedAt, EndedAt time.Time
	// LastProgress is when something last became of it.
	LastProgress time.Time
	// Selected is the ready unit that was taken down last: the name of a pod, the index of a replica as text. "": none was.
	// Completed are those whose replacements are ready, in the order of selection, at most maxCompleted. While Selected is not
	// the last of them it is in flight.
	Selected  string
	Completed []string
}

// maxCompleted is how many units a status lists.
const maxCompleted = 64

// Open reports whether the update is under way.
func (p *Progress) Open() bool { return p != nil && p.EndedAt.IsZero() }

// InFlight reports whether a ready unit was taken down whose replacement has not been ready yet.
func (p *Progress) InFlight() bool {
	return p != nil && p.Selected != "" && (len(p.Completed) == 0 || p.Completed[len(p.Completed)-1] != p.Selected)
}

// towards returns the open progress that goes on from p to a target: with the unit that is in flight, which stays so.
func (p *Progress) towards(target Target, now time.Time) *Progress {
	if p.Open() && p.Target == target {
		next := *p
		return &next
	}
	next := &Progress{Target: target, StartedAt: now, LastProgress: now}
	if p.Open() && p.InFlight() {
		next.Selected = p.Selected
	}
	return next
}

// onDelete returns the progress under OnDelete: an update that is open ends, with nothing selected; one to another target
// begins and ends in one moment if something is of an earlier template.
func (p *Progress) onDelete(target Target, outdated bool, now time.Time) *Progress {
	switch {
	case outdated && (p == nil || p.Target != target):
		p = &Progress{Target: target, StartedAt: now}
	case p.Open():
		next := *p
		next.Selected, next.Completed = "", nil
		p = &next
	default:
		return p
	}
	p.end(now)
	return p
}

// withoutTurn returns the progress and the state of a PodClique or scaling group that has pods of an earlier template while its turn
// has not come, or is lost. A unit in flight is waited for; otherwise an open update is over. waitsFor returns what the replacement
// of a unit waits for; no reason, or Updating: the unit is not down. turn is the state of what waits for its turn, stays that of
// what keeps its pods, because the update to the target was one under OnDelete.
func (p *Progress) withoutTurn(target Target, waitsFor func(unit string) UpdateState, turn, stays UpdateState) (*Progress, UpdateState) {
	if p.Open() && p.InFlight() {
		if waits := waitsFor(p.Selected); waits.Reason != "" && waits.Reason != Updating {
			return p, waits
		}
	}
	switch {
	case p.Open():
		return nil, turn // what was being updated has another turn
	case p != nil && p.Target == target:
		return p, stays
	}
	return p, turn
}

// complete notes that the replacement of the selected unit is ready.
func (p *Progress) complete(now time.Time) {
	completed := append(slices.Clone(p.Completed), p.Selected)
	p.Completed = completed[max(0, len(completed)-maxCompleted):]
	p.LastProgress = now
}

// pick notes that a ready unit is taken down.
func (p *Progress) pick(unit string, now time.Time) {
	p.Completed = slices.DeleteFunc(slices.Clone(p.Completed), func(done string) bool { return done == unit })
	p.Selected, p.LastProgress = unit, now
}

// end notes that the update is over.
func (p *Progress) end(now time.Time) {
	p.EndedAt, p.LastProgress = now, now
}

// UpdateReason says in one word what has become of an update. The values are those of the API: the reasons of
// v1alpha1.ConditionProgressing.
type UpdateReason string

// Reasons of UpdateState.
const (
	UpdateComplete             UpdateReason = "UpdateComplete"
	UpdateOnDelete             UpdateReason = "OnDelete"
	UpdateWaitsForTurn         UpdateReason = "WaitingForTurn"
	Updating                   UpdateReason = "Updating"
	UpdateWaitsForDeletion     UpdateReason = "WaitingForDeletion"
	UpdateWaitsForCreation     UpdateReason = "WaitingForCreation"
	UpdateWaitsForCapacity     UpdateReason = "WaitingForCapacity"
	UpdateWaitsForReadiness    UpdateReason = "WaitingForReadiness"
	UpdateWaitsForMinAvailable UpdateReason = "WaitingForMinAvailable"
	UpdateStalled              UpdateReason = "UpdateStalled"
)

// UpdateState is what the condition Progressing says. The zero value: nothing new is known.
type UpdateState struct {
	Reason UpdateReason
	// Message is for users, the same as long as nothing changes.
	Message string
}

// Progressing reports whether the condition is True.
func (s UpdateState) Progressing() bool {
	switch s.Reason {
	case UpdateComplete, UpdateOnDelete, UpdateWaitsForTurn:
		return false
	}
	return true
}

// stalled returns the state of an open update, which is Stalled after a time without progress, and when it will be; 0: it is,
// or never will be. limit is that time; not positive: never.
func (s UpdateState) stalled(p *Progress, limit time.Duration, now time.Time) (UpdateState, time.Duration) {
	if !p.Open() || limit <= 0 || !s.Progressing() {
		return s, 0
	}
	if left := p.LastProgress.Add(limit).Sub(now); left > 0 {
		return s, left
	}
	return UpdateState{UpdateStalled, fmt.Sprintf("no progress since %s; %s: %s", Timestamp(p.LastProgress), s.Reason, s.Message)}, 0
}
