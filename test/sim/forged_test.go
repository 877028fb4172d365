// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// forge writes attempts on the objects of a kind whose names begin with a prefix.
func forge[T client.Object](c *Cluster, prefix string, attempt int32) {
	for _, o := range All[T](c) {
		if !strings.HasPrefix(o.GetName(), prefix) {
			continue
		}
		Edit(c, o.DeepCopyObject().(T), func(o T) {
			annotations := o.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			for _, key := range []string{v1alpha1.AnnotationPodCliqueSetAttempt, v1alpha1.AnnotationPodCliqueScalingGroupAttempt} {
				annotations[key] = fmt.Sprint(attempt)
			}
			o.SetAnnotations(annotations)
		})
	}
}

// A user may write any attempt on a pod, a PodClique or a scaling group: the workload becomes available again, a breach
// is terminated as usual, and deleted PodCliques are created again each time.
func TestForgedAttempts(t *testing.T) {
	for kind, forge := range map[string]func(c *Cluster, attempt int32){
		"pod":                  func(c *Cluster, attempt int32) { forge[*corev1.Pod](c, "chat-0-router-0", attempt) },
		"pod of a group":       func(c *Cluster, attempt int32) { forge[*corev1.Pod](c, "chat-0-model-1-worker", attempt) },
		"PodClique":            func(c *Cluster, attempt int32) { forge[*v1alpha1.PodClique](c, "chat-0-router", attempt) },
		"PodClique of a group": func(c *Cluster, attempt int32) { forge[*v1alpha1.PodClique](c, "chat-0-model-1-leader", attempt) },
		"all PodCliques":       func(c *Cluster, attempt int32) { forge[*v1alpha1.PodClique](c, "chat-0-", attempt) },
		"scaling group":        func(c *Cluster, attempt int32) { forge[*v1alpha1.PodCliqueScalingGroup](c, "chat-0-model", attempt) },
		"PodGroup":             func(c *Cluster, attempt int32) { forge[*v2alpha2.PodGroup](c, "chat-0", attempt) },
	} {
		for _, attempt := range []int32{5, math.MaxInt32 - 1, math.MaxInt32} {
			t.Run(fmt.Sprintf("%s %d", kind, attempt), func(t *testing.T) {
				// An attempt may be skipped, which the check of terminations would count as two.
				c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
				c.Create(watched(time.Minute, 0))
				c.Advance(time.Minute)
				fail(c, "chat-0-router") // so that the present attempt is not 0
				c.Advance(3 * time.Minute)
				wantAvailable(c, 8)
				for range 2 {
					forge(c, attempt)
					c.Advance(3 * time.Minute)
					wantAvailable(c, 8)
					for _, broken := range []string{"chat-0-model-1-leader", "chat-0-router"} {
						pod := fail(c, broken)
						forge(c, attempt)
						c.Advance(4 * time.Minute)
						wantAvailable(c, 8)
						if uids(c)[broken+"-0"] == pod.UID {
							c.Fatalf("pod %s, which is not ready, was not replaced", pod.Name)
						}
					}
					forge(c, attempt)
					before := uids(c)
					deleteCliques(c, "chat-0-")
					c.Advance(3 * time.Minute)
					wantAvailable(c, 8)
					wantReplaced(c, before, "chat-0-")
				}
			})
		}
	}
}
