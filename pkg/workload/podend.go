// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
)

// podSucceeded reports whether a pod of a PodClique ended with success. A program that exits with 0 because it was
// terminated has not completed its work, and whose clock could tell which came first: so a pod that is being deleted
// has succeeded only if that was recorded before. Source: docs/decisions, J10.
func podSucceeded(clique *v1alpha1.PodClique, pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded &&
		(pod.DeletionTimestamp == nil || lifecycle.ParseIndices(clique.Status.SucceededIndices).Has(PodIndex(clique.Name, pod)))
}

// preemptionMark returns the condition with which a scheduler has recorded that it preempts the pod; nil: there is
// none. It is recorded before the pod is deleted, and the preemption may be given up. Source: docs/decisions, J9.
func preemptionMark(pod *corev1.Pod) *corev1.PodCondition {
	c := podCondition(pod, corev1.DisruptionTarget)
	if c == nil || c.Status != corev1.ConditionTrue || c.Reason != corev1.PodReasonPreemptionByScheduler {
		return nil
	}
	return c
}

// isOrphaned reports whether the garbage collector of pods deletes the pod, because its node does not exist or is out
// of service.
func isOrphaned(pod *corev1.Pod) bool {
	c := podCondition(pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue && c.Reason == podReasonDeletionByPodGC
}

// podReasonDeletionByPodGC is the reason of the condition DisruptionTarget that kube-controller-manager writes then.
const podReasonDeletionByPodGC = "DeletionByPodGC"

// PreemptionOf returns what the gang of a PodGroup has lost to another one and is not made up for, according to the
// status of the PodGroup. Zero: nothing.
func PreemptionOf(group *v2alpha2.PodGroup) lifecycle.Preemption {
	c := meta.FindStatusCondition(group.Status.Conditions, v2alpha2.ConditionPreempted)
	if c == nil || c.Status != metav1.ConditionTrue {
		return lifecycle.Preemption{}
	}
	p := lifecycle.Preemption{Text: message.Preemption(c.Message)}
	p.Whole = p.Text != "" && c.Reason == string(v2alpha2.ReasonGangPreempted)
	return p
}

// UnboundCause returns why the minimum of the gang of a PodGroup is not bound, according to its status: the reason with
// the first clause of its text. "": the status does not say so.
func UnboundCause(group *v2alpha2.PodGroup) string {
	c := meta.FindStatusCondition(group.Status.Conditions, v2alpha2.ConditionSatisfied)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	return c.Reason + ": " + message.FirstClause(c.Message)
}

// podFailure returns why a pod failed, when it failed if a container status contains the time, and whether it failed.
// As for a Job, the phase decides: the kubelet ignores sidecars and includes init containers. In addition, a pod has
// failed as soon as a container that will not be restarted has exited non-zero, even if other containers are still
// running. Sources: GREP-0285, "PodClique Controller"; docs/decisions, J2, J8.
func podFailure(pod *corev1.Pod) (lifecycle.PodEnd, time.Time, bool) {
	end, at, found := failedContainer(pod)
	switch pod.Status.Phase {
	case corev1.PodFailed:
		if pod.Status.Reason != "" { // Evicted, DeadlineExceeded: the cause of the end of the containers
			end.Reason = pod.Status.Reason
		}
		return end, at, true
	case corev1.PodSucceeded:
		return lifecycle.PodEnd{}, time.Time{}, false
	default:
		return end, at, found
	}
}

// failedContainer returns the container that exited non-zero first and will not be restarted, when it exited, and
// whether there is one. Sidecars, which are init containers that are always restarted, are ignored.
func failedContainer(pod *corev1.Pod) (end lifecycle.PodEnd, first time.Time, found bool) {
	for _, kind := range []struct {
		init       bool
		containers []corev1.Container
		statuses   []corev1.ContainerStatus
	}{
		{true, pod.Spec.InitContainers, pod.Status.InitContainerStatuses},
		{false, pod.Spec.Containers, pod.Status.ContainerStatuses},
	} {
		for i := range kind.statuses {
			s := &kind.statuses[i]
			t := s.State.Terminated
			if t == nil || t.ExitCode == 0 {
				continue
			}
			at := slices.IndexFunc(kind.containers, func(c corev1.Container) bool { return c.Name == s.Name })
			if at < 0 || startedAgain(pod, &kind.containers[at], t.ExitCode) {
				continue
			}
			if !found || t.FinishedAt.Time.Before(first) {
				found, first = true, t.FinishedAt.Time
				end = lifecycle.PodEnd{Container: s.Name, Init: kind.init, ExitCode: t.ExitCode, Reason: t.Reason}
			}
		}
	}
	return end, first, found
}

// startedAgain reports whether the kubelet restarts a container of the pod that exited with the given code, which is
// not 0. In a pod that failed as a whole, this is true of sidecars only.
func startedAgain(pod *corev1.Pod, c *corev1.Container, code int32) bool {
	if pod.Status.Phase == corev1.PodFailed {
		return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	for _, rule := range c.RestartPolicyRules {
		if rule.ExitCodes == nil { // every action restarts the container
			continue
		}
		if slices.Contains(rule.ExitCodes.Values, code) == (rule.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
			return true
		}
	}
	if c.RestartPolicy != nil {
		return *c.RestartPolicy != corev1.ContainerRestartPolicyNever
	}
	return pod.Spec.RestartPolicy != corev1.RestartPolicyNever
}

// endedAt returns when a pod failed or succeeded: when its last container exited, or if no container status contains a
// time (an evicted pod), when its conditions last changed, or when it was created.
func endedAt(pod *corev1.Pod) time.Time {
	var last time.Time
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if t := statuses[i].State.Terminated; t != nil && t.FinishedAt.After(last) {
				last = t.FinishedAt.Time
			}
		}
	}
	if !last.IsZero() {
		return last
	}
	for i := range pod.Status.Conditions {
		if t := pod.Status.Conditions[i].LastTransitionTime; t.After(last) {
			last = t.Time
		}
	}
	if !last.IsZero() {
		return last
	}
	return pod.CreationTimestamp.Time
}

// RecordedEnds returns the history of pods that ended, by index, from a PodClique's status.
func RecordedEnds(clique *v1alpha1.PodClique) map[int]lifecycle.Ends {
	ends := make(map[int]lifecycle.Ends, len(clique.Status.EndedPods))
	for _, e := range clique.Status.EndedPods {
		ends[int(e.Index)] = lifecycle.Ends{Count: int(e.Count), Last: e.LastEndedAt.Time}
	}
	return ends
}

// endedPods converts the history of pods that ended for the status, sorted by index.
func endedPods(ends map[int]lifecycle.Ends) []v1alpha1.EndedPods {
	var list []v1alpha1.EndedPods
	for i, e := range ends {
		list = append(list, v1alpha1.EndedPods{Index: int32(i), Count: int32(e.Count), LastEndedAt: metav1.NewTime(e.Last)})
	}
	slices.SortFunc(list, func(a, b v1alpha1.EndedPods) int { return cmp.Compare(a.Index, b.Index) })
	return list
}
