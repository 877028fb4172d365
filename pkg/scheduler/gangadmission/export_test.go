// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/podgroup"
)

// RunningScheduler is the whole scheduler in memory, for the tests of gangadmission_test.
type RunningScheduler struct{ c *cluster }

// NewRunningScheduler starts a scheduler in a cluster with the objects: nodes, PriorityClasses, PodGroups, and pods of
// the namespace ml.
func NewRunningScheduler(t testing.TB, objects []runtime.Object) *RunningScheduler {
	t.Helper()
	c := newCluster(t)
	for _, object := range objects {
		var err error
		switch object := object.(type) {
		case *corev1.Node:
			_, err = c.client.CoreV1().Nodes().Create(c.ctx, object.DeepCopy(), metav1.CreateOptions{})
		case *schedulingv1.PriorityClass:
			_, err = c.client.SchedulingV1().PriorityClasses().Create(c.ctx, object.DeepCopy(), metav1.CreateOptions{})
		case *corev1.Pod:
			_, err = c.client.CoreV1().Pods(object.Namespace).Create(c.ctx, object.DeepCopy(), metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	nodes, bound, gated := 0, 0, 0
	for _, object := range objects {
		switch object := object.(type) {
		case *corev1.Node:
			nodes++
		case *corev1.Pod:
			if object.Spec.NodeName != "" {
				bound++
			} else if membership.Group(object) != "" {
				gated++
			}
		}
	}
	c.eventually("all nodes and pods seen", func() bool {
		pods, err := c.sched.Cache.PodCount()
		return err == nil && pods == bound && c.sched.Cache.NodeCount() == nodes && c.gangs.queue.Gated() == gated
	})
	for _, object := range objects { // last: the queue drops the leader of a gang if it does not know the pod yet
		if group, ok := object.(*v2alpha2.PodGroup); ok {
			c.groups.Put(group.DeepCopy())
		}
	}
	members := map[string]int{}
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			members[membership.Group(pod)]++
		}
	}
	for _, object := range objects {
		if group, ok := object.(*v2alpha2.PodGroup); ok { // or one of a lower priority is tried first
			c.eventually("gang "+group.Name+" seen", func() bool {
				facts, _ := c.gangs.registry.Facts(key(group.Name))
				return facts.Group != nil && facts.Pods == members[group.Name]
			})
		}
	}
	c.run()
	return &RunningScheduler{c}
}

// startLimit bounds the wait for a gang that is expected to start: a scheduler without CPU time takes long.
const startLimit = time.Minute

// Refusal waits until a gang is refused, and returns why. false: it has started.
func (r *RunningScheduler) Refusal(gang string) (podgroup.Refusal, bool) {
	r.c.t.Helper()
	var refused podgroup.Refusal
	r.c.eventually(gang+" refused or started", func() bool {
		facts, _ := r.c.gangs.registry.Facts(key(gang))
		refused = facts.Refused
		return refused.Reason != "" || len(r.c.boundOf(gang+"-")) > 0
	})
	return refused, refused.Reason != ""
}

// Starts reports whether n pods of a gang are bound in time.
func (r *RunningScheduler) Starts(gang string, n int) bool {
	for deadline := time.Now().Add(startLimit); len(r.c.boundOf(gang+"-")) < n; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
