// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/test/wrappers"
)

// BenchmarkLacking is what the barrier of a gang costs of which each of 5,000 pods has been assumed on a node of its
// own since the last event was evaluated.
func BenchmarkLacking(b *testing.B) {
	const nodes = 5000
	c := newCluster(b)
	var placements []placement.Placement
	var members []*corev1.Pod
	for i := range nodes {
		name := fmt.Sprintf("n%04d", i)
		c.sched.Cache.AddNode(klog.Background(), wrappers.MakeNode(name).GPUs(8).Obj())
		placements = append(placements, placement.Placement{Node: name})
		members = append(members, wrappers.MakePod(fmt.Sprintf("a-%d", i), "ml").UID(name).GPUs(8).CPU("1").Memory("1Gi").Node(name).Obj())
	}
	snapshot := cache.NewEmptySnapshot()
	if err := c.sched.Cache.UpdateSnapshot(klog.Background(), snapshot); err != nil {
		b.Fatal(err)
	}
	list, err := snapshot.NodeInfos().List()
	if err != nil {
		b.Fatal(err)
	}
	waiting := members[0].DeepCopy()
	waiting.Spec.NodeName = ""
	w, err := NewSnapshot(c.ctx, c.f, list, []*corev1.Pod{waiting}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	if _, ok := w.Place(0, ""); !ok {
		b.Fatal("a pod finds no node")
	}
	room := w.RoomOf(placements)
	shapes := newShapes(
		func(s *cache.Snapshot) error { return c.sched.Cache.UpdateSnapshot(klog.Background(), s) },
		func(*corev1.Pod) framework.Framework { return c.f })
	update := func() {
		if _, err := shapes.UpdateNodes(); err != nil {
			b.Fatal(err)
		}
	}
	update()
	for _, pod := range members {
		if err := c.sched.Cache.AssumePod(klog.Background(), pod); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("all nodes changed", func(b *testing.B) {
		for b.Loop() {
			shapes.snapshot, shapes.nodes, shapes.generations = cache.NewEmptySnapshot(), nil, nil // which costs more
			update()
			if lacking := shapes.Lacking(room); lacking != "" {
				b.Fatal(lacking)
			}
		}
	})
	b.Run("no node changed", func(b *testing.B) {
		for b.Loop() {
			update()
			if lacking := shapes.Lacking(room); lacking != "" {
				b.Fatal(lacking)
			}
		}
	})
}
