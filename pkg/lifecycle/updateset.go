// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// SetUpdate contains the facts that decide how an update of a PodCliqueSet continues.
type SetUpdate struct {
	// Generation is the hash of the current revision.
	Generation string
	// OnDelete: the update strategy is OnDelete.
	OnDelete bool
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
	see := func(terminating, knows, follows bool) {
		if terminating {
			return
		}
		known = known && knows
		pending = pending || knows && !follows
	}
	for _, c := range r.Cliques {
		see(c.Terminating, c.knows(r.Revision), c.follows(r.Generation))
	}
	for _, g := range r.Groups {
		see(g.Terminating, g.knows(r.Revision), g.follows(r.Generation))
	}
	return pending, known
}

// hasScheduled reports whether a pod of a standalone clique, or the minimum of a replica of a scaling group, is scheduled.
func (r SetReplica) hasScheduled() bool {
	return slices.ContainsFunc(r.Cliques, func(c Clique) bool { return c.Scheduled > 0 }) ||
		slices.ContainsFunc(r.Groups, func(g ScalingGroup) bool { return g.ScheduledReplicas > 0 })
}

// DecideSetUpdate returns which replica of a set is updated. Source: Rolling Update, "PodGangSet (PGS) Replica
// Selection" and "PGS Replica Update Completion"; GREP-291; docs/decisions, U2 to U6.
//
//   - Replicas are updated one at a time: first those of which nothing is scheduled, then those in breach of a minimum, then
//     the others; of each kind the highest index first. Replicas that are due to be terminated are recreated from the current
//     template.
//   - The next replica follows when all objects of the current one exist, follow the current revision and are available.
//   - A replica that is being updated when the template changes again stays the current one.
//   - Unknown states select no replica, and do not complete the update. Neither does a replica with objects that are being
//     deleted, or that must be gone before the replica is recreated: their pods are of an earlier template.
func DecideSetUpdate(u SetUpdate, now time.Time) SetUpdateDecision {
	d := SetUpdateDecision{Progress: u.Progress, Current: u.Current, CurrentSince: u.CurrentSince}
	known := true
	var pending []SetReplica
	var current, leaving *SetReplica
	for i := range u.Replicas {
		r := &u.Replicas[i]
		d.count(*r)
		changes, knows := r.changes()
		known = known && knows
		switch {
		case changes:
			pending = append(pending, *r)
		case leaving == nil && (r.Terminating() != "" || r.Waits != ""):
			leaving = r
		}
		if u.Current != nil && *u.Current == r.Index {
			current = r
		}
	}
	old := message.Count(len(pending), "replica") + message.Plural(len(pending), " has", " have") + " pods of an earlier template"
	complete := UpdateState{UpdateComplete, "every replica is of the present template"}
	switch {
	case u.OnDelete || !u.Progress.Open():
		d.Progress = u.Progress.onDelete(Target{Generation: u.Generation}, false, now)
		d.Current, d.CurrentSince = nil, time.Time{}
		switch {
		case len(pending) > 0:
			d.State = UpdateState{UpdateOnDelete, old + "; they stay until they are deleted"}
		case known:
			d.State = complete
		}
		return d
	}
	p := u.Progress.towards(Target{Generation: u.Generation}, now)
	d.Progress = p
	if updated := int(d.UpdatedCliques + d.UpdatedGroups); updated > u.Updated {
		p.LastProgress = now
	}
	if u.Current != nil && current == nil {
		d.Current, d.CurrentSince = nil, time.Time{} // scaled in
	}
	if current != nil {
		changes, knows := current.changes()
		if changes || !knows || len(current.Missing) > 0 || current.Terminating() != "" || !current.Available() {
			d.list(*current)
			ofChild := false
			if d.State, ofChild = u.currentState(*current); !ofChild {
				d.State, d.RequeueAfter = d.State.stalled(p, u.StalledAfter, now)
			}
			return d
		}
		done := current.Index
		d.Done, d.Current, d.CurrentSince = &done, nil, time.Time{}
		p.LastProgress = now
	}
	switch {
	case !known:
		d.State = UpdateState{Updating, "the statuses of PodCliques and scaling groups do not describe the present template yet"}
	case len(pending) == 0 && leaving != nil:
		wait := leaving.waitsFor()
		d.State = UpdateState{wait.Reason, fmt.Sprintf("replica %d: %s", leaving.Index, wait.Message)}
	case len(pending) == 0:
		p.end(now)
		d.State = complete
		return d
	default:
		next := slices.MinFunc(pending, before)
		index := next.Index
		d.Current, d.CurrentSince, p.LastProgress = &index, now, now
		d.list(next)
		d.State = UpdateState{Updating, fmt.Sprintf("updating replica %d since %s; %s", index, Timestamp(now), old)}
	}
	d.State, d.RequeueAfter = d.State.stalled(p, u.StalledAfter, now)
	return d
}

// before compares replicas by the order in which they are updated.
func before(a, b SetReplica) int {
	rank := func(r SetReplica) int {
		switch {
		case !r.hasScheduled():
			return 0
		case !r.BreachedSince().IsZero():
			return 1
		}
		return 2
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
	tell := func(kind, name string, knows, follows bool) {
		if !knows || !follows {
			behind++
		}
		s := u.Waits[name]
		if !knows || follows || s.Reason == "" || !s.Progressing() || ofChild && (child.Reason == UpdateStalled || s.Reason != UpdateStalled) {
			return
		}
		child, who, ofChild = s, kind+" "+name, true
	}
	for _, c := range r.Cliques {
		tell("PodClique", c.Name, c.knows(r.Revision), c.follows(r.Generation))
	}
	for _, g := range r.Groups {
		tell("PodCliqueScalingGroup", g.Name, g.knows(r.Revision), g.follows(r.Generation))
	}
	if others := behind - 1; ofChild && others > 0 {
		who += fmt.Sprintf(" (%s not done yet)", message.Are(others, "other"))
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
	of := func(kind, name string, scheduled bool) UpdateState {
		if !scheduled {
			return UpdateState{UpdateWaitsForCapacity, fmt.Sprintf("%s %s is not bound to nodes", kind, name)}
		}
		return UpdateState{UpdateWaitsForReadiness, fmt.Sprintf("%s %s is not available", kind, name)}
	}
	for _, c := range r.Cliques {
		if !r.available(c) {
			return of("PodClique", c.Name, c.IsScheduled())
		}
	}
	for _, g := range r.Groups {
		if !r.groupAvailable(g) {
			return of("PodCliqueScalingGroup", g.Name, g.IsScheduled())
		}
	}
	return UpdateState{UpdateWaitsForDeletion, "it " + r.Waits}
}

func (d *SetUpdateDecision) count(r SetReplica) {
	for _, c := range r.Cliques {
		d.TotalCliques++
		if c.knows(r.Revision) && c.follows(r.Generation) {
			d.UpdatedCliques++
		}
	}
	for _, g := range r.Groups {
		d.TotalGroups++
		if g.knows(r.Revision) && g.follows(r.Generation) {
			d.UpdatedGroups++
		}
	}
}

// list sets the names of the PodCliques and scaling groups of the current replica that follow the revision.
func (d *SetUpdateDecision) list(r SetReplica) {
	for _, c := range r.Cliques {
		if c.knows(r.Revision) && c.follows(r.Generation) {
			d.Cliques = append(d.Cliques, c.Name)
		}
	}
	for _, g := range r.Groups {
		if g.knows(r.Revision) && g.follows(r.Generation) {
			d.Groups = append(d.Groups, g.Name)
		}
	}
}
