// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/observed"
)

// The functions below return the object's own status with current values; fields they do not manage are kept. Equal
// facts give an equal status at any time, except that pods become available after minReadySeconds: otherwise now is used
// only as the transition time of a condition whose status changes, and as the time of a new error. The caller compares
// with equality.Semantic and writes only differences.

// Problem is a reason why the desired state of an object cannot be reached.
type Problem struct {
	// Condition is v1alpha1.ConditionReplicaFailure or ConditionForeignObject. "": reported in lastErrors only.
	Condition string
	// Reason is a machine-readable word, Message one sentence for users. Message does not change as long as the
	// problem lasts: it contains no times and no counters.
	Reason, Message string
}

const (
	// maxErrors and maxDescription are the limits of the CRDs.
	maxErrors      = 16
	maxDescription = 1024
)

// GroupFacts contains the facts for the status of a PodCliqueScalingGroup.
type GroupFacts struct {
	// Replicas are the existing replicas: observed.GroupReplicas.
	Replicas []lifecycle.GroupReplica
	// Delay is the effective termination delay, NextTermination when the next replica of the group is due.
	Delay           *time.Duration
	NextTermination time.Time
	// Training: the set restarts its replicas as a whole and emits the events about it. A breach of the group is only
	// reported in its status. Failed: the workload has failed, so that nothing follows from a breach.
	Training, Failed bool
	// Raised are the attempts of replicas that are replaced, by index. Waits describes what the first waiting replica
	// waits for: UnitDecision.Note.
	Raised map[int]lifecycle.Raised
	Waits  string
	// Update is the decision on an update; nil: there is no set, or it is a Training workload.
	Update   *lifecycle.GroupUpdateDecision
	Problems []Problem
}

// ScalingGroupStatus returns the desired status of a PodCliqueScalingGroup. Replicas above spec.replicas, which are
// being deleted, count as existing only.
func ScalingGroupStatus(group *v1alpha1.PodCliqueScalingGroup, f GroupFacts, now metav1.Time) v1alpha1.PodCliqueScalingGroupStatus {
	s := *group.Status.DeepCopy()
	s.ObservedGeneration = group.Generation
	if attempt := observed.GroupAttempt(group, 0).Set; attempt != s.PodCliqueSetAttempt { // a new attempt of the set's replica
		s.PodCliqueSetAttempt, s.ReplicaAttempts, s.WasAvailable, s.MinAvailableBreachedSince = attempt, nil, false, nil
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionMinAvailableBreached)
	}
	availableReplicas := map[int]bool{}
	s.Replicas, s.ScheduledReplicas, s.AvailableReplicas, s.UpdatedReplicas = int32(len(f.Replicas)), 0, 0, 0
	var wanted []lifecycle.GroupReplica
	for _, r := range f.Replicas {
		if r.Index >= int(group.Spec.Replicas) {
			continue
		}
		wanted = append(wanted, r)
		availableReplicas[r.Index] = r.Available()
		s.ScheduledReplicas += one(r.IsScheduled())
		s.AvailableReplicas += one(r.Available())
		s.UpdatedReplicas += one(r.IsUpdated())
	}
	s.ReplicaAttempts = replicaAttempts(s.ReplicaAttempts, int(max(group.Spec.Replicas, 0)), f.Raised, availableReplicas, now)
	s.Selector = selector(naming.OfScalingGroup(group.Name))
	needed := lifecycle.GroupMinimum(group.Spec.MinAvailable, group.Spec.Replicas)
	s.MinAvailable = &needed
	switch {
	case f.Update != nil:
		setGroupUpdate(group, &s, f.Update, now)
	case f.Training:
		s.ObservedRevision = observed.Revision(group)
		follow(&s.CurrentPodCliqueSetGenerationHash, observed.GenerationHash(group), s.UpdatedReplicas >= group.Spec.Replicas, false)
	}
	breach := judgeGroup(group, &s, wanted, needed, f.Delay, now.Time)
	if f.Failed && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionMinAvailableBreached) {
		breach = lifecycle.Breach{Undecided: true, WasAvailable: s.WasAvailable} // the condition still says what was missing
	}
	s.WasAvailable = breach.WasAvailable
	s.TerminationDeadline = optionalTime(earliest(breach.Deadline, f.NextTermination))
	available := yesNo(v1alpha1.ConditionAvailable, s.AvailableReplicas >= needed, v1alpha1.ReasonSufficientReplicas, v1alpha1.ReasonInsufficientReplicas)
	available.Message = fmt.Sprintf("%d of %s available, %d needed", s.AvailableReplicas, message.Are(int(group.Spec.Replicas), "replica"), needed)
	if f.Failed {
		f.Waits = "" // nothing is created any more, so nothing is waited for
	}
	if why := cmp.Or(f.Waits, lifecycle.FirstLack(wanted)); why != "" && s.AvailableReplicas < needed {
		available.Message += "; " + message.Truncate(why, maxDescription)
	}
	if needed == 0 {
		available.Reason, available.Message = v1alpha1.ReasonScaledToZero, "no replicas are wanted"
	}
	setConditions(&s.Conditions, group.Generation, now, available)
	setBreach(&s.Conditions, &s.MinAvailableBreachedSince, breach, group.Generation, now)
	if f.Failed {
		s.MinAvailableBreachedSince = nil // as in PodCliqueStatus
	}
	setProblems(&s.Conditions, &s.LastErrors, f.Problems, group.Generation, now)
	return s
}

// SetFacts contains the facts for the status of a PodCliqueSet.
type SetFacts struct {
	// Replicas are the desired replicas: observed.SetReplicas.
	Replicas []lifecycle.SetReplica
	// Running: a pod of the set is running.
	Running bool
	// Recorded is the result of RecordedReplicas, or the recorded value if the set is not reconciled.
	Recorded []v1alpha1.RecordedReplicas
	// Reported is what the latest event about availability was based on: SetStory.Recorded.
	Reported *v1alpha1.ReportedAvailability
	// Raised are the attempts of replicas that are replaced, by index.
	Raised map[int]lifecycle.Raised
	// Training is the decision on a Training workload; nil: nothing new, or it is an Inference workload.
	Training *lifecycle.TrainingOutcome
	// NextTermination is when the next termination of a replica is due; zero: none is due.
	NextTermination time.Time
	// SchedulerName is the scheduler of pods whose template has none.
	SchedulerName string
	// Update is the decision on an update; nil: the set is not reconciled, or it is a Training workload.
	Update   *lifecycle.SetUpdateDecision
	Problems []Problem
}

// whereWhy returns a text about where users find the reason why the minimum of replica i is not bound: in its
// PodGroup, unless all of its pods name other schedulers than the default one. muster-scheduler ignores the PodGroup of
// such pods, so that it has no status.
func whereWhy(pcs *v1alpha1.PodCliqueSet, i int, ours string) string {
	var names []string
	for _, c := range pcs.Spec.Template.CliquesInOrder() {
		name := cmp.Or(c.Spec.PodSpec.SchedulerName, ours)
		if name == ours || name == v1alpha1.DefaultSchedulerName || name == corev1.DefaultSchedulerName {
			return fmt.Sprintf("PodGroup %s says why", naming.PodGroup(pcs.Name, i))
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Sprintf("its pods are left to %s, and their events say why", strings.Join(slices.Compact(names), ", "))
}

// PodCliqueSetStatus returns the desired status of a PodCliqueSet. A set without replicas is available.
func PodCliqueSetStatus(pcs *v1alpha1.PodCliqueSet, f SetFacts, now metav1.Time) v1alpha1.PodCliqueSetStatus {
	s := *pcs.Status.DeepCopy()
	s.ObservedGeneration = pcs.Generation
	s.Replicas, s.ScheduledReplicas, s.AvailableReplicas, s.UpdatedReplicas = max(pcs.Spec.Replicas, 0), 0, 0, 0
	var first, troubled *lifecycle.SetReplica // the first one that is unavailable, and the first one with trouble
	var breachedSince time.Time
	availableReplicas, deadline := map[int]bool{}, f.NextTermination
	replicas := withSucceeded(f.Replicas, f.Training)
	for i := range replicas {
		r := &replicas[i]
		s.ScheduledReplicas += one(r.IsScheduled())
		s.AvailableReplicas += one(r.Available())
		s.UpdatedReplicas += one(r.IsUpdated())
		availableReplicas[r.Index] = r.Available()
		breachedSince = earliest(breachedSince, r.BreachedSince())
		for _, g := range r.Groups {
			if g.Delay != nil && g.Attempt >= r.Attempt {
				deadline = earliest(deadline, g.TerminationDeadline)
			}
		}
		if first == nil && !r.Available() {
			first = r
		}
		if troubled == nil && r.Trouble != "" {
			troubled = r
		}
	}
	foreign := "" // message about the first foreign object with a required name
	for _, p := range f.Problems {
		if p.Condition == v1alpha1.ConditionForeignObject && foreign == "" {
			foreign = p.Message
		}
	}
	s.Selector = selector(naming.OfSet(pcs.Name))
	s.RecordedReplicas, s.Reported = f.Recorded, f.Reported
	s.ReplicaAttempts = replicaAttempts(s.ReplicaAttempts, int(s.Replicas), f.Raised, availableReplicas, now)
	s.MinAvailableBreachedSince, s.TerminationDeadline = optionalTime(breachedSince), optionalTime(deadline)
	switch {
	case f.Training != nil:
		setOutcome(pcs, &s, f.Training, f.Raised, now)
	case pcs.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining:
		s.Phase = cmp.Or(s.Phase, v1alpha1.PodCliqueSetPhasePending) // it is invalid, and not reconciled
	case f.Running:
		s.Phase = v1alpha1.PodCliqueSetPhaseRunning
	default:
		s.Phase = v1alpha1.PodCliqueSetPhasePending
	}
	if s.CompletionTime != nil || meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionFailed) {
		s.MinAvailableBreachedSince, s.TerminationDeadline = nil, nil // nothing follows from a breach of a job that is over
	}
	available := yesNo(v1alpha1.ConditionAvailable, s.AvailableReplicas >= s.Replicas, v1alpha1.ReasonAllReplicasAvailable, v1alpha1.ReasonReplicasUnavailable)
	available.Message = fmt.Sprintf("%d of %s available", s.AvailableReplicas, message.Are(int(s.Replicas), "replica"))
	switch {
	case s.Replicas == 0:
		available.Reason, available.Message = v1alpha1.ReasonScaledToZero, "no replicas are wanted"
	case first != nil && foreign != "":
		available.Message += "; " + message.Truncate(foreign, maxDescription)
	case first != nil && first.Waits != "":
		available.Message += fmt.Sprintf("; replica %d %s", first.Index, first.Waits)
	case first != nil && first.Trouble != "":
		name, _ := first.Unavailable()
		available.Message += fmt.Sprintf("; replica %d lacks %s: %s", first.Index, name, message.Truncate(first.Trouble, maxDescription))
	case first != nil && first.Terminating() != "":
		available.Message += fmt.Sprintf("; replica %d lacks %s, which is being deleted", first.Index, first.Terminating())
	case first != nil && !first.IsScheduled():
		available.Message += fmt.Sprintf("; the minimum of replica %d is not bound: %s", first.Index, whereWhy(pcs, first.Index, f.SchedulerName))
	case first != nil:
		name, why := first.Unavailable()
		if available.Message += fmt.Sprintf("; replica %d lacks %s", first.Index, name); why != "" {
			available.Message += ": " + message.Truncate(why, maxDescription)
		}
	}
	if troubled != nil && troubled != first {
		available.Message += fmt.Sprintf("; in replica %d, %s", troubled.Index, message.Truncate(troubled.Trouble, maxDescription))
	}
	if failed := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionFailed); failed != nil && failed.Status == metav1.ConditionTrue {
		available.Status, available.Reason, available.Message = metav1.ConditionFalse, failed.Reason, failed.Message // its objects are deleted
	} else if s.Phase == v1alpha1.PodCliqueSetPhaseSucceeded {
		available.Status, available.Reason = metav1.ConditionTrue, v1alpha1.ReasonAllReplicasSucceeded
		available.Message = fmt.Sprintf("%s succeeded", message.Count(int(s.Replicas), "replica"))
	}
	setConditions(&s.Conditions, pcs.Generation, now, available)
	if f.Update != nil {
		setSetUpdate(pcs, &s, f.Update, now)
	}
	setProblems(&s.Conditions, &s.LastErrors, f.Problems, pcs.Generation, now)
	return s
}

// yesNo returns a condition that is True for one reason and False for the other.
func yesNo(conditionType string, yes bool, trueReason, falseReason string) metav1.Condition {
	if yes {
		return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: trueReason}
	}
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: falseReason}
}

// setConditions sets conditions; now is the transition time of those whose status changes.
func setConditions(conditions *[]metav1.Condition, generation int64, now metav1.Time, cs ...metav1.Condition) {
	for _, c := range cs {
		c.ObservedGeneration, c.LastTransitionTime = generation, now
		meta.SetStatusCondition(conditions, c)
	}
}

// setProblems reports problems in lastErrors, and the first problem of each condition in that condition, which is
// removed when there is none. An error that was reported before keeps its time.
func setProblems(conditions *[]metav1.Condition, lastErrors *[]v1alpha1.LastError, problems []Problem, generation int64, now metav1.Time) {
	for _, conditionType := range []string{v1alpha1.ConditionReplicaFailure, v1alpha1.ConditionForeignObject} {
		told := false
		for _, p := range problems {
			if p.Condition == conditionType && !told {
				told = true
				setConditions(conditions, generation, now, metav1.Condition{
					Type: conditionType, Status: metav1.ConditionTrue, Reason: p.Reason, Message: message.Truncate(p.Message, maxDescription),
				})
			}
		}
		if !told {
			meta.RemoveStatusCondition(conditions, conditionType)
		}
	}

	var errors []v1alpha1.LastError
	for _, p := range problems {
		if len(errors) == maxErrors {
			break
		}
		e := v1alpha1.LastError{Code: cmp.Or(p.Reason, "Error"), Description: message.Truncate(p.Message, maxDescription), ObservedAt: now}
		for _, old := range *lastErrors {
			if old.Code == e.Code && old.Description == e.Description {
				e.ObservedAt = old.ObservedAt
			}
		}
		errors = append(errors, e)
	}
	*lastErrors = errors
}

func selector(match map[string]string) *string {
	text := labels.SelectorFromSet(match).String()
	return &text
}

func one(yes bool) int32 {
	if yes {
		return 1
	}
	return 0
}
