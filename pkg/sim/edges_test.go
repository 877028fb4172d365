package sim

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// A pod that is ready for a moment at the deadline, and is not when its PodClique is looked at, delays a termination and does
// not prevent it.
func TestReadinessFlapsAtTheDeadline(t *testing.T) {
	for _, clique := range []string{"chat-0-router", "chat-0-model-1-leader"} {
		c := newWatched(t, watched(time.Minute, 0), 0)
		c.options.Check = invariants() // nobody has seen that the breach had a break
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

// The PodGroup is deleted while a termination is under way, and while a breach lasts.
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

// Everything in a namespace is deleted together, as the namespace controller does.
func TestNamespaceIsDeleted(t *testing.T) {
	for seed := range int64(10) {
		c := New(t, Options{Nodes: Nodes(3, 4), Seed: seed, Check: invariants()})
		c.Kubelet.Linger = 20 * time.Second
		c.Create(job(2, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(1))}))
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
		c.Delete(theJob(c))
		c.Advance(2 * time.Minute)
		wantNothing(c)
	}
}
