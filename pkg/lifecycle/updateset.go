// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// SetUpdate contains the facts that decide how an update of a PodCliqueSet continues, by RollingRecreate or OnDelete.
type SetUpdate struct {
	// Generation is the hash of the current revision.
	Generation string
	// OnDelete: the update strategy is OnDelete. Paused: no further replica is updated. Partition is the index of the first
	// replica that is updated.
	OnDelete, Paused bool
	Partition        int
	// Progress is the progress recorded in the status, without units; nil: the template has not changed yet.
	Progress *Progress
	// Current is the replica that is being updated, nil: none. CurrentSince is when its update began.
	Current      *int
	CurrentSince time.Time
	// Updated is the number of PodCliques and scaling groups that follow the revision according to the status.
	Updated int
	// Replicas are the desired replicas.
	Replicas []SetReplica
	// Waits contains the condition Progressing of the PodCliques and scaling groups of the current replica, by name.
	Waits map[string]UpdateState
	// Rejected is why the API server rejects pods of the revision, "": it does not, or that is unknown.
	Rejected string
	// StalledAfter is the time without progress after which an update has stalled. Not positive: never.
	StalledAfter time.Duration
}

// SetUpdateDecision is the decision how an update of a PodCliqueSet continues.
type SetUpdateDecision struct {
	// Progress, Current and CurrentSince are the values to record.
	Progress     *Progress
	Current      *int
	CurrentSince time.Time
	// Done is the replica whose update has completed since the last decision, nil: none.
	Done *int
	// Cliques and Groups are the names of the PodCliques and scaling groups of the current replica that follow the
	// revision, sorted.
	Cliques, Groups []string
	// UpdatedCliques, TotalCliques, UpdatedGroups and TotalGroups count standalone PodCliques and scaling groups of all
	// replicas.
	UpdatedCliques, TotalCliques, UpdatedGroups, TotalGroups int32
	State                                                    UpdateState
	RequeueAfter                                             time.Duration
}

// changes returns whether a PodClique or scaling group of the replica does not follow the revision yet, and whether
// this is known of all that are not being deleted.
func (r SetReplica) changes() (pending, known bool) {
	known = true
	for _, o := range r.objects() {
		if !o.terminating {
			known = known && (o.isHeld || o.knows)
			pending = pending || o.isHeld || o.knows && !o.follows
		}
	}
	return pending, known
}

// isHeld reports whether the group keeps an earlier revision, because the update has not reached it.
func (g ScalingGroup) isHeld(generation string) bool { return g.Old && g.Told != generation }

// hasScheduled reports whether a pod of a standalone clique, or the minimum of a replica of a scaling group, is scheduled.
func (r SetReplica) hasScheduled() bool {
	return slices.ContainsFunc(r.Cliques, func(c Clique) bool { return c.Scheduled > 0 }) ||
		slices.ContainsFunc(r.Groups, func(g ScalingGroup) bool { return g.ScheduledReplicas > 0 })
}

// HoldsPrevious reports whether the replica keeps its template, and missing objects of it are created from the previous
// one, because the update in progress has not reached it. A replica that is new, or that a user deleted as a whole, has
// the current template, unless it is below the partition, or is new while the update is paused. Source: docs/decisions, U3, U9.
func (u SetUpdate) HoldsPrevious(r SetReplica) bool {
	if u.OnDelete || !u.Progress.Open() || u.Progress.Reached.Has(r.Index) {
		return false
	}
	isOld := slices.ContainsFunc(r.Cliques, func(c Clique) bool { return c.Old }) ||
		slices.ContainsFunc(r.Groups, func(g ScalingGroup) bool { return g.isHeld(u.Generation) })
	switch {
	case r.Index < u.Partition, isOld:
		return true
	case r.exists() && len(r.Missing) > 0:
		return true // the objects that have changed are missing
	case r.Replaced.Reason == ReplacedDeleted && !r.Replaced.At.Before(u.Progress.StartedAt):
		return false
	}
	return !r.exists() && (r.Replaced.Reason == ReplacedTermination || u.Paused)
}

// exists reports whether a PodClique of the replica exists.
func (r SetReplica) exists() bool {
	return len(r.Cliques) > 0 || slices.ContainsFunc(r.Groups, func(g ScalingGroup) bool { return g.HasMembers })
}

// isUnfinished reports whether an update of a PodClique or scaling group of the replica is in progress, and not all of its
// units are ready.
func (r SetReplica) isUnfinished() bool {
	return slices.ContainsFunc(r.Cliques, func(c Clique) bool { return c.Updating && c.Ready < c.Replicas }) ||
		slices.ContainsFunc(r.Groups, func(g ScalingGroup) bool { return g.Updating && g.AvailableReplicas < g.Replicas })
}

// HoldsGroup reports whether a scaling group of the replica keeps its revision. One whose PodCliques were all deleted
// keeps it too; one that is scaled to zero has nothing to keep.
func (u SetUpdate) HoldsGroup(r SetReplica, g ScalingGroup) bool {
	return u.HoldsPrevious(r) && g.Told != u.Generation && (g.Old || !g.HasMembers && g.Replicas > 0)
}

// DecideSetUpdate returns which replica of a set is updated. Source: Rolling Update, "PodGangSet (PGS) Replica
// Selection" and "PGS Replica Update Completion"; GREP-291; docs/decisions, U2 to U6, U9.
//
//   - Replicas are updated one at a time: first one that an earlier update has begun to change, then those of which nothing is
//     scheduled, then those in breach of a minimum, then the others; of each kind the highest index first. Replicas that are due
//     to be terminated are recreated.
//   - The next replica follows when all objects of the current one exist, follow the current revision and are available, or
//     if nothing of it is scheduled for unboundGrace; and when all replicas that follow the revision are available, except
//     those that do not fit. While one that the update has not made is not, unavailable replicas are still selected.
//   - No replica is selected while the update is paused, and none below the partition.
//   - A replica that is being updated when the template changes again stays the current one.
//   - While the API server rejects pods of the revision, no replica is selected, and the current one, if there is one, is
//     not updated to it.
//   - Unknown states select no replica, and do not complete the update. Neither does a replica with objects that are being
//     deleted, or that must be gone before the replica is recreated: their pods are of an earlier template.
func DecideSetUpdate(u SetUpdate, now time.Time) SetUpdateDecision {
	d := SetUpdateDecision{Progress: u.Progress, Current: u.Current, CurrentSince: u.CurrentSince}
	c := u.countReplicas(&d, now)
	if u.OnDelete || !u.Progress.Open() {
		d.Progress = u.Progress.onDelete(Target{Generation: u.Generation}, false, now)
		d.Current, d.CurrentSince = nil, time.Time{}
		switch stays := c.describeOutdated() + "; they stay until they are deleted"; {
		case len(c.pending)+c.below > 0 && u.OnDelete:
			d.State = UpdateState{UpdateOnDelete, stays}
		case len(c.pending)+c.below > 0:
			d.State = deferred(stays)
		case c.known:
			d.State = UpdateState{UpdateComplete, "all replicas match the current template"}
		}
		return d
	}
	p := u.Progress.towards(Target{Generation: u.Generation}, "", now)
	d.Progress = p
	u.recordReachedReplicas(p)
	if updated := int(d.UpdatedCliques + d.UpdatedGroups); updated > u.Updated {
		p.LastProgress = now
	}
	if u.Current != nil && c.current == nil {
		d.Current, d.CurrentSince = nil, time.Time{} // scaled in
	}
	if u.Rejected != "" && (len(c.pending) > 0 || !c.known) {
		return u.rejected(d, now)
	}
	if c.current != nil && u.awaitsCurrent(&d, *c.current, now) {
		return d
	}
	u.selectNext(&d, c, now)
	return d
}

// setCount divides the replicas of a set that is updated.
type setCount struct {
	// known: the states of all replicas are known.
	known bool
	// pending are the replicas that do not follow the revision, without those below the partition, of which below is the
	// number.
	pending []SetReplica
	below   int
	// current is the replica that is being updated. leaving is the first that follows the revision and has objects that are
	// about to go. unhealthy is the first that follows it and is not available, except one that does not fit, and made the
	// first of them that the update has made. nil: there is none.
	current, leaving, unhealthy, made *SetReplica
}

// describeOutdated describes the replicas that do not follow the revision.
func (c setCount) describeOutdated() string {
	n := len(c.pending) + c.below
	return message.Count(n, "replica") + message.Plural(n, " has", " have") + " pods of an earlier template"
}

func (u SetUpdate) countReplicas(d *SetUpdateDecision, now time.Time) setCount {
	c := setCount{known: true}
	for i := range u.Replicas {
		r := &u.Replicas[i]
		cliques, groups := r.updatedObjects()
		d.UpdatedCliques, d.TotalCliques = d.UpdatedCliques+int32(len(cliques)), d.TotalCliques+int32(len(r.Cliques))
		d.UpdatedGroups, d.TotalGroups = d.UpdatedGroups+int32(len(groups)), d.TotalGroups+int32(len(r.Groups))
		changes, knows := r.changes()
		c.known = c.known && knows
		isCurrent := u.Current != nil && *u.Current == r.Index
		switch {
		case changes && r.Index < u.Partition:
			c.below++
		case changes:
			c.pending = append(c.pending, *r)
		default:
			if c.leaving == nil && (r.Terminating() != "" || r.Waits != "") {
				c.leaving = r
			}
			if r.Available() || r.isUnfit(now) {
				break
			}
			if c.unhealthy == nil {
				c.unhealthy = r
			}
			if c.made == nil && u.Progress != nil && u.Progress.Reached.Has(r.Index) {
				c.made = r
			}
		}
		if isCurrent {
			c.current = r
		}
	}
	return c
}

// awaitsCurrent reports whether the update waits for the replica that is being updated, and sets for what. Otherwise it is
// done, or does not fit and is passed.
func (u SetUpdate) awaitsCurrent(d *SetUpdateDecision, current SetReplica, now time.Time) bool {
	changes, knows := current.changes()
	isWhole := !changes && knows && len(current.Missing) == 0 && current.Terminating() == ""
	if isWhole && (current.Available() || current.isUnfit(now)) {
		if done := current.Index; current.Available() {
			d.Done = &done
		}
		d.Current, d.CurrentSince = nil, time.Time{}
		d.Progress.LastProgress = now
		return false
	}
	d.Cliques, d.Groups = current.updatedObjects()
	state, ofChild := u.currentState(current)
	if u.Paused {
		state = UpdateState{UpdatePaused, "the update is paused; " + state.Message}
	}
	awaited := &current
	if !isWhole {
		awaited = nil
	}
	u.setState(d, state, ofChild || current.ripens(), awaited, now)
	return true
}

// setState sets the state of the update, which may have stalled. awaited is a replica that is waited for, and does not fit
// unless it is bound soon. nil: there is none.
func (u SetUpdate) setState(d *SetUpdateDecision, state UpdateState, ripens bool, awaited *SetReplica, now time.Time) {
	r := rollout{stalledAfter: u.StalledAfter, paused: state.Reason == UpdatePaused || state.Reason == UpdatePartitionReached}
	var settles time.Time
	if awaited != nil && !awaited.hasScheduled() {
		settles = awaited.newest().Add(unboundGrace)
	}
	d.State, d.RequeueAfter = r.checkStall(d.Progress, state, ripens, 0, settles, now)
}

// selectNext selects the next replica to update, or sets what the update waits for, or ends it.
func (u SetUpdate) selectNext(d *SetUpdateDecision, c setCount, now time.Time) {
	pending, next, updating, remaining := c.pending, SetReplica{}, "", UpdateState{}
	if c.unhealthy != nil { // only what is down already
		pending = slices.DeleteFunc(slices.Clone(pending), SetReplica.Available)
	}
	if len(pending) > 0 {
		next = slices.MinFunc(pending, compareByUpdateOrder)
		updating = fmt.Sprintf("updating replica %d since %s", next.Index, Timestamp(now))
	}
	if c.below > 0 {
		remaining = UpdateState{UpdatePartitionReached, fmt.Sprintf("replicas from index %d on match the current template; %s", u.Partition, c.describeOutdated())}
	}
	obstacle, awaited := u.obstacle(c, len(pending) > 0)
	state, isSelected := rollout{old: c.describeOutdated(), complete: "all replicas match the current template"}.advance(d.Progress, obstacle, updating, remaining, now)
	if isSelected {
		d.Current, d.CurrentSince, d.Progress.LastProgress = &next.Index, now, now
		d.Progress.recordReached(next.Index)
		d.Cliques, d.Groups = next.updatedObjects()
	}
	u.setState(d, state, awaited != nil && awaited.ripens(), awaited, now)
}

// obstacle returns what is against selecting the next replica, if there is one, or ending the update. awaited is the updated
// replica that is waited for, nil: none is.
func (u SetUpdate) obstacle(c setCount, hasNext bool) (state UpdateState, awaited *SetReplica) {
	switch {
	case !c.known:
		return UpdateState{Updating, "the statuses of PodCliques and scaling groups do not describe the current template yet"}, nil
	case len(c.pending) > 0 && u.Paused:
		return UpdateState{UpdatePaused, "the update is paused; " + c.describeOutdated()}, nil
	case len(c.pending) == 0 && c.leaving != nil:
		wait := c.leaving.waitsFor()
		return UpdateState{wait.Reason, fmt.Sprintf("replica %d: %s", c.leaving.Index, wait.Message)}, nil
	case c.unhealthy != nil && (c.made != nil || !hasNext):
		awaited = cmp.Or(c.made, c.unhealthy)
		wait := awaited.waitsFor()
		return UpdateState{wait.Reason, fmt.Sprintf("replica %d, which is updated, is not available: %s", awaited.Index, wait.Message)}, awaited
	}
	return UpdateState{}, nil
}

// isUnfit reports whether nothing of the replica is scheduled, although all of its objects exist for unboundGrace: it does
// not fit.
func (r SetReplica) isUnfit(now time.Time) bool {
	return !r.hasScheduled() && r.Terminating() == "" && r.Waits == "" && len(r.Missing) == 0 && !now.Before(r.newest().Add(unboundGrace))
}

// newest returns the creation time of the youngest PodClique of the replica, zero if there is none.
func (r SetReplica) newest() time.Time {
	var newest time.Time
	for _, o := range r.objects() {
		newest = latest(newest, o.newest)
	}
	return newest
}

// ripens reports whether the replica is unavailable only because pods of its standalone cliques have not been ready for
// minReadySeconds.
func (r SetReplica) ripens() bool {
	return !r.Available() && r.allObjects(func(c Clique) bool { return c.Attempt.Set >= r.Attempt && c.isReady() }, r.groupAvailable)
}

// recordReachedReplicas records the replicas that the update has reached: the current one, and those that do not exist and
// are created from the current template. Replicas that are no longer desired are forgotten.
func (u SetUpdate) recordReachedReplicas(p *Progress) {
	p.Reached = p.Reached.Below(len(u.Replicas))
	var reached []int
	for _, r := range u.Replicas {
		if u.Current != nil && *u.Current == r.Index || !r.exists() && !u.HoldsPrevious(r) {
			reached = append(reached, r.Index)
		}
	}
	p.recordReached(reached...)
}

// RetryRejected is how often the API server is asked again whether it accepts pods that it rejects.
const RetryRejected = 30 * time.Second

// rejected returns the decision while the API server rejects pods of the revision: no replica is selected. The one that
// the update was at when the template changed stays the current one, so that the update goes on with it; its children
// get no turn meanwhile. Source: docs/decisions, U9.
func (u SetUpdate) rejected(d SetUpdateDecision, now time.Time) SetUpdateDecision {
	d.Progress.countRest(u.StalledAfter, now)
	d.State, d.RequeueAfter = UpdateState{UpdateTemplateRejected, u.Rejected}, RetryRejected
	return d
}

// compareByUpdateOrder compares replicas by the order in which they are updated.
func compareByUpdateOrder(a, b SetReplica) int {
	rank := func(r SetReplica) int {
		switch {
		case r.isUnfinished():
			return 0 // an earlier update has begun to change it
		case !r.hasScheduled():
			return 1
		case !r.BreachedSince().IsZero():
			return 2
		}
		return 3
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Index, a.Index))
}

// currentState returns what the replica that is being updated waits for, and whether this comes from the condition of
// one of its PodCliques or scaling groups, which detect a stall themselves. A stalled one is reported first, with the
// number of others that do not follow yet. A condition about an earlier revision is ignored.
func (u SetUpdate) currentState(r SetReplica) (state UpdateState, ofChild bool) {
	var child UpdateState // its message does not contain the name of the child
	who, behind := "", 0
	prefix := fmt.Sprintf("updating replica %d since %s: ", r.Index, Timestamp(u.CurrentSince))
	for _, o := range r.objects() {
		if !o.knows || !o.follows {
			behind++
		}
		s := u.Waits[o.name]
		if !o.knows || o.follows || s.Reason == "" || !s.Progressing() || ofChild && (child.Reason == UpdateStalled || s.Reason != UpdateStalled) {
			continue
		}
		child, who, ofChild = s, o.kind+" "+o.name, true
	}
	if others := behind - 1; ofChild && others > 0 {
		who += fmt.Sprintf(" (%s not done yet)", message.CountAre(others, "other"))
	}
	if ofChild {
		return UpdateState{child.Reason, prefix + who + ": " + child.Message}, true
	}
	if changes, knows := r.changes(); changes || !knows {
		return UpdateState{Updating, prefix + "it is about to be updated"}, false
	}
	wait := r.waitsFor()
	return UpdateState{wait.Reason, prefix + wait.Message}, false
}

// waitsFor returns what a replica waits for in which no object needs an update any longer.
func (r SetReplica) waitsFor() UpdateState {
	if name := r.Terminating(); name != "" {
		return UpdateState{UpdateWaitsForDeletion, name + " is being deleted"}
	}
	if len(r.Missing) > 0 && r.Waits != "" {
		return UpdateState{UpdateWaitsForDeletion, fmt.Sprintf("%s is not created yet: it %s", r.Missing[0], r.Waits)}
	}
	if len(r.Missing) > 0 {
		return UpdateState{UpdateWaitsForCreation, r.Missing[0] + " is not created yet"}
	}
	for _, o := range r.objects() {
		switch {
		case o.available:
		case o.scheduled:
			return UpdateState{UpdateWaitsForReadiness, fmt.Sprintf("%s %s is not available", o.kind, o.name)}
		default:
			return UpdateState{UpdateWaitsForCapacity, fmt.Sprintf("%s %s is not bound to nodes", o.kind, o.name)}
		}
	}
	return UpdateState{UpdateWaitsForDeletion, "it " + r.Waits}
}

// updatedObjects returns the names of the PodCliques and scaling groups of the replica that follow the revision.
func (r SetReplica) updatedObjects() (cliques, groups []string) {
	for i, o := range r.objects() {
		switch {
		case !o.knows || !o.follows:
		case i < len(r.Cliques):
			cliques = append(cliques, o.name)
		default:
			groups = append(groups, o.name)
		}
	}
	return cliques, groups
}
