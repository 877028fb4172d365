// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/test/wrappers"
)

// TestDomainsAreForgotten: neither nodes whose labels change nor shapes that end leave domains behind.
func TestDomainsAreForgotten(t *testing.T) {
	t.Parallel()
	const rack = "topology.example.com/rack"
	c := newCluster(t)
	node := func(value int) *corev1.Node {
		return wrappers.MakeNode("n").GPUs(8).Label(rack, fmt.Sprint(value)).Obj()
	}
	c.sched.Cache.AddNode(klog.Background(), node(0))
	shapes := newShapes(
		func(s *cache.Snapshot) error { return c.sched.Cache.UpdateSnapshot(klog.Background(), s) },
		func(*corev1.Pod) framework.Framework { return c.f })
	update := func() sets.Set[*DomainShape] {
		raised, err := shapes.UpdateNodes()
		if err != nil {
			t.Fatal(err)
		}
		return raised.Domains
	}
	update()
	shape, err := shapes.TrackShape(c.ctx, wrappers.MakePod("p", "ml").GPUs(1).Obj())
	if err != nil {
		t.Fatal(err)
	}
	seven := "7"
	anyRack, rack7 := shapes.TrackDomain(shape, rack, nil), shapes.TrackDomain(shape, rack, &seven)
	for value := 1; value < 20; value++ {
		c.sched.Cache.UpdateNode(klog.Background(), node(value-1), node(value))
		want, raised := 0, 1
		if value == 7 {
			want, raised = 8, 2
		}
		if got := update(); len(got) != raised || anyRack.FittingPods() != 8 || rack7.FittingPods() != want {
			t.Fatalf("value %d: %d in rack 7, %d in some rack, %d raised", value, rack7.FittingPods(), anyRack.FittingPods(), len(got))
		}
	}
	if n := len(shapes.levels[rack].values); n > 3 {
		t.Errorf("%d domains are known, want 3 at most", n)
	}
	shapes.ReleaseDomain(rack7)
	shapes.ReleaseDomain(anyRack)
	if len(shapes.levels) > 0 || len(shape.levels) > 0 {
		t.Errorf("levels are still followed: %v", shapes.levels)
	}
}

// An attempt that ran while a node came to a domain has not seen its room there.
func TestANodeComesToADomainDuringAnAttempt(t *testing.T) {
	t.Parallel()
	node := func(rack string, gpus int64) *corev1.Node {
		w := wrappers.MakeNode("n").GPUs(gpus)
		if rack != "" {
			w.Label("rack", rack)
		}
		return w.Obj()
	}
	for name, tt := range map[string]struct {
		before, after *corev1.Node
		any, r7       bool // more pods fit in some rack, or in r7, than before
	}{
		"to it":               {node("r1", 8), node("r7", 8), true, true},
		"without a label":     {node("", 8), node("r7", 8), true, true},
		"to another":          {node("r7", 8), node("r1", 8), true, false},
		"out of all":          {node("r7", 8), node("", 8), false, false},
		"without room":        {node("r1", 0), node("r7", 0), false, false},
		"another label":       {node("r7", 8), wrappers.MakeNode("n").GPUs(8).Label("rack", "r7").Label("x", "y").Obj(), false, false},
		"it has fewer GPUs":   {node("r7", 8), node("r7", 4), false, false},
		"fewer, and the rack": {node("r1", 8), node("r7", 4), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.sched.Cache.AddNode(klog.Background(), tt.before)
			snapshot := cache.NewEmptySnapshot()
			if err := c.sched.Cache.UpdateSnapshot(klog.Background(), snapshot); err != nil {
				t.Fatal(err)
			}
			list, err := snapshot.NodeInfos().List()
			if err != nil {
				t.Fatal(err)
			}
			nodes := make([]fwk.NodeInfo, len(list))
			for i, n := range list {
				nodes[i] = n.Snapshot()
			}
			shapes := newShapes(
				func(s *cache.Snapshot) error { return c.sched.Cache.UpdateSnapshot(klog.Background(), s) },
				func(*corev1.Pod) framework.Framework { return c.f })
			c.sched.Cache.UpdateNode(klog.Background(), tt.before, tt.after)
			if _, err := shapes.UpdateNodes(); err != nil {
				t.Fatal(err)
			}
			shape, err := shapes.TrackShape(c.ctx, wrappers.MakePod("p", "ml").GPUs(1).Obj())
			if err != nil {
				t.Fatal(err)
			}
			seven := "r7"
			for of, want := range map[*DomainShape]bool{shapes.TrackDomain(shape, "rack", nil): tt.any, shapes.TrackDomain(shape, "rack", &seven): tt.r7} {
				if got := shapes.RaisedSince(nodes, []*Shape{shape}, []*DomainShape{of}); got != want {
					t.Errorf("raised in domain %d (%d: any): %t, want %t", of.domain, noDomain, got, want)
				}
			}
		})
	}
}

// BenchmarkDomainShapes follows 10,000 nodes, in as many domains or in 625, for 50 shapes: a pod comes to and leaves
// the node that was empty alone, so that the domain with the most room changes, and a node is added and removed.
func BenchmarkDomainShapes(b *testing.B) {
	const nodes, shapesOf = 10_000, 50
	for _, domains := range []int{625, nodes} {
		c := newCluster(b)
		node := func(i int) *corev1.Node {
			return wrappers.MakeNode(fmt.Sprintf("n%05d", i)).GPUs(64).Label("topology.example.com/rack", fmt.Sprintf("rack-%05d", i*domains/nodes)).Obj()
		}
		for i := range nodes {
			c.sched.Cache.AddNode(klog.Background(), node(i))
		}
		shapes := newShapes(
			func(s *cache.Snapshot) error { return c.sched.Cache.UpdateSnapshot(klog.Background(), s) },
			func(*corev1.Pod) framework.Framework { return c.f })
		update := func() {
			if _, err := shapes.UpdateNodes(); err != nil {
				b.Fatal(err)
			}
		}
		update()
		var any []*DomainShape
		for k := range shapesOf {
			shape, err := shapes.TrackShape(c.ctx, wrappers.MakePod("p", "ml").GPUs(int64(1+k)).Obj())
			if err != nil {
				b.Fatal(err)
			}
			any = append(any, shapes.TrackDomain(shape, "topology.example.com/rack", nil))
		}
		b.Run(fmt.Sprintf("a pod comes and goes, %d domains", domains), func(b *testing.B) {
			b.ReportAllocs()
			pod := wrappers.MakePod("running", "ml").UID("running").GPUs(64).Node("n00000").Obj()
			for b.Loop() {
				if err := c.sched.Cache.AddPod(klog.Background(), pod); err != nil {
					b.Fatal(err)
				}
				update()
				for _, d := range any {
					d.FittingPods()
				}
				if err := c.sched.Cache.RemovePod(klog.Background(), pod); err != nil {
					b.Fatal(err)
				}
				update()
			}
		})
		b.Run(fmt.Sprintf("a node is added and removed, %d domains", domains), func(b *testing.B) {
			b.ReportAllocs()
			added := node(nodes)
			for b.Loop() {
				c.sched.Cache.AddNode(klog.Background(), added)
				update()
				if err := c.sched.Cache.RemoveNode(klog.Background(), added); err != nil {
					b.Fatal(err)
				}
				update()
			}
		})
	}
}
