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
	Update
	// Member: the PodClique belongs to a scaling group, whose replicas are replaced as a whole.
	Member bool
	// MinReady is the time for which a pod must be ready before it is available.
	MinReady time.Duration
	// Pods are the pods that the PodClique owns.
	Pods []Pod
	// Deleted are the UIDs of pods that are deleted in this pass for another reason, Created the indices of the pods
	// that this pass creates.
	Deleted map[string]bool
	Created []int
	// ScaledOut are those of Created at which no lost pod was. They get the current template, unless the update is
	// paused.
	ScaledOut []int
}

// CliqueUpdateDecision is the decision how an update of a PodClique continues.
type CliqueUpdateDecision struct {
	UpdateDecision
	// Delete are the pods to replace.
	Delete []Deletion
	// Previous are those of CliqueUpdate.Created whose pods are created from the previous template of the PodClique,
	// ScaledOut those of CliqueUpdate.ScaledOut.
	Previous, ScaledOut IndexSet
}

// DecideCliqueUpdate returns which pods of a PodClique are replaced because of an update, and from which template pods
// are created. A member of a scaling group is not updated by itself. Source: rollout.decide.
func DecideCliqueUpdate(u CliqueUpdate, now time.Time) CliqueUpdateDecision {
	r := rollout{Update: u.Update, kind: &u, noun: "pod", units: u.units(now),
		ripeAfter: NextAvailable(u.Pods, u.MinReady, now)}
	if u.Member {
		isOutdated := r.count().isOutdated
		return CliqueUpdateDecision{UpdateDecision: UpdateDecision{Current: !isOutdated, Outdated: isOutdated}}
	}
	decided := r.decide(now)
	d := CliqueUpdateDecision{UpdateDecision: decided.UpdateDecision, ScaledOut: Indices(u.ScaledOut...)}
	for _, unit := range decided.replace {
		d.Delete = append(d.Delete, Deletion{u.Pods[unit.at], DeletedUpdate})
	}
	u.chooseTemplates(&d, decided)
	return d
}

// units returns the pods, except those that an update does not wait for: lost ones, and those of the target that are
// being deleted.
func (u *CliqueUpdate) units(now time.Time) []updateUnit {
	units := make([]updateUnit, 0, len(u.Pods))
	for i, p := range u.Pods {
		leaving := p.Terminating || u.Deleted[p.UID]
		if leaving && (!p.Outdated || p.isLost(now)) {
			continue
		}
		units = append(units, updateUnit{at: i, index: p.Index, name: p.Name, outdated: p.Outdated, leaving: leaving,
			bound: p.Scheduled, ready: p.isReady(), available: p.IsAvailable(u.MinReady, now), silence: p.Silence.ofNodes(),
			settles: p.Created.Add(unboundGrace)})
	}
	return units
}

func (u *CliqueUpdate) compare(a, b updateUnit) int {
	rank := func(u updateUnit) int {
		switch {
		case u.ready:
			return 2
		case u.bound:
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), byAge(u.Pods[a.at], u.Pods[b.at]))
}

func (u *CliqueUpdate) describeOld(n int) (are, stay, awaitTurn string) {
	return describeOld(n, "pod", "this replica")
}

// describeOld is unitKind.describeOld for pods and replicas of scaling groups.
func describeOld(n int, noun, unreached string) (are, stay, awaitTurn string) {
	are = message.CountAre(n, noun) + " of an earlier template"
	return are, are + message.Plural(n, "; it is replaced when it is deleted", "; each is replaced when it is deleted"),
		are + "; the update of the PodCliqueSet has not reached " + unreached
}

func (u *CliqueUpdate) remains(c rolloutCount) UpdateState {
	if n := len(c.outdated); n > 0 {
		return UpdateState{Updating, "replacing " + message.Count(n, "pod") + message.Plural(n, " that is", " that are") + " not ready"}
	}
	if c.leaving > 0 {
		return UpdateState{UpdateWaitsForDeletion,
			message.Count(c.leaving, "pod") + " of an earlier template " + message.Plural(c.leaving, "terminates", "terminate")}
	}
	return UpdateState{}
}

// chooseTemplates decides from which template pods are created. A lost pod that the update has not reached comes back
// with the previous template while the update could not go on to that pod; otherwise the update would replace the new
// pod immediately. What is scaled out is new. Source: docs/decisions, U9.
func (u *CliqueUpdate) chooseTemplates(d *CliqueUpdateDecision, decided rolloutDecision) {
	var previous, updated []int
	replacement := u.replacement(d.Progress, decided.flight.waits)
	awaitsTurn := d.Outdated && !u.OnDelete && u.Progress.AwaitsTurn(u.Target.Generation, u.Followed, u.Turn)
	for _, i := range u.Created {
		isNew := !u.Paused && slices.Contains(u.ScaledOut, i)
		switch {
		case decided.isIdle && (isNew || !awaitsTurn):
		case decided.isIdle, decided.isBlocked && i != replacement && !isNew && !d.Progress.Reached.Has(i):
			previous = append(previous, i)
		default:
			updated = append(updated, i)
		}
	}
	d.Previous = Indices(previous...)
	if !decided.isIdle {
		d.Progress.recordReached(updated...)
	}
}

// replacement returns the index at which this pass creates the replacement of the pod in flight, -1 if it does not. It
// is the index of that pod, or a lower one that was free.
func (u *CliqueUpdate) replacement(p *Progress, waits UpdateState) int {
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

func (u *CliqueUpdate) unhealthy(units []updateUnit) UpdateState {
	count := 0
	var unready, ripening, unbound *Pod
	for _, unit := range units {
		switch p := &u.Pods[unit.at]; {
		case !p.Scheduled:
			unbound = firstOf(unbound, p)
		case p.isReady():
			ripening = firstOf(ripening, p)
		default:
			count++
			unready = firstOf(unready, p)
		}
	}
	if unready != nil {
		return UpdateState{UpdateWaitsForReadiness,
			message.CountAre(count, "updated pod") + " not ready: " + u.waitsFor(*unready).Message}
	}
	return u.waitsFor(*cmp.Or(ripening, unbound))
}

func (u *CliqueUpdate) tooFew(available int32, now time.Time) UpdateState {
	state := UpdateState{UpdateWaitsForReadiness,
		fmt.Sprintf("%s available, %d needed", message.CountAre(int(available), "pod"), u.MinAvailable)}
	var found *Pod
	for i := range u.Pods {
		if p := &u.Pods[i]; !p.Terminating && !p.IsAvailable(u.MinReady, now) && !p.Outdated && !u.Deleted[p.UID] {
			found = firstOf(found, p)
		}
	}
	if found != nil {
		wait := u.waitsFor(*found)
		state = UpdateState{wait.Reason, wait.Message + "; " + state.Message}
	}
	return state
}

// inFlight: a lost pod is not waited for. The replacement has the index of the selected pod, or a lower one that was
// free.
func (u *CliqueUpdate) inFlight(selected string, now time.Time) flight {
	index, others := naming.PodIndex(selected), int32(0)
	var same, lower *Pod // the pod of its index, and the first of a lower index that is not available
	for i := range u.Pods {
		p := &u.Pods[i]
		switch {
		case p.isLost(now):
		case p.Name == selected && p.Terminating:
			return flight{waits: UpdateState{UpdateWaitsForDeletion,
				fmt.Sprintf("pod %s terminates; its replacement is created when it is gone", p.Name)}}
		case p.Name == selected && p.Outdated:
			return flight{waits: UpdateState{Updating, "replacing pod " + p.Name}, isRecorded: true}
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
	case same != nil && same.IsAvailable(u.MinReady, now):
		return flight{}
	case same == nil && others < u.Wanted:
		text := "the replacement of pod " + selected + " is not created yet"
		return flight{waits: UpdateState{UpdateWaitsForCreation, text}}
	}
	if found := cmp.Or(same, lower); found != nil {
		return flight{waits: u.waitsFor(*found), replacement: found.Name}
	}
	return flight{} // scaled in
}

// WhyNotReady describes the first pod that is bound and not ready, of those whose cause is known. "": there is none. In
// a Training workload readiness does not count, so a pod that runs and has not failed is not described.
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

// firstOf returns the pod with the lower index, so that a message does not depend on the order of the pods. a may be
// nil.
func firstOf(a, b *Pod) *Pod {
	if a == nil || cmp.Or(cmp.Compare(b.Index, a.Index), byAge(*b, *a)) < 0 {
		return b
	}
	return a
}

// waitsFor returns what a pod that is not available waits for, with the cause if it is known.
func (u *CliqueUpdate) waitsFor(p Pod) UpdateState {
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
		return UpdateState{UpdateWaitsForReadiness, fmt.Sprintf("pod %s is ready, and counts as available at %s, after minReadySeconds",
			p.Name, Timestamp(p.ReadySince.Add(u.MinReady)))}
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
