// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// deleteCliques deletes the PodCliques whose names begin with a prefix, as a user does.
func deleteCliques(c *Cluster, prefix string) {
	for _, clique := range All[*v1alpha1.PodClique](c) {
		if strings.HasPrefix(clique.Name, prefix) && clique.DeletionTimestamp == nil {
			c.Delete(clique)
		}
	}
}

// attempts returns the attempts of the set's replica 0, and of replica 1 of its scaling group.
func attempts(c *Cluster) (set, replica int32) {
	for _, s := range All[*v1alpha1.PodCliqueSet](c) {
		if s.Name != "chat" {
			continue
		}
		for _, a := range s.Status.ReplicaAttempts {
			set = a.Attempt
		}
	}
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		for _, a := range g.Status.ReplicaAttempts {
			if g.Name == "chat-0-model" && a.Index == 1 {
				replica = a.Attempt
			}
		}
	}
	return set, replica
}

// TestReplace replaces units of a set on a cluster that it fills.
func TestReplace(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Kubelet.Linger = 30 * time.Second
	c.Timeline.Say("a set is created that fills the cluster")
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	podGroup := All[*v2alpha2.PodGroup](c)[0].UID

	c.Timeline.Say("a user deletes the PodCliques of replica 1 of its scaling group")
	deleteCliques(c, "chat-0-model-1")
	c.Advance(2 * time.Minute)
	wantAvailable(c, 8)
	if set, replica := attempts(c); set != 0 || replica != 1 {
		t.Errorf("attempts of the set's and of the group's replica: %d and %d, want 0 and 1", set, replica)
	}
	if All[*v2alpha2.PodGroup](c)[0].UID != podGroup {
		t.Error("the PodGroup was made anew for a replica of the scaling group")
	}

	c.Timeline.Say("a user deletes all PodCliques")
	deleteCliques(c, "chat")
	c.Advance(2 * time.Minute)
	wantAvailable(c, 8)
	if set, replica := attempts(c); set != 1 || replica != 0 {
		t.Errorf("attempts of the set's and of the group's replica: %d and %d, want 1 and 0", set, replica)
	}
	if All[*v2alpha2.PodGroup](c)[0].UID == podGroup {
		t.Error("the PodGroup of the attempt before is still there")
	}

	c.Timeline.Say("a user deletes one PodClique")
	deleteCliques(c, "chat-0-router")
	c.Advance(2 * time.Minute)
	wantAvailable(c, 8)
	if set, _ := attempts(c); set != 1 {
		t.Errorf("attempt of the set's replica: %d, want 1: one of its PodCliques was replaced alone", set)
	}
	c.Timeline.Golden(t, "replace")
}

// TestReplaceWhilePodsOfAnotherUnitEnd: a scaling group also waits for pods of the standalone PodCliques, and is
// reconciled when the last of them is gone, long after its own pods.
func TestReplaceWhilePodsOfAnotherUnitEnd(t *testing.T) {
	const finalizer = "example.com/slow"
	c := New(t, Options{Nodes: Nodes(3, 4), Check: invariants()})
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	var slow []*corev1.Pod
	for _, pod := range All[*corev1.Pod](c) {
		if pod.Labels[v1alpha1.LabelPodClique] == "chat-0-router" {
			slow = append(slow, pod.DeepCopy())
			Edit(c, pod.DeepCopy(), func(p *corev1.Pod) { p.Finalizers = []string{finalizer} })
		}
	}
	deleteCliques(c, "chat-0-")
	c.Advance(time.Minute)
	if n := len(All[*corev1.Pod](c)); n != len(slow) {
		t.Errorf("%d pods while %d of the earlier attempt end, want no others", n, len(slow))
	}
	for _, pod := range slow {
		Edit(c, pod, func(p *corev1.Pod) { p.Finalizers = nil })
	}
	c.Advance(time.Minute)
	wantAvailable(c, 8)
}

// TestReplaceBesideARival: another gang takes the room while the old pods terminate. In the end the set is either
// admitted or holds no GPU.
func TestReplaceBesideARival(t *testing.T) {
	for name, prefix := range map[string]string{"set replica": "chat", "one PodClique": "chat-0-router", "group replica": "chat-0-model-0"} {
		for seed := range int64(10) {
			c := New(t, Options{Nodes: Nodes(2, 4), Seed: seed, Interleaved: seed%2 == 1, Check: invariants()})
			c.Kubelet.Linger = 30 * time.Second
			c.Create(podCliqueSet())
			c.Advance(time.Minute)
			wantAvailable(c, 8)
			rival := podCliqueSet()
			rival.Name = "rival"
			c.Create(rival)
			c.Advance(10 * time.Second)
			deleteCliques(c, prefix)
			c.Advance(3 * time.Minute)
			bound := map[string]int{}
			for _, pod := range All[*corev1.Pod](c) {
				if pod.Spec.NodeName != "" {
					bound[pod.Annotations[v2alpha2.PodGroupAnnotation]]++
				}
			}
			if whole := bound["chat-0"] == 8 && bound["rival-0"] == 0; !whole && prefix != "chat" {
				t.Errorf("%s, seed %d: bound pods %v, want those of chat", name, seed, bound)
			} else if other := bound["chat-0"] == 0 && bound["rival-0"] >= 5; !whole && !other {
				t.Errorf("%s, seed %d: bound pods %v, want one of the two whole and the other without any", name, seed, bound)
			}
		}
	}
}

// TestCrashAfterEachWriteOfAReplacement: a replacement has the same result as without a crash, after whichever write
// the controllers crash.
func TestCrashAfterEachWriteOfAReplacement(t *testing.T) {
	for _, prefix := range []string{"chat", "chat-0-model-1"} {
		for n := 0; ; n++ {
			c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
			c.Kubelet.Linger = 10 * time.Second
			c.Create(podCliqueSet())
			c.Advance(time.Minute)
			wantAvailable(c, 8)
			c.CrashAfterWrites(n)
			deleteCliques(c, prefix)
			c.Advance(2 * time.Minute)
			wantAvailable(c, 8)
			if set, replica := attempts(c); set+replica != 1 {
				t.Fatalf("%s, crash after %d writes: attempts %d and %d, want one raised by one", prefix, n, set, replica)
			}
			if c.Crashes == 0 {
				if n < 10 {
					t.Errorf("only %d writes were made", n)
				}
				break
			}
		}
	}
}
