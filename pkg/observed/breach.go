// SPDX-License-Identifier: Apache-2.0

package observed

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

// TerminationDelay returns the effective termination delay of a scaling group of the set's template, or with "" that
// of the set; nil: gang termination is off. It is also off with a delay that is not positive, which admission rejects,
// and in Training workloads, whose replicas are restarted instead.
func TerminationDelay(set *v1alpha1.PodCliqueSet, group string) *time.Duration {
	if set.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining {
		return nil
	}
	template := &set.Spec.Template
	var override *time.Duration
	if config := template.ScalingGroup(group); config != nil {
		override = duration(config.TerminationDelay)
	}
	delay := lifecycle.EffectiveDelay(duration(template.TerminationDelay), override)
	if delay == nil || *delay <= 0 {
		return nil
	}
	return delay
}

func duration(d *metav1.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	return &d.Duration
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

// lacks returns the cause in the message of condition Available, which follows the counts; "" if there is no cause, or the
// object is available.
func lacks(conditions []metav1.Condition) string {
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
// unit is terminated because of an outdated status. pods may belong to any PodClique.
func WithReady(cliques []*v1alpha1.PodClique, pods []*corev1.Pod) []*v1alpha1.PodClique {
	return recounted(cliques, pods, func(c *v1alpha1.PodClique, facts []lifecycle.Pod) {
		c.Status.ReadyReplicas = lifecycle.Count(facts).Ready
		c.Status.AvailableReplicas = min(c.Status.AvailableReplicas, c.Status.ReadyReplicas)
	})
}

// recounted returns copies of PodCliques to whose status set was applied, with the facts of each one's pods.
func recounted(cliques []*v1alpha1.PodClique, pods []*corev1.Pod, set func(*v1alpha1.PodClique, []lifecycle.Pod)) []*v1alpha1.PodClique {
	owned := podsByOwner(pods)
	reachable := func(string) bool { return false } // no count depends on the result
	counted := make([]*v1alpha1.PodClique, 0, len(cliques))
	for _, c := range cliques {
		c = c.DeepCopy()
		set(c, CliquePods(c, owned[c.UID], reachable))
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
