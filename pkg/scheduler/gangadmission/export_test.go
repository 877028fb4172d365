// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
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
		case *v2alpha2.PodGroup:
			c.groups.Put(object.DeepCopy())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	nodes, bound := 0, 0
	for _, object := range objects {
		switch object := object.(type) {
		case *corev1.Node:
			nodes++
		case *corev1.Pod:
			if object.Spec.NodeName != "" {
				bound++
			}
		}
	}
	c.eventually("all nodes and pods seen", func() bool {
		pods, err := c.sched.Cache.PodCount()
		return err == nil && pods == bound && c.sched.Cache.NodeCount() == nodes
	})
	c.run()
	return &RunningScheduler{c}
}

// Refusal waits until a gang is refused, and returns why.
func (r *RunningScheduler) Refusal(gang string) podgroup.Refusal {
	r.c.t.Helper()
	r.c.refused(gang)
	facts, _ := r.c.gangs.registry.Facts(key(gang))
	return facts.Refused
}

// WaitForStart waits until n pods of a gang have been bound.
func (r *RunningScheduler) WaitForStart(gang string, n int) {
	r.c.t.Helper()
	r.c.eventually("the gang "+gang+" starts", func() bool { return len(r.c.boundOf(gang+"-")) >= n })
}
