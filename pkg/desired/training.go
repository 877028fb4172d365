// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/observed"
)

// setTraining records in the status of a PodClique which of its pods have succeeded, and whether the PodClique has.
// Source: docs/decisions, J5.
func setTraining(clique *v1alpha1.PodClique, s *v1alpha1.PodCliqueStatus, d *lifecycle.TrainingDecision, now metav1.Time) {
	s.AvailableReplicas, s.SucceededReplicas = d.Available, int32(d.Succeeded.Len())
	s.SucceededIndices, s.StartedIndices = d.Succeeded.String(), d.Started.String()
	s.RemovedSucceededReplicas = d.SucceededGone
	if !d.Done {
		return
	}
	succeeded := yesNo(v1alpha1.ConditionSucceeded, true, v1alpha1.ReasonAllPodsSucceeded, "")
	succeeded.Message = fmt.Sprintf("%s succeeded", message.Count(d.Succeeded.Len(), "pod"))
	if failed := d.GivenUp.Len(); failed > 0 {
		succeeded.Message += fmt.Sprintf(", %d given up", failed)
	}
	if d.Cancelled > 0 {
		succeeded.Message += fmt.Sprintf(", %d that never started cancelled", d.Cancelled)
	}
	setConditions(&s.Conditions, clique.Generation, now, succeeded)
}

// givenUp returns the problem that pods of a Training workload are no longer replaced; ok is false if all are.
func givenUp(d *lifecycle.TrainingDecision) (p Problem, ok bool) {
	if d == nil || d.GivenUp.Len() == 0 {
		return Problem{}, false
	}
	return Problem{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonPodsGivenUp,
		Message: fmt.Sprintf("pods %s have failed 6 times in a row and are not replaced in this attempt", message.Truncate(d.GivenUp.String(), maxDescription/2))}, true
}

// setOutcome records the decision on a Training workload in the status of a PodCliqueSet. raised are the attempts that
// are raised in the same write; those of restarts are counted. Source: docs/decisions, J4 to J7.
func setOutcome(pcs *v1alpha1.PodCliqueSet, s *v1alpha1.PodCliqueSetStatus, o *lifecycle.TrainingOutcome, raised map[int]lifecycle.Raised, now metav1.Time) {
	s.Phase = v1alpha1.PodCliqueSetPhase(o.Phase)
	s.StartTime, s.RuntimeDeadline, s.CompletionTime = optionalTime(o.StartTime), optionalTime(o.Deadline), optionalTime(o.FinishedAt)
	if text := o.Succeeded.String(); len(text) <= lifecycle.MaxIndicesLength {
		s.SucceededIndices, s.SucceededReplicas = text, int32(o.Succeeded.Len())
	}
	for _, r := range raised {
		if r.Reason == lifecycle.ReplacedRestart {
			s.RestartCount++
		}
	}
	if o.Failure != "" {
		setConditions(&s.Conditions, pcs.Generation, now, metav1.Condition{
			Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: string(o.Failure), Message: message.Truncate(o.Message, maxDescription)})
	}
}

// withSucceeded returns the replicas of a set, with those as succeeded that the same write records as succeeded.
func withSucceeded(replicas []lifecycle.SetReplica, o *lifecycle.TrainingOutcome) []lifecycle.SetReplica {
	if o == nil {
		return replicas
	}
	replicas = slices.Clone(replicas)
	for i := range replicas {
		r := &replicas[i]
		r.Succeeded = r.Succeeded || o.Succeeded.Has(r.Index)
	}
	return replicas
}

// leafOf returns the minMember of the leaf of a PodClique of a Training workload, given the minMember if no pod had
// succeeded. The scheduler counts pods that have succeeded as long as their objects exist; minMember is reduced by
// pods that can no longer be counted. A clique that has succeeded is listed only beside others that have, with a
// minMember that does not exceed its existing pods. A clique that has not succeeded needs at least one pod, because a
// pod of it may have to be replaced. Source: docs/decisions, G9.
func leafOf(clique *v1alpha1.PodClique, minMember int32) int32 {
	if clique == nil || !observed.IsTraining(clique) || minMember <= 0 {
		return minMember
	}
	s := &clique.Status
	if observed.Clique(clique).Finished {
		return min(minMember, s.SucceededReplicas-s.RemovedSucceededReplicas)
	}
	return max(minMember-s.RemovedSucceededReplicas, 1)
}
