// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

var errQuota = errors.New("exceeded quota: pods")

// podsOf returns the pods of a PodClique.
func podsOf(c *Cluster, clique string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range All[*corev1.Pod](c) {
		if ref := metav1.GetControllerOf(pod); ref != nil && ref.Name == clique {
			pods = append(pods, pod)
		}
	}
	return pods
}

// TestTrouble: pods of a set fail, are evicted and are lost with their node.
func TestTrouble(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(4, 4), Check: invariants()})
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	wantAvailable(c, 8)

	c.Timeline.Say("a container of a router exits")
	must(t, c.Kubelet.Exit(podsOf(c, "chat-0-router")[0], 1))
	c.Advance(20 * time.Second)
	wantAvailable(c, 8)

	c.Timeline.Say("a router is evicted")
	must(t, c.Kubelet.Evict(podsOf(c, "chat-0-router")[0]))
	c.Advance(40 * time.Second)
	wantAvailable(c, 8)

	node := podsOf(c, "chat-0-router")[0].Spec.NodeName
	c.Timeline.Say("node %s does not answer", node)
	must(t, c.Kubelet.LoseNode(node))
	c.Advance(10 * time.Minute)

	c.Timeline.Say("it answers again")
	must(t, c.Kubelet.RestoreNode(node))
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	c.Timeline.Golden(t, "trouble")
}

// TestPhaseOfSetWhoseNodesDoNotAnswer: nobody knows whether its pods run, so it is not Running, whether its pods were
// ready before or not. Source: docs/decisions, J7 and J11.
func TestPhaseOfSetWhoseNodesDoNotAnswer(t *testing.T) {
	for name, unready := range map[string]bool{"ready pods": false, "pods that are not ready": true} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(1, 8), Check: invariants()})
			wantPhase := func(want v1alpha1.PodCliqueSetPhase) {
				t.Helper()
				if got := theSet(c, "chat").Status.Phase; got != want {
					c.Fatalf("the phase is %s, want %s", got, want)
				}
			}
			c.Create(podCliqueSet())
			c.Advance(time.Minute)
			for _, pod := range All[*corev1.Pod](c) {
				if unready {
					must(t, c.Kubelet.FailReadiness(pod))
				}
			}
			c.Advance(10 * time.Second)
			wantPhase(v1alpha1.PodCliqueSetPhaseRunning)

			must(t, c.Kubelet.LoseNode("n0"))
			c.Advance(10 * time.Second)
			wantPhase(v1alpha1.PodCliqueSetPhasePending)

			must(t, c.Kubelet.RestoreNode("n0"))
			c.Advance(10 * time.Second)
			wantPhase(v1alpha1.PodCliqueSetPhaseRunning)
		})
	}
}

// TestWaitsForRoom: two sets on nodes with room for one. The second starts when the first is gone, and neither is
// partly bound.
func TestWaitsForRoom(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	rival := podCliqueSet()
	rival.Name = "rival"
	c.Timeline.Say("a rival of the same size is created")
	c.Create(rival)
	c.Advance(time.Minute)
	for _, pod := range All[*corev1.Pod](c) {
		if pod.Labels[v1alpha1.LabelPartOf] == "rival" && pod.Spec.NodeName != "" {
			c.Fatalf("pod %s has a node", pod.Name)
		}
	}
	group := &v2alpha2.PodGroup{}
	must(t, c.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "rival-0"}, group))
	if condition := meta.FindStatusCondition(group.Status.Conditions, v2alpha2.ConditionAdmitted); condition == nil || condition.Status != metav1.ConditionFalse {
		c.Fatalf("Admitted of the rival is %+v", condition)
	}
	c.Timeline.Say("the first is deleted")
	c.Delete(podCliqueSet())
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	c.Timeline.Golden(t, "room")
}

// TestStartOrder: pods start after those of the PodCliques that their PodClique names.
func TestStartOrder(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(3, 4), Check: invariants()})
	set := podCliqueSet()
	set.Spec.Template.StartupType = ptr.To(v1alpha1.CliqueStartupTypeInOrder)
	c.Create(set)
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	started := func(clique string) time.Time { return podsOf(c, clique)[0].Status.StartTime.Time }
	if r, l, w := started("chat-0-router"), started("chat-0-model-0-leader"), started("chat-0-model-0-worker"); !r.Before(l) || !l.Before(w) {
		c.Fatalf("router started at %s, leader at %s, worker at %s", r, l, w)
	}
}

// TestOrphans: objects of a set that is deleted with --cascade=orphan are kept, and have no owner.
func TestOrphans(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(3, 4), Check: func(*Cluster) error { return nil }})
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	c.Delete(podCliqueSet(), client.PropagationPolicy(metav1.DeletePropagationOrphan))
	c.Advance(time.Minute)
	if sets, pods := All[*v1alpha1.PodCliqueSet](c), All[*corev1.Pod](c); len(sets) != 0 || len(pods) != 8 {
		c.Fatalf("%d sets and %d pods are left", len(sets), len(pods))
	}
	for _, clique := range All[*v1alpha1.PodClique](c) {
		if ref := metav1.GetControllerOf(clique); ref != nil && ref.Kind == v1alpha1.KindPodCliqueSet {
			c.Fatalf("PodClique %s belongs to %s", clique.Name, ref.Name)
		}
	}
}

// TestQuota: rejected pods are created when the quota allows it, without an event that reports the change.
func TestQuota(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(3, 4), Check: invariants()})
	asked := 0
	c.API.Refuse = func(verb Verb, o client.Object) error {
		if _, isPod := o.(*corev1.Pod); isPod && verb == Create {
			asked++
			return apierrors.NewForbidden(corev1.Resource("pods"), o.GetName(), errQuota)
		}
		return nil
	}
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	if n := len(All[*corev1.Pod](c)); n != 0 || asked == 0 {
		c.Fatalf("%d pods, %d refused", n, asked)
	}
	c.API.Refuse = nil
	c.Advance(time.Minute)
	wantAvailable(c, 8)
}

// TestSchedulerRestartsWithinABurst: a gang that a crash of the scheduler leaves partly bound is completed.
func TestSchedulerRestartsWithinABurst(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(3, 4)})
	c.Create(podCliqueSet())
	for len(c.scheduler.bindings) != 3 {
		if !c.Step() {
			c.Fatalf("no burst has begun")
		}
	}
	c.RestartScheduler()
	c.Advance(time.Minute)
	wantAvailable(c, 8)
}

// TestHeldBackCaches: the controllers do not act on an object before their cache shows it.
func TestHeldBackCaches(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(3, 4), Check: invariants()})
	c.HoldBack(&v1alpha1.PodClique{})
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	if n := len(All[*corev1.Pod](c)); n != 0 {
		c.Fatalf("%d pods of PodCliques that no cache shows", n)
	}
	c.Deliver(&v1alpha1.PodClique{})
	c.Advance(time.Minute)
	wantAvailable(c, 8)
}

// TestPodCliquesThatAreGone: pods of a PodClique that is gone, but still in the cache, are not created repeatedly while
// the garbage collector deletes them.
func TestPodCliquesThatAreGone(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(3, 4), Check: invariants()})
	c.Create(podCliqueSet())
	c.Advance(time.Minute)
	wantAvailable(c, 8)
	c.HoldBack(&v1alpha1.PodClique{})
	deleteCliques(c, "chat-0-model-1")
	c.Advance(time.Minute)
	if n := len(All[*corev1.Pod](c)); n != 5 {
		t.Errorf("%d pods, want 5: those of the PodCliques that exist", n)
	}
	c.Deliver(&v1alpha1.PodClique{})
	c.Advance(time.Minute)
	wantAvailable(c, 8)
}

// TestAttemptThatTheCacheShowsLate: the attempt of a unit was raised, all of its pods are gone, and the cache shows its
// owner without the new attempt. No pod is created for the earlier attempt, because it would be replaced as soon as the
// cache is up to date.
func TestAttemptThatTheCacheShowsLate(t *testing.T) {
	for name, tc := range map[string]struct {
		owner   client.Object
		deleted []string
	}{
		"replica of a scaling group": {&v1alpha1.PodCliqueScalingGroup{}, []string{"chat-0-model-1-leader", "chat-0-model-1-worker"}},
		"replica of a set": {&v1alpha1.PodCliqueSet{}, []string{"chat-0-router", "chat-0-model-0-leader", "chat-0-model-0-worker",
			"chat-0-model-1-leader", "chat-0-model-1-worker"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(3, 4), Check: invariants()})
			c.Create(podCliqueSet())
			c.Advance(time.Minute)
			wantAvailable(c, 8)
			c.HoldBack(tc.owner)
			for _, clique := range tc.deleted {
				deleteCliques(c, clique)
			}
			c.Advance(time.Minute)
			for _, clique := range All[*v1alpha1.PodClique](c) {
				if slices.Contains(tc.deleted, clique.Name) && workload.Attempt(clique) == (lifecycle.Attempt{}) {
					t.Errorf("PodClique %s was created for the attempt that has ended", clique.Name)
				}
			}
			c.Deliver(tc.owner)
			c.Advance(time.Minute)
			wantAvailable(c, 8)
		})
	}
}

// TestPodsThatTheCacheShowsLate: the cache does not show pods that were created, and the template is edited. Pods of
// the new template have other names, so the API server would accept a second pod of the same index.
func TestPodsThatTheCacheShowsLate(t *testing.T) {
	for name, age := range map[string]time.Duration{"before the first status": 0, "with a status": time.Minute} {
		t.Run(name, func(t *testing.T) {
			c := New(t, Options{Nodes: Nodes(3, 4), Check: invariants()})
			if age > 0 {
				c.Create(podCliqueSet())
				c.Advance(age)
				wantAvailable(c, 8)
			}
			c.HoldBack(&corev1.Pod{})
			if age > 0 {
				Edit(c, theClique(c, "chat-0-router"), func(q *v1alpha1.PodClique) { q.Spec.Replicas = 4 })
			} else {
				c.Create(podCliqueSet())
			}
			c.Advance(100 * time.Millisecond)
			image(c, podCliqueSet(), "registry.example/main:2", "router", "leader", "worker")
			c.Advance(30 * time.Second)
			c.Deliver(&corev1.Pod{})
			c.Advance(10 * time.Minute)
			wantUpdated(c)
			wantEveryPodReady(c)
		})
	}
}

// TestStatusThatTheCacheShowsLate: if an object recovers before the cache shows the status of its failure, the status
// reports the recovery once the cache is up to date.
func TestStatusThatTheCacheShowsLate(t *testing.T) {
	for name, kind := range map[string]client.Object{
		"PodClique": &v1alpha1.PodClique{}, "PodCliqueScalingGroup": &v1alpha1.PodCliqueScalingGroup{}, "PodCliqueSet": &v1alpha1.PodCliqueSet{},
	} {
		t.Run(name, func(t *testing.T) {
			c := newWatched(t, watched(5*time.Minute, 0), 0)
			c.HoldBack(kind)
			var pods []*corev1.Pod
			for _, clique := range []string{"chat-0-router", "chat-0-model-0-leader", "chat-0-model-1-leader"} {
				pods = append(pods, fail(c, clique))
			}
			c.Advance(5 * time.Second)
			for _, pod := range pods {
				c.Kubelet.PassReadiness(pod)
			}
			c.Advance(5 * time.Second)
			c.Deliver(kind)
			c.Advance(5 * time.Second)
			wantAvailable(c, 8)
			for _, clique := range All[*v1alpha1.PodClique](c) {
				if s := clique.Status; s.ReadyReplicas != clique.Spec.Replicas || s.MinAvailableBreachedSince != nil {
					c.Fatalf("PodClique %s: %d ready, in breach since %s", clique.Name, s.ReadyReplicas, s.MinAvailableBreachedSince)
				}
			}
			for _, g := range All[*v1alpha1.PodCliqueScalingGroup](c) {
				if s := g.Status; s.AvailableReplicas != g.Spec.Replicas || s.MinAvailableBreachedSince != nil {
					c.Fatalf("scaling group %s: %d available, in breach since %s", g.Name, s.AvailableReplicas, s.MinAvailableBreachedSince)
				}
			}
		})
	}
}

// A set whose minimum is not bound says what its PodGroup says, and follows it.
func TestASetSaysWhyItsGangWaits(t *testing.T) {
	t.Parallel()
	c := New(t, Options{Nodes: Nodes(1, 4)})
	c.Create(oneGroup("a"))
	c.Advance(10 * time.Second)
	c.Create(oneGroup("b"))
	says := func(moment, want string) {
		t.Helper()
		if got := meta.FindStatusCondition(theSet(c, "b").Status.Conditions, v1alpha1.ConditionAvailable).Message; got != want {
			t.Errorf("%s: %q, want %q", moment, got, want)
		}
	}
	c.Advance(5 * time.Second)
	says("it is refused", "0 of 1 replica is available; the minimum of replica 0 is not bound: "+
		"InsufficientGPUs: the gang needs 4 nvidia.com/gpu for 4 pods, 0 are free (PodGroup b-0)")
	group := All[*v2alpha2.PodGroup](c)[1].DeepCopy()
	is := meta.FindStatusCondition(group.Status.Conditions, v2alpha2.ConditionSatisfied)
	is.Reason, is.Message = string(v2alpha2.ReasonPreempting), "2 pods end; more"
	writeStatus(c, group)
	c.Advance(5 * time.Second)
	says("its reason changes", "0 of 1 replica is available; the minimum of replica 0 is not bound: Preempting: 2 pods end (PodGroup b-0)")
	c.Delete(theSet(c, "a"))
	c.Advance(20 * time.Second)
	says("it runs", "1 of 1 replica is available")
}
