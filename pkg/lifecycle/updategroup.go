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

// GroupUpdate contains the facts that decide how an update of a PodCliqueScalingGroup continues.
type GroupUpdate struct {
	// Revision and Generation are the number and the hash of the PodCliqueSet's revision that the group is to follow.
	Revision   int64
	Generation string
	// OnDelete: the update strategy is OnDelete. Turn: under RollingRecreate, replicas may be replaced. Paused: no
	// further replica is replaced.
	OnDelete, Turn, Paused bool
	// Progress is the progress recorded in the status.
	Progress *Progress
	// Replicas are the desired replicas of which a PodClique exists; Wanted is the desired number.
	Replicas []GroupReplica
	Wanted   int32
	// MinAvailable is the number of replicas that must be available.
	MinAvailable int32
	// StalledAfter is the time without progress after which an update has stalled. Not positive: never.
	StalledAfter time.Duration
}

// GroupUpdateDecision is the decision how an update of a PodCliqueScalingGroup continues.
type GroupUpdateDecision struct {
	// Progress must be recorded together with the attempts of Replace.
	Progress *Progress
	// Replace are the replicas to replace, by index, with the reasons. nil: none.
	Replace map[int]Replacement
	// Current: every pod follows the target. Outdated: a replica that is not being replaced has a pod that does not.
	Current, Outdated bool
	// Known: the status of every PodClique of the target's template describes the target.
	Known bool
	// UpdatedCliques and TotalCliques count the existing PodCliques of the desired replicas.
	UpdatedCliques, TotalCliques int32
	State                        UpdateState
	RequeueAfter                 time.Duration
}

// outdated reports whether the replica is known to have a pod of an earlier template than that of the generation. A
// pod of the current template that ended counts in Pods but not in Updated.
func (r GroupReplica) outdated(generation string) bool {
	return slices.ContainsFunc(r.Members, func(c Clique) bool {
		return !c.Terminating && (c.Old || c.knows(r.Revision) && c.Updated < c.Pods && c.Followed != generation)
	})
}

// known reports whether the status of every PodClique that is not being deleted describes the revision, or its
// template is an earlier one.
func (r GroupReplica) known() bool {
	return !slices.ContainsFunc(r.Members, func(c Clique) bool { return !c.Terminating && !c.Old && !c.knows(r.Revision) })
}

// leaves reports whether the replica is being replaced, that is, a PodClique of an earlier attempt exists.
func (r GroupReplica) leaves() bool {
	return slices.ContainsFunc(r.Members, func(c Clique) bool { return c.Attempt.Precedes(r.Attempt) })
}

// hasScheduled reports whether a pod of the replica is bound to a node.
func (r GroupReplica) hasScheduled() bool {
	return slices.ContainsFunc(r.Members, func(c Clique) bool { return c.Scheduled > 0 })
}

// HoldsPrevious reports whether missing PodCliques of replica j are created from the previous template, because the
// update in progress has not reached the replica. It has if the replica is new, or if a user deleted it as a whole.
// existing is the replica, nil if no PodClique of it exists. Source: docs/decisions, U3, U9.
func (u GroupUpdate) HoldsPrevious(j int, existing *GroupReplica, replaced Raised) bool {
	switch {
	case u.OnDelete:
		return false
	case existing != nil && slices.ContainsFunc(existing.Members, func(c Clique) bool { return c.Old }):
		return true
	case !u.Progress.Open() || u.Progress.Reached.Has(j):
		return false
	}
	return existing == nil && replaced.Reason == ReplacedTermination && !replaced.At.Before(u.Progress.StartedAt)
}

// groupCount divides the replicas of a group that is updated.
type groupCount struct {
	// outdated are the replicas of an earlier template that are not being replaced, the oldest first. leaving is the
	// number of those that are being replaced.
	outdated []GroupReplica
	leaving  int
	// available counts the replicas that are certainly available. bound: a pod of a replica is bound.
	available int32
	bound     bool
	// unhealthy is the first replica of the target that has bound pods and is not available; nil: there is none.
	unhealthy *GroupReplica
	// ripens: such a replica only waits for minReadySeconds.
	ripens bool
}

func (u GroupUpdate) count(d *GroupUpdateDecision) groupCount {
	var c groupCount
	for i := range u.Replicas {
		r := &u.Replicas[i]
		for _, member := range r.Members {
			d.TotalCliques++
			if member.isUpdated(u.Revision, u.Generation) {
				d.UpdatedCliques++
			}
		}
		available := r.Available() && r.observed()
		if available {
			c.available++
		}
		c.bound = c.bound || r.hasScheduled()
		switch {
		case r.leaves():
			c.leaving++
		case !r.known():
			d.Known = false
		case r.outdated(u.Generation):
			c.outdated = append(c.outdated, *r)
		case c.unhealthy == nil && r.hasScheduled() && !available:
			c.unhealthy, c.ripens = r, r.all(Clique.isReady)
		}
	}
	slices.SortFunc(c.outdated, func(a, b GroupReplica) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Index, b.Index))
	})
	return c
}

// DecideGroupUpdate returns which replicas of a scaling group are replaced because of an update. Source: Rolling
// Update, "PCSG Replica Selection"; GREP-291, "OnDelete Strategy"; docs/decisions, U2 to U6, U9, W10.
//
//   - A replica is replaced as a whole if it has a pod of an earlier template. Under OnDelete no replica is replaced.
//   - In the group's turn, replicas that are not scheduled or not available are replaced immediately. The oldest available
//     replica is replaced when the previous replacement has become available, and when without this replica minAvailable
//     replicas are available, or all others if every replica is needed.
//   - No replica at all is replaced while one of the current template has bound pods and is not available, nor while the
//     update is paused.
//   - The update is complete when every replica exists, every pod was created from the current template, all replicas with
//     bound pods are available, and minAvailable replicas are. If no pod is bound, it is complete without available ones.
//   - A replica in flight stays in flight when the target changes or the turn is lost.
//   - Unknown states replace no replica, and do not complete the update.
func DecideGroupUpdate(u GroupUpdate, now time.Time) GroupUpdateDecision {
	d := GroupUpdateDecision{Progress: u.Progress, Known: true}
	c := u.count(&d)
	d.Current, d.Outdated = d.Known && c.leaving == 0 && len(c.outdated) == 0, len(c.outdated) > 0
	old := message.Are(len(c.outdated), "replica") + " of an earlier template"
	target := Target{Generation: u.Generation}
	stays := old + message.Plural(len(c.outdated), "; it is replaced when it is deleted", "; each is replaced when it is deleted")
	complete := UpdateState{UpdateComplete, "every replica is of the present template"}
	switch {
	case u.OnDelete:
		d.Progress = u.Progress.onDelete(target, len(c.outdated) > 0, now)
		switch {
		case len(c.outdated) > 0:
			d.State = UpdateState{UpdateOnDelete, stays}
		case d.Known:
			d.State = complete
		}
		return d
	case !d.Known && !u.Progress.Open():
		return d // the deletion will change this in a moment
	case len(c.outdated) > 0 && !u.Turn:
		turn := UpdateState{UpdateWaitsForTurn, old + "; the update of the PodCliqueSet has not reached " + message.Plural(len(c.outdated), "it", "them")}
		d.Progress, d.State = u.Progress.withoutTurn(target, u.inFlight, turn, deferred(stays))
		d.State, d.RequeueAfter = d.State.stalled(d.Progress, u.StalledAfter, now)
		return d
	case len(c.outdated) == 0 && !u.Progress.Open():
		d.State = complete
		return d
	}

	p := u.Progress.towards(target, now)
	d.Progress = p
	u.reach(p)
	var waits UpdateState
	if p.InFlight() {
		if waits = u.inFlight(p.Selected); waits.Reason == "" {
			p.complete(now)
		}
	}
	isBlocked := u.Paused || c.unhealthy != nil || waits.Reason == UpdateWaitsForCapacity || waits.Reason == UpdateWaitsForReadiness
	replace := func(r GroupReplica, was string) {
		if d.Replace == nil {
			d.Replace = map[int]Replacement{}
		}
		d.Replace[r.Index] = Replacement{Reason: ReplacedUpdate, Message: "it has pods of an earlier template, and " + was}
		p.reach(r.Index)
	}
	var ready []GroupReplica
	for _, r := range c.outdated {
		switch {
		case r.Available():
			ready = append(ready, r)
		case isBlocked && !(p.InFlight() && p.Selected == strconv.Itoa(r.Index)): // there: of an intermediate template
		case !r.IsScheduled():
			replace(r, "is not scheduled")
		default:
			replace(r, "is not available")
		}
	}
	switch {
	case waits.Reason != "":
		d.State = waits
	case !d.Known:
		d.State = UpdateState{Updating, "the statuses of PodCliques do not describe the present template yet"}
	case c.unhealthy != nil:
		wait := c.unhealthy.waitsFor()
		d.State = UpdateState{wait.Reason, "an updated replica is not available: " + wait.Message}
	case u.Paused && len(c.outdated) > 0:
		d.State = UpdateState{UpdatePaused, "the update is paused; " + old}
	case len(ready) > 0 && !sparesOne(c.available-1, u.MinAvailable, u.Wanted):
		wait := u.belowMinimum(c.available)
		d.State = UpdateState{UpdateWaitsForMinAvailable, "no available replica is replaced, because too few others are available: " + wait.Message}
	case len(ready) > 0:
		p.pick(strconv.Itoa(ready[0].Index), now)
		replace(ready[0], "is the oldest available one")
		d.State = UpdateState{Updating, fmt.Sprintf("replacing replica %d; %s", ready[0].Index, old)}
	case len(c.outdated)+c.leaving > 0:
		d.State = UpdateState{UpdateWaitsForDeletion, message.Are(len(c.outdated)+c.leaving, "replica") + " being replaced"}
	case len(u.Replicas) < int(u.Wanted):
		d.State = UpdateState{UpdateWaitsForCreation, message.Are(int(u.Wanted)-len(u.Replicas), "replica") + " not created yet"}
	case c.bound && c.available < u.MinAvailable:
		d.State = u.belowMinimum(c.available)
	default:
		p.end(now)
		d.State = complete
	}
	if !c.ripens { // to wait for minReadySeconds is no stall, and its end changes the status of a PodClique
		d.State, d.RequeueAfter = d.State.stalled(p, u.StalledAfter, now)
	}
	return d
}

// reach records the replicas whose PodCliques are all of the current template.
func (u GroupUpdate) reach(p *Progress) {
	var reached []int
	for _, r := range u.Replicas {
		if !r.leaves() && r.known() && !r.outdated(u.Generation) {
			reached = append(reached, r.Index)
		}
	}
	p.reach(reached...)
}

// belowMinimum returns what the first unavailable replica that is not being replaced waits for.
func (u GroupUpdate) belowMinimum(available int32) UpdateState {
	text := fmt.Sprintf("%d of %d replicas available, %d needed", available, u.Wanted, u.MinAvailable)
	for _, r := range u.Replicas {
		if wait := r.waitsFor(); wait.Reason != "" && !(r.known() && r.outdated(u.Generation)) {
			return UpdateState{wait.Reason, wait.Message + "; " + text}
		}
	}
	return UpdateState{UpdateWaitsForReadiness, text}
}

// waitsFor returns what the replica waits for. The zero value: it is certainly available.
func (r GroupReplica) waitsFor() UpdateState {
	switch {
	case r.leaves():
		return UpdateState{UpdateWaitsForDeletion, fmt.Sprintf("replica %d terminates; its replacement is created when it is gone", r.Index)}
	case len(r.Missing) > 0:
		return UpdateState{UpdateWaitsForCreation, fmt.Sprintf("clique %s of replica %d is not created yet", r.Missing[0], r.Index)}
	case !r.IsScheduled():
		return UpdateState{UpdateWaitsForCapacity, fmt.Sprintf("replica %d is not bound to nodes", r.Index) + r.because(Clique.IsScheduled)}
	case !r.Available() || !r.observed():
		return UpdateState{UpdateWaitsForReadiness, fmt.Sprintf("replica %d is not available", r.Index) + r.because(r.available)}
	}
	return UpdateState{}
}

// because returns text about the first PodClique of the replica, in the order of names, for which is returns false; ""
// if there is none.
func (r GroupReplica) because(is func(Clique) bool) string {
	var first *Clique
	for i := range r.Members {
		if c := &r.Members[i]; !is(*c) && (first == nil || c.Name < first.Name) {
			first = c
		}
	}
	switch {
	case first == nil:
		return ""
	case first.Terminating:
		return fmt.Sprintf(": PodClique %s is being deleted", first.Name)
	}
	return fmt.Sprintf(": PodClique %s is below its minimum", first.Name)
}

// inFlight returns what the replacement of a selected replica waits for. The zero value: it is available, or no longer
// desired.
func (u GroupUpdate) inFlight(selected string) UpdateState {
	index, err := strconv.Atoi(selected)
	if err != nil || index >= int(u.Wanted) {
		return UpdateState{}
	}
	for _, r := range u.Replicas {
		if r.Index == index {
			return r.waitsFor()
		}
	}
	return UpdateState{UpdateWaitsForCreation, fmt.Sprintf("the replacement of replica %d is not created yet", index)}
}
