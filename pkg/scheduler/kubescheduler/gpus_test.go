// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/ledger"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/test/wrappers"
)

// shapesOf returns Shapes over the cluster's cache.
func shapesOf(c *cluster) *Shapes {
	return newShapes(
		func(s *cache.Snapshot) error { return c.sched.Cache.UpdateSnapshot(klog.Background(), s) },
		func(*corev1.Pod) framework.Framework { return c.f })
}

// conditions sets the conditions of a pod that are True.
func conditions(w *wrappers.PodWrapper, reasons map[corev1.PodConditionType]string) *wrappers.PodWrapper {
	return w.Status(func(s *corev1.PodStatus) {
		for _, kind := range slices.Sorted(maps.Keys(reasons)) {
			s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reasons[kind]})
		}
	})
}

func TestReadGPUs(t *testing.T) {
	t.Parallel()
	const gpu, slice = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
	pod := func(name, node string, gpus int64) *wrappers.PodWrapper {
		return wrappers.MakePod(name, "ml").UID(name).GPUs(gpus).Node(node)
	}
	c := newCluster(t)
	for _, n := range []*corev1.Node{
		wrappers.MakeNode("a").GPUs(8).Capacity(slice, "7").Obj(),
		wrappers.MakeNode("b").GPUs(8).Obj(),
		wrappers.MakeNode("c").GPUs(8).Unschedulable().Obj(),
		wrappers.MakeNode("d").GPUs(8).Label("zone", "z").Taint("node.kubernetes.io/not-ready", "").Obj(),
		wrappers.MakeNode("e").Obj(),
	} {
		c.sched.Cache.AddNode(klog.Background(), n)
	}
	for _, p := range []*corev1.Pod{
		conditions(pod("runs", "a", 2), map[corev1.PodConditionType]string{corev1.PodReady: ""}).Obj(),
		pod("starts", "a", 1).Obj(),
		conditions(pod("victim", "b", 4), map[corev1.PodConditionType]string{corev1.PodReady: "", corev1.DisruptionTarget: corev1.PodReasonPreemptionByScheduler}).Terminating().Obj(),
		conditions(pod("drained", "b", 1), map[corev1.PodConditionType]string{corev1.DisruptionTarget: "EvictionByEvictionAPI"}).Terminating().Obj(),
		pod("no-gpu", "b", 0).Obj(),
	} {
		if err := c.sched.Cache.AddPod(klog.Background(), p); err != nil {
			t.Fatal(err)
		}
	}
	reserved, now := reservations.NewSet(), time.Unix(1_000_000, 0)
	keep := func(owner reservations.Owner, node string, gpus int64, of *corev1.Pod) {
		x := reservations.Reservation{Owner: owner, Node: node, Pod: of, Amount: reservations.Amount{Pods: 1, Resources: map[corev1.ResourceName]int64{gpu: gpus}}}
		if !reserved.Reserve(x, now.Add(time.Hour), now) {
			t.Fatal("not reserved")
		}
	}
	g := types.NamespacedName{Namespace: "ml", Name: "g"}
	keep(reservations.Owner{Gang: g}, "a", 2, wrappers.MakePod("gone", "ml").UID("gone").Obj())
	keep(reservations.Owner{Gang: g}, "b", 4, wrappers.MakePod("victim", "ml").UID("victim").Obj()) // still has the room itself
	keep(reservations.Owner{Gang: g}.Whole(), "b", 1, nil)
	promised := reservations.Reservation{
		Owner: reservations.Owner{Gang: types.NamespacedName{Namespace: "ml", Name: "waits"}}.Whole(), Node: "b", Promised: true,
		Amount: reservations.Amount{Pods: 1, Resources: map[corev1.ResourceName]int64{gpu: 2}},
	}
	if !reserved.Reserve(promised, now.Add(time.Hour), now) {
		t.Fatal("not reserved")
	}

	s := shapesOf(c)
	for _, waiting := range []*corev1.Pod{
		wrappers.MakePod("two", "ml").GPUs(2).Obj(), wrappers.MakePod("zone", "ml").GPUs(8).NodeSelector("zone", "z").Toleration("node.kubernetes.io/not-ready").Obj(),
	} {
		if _, err := s.TrackShape(c.ctx, waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.UpdateNodes(); err != nil {
		t.Fatal(err)
	}
	room := func(resource string, n, wanted int64, open bool, kept ...ledger.Use) ledger.Room {
		return ledger.Room{Resource: resource, Allocatable: n, Wanted: wanted, Open: open, Kept: kept}
	}
	want := map[string][]NodeGPUs{
		"a": {
			{Room: room(gpu, 8, 4, true, ledger.Use{State: ledger.KeptForReplacement, GPUs: 2}), Pods: []PodGPUs{{UID: "runs", GPUs: 2, Ready: true}, {UID: "starts", GPUs: 1}}},
			{Room: room(slice, 7, -1, true)},
		},
		"b": {{Room: room(gpu, 8, 2, true, ledger.Use{State: ledger.KeptForPreemptor, GPUs: 1}, ledger.Use{State: ledger.KeptForReservation, GPUs: 2}),
			Pods: []PodGPUs{{UID: "drained", GPUs: 1, Ends: true}, {UID: "victim", GPUs: 4, Ready: true, Ends: true, Evicted: true}}}},
		"c": {{Room: room(gpu, 8, 0, false)}},
		"d": {{Room: room(gpu, 8, 8, false)}},
	}
	got := map[string][]NodeGPUs{}
	for _, n := range s.ReadGPUs(&GPUTable{}, reserved.View()) {
		name := s.nodes[n.node].Node().Name
		n.node = 0
		got[name] = append(got[name], n)
	}
	for _, list := range [...]map[string][]NodeGPUs{want, got} {
		for _, nodes := range list {
			for i := range nodes {
				slices.SortFunc(nodes[i].Pods, func(a, b PodGPUs) int { return int(a.GPUs - b.GPUs) })
			}
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(NodeGPUs{})); diff != "" {
		t.Errorf("GPUs by node (-want +got):\n%s", diff)
	}
}

// TestReadGPUsFollowsTheCache compares a table that is kept with one that is read anew, while nodes and pods come and
// go.
func TestReadGPUsFollowsTheCache(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := newCluster(t)
		s := shapesOf(c)
		if _, err := s.TrackShape(c.ctx, wrappers.MakePod("waits", "ml").GPUs(2).Obj()); err != nil {
			t.Fatal(err)
		}
		kept := &GPUTable{}
		nodes, pods := map[string]*corev1.Node{}, map[string]*corev1.Pod{}
		for step := range 80 {
			name := fmt.Sprintf("n%d", rng.IntN(5))
			switch node, op := nodes[name], rng.IntN(6); {
			case node == nil:
				nodes[name] = wrappers.MakeNode(name).GPUs(int64(rng.IntN(9))).Obj()
				c.sched.Cache.AddNode(klog.Background(), nodes[name])
			case op == 0:
				if err := c.sched.Cache.RemoveNode(klog.Background(), node); err != nil {
					t.Fatal(err)
				}
				delete(nodes, name)
			case op < 3 && len(pods) > 0:
				key := slices.Sorted(maps.Keys(pods))[rng.IntN(len(pods))]
				changed := pods[key].DeepCopy()
				if changed.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}; op == 1 {
					if err := c.sched.Cache.RemovePod(klog.Background(), pods[key]); err != nil {
						t.Fatal(err)
					}
					delete(pods, key)
				} else if err := c.sched.Cache.UpdatePod(klog.Background(), pods[key], changed); err != nil {
					t.Fatal(err)
				} else {
					pods[key] = changed
				}
			default:
				key := fmt.Sprintf("p%d", step)
				pods[key] = wrappers.MakePod(key, "ml").UID(key).GPUs(int64(rng.IntN(3))).Node(name).Obj()
				if err := c.sched.Cache.AddPod(klog.Background(), pods[key]); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.UpdateNodes(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s.ReadGPUs(&GPUTable{}, nil), s.ReadGPUs(kept, nil), cmp.AllowUnexported(NodeGPUs{})); diff != "" {
				t.Fatalf("seed %d, step %d: (-read anew +kept):\n%s", seed, step, diff)
			}
		}
	}
}
