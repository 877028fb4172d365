// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

func TestPodsOfAPodGroupThatDoesNotExist(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	for _, n := range numbered("early", 2) {
		c.create(c.pod(n, "late", 1))
	}
	c.untilTold("Pod", "early-0", "PodGroupNotFound", `"late"`, c.namespace)
	c.untilPodSays("WaitingForGang", numbered("early", 2)...)
	if n := c.countEvents("Pod", "early-1")["PodGroupNotFound"]; n != 0 {
		t.Errorf("%d events about the second pod, want one for both", n)
	}
	c.notBound(numbered("early", 2)...)
	c.stillSchedules()

	c.apply(c.group("late").MinMember(2))
	c.untilBound("late", 2)
	c.untilSatisfied("late")
}

// refusedBy gives a pod the condition of another scheduler that has found no node for it.
func (c *cluster) refusedBy(scheduler, name string) {
	c.t.Helper()
	pod := c.get(name)
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(),
		Reason: corev1.PodReasonUnschedulable, Message: "0 nodes are available to " + scheduler,
	})
	_, err := cp.Client().CoreV1().Pods(c.namespace).UpdateStatus(c.ctx, pod, metav1.UpdateOptions{})
	c.must(err, "writing the status of pod "+name)
}

func TestPodsThatNameNoLeaf(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("decode").Inner("", "decode", 0).SubGroupOf("decode", "leaders", 1).SubGroupOf("decode", "workers", 3))
	c.create(c.pod("leader", "decode", 1).SubGroup("leaders"))
	c.create(c.pod("worker", "decode", 1).SubGroup("workers"))
	c.create(c.pod("unknown", "decode", 1).SubGroup("wrokers"))
	c.create(c.pod("inner", "decode", 1).SubGroup("decode"))
	c.create(c.pod("none", "decode", 1))

	c.untilSays("decode", v2alpha2.ReasonInvalid, "workers lacks 2 of 3", "the leaves are leaders, workers", "pod unknown", `"wrokers"`,
		"pod inner", "pod none has no label "+v2alpha2.SubGroupLabel+": add it")
	c.untilTold("Pod", "unknown", "SubGroupNotFound", `"wrokers"`, `"decode"`)
	c.untilTold("Pod", "inner", "SubGroupNotFound", "sub-groups of its own")
	c.untilTold("Pod", "none", "SubGroupNotFound", "has no label")
	c.untilTold("PodGroup", "decode", "GangInvalid", "carries sub-group")
	c.untilPodSays("WaitingForGang", "leader", "worker", "unknown", "inner", "none")
	c.notBound("leader", "worker", "unknown", "inner", "none")
	c.stillSchedules()

	c.label("unknown", "workers")
	c.untilSays("decode", v2alpha2.ReasonInvalid, "workers lacks 1 of 3", "pod inner carries", "pod none has no label")
	c.label("none", "workers")
	c.untilPodBound("leader", "worker", "unknown", "none")
	c.untilStatus("decode", "is satisfied and names the pod that does not count", func(s v2Status) bool {
		return condition(s, v2alpha2.ConditionSatisfied).Status == "True" && containsAll(s.Summary, "pod inner carries", "the leaves are")
	})
	c.notBound("inner")
}

// To a PodGroup without sub-groups the label has no meaning: its pods count whatever it says.
func TestPodsThatNameALeafOfAPodGroupWithoutAny(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("flat").MinMember(2))
	c.create(c.pod("without", "flat", 1))
	c.untilSays("flat", v2alpha2.ReasonWaitingForPods, "needs 2 pods, 1 exist")
	c.create(c.pod("with", "flat", 1).SubGroup("workers"))
	c.untilBound("flat", 2)
	c.untilSatisfied("flat")
	if n := c.countEvents("Pod", "with")["SubGroupNotFound"]; n > 0 {
		t.Errorf("%d events say that the pod does not count", n)
	}
	c.stillSchedules()
}

func TestSamePodGroupNameInTwoNamespaces(t *testing.T) {
	c := newCluster(t, 2)
	c.startQuick()
	b := c.otherNamespace()
	for _, x := range []*cluster{c, b} {
		x.apply(x.group("same").MinMember(2))
		x.create(x.pod("same-0", "same", 1))
	}
	c.untilSays("same", v2alpha2.ReasonWaitingForPods, "needs 2 pods, 1 exist")
	b.untilSays("same", v2alpha2.ReasonWaitingForPods, "needs 2 pods, 1 exist")
	c.create(c.pod("same-1", "same", 1))
	c.untilBound("same", 2)
	c.untilSatisfied("same")
	b.notBound("same-0")
	b.untilSays("same", v2alpha2.ReasonWaitingForPods, "needs 2 pods, 1 exist")

	c.deleteGang("same")
	b.create(b.pod("same-1", "same", 1))
	b.untilBound("same", 2)
	b.untilSatisfied("same")
	c.stillSchedules()
}

// As with a StatefulSet: a pod is deleted and another of the same name is created immediately.
func TestPodsRecreatedUnderTheSameNameWhileTheyWait(t *testing.T) {
	c := newCluster(t, 2)
	c.startQuick()
	o := c.observe()
	o.expect("sts", 3)
	c.createGang("sts", 3, 8)
	c.untilSays("sts", v2alpha2.ReasonTooLarge, "2 of 3 pods can be placed")
	uids := map[types.UID]bool{}
	for round := range 4 {
		for i := range 3 { // the leader is among them
			uids[c.recreate(c.pod(fmt.Sprintf("sts-%d", i), "sts", 8)).UID] = true
		}
		if round == 2 {
			c.delete("sts-1")
			c.untilSays("sts", v2alpha2.ReasonWaitingForPods, "needs 3 pods, 2 exist")
			c.create(c.pod("sts-1", "sts", 8))
		}
	}
	c.untilSays("sts", v2alpha2.ReasonTooLarge, "2 of 3 pods can be placed")
	c.addNodes(1)
	c.untilBound("sts", 3)
	c.untilSatisfied("sts")
	for _, n := range numbered("sts", 3) {
		if !uids[c.get(n).UID] {
			t.Errorf("pod %s is not the one that was created last", n)
		}
	}
	partials, _ := o.stop()
	released(t, partials)
	c.stillSchedules()
}

func TestPodsRecreatedUnderTheSameNameWhileTheyAreBound(t *testing.T) {
	c := newCluster(t, 3)
	c.startQuick()
	c.createGang("sts", 3, 8)
	c.untilSatisfied("sts")
	before := map[string]types.UID{}
	for _, n := range numbered("sts", 3) {
		before[n] = c.get(n).UID
	}
	for range 3 {
		c.recreate(c.pod("sts-1", "sts", 8))
		c.untilBound("sts", 3)
	}
	s := c.untilSatisfied("sts")
	if admitted := condition(s, v2alpha2.ConditionAdmitted); admitted.LastTransitionTime.After(condition(s, v2alpha2.ConditionSatisfied).LastTransitionTime.Time) {
		t.Errorf("Admitted has changed since the gang was admitted: %v", s.Conditions)
	}
	for _, n := range []string{"sts-0", "sts-2"} {
		if c.get(n).UID != before[n] {
			t.Errorf("pod %s was touched", n)
		}
	}
	// All of them together: no bound pod is left, so it is a new gang, all or nothing.
	c.deleteNode(c.nodes[2])
	c.delete(numbered("sts", 3)...)
	for _, n := range numbered("sts", 3) {
		c.create(c.pod(n, "sts", 8))
	}
	c.untilSays("sts", v2alpha2.ReasonTooLarge, "2 of 3 pods can be placed")
	c.notBound(numbered("sts", 3)...)
	c.addNodes(1)
	c.untilBound("sts", 3)
	c.stillSchedules()
}

// A pod whose annotation is corrected moves from one gang to another; one whose annotation is removed is a plain pod.
func TestPodsThatChangeTheirGang(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	annotate := func(pod string, group any) {
		c.patchPod(pod, map[string]any{"metadata": map[string]any{"annotations": map[string]any{v2alpha2.PodGroupAnnotation: group}}})
	}
	c.apply(c.group("right").MinMember(2))
	c.create(c.pod("a", "right", 1))
	c.create(c.pod("b", "rihgt", 1))
	c.untilTold("Pod", "b", "PodGroupNotFound", `"rihgt"`)
	annotate("b", "right")
	c.untilBound("right", 2)
	c.untilSatisfied("right")

	c.create(c.pod("c", "never", 1))
	c.untilTold("Pod", "c", "PodGroupNotFound", `"never"`)
	annotate("c", nil)
	c.untilPodBound("c")

	// After the binding a change has no effect (docs/decisions, G12).
	annotate("b", "other")
	c.apply(c.group("other").MinMember(1))
	c.untilStatus("other", "waits for a pod", func(s v2Status) bool { return s.Reason == v2alpha2.ReasonWaitingForPods })
	c.untilSatisfied("right")
	c.stillSchedules()
	c.until("b was not changed", time.Second, func(pods []*corev1.Pod) bool {
		for _, p := range pods {
			if p.Name == "b" {
				return p.DeletionTimestamp == nil && p.Spec.NodeName != ""
			}
		}
		return false
	})
}
