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
	// OnDelete: the update strategy is OnDelete. Turn: under RollingRecreate, pods may be replaced. Paused: no further
	// pod is replaced. Member: the PodClique belongs to a scaling group, whose replicas are replaced as a whole.
	OnDelete, Turn, Paused, Member bool
	// Progress is the progress recorded in the status, Followed the hash of the revision that all pods followed last.
	Progress *Progress
	Followed string
	// Replicas is the desired number of pods, MinAvailable the number that must be available. MinReady is the time for
	// which a pod must be ready before it is available.
	Replicas, MinAvailable int32
	MinReady               time.Duration
	// Pods are the pods that the PodClique owns.
	Pods []Pod
	// Deleted are the UIDs of pods that are deleted in this pass for another reason, Created the indices of the pods
	// that this pass creates.
	Deleted map[string]bool
	Created []int
	// ScaledOut are those of Created at which no lost pod was. They get the current template, unless the update is paused.
	ScaledOut []int
	// StalledAfter is the time without progress after which an update has stalled. Not positive: never.
	StalledAfter time.Duration
}

// CliqueUpdateDecision is the decision how an update of a PodClique continues.
type CliqueUpdateDecision struct {
	// Progress must be recorded before a pod is deleted. It is the given one if nothing changes.
	Progress *Progress
	// Delete are the pods to replace.
	Delete []Deletion
	// Previous are those of CliqueUpdate.Created whose pods are created from the previous template of the PodClique.
	Previous IndexSet
	// ScaledOut are those of CliqueUpdate.ScaledOut.
	ScaledOut IndexSet
	// Current: every pod was created from the template of the target, and no update is in progress. Outdated: a pod was
	// not, so that the status must not claim that all pods follow the target.
	Current, Outdated bool
	// Suspends: the minimum of the PodClique is not judged, because of the update.
	Suspends bool
	// State is the content of the condition Progressing.
	State UpdateState
	// RequeueAfter is when the decision changes without an event; 0: it does not.
	RequeueAfter time.Duration
}

// cliqueCount divides the pods of a clique that is updated.
type cliqueCount struct {
	// outdated are the pods of an earlier template that are not being deleted, the oldest first. leaving is the number of
	// those that are being deleted and not lost.
	outdated []Pod
	leaving  int
	// present, bound and available count the pods that are not being deleted.
	present, bound, available int32
	// unhealthy are the pods of the target that are bound and not available. isUnready: one of them is not ready; the
	// others wait for minReadySeconds.
	unhealthy []Pod
	isUnready bool
	// unsettled is a pod of the target that may be about to be bound, nil: there is none.
	unsettled *Pod
	// updated are the indices of the pods of the target.
	updated []int
}

func (u CliqueUpdate) countPods(now time.Time) cliqueCount {
	var c cliqueCount
	for _, pod := range u.Pods {
		if pod.Terminating || u.Deleted[pod.UID] {
			if pod.Outdated && !pod.isLost(now) {
				c.leaving++
			}
			continue
		}
		c.present++
		if pod.Scheduled {
			c.bound++
		}
		available := pod.IsAvailable(u.MinReady, now)
		if available {
			c.available++
		}
		if pod.Outdated {
			c.outdated = append(c.outdated, pod)
			continue
		}
		c.updated = append(c.updated, pod.Index)
		if !pod.Scheduled && now.Before(pod.Created.Add(unboundGrace)) {
			c.unsettled = firstOf(c.unsettled, &pod)
		}
		if pod.Scheduled && !available {
			c.unhealthy = append(c.unhealthy, pod)
			c.isUnready = c.isUnready || !pod.isReady()
		}
	}
	slices.SortFunc(c.outdated, byAge)
	return c
}

// DecideCliqueUpdate returns which pods of a PodClique are replaced because of an update. Source: Rolling Update,
// "PodClique (PCLQ) Pod Selection" and "PCLQ Update Completion"; GREP-291, "OnDelete Strategy"; docs/decisions, U2 to
// U6, U8, U9.
//
//   - Under OnDelete no pod is deleted. An update begins and ends at the same time; one that was in progress ends.
//   - In the clique's turn, pods of an earlier template that are not ready are replaced immediately: first those without a
//     node, then the others. The oldest ready pod is replaced when the previous replacement has become available, and when
//     without this pod minAvailable pods are available, or all others if every pod is needed.
//   - No ready pod is replaced while a pod of the current template is not available, unless it has had no node for
//     unboundGrace. No pod at all is replaced while this holds for a pod that the update has made, nor while the update is
//     paused. Lost pods that come back meanwhile at indices that the update has not reached get the previous template; what is
//     scaled out gets the current one, unless the update is paused.
//   - The update is complete when no pod of an earlier template exists, except lost ones, all desired pods exist, all that
//     are bound are available, and minAvailable pods are. If no pod is bound, it is complete without available ones.
//   - A unit in flight stays in flight when the target changes or the turn is lost: no other unit is deleted before its
//     replacement is available.
//   - A member of a scaling group is not updated by itself: the group replaces the replica that it belongs to.
func DecideCliqueUpdate(u CliqueUpdate, now time.Time) CliqueUpdateDecision {
	d := decideCliqueUpdate(u, now)
	d.Suspends, _ = d.Progress.suspends(u.StalledAfter, now)
	return d
}

func decideCliqueUpdate(u CliqueUpdate, now time.Time) CliqueUpdateDecision {
	c := u.countPods(now)
	d := CliqueUpdateDecision{Progress: u.Progress, Current: len(c.outdated)+c.leaving == 0, Outdated: len(c.outdated)+c.leaving > 0, ScaledOut: Indices(u.ScaledOut...)}
	if u.Member {
		return CliqueUpdateDecision{Current: d.Current, Outdated: d.Outdated}
	}
	var awaited *Pod // the replacement of the pod in flight, if it is of an intermediate template
	r := rollout{target: u.Target, progress: u.Progress, followed: u.Followed, onDelete: u.OnDelete, turn: u.Turn, paused: u.Paused, known: true,
		stalledAfter: u.StalledAfter, outdated: len(c.outdated), old: message.CountAre(len(c.outdated), "pod") + " of an earlier template",
		awaitsTurn: "the update of the PodCliqueSet has not reached this replica", complete: "all pods match the current template",
		inFlight: func(unit string) (waits UpdateState) {
			waits, awaited = u.inFlight(unit, now)
			return waits
		}}
	var isIdle bool
	if d.Progress, d.State, d.RequeueAfter, isIdle = r.decideIdle(now); isIdle {
		if d.Outdated && !u.OnDelete && u.Progress.AwaitsTurn(u.Target.Generation, u.Followed, u.Turn) {
			d.Previous = Indices(slices.DeleteFunc(slices.Clone(u.Created), u.isNew)...)
		}
		return d
	}
	p, waits := r.proceed(now)
	d.Progress = p
	if c.present >= u.Replicas {
		p.Reached = p.Reached.presentIn(u.Pods) // what was scaled in is forgotten
	}
	lacking := p.lacking(c.updated, int(u.Replicas-c.present))
	hasFailed := slices.ContainsFunc(c.unhealthy, func(pod Pod) bool { return p.Reached.Has(pod.Index) })
	isBlocked := r.isBlocked(hasFailed || c.unsettled != nil, waits)
	d.chooseTemplates(u, u.replacement(p, waits), isBlocked)

	ready := d.replaceUnready(c.outdated, isBlocked, awaited)
	next, replacing := Pod{}, ""
	at := slices.IndexFunc(ready, func(pod Pod) bool { return p.InFlight() && pod.Name == p.Selected }) // selected earlier, but not deleted
	if at < 0 && waits.Reason == "" && lacking == 0 && len(ready) > 0 {
		at = 0
	}
	if at >= 0 {
		next, replacing = ready[at], "replacing pod "+ready[at].Name
	}
	obstacle := u.obstacle(c, r, waits, at >= 0, next, hasFailed, now)
	state, replaces := r.advance(p, obstacle, replacing, u.remaining(c, len(ready), lacking, now), now)
	if replaces {
		if p.Selected != next.Name {
			p.selectUnit(next.Name, now)
		}
		d.Delete = append(d.Delete, Deletion{next, DeletedUpdate})
	}
	var deleted []int
	for _, deletion := range d.Delete {
		deleted = append(deleted, deletion.Pod.Index)
	}
	p.recordReached(deleted...)
	d.Current = !d.Outdated && !p.Open()
	ripeAfter := NextAvailable(u.Pods, u.MinReady, now)
	ripens := ripeAfter > 0 && (state.Reason == UpdateWaitsForMinAvailable || len(c.unhealthy) > 0 && !c.isUnready)
	var settles time.Time
	if c.unsettled != nil {
		settles = c.unsettled.Created.Add(unboundGrace)
	}
	d.State, d.RequeueAfter = r.checkStall(p, state, ripens, ripeAfter, settles, now)
	return d
}

// replaceUnready replaces the outdated pods that are not ready, first those without a node, and returns the others.
// isBlocked: only the awaited one is replaced.
func (d *CliqueUpdateDecision) replaceUnready(outdated []Pod, isBlocked bool, awaited *Pod) (ready []Pod) {
	var bound []Deletion
	for _, pod := range outdated {
		switch {
		case pod.isReady():
			ready = append(ready, pod)
		case isBlocked && (awaited == nil || awaited.UID != pod.UID):
		case !pod.Scheduled:
			d.Delete = append(d.Delete, Deletion{pod, DeletedUpdate})
		default:
			bound = append(bound, Deletion{pod, DeletedUpdate})
		}
	}
	d.Delete = append(d.Delete, bound...)
	return ready
}

// obstacle returns what is against replacing the next ready pod, if there is one, or against going on.
func (u CliqueUpdate) obstacle(c cliqueCount, r rollout, waits UpdateState, hasNext bool, next Pod, hasFailed bool, now time.Time) UpdateState {
	switch {
	case !hasNext && waits.Reason != "":
		return waits
	case len(c.unhealthy) > 0 && (hasNext || hasFailed || len(c.outdated) == 0):
		return u.updatedUnhealthy(c)
	case c.unsettled != nil && (hasNext || len(c.outdated) == 0):
		return u.waitsFor(*c.unsettled)
	case u.Paused && len(c.outdated) > 0:
		return UpdateState{UpdatePaused, "the update is paused; " + r.old}
	case hasNext && !sparesOne(u.othersAvailable(c, next, now), u.MinAvailable, u.Replicas):
		return u.belowMinimum(c.available, now)
	}
	return UpdateState{}
}

// remaining returns what an update waits for that replaces no further ready pod. No reason: for nothing.
func (u CliqueUpdate) remaining(c cliqueCount, ready, lacking int, now time.Time) UpdateState {
	switch {
	case ready > 0:
		return UpdateState{UpdateWaitsForCreation, message.CountAre(lacking, "updated pod") + " not created yet"}
	case len(c.outdated) > 0:
		return UpdateState{Updating, fmt.Sprintf("replacing %s that %s not ready", message.Count(len(c.outdated), "pod"), message.Plural(len(c.outdated), "is", "are"))}
	case c.leaving > 0:
		return UpdateState{UpdateWaitsForDeletion, message.Count(c.leaving, "pod") + " of an earlier template " + message.Plural(c.leaving, "terminates", "terminate")}
	case c.present < u.Replicas:
		return UpdateState{UpdateWaitsForCreation, message.CountAre(int(u.Replicas-c.present), "pod") + " not created yet"}
	case c.bound > 0 && c.available < u.MinAvailable:
		state := UpdateState{UpdateWaitsForReadiness, availablePods(c.available, u.MinAvailable)}
		if wait := u.notReady(now); wait.Reason != "" {
			state = UpdateState{wait.Reason, wait.Message + "; " + state.Message}
		}
		return state
	}
	return UpdateState{}
}

// replacement returns the index at which this pass creates the replacement of the pod in flight, -1 if it does not. It is
// the index of that pod, or a lower one that was free.
func (u CliqueUpdate) replacement(p *Progress, waits UpdateState) int {
	if len(u.Created) == 0 || waits.Reason != UpdateWaitsForCreation && waits.Reason != UpdateWaitsForDeletion {
		return -1
	}
	selected, lowest := naming.PodIndex(p.Selected), slices.Min(u.Created)
	switch {
	case slices.Contains(u.Created, selected):
		return selected
	case waits.Reason == UpdateWaitsForDeletion && lowest > selected:
		return -1
	}
	return lowest
}

// isNew reports whether a pod that is created at an index is scaled out and has the current template at once.
func (u CliqueUpdate) isNew(index int) bool { return !u.Paused && slices.Contains(u.ScaledOut, index) }

// chooseTemplates decides from which template pods are created. A lost pod that the update has not reached comes back with the
// previous template while the update could not go on to that pod; otherwise the update would replace the new pod
// immediately. replacement is the index of the replacement of the pod in flight, -1: none. Source: docs/decisions, U9.
func (d *CliqueUpdateDecision) chooseTemplates(u CliqueUpdate, replacement int, isBlocked bool) {
	var previous, updated []int
	for _, i := range u.Created {
		if isBlocked && i != replacement && !u.isNew(i) && !d.Progress.Reached.Has(i) {
			previous = append(previous, i)
		} else {
			updated = append(updated, i)
		}
	}
	d.Previous = Indices(previous...)
	d.Progress.recordReached(updated...)
}

// updatedUnhealthy returns the state of an update of which pods of the current template are not available.
func (u CliqueUpdate) updatedUnhealthy(c cliqueCount) UpdateState {
	unready := 0
	var first, firstUnready *Pod
	for i := range c.unhealthy {
		p := &c.unhealthy[i]
		first = firstOf(first, p)
		if !p.isReady() {
			unready++
			firstUnready = firstOf(firstUnready, p)
		}
	}
	if unready == 0 {
		return u.waitsFor(*first)
	}
	return UpdateState{UpdateWaitsForReadiness, fmt.Sprintf("%s not ready: %s", message.CountAre(unready, "updated pod"), u.waitsFor(*firstUnready).Message)}
}

// othersAvailable returns the number of available pods besides the given one.
func (u CliqueUpdate) othersAvailable(c cliqueCount, pod Pod, now time.Time) int32 {
	if pod.IsAvailable(u.MinReady, now) {
		return c.available - 1
	}
	return c.available
}

// belowMinimum returns why no ready pod is replaced now.
func (u CliqueUpdate) belowMinimum(available int32, now time.Time) UpdateState {
	message := "no ready pod is replaced, because too few others are available: " + availablePods(available, u.MinAvailable)
	if wait := u.notReady(now); wait.Reason != "" {
		message += "; " + wait.Message
	}
	return UpdateState{UpdateWaitsForMinAvailable, message}
}

func availablePods(available, needed int32) string {
	return fmt.Sprintf("%s available, %d needed", message.CountAre(int(available), "pod"), needed)
}

// inFlight returns what the replacement of a selected pod waits for, and the replacement if it exists and is of an
// earlier template. The zero value: it is available, or no longer desired. A lost pod is not waited for.
func (u CliqueUpdate) inFlight(selected string, now time.Time) (waits UpdateState, outdated *Pod) {
	index, others := naming.PodIndex(selected), int32(0)
	var same, lower *Pod // the pod of its index, and the first of a lower index that is not available
	for i := range u.Pods {
		p := &u.Pods[i]
		switch {
		case p.isLost(now):
		case p.Name == selected && p.Terminating:
			return UpdateState{UpdateWaitsForDeletion, fmt.Sprintf("pod %s terminates; its replacement is created when it is gone", p.Name)}, nil
		case p.Name == selected && p.Outdated:
			return UpdateState{Updating, fmt.Sprintf("replacing pod %s", p.Name)}, nil
		case p.Terminating, u.Deleted[p.UID]:
		case p.Index == index && index >= 0:
			same = firstOf(same, p)
		default:
			others++
			if p.Index < index && !p.IsAvailable(u.MinReady, now) {
				lower = firstOf(lower, p)
			}
		}
	}
	switch {
	case same != nil && same.IsAvailable(u.MinReady, now): // of the current template, or of one between the current and the selected pod's
		return UpdateState{}, nil
	case same == nil && others < u.Replicas:
		return UpdateState{UpdateWaitsForCreation, fmt.Sprintf("the replacement of pod %s is not created yet", selected)}, nil
	case same == nil:
		same = lower // a lower index was free, and the replacement has that index
	}
	switch {
	case same == nil:
		return UpdateState{}, nil // scaled in
	case same.Outdated:
		return u.waitsFor(*same), same
	}
	return u.waitsFor(*same), nil
}

// notReady returns what the first pod that is neither available nor being deleted waits for.
func (u CliqueUpdate) notReady(now time.Time) UpdateState {
	var found *Pod
	for i := range u.Pods {
		if p := &u.Pods[i]; !p.Terminating && !p.IsAvailable(u.MinReady, now) && !p.Outdated && !u.Deleted[p.UID] {
			found = firstOf(found, p)
		}
	}
	if found == nil {
		return UpdateState{}
	}
	return u.waitsFor(*found)
}

// WhyNotReady describes the first pod that is bound and not ready, of those whose cause is known. "": there is none. In a
// Training workload readiness does not count, so a pod that runs and has not failed is not described.
func WhyNotReady(pods []Pod, training bool) string {
	var found *Pod
	for i := range pods {
		p := &pods[i]
		if counts := p.isReady() || training && p.isRunning() && !p.Failed; counts || p.Ended {
			continue
		}
		if p.Scheduled && !p.Terminating && p.knownCause() != "" {
			found = firstOf(found, p)
		}
	}
	if found == nil {
		return ""
	}
	return fmt.Sprintf("pod %s is not ready: %s", found.Name, found.knownCause())
}

// knownCause returns why the pod is not ready or not bound, "" if the cause is unknown.
func (p Pod) knownCause() string {
	if p.LostNode != "" {
		return "node " + p.LostNode + " does not answer"
	}
	return p.Cause
}

// firstOf returns the pod with the lower index, so that a message does not depend on the order of the pods. a may be nil.
func firstOf(a, b *Pod) *Pod {
	if a == nil || cmp.Or(cmp.Compare(b.Index, a.Index), byAge(*b, *a)) < 0 {
		return b
	}
	return a
}

// waitsFor returns what a pod that is not available waits for, with the cause if it is known.
func (u CliqueUpdate) waitsFor(p Pod) UpdateState {
	cause := p.knownCause()
	if cause != "" {
		cause = ": " + cause
	}
	switch {
	case p.Ended:
		return UpdateState{UpdateWaitsForReadiness, fmt.Sprintf("pod %s ended; it is replaced after a back-off", p.Name)}
	case !p.Scheduled:
		return UpdateState{UpdateWaitsForCapacity, fmt.Sprintf("pod %s is not bound to a node", p.Name) + cause}
	case p.isReady():
		return UpdateState{UpdateWaitsForReadiness, fmt.Sprintf("pod %s is ready, and counts as available at %s, after minReadySeconds", p.Name, Timestamp(p.ReadySince.Add(u.MinReady)))}
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
