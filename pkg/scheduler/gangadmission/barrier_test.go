// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/test/wrappers"
)

// While a member is prepared, which may take minutes, another scheduler binds pods to its node, or the node changes. If
// the plan has no room there any more, no member is bound, and the gang is planned anew; otherwise it is bound as
// planned (docs/decisions, G27).
func TestRoomIsCheckedWhenTheBarrierOpens(t *testing.T) {
	t.Parallel()
	foreign := func(i int) *wrappers.PodWrapper {
		return wrappers.MakePod(fmt.Sprintf("foreign-%d", i), "ml").SchedulerName("another")
	}
	allocatable := func(name corev1.ResourceName, quantity string) func(c *cluster, node string) {
		return func(c *cluster, node string) {
			c.updateNode(node, func(n *corev1.Node) {
				n.Status.Allocatable = wrappers.MakeNode("").GPUs(8).Capacity(name, quantity).Obj().Status.Allocatable
			})
			c.eventually("the change seen", func() bool {
				now := c.sched.Cache.Dump().Nodes[node].Node().Status.Allocatable[name]
				return now.String() == quantity
			})
		}
	}
	for name, tc := range map[string]struct {
		member  func(*wrappers.PodWrapper)
		happens func(c *cluster, node string)
		anew    bool
	}{
		"GPUs are taken":       {anew: true, happens: func(c *cluster, node string) { c.seesPod(foreign(0).GPUs(8).Node(node)) }},
		"enough GPUs are left": {happens: func(c *cluster, node string) { c.seesPod(foreign(0).GPUs(4).Node(node)) }},
		"CPUs are taken": {
			anew: true, member: func(w *wrappers.PodWrapper) { w.CPU("1") },
			happens: func(c *cluster, node string) { c.seesPod(foreign(0).CPU("128").Node(node)) },
		},
		"CPUs are taken that no member requests": {happens: func(c *cluster, node string) { c.seesPod(foreign(0).CPU("129").Node(node)) }},
		"places for pods are taken": {anew: true, happens: func(c *cluster, node string) {
			for i := range 20 {
				c.seesPod(foreign(i).Node(node))
			}
		}},
		"GPUs of the node fail":      {anew: true, happens: allocatable(wrappers.GPUResource, "0")},
		"memory of the node is less": {happens: allocatable(corev1.ResourceMemory, "1Mi")},
		"the node is deleted": {anew: true, happens: func(c *cluster, node string) {
			if err := c.client.CoreV1().Nodes().Delete(c.ctx, node, metav1.DeleteOptions{}); err != nil {
				c.t.Fatal(err)
			}
			c.eventually("the deletion seen", func() bool { n := c.sched.Cache.Dump().Nodes[node]; return n == nil || n.Node() == nil })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const size = 4
			var prepared, attempts atomic.Int32
			var c *cluster
			c = newCluster(t, prepares(func(_ context.Context, pod string) *fwk.Status {
				if prepared.Add(1); pod == "a-1" && attempts.Add(1) == 1 {
					tc.happens(c, c.nodeOf("a-1"))
				}
				return nil
			}))
			for i := range size + 2 {
				c.node(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(8).Capacity(corev1.ResourcePods, "20"))
			}
			c.groups.Put(wrappers.MakePodGroup("a", "ml").UID("a").Generation(1).MinMember(size).Obj())
			for _, w := range members("a", size) {
				if tc.member != nil {
					tc.member(w)
				}
				c.pod(w)
			}
			c.run().wholeOf("a", size)
			wanted := int32(size)
			if tc.anew {
				wanted = 2 * size
			}
			if n := prepared.Load(); n != wanted {
				t.Errorf("members were prepared %d times, want %d: each once for each plan", n, wanted)
			}
		})
	}
}

// seesPod creates a pod that another scheduler has bound, and waits until the scheduler knows it.
func (c *cluster) seesPod(w *wrappers.PodWrapper) {
	c.t.Helper()
	c.pod(w).eventually(w.Obj().Name+" seen", func() bool { return c.nodeOf(w.Obj().Name) != "" })
}

// nodeOf returns the node on which the scheduler's cache has a pod, "" if it has it on none.
func (c *cluster) nodeOf(pod string) string {
	for name, node := range c.sched.Cache.Dump().Nodes {
		for _, p := range node.GetPods() {
			if p.GetPod().Name == pod {
				return name
			}
		}
	}
	return ""
}
