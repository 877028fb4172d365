// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// oneGroup is chat as most services are: a scaling group of one replica, with a leader and 3 workers, and nothing else.
// 4 GPUs.
func oneGroup(name string) *v1alpha1.PodCliqueSet {
	return wrappers.MakePodCliqueSet(name, "ns").
		Clique("leader", 1, wrappers.MinAvailable(1), wrappers.GPUs(1)).
		Clique("worker", 3, wrappers.MinAvailable(3), wrappers.GPUs(1)).
		ScalingGroup("model", 1, 1, "leader", "worker").Obj()
}

// A set with one scaling group of one replica is updated while an older gang of the same size waits for its room: the
// group replaces its replica, and the set keeps its PodGroup and its place. Source: docs/decisions, W10.
func TestUpdateOfOneGroupBesideARival(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(1, 4), Check: both(invariants(), both(terminations(), updates()))})
	c.Kubelet.Linger = 10 * time.Second
	c.Timeline.Say("a set of one scaling group with one replica is created, which fills the cluster")
	c.Create(oneGroup("chat"))
	c.Advance(time.Minute)
	wantAvailable(c, 4)
	podGroup := All[*v2alpha2.PodGroup](c)[0].UID
	c.Timeline.Say("a rival of the same size is created, and waits")
	c.Create(oneGroup("rival"))
	c.Advance(time.Minute)
	c.Timeline.Say("the image of the set is changed")
	image(c, theSet(c, "chat"), "registry.example/main:2", "leader", "worker")
	c.Advance(3 * time.Minute)
	if set, group := theSet(c, "chat").Status.ReplicaAttempts, attemptsOf(theGroup(c, "chat-0-model")); len(set) != 0 || len(group) != 1 || group[0].Attempt != 1 {
		c.Fatalf("attempts of the set %v and of its group %v, want one of the group", set, group)
	}
	if All[*v2alpha2.PodGroup](c)[0].UID != podGroup {
		c.Fatalf("the PodGroup was created anew")
	}
	if n := theSet(c, "chat").Status; n.AvailableReplicas != 1 || n.UpdatedReplicas != 1 {
		c.Fatalf("the set has %d available and %d updated replicas", n.AvailableReplicas, n.UpdatedReplicas)
	}
	c.Timeline.Golden(t, "rollout-rival")
}

// A job is deleted and created again while the pods of the deleted one terminate, on a cluster with room and without.
// The new one begins with its own first pod. Source: docs/decisions, W10.
func TestJobIsCreatedAgain(t *testing.T) {
	for nodes, story := range map[int]string{1: "job-again", 2: ""} {
		c := New(t, Options{Nodes: Nodes(nodes, 4), Check: invariants()})
		c.Kubelet.Linger = 30 * time.Second
		limits := v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(1)), MaxRuntime: &metav1.Duration{Duration: 40 * time.Second}}
		c.Timeline.Say("a job with 40 s is created")
		c.Create(trainingSet(1, limits))
		c.Advance(20 * time.Second)
		wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
		if story != "" {
			c.Timeline.Say("another job waits for its room")
			other := trainingSet(1, v1alpha1.TrainingSpec{})
			other.Name = "other"
			c.Create(other)
			c.Advance(5 * time.Second)
		}
		c.Timeline.Say("it is deleted and created again; its pods need 30 s to end")
		c.Delete(theSet(c, "job"))
		c.Create(trainingSet(1, limits))
		c.Advance(20 * time.Second)
		wantJob(c, v1alpha1.PodCliqueSetPhasePending, 0, "")
		if s := theSet(c, "job").Status; s.StartTime != nil || s.RuntimeDeadline != nil || len(s.ReplicaAttempts) != 0 {
			c.Fatalf("the job has begun before it has a pod: %+v", s)
		}
		c.Advance(30 * time.Second)
		if story != "" {
			wantJob(c, v1alpha1.PodCliqueSetPhasePending, 0, "")
			c.Timeline.Say("the other job is deleted")
			c.Delete(theSet(c, "other"))
			c.Advance(40 * time.Second)
		}
		wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
		if s := theSet(c, "job").Status; s.StartTime == nil || len(s.ReplicaAttempts) != 0 {
			c.Fatalf("the job has not begun: %+v", s)
		}
		c.Timeline.Say("its pods succeed")
		finish(c, 0)
		c.Advance(10 * time.Second)
		wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 0, "")
		if story != "" {
			c.Timeline.Golden(t, story)
		}
	}
}

// A job is created again ten times within the grace period of its pods: the last one runs, and no pod is created for
// the others once they are gone. The pods may date from a version that did not write whose they are.
func TestJobIsCreatedAgainTenTimes(t *testing.T) {
	for seed := range int64(6) {
		c := New(t, Options{Nodes: Nodes(2, 4), Seed: seed, Interleaved: seed%2 == 1, Check: invariants()})
		c.Kubelet.Linger = 30 * time.Second
		limits := v1alpha1.TrainingSpec{MaxRuntime: &metav1.Duration{Duration: 40 * time.Second}}
		c.Create(trainingSet(1, limits))
		c.Advance(10 * time.Second)
		running(c, 3)
		if seed >= 3 {
			for _, pod := range All[*corev1.Pod](c) {
				Edit(c, pod.DeepCopy(), func(p *corev1.Pod) { delete(p.Annotations, v1alpha1.AnnotationPodCliqueSetUID) })
			}
		}
		for range 10 {
			c.Delete(theSet(c, "job"))
			c.Create(trainingSet(1, limits))
			c.Advance(2 * time.Second)
			wantJob(c, v1alpha1.PodCliqueSetPhasePending, 0, "")
		}
		c.Advance(30 * time.Second)
		wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
		running(c, 3)
		if s := theSet(c, "job").Status; s.StartTime.Sub(theSet(c, "job").CreationTimestamp.Time) < 10*time.Second || len(s.ReplicaAttempts) != 0 {
			c.Fatalf("the job started at %s, attempts %v", s.StartTime, s.ReplicaAttempts)
		}
		finish(c, 0)
		c.Advance(10 * time.Second)
		wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 0, "")
	}
}

// A service that is created again while the pods of the deleted one terminate raises no attempt, whatever its shape,
// and also if the deleted one had raised some. A replica of a set that is scaled in and out again raises at most one.
func TestServiceIsCreatedAgain(t *testing.T) {
	for name, s := range shapes {
		for seed := range int64(4) {
			c := New(t, Options{Nodes: Nodes(2, 4), Seed: seed, Interleaved: seed%2 == 1, Check: invariants()})
			c.Kubelet.Linger, c.Kubelet.LingerUpTo = 5*time.Second, 30*time.Second
			c.Create(s.named("chat"))
			c.Advance(time.Minute)
			wantAvailable(c, 4)
			if seed > 1 {
				deleteCliques(c, "chat-")
				c.Advance(time.Minute)
				wantAvailable(c, 4)
			}
			count := countRaises(c)
			c.Delete(theSet(c, "chat"))
			c.Create(s.named("chat"))
			c.Advance(2 * time.Minute)
			wantAvailable(c, 4)
			if len(count) != 0 || len(theSet(c, "chat").Status.ReplicaAttempts) != 0 {
				c.Fatalf("%s: attempts raised: %v", name, count)
			}

			scale := func(n int32) {
				Edit(c, theSet(c, "chat").DeepCopy(), func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = n })
				c.Advance(2 * time.Second)
			}
			scale(2)
			c.Advance(time.Minute)
			wantAvailable(c, 8)
			scale(1)
			scale(2)
			c.Advance(2 * time.Minute)
			wantAvailable(c, 8)
			if len(count) > 1 || count["set"] > 1 {
				c.Fatalf("%s: attempts raised: %v", name, count)
			}
		}
	}
}

func theGroup(c *Cluster, name string) *v1alpha1.PodCliqueScalingGroup {
	c.t.Helper()
	for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		if g.Name == name {
			return g
		}
	}
	c.Fatalf("there is no scaling group %s", name)
	return nil
}
