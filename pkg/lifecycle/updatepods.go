package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// DeletedUpdate: it was made from an earlier template, and is replaced by one of the present template.
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
	// Current: every pod is of the target's template.
	Current bool
	// State is for the condition.
	State UpdateState
	// RequeueAfter is when the decision changes without anything happening; 0: it does not.
	RequeueAfter time.Duration
}

// DecideCliqueUpdate returns which pods of a PodClique are replaced because of an update. Source: Rolling Update, "PodClique
// (PCLQ) Pod Selection"; GREP-291, "OnDelete Strategy"; decisions U2 to U6, U8.
//
//   - Under OnDelete nothing is deleted. An update begins and ends in one moment; one that was open ends.
//   - In its turn, pods of an earlier template that are not ready go at once. Of ready ones the oldest goes when minAvailable
//     pods are ready and the replacement of the one before has been; then the next.
//   - The update is complete when every pod is of the present template, the last replacement has been ready, and minAvailable
//     pods are.
//   - A unit in flight stays so when the target changes: no other is taken down before it is ready.
//   - A member of a scaling group is not updated by itself: the group replaces the replica that it is part of.
func DecideCliqueUpdate(u CliqueUpdate, now time.Time) CliqueUpdateDecision {
	var outdated []Pod // that are there to stay otherwise
	ready := int32(0)
	for _, p := range u.Pods {
		if p.Terminating || p.Ended || u.Deleted[p.UID] {
			continue
		}
		if p.Ready {
			ready++
		}
		if p.Outdated {
			outdated = append(outdated, p)
		}
	}
	d := CliqueUpdateDecision{Progress: u.Progress, Current: len(outdated) == 0}
	old := fmt.Sprintf("%s of an earlier template", countPods(len(outdated)))
	switch {
	case u.Member:
		d.Progress, d.State = nil, UpdateState{}
		return d
	case u.OnDelete:
		if u.Progress.Open() {
			d.Progress = u.Progress.towards(u.Progress.Target, now)
			d.Progress.end(now)
		}
		if len(outdated) > 0 && (d.Progress == nil || d.Progress.Target != u.Target) {
			d.Progress = &Progress{Target: u.Target, StartedAt: now, LastProgress: now}
			d.Progress.end(now)
		}
		d.State = UpdateState{UpdateComplete, "every pod is of the present template"}
		if len(outdated) > 0 {
			d.State = UpdateState{UpdateOnDelete, old + "; each is replaced when it is deleted"}
		}
		return d
	case len(outdated) > 0 && !u.Turn:
		if u.Progress.Open() {
			d.Progress = nil // what was being updated has another turn
		}
		d.State = UpdateState{UpdateWaitsForTurn, old}
		return d
	case len(outdated) == 0 && !u.Progress.Open():
		d.State = UpdateState{UpdateComplete, "every pod is of the present template"}
		return d
	}

	p := u.Progress.towards(u.Target, now)
	d.Progress = p
	waits := UpdateState{}
	if p.InFlight() {
		if waits = u.inFlight(p.Selected); waits.Reason == "" {
			p.complete(now)
		}
	}
	var readyOutdated []Pod
	for _, pod := range outdated {
		switch {
		case !pod.Ready, pod.Name == p.Selected && p.InFlight() && ready >= u.MinAvailable:
			d.Delete = append(d.Delete, Deletion{pod, DeletedUpdate})
		default:
			readyOutdated = append(readyOutdated, pod)
		}
	}
	slices.SortFunc(readyOutdated, byAge)
	switch {
	case waits.Reason != "" && ready < u.MinAvailable && slices.ContainsFunc(readyOutdated, func(pod Pod) bool { return pod.Name == p.Selected }):
		d.State = u.belowMinimum(ready) // it fell below between the selection and the deletion
	case waits.Reason != "":
		d.State = waits
	case ready < u.MinAvailable:
		d.State = u.belowMinimum(ready)
		if wait := u.notReady(); wait.Reason != "" {
			d.State.Message += "; " + wait.Message
		}
	case len(readyOutdated) > 0:
		next := readyOutdated[0]
		p.pick(next.Name, now)
		d.Delete = append(d.Delete, Deletion{next, DeletedUpdate})
		d.State = UpdateState{Updating, fmt.Sprintf("replacing pod %s; %s", next.Name, old)}
	case len(outdated) > 0:
		d.State = UpdateState{Updating, fmt.Sprintf("replacing %s that %s not ready", countPods(len(outdated)), plural(len(outdated), "is", "are"))}
	default:
		p.end(now)
		d.State = UpdateState{UpdateComplete, "every pod is of the present template"}
	}
	d.State, d.RequeueAfter = d.State.stalled(p, u.StalledAfter, now)
	return d
}

func (u CliqueUpdate) belowMinimum(ready int32) UpdateState {
	return UpdateState{UpdateWaitsForMinAvailable, fmt.Sprintf("no ready pod is replaced while fewer are ready than needed: %s", readyPods(ready, u.MinAvailable))}
}

// inFlight returns what the replacement of a selected pod waits for. The zero value: it is ready, or not wanted any more.
func (u CliqueUpdate) inFlight(selected string) UpdateState {
	index, others := podIndex(selected), int32(0)
	for _, p := range u.Pods {
		switch {
		case p.Name == selected && p.Outdated && p.Terminating:
			return UpdateState{UpdateWaitsForDeletion, fmt.Sprintf("pod %s terminates; its replacement is created when it is gone", p.Name)}
		case p.Name == selected && p.Outdated:
			return UpdateState{Updating, fmt.Sprintf("replacing pod %s", p.Name)}
		case p.Terminating, u.Deleted[p.UID]:
		case p.Index == index && p.Ready:
			return UpdateState{} // of the present template, or of one between that and the first
		case p.Index == index:
			return waitsFor(p)
		default:
			others++
		}
	}
	if others >= u.Replicas {
		return UpdateState{} // scaled in
	}
	return UpdateState{UpdateWaitsForDeletion, fmt.Sprintf("the replacement of pod %s is not created yet", selected)}
}

// notReady returns what the first pod that is not ready waits for.
func (u CliqueUpdate) notReady() UpdateState {
	for _, p := range u.Pods {
		if !p.Terminating && !p.Ready {
			return waitsFor(p)
		}
	}
	return UpdateState{}
}

func waitsFor(p Pod) UpdateState {
	if !p.Scheduled {
		return UpdateState{UpdateWaitsForCapacity, fmt.Sprintf("pod %s is not bound to a node", p.Name)}
	}
	return UpdateState{UpdateWaitsForReadiness, fmt.Sprintf("pod %s is not ready", p.Name)}
}

// podIndex returns the index in the name of a pod: <PodClique>-<index>-<suffix>; -1 if there is none.
func podIndex(name string) int {
	parts := strings.Split(name, "-")
	if len(parts) < 3 {
		return -1
	}
	index := -1
	if _, err := fmt.Sscanf(parts[len(parts)-2], "%d", &index); err != nil || index < 0 {
		return -1
	}
	return index
}

func countPods(n int) string { return message.Count(n, "pod") }

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// inDeletionOrderOnDelete returns the pods in the order in which scaling in takes them under OnDelete: outdated ones first,
// though no ready one that leaves fewer than minAvailable ready pods, then in the order of InDeletionOrder. Source: GREP-291,
// "OnDelete Strategy"; decision U4.
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
