// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

// TestMarkedPodsWaitForTheirPodGroup: pods that are a gang by their owner are held from the first moment, although no
// PodGroup exists, and start when it does.
func TestMarkedPodsWaitForTheirPodGroup(t *testing.T) {
	s := begin(t)
	var pods []*wrappers.PodWrapper
	for _, name := range []string{"a", "b"} {
		pods = append(pods, wrappers.MakePod(name, testNamespace).UID(name).Controller("Job", "train", "1").Label(v2alpha2.MinMemberKey, "all").GPUs(1))
	}
	if ok, why := s.r.MayEnterQueue(pods[0].Obj()); ok || why == "" {
		t.Errorf("a pod that was not observed yet may enter the queue: %q", why)
	}
	s.pods(pods...)
	for _, p := range pods {
		if ok, _ := s.r.MayEnterQueue(p.Obj()); ok {
			t.Error("a pod without its PodGroup may enter the queue")
		}
	}
	s.group(wrappers.MakePodGroup(membership.Group(pods[0].Obj()), testNamespace).UID("group").Generation(1).MinMember(2))
	if ok, why := s.r.MayEnterQueue(pods[0].Obj()); !ok {
		t.Errorf("the leader is kept from the queue: %s", why)
	}
	if ok, _ := s.r.MayEnterQueue(pods[1].Obj()); ok {
		t.Error("a pod that is not the leader may enter the queue")
	}
}

// TestContradictingMarksHoldAPod: a pod that names two PodGroups counts in none of them, before and after these exist.
// Without one of the names, which may be an annotation, it counts at once. A pod that runs keeps its place.
func TestContradictingMarksHoldAPod(t *testing.T) {
	s := begin(t)
	pod := func(name string) *wrappers.PodWrapper {
		return wrappers.MakePod(name, testNamespace).UID(name).Gang("a").GPUs(1)
	}
	both := func(name string) *wrappers.PodWrapper {
		return pod(name).Annotation("scheduling.k8s.io/group-name", "b")
	}
	const why = `names PodGroup "a" by annotation pod-group-name and "b" by annotation scheduling.k8s.io/group-name`
	facts := func() podgroup.Facts {
		f, _ := s.r.Facts(Key{Namespace: testNamespace, Name: "a"})
		return f
	}
	misplaced := func() string {
		f := facts()
		for _, w := range f.Waiting {
			if w.Pod.Name == "y" {
				return w.Misplaced
			}
		}
		return "not waiting"
	}
	s.pods(pod("x"), both("y"))
	if got := misplaced(); got != why {
		t.Errorf("without the PodGroup: %q, want %q", got, why)
	}
	s.group(wrappers.MakePodGroup("a", testNamespace).UID("group").Generation(1).MinMember(2))
	if got := misplaced(); got != why {
		t.Errorf("%q, want %q", got, why)
	}
	if ok, _ := s.r.MayEnterQueue(pod("x").Obj()); ok {
		t.Error("the gang may start with a pod that names another one")
	}
	s.pods(pod("y"))
	if got := misplaced(); got != "" {
		t.Errorf("with one name: %q", got)
	}
	if ok, why := s.r.MayEnterQueue(pod("x").Obj()); !ok {
		t.Errorf("the gang may not start with all of its pods: %s", why)
	}
	s.pods(both("y").Node("n1"))
	if f := facts(); f.StrayTotal > 0 || f.Bound[""] != 1 {
		t.Errorf("a pod that runs: %d strays, %v bound", f.StrayTotal, f.Bound)
	}
}

// TestAShareOfAGPUHoldsAPod: a pod of a gang that asks for a share of a GPU, which it would not get, counts when it
// asks no more.
func TestAShareOfAGPUHoldsAPod(t *testing.T) {
	s := begin(t)
	pod := func(name string) *wrappers.PodWrapper {
		return wrappers.MakePod(name, testNamespace).UID(name).Gang("a").GPUs(1)
	}
	s.group(wrappers.MakePodGroup("a", testNamespace).UID("group").Generation(1).MinMember(2))
	s.pods(pod("x"), pod("y").Annotation("gpu-fraction", "0.5"))
	f, _ := s.r.Facts(Key{Namespace: testNamespace, Name: "a"})
	const note = `does not count in PodGroup "a": the pod asks for a share of a GPU by annotation gpu-fraction: it would get none, and waits: ` +
		"request whole GPUs, or a resource that the device plugin offers for shares; the pod waits"
	if lost := podgroup.FindLostPods(f); len(lost) != 1 || lost[0].Reason != v2alpha2.EventIgnoredKeys || lost[0].Note != note {
		t.Errorf("told %+v\nwant %s", lost, note)
	}
	if ok, _ := s.r.MayEnterQueue(pod("x").Obj()); ok {
		t.Error("the gang may start without the pod")
	}
	s.pods(pod("y"))
	if ok, why := s.r.MayEnterQueue(pod("x").Obj()); !ok {
		t.Errorf("the gang may not start with all of its pods: %s", why)
	}
}
