// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
)

// IsTraining reports whether a PodClique belongs to a Training workload.
func IsTraining(clique *v1alpha1.PodClique) bool {
	return clique.Annotations[v1alpha1.AnnotationWorkloadType] == string(v1alpha1.WorkloadTypeTraining)
}

// FailedReason returns the reason of the condition Failed of a PodCliqueSet, "" if it has not failed.
func FailedReason(set *v1alpha1.PodCliqueSet) string {
	if c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionFailed); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

// FrozenReplicas returns a function that reports whether no more objects are created in a replica of a set, because it
// has succeeded or the workload has failed.
func FrozenReplicas(set *v1alpha1.PodCliqueSet) func(i int) bool {
	failed, succeeded := set.Spec.IsTraining() && FailedReason(set) != "", succeededReplicas(set)
	return func(i int) bool { return failed || succeeded.Has(i) }
}

// succeededReplicas returns the replicas of a set that have succeeded. It reads a text that may be long.
func succeededReplicas(set *v1alpha1.PodCliqueSet) lifecycle.IndexSet {
	if !set.Spec.IsTraining() {
		return lifecycle.IndexSet{}
	}
	return lifecycle.ParseIndices(set.Status.SucceededIndices)
}

// BreachDelay returns how long a PodClique of a scaling group of the set's template, or with "" a standalone one, may
// be below its minimum: the effective termination delay, or in a Training workload the time until a restart. nil:
// without limit.
func BreachDelay(set *v1alpha1.PodCliqueSet, group string) *time.Duration {
	if !set.Spec.IsTraining() {
		return TerminationDelay(set, group)
	}
	d := time.Duration(0)
	template := &set.Spec.Template
	if template.TerminationDelay != nil {
		d = template.TerminationDelay.Duration
	}
	if config := template.ScalingGroup(group); config != nil && config.TerminationDelay != nil {
		d = config.TerminationDelay.Duration
	}
	d = max(d, 0)
	return &d
}

// groupTemplate returns the name, in the set's template, of the scaling group of a PodClique, "" if it is standalone.
func groupTemplate(set *v1alpha1.PodCliqueSet, c *v1alpha1.PodClique) string {
	if config := set.Spec.Template.ScalingGroupOf(c.Labels[v1alpha1.LabelTemplateName]); config != nil {
		return config.Name
	}
	return ""
}

// TrainingPodsFacts returns the facts about the pods of a PodClique of a Training workload. pods are its own, others
// are labelled with its name; see CliquePodsFacts.
func TrainingPodsFacts(clique *v1alpha1.PodClique, pods, others []lifecycle.Pod) lifecycle.TrainingPods {
	s := &clique.Status
	t := lifecycle.TrainingPods{
		Succeeded:     lifecycle.ParseIndices(s.SucceededIndices),
		Started:       lifecycle.ParseIndices(s.StartedIndices),
		Preempted:     lifecycle.ParseIndices(s.PreemptedIndices),
		Lost:          lifecycle.ParseIndices(s.LostIndices),
		PreemptedBy:   message.Preemptor(breachCause(s.Conditions)),
		WasAvailable:  s.WasAvailable,
		BreachedSince: BreachedSince(s.Conditions, s.MinAvailableBreachedSince),
		Done:          meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionSucceeded),
		Halted:        clique.Annotations[v1alpha1.AnnotationWorkloadFailed] != "",
	}
	t.Replicas, t.MinAvailable, t.Pods, t.Others, t.Ends = clique.Spec.Replicas, Minimum(clique).Target(), pods, others, RecordedEnds(clique)
	if d := CliqueTerminationDelay(clique); d != nil {
		t.Delay = *d
	}
	return t
}

// WithoutRecovered returns the PodCliques of a Training workload. PodCliques in breach, of which enough pods run or
// have succeeded according to pods, are replaced by copies without the breach, so that an outdated status restarts
// nothing. Pods of which nothing is known count as running (docs/decisions, T9). pods may belong to any PodClique; see
// CliquePodsFacts. marked is as for WithReady.
func WithoutRecovered(cliques []*v1alpha1.PodClique, pods []*corev1.Pod, unreachable func(node string) bool, marked func([]lifecycle.Pod) []lifecycle.Pod, now time.Time) []*v1alpha1.PodClique {
	owned := podsByOwner(pods)
	present := slices.Clone(cliques)
	for i, c := range present {
		if c.Status.MinAvailableBreachedSince == nil {
			continue
		}
		if TrainingPodsFacts(c, marked(CliquePodsFacts(c, owned[c.UID], unreachable)), nil).MayBeAvailable(now) {
			present[i] = c.DeepCopy()
			present[i].Status.MinAvailableBreachedSince = nil
		}
	}
	return present
}

// WithNodes returns a replica of a Training workload with what is known about the nodes of its pods, if one of its
// PodCliques is below its minimum. Parameters are as for WithoutRecovered.
func WithNodes(r lifecycle.TrainingReplica, cliques []*v1alpha1.PodClique, pods []*corev1.Pod, unreachable func(node string) bool, marked func([]lifecycle.Pod) []lifecycle.Pod, now time.Time) lifecycle.TrainingReplica {
	if !slices.ContainsFunc(r.Cliques, func(c lifecycle.TrainingClique) bool { return !c.BreachedSince.IsZero() }) {
		return r
	}
	owned := podsByOwner(pods)
	for _, c := range cliques {
		if Attempt(c).Believed(r.Attempt).Set < r.Attempt {
			continue
		}
		unknown, lost := TrainingPodsFacts(c, marked(CliquePodsFacts(c, owned[c.UID], unreachable)), nil).Nodes(now)
		r.NodesLost = r.NodesLost || lost
		if !r.Silence.IsSilent() {
			r.Silence = unknown
		}
	}
	return r
}

// TrainingReplicaFacts returns the facts about replica i of a set of a Training workload. wanted are the names of its
// PodCliques; complete: these are all PodCliques of the replica. cliques are the existing PodCliques of the replica
// that belong to the set (Ownership), in any order.
func TrainingReplicaFacts(set *v1alpha1.PodCliqueSet, i int, wanted []string, complete bool, cliques []*v1alpha1.PodClique) lifecycle.TrainingReplica {
	r := lifecycle.TrainingReplica{Index: i, Attempt: SetAttempt(set, i).Set}
	for _, c := range cliques {
		if !slices.Contains(wanted, c.Name) {
			continue
		}
		facts := lifecycle.TrainingClique{Clique: CliqueFacts(c), GivenUp: lifecycle.GivenUp(RecordedEnds(c), int(c.Spec.Replicas)).Len()}
		if d := BreachDelay(set, groupTemplate(set, c)); d != nil { // not read from the annotation, which follows the set with a delay
			facts.Delay = *d
		}
		if breach := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionMinAvailableBreached); breach != nil {
			facts.Message = breach.Message
			facts.Preempted = breach.Status == metav1.ConditionTrue && breach.Reason == v1alpha1.ReasonPodsPreempted
		}
		facts.Attempt = facts.Attempt.Believed(r.Attempt)
		r.Cliques = append(r.Cliques, facts)
	}
	r.Complete = complete && len(r.Cliques) == len(wanted)
	slices.SortFunc(r.Cliques, func(a, b lifecycle.TrainingClique) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

// TrainingFacts returns the facts about a Training workload; set must have its defaults. replicas are the desired ones,
// and pods all pods that belong to the set (Ownership); unreachable reports whether a node does not respond.
func TrainingFacts(set *v1alpha1.PodCliqueSet, replicas []lifecycle.TrainingReplica, pods []*corev1.Pod, unreachable func(node string) bool) lifecycle.Training {
	s := &set.Status
	t := lifecycle.Training{
		Phase:        lifecycle.Phase(s.Phase),
		RestartCount: s.RestartCount,
		StartTime:    timeOf(s.StartTime),
		Deadline:     timeOf(s.RuntimeDeadline),
		Succeeded:    lifecycle.ParseIndices(s.SucceededIndices),
		Failed:       FailedReason(set) != "",
		FinishedAt:   timeOf(s.CompletionTime),
		Replicas:     replicas,
	}
	if spec := set.Spec.TrainingSpec; spec != nil {
		if spec.MaxRuntime != nil {
			t.MaxRuntime = spec.MaxRuntime.Duration
		}
		if spec.MaxRestarts != nil {
			t.MaxRestarts = *spec.MaxRestarts
		}
		if spec.TTLSecondsAfterFinished != nil {
			ttl := time.Duration(*spec.TTLSecondsAfterFinished) * time.Second
			t.TTL = &ttl
		}
	}
	for _, pod := range pods {
		ended := HasEnded(pod)
		t.Started = t.Started || ended || pod.Status.Phase == corev1.PodRunning
		onLostNode := !ended && pod.Spec.NodeName != "" && unreachable(pod.Spec.NodeName)
		t.Running = t.Running || pod.Status.Phase == corev1.PodRunning && !onLostNode
		t.Draining = t.Draining || !ended && !(onLostNode && pod.DeletionTimestamp != nil)
	}
	return t
}

// setTraining records in the status of a PodClique which of its pods have succeeded, and whether the PodClique has.
// Source: docs/decisions, J5.
func setTraining(clique *v1alpha1.PodClique, s *v1alpha1.PodCliqueStatus, d *lifecycle.TrainingDecision, now metav1.Time) {
	s.AvailableReplicas, s.SucceededReplicas = d.Available, int32(d.Succeeded.Len())
	s.SucceededIndices, s.StartedIndices = d.Succeeded.String(), d.Started.String()
	s.PreemptedIndices, s.LostIndices = d.Preempted.String(), d.Lost.String()
	s.RemovedSucceededReplicas = d.SucceededGone
	if !d.Done {
		return
	}
	succeeded := conditionIf(v1alpha1.ConditionSucceeded, true, v1alpha1.ReasonAllPodsSucceeded, "")
	succeeded.Message = fmt.Sprintf("%s succeeded", message.Count(d.Succeeded.Len(), "pod"))
	if failed := d.GivenUp.Len(); failed > 0 {
		succeeded.Message += fmt.Sprintf(", %d given up", failed)
	}
	if d.Cancelled > 0 {
		succeeded.Message += fmt.Sprintf(", %d that never started cancelled", d.Cancelled)
	}
	setConditions(&s.Conditions, clique.Generation, now, succeeded)
}

// givenUpProblem returns the problem that pods of a Training workload are no longer replaced; ok is false if all are.
func givenUpProblem(d *lifecycle.TrainingDecision) (p Problem, ok bool) {
	if d == nil || d.GivenUp.Len() == 0 {
		return Problem{}, false
	}
	return Problem{Condition: v1alpha1.ConditionReplicaFailure, Reason: v1alpha1.ReasonPodsGivenUp,
		Message: fmt.Sprintf("pods %s have failed 6 times in a row and are not replaced in this attempt", message.Truncate(d.GivenUp.String(), maxDescription/2))}, true
}

// setOutcome records the decision on a Training workload in the status of a PodCliqueSet. raised are the attempts that
// are raised in the same write; those of restarts after failures are counted, those after preemptions and losses of
// nodes are not. Source: docs/decisions, J4 to J7, J9.
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

// withOutcome returns the replicas of a set, with those as succeeded that the same write records as succeeded, and with
// what their restarts wait for.
func withOutcome(replicas []lifecycle.SetReplica, o *lifecycle.TrainingOutcome) []lifecycle.SetReplica {
	if o == nil {
		return replicas
	}
	replicas = slices.Clone(replicas)
	for i := range replicas {
		r := &replicas[i]
		r.Succeeded = r.Succeeded || o.Succeeded.Has(r.Index)
		r.Held = o.Held[r.Index]
	}
	return replicas
}
