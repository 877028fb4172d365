// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
)

// CliqueAvailabilityFacts returns the facts that decide whether a PodClique of an Inference workload is in breach of
// its minimum: lifecycle.JudgePods. minAvailable is the effective minimum, update the decision on an update.
func CliqueAvailabilityFacts(clique *v1alpha1.PodClique, pods []lifecycle.Pod, minAvailable int32, update *lifecycle.CliqueUpdateDecision) lifecycle.Availability {
	a := lifecycle.Availability{
		Available: lifecycle.Count(pods).Ready, Needed: minAvailable, Wanted: clique.Spec.Replicas,
		WasAvailable: clique.Status.WasAvailable, Updating: isUpdating(clique, update),
		BreachedSince: BreachedSince(clique.Status.Conditions, clique.Status.MinAvailableBreachedSince),
		Delay:         CliqueTerminationDelay(clique),
		Cause:         lifecycle.LostNodes(pods),
	}
	a.Silent, a.Silence = lifecycle.SilentPods(pods)
	return a
}

// GroupAvailabilityFacts returns the facts that decide whether a scaling group is in breach of its minimum:
// lifecycle.JudgeReplicas. replicas are the desired replicas that exist, delay is the effective termination delay,
// update the decision on an update, nil: none. failed: the workload has failed.
func GroupAvailabilityFacts(group *v1alpha1.PodCliqueScalingGroup, replicas []lifecycle.GroupReplica, delay *time.Duration, update *lifecycle.GroupUpdateDecision, failed bool) lifecycle.Availability {
	s := statusOfAttempt(group)
	available, unknown := lifecycle.CountAvailable(replicas)
	a := lifecycle.Availability{
		Available: available, Unknown: unknown, Needed: lifecycle.GroupMinimum(group.Spec.MinAvailable, group.Spec.Replicas), Wanted: group.Spec.Replicas,
		WasAvailable: s.WasAvailable, Updating: IsGroupUpdating(group),
		BreachedSince: BreachedSince(s.Conditions, s.MinAvailableBreachedSince),
		Delay:         delay,
		Cause:         lifecycle.MemberCauses(replicas),
		IsFinal:       failed && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionMinAvailableBreached),
	}
	a.Silent, a.Silence = lifecycle.SilentReplicas(replicas)
	if update != nil {
		a.Updating = update.Suspends
	}
	return a
}

// setBreach sets the condition MinAvailableBreached, and in since the time from which it is True.
func setBreach(conditions *[]metav1.Condition, since **metav1.Time, b lifecycle.Breach, generation int64, now metav1.Time) {
	if b.Undecided {
		return
	}
	setConditions(conditions, generation, now, metav1.Condition{
		Type: v1alpha1.ConditionMinAvailableBreached, Status: metav1.ConditionStatus(b.Status), Reason: string(b.Reason), Message: b.Message})
	*since = optionalTime(b.Since)
}

// optionalTime converts a time for a status; zero becomes nil.
func optionalTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

// earliest returns the earlier of two times; zero means not set.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// TerminationDelay returns the effective termination delay of a scaling group of the set's template, or with "" that
// of the set; nil: gang termination is off. The delay of a group overrides that of the set, if the set has one. Gang
// termination is also off with a delay that is not positive, which admission rejects, and in Training workloads, whose
// replicas are restarted instead. Source: Gang Termination Design Doc, "PCSG TerminationDelay Override".
func TerminationDelay(set *v1alpha1.PodCliqueSet, group string) *time.Duration {
	delay := set.Spec.Template.TerminationDelay
	if delay == nil || set.Spec.IsTraining() {
		return nil
	}
	if config := set.Spec.Template.ScalingGroup(group); config != nil && config.TerminationDelay != nil {
		delay = config.TerminationDelay
	}
	if delay.Duration <= 0 {
		return nil
	}
	return &delay.Duration
}

// UnreachableGrace returns how long a node may not respond before the pods of the set on it count as missing; nil: as
// long as each pod tolerates. set may be nil.
func UnreachableGrace(set *v1alpha1.PodCliqueSet) *time.Duration {
	if set == nil || set.Spec.Template.UnreachableGrace == nil {
		return nil
	}
	return &set.Spec.Template.UnreachableGrace.Duration
}

// CliqueTerminationDelay returns the effective termination delay that the controller of the PodClique's owner has set
// on it; nil: there is none, or it is invalid.
func CliqueTerminationDelay(clique *v1alpha1.PodClique) *time.Duration {
	d, err := time.ParseDuration(clique.Annotations[v1alpha1.AnnotationTerminationDelay])
	if err != nil {
		return nil
	}
	return &d
}

// BreachedSince returns the beginning of a breach of the minimum, from the conditions and the time in the status of an
// object. Zero: there is no breach.
func BreachedSince(conditions []metav1.Condition, since *metav1.Time) time.Time {
	if since == nil || !meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionMinAvailableBreached) {
		return time.Time{}
	}
	return since.Time
}

// breachCause returns the cause in the message of a breach, which lifecycle writes between the counts and the time; ""
// if there is no cause or no breach.
func breachCause(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionMinAvailableBreached)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	counts, _, _ := strings.Cut(c.Message, ", since ")
	_, cause, _ := strings.Cut(counts, "; ")
	return cause
}

// silenceIn returns why it is not known whether the minimum of an object runs, according to the message that lifecycle
// writes after the counts; the zero value: it is known.
func silenceIn(conditions []metav1.Condition) lifecycle.Silence {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionMinAvailableBreached)
	if c == nil || c.Status != metav1.ConditionUnknown || c.Reason == v1alpha1.ReasonUpdateInProgress {
		return lifecycle.Silence{}
	}
	_, text, _ := strings.Cut(c.Message, "; ")
	return lifecycle.ParseSilence(lifecycle.BreachReason(c.Reason), text)
}

// causeOfLack returns the cause in the message of condition Available, which follows the counts; "" if there is no
// cause, or the object is available.
func causeOfLack(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionAvailable)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	_, cause, _ := strings.Cut(c.Message, "; ")
	return cause
}

// timeOf returns the time in an optional field of a status, zero if it is unset.
func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// WithReady returns copies of PodCliques in whose status the ready pods are counted from the given pods, so that no
// unit is terminated because of an outdated status. Pods of which nothing is known count as ready (docs/decisions, T9).
// pods may belong to any PodClique; see CliquePodsFacts. marked returns pods with their Silence.
func WithReady(cliques []*v1alpha1.PodClique, pods []*corev1.Pod, unreachable func(node string) bool, marked func([]lifecycle.Pod) []lifecycle.Pod) []*v1alpha1.PodClique {
	return recounted(cliques, pods, unreachable, func(c *v1alpha1.PodClique, facts []lifecycle.Pod) {
		facts = marked(facts)
		silent, _ := lifecycle.SilentPods(facts)
		c.Status.ReadyReplicas = lifecycle.Count(facts).Ready + silent
		c.Status.AvailableReplicas = min(c.Status.AvailableReplicas, c.Status.ReadyReplicas)
	})
}

// recounted returns copies of PodCliques to whose status set was applied, with the facts of each one's pods.
func recounted(cliques []*v1alpha1.PodClique, pods []*corev1.Pod, unreachable func(node string) bool, set func(*v1alpha1.PodClique, []lifecycle.Pod)) []*v1alpha1.PodClique {
	owned := podsByOwner(pods)
	counted := make([]*v1alpha1.PodClique, 0, len(cliques))
	for _, c := range cliques {
		c = c.DeepCopy()
		set(c, CliquePodsFacts(c, owned[c.UID], unreachable))
		counted = append(counted, c)
	}
	return counted
}

// podsByOwner returns pods by the UID of their controlling owner.
func podsByOwner(pods []*corev1.Pod) map[types.UID][]*corev1.Pod {
	owned := map[types.UID][]*corev1.Pod{}
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
			owned[owner.UID] = append(owned[owner.UID], pod)
		}
	}
	return owned
}
