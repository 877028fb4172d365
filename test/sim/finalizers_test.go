// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// TestFinalizersOfOthers: all pods of a replica that is terminated are asked to end, although a finalizer of a user
// keeps one object of the replica. Its replacement waits until that object is gone.
func TestFinalizersOfOthers(t *testing.T) {
	keep := func(o client.Object) { o.SetFinalizers(append(o.GetFinalizers(), foreignFinalizer)) }
	free := func(o client.Object) { o.SetFinalizers(nil) }
	for name, edit := range map[string]func(c *Cluster, edit func(client.Object)){
		"of a pod that is ready": func(c *Cluster, edit func(client.Object)) {
			Edit(c, podsOf(c, "chat-0-model-0-worker")[0].DeepCopy(), func(o *corev1.Pod) { edit(o) })
		},
		"of a PodClique": func(c *Cluster, edit func(client.Object)) {
			Edit(c, &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chat-0-model-0-worker"}}, func(o *v1alpha1.PodClique) { edit(o) })
		},
		"of the PodClique that failed": func(c *Cluster, edit func(client.Object)) {
			Edit(c, &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chat-0-router"}}, func(o *v1alpha1.PodClique) { edit(o) })
		},
		"of the PodGroup": func(c *Cluster, edit func(client.Object)) {
			Edit(c, &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chat-0"}}, func(o *v2alpha2.PodGroup) { edit(o) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(3, 4), Check: both(invariants(), terminations())})
			set := podCliqueSet()
			set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Minute}
			c.Create(set)
			c.Advance(time.Minute)
			edit(c, keep)
			before := uids(c)
			fail(c, "chat-0-router")
			c.Advance(2 * time.Minute)
			if of, _ := attempts(c); of != 1 {
				c.Fatalf("the replica was terminated %d times", of)
			}
			for _, pod := range All[*corev1.Pod](c) {
				if pod.DeletionTimestamp == nil && before[pod.Spec.Hostname] == pod.UID {
					c.Fatalf("pod %s of the terminated replica is not being deleted", pod.Name)
				}
				if before[pod.Spec.Hostname] != pod.UID {
					c.Fatalf("pod %s is created before the terminated replica is gone", pod.Name)
				}
			}
			edit(c, free)
			c.Advance(time.Minute)
			wantAvailable(c, 8)
		})
	}
}

// TestFinalizerOfADeletedScalingGroup: the pods of a replica that is scaled in end although a finalizer keeps its
// scaling group, but stay if it is deleted with --cascade=orphan.
func TestFinalizerOfADeletedScalingGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		policy metav1.DeletionPropagation
		want   int
	}{"in the background": {metav1.DeletePropagationBackground, 2}, "with --cascade=orphan": {metav1.DeletePropagationOrphan, 8}} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(3, 4)})
			c.Create(podCliqueSet())
			c.Advance(time.Minute)
			set := theSet(c, "chat")
			Edit(c, scalingGroup(), func(o *v1alpha1.PodCliqueScalingGroup) { o.Finalizers = []string{foreignFinalizer} })
			c.Delete(set, client.PropagationPolicy(metav1.DeletePropagationOrphan))
			c.Advance(10 * time.Second)
			c.Delete(scalingGroup(), client.PropagationPolicy(tc.policy))
			c.Advance(time.Minute)
			left := 0
			for _, pod := range All[*corev1.Pod](c) {
				if pod.DeletionTimestamp == nil && strings.HasPrefix(pod.Name, "chat-0-") {
					left++
				}
			}
			if left != tc.want {
				c.Fatalf("%d pods are left, want %d", left, tc.want)
			}
		})
	}
}
