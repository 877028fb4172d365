// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// A pod that is ready for a moment at the deadline, but no longer when its PodClique is reconciled, delays a
// termination and does not prevent it.
func TestReadinessFlapsAtTheDeadline(t *testing.T) {
	for _, clique := range []string{"chat-0-router", "chat-0-model-1-leader"} {
		c := newWatched(t, watched(time.Minute, 0), 0)
		c.options.Check = invariants() // no controller has observed the interruption of the breach
		before := uids(c)
		pod := fail(c, clique)
		c.Advance(58 * time.Second)
		c.HoldBack(&corev1.Pod{})
		c.Kubelet.PassReadiness(pod)
		c.Advance(5 * time.Second)
		wantReplaced(c, before)
		must(t, c.Kubelet.FailReadiness(pod))
		c.Deliver(&corev1.Pod{})
		c.Advance(10 * time.Minute)
		if set, replica := attempts(c); set+replica != 1 {
			c.Fatalf("%s: attempts of the set's and of the group's replica: %d and %d, want one raised by one", clique, set, replica)
		}
	}
}

// The PodGroup is deleted during a termination, and during a breach.
func TestPodGroupIsDeletedInATermination(t *testing.T) {
	for _, clique := range []string{"chat-0-router", "chat-0-model-1-leader"} {
		for after := 30 * time.Second; after < 2*time.Minute; after += 3 * time.Second {
			c := newWatched(t, watched(time.Minute, 0), 0)
			fail(c, clique)
			c.Advance(after)
			for _, pg := range All[*v2alpha2.PodGroup](c) {
				c.Delete(pg)
			}
			c.Advance(10 * time.Minute)
			wantAvailable(c, 8)
			if set, replica := attempts(c); set+replica != 1 {
				c.Fatalf("%s after %s: attempts %d and %d, want one raised by one", clique, after, set, replica)
			}
		}
	}
}

// All objects of a namespace are deleted together, as by the namespace controller.
func TestNamespaceIsDeleted(t *testing.T) {
	for seed := range int64(10) {
		c := New(t, Options{Nodes: Nodes(3, 4), Seed: seed, Interleaved: seed%2 == 1, Check: invariants()})
		c.Kubelet.Linger = 20 * time.Second
		c.Create(trainingSet(2, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(1))}))
		c.Advance(time.Minute)
		exit(c, "job-0-ring-0-worker", 0)
		if seed%2 == 0 {
			exit(c, "job-1-launcher", 1)
		}
		for range seed * 5 {
			c.Step()
		}
		c.API.Refuse = func(v Verb, o client.Object) error {
			if v == Create {
				return apierrors.NewForbidden(corev1.Resource("pods"), o.GetName(), errors.New("the namespace is being terminated"))
			}
			return nil
		}
		for _, o := range All[*corev1.Pod](c) {
			c.Delete(o)
		}
		for _, o := range All[*v1alpha1.PodClique](c) {
			c.Delete(o)
		}
		for _, o := range All[*v1alpha1.PodCliqueScalingGroup](c) {
			c.Delete(o)
		}
		for _, o := range All[*v2alpha2.PodGroup](c) {
			c.Delete(o)
		}
		c.Delete(theSet(c, "job"))
		c.Advance(2 * time.Minute)
		wantNothing(c)
	}
}

// Deleted pods report their exit, as from kubelets: it counts neither as a success nor as another failure, whoever
// deleted them.
func TestDeletedPodsReportAnEnd(t *testing.T) {
	for _, code := range []int32{0, 1, 143} {
		for seed := range int64(8) {
			c := New(t, Options{Nodes: Nodes(2, 4), Seed: seed, Interleaved: seed%2 == 1, Check: invariants()})
			c.Kubelet.Linger, c.Kubelet.StopCode = time.Duration(seed)*time.Second, ptr.To(code)
			c.Create(trainingSet(2, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(3))}))
			c.Advance(time.Minute)
			c.Delete(podsOf(c, "job-0-ring-0-worker")[0]) // a restart
			c.Advance(time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 1, "")
			running(c, 6)
			exit(c, "job-0-launcher", 1) // the workers are deleted for it
			c.Advance(time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 2, "")
			running(c, 6)
			exit(c, "job-1-launcher", 0)
			c.Advance(time.Minute)
			for _, clique := range All[*v1alpha1.PodClique](c) {
				if clique.Name == "job-1-ring-0-worker" {
					c.Delete(clique) // this PodClique is created again alone
				}
			}
			c.Advance(time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 2, "")
			running(c, 5)
			finish(c, 0)
			finish(c, 1)
			c.Advance(time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 2, "")
			c.Delete(theSet(c, "job"))
			c.Advance(time.Minute)
			wantNothing(c)

			w := newWatched(t, watched(time.Minute, 0), seed)
			w.Kubelet.StopCode = ptr.To(code)
			before := uids(w)
			fail(w, "chat-0-model-1-leader")
			w.Advance(3 * time.Minute)
			wantAvailable(w, 8)
			wantReplaced(w, before, "chat-0-model-1-")
			if set, replica := attempts(w); set != 0 || replica != 1 {
				w.Fatalf("attempts %d and %d, want 0 and 1", set, replica)
			}
		}
	}
}

// A lost node is restored at any time during a termination, with its pods still running.
func TestNodeComesBackInATermination(t *testing.T) {
	for away := 30 * time.Second; away < 9*time.Minute; away += 37 * time.Second {
		c := New(t, Options{Nodes: Nodes(4, 4), Seed: int64(away), Interleaved: true, Check: both(invariants(), terminations())})
		c.Kubelet.Linger, c.Kubelet.StopCode = 10*time.Second, ptr.To(int32(0))
		c.Create(watched(2*time.Minute, 0))
		c.Advance(time.Minute)
		wantAvailable(c, 8)
		node := podsOf(c, "chat-0-router")[0].Spec.NodeName
		must(t, c.Kubelet.LoseNode(node))
		c.Advance(away)
		must(t, c.Kubelet.RestoreNode(node))
		c.Advance(10 * time.Minute)
		wantAvailable(c, 8)
		if set, _ := attempts(c); set > 1 {
			c.Fatalf("away for %s: attempt %d", away, set)
		}
	}
}

// A scaling group is scaled while one of its replicas is in breach: a replica that stays in breach is terminated once,
// at its deadline, and new replicas are not terminated for it.
func TestScalingDuringABreach(t *testing.T) {
	for name, tc := range map[string]struct {
		scale []int32
		want  int32 // the attempt of replica 1 of the group
		pods  int
	}{
		"out":         {[]int32{3}, 1, 11},
		"in":          {[]int32{1}, 0, 5},
		"in and out":  {[]int32{1, 2}, 0, 8},
		"zero":        {[]int32{0}, 0, 2},
		"zero and up": {[]int32{0, 2}, 0, 8},
	} {
		for seed := range int64(4) {
			c := New(t, Options{Nodes: Nodes(4, 4), Seed: seed, Interleaved: seed%2 == 1, Check: both(invariants(), terminations())})
			c.Create(watched(2*time.Minute, 0))
			c.Advance(time.Minute)
			fail(c, "chat-0-model-1-leader")
			c.Advance(time.Minute)
			for _, n := range tc.scale {
				Edit(c, All[*v1alpha1.PodCliqueScalingGroup](c)[0].DeepCopy(), func(g *v1alpha1.PodCliqueScalingGroup) { g.Spec.Replicas = n })
				c.Advance(20 * time.Second)
			}
			c.Advance(10 * time.Minute)
			wantAvailable(c, tc.pods)
			if set, replica := attempts(c); set != 0 || replica != tc.want {
				c.Fatalf("%s: attempts of the set's and of the group's replica: %d and %d, want 0 and %d", name, set, replica, tc.want)
			}
		}
	}
}

// A failed pod is replaced alone when all pods that ran with it have succeeded: the replacement does not wait for
// these.
func TestLastPodOfAJobIsReplacedAlone(t *testing.T) {
	for seed := range int64(8) {
		c := New(t, Options{Nodes: Nodes(2, 4), Seed: seed, Interleaved: seed%2 == 1, Check: invariants()})
		set := trainingSet(1, v1alpha1.TrainingSpec{})
		set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: 5 * time.Minute}
		set.Spec.Template.Cliques[1].Spec.Replicas = 1
		c.Create(set)
		c.Advance(time.Minute)
		exit(c, "job-0-launcher", 0)
		c.Advance(time.Minute)
		exit(c, "job-0-ring-0-worker", 1)
		c.Advance(time.Minute)
		running(c, 1)
		finish(c, 0)
		c.Advance(time.Minute)
		wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 0, "")
		for _, g := range All[*v2alpha2.PodGroup](c) {
			if g.Status.Phase != "Completed" {
				c.Fatalf("PodGroup %s is %s", g.Name, g.Status.Phase)
			}
		}
	}
}
