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
	// ScaledOut are the desired replicas that were never complete. HoldsNew: they get the previous template, because the update
	// is paused, or must not reach this replica of the set.
	ScaledOut []int
	HoldsNew  bool
	// SetReached: the update of the set has reached this replica of the set. Without a turn that is because a user has deleted all
	// of its PodCliques.
	SetReached bool
	// Progress is the progress recorded in the status, Followed the hash of the revision that all replicas followed last.
	Progress *Progress
	Followed string
	// Replicas are the desired replicas of which a PodClique exists; Wanted is the desired number.
	Replicas []GroupReplica
	Wanted   int32
	// New are the desired replicas of which no PodClique exists and that do not hold the previous template: they are created from
	// the current one.
	New []int
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
	// Suspends: the minima of the group and its members are not judged, because of the update.
	Suspends bool
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
// update in progress has not reached the replica. It has if the replica is scaled out, or if a user deleted it as a whole in the
// group's turn. existing is the replica, nil if no PodClique of it exists. Source: docs/decisions, U3, U9.
func (u GroupUpdate) HoldsPrevious(j int, existing *GroupReplica, replaced Raised) bool {
	isNew, awaitsTurn := slices.Contains(u.ScaledOut, j), u.Progress.AwaitsTurn(u.Generation, u.Followed, u.Turn || u.SetReached)
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

// groupCount divides the replicas of a group that is updated.
type groupCount struct {
	// outdated are the replicas of an earlier template that are not being replaced, the oldest first. leaving is the
	// number of those that are being replaced.
	outdated []GroupReplica
	leaving  int
	// available counts the replicas that are certainly available. bound: a pod of a replica is bound. ripening: a replica is
	// ready, and not for minReadySeconds.
	available       int32
	bound, ripening bool
	// unhealthy is the first replica of the target that is not available; nil: there is none. A replica of which no pod
	// has had a node for unboundGrace does not fit, and is left out. made is the first of them that the update has made.
	// settles is when an unbound one is left out; zero: there is none.
	unhealthy, made *GroupReplica
	settles         time.Time
	// ripens: unhealthy only waits for minReadySeconds.
	ripens bool
	// updated are the indices of the replicas of the target.
	updated []int
}

// newest returns the creation time of the youngest PodClique of the replica.
func (r GroupReplica) newest() time.Time {
	var newest time.Time
	for _, c := range r.Members {
		newest = latest(newest, c.Created)
	}
	return newest
}

func (u GroupUpdate) countReplicas(d *GroupUpdateDecision, now time.Time) groupCount {
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
		c.bound, c.ripening = c.bound || r.hasScheduled(), c.ripening || r.isReady() && !r.Available()
		switch {
		case r.leaves():
			c.leaving++
		case !r.isKnown():
			d.Known = false
		case r.outdated(u.Generation):
			c.outdated = append(c.outdated, *r)
		default:
			c.updated = append(c.updated, r.Index)
			settles := r.newest().Add(unboundGrace)
			if available || !r.hasScheduled() && !now.Before(settles) {
				continue
			}
			if !r.hasScheduled() {
				c.settles = latest(c.settles, settles)
			}
			if c.unhealthy == nil {
				c.unhealthy, c.ripens = r, r.isReady()
			}
			if c.made == nil && u.Progress.Open() && u.Progress.Reached.Has(r.Index) {
				c.made = r
			}
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
//   - In the group's turn, replicas that are not scheduled or not ready are replaced immediately. One that is ready serves, also
//     if it has not been for minReadySeconds: the oldest ready replica is replaced when the previous replacement has become
//     available, and when without this replica minAvailable replicas are available, or all others if every replica is needed.
//   - No ready replica is replaced while one of the current template is not available or is being replaced, unless no
//     pod of it has had a node for unboundGrace. No replica at all is replaced while this holds for one that the update has
//     made, nor while the update is paused.
//   - The update is complete when every replica exists, every pod was created from the current template, all replicas with
//     bound pods are available, and minAvailable replicas are. If no pod is bound, it is complete without available ones.
//   - A replica in flight stays in flight when the target changes or the turn is lost.
//   - Unknown states replace no replica, and do not complete the update.
func DecideGroupUpdate(u GroupUpdate, now time.Time) GroupUpdateDecision {
	d := decideGroupUpdate(u, now)
	d.Suspends, _ = d.Progress.suspends(u.StalledAfter, now)
	return d
}

func decideGroupUpdate(u GroupUpdate, now time.Time) GroupUpdateDecision {
	d := GroupUpdateDecision{Known: true}
	c := u.countReplicas(&d, now)
	// The cache of a group that sees none of its replicas may lack those that it has just created from the template before.
	known := d.Known && (len(u.Replicas) > 0 || u.Wanted <= 0 || u.Followed == "")
	d.Current, d.Outdated = known && c.leaving == 0 && len(c.outdated) == 0, len(c.outdated) > 0
	r := rollout{target: Target{Generation: u.Generation}, progress: u.Progress, followed: u.Followed, onDelete: u.OnDelete, turn: u.Turn, paused: u.Paused,
		known: known, stalledAfter: u.StalledAfter, outdated: len(c.outdated), old: message.CountAre(len(c.outdated), "replica") + " of an earlier template",
		awaitsTurn: "the update of the PodCliqueSet has not reached " + message.Plural(len(c.outdated), "it", "them"),
		complete:   "all replicas match the current template", inFlight: u.inFlight}
	var isIdle bool
	if d.Progress, d.State, d.RequeueAfter, isIdle = r.decideIdle(now); isIdle {
		return d
	}
	p, waits := r.proceed(now)
	d.Progress = p
	p.recordReached(u.New...)
	lacking := p.lacking(c.updated, int(u.Wanted)-len(c.outdated)-len(c.updated))
	ready := d.replaceUnready(c.outdated, r.isBlocked(c.made != nil, waits))
	replacing := ""
	if len(ready) > 0 {
		replacing = fmt.Sprintf("replacing replica %d", ready[0].Index)
	}
	state, replaces := r.advance(p, u.obstacle(c, r, d.Known, waits, ready, lacking), replacing, u.remaining(c), now)
	if replaces {
		p.selectUnit(strconv.Itoa(ready[0].Index), now)
		d.replace(ready[0], "is the oldest ready one")
	}
	d.Current = known && !d.Outdated && c.leaving == 0 && !p.Open()
	ripens := c.ripens || c.ripening && state.Reason == UpdateWaitsForMinAvailable
	d.State, d.RequeueAfter = r.checkStall(p, state, ripens, 0, c.settles, now) // the end of minReadySeconds changes the status of a PodClique
	return d
}

// replace replaces a replica of an earlier template; was says why it.
func (d *GroupUpdateDecision) replace(r GroupReplica, was string) {
	if d.Replace == nil {
		d.Replace = map[int]Replacement{}
	}
	d.Replace[r.Index] = Replacement{Reason: ReplacedUpdate, Message: "it has pods of an earlier template, and " + was}
	d.Progress.recordReached(r.Index)
}

// replaceUnready replaces the outdated replicas that are not ready, and returns the others. isBlocked: only the one in flight,
// which is then of an intermediate template.
func (d *GroupUpdateDecision) replaceUnready(outdated []GroupReplica, isBlocked bool) (ready []GroupReplica) {
	for _, r := range outdated {
		switch {
		case r.isReady():
			ready = append(ready, r)
		case isBlocked && !(d.Progress.InFlight() && d.Progress.Selected == strconv.Itoa(r.Index)):
		case !r.IsScheduled():
			d.replace(r, "is not scheduled")
		default:
			d.replace(r, "is not available")
		}
	}
	return ready
}

// obstacle returns what is against replacing the first of the ready replicas, or against going on if there is none.
func (u GroupUpdate) obstacle(c groupCount, r rollout, known bool, waits UpdateState, ready []GroupReplica, lacking int) UpdateState {
	hasNext, others := len(ready) > 0, c.available
	if hasNext && ready[0].Available() && ready[0].observed() {
		others--
	}
	switch {
	case waits.Reason != "":
		return waits
	case !known:
		return UpdateState{Updating, "the statuses of PodCliques do not describe the current template yet"}
	case c.unhealthy != nil && (hasNext || c.made != nil || len(c.outdated) == 0):
		wait := c.unhealthy.waitsFor()
		if c.made != nil {
			wait = c.made.waitsFor()
		}
		return UpdateState{wait.Reason, "an updated replica is not available: " + wait.Message}
	case u.Paused && len(c.outdated) > 0:
		return UpdateState{UpdatePaused, "the update is paused; " + r.old}
	case hasNext && lacking > 0:
		return UpdateState{UpdateWaitsForCreation, message.CountAre(lacking, "updated replica") + " not created yet"}
	case hasNext && !sparesOne(others, u.MinAvailable, u.Wanted):
		return UpdateState{UpdateWaitsForMinAvailable, "no ready replica is replaced, because too few others are available: " + u.belowMinimum(c.available).Message}
	}
	return UpdateState{}
}

// remaining returns what an update waits for that replaces no further ready replica. No reason: for nothing.
func (u GroupUpdate) remaining(c groupCount) UpdateState {
	switch {
	case len(c.outdated)+c.leaving > 0:
		return UpdateState{UpdateWaitsForDeletion, message.CountAre(len(c.outdated)+c.leaving, "replica") + " being replaced"}
	case len(u.Replicas) < int(u.Wanted):
		return UpdateState{UpdateWaitsForCreation, message.CountAre(int(u.Wanted)-len(u.Replicas), "replica") + " not created yet"}
	case c.bound && c.available < u.MinAvailable:
		return u.belowMinimum(c.available)
	}
	return UpdateState{}
}

// belowMinimum returns what the first unavailable replica that is not being replaced waits for.
func (u GroupUpdate) belowMinimum(available int32) UpdateState {
	text := fmt.Sprintf("%d of %d replicas available, %d needed", available, u.Wanted, u.MinAvailable)
	for _, r := range u.Replicas {
		if wait := r.waitsFor(); wait.Reason != "" && !(r.isKnown() && r.outdated(u.Generation)) {
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
