// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// meddle makes another client write to each object of a workload just before a controller does, at most once in each
// pass. The controller's write is then a conflict.
func meddle(c *Cluster, write func(ctx context.Context, verb Verb, stored, next client.Object) error) {
	var mu sync.Mutex
	last := map[string]int{} // steps
	c.API.Refuse = func(verb Verb, o client.Object) error {
		switch o.(type) {
		case *v1alpha1.PodCliqueSet, *v1alpha1.PodCliqueScalingGroup, *v1alpha1.PodClique:
		case *v2alpha2.PodGroup:
			if verb == UpdateStatus { // by the scheduler
				return nil
			}
		default:
			return nil
		}
		if verb != Update && verb != UpdateStatus || !mu.TryLock() { // TryLock fails for the write of the other client
			return nil
		}
		defer mu.Unlock()
		if at, again := last[describe(o)]; again && at == c.Steps {
			return nil
		}
		last[describe(o)] = c.Steps
		stored := o.DeepCopyObject().(client.Object)
		if err := c.API.Get(context.Background(), client.ObjectKeyFromObject(o), stored); err != nil {
			return err
		}
		return write(context.Background(), verb, stored, o)
	}
}

// annotate is a write that changes nothing on which decisions rest.
func annotate(c *Cluster) func(context.Context, Verb, client.Object, client.Object) error {
	n := 0
	return func(ctx context.Context, _ Verb, stored, _ client.Object) error {
		n++
		annotations, labels := stored.GetAnnotations(), stored.GetLabels()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if labels == nil {
			labels = map[string]string{}
		}
		annotations["example.com/seen"], labels["example.com/seen"] = strconv.Itoa(n), strconv.Itoa(n)
		stored.SetAnnotations(annotations)
		stored.SetLabels(labels)
		return tolerant(c.API.Update(ctx, stored))
	}
}

// TestHarmlessWrites: a tool that annotates all objects of a workload just before the controllers write them delays
// neither an update nor a termination nor a restart, and none of these happens twice.
func TestHarmlessWrites(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(4, 8), Check: both(invariants(), both(terminations(), overdue()))})
	set := podCliqueSet()
	set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Minute}
	c.Create(set)
	c.Create(trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To[int32](3)}))
	c.Advance(time.Minute)
	meddle(c, annotate(c))

	fail(c, "chat-0-router")
	must(t, c.Kubelet.Exit(podsOf(c, "job-0-launcher")[0], 1))
	c.Advance(75 * time.Second)
	if of, _ := attempts(c); of != 1 {
		c.Fatalf("attempt %d of the replica 75 s after its failure, want 1: %+v", of, theSet(c, "chat").Status)
	}
	if n := theSet(c, "job").Status.RestartCount; n != 1 {
		c.Fatalf("%d restarts after one failure: %+v", n, theSet(c, "job").Status)
	}
	c.Advance(time.Minute)
	before := uids(c)
	c.API.Refuse = nil
	Edit(c, theSet(c, "chat"), func(s *v1alpha1.PodCliqueSet) {
		for _, clique := range s.Spec.Template.Cliques {
			clique.Spec.PodSpec.Containers[0].Image = "registry.example/main:2"
		}
	})
	meddle(c, annotate(c))
	c.Advance(2 * time.Minute)
	wantReplaced(c, before, "chat-0-")
	if p := theSet(c, "chat").Status.UpdateProgress; p == nil || p.UpdateEndedAt == nil {
		c.Fatalf("the update has not ended: %+v", p)
	}
	wantAvailable(c, 11)
}

// TestAnotherLeaderIsNotHarmless: another muster-controller that records a restart, with the same status, at the moment
// in which this one does, spends one restart with it, not two; and an attempt that it raises for another reason is not
// overwritten.
func TestAnotherLeaderIsNotHarmless(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(4, 8), Check: both(invariants(), soakJobs{}.check)})
	c.Create(trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To[int32](3)}))
	c.Advance(time.Minute)
	others := 0
	meddle(c, func(ctx context.Context, verb Verb, stored, next client.Object) error {
		set, isSet := stored.(*v1alpha1.PodCliqueSet)
		if verb != UpdateStatus || !isSet || next.(*v1alpha1.PodCliqueSet).Status.RestartCount == set.Status.RestartCount {
			return nil
		}
		others++
		next.(*v1alpha1.PodCliqueSet).Status.DeepCopyInto(&set.Status)
		return c.API.Status().Update(ctx, set)
	})
	for n := range int32(3) {
		must(t, c.Kubelet.Exit(podsOf(c, "job-0-launcher")[0], 1))
		c.Advance(10 * time.Minute)
		if got := theSet(c, "job").Status.RestartCount; got != n+1 || others != int(n+1) {
			c.Fatalf("%d restarts after %d failures, of which others recorded %d", got, n+1, others)
		}
	}
	for _, pod := range All[*corev1.Pod](c) {
		if pod.Status.Phase != corev1.PodRunning {
			c.Fatalf("pod %s is %s", pod.Name, pod.Status.Phase)
		}
	}
}
