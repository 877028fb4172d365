// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/test/wrappers"
)

// The GPU counts of a gang are updated with each change of a pod, and after a change of the tree.
func TestGPUsOfAGang(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	r := New()
	r.AddProfile(wrappers.SchedulerName)
	r.SetSynced(now)
	pod := func(uid string, gpus int64) *wrappers.PodWrapper {
		return wrappers.MakePod(uid, "ml").UID(uid).Gang("g").GPUs(gpus)
	}
	group := func() *wrappers.PodGroupWrapper { return wrappers.MakePodGroup("g", "ml").UID("group") }
	set := func(w *wrappers.PodWrapper) func() { return func() { r.SetPod(w.Obj(), now) } }
	steps := []struct {
		name            string
		do              func()
		requested, held int64
	}{
		{"a pod before its PodGroup", set(pod("a", 4)), 4, 0},
		{"the PodGroup", func() { r.SetGroup(group().MinMember(2).Obj(), now) }, 4, 0},
		{"a pod of another size", set(pod("b", 8)), 12, 0},
		{"a pod without", set(pod("c", 0)), 12, 0},
		{"a pod that has no place", set(pod("d", 2).SubGroup("x")), 14, 0},
		{"it is deleted before it is bound", set(pod("d", 2).SubGroup("x").Terminating()), 12, 0},
		{"one is bound", set(pod("b", 8).Node("n1")), 12, 8},
		{"the tree changes", func() { r.SetGroup(group().Generation(2).SubGroup("x", 1).Obj(), now) }, 12, 8},
		{"it is being deleted, and still there", set(pod("b", 8).Node("n1").Terminating()), 12, 8},
		{"it is gone", func() { r.RemovePod("b", now) }, 4, 0},
		{"another one is bound", set(pod("a", 4).Node("n1")), 4, 4},
		{"it fails", set(pod("a", 4).Node("n1").Phase(corev1.PodFailed)), 0, 0},
		{"one that has succeeded", set(pod("e", 4).Node("n1").Phase(corev1.PodSucceeded)), 0, 0},
	}
	for _, step := range steps {
		step.do()
		f, ok := r.Facts(Key{Namespace: "ml", Name: "g"})
		if !ok || f.GPUs != step.requested || f.HeldGPUs != step.held {
			t.Fatalf("%s: %d GPUs requested, %d held (known: %t); want %d, %d", step.name, f.GPUs, f.HeldGPUs, ok, step.requested, step.held)
		}
	}
}
