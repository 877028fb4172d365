// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// SetUpdate contains the facts that decide how an update of a PodCliqueSet continues.
type SetUpdate struct {
	// Update.Progress.Selected is the replica that is being updated. Progress is nil if the template has not changed
	// yet.
	Update
	// Partition is the index of the first replica that is updated.
	Partition int
	// Updated is the number of PodCliques and scaling groups that follow the revision according to the status.
	Updated int
	// Replicas are the desired replicas.
	Replicas []SetReplica
	// Waits contains the condition Progressing of the PodCliques and scaling groups of the current replica, by name.
	Waits map[string]UpdateState
	// Rejected is why the API server rejects pods of the revision, "": it does not, or that is unknown. The replica
	// that the update was at stays the selected one while it exists, so that the update goes on with it; its children
	// get no turn meanwhile.
	Rejected string
}

// SetUpdateDecision is the decision how an update of a PodCliqueSet continues.
type SetUpdateDecision struct {
	UpdateDecision
	// Done is the replica whose update has completed since the last decision, nil: none.
	Done *int
	// Cliques and Groups are the names of the PodCliques and scaling groups of the selected replica that follow the
	// revision, sorted.
	Cliques, Groups []string
	// UpdatedCliques, TotalCliques, UpdatedGroups and TotalGroups count standalone PodCliques and scaling groups of all
	// replicas.
	UpdatedCliques, TotalCliques, UpdatedGroups, TotalGroups int32
}

// RetryRejected is how often the API server is asked again whether it accepts pods that it rejects.
const RetryRejected = 30 * time.Second

// DecideSetUpdate returns which replica of a set is updated. Replicas are selected one at a time, and their PodCliques
// and scaling groups replace what they consist of. An update is begun by the caller. Source: rollout.decide;
// docs/decisions, U2, U9.
func DecideSetUpdate(u SetUpdate, now time.Time) SetUpdateDecision {
	u.Turn, u.Wanted = u.Progress.Open(), int32(len(u.Replicas))
	var d SetUpdateDecision
	r := rollout{Update: u.Update, kind: &u, noun: "replica", parts: "PodCliques and scaling groups",
		oneByOne: true, rejected: u.Rejected}
	selected := ""
	if u.Progress.Open() && u.Progress.InFlight() {
		selected = u.Progress.Selected
	}
	for i, replica := range u.Replicas {
		cliques, groups := replica.updatedObjects()
		d.UpdatedCliques, d.TotalCliques = d.UpdatedCliques+int32(len(cliques)), d.TotalCliques+int32(len(replica.Cliques))
		d.UpdatedGroups, d.TotalGroups = d.UpdatedGroups+int32(len(groups)), d.TotalGroups+int32(len(replica.Groups))
		unit := u.unit(i)
		r.units = append(r.units, unit)
		if unit.name == selected || !replica.exists() && !u.HoldsPrevious(replica) {
			r.made = append(r.made, unit.index)
		}
	}
	r.progressed = int(d.UpdatedCliques+d.UpdatedGroups) > u.Updated
	d.UpdateDecision = r.decide(now).UpdateDecision
	for i, unit := range r.units {
		isSelected := d.Progress.Open() && unit.name == d.Progress.Selected
		if isSelected && d.State.Reason != UpdateTemplateRejected {
			d.Cliques, d.Groups = u.Replicas[i].updatedObjects()
		}
		if unit.name == selected && !isSelected && !u.OnDelete && u.Replicas[i].Available() {
			d.Done = &unit.index
		}
	}
	return d
}

// unit returns what an update knows about the replica at a position. One with objects that are about to go does not
// serve: their pods are of an earlier template.
func (u *SetUpdate) unit(at int) updateUnit {
	r := u.Replicas[at]
	changes, known := r.changes()
	stays := r.Terminating() == "" && r.Waits == ""
	unit := updateUnit{at: at, index: r.Index, name: strconv.Itoa(r.Index),
		outdated: changes, unknown: !known, held: r.Index < u.Partition,
		bound: r.hasScheduled(), ready: stays && r.isReady(), available: stays && r.Available()}
	if stays && len(r.Missing) == 0 {
		unit.settles = r.newest().Add(unboundGrace)
	}
	return unit
}

// compare: first what an earlier update has begun to change, then what nothing is scheduled of, then what is in breach
// of a minimum.
func (u *SetUpdate) compare(a, b updateUnit) int {
	rank := func(u updateUnit, r SetReplica) int {
		switch {
		case r.isUnfinished():
			return 0
		case !u.bound:
			return 1
		case !r.BreachedSince().IsZero():
			return 2
		}
		return 3
	}
	return cmp.Or(cmp.Compare(rank(a, u.Replicas[a.at]), rank(b, u.Replicas[b.at])), cmp.Compare(b.index, a.index))
}

func (u *SetUpdate) describeOld(n int) (are, stay, awaitTurn string) {
	are = message.Count(n, "replica") + message.Plural(n, " has", " have") + " pods of an earlier template"
	return are, are + "; they stay until they are deleted", ""
}

func (u *SetUpdate) unhealthy(units []updateUnit) UpdateState {
	wait, is := u.Replicas[units[0].at].waitsFor(), ", which is updated, is not available"
	if wait.Reason == UpdateWaitsForDeletion {
		is = ""
	}
	return UpdateState{wait.Reason, "replica " + units[0].name + is + ": " + wait.Message}
}

func (u *SetUpdate) remains(c rolloutCount) UpdateState {
	if c.held == 0 {
		return UpdateState{}
	}
	return UpdateState{UpdatePartitionReached,
		fmt.Sprintf("replicas from index %d on match the current template; %s", u.Partition, c.are)}
}

func (u *SetUpdate) tooFew(int32, time.Time) UpdateState { return UpdateState{} }

// inFlight: a replica is updated when all of its objects exist, follow the revision and are available, or if it does
// not fit.
func (u *SetUpdate) inFlight(selected string, now time.Time) flight {
	at := slices.IndexFunc(u.Replicas, func(r SetReplica) bool { return strconv.Itoa(r.Index) == selected })
	if at < 0 {
		return flight{} // scaled in
	}
	r, unit := u.Replicas[at], u.unit(at)
	isWhole := !unit.outdated && !unit.unknown && len(r.Missing) == 0 && r.Terminating() == ""
	if isWhole && (r.Available() || unit.isUnfit(now)) {
		return flight{}
	}
	state, ofChild := u.currentState(r)
	if u.Paused {
		state = UpdateState{UpdatePaused, "the update is paused; " + state.Message}
	}
	return flight{waits: state, ripens: ofChild || r.isReady() && !r.Available()}
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

// hasScheduled reports whether a pod of a standalone clique, or the minimum of a replica of a scaling group, is
// scheduled.
func (r SetReplica) hasScheduled() bool {
	return slices.ContainsFunc(r.Cliques, func(c Clique) bool { return c.Scheduled > 0 }) ||
		slices.ContainsFunc(r.Groups, func(g ScalingGroup) bool { return g.ScheduledReplicas > 0 })
}

// HoldsPrevious reports whether the replica keeps its template, and missing objects of it are created from the previous
// one, because the update in progress has not reached it. A replica that is new, or that a user deleted as a whole, has
// the current template, unless it is below the partition, or is new while the update is paused. Source: docs/decisions,
// U3, U9.
func (u *SetUpdate) HoldsPrevious(r SetReplica) bool {
	if u.OnDelete || !u.Progress.Open() || u.Progress.Reached.Has(r.Index) {
		return false
	}
	isOld := slices.ContainsFunc(r.Cliques, func(c Clique) bool { return c.Old }) ||
		slices.ContainsFunc(r.Groups, func(g ScalingGroup) bool { return g.isHeld(u.Target.Generation) })
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

// isUnfinished reports whether an update of a PodClique or scaling group of the replica is in progress, and not all of
// its units are ready.
func (r SetReplica) isUnfinished() bool {
	return slices.ContainsFunc(r.Cliques, func(c Clique) bool { return c.Updating && c.Ready < c.Replicas }) ||
		slices.ContainsFunc(r.Groups, func(g ScalingGroup) bool { return g.Updating && g.AvailableReplicas < g.Replicas })
}

// HoldsGroup reports whether a scaling group of the replica keeps its revision. One whose PodCliques were all deleted
// keeps it too; one that is scaled to zero has nothing to keep.
func (u *SetUpdate) HoldsGroup(r SetReplica, g ScalingGroup) bool {
	return u.HoldsPrevious(r) && g.Told != u.Target.Generation && (g.Old || !g.HasMembers && g.Replicas > 0)
}

// newest returns the creation time of the youngest PodClique of the replica, zero if there is none.
func (r SetReplica) newest() time.Time {
	var newest time.Time
	for _, o := range r.objects() {
		newest = latest(newest, o.newest)
	}
	return newest
}

// isReady reports whether the replica is available but for the minReadySeconds of its standalone cliques.
func (r SetReplica) isReady() bool {
	return r.allObjects(func(c Clique) bool { return c.Attempt.Set >= r.Attempt && c.isReady() }, r.groupAvailable)
}

// currentState returns what the replica that is being updated waits for, and whether this comes from the condition of
// one of its PodCliques or scaling groups, which detect a stall themselves. A stalled one is reported first, with the
// number of others that do not follow yet. A condition about an earlier revision is ignored.
func (u *SetUpdate) currentState(r SetReplica) (state UpdateState, ofChild bool) {
	var child UpdateState // its message does not contain the name of the child
	who, behind := "", 0
	prefix := fmt.Sprintf("updating replica %d since %s: ", r.Index, Timestamp(u.Progress.SelectedAt))
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
