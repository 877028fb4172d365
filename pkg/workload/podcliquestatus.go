// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/naming"
)

// CliqueStatusFacts contains the facts for the status of a PodClique.
type CliqueStatusFacts struct {
	Pods []lifecycle.Pod
	// Leaf is the minMember of the clique's leaf in the PodGroup; 0: not listed. A value above the recorded minimum
	// must have been read from the API server, not from the cache.
	Leaf int32
	// Breach is the decision on the minimum.
	Breach lifecycle.Breach
	// Ends is the history of pods that ended: lifecycle.PodDecision.
	Ends map[int]lifecycle.Ends
	// Training is the decision on the pods of a Training workload; nil for Inference.
	Training *lifecycle.TrainingDecision
	// Update is the decision on an update; nil for Training.
	Update *lifecycle.CliqueUpdateDecision
	// Behind: the update of the set has not reached the PodClique: IsBehind.
	Behind   bool
	Problems []Problem
}

// PodCliqueStatus returns the desired status of a PodClique.
func PodCliqueStatus(clique *v1alpha1.PodClique, f CliqueStatusFacts, now metav1.Time) v1alpha1.PodCliqueStatus {
	s := *clique.Status.DeepCopy()
	n := lifecycle.Count(f.Pods)
	needed := Minimum(clique).Effective(n.Ready, f.Leaf)

	s.ObservedGeneration = clique.Generation
	s.Replicas, s.ReadyReplicas, s.ScheduledReplicas = n.Pods, n.Ready, n.Scheduled
	s.ScheduleGatedReplicas, s.UpdatedReplicas = n.Gated, n.Updated
	s.MinAvailable = &needed
	if f.Behind {
		s.UpdatedReplicas = 0
	}
	s.Selector = selector(naming.OfPodClique(clique.Name))
	if clique.Labels[v1alpha1.LabelPodCliqueScalingGroup] == "" && f.Training == nil {
		s.SettledIndices = settle(clique, lifecycle.IndicesOf(f.Pods))
	}
	s.EndedPods = endedPods(f.Ends)
	minReady := MinReady(clique)
	bound := n.Scheduled
	var alive int32
	if f.Training != nil {
		needed = Minimum(clique).Target()
		setTraining(clique, &s, f.Training, now)
		alive, bound = s.AvailableReplicas, n.Scheduled+s.SucceededReplicas
	} else {
		s.AvailableReplicas = lifecycle.CountAvailablePods(f.Pods, minReady, now.Time)
		alive = s.AvailableReplicas
	}
	s.WasAvailable = f.Breach.WasAvailable
	s.TerminationDeadline = optionalTime(f.Breach.Deadline)
	if f.Update == nil {
		isOutdated := slices.ContainsFunc(f.Pods, func(p lifecycle.Pod) bool { return p.Outdated })
		f.Update = &lifecycle.CliqueUpdateDecision{UpdateDecision: lifecycle.UpdateDecision{Current: !isOutdated, Outdated: isOutdated}}
	}
	setCliqueUpdate(clique, &s, f.Update, now)

	available := cliqueAvailable(f, n.Ready, alive, needed, minReady)
	scheduled := conditionIf(v1alpha1.ConditionPodCliqueScheduled, bound >= needed, v1alpha1.ReasonSufficientScheduledPods, v1alpha1.ReasonInsufficientScheduledPods)
	scheduled.Message = fmt.Sprintf("%s bound to nodes, %d needed", message.CountAre(int(bound), "pod"), needed)
	if needed == 0 {
		scheduled.Message = available.Message
	}
	setConditions(&s.Conditions, clique.Generation, now, available, scheduled)
	setBreach(&s.Conditions, &s.MinAvailableBreachedSince, f.Breach, clique.Generation, now)
	if f.Training != nil && clique.Annotations[v1alpha1.AnnotationWorkloadFailed] != "" {
		s.MinAvailableBreachedSince = nil // the condition still says what was missing
	}
	if p, ok := givenUpProblem(f.Training); ok {
		f.Problems = append(slices.Clone(f.Problems), p)
	}
	setProblems(&s.Conditions, &s.LastErrors, f.Problems, clique.Generation, now)
	return s
}

// cliqueAvailable returns the condition Available of a PodClique whose minimum is needed. alive is the number of ready
// pods that have been ready for minReady; in a Training workload, of pods that run or have succeeded.
func cliqueAvailable(f CliqueStatusFacts, ready, alive, needed int32, minReady time.Duration) metav1.Condition {
	available := conditionIf(v1alpha1.ConditionAvailable, alive >= needed, v1alpha1.ReasonSufficientReadyPods, v1alpha1.ReasonInsufficientReadyPods)
	available.Message = fmt.Sprintf("%s ready, %d needed", message.CountAre(int(ready), "pod"), needed)
	switch {
	case f.Training == nil && alive < ready:
		available.Message = fmt.Sprintf("%s ready, %d for %s, %d needed", message.CountAre(int(ready), "pod"), alive, minReady, needed)
		if alive < needed && ready >= needed {
			available.Reason = v1alpha1.ReasonWaitingForMinReadySeconds
		}
	case f.Training != nil:
		available.Message = fmt.Sprintf("%s running or succeeded, %d needed", message.CountAre(int(alive), "pod"), needed)
	}
	lacks := ready < needed // otherwise only minReadySeconds are waited for, and a pod that crashes is not needed
	if f.Training != nil {
		lacks = alive < needed
	}
	if why := lifecycle.WhyNotReady(f.Pods, f.Training != nil); why != "" && lacks {
		available.Message += "; " + message.Truncate(why, maxDescription)
	}
	if needed == 0 {
		available.Reason, available.Message = v1alpha1.ReasonScaledToZero, "no pods are wanted"
	}
	return available
}

// PodCliqueStatusChange returns how the status of a PodClique changes, without Since, and whether it changes. pods are
// the pods that the status was computed from.
func PodCliqueStatusChange(before, after *v1alpha1.PodCliqueStatus, pods []lifecycle.Pod) (lifecycle.StatusChange, bool) {
	if equality.Semantic.DeepEqual(before, after) {
		return lifecycle.StatusChange{}, false
	}
	n := lifecycle.Count(pods)
	return lifecycle.StatusChange{
		First:    before.ObservedGeneration == 0,
		Observed: before.ObservedGeneration != after.ObservedGeneration,
		Urgent: updateDiffers(before, after) || ConditionsDiffer(before.Conditions, after.Conditions) ||
			before.WasAvailable != after.WasAvailable || before.StartedIndices != after.StartedIndices ||
			before.PreemptedIndices != after.PreemptedIndices || before.LostIndices != after.LostIndices ||
			before.MinAvailable != nil && !equality.Semantic.DeepEqual(before.MinAvailable, after.MinAvailable) ||
			!slices.EqualFunc(before.LastErrors, after.LastErrors, func(a, b v1alpha1.LastError) bool {
				return a.Code == b.Code && a.Description == b.Description
			}),
		Settling: n.Ready < n.Pods,
	}, true
}
