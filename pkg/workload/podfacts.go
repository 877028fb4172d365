// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/naming"
)

// CliquePodsFacts returns the facts about the pods of a PodClique, in the given order. unreachable reports whether the
// node with the given name does not respond; it is called for pods that are bound and have not ended. The times of
// their states are those that the kubelets wrote: lifecycle.Sightings.Date replaces them.
func CliquePodsFacts(clique *v1alpha1.PodClique, pods []*corev1.Pod, unreachable func(node string) bool) []lifecycle.Pod {
	facts := make([]lifecycle.Pod, 0, len(pods))
	for _, p := range pods {
		facts = append(facts, PodFacts(clique, p, unreachable))
	}
	return facts
}

// PodFacts returns the facts about one pod of a PodClique; see CliquePodsFacts.
func PodFacts(clique *v1alpha1.PodClique, pod *corev1.Pod, unreachable func(node string) bool) lifecycle.Pod {
	p := lifecycle.Pod{
		Name:        pod.Name,
		UID:         string(pod.UID),
		Index:       PodIndex(clique.Name, pod),
		Created:     pod.CreationTimestamp.Time,
		Gated:       len(pod.Spec.SchedulingGates) > 0,
		Scheduled:   pod.Spec.NodeName != "",
		Running:     pod.Status.Phase == corev1.PodRunning,
		Outdated:    isOutdated(clique, pod),
		Ended:       HasEnded(pod),
		Terminating: pod.DeletionTimestamp != nil,
		Orphan:      metav1.GetControllerOfNoCopy(pod) == nil,
		Tracked:     slices.Contains(pod.Finalizers, v1alpha1.FinalizerPodTracking),
	}
	p.End, p.EndedAt, p.Failed = podFailure(pod)
	p.Succeeded = podSucceeded(clique, pod)
	if mark := preemptionMark(pod); mark != nil && (p.Terminating || p.Failed || p.Ended) {
		p.Preempted, p.PreemptedBy = true, message.Preemptor(mark.Message)
	}
	if p.Ended {
		p.EndedAt = endedAt(pod)
	} else {
		if c := podCondition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
			p.Ready, p.ReadySince = true, c.LastTransitionTime.Time
		}
		if !p.Ready && !p.Terminating {
			p.Cause = podCause(pod)
		}
	}
	if start := pod.Status.StartTime; start != nil && !p.EndedAt.IsZero() {
		p.Lived = max(0, p.EndedAt.Sub(start.Time))
	}
	if p.Terminating {
		p.GraceEnds = pod.DeletionTimestamp.Time // the API server adds the grace period to the time of the request
		p.Unreachable = p.Scheduled && unreachable(pod.Spec.NodeName)
		grace := pod.DeletionGracePeriodSeconds
		p.Stopped = !p.Scheduled || grace != nil && *grace == 0
	}
	p.Node, p.Tolerates = pod.Spec.NodeName, toleratesUnreachable(pod)
	p.Scheduler, p.Answered = pod.Spec.SchedulerName, podCondition(pod, corev1.PodScheduled) != nil
	p.Orphaned = isOrphaned(pod)
	if c := podCondition(pod, corev1.ContainersReady); c != nil {
		p.Unready = c.Status == corev1.ConditionFalse // unlike Ready, only a kubelet writes it
	}
	if p.Unreachable || p.Scheduled && !p.Ended && unreachable(pod.Spec.NodeName) {
		p.LostNode, p.Ready, p.ReadySince = pod.Spec.NodeName, false, time.Time{}
	}
	return p
}

// toleratesUnreachable returns how long a pod tolerates the taint of a node that does not respond; nil: without limit.
func toleratesUnreachable(pod *corev1.Pod) *time.Duration {
	var least *time.Duration
	tolerated, taint := false, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if t.Key != "" && t.Key != taint.Key || t.Effect != "" && t.Effect != taint.Effect || t.Operator != corev1.TolerationOpExists && (t.Key == "" || t.Value != "") {
			continue
		}
		tolerated = true
		if t.TolerationSeconds == nil {
			continue
		}
		if *t.TolerationSeconds > int64(math.MaxInt64/time.Second) {
			continue // 292 years and more
		}
		if d := time.Duration(max(*t.TolerationSeconds, 0)) * time.Second; least == nil || d < *least {
			least = &d
		}
	}
	if !tolerated {
		least = new(time.Duration)
	}
	return least
}

// isOutdated reports whether a pod was created from another template than that of its PodClique. A pod whose template
// is unknown was not: no ready pod is replaced because a user has removed its label.
func isOutdated(clique *v1alpha1.PodClique, pod *corev1.Pod) bool {
	hash := PodTemplateHash(clique, pod)
	return hash != "" && hash != clique.Labels[v1alpha1.LabelPodTemplateHash]
}

// PodTemplateHash returns the hash of the template that a pod of a PodClique was created from: its label; without one,
// the hash that its name proves, which may be that of the current template or of the one that all pods of the PodClique
// followed before. "": unknown.
func PodTemplateHash(clique *v1alpha1.PodClique, pod *corev1.Pod) string {
	if hash := pod.Labels[v1alpha1.LabelPodTemplateHash]; hash != "" {
		return hash
	}
	index := PodIndex(clique.Name, pod)
	for _, hash := range []string{clique.Labels[v1alpha1.LabelPodTemplateHash], ptr.Deref(clique.Status.CurrentPodTemplateHash, "")} {
		if hash != "" && pod.Name == naming.PodName(clique.Name, string(clique.UID), hash, index, "") {
			return hash
		}
	}
	return ""
}

// PodIndex returns the index of a pod in the PodClique with the given name, -1 if it has none. It is read from the
// hostname, which is immutable; if the hostname is not one of the clique's, it is read from the label.
func PodIndex(podClique string, pod *corev1.Pod) int {
	if text, ok := strings.CutPrefix(pod.Spec.Hostname, podClique+"-"); ok {
		if n, err := strconv.Atoi(text); err == nil && n >= 0 && naming.PodHostname(podClique, n) == pod.Spec.Hostname {
			return n
		}
	}
	return naming.LabelIndex(pod.Labels, v1alpha1.LabelPodIndex)
}

// HasEnded reports whether a pod has failed or succeeded as a whole.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// IsReady reports whether the condition Ready of a pod is True.
func IsReady(pod *corev1.Pod) bool {
	c := podCondition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// SilentSince returns since when a node has not responded, according to its condition Ready or its taint; zero: neither
// tells.
func SilentSince(node *corev1.Node) time.Time {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown {
			return c.LastTransitionTime.Time
		}
	}
	for i := range node.Spec.Taints {
		if t := &node.Spec.Taints[i]; t.Key == corev1.TaintNodeUnreachable && t.TimeAdded != nil {
			return t.TimeAdded.Time
		}
	}
	return time.Time{}
}

// AnswersSince returns since when a node has responded without interruption; zero: it does not, or it was created less
// than newNode before, so that no pod was on it when it did not. A time that the clock of a kubelet wrote far ahead of
// now is not believed: its pods would count as unknown until then.
func AnswersSince(node *corev1.Node, now time.Time) time.Time {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue &&
			c.LastTransitionTime.After(node.CreationTimestamp.Add(newNode)) && !c.LastTransitionTime.After(now.Add(maxAhead)) {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// newNode is the time that a node may take from its registration to its first Ready.
const newNode = time.Minute

// maxAhead is how far the clock of a kubelet may be ahead.
const maxAhead = time.Minute

// UnreachableNode reports whether a node does not respond: its condition Ready is neither True nor False, or it has
// the taint for unreachable nodes. A node that does not exist (nil) does not respond either.
func UnreachableNode(node *corev1.Node) bool {
	if node == nil {
		return true
	}
	for i := range node.Spec.Taints {
		if node.Spec.Taints[i].Key == corev1.TaintNodeUnreachable {
			return true
		}
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown
		}
	}
	return false
}
