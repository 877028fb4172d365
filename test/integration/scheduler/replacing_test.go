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
	"github.com/muster-project/muster/test/wrappers"
)

// A pod of a gang is replaced on a full cluster, as in an update, while other pods wait. Its room is kept for its
// replacement, except from pods of a higher priority, and for a limited time.
func TestReplacementOnAFullCluster(t *testing.T) {
	for _, tc := range []struct {
		name    string
		rival   int32         // priority of the rivals; the gang has 10
		timeout time.Duration // of kept room
		unsaid  bool          // the PodGroup does not have the annotation
		graced  bool          // the pod terminates for a while
		lost    bool          // another gang takes the room
	}{
		{name: "the replacement gets the room", rival: 10, timeout: 10 * time.Minute},
		{name: "the replacement gets the room of a pod that terminated for a while", rival: 10, timeout: 10 * time.Minute, graced: true},
		{name: "a lower priority does not get it either", rival: 5, timeout: 10 * time.Minute},
		{name: "a higher priority gets it", rival: 20, timeout: 10 * time.Minute, lost: true},
		{name: "the rival gets it when the time is over", rival: 10, timeout: 5 * time.Second, lost: true},
		{name: "the rival gets it where nothing is said", rival: 10, timeout: 10 * time.Minute, unsaid: true, lost: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, 2) // 16 GPUs
			mine, theirs := c.priorityClass("mine", 10), c.neverPreempting("theirs", tc.rival)
			c.startQuick(func(config map[string]any) {
				for _, p := range profiles(config) {
					gangArgs(p)["replacementTimeout"] = tc.timeout.String()
				}
			})
			c.apply(c.group("chat").SubGroup("router", 1).SubGroup("decode", 1))
			member := func(name, leaf string) *wrappers.PodWrapper {
				return c.pod(name, "chat", 8).SubGroup(leaf).PriorityClass(mine)
			}
			old := member("decode-a", "decode")
			c.create(member("router", "router"))
			if tc.graced {
				c.createHeld(old)
				t.Cleanup(func() { c.letGo("decode-a") })
			} else {
				c.create(old)
			}
			c.untilSatisfied("chat")
			if !tc.unsaid {
				c.annotate("chat", v2alpha2.ReplacingAnnotation, "true")
			}

			c.apply(c.group("rival").MinMember(1))
			c.create(c.pod("rival", "rival", 8).PriorityClass(theirs))
			c.untilSays("rival", v2alpha2.ReasonInsufficientGPUs)
			plain := func(name string) *wrappers.PodWrapper { return c.pod(name, "", 8).PriorityClass(theirs) }
			if tc.rival <= 10 { // otherwise it preempts the remaining pods of the gang
				c.create(plain("plain"))
				c.untilPodSays(corev1.PodReasonUnschedulable, "plain")
			}

			began := time.Now()
			c.delete("decode-a")
			if tc.graced {
				c.untilStatus("chat", "misses the pod", func(s v2Status) bool {
					return condition(s, v2alpha2.ConditionSatisfied).Status == metav1.ConditionFalse
				})
				c.letGo("decode-a")
			}
			if tc.lost {
				c.until("a rival has the room", 30*time.Second, func(pods []*corev1.Pod) bool {
					n := 0
					for _, p := range pods {
						if (p.Name == "rival" || p.Name == "plain") && p.Spec.NodeName != "" {
							n++
						}
					}
					return n == 1
				})
				if took := time.Since(began); tc.rival <= 10 && !tc.unsaid && took < tc.timeout {
					t.Errorf("a rival had the room after %s, want it kept for %s", took, tc.timeout)
				}
				return
			}
			c.create(plain("late")) // it is created while the room is kept
			c.apply(c.group("incomplete").MinMember(2))
			c.create(c.pod("incomplete", "incomplete", 1)) // its event reports that after a second
			c.untilPodSays("WaitingForGang", "incomplete")
			c.untilPodSays(corev1.PodReasonUnschedulable, "late")
			c.notBound("rival", "plain", "late")
			c.create(member("decode-b", "decode"))
			c.untilPodBound("decode-b")
			c.untilSatisfied("chat")
			c.notBound("rival", "plain", "late")
		})
	}
}

// annotate sets an annotation of a PodGroup.
func (c *cluster) annotate(group, key, value string) {
	c.t.Helper()
	patch := []byte(`{"metadata":{"annotations":{"` + key + `":"` + value + `"}}}`)
	_, err := c.dynamic.Resource(podGroups).Namespace(c.namespace).Patch(c.ctx, group, types.MergePatchType, patch, metav1.PatchOptions{})
	c.must(err, "annotating PodGroup "+group)
}

// createHeld creates a pod with a finalizer, which terminates until letGo.
func (c *cluster) createHeld(w *wrappers.PodWrapper) {
	c.t.Helper()
	pod := w.Obj()
	pod.Finalizers = []string{"example.com/grace"}
	pod.ResourceVersion, pod.CreationTimestamp = "", metav1.Time{}
	_, err := cp.Client().CoreV1().Pods(c.namespace).Create(c.ctx, pod, metav1.CreateOptions{})
	c.must(err, "creating pod "+pod.Name)
}

// A tenant cannot prolong the time for which room is kept: neither with pods that are not bound, nor by setting the
// annotation again.
func TestTenantDoesNotProlongTheRoomOfItsPods(t *testing.T) {
	c := newCluster(t, 2) // 16 GPUs
	const timeout = 4 * time.Second
	c.startQuick(func(config map[string]any) {
		for _, p := range profiles(config) {
			gangArgs(p)["replacementTimeout"] = timeout.String()
		}
	})
	c.apply(c.group("greedy").SubGroup("a", 1).SubGroup("b", 1))
	c.create(c.pod("a", "greedy", 8).SubGroup("a"))
	c.create(c.pod("b", "greedy", 8).SubGroup("b"))
	c.untilSatisfied("greedy")
	c.annotate("greedy", v2alpha2.ReplacingAnnotation, "true")
	c.apply(c.group("rival").MinMember(1))
	c.create(c.pod("rival", "rival", 8))
	c.untilSays("rival", v2alpha2.ReasonInsufficientGPUs)

	began := time.Now()
	c.delete("b")
	for i := 0; time.Since(began) < timeout; i++ {
		name := fmt.Sprintf("never-%d", i)
		c.create(c.pod(name, "greedy", 8).SubGroup("b").NodeSelector("no", "node"))
		c.annotate("greedy", v2alpha2.ReplacingAnnotation, name)
		c.delete(name)
	}
	c.untilPodBound("rival")
	if took := time.Since(began); took < timeout || took > timeout+15*time.Second {
		t.Errorf("the rival had the room after %s, want it kept for %s", took, timeout)
	}
}
