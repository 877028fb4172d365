// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/message"
)

// Phase is the phase of a set, with the values of the API.
type Phase string

// Phases. Inference workloads have the first two only.
const (
	PhasePending   Phase = "Pending"
	PhaseRunning   Phase = "Running"
	PhaseSucceeded Phase = "Succeeded"
	PhaseFailed    Phase = "Failed"
)

// FailureReason is why a Training workload failed: the reason of its condition Failed, and of the event.
type FailureReason string

// Reasons of the condition Failed.
const (
	MaxRestartsExceeded FailureReason = "MaxRestartsExceeded"
	MaxRuntimeExceeded  FailureReason = "MaxRuntimeExceeded"
)

// Training contains the facts that decide about a Training workload. Times from its status are whole seconds.
type Training struct {
	// MaxRuntime is the time that the workload may run from its first start; 0: no limit. MaxRestarts is the number of
	// restarts, counted over all replicas. TTL is the time after which a finished workload is deleted; nil: never.
	MaxRuntime  time.Duration
	MaxRestarts int32
	TTL         *time.Duration

	// Phase, RestartCount, StartTime, Deadline, Succeeded (indices of replicas) and FinishedAt are the values recorded
	// in the status. Zero times: not set. Failed: the condition Failed is True.
	Phase        Phase
	RestartCount int32
	StartTime    time.Time
	Deadline     time.Time
	Succeeded    IndexSet
	Failed       bool
	FinishedAt   time.Time

	// Replicas are the desired replicas.
	Replicas []TrainingReplica
	// Running: a pod is running on a node that responds. Started: a pod is running or has ended. Draining: a pod exists
	// that has not ended and is not terminating on a node that does not respond.
	Running, Started, Draining bool
}

// TrainingReplica is a replica of a set of a Training workload.
type TrainingReplica struct {
	Index int
	// Attempt is the current attempt of the replica.
	Attempt int32
	// Cliques are its PodCliques, including members of scaling groups. Complete: every PodClique of the replica exists.
	Cliques  []TrainingClique
	Complete bool
	// Silence is why it is not known whether a pod of it runs whose node does not answer, NodesLost whether pods were
	// lost with their nodes. They are only read of a replica with a PodClique below its minimum: WithNodes.
	Silence   Silence
	NodesLost bool
}

// TrainingClique is a PodClique of a Training workload.
type TrainingClique struct {
	Clique
	// Delay is how long it may be below its minimum before the replica is restarted.
	Delay time.Duration
	// Preempted: it is below its minimum, and a scheduler has preempted each of its missing pods, which is no failure.
	Preempted bool
	// Message describes the breach, if the PodClique is below its minimum.
	Message string
	// GivenUp is the number of its indices that were given up.
	GivenUp int
}

// TrainingOutcome is the decision on a Training workload.
type TrainingOutcome struct {
	// Phase, StartTime, Deadline, Succeeded and FinishedAt are the values to record.
	Phase      Phase
	StartTime  time.Time
	Deadline   time.Time
	Succeeded  IndexSet
	FinishedAt time.Time

	// Failure is why the workload fails now. It must be recorded before anything else; afterwards no object is
	// created. "": the workload does not fail, or has failed before. Message is one sentence for users, for the
	// condition and the event.
	Failure FailureReason
	Message string
	// Restart are the replicas to replace, by index, with the reasons. Each with the reason ReplacedRestart uses one
	// restart, recorded together with its attempt; those with another reason use none.
	Restart map[int]Replacement
	// Held are the replicas with failed pods that are not restarted yet, by index: it is not known whether the nodes of
	// other pods are lost, for which these may have failed.
	Held map[int]Silence
	// NextRestart is when the next restart is due, or the failure if no restarts are left. Zero: none is due.
	NextRestart time.Time
	// Again: once this decision is recorded, the next one can be made immediately.
	Again bool
	// Expired: the workload must be deleted.
	Expired bool
	// RequeueAfter is when the decision changes without an event; 0: it does not.
	RequeueAfter time.Duration
}

// DecideTraining returns the decision on a Training workload. Sources: GREP-0285, "PodCliqueSet Controller";
// docs/decisions, J3 to J9, T9.
//
//   - The phase is Running as long as a pod is running, and was Running at least once: the start is recorded before
//     anything that follows from it.
//   - A replica has succeeded when all its PodCliques have succeeded, and the workload when all replicas have.
//   - A replica with a PodClique below its minimum for longer than the delay is restarted as long as restarts are left;
//     otherwise the workload fails. It is restarted in any case, and uses none, if each of its missing pods was
//     preempted, or a pod was lost with its node: others fail because of it. As long as it is not known whether one is
//     lost, a failure waits.
//   - The workload fails when its deadline passes: MaxRuntime after the start, never extended by restarts.
//   - The phase of a workload that fails becomes Failed when none of its pods is running. Succeeded and Failed are
//     final.
func DecideTraining(t Training, now time.Time) TrainingOutcome {
	o := TrainingOutcome{Phase: t.Phase, StartTime: t.StartTime, Deadline: t.Deadline, Succeeded: t.Succeeded, FinishedAt: t.FinishedAt}
	if t.Phase == PhaseSucceeded || t.Phase == PhaseFailed {
		if o.FinishedAt.IsZero() { // missing in the status: the time to live starts again
			o.FinishedAt = wholeSecond(now)
		}
		o.expire(t.TTL, now)
		return o
	}

	// 1. The start, and the deadline that follows from it.
	if o.StartTime.IsZero() && t.Started {
		o.StartTime, o.Phase, o.Again = wholeSecond(now), PhaseRunning, true
	}
	if o.Deadline.IsZero() && t.MaxRuntime > 0 && !o.StartTime.IsZero() {
		o.Deadline = wholeSecond(o.StartTime.Add(t.MaxRuntime))
	}
	if o.Again {
		return o
	}

	// 2. A workload that fails waits for its pods.
	if t.Failed {
		if !t.Draining {
			o.Phase, o.FinishedAt = PhaseFailed, wholeSecond(now)
			o.expire(t.TTL, now)
		}
		return o
	}

	// 3. Replicas that have succeeded.
	o.Succeeded = t.succeeded()
	o.Phase = PhasePending
	switch {
	case len(t.Replicas) > 0 && o.Succeeded.Len() == len(t.Replicas):
		o.Phase, o.FinishedAt = PhaseSucceeded, wholeSecond(now)
		o.Message = "All replicas have succeeded" + t.describeGivenUp()
		o.expire(t.TTL, now)
		return o
	case t.Running, t.Phase == PhaseRunning && t.Started && !t.Draining:
		// The phase stays Running while only the ends of pods remain to be recorded.
		o.Phase = PhaseRunning
	}

	// 4. The deadline.
	if !o.Deadline.IsZero() {
		if !now.Before(o.Deadline) {
			o.Failure = MaxRuntimeExceeded
			o.Message = fmt.Sprintf("maxRuntime of %s, counted from %s, was over at %s", t.MaxRuntime, Timestamp(o.StartTime), Timestamp(o.Deadline))
			return o
		}
		o.requeueAt(o.Deadline, now)
	}

	// 5. Restarts, as long as there are some left.
	o.restart(t, now)
	return o
}

// restart restarts the replicas that are due, or lets the workload fail.
func (o *TrainingOutcome) restart(t Training, now time.Time) {
	used := t.RestartCount
	for _, r := range t.Replicas {
		if o.Succeeded.Has(r.Index) {
			continue
		}
		due, found := r.dueRestart()
		switch {
		case !found:
		case due.deadline.After(now):
			o.requeueAt(due.deadline, now)
			if o.NextRestart.IsZero() || due.deadline.Before(o.NextRestart) {
				o.NextRestart = due.deadline
			}
		case due.excuse != "":
			o.replace(r.Index, due.excuse, due)
		case r.Silence.IsSilent():
			o.hold(r, now)
		case used >= t.MaxRestarts && used > t.RestartCount: // the restarts that are left are used, and counted, before it fails
			o.RequeueAfter = Sooner(o.RequeueAfter, RecheckAfter)
		case used >= t.MaxRestarts:
			o.Failure, o.Restart, o.NextRestart = MaxRestartsExceeded, nil, time.Time{}
			o.Message = fmt.Sprintf("replica %d failed after %d of %d restarts: %s", r.Index, t.RestartCount, t.MaxRestarts, due.message)
			return
		default:
			used++
			o.replace(r.Index, ReplacedRestart, due)
		}
	}
}

// hold leaves a replica with failed pods as it is until it is known whether nodes are lost.
func (o *TrainingOutcome) hold(r TrainingReplica, now time.Time) {
	if o.Held == nil {
		o.Held = map[int]Silence{}
	}
	o.Held[r.Index] = r.Silence
	o.RequeueAfter = Sooner(o.RequeueAfter, fleetPeriod)
	if !r.Silence.Until.IsZero() {
		o.requeueAt(r.Silence.Until, now)
	}
}

// replace restarts a replica.
func (o *TrainingOutcome) replace(replica int, reason ReplacementReason, due restartDue) {
	if o.Restart == nil {
		o.Restart = map[int]Replacement{}
	}
	o.Restart[replica] = Replacement{Reason: reason, Message: due.message, Since: due.since}
}

func (o *TrainingOutcome) requeueAt(t, now time.Time) {
	o.RequeueAfter = Sooner(o.RequeueAfter, delayUntil(t, now))
}

// Recheck returns the outcome with a requeue after RecheckAfter at the latest.
func (o TrainingOutcome) Recheck() TrainingOutcome {
	o.RequeueAfter = Sooner(o.RequeueAfter, RecheckAfter)
	return o
}

// expire sets when a finished workload must be deleted.
func (o *TrainingOutcome) expire(ttl *time.Duration, now time.Time) {
	if ttl == nil {
		return
	}
	if due := o.FinishedAt.Add(*ttl); due.After(now) {
		o.requeueAt(due, now)
	} else {
		o.Expired = true
	}
}

// describeGivenUp says that the workload has succeeded without some of its pods. "": with all of them.
func (t Training) describeGivenUp() string {
	n, first := 0, ""
	for _, r := range t.Replicas {
		for _, c := range r.Cliques {
			if n += c.GivenUp; first == "" && c.GivenUp > 0 {
				first = c.Name
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s given up, each after %d failures in a row: see PodClique %s", message.Count(n, "pod")+message.Plural(n, " was", " were"), maxFailures, first)
}

// succeeded returns the desired replicas that have succeeded, now or earlier.
func (t Training) succeeded() IndexSet {
	var succeeded []int
	for _, r := range t.Replicas {
		if r.succeeded() {
			succeeded = append(succeeded, r.Index)
		}
	}
	return t.Succeeded.Union(Indices(succeeded...)).Below(len(t.Replicas))
}

// succeeded reports whether every PodClique of the replica's current attempt has succeeded.
func (r TrainingReplica) succeeded() bool {
	return r.Complete && len(r.Cliques) > 0 && !slices.ContainsFunc(r.Cliques, func(c TrainingClique) bool {
		return !c.Finished || !c.Observed || c.Attempt.Set < r.Attempt
	})
}

// restartDue is a breach for which a replica is restarted.
type restartDue struct {
	since, deadline time.Time
	message         string
	// excuse is why the missing pods are not a failure of the workload: ReplacedPreemption or ReplacedNodesLost; "":
	// they are.
	excuse ReplacementReason
}

// dueRestart returns the first breach of a PodClique of the replica's current attempt, and whether there is one.
// Unknown states, and PodCliques of an earlier attempt, do not restart the replica.
func (r TrainingReplica) dueRestart() (restartDue, bool) {
	var dues []restartDue
	excuse := ReplacedPreemption
	for _, c := range r.Cliques {
		if c.Terminating || !c.Observed || c.Finished || c.BreachedSince.IsZero() || c.Attempt.Set < r.Attempt {
			continue
		}
		if !c.Preempted {
			excuse = ""
		}
		dues = append(dues, restartDue{since: c.BreachedSince, deadline: Deadline(c.BreachedSince, &c.Delay),
			message: fmt.Sprintf("PodClique %s: %s", c.Name, c.Message)})
	}
	if len(dues) == 0 {
		return restartDue{}, false
	}
	first := slices.MinFunc(dues, func(a, b restartDue) int {
		return cmp.Or(a.deadline.Compare(b.deadline), cmp.Compare(a.message, b.message))
	})
	if first.excuse = excuse; r.NodesLost && excuse == "" {
		first.excuse = ReplacedNodesLost
	}
	return first, true
}
