// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// wantBreach fails the test unless the condition of a PodClique has that reason.
func wantBreach(c *Cluster, name, reason string) {
	c.t.Helper()
	condition := meta.FindStatusCondition(theClique(c, name).Status.Conditions, v1alpha1.ConditionMinAvailableBreached)
	if condition == nil || condition.Reason != reason {
		c.Fatalf("PodClique %s: %+v, want reason %s", name, condition, reason)
	}
}

// A PodClique that is scaled to zero and out again, or deleted alone and created again, is new: it is not terminated
// for a slow start, although one of its name was available in this attempt. Once it is available it can be terminated.
func TestNewStartIsNotABreach(t *testing.T) {
	for name, begin := range map[string]func(c *Cluster){
		"scaled to zero and out again": func(c *Cluster) {
			for _, replicas := range []int32{0, 2} {
				Edit(c, theClique(c, "chat-0-router"), func(r *v1alpha1.PodClique) { r.Spec.Replicas = replicas })
				c.Advance(time.Minute)
			}
		},
		"deleted alone": func(c *Cluster) { deleteCliques(c, "chat-0-router") },
		"deleted alone in a breach": func(c *Cluster) {
			fail(c, "chat-0-router")
			c.Advance(30 * time.Second)
			wantBreach(c, "chat-0-router", "InsufficientReadyPods")
			deleteCliques(c, "chat-0-router")
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := watched(time.Minute, 0)
			for _, clique := range set.Spec.Template.Cliques {
				clique.Spec.MinAvailable = nil // because it would be a lower bound
			}
			c := newWatched(t, set, 0)
			before := uids(c)
			c.Kubelet.StartAfter = 20 * time.Minute
			begin(c)
			c.Advance(10 * time.Minute)
			wantBreach(c, "chat-0-router", "NeverAvailable")
			c.Advance(20 * time.Minute)
			wantAvailable(c, 8)
			wantReplaced(c, before, "chat-0-router")
			c.Kubelet.StartAfter = 0
			fail(c, "chat-0-router")
			c.Advance(3 * time.Minute)
			wantAvailable(c, 8)
			wantReplaced(c, before, "chat-0-")
		})
	}
}

// If a user deletes all PodCliques of a replica of a job, the replica is replaced. This is not a failure of the job and
// uses no restart, even if none is left. Deleted pods are failures. Source: docs/decisions, W10, J4, J8.
func TestPodCliquesOfAJobAreDeleted(t *testing.T) {
	for _, prefix := range []string{"job-0", "job-0-launcher", "job-0-ring-0"} {
		for _, restarts := range []int32{0, 1} {
			c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
			c.Kubelet.Linger = 10 * time.Second
			c.Create(trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(restarts)}))
			c.Advance(time.Minute)
			before := uids(c)
			deleteCliques(c, prefix)
			c.Advance(time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
			running(c, 3)
			wantReplaced(c, before, prefix)

			c.Delete(podsOf(c, "job-0-launcher")[0])
			c.Advance(time.Minute)
			if restarts == 0 {
				wantJob(c, v1alpha1.PodCliqueSetPhaseFailed, 0, v1alpha1.ReasonMaxRestartsExceeded)
				continue
			}
			wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 1, "")
			running(c, 3)
		}
	}
}

// With a delay the set and its PodClique show when a restart is due; after a recovery they no longer do.
func TestDelayedRestartShows(t *testing.T) {
	c := New(t, Options{Nodes: Nodes(2, 4), Check: invariants()})
	set := trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(1))})
	set.Spec.Template.TerminationDelay = &metav1.Duration{Duration: time.Minute}
	c.Create(set)
	c.Advance(time.Minute)
	if due := theSet(c, "job").Status.TerminationDeadline; due != nil {
		t.Errorf("a restart is due at %s", due)
	}
	c.Kubelet.StartAfter = 30 * time.Second
	exit(c, "job-0-launcher", 1)
	c.Advance(10 * time.Second)
	status := theSet(c, "job").Status
	launcher := theClique(c, "job-0-launcher").Status.TerminationDeadline
	if due := status.TerminationDeadline; due == nil || !due.Equal(launcher) || !due.Equal(ptr.To(metav1.NewTime(status.MinAvailableBreachedSince.Add(time.Minute)))) {
		t.Errorf("a restart is due at %s, in breach since %s; the PodClique says %s", due, status.MinAvailableBreachedSince, launcher)
	}
	c.Advance(time.Minute)
	wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
	if due := theSet(c, "job").Status.TerminationDeadline; due != nil {
		t.Errorf("it has recovered, and a restart is due at %s", due)
	}
}
