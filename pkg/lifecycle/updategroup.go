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
	Update
	// Revision is the number of the PodCliqueSet's revision that the group is to follow.
	Revision int64
	// ScaledOut are the desired replicas that were never complete. HoldsNew: they get the previous template, because
	// the update is paused, or must not reach this replica of the set.
	ScaledOut []int
	HoldsNew  bool
	// SetReached: the update of the set has reached this replica of the set. Without a turn that is because a user has
	// deleted all of its PodCliques.
	SetReached bool
	// Replicas are the desired replicas of which a PodClique exists.
	Replicas []GroupReplica
	// New are the desired replicas of which no PodClique exists and that do not hold the previous template: they are
	// created from the current one.
	New []int
}

// GroupUpdateDecision is the decision how an update of a PodCliqueScalingGroup continues.
type GroupUpdateDecision struct {
	// UpdateDecision.Progress must be recorded together with the attempts of Replace.
	UpdateDecision
	// Replace are the replicas to replace, by index, with the reasons. nil: none.
	Replace map[int]Replacement
	// Known: the status of every PodClique of the target's template describes the target.
	Known bool
	// UpdatedCliques and TotalCliques count the existing PodCliques of the desired replicas.
	UpdatedCliques, TotalCliques int32
}

// DecideGroupUpdate returns which replicas of a scaling group are replaced because of an update: each as a whole if it
// has a pod of an earlier template. Source: rollout.decide; docs/decisions, W10.
func DecideGroupUpdate(u GroupUpdate, now time.Time) GroupUpdateDecision {
	d := GroupUpdateDecision{Known: true}
	r := rollout{Update: u.Update, kind: &u, noun: "replica", parts: "PodCliques", made: u.New,
		// A cache that shows no replica may lack those that were just created from the template before.
		hidden: len(u.Replicas) == 0 && u.Wanted > 0 && u.Followed != ""}
	for i, replica := range u.Replicas {
		leaves, known := replica.leaves(), replica.isKnown()
		d.Known = d.Known && (known || leaves)
		r.units = append(r.units, updateUnit{at: i, index: replica.Index, name: strconv.Itoa(replica.Index),
			leaving: leaves, unknown: !known, outdated: !leaves && known && replica.outdated(u.Target.Generation),
			bound: replica.hasScheduled(), ready: replica.isReady(), available: replica.Available() && replica.observed(),
			silence: replica.silence().ofNodes(),
			settles: replica.newest().Add(unboundGrace)})
		for _, c := range replica.Members {
			d.TotalCliques++
			if c.isUpdated(u.Revision, u.Target.Generation) {
				d.UpdatedCliques++
			}
		}
	}
	decided := r.decide(now)
	d.UpdateDecision = decided.UpdateDecision
	for _, unit := range decided.replace {
		was := "is not available"
		switch {
		case unit.ready:
			was = "is the oldest ready one"
		case !u.Replicas[unit.at].IsScheduled():
			was = "is not scheduled"
		}
		if d.Replace == nil {
			d.Replace = map[int]Replacement{}
		}
		d.Replace[unit.index] = Replacement{Reason: ReplacedUpdate, Message: "it has pods of an earlier template, and " + was}
	}
	return d
}

func (u *GroupUpdate) compare(a, b updateUnit) int {
	return cmp.Or(u.Replicas[a.at].Created.Compare(u.Replicas[b.at].Created), cmp.Compare(a.index, b.index))
}

func (u *GroupUpdate) describeOld(n int) (are, stay, awaitTurn string) {
	return describeOld(n, "replica", message.Plural(n, "it", "them"))
}

func (u *GroupUpdate) unhealthy(units []updateUnit) UpdateState {
	wait := u.Replicas[units[0].at].waitsFor()
	return UpdateState{wait.Reason, "an updated replica is not available: " + wait.Message}
}

func (u *GroupUpdate) remains(c rolloutCount) UpdateState {
	if n := len(c.outdated) + c.leaving; n > 0 {
		return UpdateState{UpdateWaitsForDeletion, message.CountAre(n, "replica") + " being replaced"}
	}
	return UpdateState{}
}

func (u *GroupUpdate) tooFew(available int32, _ time.Time) UpdateState {
	text := fmt.Sprintf("%d of %d replicas available, %d needed", available, u.Wanted, u.MinAvailable)
	for _, r := range u.Replicas {
		if wait := r.waitsFor(); wait.Reason != "" && !(r.isKnown() && r.outdated(u.Target.Generation)) {
			return UpdateState{wait.Reason, wait.Message + "; " + text}
		}
	}
	return UpdateState{UpdateWaitsForReadiness, text}
}

func (u *GroupUpdate) inFlight(selected string, _ time.Time) flight {
	index, err := strconv.Atoi(selected)
	if err != nil || index >= int(u.Wanted) {
		return flight{}
	}
	for _, r := range u.Replicas {
		if r.Index == index {
			return flight{waits: r.waitsFor(), replacement: selected}
		}
	}
	text := "the replacement of replica " + selected + " is not created yet"
	return flight{waits: UpdateState{UpdateWaitsForCreation, text}}
}

// outdated reports whether the replica is known to have a pod of an earlier template than that of the generation. A
// pod of the current template that ended counts in Pods but not in Updated.
func (r GroupReplica) outdated(generation string) bool {
	return slices.ContainsFunc(r.Members, func(c Clique) bool {
		return !c.Terminating && (c.Old || c.describes(r.Revision) && c.Updated < c.Pods && c.Followed != generation)
	})
}

// isKnown reports whether the status of every PodClique that is not being deleted describes the revision, or its
// template is an earlier one.
func (r GroupReplica) isKnown() bool {
	return !slices.ContainsFunc(r.Members, func(c Clique) bool { return !c.Terminating && !c.Old && !c.describes(r.Revision) })
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
// update in progress has not reached the replica. It has if the replica is scaled out, or if a user deleted it as a
// whole in the group's turn. existing is the replica, nil if no PodClique of it exists. Source: docs/decisions, U3, U9.
func (u *GroupUpdate) HoldsPrevious(j int, existing *GroupReplica, replaced Raised) bool {
	isNew, awaitsTurn := slices.Contains(u.ScaledOut, j), u.Progress.AwaitsTurn(u.Target.Generation, u.Followed, u.Turn || u.SetReached)
	switch {
	case u.OnDelete:
		return false
	case existing != nil && slices.ContainsFunc(existing.Members, func(c Clique) bool { return c.Old }):
		return true
	case !u.Progress.Open() && !awaitsTurn, u.Progress.Open() && u.Progress.Reached.Has(j):
		return false
	case existing != nil:
		return len(existing.Missing) > 0 && !isNew // no PodClique of it is old
	case isNew && replaced.Reason != ReplacedTermination:
		return u.HoldsNew
	}
	return awaitsTurn || replaced.Reason == ReplacedTermination
}

// newest returns the creation time of the youngest PodClique of the replica.
func (r GroupReplica) newest() time.Time {
	var newest time.Time
	for _, c := range r.Members {
		newest = latest(newest, c.Created)
	}
	return newest
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
