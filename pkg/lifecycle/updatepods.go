package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/naming"
)

// DeletedUpdate is the reason of a pod that was made from an earlier template, and is replaced by one of the present template.
const DeletedUpdate DeletionReason = "Update"

// CliqueUpdate is what decides how an update of a PodClique goes on.
type CliqueUpdate struct {
	// Target is what the PodClique is to follow.
	Target Target
	// OnDelete: the strategy is that. Turn: under RollingRecreate, pods may be replaced. Member: it is a member of a scaling
	// group, whose replicas are replaced whole.
	OnDelete, Turn, Member bool
	// Progress is what the status records.
	Progress *Progress
	// Replicas is how many pods are wanted, MinAvailable how many must be ready.
	Replicas, MinAvailable int32
	// Pods are those that the clique owns.
	Pods []Pod
	// Deleted are pods that are deleted in this pass for another reason, by UID.
	Deleted map[string]bool
	// StalledAfter is after how long without progress an update has stalled. Not positive: never.
	StalledAfter time.Duration
}

// CliqueUpdateDecision is how an update of a PodClique goes on.
type CliqueUpdateDecision struct {
	// Progress is to be recorded before anything is deleted. It is the one that was given, if nothing changes.
	Progress *Progress
	// Delete are pods to be replaced.
	Delete []Deletion
	// Current: every pod is of the target's template. False: what the status says that all pods follow must not be the target.
	Current bool
	// State is for the condition.
	State UpdateState
	// RequeueAfter is when the decision changes without anything happening; 0: it does not.
	RequeueAfter time.Duration
}

// DecideCliqueUpdate returns which pods of a PodClique are replaced because of an update. Source: Rolling Update, "PodClique
// (PCLQ) Pod Selection"; GREP-291, "OnDelete Strategy"; docs/decisions, U2 to U6, U8.
//
//   - Under OnDelete nothing is deleted. An update begins and ends in one moment; one that was open ends.
//   - In its turn, pods of an earlier template that are not ready go immediately: those without a node first, then the others.
//     Of ready ones the oldest goes when minAvailable pods are ready and the replacement of the one before has been; then the
//     next.
//   - The update is complete when no pod of an earlier template exists, except lost ones, every pod that is wanted exists, the last
//     replacement has been ready, and minAvailable pods are.
//   - A unit in flight stays so when the target changes or the turn is lost: no other is taken down before it is ready.
//   - A member of a scaling group is not updated by itself: the group replaces the replica that it is part of.
func DecideCliqueUpdate(u CliqueUpdate, now time.Time) CliqueUpdateDecision {
	var outdated []Pod // that are there to stay otherwise
	ready, present, leaving := int32(0), int32(0), 0
	for _, p := range u.Pods {
		switch {
		case p.Terminating || u.Deleted[p.UID]:
			if p.Outdated && !p.lost(now) {
				leaving++
			}
			continue
		case p.Ready && !p.Ended:
			ready++
		}
		present++
		if p.Outdated {
			outdated = append(outdated, p)
		}
	}
	d := CliqueUpdateDecision{Progress: u.Progress, Current: len(outdated)+leaving == 0}
	old := message.Are(len(outdated), "pod") + " of an earlier template"
	stays := UpdateState{UpdateOnDelete, old + message.Plural(len(outdated), "; it is replaced when it is deleted", "; each is replaced when it is deleted")}
	switch {
	case u.Member:
		d.Progress, d.State = nil, UpdateState{}
		return d
	case u.OnDelete:
		d.Progress = u.Progress.onDelete(u.Target, len(outdated) > 0, now)
		d.State = UpdateState{UpdateComplete, "every pod is of the present template"}
		if len(outdated) > 0 {
			d.State = stays
		}
		return d
	case len(outdated) > 0 && !u.Turn:
		turn := UpdateState{UpdateWaitsForTurn, old + "; the update of the PodCliqueSet has not reached this replica"}
		waitsFor := func(unit string) UpdateState { return u.inFlight(unit, now) }
		d.Progress, d.State = u.Progress.withoutTurn(u.Target, waitsFor, turn, stays)
		d.State, d.RequeueAfter = d.State.stalled(d.Progress, u.StalledAfter, now)
		return d
	case len(outdated) == 0 && !u.Progress.Open():
		d.State = UpdateState{UpdateComplete, "every pod is of the present template"}
		return d
	}

	p := u.Progress.towards(u.Target, now)
	d.Progress = p
	waits := UpdateState{}
	if p.InFlight() {
		if waits = u.inFlight(p.Selected, now); waits.Reason == "" {
			p.complete(now)
		}
	}
	slices.SortFunc(outdated, byAge)
	var readyOutdated []Pod
	var unhealthy []Deletion
	for _, pod := range outdated {
		switch {
		case !pod.Scheduled:
			d.Delete = append(d.Delete, Deletion{pod, DeletedUpdate})
		case !pod.Ready || pod.Ended:
			unhealthy = append(unhealthy, Deletion{pod, DeletedUpdate})
		case pod.Name == p.Selected && p.InFlight() && ready >= u.MinAvailable: // selected before, and not deleted
			d.Delete = append(d.Delete, Deletion{pod, DeletedUpdate})
		default:
			readyOutdated = append(readyOutdated, pod)
		}
	}
	d.Delete = append(d.Delete, unhealthy...)
	switch {
	case waits.Reason != "" && ready < u.MinAvailable && slices.ContainsFunc(readyOutdated, func(pod Pod) bool { return pod.Name == p.Selected }):
		d.State = u.belowMinimum(ready) // it fell below between the selection and the deletion
	case waits.Reason != "":
		d.State = waits
	case ready < u.MinAvailable && len(readyOutdated) > 0:
		d.State = u.belowMinimum(ready)
	case len(readyOutdated) > 0:
		next := readyOutdated[0]
		p.pick(next.Name, now)
		d.Delete = append(d.Delete, Deletion{next, DeletedUpdate})
		d.State = UpdateState{Updating, fmt.Sprintf("replacing pod %s; %s", next.Name, old)}
	case len(outdated) > 0:
		d.State = UpdateState{Updating, fmt.Sprintf("replacing %s that %s not ready", message.Count(len(outdated), "pod"), message.Plural(len(outdated), "is", "are"))}
	case leaving > 0:
		d.State = UpdateState{UpdateWaitsForDeletion, message.Count(leaving, "pod") + " of an earlier template " + message.Plural(leaving, "terminates", "terminate")}
	case present < u.Replicas:
		d.State = UpdateState{UpdateWaitsForCreation, message.Are(int(u.Replicas-present), "pod") + " not created yet"}
	case ready < u.MinAvailable:
		d.State = UpdateState{UpdateWaitsForReadiness, readyPods(ready, u.MinAvailable)}
		if wait := u.notReady(); wait.Reason != "" {
			d.State = UpdateState{wait.Reason, wait.Message + "; " + d.State.Message}
		}
	default:
		p.end(now)
		d.State = UpdateState{UpdateComplete, "every pod is of the present template"}
	}
	d.State, d.RequeueAfter = d.State.stalled(p, u.StalledAfter, now)
	return d
}

// belowMinimum returns why no ready pod is replaced now.
func (u CliqueUpdate) belowMinimum(ready int32) UpdateState {
	message := "no ready pod is replaced while fewer are ready than needed: " + readyPods(ready, u.MinAvailable)
	if wait := u.notReady(); wait.Reason != "" {
		message += "; " + wait.Message
	}
	return UpdateState{UpdateWaitsForMinAvailable, message}
}

// inFlight returns what the replacement of a selected pod waits for. The zero value: it is ready, or not wanted any more. The
// pod is waited for no longer when it is lost.
func (u CliqueUpdate) inFlight(selected string, now time.Time) UpdateState {
	index, others := naming.PodIndex(selected), int32(0)
	var same, lower *Pod // the pod of its index, and the first of a lower index that is not ready
	for i := range u.Pods {
		p := &u.Pods[i]
		switch {
		case p.lost(now):
		case p.Name == selected && p.Terminating:
			return UpdateState{UpdateWaitsForDeletion, fmt.Sprintf("pod %s terminates; its replacement is created when it is gone", p.Name)}
		case p.Name == selected && p.Outdated:
			return UpdateState{Updating, fmt.Sprintf("replacing pod %s", p.Name)}
		case p.Terminating, u.Deleted[p.UID]:
		case p.Index == index && index >= 0:
			same = firstOf(same, p)
		default:
			others++
			if p.Index < index && !p.Ready {
				lower = firstOf(lower, p)
			}
		}
	}
	switch {
	case same != nil && same.Ready: // of the present template, or of one between that and the first
		return UpdateState{}
	case same != nil:
		return waitsFor(*same)
	case others < u.Replicas:
		return UpdateState{UpdateWaitsForCreation, fmt.Sprintf("the replacement of pod %s is not created yet", selected)}
	case lower != nil:
		return waitsFor(*lower) // a lower index was free, and the replacement got that
	}
	return UpdateState{} // scaled in
}

// notReady returns what the first pod waits for that is not ready and there to stay.
func (u CliqueUpdate) notReady() UpdateState {
	var found *Pod
	for i := range u.Pods {
		if p := &u.Pods[i]; !p.Terminating && !p.Ready && !p.Outdated && !u.Deleted[p.UID] {
			found = firstOf(found, p)
		}
	}
	if found == nil {
		return UpdateState{}
	}
	return waitsFor(*found)
}

// firstOf returns the pod of the lower index, so that a message does not depend on the order of the pods. a may be nil.
func firstOf(a, b *Pod) *Pod {
	if a == nil || cmp.Or(cmp.Compare(b.Index, a.Index), byAge(*b, *a)) < 0 {
		return b
	}
	return a
}

// waitsFor returns what a pod that is not ready waits for, with its cause if one is known.
func waitsFor(p Pod) UpdateState {
	cause := p.Cause
	if p.LostNode != "" {
		cause = "node " + p.LostNode + " does not answer"
	}
	if cause != "" {
		cause = ": " + cause
	}
	switch {
	case p.Ended:
		return UpdateState{UpdateWaitsForReadiness, fmt.Sprintf("pod %s ended; it is replaced after a back-off", p.Name)}
	case !p.Scheduled:
		return UpdateState{UpdateWaitsForCapacity, fmt.Sprintf("pod %s is not bound to a node", p.Name) + cause}
	}
	return UpdateState{UpdateWaitsForReadiness, fmt.Sprintf("pod %s is not ready", p.Name) + cause}
}

// inDeletionOrderOnDelete returns the pods in the order in which scaling in takes them under OnDelete: outdated ones first,
// though no ready one that leaves fewer than minAvailable ready pods, then in the order of InDeletionOrder. Source: GREP-291,
// "OnDelete Strategy"; docs/decisions, U4.
func inDeletionOrderOnDelete(pods []Pod, minAvailable int32) []Pod {
	ready := int32(0)
	for _, p := range pods {
		if p.Ready {
			ready++
		}
	}
	var first, rest []Pod
	for _, p := range InDeletionOrder(pods) {
		if !p.Outdated || p.Ready && ready <= minAvailable {
			rest = append(rest, p)
			continue
		}
		if p.Ready {
			ready--
		}
		first = append(first, p)
	}
	return append(first, rest...)
}
