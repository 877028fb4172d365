// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/naming"
)

// DeletedUpdate is the deletion reason of a pod that was created from an earlier template, and is replaced by a pod of
// the current template.
const DeletedUpdate DeletionReason = "Update"

// CliqueUpdate contains the facts that decide how an update of a PodClique continues.
type CliqueUpdate struct {
	// Target is the revision and template that the PodClique must follow.
	Target Target
	// OnDelete: the update strategy is OnDelete. Turn: under RollingRecreate, pods may be replaced. Member: the
	// PodClique belongs to a scaling group, whose replicas are replaced as a whole.
	OnDelete, Turn, Member bool
	// Progress is the progress recorded in the status.
	Progress *Progress
	// Replicas is the desired number of pods, MinAvailable the number that must be ready.
	Replicas, MinAvailable int32
	// Pods are the pods that the PodClique owns.
	Pods []Pod
	// Deleted are the UIDs of pods that are deleted in this pass for another reason.
	Deleted map[string]bool
	// StalledAfter is the time without progress after which an update has stalled. Not positive: never.
	StalledAfter time.Duration
}

// CliqueUpdateDecision is the decision how an update of a PodClique continues.
type CliqueUpdateDecision struct {
	// Progress must be recorded before a pod is deleted. It is the given one if nothing changes.
	Progress *Progress
	// Delete are the pods to replace.
	Delete []Deletion
	// Current: every pod was created from the template of the target. If false, the status must not claim that all
	// pods follow the target.
	Current bool
	// State is the content of the condition Progressing.
	State UpdateState
	// RequeueAfter is when the decision changes without an event; 0: it does not.
	RequeueAfter time.Duration
}

// DecideCliqueUpdate returns which pods of a PodClique are replaced because of an update. Source: Rolling Update,
// "PodClique (PCLQ) Pod Selection"; GREP-291, "OnDelete Strategy"; docs/decisions, U2 to U6, U8.
//
//   - Under OnDelete no pod is deleted. An update begins and ends at the same time; one that was in progress ends.
//   - In the clique's turn, pods of an earlier template that are not ready are replaced immediately: first those without a
//     node, then the others. The oldest ready pod is replaced when minAvailable pods are ready and the previous replacement
//     has become ready; then the next one.
//   - The update is complete when no pod of an earlier template exists, except lost ones, all desired pods exist, the last
//     replacement has become ready, and minAvailable pods are ready.
//   - A unit in flight stays in flight when the target changes or the turn is lost: no other unit is deleted before its
//     replacement is ready.
//   - A member of a scaling group is not updated by itself: the group replaces the replica that it belongs to.
func DecideCliqueUpdate(u CliqueUpdate, now time.Time) CliqueUpdateDecision {
	var outdated []Pod // that are not deleted for another reason
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
		case pod.Name == p.Selected && p.InFlight() && ready >= u.MinAvailable: // selected earlier, but not deleted
			d.Delete = append(d.Delete, Deletion{pod, DeletedUpdate})
		default:
			readyOutdated = append(readyOutdated, pod)
		}
	}
	d.Delete = append(d.Delete, unhealthy...)
	switch {
	case waits.Reason != "" && ready < u.MinAvailable && slices.ContainsFunc(readyOutdated, func(pod Pod) bool { return pod.Name == p.Selected }):
		d.State = u.belowMinimum(ready) // ready pods fell below the minimum between selection and deletion
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

// inFlight returns what the replacement of a selected pod waits for. The zero value: it is ready, or no longer
// desired. A lost pod is not waited for.
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
	case same != nil && same.Ready: // of the current template, or of one between the current and the selected pod's
		return UpdateState{}
	case same != nil:
		return waitsFor(*same)
	case others < u.Replicas:
		return UpdateState{UpdateWaitsForCreation, fmt.Sprintf("the replacement of pod %s is not created yet", selected)}
	case lower != nil:
		return waitsFor(*lower) // a lower index was free, and the replacement has that index
	}
	return UpdateState{} // scaled in
}

// notReady returns what the first pod that is neither ready nor being deleted waits for.
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

// firstOf returns the pod with the lower index, so that a message does not depend on the order of the pods. a may be nil.
func firstOf(a, b *Pod) *Pod {
	if a == nil || cmp.Or(cmp.Compare(b.Index, a.Index), byAge(*b, *a)) < 0 {
		return b
	}
	return a
}

// waitsFor returns what a pod that is not ready waits for, with the cause if it is known.
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

// inDeletionOrderOnDelete returns the pods in the order in which scaling in deletes them under OnDelete: outdated pods
// first, except ready ones whose deletion would leave fewer than minAvailable ready pods; then in the order of
// InDeletionOrder. Source: GREP-291, "OnDelete Strategy"; docs/decisions, U4.
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
