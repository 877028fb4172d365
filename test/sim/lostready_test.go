// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/workload"
	"github.com/muster-project/muster/test/wrappers"
)

// A termination is carried out at its deadline although the pods of the lost node are Ready to the end: of the set
// replica, or of a replica of a scaling group of which enough others serve.
func TestTerminationWhosePodsStayReady(t *testing.T) {
	for _, clique := range []string{"chat-0-router", "chat-0-model-1-leader"} {
		for _, isDeleted := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, node is deleted: %v", clique, isDeleted), func(t *testing.T) {
				c := New(t, Options{Nodes: Nodes(8, 1), Check: both(invariants(), terminations())})
				set := watched(10*time.Second, 0)
				set.Spec.Template.UnreachableGrace = &metav1.Duration{}
				c.Create(set)
				c.Advance(time.Minute)
				wantAvailable(c, 8)
				loseReadyPods(c, podsOf(c, clique)[0], isDeleted)
				attempts := func() []v1alpha1.ReplicaAttempt {
					if clique == "chat-0-router" {
						return theSet(c, "chat").Status.ReplicaAttempts
					}
					return All[*v1alpha1.PodCliqueScalingGroup](c)[0].Status.ReplicaAttempts
				}
				c.Advance(10*time.Second - time.Millisecond)
				if got := attempts(); len(got) > 0 {
					c.Fatalf("terminated early: %+v", got)
				}
				c.Advance(time.Second)
				if got := attempts(); len(got) != 1 || got[0].Reason != v1alpha1.ReasonTermination {
					c.Fatalf("not terminated at the deadline: %+v", got)
				}
			})
		}
	}
}

// An update of a scaling group takes no second replica while a node does not answer whose pods stay Ready.
func TestUpdateOfAGroupWhosePodsStayReady(t *testing.T) {
	for _, isDeleted := range []bool{true, false} {
		t.Run(fmt.Sprintf("node is deleted: %v", isDeleted), func(t *testing.T) {
			least := 0
			c := New(t, Options{Nodes: Nodes(8, 1), Check: both(both(invariants(), updates()), func(c *Cluster) error {
				if n := servingReplicas(c); n < least {
					return fmt.Errorf("%d replicas of the group serve, want %d", n, least)
				}
				return nil
			})})
			set := wrappers.MakePodCliqueSet("chat", "ns").Clique("leader", 1, wrappers.GPUs(1)).Clique("worker", 1, wrappers.GPUs(1)).
				ScalingGroup("model", 3, 2, "leader", "worker").Obj()
			c.Create(set.DeepCopy())
			c.Advance(time.Minute)
			wantAvailable(c, 6)
			loseReadyPods(c, podsOf(c, "chat-0-model-2-leader")[0], isDeleted)
			c.Advance(time.Second)
			least = 2
			image(c, set.DeepCopy(), "registry.example/main:2", "leader", "worker")
			c.Advance(10 * time.Minute)
			wantUpdated(c)
			wantAvailable(c, 6)
		})
	}
}

// servingReplicas counts the replicas of the group chat-0-model whose two pods are ready on nodes that answer.
func servingReplicas(c *Cluster) int {
	pods, answers, serving := map[int]int{}, answering(c), 0
	cliques := map[string]*v1alpha1.PodClique{}
	for _, q := range All[*v1alpha1.PodClique](c) {
		cliques[q.Name] = q
	}
	for _, pod := range All[*corev1.Pod](c) {
		if q := cliques[pod.Labels[v1alpha1.LabelPodClique]]; q != nil && isUp(pod) && answers[pod.Spec.NodeName] {
			pods[workload.GroupReplicaIndex(q)]++
		}
	}
	for _, n := range pods {
		if n == 2 {
			serving++
		}
	}
	return serving
}
