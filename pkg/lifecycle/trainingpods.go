// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// Reasons for deleting pods of a Training workload, besides DeletedEnded, DeletedScaleIn and DeletedDuplicate.
const (
	// DeletedCancelled: every pod of the clique that started has succeeded, and this one never started.
	DeletedCancelled DeletionReason = "Cancelled"
	// DeletedGivenUp: a container has failed, as in maxFailures pods in a row, and others are running.
	DeletedGivenUp DeletionReason = "GivenUp"
	// DeletedHalted: the workload has failed.
	DeletedHalted DeletionReason = "WorkloadFailed"
)

// TrainingPods contains the facts about a clique of a Training workload and its pods.
type TrainingPods struct {
	// CliquePods without LeafMinMember: a Training workload is not scaled. MinAvailable is the number of pods that must
	// run or have succeeded; 0: none.
	CliquePods
	// Delay is how long the clique may be below this minimum before the replica of the set is restarted.
	Delay time.Duration
	// Succeeded are the indices whose pods have succeeded, Started those whose pods ran at least once, as recorded in
	// the status. The pods show what has happened since.
	Succeeded, Started IndexSet
	// Preempted are the indices whose last pod that ran was preempted, as recorded in the status. PreemptedBy is the
	// preemptor that the recorded breach names (Pod.PreemptedBy), "" if there is none: the pods that tell of it may be
	// gone.
	Preempted   IndexSet
	PreemptedBy string
	// Lost are the indices whose last pod that ran was lost with its node, as recorded in the status.
	Lost IndexSet
	// WasAvailable and BreachedSince are the values recorded in the status; see Availability.
	WasAvailable  bool
	BreachedSince time.Time
	// Done: the status records that the clique has succeeded. Halted: the workload has failed.
	Done, Halted bool
}

// TrainingDecision is the decision on the pods of a clique of a Training workload, and the contents of its status.
type TrainingDecision struct {
	// PodDecision: Delete and Release must be carried out after everything else was recorded.
	PodDecision
	// Release are the pods whose finalizer is no longer needed.
	Release []Pod

	// Succeeded, Started, Preempted and Lost are the values to record. Their texts are not longer than
	// MaxIndicesLength.
	Succeeded, Started, Preempted, Lost IndexSet
	// SucceededGone is the number of pods that have succeeded and whose objects are gone.
	SucceededGone int32
	// Running counts running pods, on nodes that respond, of which no container has failed; Available also counts pods
	// that have succeeded.
	Running, Available int32
	// Done: the clique has succeeded. Cancelled is the number of its pods that never started.
	Done      bool
	Cancelled int
	// GivenUp are the indices whose pods failed too often to be replaced. The clique can succeed without them.
	GivenUp IndexSet
	// Breach is the breach status. Failure describes which pods are missing from the minimum, "" if none is known.
	Breach  Breach
	Failure string
}

// DecideTrainingPods returns which pods of a Training workload to create and to delete, and of which to remove the
// finalizer. Sources: GREP-0285, "PodClique Controller"; docs/decisions, J2, J3, J5, J6, J8, J9, J11, T9.
//
//   - A pod on a node that does not respond is not available, but keeps its index until it is deleted and lost.
//   - A pod that was preempted is recorded until another one runs under its index: the reason of a breach tells whether
//     all missing pods were preempted.
//   - A pod that succeeded is recorded and never recreated, and its object is kept for its logs.
//   - A pod that failed or is gone is replaced under its index as long as the clique is not below its minimum, a failed
//     pod after a back-off, and no longer after maxFailures in a row. Below the minimum it is replaced only if there is
//     a delay, in which the replacement may end the breach: without a delay the replica of the set is restarted anyway.
//   - Once every index that started has succeeded, and these are enough, the pods that never started are deleted; when
//     they are gone the clique has succeeded.
//   - For a workload that has failed no pods are created, and those that have not ended are deleted.
func DecideTrainingPods(t TrainingPods, now time.Time) TrainingDecision {
	d := TrainingDecision{PodDecision: PodDecision{Ends: map[int]Ends{}}}
	n := int(max(t.Replicas, 0))

	// 1. Collect the facts about each index.
	indices := d.indices(t, now)
	d.countAvailable(t, n, indices)
	d.judgeBreach(t, n, indices, now)

	// 2. Decide which pods to create and to delete.
	ran := d.Started.Below(n)
	finished := d.Succeeded.Below(n).Len() >= int(t.MinAvailable) && ran.Within(d.Succeeded.Union(GivenUp(t.Ends, n)))
	switch {
	case t.Halted:
		for _, p := range t.Pods {
			if !p.Terminating && !p.Ended {
				d.Delete = append(d.Delete, Deletion{p, DeletedHalted})
			}
		}
	case t.Done || finished:
		d.cancel(t, n, now)
	default:
		d.replace(t, n, indices, now)
	}
	for i, e := range t.Ends {
		if _, newer := d.Ends[i]; !newer && (now.Sub(e.Last) < forgetEnds || isGivenUp(t.Ends, i)) {
			d.Ends[i] = e
		}
	}
	d.Ends = boundedEnds(d.Ends)
	d.GivenUp = GivenUp(d.Ends, n)
	slices.SortFunc(d.Delete, func(a, b Deletion) int { return byAge(a.Pod, b.Pod) })

	// 3. Find the finalizers that are no longer needed.
	for _, p := range t.Pods {
		if p.Tracked && d.isRecorded(p, n, now) {
			d.Release = append(d.Release, p)
		}
	}
	slices.SortFunc(d.Release, byAge)
	return d
}

// MayBeAvailable reports whether enough pods run or have succeeded, if those of which nothing is known run.
func (t TrainingPods) MayBeAvailable(now time.Time) bool {
	d, n := TrainingDecision{}, int(max(t.Replicas, 0))
	indices := d.indices(t, now)
	d.countAvailable(t, n, indices)
	silent, _ := d.silentIndices(t, n, indices)
	return d.Available+silent >= t.MinAvailable
}

// Nodes returns why it is not known whether pods of the clique run whose nodes do not answer, and whether pods were
// lost with their nodes and have no successor that runs.
func (t TrainingPods) Nodes(now time.Time) (unknown Silence, lost bool) {
	var silences []Silence
	for _, p := range t.Pods {
		if p.Silence.Reason == NodesDoNotAnswer {
			silences = append(silences, p.Silence)
		}
	}
	_, unknown = silenceOf(silences)
	d := TrainingDecision{}
	d.indices(t, now)
	return unknown, d.Lost.Len() > 0
}

// silentIndices returns the number of indices below n of whose pod it is not known whether it runs, or will run, and
// why.
func (d *TrainingDecision) silentIndices(t TrainingPods, n int, indices podsByIndex) (int32, Silence) {
	succeeded := d.succeeded(t.Pods)
	var silences []Silence
	for i, x := range indices {
		if i >= 0 && i < n && !succeeded.Has(i) && x.live != nil && !x.live.isRunning() {
			silences = append(silences, x.live.Silence)
		}
	}
	return silenceOf(silences)
}

// indices returns the pods of each index, and records which indices have succeeded and which have started. Of two
// running pods with the same index the younger is deleted.
func (d *TrainingDecision) indices(t TrainingPods, now time.Time) podsByIndex {
	indices := podsByIndex{}
	pods := slices.Clone(t.Pods)
	slices.SortFunc(pods, byAge)
	var succeeded, started []int
	there := map[int]bool{} // indices of pods that succeeded and whose objects are not about to go
	for k := range pods {
		p := &pods[k]
		if p.Running || p.Ended {
			started = append(started, p.Index)
		}
		if p.Succeeded {
			succeeded = append(succeeded, p.Index)
			there[p.Index] = there[p.Index] || !p.Terminating
			continue
		}
		switch x := indices.at(p.Index); {
		case d.addTerminating(x, p, now):
		case p.Failed || p.Ended:
			x.failed = p
		case x.live != nil && p.Index >= 0:
			d.Delete = append(d.Delete, Deletion{*p, DeletedDuplicate})
		default:
			x.live = p
		}
	}
	d.addOthers(indices, t.Others, now)
	n := int(max(t.Replicas, 0))
	d.Preempted = lastEndIndices(t.Preempted, pods, n, func(p Pod) bool { return p.Preempted })
	d.Lost = lastEndIndices(t.Lost, pods, n, func(p Pod) bool {
		// A node that answers again stops the pods that were deleted meanwhile.
		return p.Orphaned || p.LostNode != "" && !p.Silence.IsSilent() && !p.Failed || p.Terminating && t.Lost.Has(p.Index)
	})
	d.Succeeded = t.Succeeded.Union(Indices(succeeded...))
	if len(d.Succeeded.String()) > MaxIndicesLength {
		// The remaining succeeded pods keep their finalizers until the status has room for their indices.
		d.Succeeded = t.Succeeded
	}
	d.Started = t.Started.Union(Indices(started...)).Union(d.Succeeded)
	if len(d.Started.String()) > MaxIndicesLength {
		d.Started = d.Started.upToHighest()
	}
	d.SucceededGone = int32(t.Succeeded.Len())
	for i := range there {
		if there[i] && t.Succeeded.Has(i) {
			d.SucceededGone--
		}
	}
	return indices
}

// lastEndIndices returns the indices below n whose last pod that ran ended in a certain way, such as by a preemption,
// given those recorded and the pods, the oldest first. If they do not fit into the status, all of them count as failed.
func lastEndIndices(recorded IndexSet, pods []Pod, n int, isSuch func(Pod) bool) IndexSet {
	last := map[int]bool{} // by index: whether the last pod that ran ended so
	for _, p := range pods {
		switch {
		case isSuch(p) && !p.Succeeded:
			last[p.Index] = true
		case p.Running || p.Ended || p.Failed:
			last[p.Index] = false
		}
	}
	var such []int
	for i := range n {
		if was, known := last[i]; was || !known && recorded.Has(i) {
			such = append(such, i)
		}
	}
	set := Indices(such...)
	if len(set.String()) > MaxIndicesLength {
		return IndexSet{}
	}
	return set
}

// upToHighest returns all indices from 0 to the last of the set.
func (s IndexSet) upToHighest() IndexSet {
	if len(s.ranges) == 0 {
		return s
	}
	return IndexSet{[]indexRange{{0, s.ranges[len(s.ranges)-1].last}}}
}

// countAvailable counts the indices below n whose pods run or have succeeded.
func (d *TrainingDecision) countAvailable(t TrainingPods, n int, indices podsByIndex) {
	succeeded := d.succeeded(t.Pods).Below(n)
	for i, x := range indices {
		if i >= 0 && i < n && !succeeded.Has(i) && x.live != nil && x.live.isRunning() {
			d.Running++
		}
	}
	d.Available = d.Running + int32(succeeded.Len())
}

// succeeded returns the indices that have succeeded, including those that do not fit into the status.
func (d *TrainingDecision) succeeded(pods []Pod) IndexSet {
	var more []int
	for _, p := range pods {
		if p.Succeeded {
			more = append(more, p.Index)
		}
	}
	return d.Succeeded.Union(Indices(more...))
}

// judgeBreach sets the breach. A clique that was never available is in breach as soon as a pod has failed without which
// the minimum cannot be reached: otherwise a job that crashes at the start would occupy its devices forever. The reason
// of the breach tells whether all pods that ran and are missing were preempted, or lost with their nodes. There is no
// breach as long as it depends on pods of which nothing is known. Sources: docs/decisions, J2, J9, T9.
func (d *TrainingDecision) judgeBreach(t TrainingPods, n int, indices podsByIndex, now time.Time) {
	var starting, failed, missing, preempted, lost int32
	var causes []string
	succeeded := d.succeeded(t.Pods)
	for i := range n {
		if succeeded.Has(i) {
			continue
		}
		x := indices[i]
		if x != nil && x.live != nil && x.live.LostNode == "" && x.live.Scheduled && !x.live.Running {
			starting++
		}
		if cause := d.missingCause(i, x); cause != "" {
			causes = append(causes, cause)
			if x != nil && x.failed != nil || d.Started.Has(i) { // one that ran and is gone has failed (docs/decisions, J8)
				failed++
			}
		}
		if d.isMissing(t, i, x) {
			missing++
			switch {
			case d.Preempted.Has(i):
				preempted++
			case d.Lost.Has(i):
				lost++
			}
		}
	}
	d.Failure = message.ListNames(causes, 3, len(causes), "; ")
	if t.Halted {
		d.Breach = Breach{Undecided: true, WasAvailable: t.WasAvailable}
		return
	}
	counts := fmt.Sprintf("%d of %d pods run or have succeeded, %d needed", d.Available, n, t.MinAvailable)
	if d.Available < t.MinAvailable {
		if by := d.preemptor(t); by != "" {
			counts = withCause(counts, PreemptedBy(by))
		}
		counts = withCause(counts, d.Failure)
	}
	was := t.WasAvailable || !t.BreachedSince.IsZero() || failed > 0 && d.Available+starting < t.MinAvailable
	reason := InsufficientReadyPods
	switch {
	case missing > 0 && preempted == missing:
		reason = PodsPreempted
	case missing > 0 && preempted+lost == missing:
		reason = PodsLost
	}
	a := Availability{Available: d.Available, Needed: t.MinAvailable, Wanted: int32(n), WasAvailable: was,
		BreachedSince: t.BreachedSince, Delay: &t.Delay}
	a.Silent, a.Silence = d.silentIndices(t, n, indices)
	d.Breach = a.judgeMinimum(SufficientReadyPods, reason, counts, now)
	if d.Breach.Status == Breached {
		d.Breach.Message = counts // the times are in the status
	}
	d.Breach.WasAvailable = t.WasAvailable || t.MinAvailable > 0 && d.Available >= t.MinAvailable
}

// preemptor returns the preemptor of the youngest pod whose preemptor is known, or else the recorded one. "": it is not
// known, or no index has lost its pod to a preemption.
func (d *TrainingDecision) preemptor(t TrainingPods) string {
	if d.Preempted.Len() == 0 {
		return ""
	}
	named := slices.DeleteFunc(slices.Clone(t.Pods), func(p Pod) bool { return p.PreemptedBy == "" })
	if len(named) == 0 {
		return t.PreemptedBy
	}
	return slices.MaxFunc(named, byAge).PreemptedBy
}

// missingCause returns why no pod of index i, which has not succeeded, runs or is about to; "" if one does, or if none
// has existed yet. x are the pods of the index, nil: there are none.
func (d *TrainingDecision) missingCause(i int, x *indexPods) string {
	switch {
	case x != nil && x.live != nil && x.live.LostNode != "" && !x.live.Silence.IsSilent():
		return fmt.Sprintf("the node %s of pod %s does not answer", x.live.LostNode, x.live.Name)
	case x != nil && x.live != nil:
		return ""
	case d.Preempted.Has(i):
		return fmt.Sprintf("pod %d was preempted", i)
	case x != nil && x.failed != nil:
		return fmt.Sprintf("pod %s: %s", x.failed.Name, x.failed.End)
	case x != nil && x.leaving != nil && x.leaving.LostNode != "":
		return fmt.Sprintf("pod %d is being deleted, its node %s does not answer", i, x.leaving.LostNode)
	case x != nil && x.leaving != nil:
		return fmt.Sprintf("pod %d is being deleted", i)
	case x != nil && x.lost != nil:
		return fmt.Sprintf("pod %s was lost with its node %s", x.lost.Name, x.lost.LostNode)
	case d.Started.Has(i) && d.Lost.Has(i):
		return fmt.Sprintf("pod %d was lost with its node", i)
	case d.Started.Has(i):
		return fmt.Sprintf("pod %d is gone", i)
	}
	return ""
}

// isMissing reports whether no pod of index i, which has not succeeded, runs, although one ran or failed. An index that
// was given up is not missing: the clique continues without it.
func (d *TrainingDecision) isMissing(t TrainingPods, i int, x *indexPods) bool {
	runs := x != nil && x.live != nil && x.live.isRunning()
	if x != nil && x.live != nil && x.live.Silence.IsSilent() {
		return false // it is not known
	}
	began := d.Started.Has(i) || x != nil && (x.failed != nil || x.live != nil && x.live.LostNode != "")
	return began && !runs && !isGivenUp(t.Ends, i)
}

// cancel deletes the pods that never started, and sets Done when none is left.
func (d *TrainingDecision) cancel(t TrainingPods, n int, now time.Time) {
	d.Done = true
	for _, p := range t.Pods {
		switch {
		case p.Succeeded || p.Ended || p.isLost(now):
		case !p.Terminating:
			d.Delete = append(d.Delete, Deletion{p, DeletedCancelled})
			d.Done = false
		default:
			d.Done = false
		}
	}
	d.Done = d.Done || t.Done
	if d.Done {
		d.Cancelled = n - d.Succeeded.Union(GivenUp(t.Ends, n)).Below(n).Len()
	}
}

// replace creates pods for the indices that have not succeeded and have no pod that still can.
func (d *TrainingDecision) replace(t TrainingPods, n int, indices podsByIndex, now time.Time) {
	for i, x := range indices {
		if i >= n && x.live != nil { // spec.replicas was changed without admission
			d.Delete = append(d.Delete, Deletion{*x.live, DeletedScaleIn})
		}
	}
	if d.Breach.Status == Breached && t.Delay <= 0 {
		return
	}
	succeeded := d.succeeded(t.Pods)
	for i := range n {
		x := indices[i]
		switch {
		case succeeded.Has(i):
		case x != nil && x.failed != nil && x.failed.Preempted && !isGivenUp(t.Ends, i):
			d.Delete = append(d.Delete, Deletion{*x.failed, DeletedEnded}) // no failure: without a back-off
		case x != nil && x.failed != nil && (isGivenUp(t.Ends, i) || x.failed.endsBefore(t.Ends).Count == maxFailures-1):
			d.giveUp(*x.failed, t.Ends)
		case isGivenUp(t.Ends, i):
		case x == nil:
			d.createAt(i, nil)
		case x.live != nil || x.leaving != nil:
		case x.failed != nil:
			d.replaceEnded(*x.failed, t.Ends, now)
		case x.blocked != nil:
			d.Blocked = append(d.Blocked, *x.blocked)
		default:
			d.createAt(i, x.lost)
		}
	}
}

// giveUp records that a pod is not replaced. Its object is kept for its logs if it has ended; otherwise it is deleted,
// because containers of it still run.
func (d *TrainingDecision) giveUp(p Pod, recorded map[int]Ends) {
	if !isGivenUp(recorded, p.Index) {
		d.Ends[p.Index] = Ends{Count: maxFailures, Last: p.EndedAt}
	}
	if !p.Ended {
		d.Delete = append(d.Delete, Deletion{p, DeletedGivenUp})
	}
}

// GivenUp returns the indices below n that are given up according to a history.
func GivenUp(ends map[int]Ends, n int) IndexSet {
	var indices []int
	for i := range ends {
		if i < n && isGivenUp(ends, i) {
			indices = append(indices, i)
		}
	}
	return Indices(indices...)
}

// isRecorded reports whether the values to record already contain everything that the pod's object could still show:
// that it succeeded, or that it started without succeeding.
func (d *TrainingDecision) isRecorded(p Pod, n int, now time.Time) bool {
	switch {
	case p.Succeeded:
		return d.Done || p.Index < 0 || p.Index >= n || d.Succeeded.Has(p.Index)
	case p.Ended, p.isLost(now):
		return true
	default:
		return p.Terminating && p.Stopped
	}
}
