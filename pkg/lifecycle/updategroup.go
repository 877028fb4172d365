package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// GroupUpdate is what decides how an update of a PodCliqueScalingGroup goes on.
type GroupUpdate struct {
	// Revision and Generation are the number and the hash of the PodCliqueSet's revision that the group is to follow.
	Revision   int64
	Generation string
	// OnDelete: the strategy is that. Turn: under RollingRecreate, replicas may be replaced.
	OnDelete, Turn bool
	// Progress is what the status records.
	Progress *Progress
	// Replicas are those that are wanted and of which a PodClique exists; Wanted is how many are wanted.
	Replicas []GroupReplica
	Wanted   int32
	// MinAvailable is how many must be available.
	MinAvailable int32
	// StalledAfter is after how long without progress an update has stalled. Not positive: never.
	StalledAfter time.Duration
}

// GroupUpdateDecision is how an update of a PodCliqueScalingGroup goes on.
type GroupUpdateDecision struct {
	// Progress is to be recorded together with the attempts of Replace.
	Progress *Progress
	// Replace are the replicas that are replaced, and why, by index. nil: none.
	Replace map[int]Replacement
	// Current: every pod follows the target.
	Current bool
	// Known: the status of every PodClique describes the target.
	Known bool
	// UpdatedCliques and TotalCliques count the PodCliques of the wanted replicas that exist.
	UpdatedCliques, TotalCliques int32
	State                        UpdateState
	RequeueAfter                 time.Duration
}

// outdated reports whether a pod of the replica is of an earlier template, as far as is known.
func (r GroupReplica) outdated() bool {
	return slices.ContainsFunc(r.Members, func(c Clique) bool {
		return !c.Terminating && c.knows(r.Revision) && c.Updated < c.Pods
	})
}

// known reports whether the status of every PodClique that is there to stay describes the revision.
func (r GroupReplica) known() bool {
	return !slices.ContainsFunc(r.Members, func(c Clique) bool { return !c.Terminating && !c.knows(r.Revision) })
}

// leaves reports whether the replica is being replaced: a PodClique of an earlier attempt exists.
func (r GroupReplica) leaves() bool {
	return slices.ContainsFunc(r.Members, func(c Clique) bool { return c.Attempt.Precedes(r.Attempt) })
}

// DecideGroupUpdate returns which replicas of a scaling group are replaced because of an update. Source: Rolling Update, "PCSG
// Replica Selection"; GREP-291, "OnDelete Strategy"; decisions U2 to U6, W10.
//
//   - A replica is replaced whole if a pod of it is of an earlier template. Under OnDelete none is.
//   - In the group's turn, replicas that are not scheduled or not available go at once. Of available ones the oldest goes when
//     minAvailable replicas are available and the replacement of the one before has been; then the next.
//   - The update is complete when every pod is of the present template, the last replacement has been available, and
//     minAvailable replicas are.
//   - What is not known yet replaces nothing.
func DecideGroupUpdate(u GroupUpdate, now time.Time) GroupUpdateDecision {
	d := GroupUpdateDecision{Progress: u.Progress, Known: true}
	var outdated []GroupReplica
	leaving, available := 0, int32(0)
	for _, r := range u.Replicas {
		for _, c := range r.Members {
			d.TotalCliques++
			if c.isUpdated(u.Revision) {
				d.UpdatedCliques++
			}
		}
		if r.Available() && r.observed() {
			available++
		}
		switch {
		case r.leaves():
			leaving++
		case !r.known():
			d.Known = false
		case r.outdated():
			outdated = append(outdated, r)
		}
	}
	d.Current = d.Known && leaving == 0 && len(outdated) == 0
	old := fmt.Sprintf("%s of an earlier template", countReplicas(len(outdated)))
	target := Target{Generation: u.Generation}
	complete := UpdateState{UpdateComplete, "every replica is of the present template"}
	switch {
	case u.OnDelete:
		if u.Progress.Open() {
			d.Progress = u.Progress.towards(u.Progress.Target, now)
			d.Progress.end(now)
		}
		if len(outdated) > 0 && (d.Progress == nil || d.Progress.Target != target) {
			d.Progress = &Progress{Target: target, StartedAt: now, LastProgress: now}
			d.Progress.end(now)
		}
		if d.State = complete; len(outdated) > 0 {
			d.State = UpdateState{UpdateOnDelete, old + "; each is replaced when it is deleted"}
		}
		return d
	case !d.Known && !u.Progress.Open():
		return d // in a moment it is
	case len(outdated) > 0 && !u.Turn:
		if u.Progress.Open() {
			d.Progress = nil
		}
		d.State = UpdateState{UpdateWaitsForTurn, old}
		return d
	case len(outdated) == 0 && !u.Progress.Open():
		d.State = complete
		return d
	}

	p := u.Progress.towards(target, now)
	d.Progress = p
	var waits UpdateState
	if p.InFlight() {
		if waits = u.inFlight(p.Selected); waits.Reason == "" {
			p.complete(now)
		}
	}
	replace := func(r GroupReplica, was string) {
		if d.Replace == nil {
			d.Replace = map[int]Replacement{}
		}
		d.Replace[r.Index] = Replacement{Reason: ReplacedUpdate, Message: "it has pods of an earlier template, and " + was}
	}
	slices.SortFunc(outdated, func(a, b GroupReplica) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Index, b.Index))
	})
	var ready []GroupReplica
	for _, r := range outdated {
		switch {
		case !r.IsScheduled():
			replace(r, "is not scheduled")
		case !r.Available():
			replace(r, "is not available")
		default:
			ready = append(ready, r)
		}
	}
	switch {
	case waits.Reason != "":
		d.State = waits
	case !d.Known:
		d.State = UpdateState{Updating, "the statuses of PodCliques do not describe the present template yet"}
	case len(ready) > 0 && available < u.MinAvailable:
		d.State = UpdateState{UpdateWaitsForMinAvailable, fmt.Sprintf("no available replica is replaced while fewer are available than needed: %d of %d available, %d needed",
			available, u.Wanted, u.MinAvailable)}
	case len(ready) > 0:
		p.pick(strconv.Itoa(ready[0].Index), now)
		replace(ready[0], "is available")
		d.State = UpdateState{Updating, fmt.Sprintf("replacing replica %d; %s", ready[0].Index, old)}
	case len(outdated)+leaving > 0:
		d.State = UpdateState{UpdateWaitsForDeletion, fmt.Sprintf("%s being replaced", countReplicas(len(outdated)+leaving))}
	case available < u.MinAvailable:
		d.State = u.belowMinimum(available)
	default:
		p.end(now)
		d.State = complete
	}
	d.State, d.RequeueAfter = d.State.stalled(p, u.StalledAfter, now)
	return d
}

// belowMinimum returns what the first replica waits for that is not available, though all are of the present template.
func (u GroupUpdate) belowMinimum(available int32) UpdateState {
	text := fmt.Sprintf("%d of %d replicas available, %d needed", available, u.Wanted, u.MinAvailable)
	for _, r := range u.Replicas {
		switch {
		case r.Available():
		case !r.IsScheduled():
			return UpdateState{UpdateWaitsForCapacity, fmt.Sprintf("replica %d is not bound to nodes; %s", r.Index, text)}
		default:
			return UpdateState{UpdateWaitsForReadiness, fmt.Sprintf("replica %d is not available; %s", r.Index, text)}
		}
	}
	return UpdateState{UpdateWaitsForMinAvailable, text}
}

// inFlight returns what the replacement of a selected replica waits for. The zero value: it is available, or not wanted any
// more.
func (u GroupUpdate) inFlight(selected string) UpdateState {
	index, err := strconv.Atoi(selected)
	if err != nil || index >= int(u.Wanted) {
		return UpdateState{}
	}
	for _, r := range u.Replicas {
		if r.Index != index {
			continue
		}
		switch {
		case r.leaves():
			return UpdateState{UpdateWaitsForDeletion, fmt.Sprintf("replica %d terminates; its replacement is created when it is gone", index)}
		case !r.IsScheduled():
			return UpdateState{UpdateWaitsForCapacity, fmt.Sprintf("replica %d is not bound to nodes", index)}
		case !r.Available():
			return UpdateState{UpdateWaitsForReadiness, fmt.Sprintf("replica %d is not available", index)}
		}
		return UpdateState{}
	}
	return UpdateState{UpdateWaitsForDeletion, fmt.Sprintf("the replacement of replica %d is not created yet", index)}
}

func countReplicas(n int) string {
	if n == 1 {
		return "1 replica is"
	}
	return fmt.Sprintf("%d replicas are", n)
}
