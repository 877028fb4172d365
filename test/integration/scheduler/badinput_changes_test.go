// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// A refused gang is tried again after any change that can help.
func TestRefusedGangWakesUp(t *testing.T) {
	for name, tc := range map[string]struct {
		node   func(*corev1.Node) // how the second node is at first
		plain  bool               // the second node is full of a plain pod
		helps  func(c *cluster)
		reason v2alpha2.Reason
	}{
		"a node is uncordoned": {
			node:   func(n *corev1.Node) { n.Spec.Unschedulable = true },
			helps:  func(c *cluster) { c.change(c.nodes[1], func(n *corev1.Node) { n.Spec.Unschedulable = false }) },
			reason: v2alpha2.ReasonNodesUnavailable,
		},
		"a taint is removed": {
			node: func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "example.com/reserved", Effect: corev1.TaintEffectNoSchedule}}
			},
			helps:  func(c *cluster) { c.change(c.nodes[1], func(n *corev1.Node) { n.Spec.Taints = nil }) },
			reason: v2alpha2.ReasonNodesUnavailable,
		},
		"GPUs appear on a node": {
			node: func(n *corev1.Node) {
				n.Status.Capacity[controlplane.GPUResource] = resource.MustParse("4")
				n.Status.Allocatable = n.Status.Capacity.DeepCopy()
			},
			helps: func(c *cluster) {
				c.changeStatus(c.nodes[1], func(n *corev1.Node) {
					n.Status.Capacity[controlplane.GPUResource] = resource.MustParse("8")
					n.Status.Allocatable = n.Status.Capacity.DeepCopy()
				})
			},
			reason: v2alpha2.ReasonTooLarge,
		},
		"a plain pod is deleted": {
			plain:  true,
			helps:  func(c *cluster) { c.delete("occupant") },
			reason: v2alpha2.ReasonInsufficientGPUs,
		},
		"a plain pod completes": {
			plain:  true,
			helps:  func(c *cluster) { c.must(cp.ExitPod(c.ctx, c.namespace, "occupant", 0), "ending a pod") },
			reason: v2alpha2.ReasonInsufficientGPUs,
		},
		"a plain pod fails": {
			plain:  true,
			helps:  func(c *cluster) { c.must(cp.ExitPod(c.ctx, c.namespace, "occupant", 1), "failing a pod") },
			reason: v2alpha2.ReasonInsufficientGPUs,
		},
		"its PodGroup asks for less": {
			plain:  true,
			helps:  func(c *cluster) { c.apply(c.group("g").MinMember(1)) },
			reason: v2alpha2.ReasonInsufficientGPUs,
		},
		"one of its pods is made smaller": {
			plain: true,
			helps: func(c *cluster) {
				c.recreate(c.pod("g-0", "g", 4))
				c.recreate(c.pod("g-1", "g", 4))
			},
			reason: v2alpha2.ReasonInsufficientGPUs,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1)
			options := nodeOptions(c, 8)
			options.Change = tc.node
			added, err := cp.CreateNodes(c.ctx, options)
			c.must(err, "creating a node")
			c.nodes = append(c.nodes, added...)
			c.start()
			if tc.plain {
				c.create(c.pod("occupant", "", 8))
				c.untilPodBound("occupant")
			}
			c.createGang("g", 2, 8)
			c.untilSays("g", tc.reason, "1 of 2 pods can be placed")
			c.notBound("g-0", "g-1")
			start := time.Now()
			tc.helps(c)
			s := c.untilSatisfied("g")
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %s", took)
			} else {
				t.Logf("%s after %s", s.Summary, took.Round(10*time.Millisecond))
			}
		})
	}
}

// change edits a node.
func (c *cluster) change(name string, edit func(*corev1.Node)) {
	c.t.Helper()
	c.must(cp.ChangeNode(c.ctx, name, edit), "changing node "+name)
}

func (c *cluster) changeStatus(name string, edit func(*corev1.Node)) {
	c.t.Helper()
	c.must(cp.ChangeNodeStatus(c.ctx, name, edit), "changing the status of node "+name)
}

// A gang that wants to be near pods of another gang is woken when these are there.
func TestGangThatWantsToBeNearAnother(t *testing.T) {
	c := newCluster(t, 3)
	c.startQuick()
	c.apply(c.group("clients").MinMember(2))
	for _, n := range numbered("clients", 2) {
		c.create(c.pod(n, "clients", 2).TogetherWith(corev1.LabelHostname, "app", "server"))
	}
	c.untilStatus("clients", "is refused", func(s v2Status) bool {
		return s.Reason == v2alpha2.ReasonNoNodeMatches || s.Reason == v2alpha2.ReasonFragmented
	})
	c.notBound("clients-0", "clients-1")
	c.apply(c.group("servers").MinMember(1))
	c.create(c.pod("server", "servers", 1).Label("app", "server"))
	c.untilBound("servers", 1)
	c.untilBound("clients", 2)
	c.untilSatisfied("clients")
	for _, n := range numbered("clients", 2) {
		if on, want := c.get(n).Spec.NodeName, c.get("server").Spec.NodeName; on != want {
			t.Errorf("pod %s is on %s, the server on %s", n, on, want)
		}
	}
	c.stillSchedules()
}

// A waiting plain pod becomes a member by an edit; a member that is replaced by a plain pod of the same name is no
// longer a member.
func TestPodsThatBecomeMembersAndPlainPods(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.create(c.pod("occupant", "", 8))
	c.untilPodBound("occupant")
	c.create(c.pod("a", "", 4))
	c.untilPodSays(corev1.PodReasonUnschedulable, "a")
	c.apply(c.group("g").MinMember(2))
	c.patchPod("a", map[string]any{"metadata": map[string]any{"annotations": map[string]any{v2alpha2.PodGroupAnnotation: "g"}}})
	c.untilSays("g", v2alpha2.ReasonWaitingForPods, "needs 2 pods, 1 exist")
	c.delete("occupant")
	c.stillSchedules()
	c.notBound("a") // there is room for it, and not for it alone
	c.create(c.pod("b", "g", 4))
	c.untilBound("g", 2)
	c.untilSatisfied("g")

	c.createGang("late", 3, 8)
	for round := range 5 {
		c.recreate(c.pod("late-0", "", 0).CPU("1"))
		c.untilPodBound("late-0")
		c.recreate(c.pod("late-0", "late", 8))
		c.untilSays("late", v2alpha2.ReasonTooLarge)
		if n := c.boundNow("late"); n != 0 {
			t.Fatalf("round %d: %d pods are bound", round, n)
		}
	}
	c.addNodes(3)
	c.untilBound("late", 3)
	c.untilSatisfied("late")
}

// An empty annotation is none; a name that no PodGroup can have is one that does not exist.
func TestStrangePodGroupNames(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.create(c.pod("empty", "", 1).Annotation(v2alpha2.PodGroupAnnotation, ""))
	c.untilPodBound("empty")
	strange := []string{"Not A Name", "other/namespace", "../..", "%s%d%n"}
	for i, name := range strange {
		c.create(c.pod(fmt.Sprintf("strange-%d", i), "", 1).Annotation(v2alpha2.PodGroupAnnotation, name))
	}
	for i, name := range strange {
		c.untilTold("Pod", fmt.Sprintf("strange-%d", i), "PodGroupNotFound", fmt.Sprintf("%q", name))
	}
	c.notBound(numbered("strange", 4)...)
	c.stillSchedules()
}

// The old form (docs/decisions, G3): minMember together with sub-groups means all of them, and its value is ignored.
func TestOldFormOfAPodGroup(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("old").MinMember(100).SubGroup("a", 2).SubGroup("b", 1))
	for _, n := range numbered("a", 2) {
		c.create(c.pod(n, "old", 1).SubGroup("a"))
	}
	c.untilSays("old", v2alpha2.ReasonWaitingForPods, "needs 3 pods, 2 exist", "b lacks 1 of 1")
	c.create(c.pod("b-0", "old", 1).SubGroup("b"))
	c.untilBound("old", 3)
	if s := c.untilSatisfied("old"); s.Scheduled != "3/3" {
		t.Errorf("scheduled is %s, want 3/3", s.Scheduled)
	}
	c.stillSchedules()
}

// The label of a bound pod is changed: it counts for the leaf that the label names, and is not deleted.
func TestSubGroupOfABoundPodChanged(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("g").SubGroup("a", 1).SubGroup("b", 1))
	c.create(c.pod("a", "g", 1).SubGroup("a"))
	c.create(c.pod("b", "g", 1).SubGroup("b"))
	c.untilSatisfied("g")
	uid := c.get("b").UID
	c.label("b", "a")
	s := c.untilSays("g", v2alpha2.ReasonWaitingForPods, "b lacks 1 of 1")
	if condition(s, v2alpha2.ConditionAdmitted).Status != metav1.ConditionTrue {
		t.Errorf("Admitted went: %v", s.Conditions)
	}
	c.label("b", "nowhere")
	c.untilSays("g", v2alpha2.ReasonWaitingForPods, "b lacks 1 of 1")
	c.stillSchedules()
	c.label("b", "b")
	c.untilSatisfied("g")
	if p := c.get("b"); p.UID != uid || p.DeletionTimestamp != nil {
		t.Error("pod b was touched")
	}
}

// A bound member that terminates slowly no longer counts, but occupies its GPUs; its replacement waits for them, before
// other gangs.
func TestMemberThatEndsSlowly(t *testing.T) {
	c := newCluster(t, 2)
	c.startQuick()
	c.createGang("g", 2, 8)
	c.untilSatisfied("g")
	grace := int64(600)
	c.must(cp.Client().CoreV1().Pods(c.namespace).Delete(c.ctx, "g-1", metav1.DeleteOptions{GracePeriodSeconds: &grace}), "deleting a pod")
	c.untilSays("g", v2alpha2.ReasonWaitingForPods, "needs 2 pods, 1 exist")
	c.create(c.pod("g-2", "g", 8))
	s := c.untilSays("g", v2alpha2.ReasonInsufficientGPUs)
	if s.Phase != v2alpha2.PodGroupDegraded || condition(s, v2alpha2.ConditionAdmitted).Status != metav1.ConditionTrue {
		t.Errorf("phase %s, %v", s.Phase, s.Conditions)
	}
	c.createGang("rival", 1, 8)
	c.untilSays("rival", v2alpha2.ReasonInsufficientGPUs)
	c.stillSchedules()
	c.delete("g-1")
	c.untilPodBound("g-2")
	c.untilSatisfied("g")
	c.notBound("rival-0")
}
