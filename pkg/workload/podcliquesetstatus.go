// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/naming"
)

// SetStatusFacts contains the facts for the status of a PodCliqueSet.
type SetStatusFacts struct {
	// Replicas are the desired replicas: SetReplicasFacts.
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
	// Topology is what the topology constraints refer to.
	Topology Topology
	// Update is the decision on an update; nil: the set is not reconciled, or it is a Training workload.
	Update   *lifecycle.SetUpdateDecision
	Problems []Problem
}

// describeUnbound returns why the minimum of a replica is not bound, and which PodGroup says so; "" if that has not
// said it. If all of its pods name other schedulers than the default one, muster-scheduler ignores the PodGroup.
func describeUnbound(pcs *v1alpha1.PodCliqueSet, r *lifecycle.SetReplica, ours string) string {
	var names []string
	group := naming.PodGroupName(pcs.Name, r.Index)
	for _, c := range pcs.Spec.Template.CliquesInOrder() {
		name := cmp.Or(c.Spec.PodSpec.SchedulerName, ours)
		switch {
		case name != ours && name != v1alpha1.DefaultSchedulerName && name != corev1.DefaultSchedulerName:
			names = append(names, name)
		case r.Unbound == "":
			return ""
		default:
			return fmt.Sprintf("%s (PodGroup %s)", message.Truncate(r.Unbound, maxDescription), group)
		}
	}
	slices.Sort(names)
	return fmt.Sprintf("its pods are left to %s, and their events say why", strings.Join(slices.Compact(names), ", "))
}

// PodCliqueSetStatus returns the desired status of a PodCliqueSet. A set without replicas is available.
func PodCliqueSetStatus(pcs *v1alpha1.PodCliqueSet, f SetStatusFacts, now metav1.Time) v1alpha1.PodCliqueSetStatus {
	s := *pcs.Status.DeepCopy()
	s.ObservedGeneration = pcs.Generation
	s.Replicas, s.ScheduledReplicas, s.AvailableReplicas, s.UpdatedReplicas = max(pcs.Spec.Replicas, 0), 0, 0, 0
	var first, troubled *lifecycle.SetReplica // the first one that is unavailable, and the first one with trouble
	var breachedSince time.Time
	availableReplicas, deadline := map[int]bool{}, f.NextTermination
	replicas := withOutcome(f.Replicas, f.Training)
	for i := range replicas {
		r := &replicas[i]
		s.ScheduledReplicas += countIf(r.IsScheduled())
		s.AvailableReplicas += countIf(r.Available())
		s.UpdatedReplicas += countIf(r.IsUpdated())
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
	s.Selector = selector(naming.SelectSetObjects(pcs.Name))
	s.RecordedReplicas, s.Reported = f.Recorded, f.Reported
	s.ReplicaAttempts = replicaAttempts(s.ReplicaAttempts, int(s.Replicas), f.Raised, availableReplicas, now)
	s.MinAvailableBreachedSince, s.TerminationDeadline = optionalTime(breachedSince), optionalTime(deadline)
	switch {
	case f.Training != nil:
		setOutcome(pcs, &s, f.Training, f.Raised, now)
	case pcs.Spec.IsTraining():
		s.Phase = cmp.Or(s.Phase, v1alpha1.PodCliqueSetPhasePending) // it is invalid, and not reconciled
	case f.Running:
		s.Phase = v1alpha1.PodCliqueSetPhaseRunning
	default:
		s.Phase = v1alpha1.PodCliqueSetPhasePending
	}
	if s.CompletionTime != nil || meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionFailed) {
		s.MinAvailableBreachedSince, s.TerminationDeadline = nil, nil // nothing follows from a breach of a job that is over
	}
	available := setAvailable(pcs, &s, f, first, troubled)
	setConditions(&s.Conditions, pcs.Generation, now, available)
	if levels := topologyCondition(&pcs.Spec.Template, f.Topology); levels != nil {
		setConditions(&s.Conditions, pcs.Generation, now, *levels)
	} else {
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionTopologyLevelsUnavailable)
	}
	if f.Update != nil {
		setSetUpdate(pcs, &s, f.Update, now)
	}
	setProblems(&s.Conditions, &s.LastErrors, f.Problems, pcs.Generation, now)
	return s
}

// NewPreemptions returns the clauses about preempted replicas that the condition Available of a set has in its status
// after, and did not have before. An event about them is due when after has been written.
func NewPreemptions(before, after *v1alpha1.PodCliqueSetStatus, replicas []lifecycle.SetReplica) []string {
	text := func(s *v1alpha1.PodCliqueSetStatus) string {
		if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAvailable); c != nil {
			return c.Message
		}
		return ""
	}
	return slices.DeleteFunc(lifecycle.Preemptions(replicas), func(clause string) bool {
		return !strings.Contains(text(after), clause) || strings.Contains(text(before), clause)
	})
}

// PodCliqueSetStatusChange returns how the status of a set changes, without Since, and whether it changes. What an
// update in progress waits for, why a replica is not available, and which objects follow it, can wait: it changes
// several times for each pod that is replaced, and no controller acts on it.
func PodCliqueSetStatusChange(before, after *v1alpha1.PodCliqueSetStatus) (lifecycle.StatusChange, bool) {
	if equality.Semantic.DeepEqual(before, after) {
		return lifecycle.StatusChange{}, false
	}
	return lifecycle.StatusChange{Urgent: !equality.Semantic.DeepEqual(withoutWaits(before), withoutWaits(after)), Settling: true}, true
}

// withoutWaits returns a copy of the status without what an update in progress waits for, why a replica is not
// available, and which objects follow it.
func withoutWaits(s *v1alpha1.PodCliqueSetStatus) *v1alpha1.PodCliqueSetStatus {
	s = s.DeepCopy()
	if p := s.UpdateProgress; p != nil {
		p.LastProgressTime, p.UpdatedPodCliques, p.UpdatedPodCliqueScalingGroups = nil, nil, nil
		p.UpdatedPodCliquesCount, p.UpdatedPodCliqueScalingGroupsCount = 0, 0
		if lifecycle.UpdateReason(p.State).IsWait() {
			p.State = ""
		}
	}
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionProgressing); c != nil && lifecycle.UpdateReason(c.Reason).IsWait() {
		c.Reason, c.Message = "", ""
	}
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAvailable); c != nil {
		c.Message, _, _ = strings.Cut(c.Message, ": ") // without the cause, which changes with the pods that start
	}
	return s
}

// setAvailable returns the condition Available of a set with the status s. first is the first replica that is not
// available, and troubled the first with trouble; nil: there is none.
func setAvailable(pcs *v1alpha1.PodCliqueSet, s *v1alpha1.PodCliqueSetStatus, f SetStatusFacts, first, troubled *lifecycle.SetReplica) metav1.Condition {
	available := conditionIf(v1alpha1.ConditionAvailable, s.AvailableReplicas >= s.Replicas, v1alpha1.ReasonAllReplicasAvailable, v1alpha1.ReasonReplicasUnavailable)
	available.Message = fmt.Sprintf("%d of %s available", s.AvailableReplicas, message.CountAre(int(s.Replicas), "replica"))
	if preempted := lifecycle.Preemptions(f.Replicas); len(preempted) > 0 {
		available.Message += "; " + message.ListNames(preempted, 3, len(preempted), "; ")
	}
	// The first foreign object with a required name.
	foreign := slices.IndexFunc(f.Problems, func(p Problem) bool { return p.Condition == v1alpha1.ConditionForeignObject })
	var silent, unbound string
	var silence lifecycle.Silence
	if first != nil {
		silent, silence = first.Silence()
		if !first.IsScheduled() {
			unbound = describeUnbound(pcs, first, f.SchedulerName)
		}
	}
	switch {
	case s.Replicas == 0:
		available.Reason, available.Message = v1alpha1.ReasonScaledToZero, "no replicas are wanted"
	case first != nil && foreign >= 0:
		available.Message += "; " + message.Truncate(f.Problems[foreign].Message, maxDescription)
	case first != nil && first.Waits != "":
		available.Message += fmt.Sprintf("; replica %d %s", first.Index, first.Waits)
	case first != nil && first.Trouble != "":
		name, _ := first.Unavailable()
		available.Message += fmt.Sprintf("; replica %d lacks %s: %s", first.Index, name, message.Truncate(first.Trouble, maxDescription))
	case first != nil && first.Terminating() != "":
		available.Message += fmt.Sprintf("; replica %d lacks %s, which is being deleted", first.Index, first.Terminating())
	case silent != "":
		available.Message += fmt.Sprintf("; replica %d lacks %s: %s", first.Index, silent, message.Truncate(silence.String(), maxDescription))
	case unbound != "":
		available.Message += fmt.Sprintf("; the minimum of replica %d is not bound: %s", first.Index, unbound)
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
	return available
}
