// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// gangOf creates a gang whose pods have the PriorityClass.
func (c *cluster) gangOf(name, class string, minimum, pods int, gpus int64, change ...func(*wrappers.PodWrapper)) {
	c.t.Helper()
	c.apply(c.group(name).MinMember(int32(minimum)))
	for _, pod := range numbered(name, pods) {
		w := c.pod(pod, name, gpus).PriorityClass(class)
		for _, f := range change {
			f(w)
		}
		c.create(w)
	}
}

// A gang takes the cheapest pods of lower priority: first what is above another gang's minimum, then the whole gang,
// because its minimum is worth nothing without the rest (docs/decisions, G21 and G22).
func TestGangsPreemptSurplusThenWholeGangs(t *testing.T) {
	c := newCluster(t, 3)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick()
	c.gangOf("train", low, 2, 3, 8)
	c.untilBound("train", 3)
	c.untilSatisfied("train")

	c.gangOf("chat", high, 1, 1, 8)
	c.untilBound("chat", 1)
	c.untilBound("train", 2)
	c.untilStatus("train", "says what it lost", func(s v2Status) bool {
		return strings.Contains(condition(s, v2alpha2.ConditionPreempted).Message, c.namespace+"/chat") && s.Phase == v2alpha2.PodGroupAdmitted && s.Priority != nil && *s.Priority == 10
	})
	if n := c.countEvents("PodGroup", "train")["GangBelowMinimum"]; n != 0 {
		t.Error("the gang was below its minimum")
	}
	c.gangOf("search", high, 2, 2, 8)
	c.untilBound("search", 2)
	c.untilBound("train", 0)
	c.untilStatus("train", "says that it was preempted as a whole", func(s v2Status) bool {
		return strings.Contains(condition(s, v2alpha2.ConditionPreempted).Message, c.namespace+"/search") &&
			strings.HasPrefix(s.Summary, "preempted at ") && strings.Contains(s.Summary, " by "+c.namespace+"/search (1000 over 10); ")
	})
	c.untilTold("PodGroup", "search", "Preempting", "train")
	c.untilTold("PodGroup", "train", "Preempted", "chat")
	c.checkEvicted(numbered("train", 3)...)
	if n := c.boundNow("chat"); n != 1 {
		t.Errorf("%d pods of the first gang are bound, want 1", n)
	}
	c.untilStatus("search", "does not preempt any more", func(s v2Status) bool {
		return condition(s, v2alpha2.ConditionPreempting).Status != metav1.ConditionTrue && s.Phase == v2alpha2.PodGroupAdmitted
	})
}

// Nobody is evicted for a gang that does not fit afterwards; nor by one that may not preempt.
func TestGangsEvictNobodyInVain(t *testing.T) {
	c := newCluster(t, 2)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick()
	c.gangOf("train", low, 2, 2, 8)
	c.untilSatisfied("train")
	before := c.uids("train")

	c.gangOf("large", high, 3, 3, 8)
	c.untilSays("large", v2alpha2.ReasonTooLarge)
	c.gangOf("equal", low, 1, 1, 8)
	c.apply(c.group("late").MinMember(1).Spec(func(s *v2alpha2.PodGroupSpec) { s.PreemptionDelay = &metav1.Duration{Duration: time.Hour} }))
	c.create(c.pod("late-0", "late", 8).PriorityClass(high))
	c.apply(c.group("polite").MinMember(1))
	c.create(c.pod("polite-0", "polite", 8).PriorityClass(c.neverPreempting("polite", 2000)))
	c.untilReason("equal", v2alpha2.ReasonInsufficientGPUs)
	c.untilSays("late", v2alpha2.ReasonInsufficientGPUs, "it does not preempt before 20")
	c.untilSays("polite", v2alpha2.ReasonInsufficientGPUs, "it does not preempt: pod polite-0 has preemptionPolicy Never")
	c.stillSchedules()
	if !sameUIDs(before, c.uids("train")) || c.boundNow("train") != 2 {
		t.Error("pods of the gang of lower priority were evicted")
	}
	protected := c.group("train").MinMember(2).Spec(func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.NonPreemptible })
	c.apply(protected)
	c.gangOf("chat", high, 1, 1, 8)
	c.untilSays("chat", v2alpha2.ReasonInsufficientGPUs, "preemption would not help")
	if c.boundNow("train") != 2 {
		t.Error("pods of a gang that may not be preempted were evicted")
	}
	c.checkEvicted()
}

// Victims may need time to end. Their room, and what is free already and needed with it, is kept for the gang: pods of
// the same priority do not get it.
func TestRoomOfVictimsIsKeptForTheGang(t *testing.T) {
	c := newCluster(t, 2)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick()
	grace := int64(60)
	c.gangOf("train", low, 2, 2, 6, func(w *wrappers.PodWrapper) {
		w.Spec(func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = &grace })
	})
	c.untilSatisfied("train")
	c.gangOf("chat", high, 2, 2, 8)
	c.untilStatus("chat", "preempts", func(s v2Status) bool {
		x := condition(s, v2alpha2.ConditionPreempting)
		return x.Reason == "Evicting" && strings.Contains(x.Message, "1 gang (2 pods") && s.Reason == v2alpha2.ReasonPreempting
	})
	c.until("both victims are terminating", 30*time.Second, func(pods []*corev1.Pod) bool {
		return len(slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })) == 2
	})
	for _, p := range c.pods() {
		if p.DeletionTimestamp == nil {
			continue
		}
		i := slices.IndexFunc(p.Status.Conditions, func(x corev1.PodCondition) bool { return x.Type == corev1.DisruptionTarget })
		if i < 0 || p.Status.Conditions[i].Reason != corev1.PodReasonPreemptionByScheduler {
			t.Errorf("pod %s has the conditions %v, want DisruptionTarget", p.Name, p.Status.Conditions)
		}
	}
	c.create(c.pod("plain", "", 2).PriorityClass(high)) // 2 GPUs are free on each node, which the gang needs
	c.gangOf("rival", high, 1, 1, 8)
	c.untilReason("rival", v2alpha2.ReasonInsufficientGPUs)
	c.delete(numbered("train", 2)...) // the kubelet reports that they have ended
	c.untilBound("chat", 2)
	c.notBound("plain", "rival-0")
	c.checkEvicted("train-0", "train-1")
	c.stillSchedulesAfter("chat", "plain", "rival")
}

// stillSchedulesAfter deletes what is left before the usual check.
func (c *cluster) stillSchedulesAfter(names ...string) {
	c.t.Helper()
	now := int64(0)
	c.must(cp.Client().CoreV1().Pods(c.namespace).DeleteCollection(c.ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}), "deleting "+strings.Join(names, ", "))
	c.stillSchedules()
}

// PodDisruptionBudgets decide before anything else.
func TestGangsRespectPodDisruptionBudgets(t *testing.T) {
	c := newCluster(t, 2)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	none := intstr.FromInt32(0)
	_, err := cp.Client().PolicyV1().PodDisruptionBudgets(c.namespace).Create(c.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "guarded"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "yes"}}},
	}, metav1.CreateOptions{})
	c.must(err, "creating the PodDisruptionBudget")
	c.startQuick()
	guarded := func(w *wrappers.PodWrapper) { w.Label("guarded", "yes") }
	c.gangOf("a", low, 1, 1, 8, guarded) // comes first by name, and has run longer
	c.untilSatisfied("a")
	c.gangOf("b", low, 1, 1, 8)
	c.untilSatisfied("b")
	c.gangOf("chat", high, 1, 1, 8)
	c.untilBound("chat", 1)
	if c.boundNow("a") != 1 || c.boundNow("b") != 0 {
		t.Errorf("%d pods of the guarded gang and %d of the other are bound, want 1 and 0", c.boundNow("a"), c.boundNow("b"))
	}
	c.checkEvicted("b-0")
}
