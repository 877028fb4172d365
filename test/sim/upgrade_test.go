// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// asBefore removes from all objects the fields that the previous version did not write, while muster-controller does
// not run.
func asBefore(c *Cluster, edit func()) {
	c.t.Helper()
	c.process.end()
	c.process = nil
	drop := func(o client.Object) {
		a := o.GetAnnotations()
		for _, k := range []string{v1alpha1.AnnotationTerminationDelay, v1alpha1.AnnotationWorkloadType, v1alpha1.AnnotationWorkloadFailed} {
			delete(a, k)
		}
		o.SetAnnotations(a)
	}
	for _, o := range All[*v1alpha1.PodCliqueSet](c) {
		o = o.DeepCopy()
		s := &o.Status
		s.StartTime, s.RuntimeDeadline, s.CompletionTime, s.MinAvailableBreachedSince, s.TerminationDeadline = nil, nil, nil, nil, nil
		must(c.t, c.API.Status().Update(c.t.Context(), o))
	}
	for _, o := range All[*v1alpha1.PodCliqueScalingGroup](c) {
		o = o.DeepCopy()
		o.Status.WasAvailable = false
		meta.RemoveStatusCondition(&o.Status.Conditions, v1alpha1.ConditionMinAvailableBreached)
		must(c.t, c.API.Status().Update(c.t.Context(), o))
	}
	for _, o := range All[*v1alpha1.PodClique](c) {
		Edit(c, o.DeepCopy(), func(o *v1alpha1.PodClique) { drop(o) })
	}
	for _, o := range All[*v1alpha1.PodClique](c) {
		o = o.DeepCopy()
		s := &o.Status
		s.WasAvailable, s.AvailableReplicas, s.SucceededIndices, s.StartedIndices, s.SucceededReplicas = false, 0, "", "", 0
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionMinAvailableBreached)
		must(c.t, c.API.Status().Update(c.t.Context(), o))
	}
	for _, o := range All[*corev1.Pod](c) {
		Edit(c, o.DeepCopy(), func(o *corev1.Pod) { o.Finalizers = nil })
	}
	edit()
	c.start()
}

// Running workloads survive the upgrade from a version without terminations and training, and are managed from then on.
func TestUpgrade(t *testing.T) {
	for seed := range int64(10) {
		c := newWatched(t, watched(time.Minute, 0), seed)
		before := uids(c)
		asBefore(c, func() {})
		c.Advance(time.Hour)
		wantReplaced(c, before)
		wantAvailable(c, 8)
		fail(c, "chat-0-router")
		c.Advance(3 * time.Minute)
		wantReplaced(c, before, "chat-0-")
	}
}

func TestUpgradeOfAJob(t *testing.T) {
	for seed := range int64(10) {
		c := New(t, Options{Nodes: Nodes(2, 4), Seed: seed, Check: invariants()})
		c.Create(trainingSet(1, v1alpha1.TrainingSpec{MaxRestarts: ptr.To(int32(1)), MaxRuntime: &metav1.Duration{Duration: time.Hour}}))
		c.Advance(time.Minute)
		before := uids(c)
		asBefore(c, func() { exit(c, "job-0-launcher", 0) })
		c.Advance(10 * time.Minute)
		wantReplaced(c, before)
		wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 0, "")
		if seed%2 == 0 {
			finish(c, 0)
			c.Advance(time.Minute)
			wantJob(c, v1alpha1.PodCliqueSetPhaseSucceeded, 0, "")
			continue
		}
		exit(c, "job-0-ring-0-worker", 1)
		c.Advance(time.Minute)
		wantJob(c, v1alpha1.PodCliqueSetPhaseRunning, 1, "")
		running(c, 3)
	}
}
