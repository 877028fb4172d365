// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// wipe removes the status of an object, like a backup that is restored without status.
func wipe[T client.Object](c *Cluster, o T) {
	c.t.Helper()
	if err := c.API.Get(c.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		c.Fatalf("%v", err)
	}
	clearStatus(o)
	writeStatus(c, o)
}

// writeStatus writes the status of an object.
func writeStatus(c *Cluster, o client.Object) {
	c.t.Helper()
	if err := c.API.Status().Update(c.t.Context(), o); err != nil {
		c.Fatalf("%v", err)
	}
}

// wipeAll removes all statuses of workloads while muster-controller does not run.
func wipeAll(c *Cluster) {
	for _, o := range All[*v1alpha1.PodCliqueSet](c) {
		wipe(c, o.DeepCopy())
	}
	for _, o := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		wipe(c, o.DeepCopy())
	}
	for _, o := range All[*v1alpha1.PodClique](c) {
		wipe(c, o.DeepCopy())
	}
	c.Restart()
}

// A workload whose statuses are lost after it was replaced continues with the attempts that its objects carry.
func TestStatusIsLost(t *testing.T) {
	for _, clique := range []string{"chat-0-router", "chat-0-model-1-leader"} {
		c := newWatched(t, watched(time.Minute, 0), 0)
		fail(c, clique)
		c.Advance(3 * time.Minute)
		wantAvailable(c, 8)
		before := uids(c)
		wipeAll(c)
		c.Advance(time.Minute)
		wantReplaced(c, before)
		set := All[*v1alpha1.PodCliqueSet](c)[0]
		if set.Status.AvailableReplicas != 1 {
			c.Fatalf("%s: %d replicas available", clique, set.Status.AvailableReplicas)
		}
		for _, broken := range []string{"chat-0-model-1-leader", "chat-0-router"} {
			fail(c, broken)
			c.Advance(3 * time.Minute)
			wantAvailable(c, 8)
			prefix := "chat-0-model-1-"
			if broken == "chat-0-router" {
				prefix = "chat-0-"
			}
			wantReplaced(c, before, prefix)
			before = uids(c)
		}
	}
}

func TestStatusOfAJobIsLost(t *testing.T) {
	for _, code := range []int32{0, 1} {
		c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
		c.Create(trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(1))}))
		c.Advance(time.Minute)
		exit(c, "job-0-launcher", 1)
		c.Advance(time.Minute)
		wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 1, "")
		wipeAll(c)
		c.Advance(time.Minute)
		wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
		running(c, 3)
		exit(c, "job-0-launcher", code)
		if code == 0 {
			finish(c, 0)
			c.Advance(time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 0, "")
			continue
		}
		c.Advance(time.Minute)
		wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 1, "")
		running(c, 3)
	}
}
