// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// A plain pod of higher priority preempts no part of a gang's minimum (docs/decisions, G15): it waits while the minimum
// is protected, and its event gives the reason; then the gang ends as a whole, on both of its nodes.
func TestPlainPodsPreemptNoPartOfAGang(t *testing.T) {
	c := newCluster(t, 2)
	high := c.priorityClass("high", 1000)
	c.startQuick()
	protect := func(p v2alpha2.Preemptibility) {
		c.apply(c.group("wide").MinMember(2).Spec(func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = p }))
	}
	protect(v2alpha2.SemiPreemptible)
	c.create(c.pod("wide-0", "wide", 8))
	c.create(c.pod("wide-1", "wide", 8))
	c.untilSatisfied("wide")

	c.create(c.pod("urgent", "", 8).PriorityClass(high))
	c.untilTold("Pod", "urgent", "FailedScheduling", "may not be preempted")
	protect(v2alpha2.NonPreemptible)
	c.create(c.pod("urgent-too", "", 8).PriorityClass(high))
	c.untilTold("Pod", "urgent-too", "FailedScheduling", "may not be preempted")
	if n := c.boundNow("wide"); n != 2 {
		t.Errorf("%d pods of the gang are left, want 2", n)
	}
	c.notBound("urgent", "urgent-too")
	c.delete("urgent", "urgent-too")

	protect(v2alpha2.Preemptible)
	c.create(c.pod("urgent-now", "", 8).PriorityClass(high))
	c.untilPodBound("urgent-now")
	c.until("nothing of the gang is left", 30*time.Second, func(pods []*corev1.Pod) bool { return bound(pods, "wide") == 0 })
	c.untilTold("PodGroup", "wide", "Preempted", fmt.Sprintf("by pod %s/urgent-now (priority 1000 over 0): all 2 pods", c.namespace))
	c.delete("urgent-now")
	c.stillSchedules()
}

// Of a gang whose minimum is protected, pods above it are preempted one by one, and no others, however many preemptors
// there are at the same time.
func TestPlainPodsPreemptSurplusOfAGang(t *testing.T) {
	c := newCluster(t, 4)
	high := c.priorityClass("high", 1000)
	c.startQuick()
	c.apply(c.group("wide").MinMember(2).Spec(func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = v2alpha2.SemiPreemptible }))
	for _, n := range numbered("wide", 4) {
		c.create(c.pod(n, "wide", 8))
	}
	c.untilBound("wide", 4)
	c.untilSatisfied("wide")

	urgent := numbered("urgent", 4)
	for _, n := range urgent {
		c.create(c.pod(n, "", 8).PriorityClass(high))
	}
	c.until("two of the urgent pods run", 30*time.Second, func(pods []*corev1.Pod) bool {
		return boundOf(pods, urgent) == 2
	})
	c.untilTold("PodGroup", "wide", "Preempted", "urgent-", "(priority 1000 over 0)", "above its minimum")
	c.untilStatus("wide", "is satisfied by its minimum", func(s v2Status) bool { return s.Phase == v2alpha2.PodGroupAdmitted && s.Scheduled == "2/2" })
	if n := c.boundNow("wide"); n != 2 {
		t.Errorf("%d pods of the gang are left, want 2", n)
	}
	if n := c.countEvents("PodGroup", "wide")["GangBelowMinimum"]; n != 0 {
		t.Error("the gang was below its minimum")
	}
	c.delete(urgent...)
	c.stillSchedules()
}

// A gang that is on one node is preempted as a whole, and its event names the preemptor.
func TestPlainPodsPreemptAWholeGang(t *testing.T) {
	c := newCluster(t, 1)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 1000)
	c.startQuick()
	c.apply(c.group("small").MinMember(3))
	for _, n := range numbered("small", 3) {
		c.create(c.pod(n, "small", 2).PriorityClass(low))
	}
	c.untilSatisfied("small")
	c.create(c.pod("urgent", "", 4).PriorityClass(high)) // 2 are free: one pod of the gang would do
	c.untilPodBound("urgent")
	c.until("nothing of the gang is left", 30*time.Second, func(pods []*corev1.Pod) bool { return bound(pods, "small") == 0 })
	c.untilTold("PodGroup", "small", "Preempted", fmt.Sprintf("by pod %s/urgent (priority 1000 over 10): all 3 pods", c.namespace))
	if n := c.countEvents("PodGroup", "small")["Preempted"]; n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	c.untilStatus("small", "is not admitted any more", func(s v2Status) bool {
		return condition(s, v2alpha2.ConditionAdmitted).Status == "False"
	})
	c.stillSchedules()
}

func boundOf(pods []*corev1.Pod, names []string) int {
	n := 0
	for _, p := range pods {
		if p.Spec.NodeName != "" && slices.Contains(names, p.Name) {
			n++
		}
	}
	return n
}
