// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// Pods of different priority are one gang, and the highest decides when its turn is (docs/decisions, G10).
func TestPodsOfOneGangWithDifferentPriority(t *testing.T) {
	c := newCluster(t, 1)
	low, mid, high := c.priorityClass("low", 10), c.priorityClass("mid", 20), c.priorityClass("high", 30)
	c.apply(c.group("mid").MinMember(1))
	c.create(c.pod("mid", "mid", 8).PriorityClass(mid))
	c.apply(c.group("mixed").MinMember(3))
	c.create(c.pod("mixed-0", "mixed", 2).PriorityClass(low))
	c.create(c.pod("mixed-1", "mixed", 2).PriorityClass(low))
	c.create(c.pod("mixed-2", "mixed", 2).PriorityClass(high))
	c.startQuick()
	c.untilBound("mixed", 3)
	c.untilSatisfied("mixed")
	c.untilSays("mid", v2alpha2.ReasonInsufficientGPUs, "for 1 pod")
	c.notBound("mid")
	c.stillSchedules()
	c.deleteGang("mixed")
	c.untilBound("mid", 1)
}

// Inside a leaf the pods of higher priority come first (docs/decisions, G5).
func TestPodsOfHigherPriorityComeFirstInsideALeaf(t *testing.T) {
	c := newCluster(t, 1)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 30)
	c.apply(c.group("g").MinMember(2))
	for i := range 4 {
		c.create(c.pod(fmt.Sprintf("low-%d", i), "g", 4).PriorityClass(low))
	}
	for i := range 2 {
		c.create(c.pod(fmt.Sprintf("high-%d", i), "g", 4).PriorityClass(high))
	}
	c.startQuick()
	c.untilPodBound("high-0", "high-1")
	c.untilSatisfied("g")
	c.notBound(numbered("low", 4)...)
	c.stillSchedules()
}

// A PodGroup's own class can lower the priority of its gang, but not raise it above that of its pods (docs/decisions,
// G10), because quota and admission check only the classes of pods. Priority goes before the age of gangs.
func TestPriorityClassOfAPodGroup(t *testing.T) {
	c := newCluster(t, 1)
	low, high := c.priorityClass("low", 10), c.priorityClass("high", 30)
	gang := func(name, group, pod string) {
		c.apply(c.group(name).MinMember(2).Priority(group))
		for i := range 2 {
			c.create(c.pod(fmt.Sprintf("%s-%d", name, i), name, 4).PriorityClass(pod))
		}
	}
	gang("old", "", low)
	gang("humble", low, high)  // although its pods have no priority
	gang("greedy", high, "")   // nor does its PodGroup
	gang("urgent", high, high) // both do
	c.startQuick()
	c.untilBound("urgent", 2)
	c.untilSatisfied("urgent")
	c.untilSays("old", v2alpha2.ReasonInsufficientGPUs)
	c.untilSays("humble", v2alpha2.ReasonInsufficientGPUs)
	c.untilSays("greedy", v2alpha2.ReasonInsufficientGPUs)
	c.notBound("old-0", "old-1", "humble-0", "humble-1", "greedy-0", "greedy-1")
	c.stillSchedules()
}

// A class that does not exist is no reason to wait: the gang has the priority of its pods.
func TestPriorityClassOfAPodGroupThatDoesNotExist(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("g").MinMember(2).Priority("no-such-class"))
	for _, n := range numbered("g", 2) {
		c.create(c.pod(n, "g", 1))
	}
	c.untilBound("g", 2)
	c.untilSatisfied("g")
	c.stillSchedules()
}

func TestPodsOfOneGangWithDifferentSchedulers(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("g").MinMember(3))
	c.create(c.pod("ours-0", "g", 1))
	c.create(c.pod("ours-1", "g", 1))
	c.create(c.pod("theirs", "g", 1).SchedulerName("somebody-else"))
	c.untilSays("g", v2alpha2.ReasonOtherScheduler, "2 of 3 needed pods can be placed", "somebody-else", "muster-scheduler")
	c.untilTold("PodGroup", "g", "GangBlocked", "OtherScheduler: ", "somebody-else")
	c.untilPodSays("WaitingForGang", "ours-0", "ours-1")
	c.notBound("ours-0", "ours-1")
	c.stillSchedules()

	c.bind("theirs", c.nodes[0]) // once bound it counts
	c.untilBound("g", 3)
	if s := c.untilSatisfied("g"); !containsAll(s.Summary, "1 pod bound one by one by scheduler somebody-else", "muster-scheduler") {
		t.Errorf("the summary does not say who bound the pods: %s", s.Summary)
	}
	if s := scheduled(c.get("theirs")); s.Reason == "WaitingForGang" {
		t.Errorf("a pod of another scheduler got %v", s)
	}
}

func TestPodsWithSchedulingGates(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("g").MinMember(2))
	c.create(c.pod("free", "g", 1))
	c.create(c.pod("gated", "g", 1).SchedulingGate("example.com/quota"))
	c.untilSays("g", v2alpha2.ReasonGated, "1 of 2 needed pods can be placed", "1 pod", "gates", "example.com/quota")
	c.untilTold("PodGroup", "g", "GangIncomplete", "Gated")
	c.untilPodSays("WaitingForGang", "free")
	c.untilPodSays("SchedulingGated", "gated")
	c.stillSchedules()
	c.notBound("free", "gated")
	for _, n := range []string{"free", "gated"} {
		if s := scheduled(c.get(n)); s.Reason == corev1.PodReasonUnschedulable {
			t.Errorf("pod %s of a gated gang has %v: an autoscaler would add nodes without need", n, s)
		}
	}
	c.patchPod("gated", map[string]any{"spec": map[string]any{"schedulingGates": []any{}}})
	c.untilBound("g", 2)
	c.untilSatisfied("g")
}

// Single pods above the minimum are scheduled after it, and one that does not fit does not block the next.
func TestMorePodsThanTheTreeNeeds(t *testing.T) {
	c := newCluster(t, 1) // 8 GPUs
	c.apply(c.group("g").MinMember(2))
	for _, n := range numbered("g", 2) {
		c.create(c.pod(n, "g", 2))
	}
	c.create(c.pod("too-large", "g", 64))
	for _, n := range numbered("more", 3) {
		c.create(c.pod(n, "g", 2))
	}
	c.startQuick()
	c.untilBound("g", 4)
	s := c.untilStatus("g", "tells of the surplus that waits", func(s v2Status) bool {
		return condition(s, v2alpha2.ConditionSatisfied).Status == metav1.ConditionTrue && containsAll(s.Summary, "2 pods above the minimum", "more wait")
	})
	t.Log(s.Summary)
	c.notBound("too-large")
	c.stillSchedules()
	c.addNodes(1)
	c.untilBound("g", 5)
}

// Surplus does not delay a minimum of the same priority, whichever is older.
func TestSurplusAfterMinimums(t *testing.T) {
	c := newCluster(t, 1) // 8 GPUs
	c.apply(c.group("first").MinMember(1))
	for _, n := range numbered("first", 8) {
		c.create(c.pod(n, "first", 1))
	}
	c.createGang("second", 7, 1)
	c.startQuick()
	c.untilBound("second", 7)
	c.untilSatisfied("first")
	c.untilBound("first", 1)
	c.stillSchedules()
}

// Three of four replicas of 8 pods, the single-level example of the proposal, with one more replica: the third waits
// for a node label that no node has, the others are scheduled as units.
func TestSurplusSubGroupsComeAsUnits(t *testing.T) {
	c := newCluster(t, 3)
	c.startQuick()
	replicas := []string{"prefill-0", "prefill-1", "prefill-2", "prefill-3", "prefill-4"}
	pg := c.group("inference").MinSubGroup(3)
	for _, r := range replicas {
		pg.SubGroup(r, 8)
	}
	c.apply(pg)
	for _, r := range replicas {
		for i := range 8 {
			w := c.pod(fmt.Sprintf("%s-%d", r, i), "inference", 1).SubGroup(r)
			if r == "prefill-2" {
				w.NodeSelector("no-node", "has-this")
			}
			c.create(w)
		}
	}
	c.untilBound("inference", 24)
	s := c.untilSatisfied("inference")
	t.Log(s.Summary)
	c.notBound(numbered("prefill-2", 8)...)

	byReplica := func(pods []*corev1.Pod) map[string]int {
		out := map[string]int{}
		for _, p := range pods {
			if p.Spec.NodeName != "" {
				out[p.Labels[v2alpha2.SubGroupLabel]]++
			}
		}
		return out
	}
	// Half a node is room for single pods, and for no unit.
	half, err := cp.CreateNodes(c.ctx, nodeOptions(c, 4))
	c.must(err, "creating a node with 4 GPUs")
	c.nodes = append(c.nodes, half...)
	c.stillSchedules()
	if n := c.boundNow("inference"); n != 24 {
		t.Errorf("%d pods are bound: surplus came in part", n)
	}
	c.addNodes(1)
	c.until("the fourth replica is bound", 30*time.Second, func(pods []*corev1.Pod) bool {
		n := byReplica(pods)
		return n["prefill-0"] == 8 && n["prefill-1"] == 8 && n["prefill-3"] == 8 && n["prefill-4"] == 8
	})
	s = c.untilStatus("inference", "counts the fourth replica", func(s v2Status) bool {
		return strings.Contains(s.Summary, "8 pods above the minimum")
	})
	for _, g := range s.SubGroups {
		if want := g.Name != "prefill-2"; g.Satisfied != want || g.Admitted != want {
			t.Errorf("sub-group %s: satisfied %v, admitted %v, want %v", g.Name, g.Satisfied, g.Admitted, want)
		}
	}
	c.notBound(numbered("prefill-2", 8)...)
}

// The document's two-level example: 10 pods or none.
func TestTwoLevelExampleNeedsAllTenPods(t *testing.T) {
	c := newCluster(t, 2)
	c.startQuick()
	o := c.observe()
	o.expect("training-job", 10)
	c.apply(c.group("training-job").MinSubGroup(2).
		Inner("", "decode", 2).SubGroupOf("decode", "decode-leaders", 1).SubGroupOf("decode", "decode-workers", 4).
		Inner("", "prefill", 2).SubGroupOf("prefill", "prefill-leaders", 1).SubGroupOf("prefill", "prefill-workers", 4))
	c.create(c.pod("decode-leader", "training-job", 1).SubGroup("decode-leaders"))
	for _, role := range []string{"decode", "prefill"} {
		for i := range 4 {
			c.create(c.pod(fmt.Sprintf("%s-worker-%d", role, i), "training-job", 1).SubGroup(role + "-workers"))
		}
	}
	s := c.untilSays("training-job", v2alpha2.ReasonWaitingForPods, "needs 10 pods, 9 exist", "prefill-leaders lacks 1 of 1")
	if s.Scheduled != "0/10" {
		t.Errorf("scheduled is %s, want 0/10", s.Scheduled)
	}
	c.stillSchedules()
	c.create(c.pod("prefill-leader", "training-job", 1).SubGroup("prefill-leaders"))
	c.untilBound("training-job", 10)
	if s := c.untilSatisfied("training-job"); s.Scheduled != "10/10" {
		t.Errorf("scheduled is %s, want 10/10", s.Scheduled)
	}
	partials, _ := o.stop()
	released(t, partials)
}
