// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// A gang's pods never preempt singly (docs/decisions, G15); plain pods preempt plain pods as in the stock scheduler.
func TestNoMemberPreemptsForItself(t *testing.T) {
	c := newCluster(t, 1)
	low, high, polite := c.priorityClass("low", 10), c.priorityClass("high", 1000), c.neverPreempting("polite", 1000)
	c.startQuick()
	c.create(c.pod("victim", "", 8).PriorityClass(low))
	c.untilPodBound("victim")

	c.apply(c.group("g").MinMember(2))
	for _, n := range numbered("g", 2) {
		c.create(c.pod(n, "g", 4).PriorityClass(polite))
	}
	c.untilSays("g", v2alpha2.ReasonInsufficientGPUs, "for 2 pods")
	c.untilPodSays(corev1.PodReasonUnschedulable, "g-0", "g-1")
	c.stillSchedules()
	if p := c.get("victim"); p.DeletionTimestamp != nil {
		t.Errorf("a gang's pod preempted a plain pod")
	}
	for _, n := range numbered("g", 2) {
		if p := c.get(n); p.Status.NominatedNodeName != "" || p.Spec.NodeName != "" {
			t.Errorf("pod %s is nominated to %q, bound to %q", n, p.Status.NominatedNodeName, p.Spec.NodeName)
		}
	}

	// The gang is deleted, and a plain pod uses the name that its pods must not use.
	c.deleteGang("g")
	c.create(c.pod("preemptor", "", 8).PriorityClass(high))
	c.until("the plain pod has preempted", 30*time.Second, func(pods []*corev1.Pod) bool {
		preemptor, victim := false, false
		for _, p := range pods {
			preemptor = preemptor || p.Name == "preemptor" && p.Spec.NodeName != ""
			victim = victim || p.Name == "victim"
		}
		return preemptor && !victim
	})
}

// Two profiles of one scheduler: gangs of both are admitted; the status of a gang with pods of both states what it
// needs.
func TestTwoProfiles(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick(func(config map[string]any) {
		all := config["profiles"].([]any)
		second := maps.Clone(all[0].(map[string]any))
		second["schedulerName"] = "muster-second"
		config["profiles"] = append(all, second)
	})
	for i, name := range []string{"muster-scheduler", "muster-second"} {
		g := fmt.Sprintf("g%d", i)
		c.apply(c.group(g).MinMember(2))
		for _, n := range numbered(g, 2) {
			c.create(c.pod(n, g, 1).SchedulerName(name))
		}
		c.untilBound(g, 2)
		c.untilSatisfied(g)
	}
	c.create(c.pod("plain", "", 0).CPU("1").SchedulerName("muster-second"))
	c.untilPodBound("plain")

	c.apply(c.group("mixed").MinMember(2))
	c.create(c.pod("mixed-0", "mixed", 1))
	c.create(c.pod("mixed-1", "mixed", 1).SchedulerName("muster-second"))
	c.untilSays("mixed", v2alpha2.ReasonOtherScheduler, "muster-second", "muster-scheduler")
	c.notBound("mixed-0", "mixed-1")
	c.recreate(c.pod("mixed-1", "mixed", 1))
	c.untilBound("mixed", 2)
	c.untilSatisfied("mixed")
	c.stillSchedules()
}

// PodScheduled of gated pods (docs/decisions, G13): Unschedulable for those that an autoscaler could help, and for no
// others.
func TestConditionsOfHeldPods(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("needs-capacity").MinMember(3))
	for _, n := range numbered("needs-capacity", 3) {
		c.create(c.pod(n, "needs-capacity", 4))
	}
	c.apply(c.group("needs-pods").MinMember(3))
	for _, n := range numbered("needs-pods", 2) {
		c.create(c.pod(n, "needs-pods", 4))
	}
	c.apply(c.group("needs-domain").MinMember(2).Spec(func(s *v2alpha2.PodGroupSpec) { // no node has the label
		s.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "topology.example.com/row"}
	}))
	for _, n := range numbered("needs-domain", 2) {
		c.create(c.pod(n, "needs-domain", 4))
	}
	c.apply(c.group("silent").MinMember(2).MarkUnschedulable(false))
	for _, n := range numbered("silent", 2) {
		c.create(c.pod(n, "silent", 8))
	}
	c.untilSays("needs-capacity", v2alpha2.ReasonTooLarge)
	c.untilPodSays(corev1.PodReasonUnschedulable, numbered("needs-capacity", 3)...)
	c.untilPodSays("WaitingForGang", numbered("needs-pods", 2)...)
	c.untilSays("needs-domain", v2alpha2.ReasonTopologyUnavailable, "label the nodes")
	c.untilPodSays("WaitingForGang", numbered("needs-domain", 2)...)
	c.stillSchedules()
	// Constant text that points at the PodGroup: an autoscaler and a person read the same of every pod.
	texts := map[string]bool{}
	for _, n := range numbered("needs-capacity", 3) {
		s := scheduled(c.get(n))
		texts[s.Message] = true
		if !containsAll(s.Message, "PodGroup needs-capacity") {
			t.Errorf("pod %s says %q", n, s.Message)
		}
	}
	if len(texts) > 2 { // the leader's is the scheduler's own
		t.Errorf("the pods say %v", texts)
	}
	c.notBound("silent-0", "silent-1") // its leader's condition is the scheduler's own
	if s := scheduled(c.get("silent-1")); s.Reason == corev1.PodReasonUnschedulable {
		t.Errorf("spec.markUnschedulable is false, and pod silent-1 has %v", s)
	}
	c.deleteGang("silent")

	// Capacity is added: PodScheduled becomes True for all.
	c.addNodes(2)
	c.untilBound("needs-capacity", 3)
	c.untilSatisfied("needs-capacity")
	for _, n := range numbered("needs-capacity", 3) {
		if s := scheduled(c.get(n)); s.Status != corev1.ConditionTrue {
			t.Errorf("bound pod %s has %v", n, s)
		}
	}
}

// A surplus unit requests a node like a minimum does; single pods above a minimum do not.
func TestConditionsOfSurplusPods(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("units").MinSubGroup(1).SubGroup("a", 2).SubGroup("b", 2))
	for _, leaf := range []string{"a", "b"} {
		for _, n := range numbered("unit-"+leaf, 2) {
			c.create(c.pod(n, "units", 4).SubGroup(leaf))
		}
	}
	c.untilBound("units", 2)
	c.untilSatisfied("units")
	var waiting []string
	for _, p := range c.podsOf("units") {
		if p.Spec.NodeName == "" {
			waiting = append(waiting, p.Name)
		}
	}
	c.untilPodSays(corev1.PodReasonUnschedulable, waiting...)

	c.apply(c.group("singles").MinMember(1))
	c.create(c.pod("singles-0", "singles", 0).CPU("100m"))
	c.untilBound("singles", 1)
	for _, n := range numbered("more", 2) {
		c.create(c.pod(n, "singles", 4))
	}
	c.untilPodSays("WaitingForGang", "more-1") // more-0 speaks for them: its condition is the scheduler's own
	c.stillSchedules()
}

// A gang that cannot be placed causes one event, not one per pod and attempt.
func TestRefusedGangIsQuiet(t *testing.T) {
	c := newCluster(t, 2)
	c.startQuick()
	c.createGang("g", 6, 4)
	c.untilSays("g", v2alpha2.ReasonTooLarge)
	for i := range 5 { // attempts
		c.createPlain(fmt.Sprintf("coming-%d", i))
		c.untilPodBound(fmt.Sprintf("coming-%d", i))
		c.delete(fmt.Sprintf("coming-%d", i))
	}
	c.untilPodSays(corev1.PodReasonUnschedulable, numbered("g", 6)...)
	c.stillSchedules()
	c.untilTold("PodGroup", "g", "GangBlocked", "TooLarge")
	if n := c.countEvents("PodGroup", "g")["GangBlocked"]; n != 1 {
		t.Errorf("%d events GangBlocked about the PodGroup, want 1", n)
	}
	var told []string
	for _, n := range numbered("g", 6) {
		if c.countEvents("Pod", n)["FailedScheduling"] > 0 {
			told = append(told, n)
		}
	}
	if len(told) > 1 {
		t.Errorf("events FailedScheduling about %v, want the stock one about the leader alone", told)
	}
}

// No node matches a member; a matching node is added, and the gang starts.
func TestGangThatNoNodeMatches(t *testing.T) {
	c := newCluster(t, 2)
	c.startQuick()
	c.apply(c.group("g").MinMember(2))
	c.create(c.pod("g-0", "g", 1))
	c.create(c.pod("g-1", "g", 1).NodeSelector("accelerator", "of-tomorrow"))
	c.untilSays("g", v2alpha2.ReasonNoNodeMatches, "1 of 2 pods can be placed", "2 nodes")
	c.untilTold("PodGroup", "g", "GangBlocked", "NoNodeMatches")
	c.notBound("g-0", "g-1")
	c.stillSchedules()
	options := nodeOptions(c, 8)
	options.Labels = map[string]string{"accelerator": "of-tomorrow"}
	added, err := cp.CreateNodes(c.ctx, options)
	c.must(err, "creating a node")
	c.nodes = append(c.nodes, added...)
	c.untilBound("g", 2)
	c.untilSatisfied("g")
}
