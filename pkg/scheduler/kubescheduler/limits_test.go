// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestLimitHoldsWhileTheNodeIsAsItWas: the number of pods that a node actually accepted bounds later plans, until
// something on it changes; an aborted plan in between does not count as a change.
func TestLimitHoldsWhileTheNodeIsAsItWas(t *testing.T) {
	t.Parallel()
	c := newCluster(t, racks(2, 8)...)
	cache := NewFilterCache()
	pod := classPod("a").GPUs(1).Obj()
	now := time.Unix(1000, 0)
	on := func() map[string]int {
		t.Helper()
		w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{pod}, Options{Cache: cache, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for range 6 {
			node, ok := w.Place(0, "")
			if !ok {
				t.Fatalf("no node: %v", w.Explain(0, "").Reasons)
			}
			got[node]++
		}
		w.Undo(6)
		if node, ok := w.Place(0, ""); !ok || node != "n0" {
			t.Errorf("after Undo placed on %q, want n0", node)
		}
		return got
	}
	if got := on(); got["n0"] != 6 {
		t.Fatalf("placed %v, want all on n0", got)
	}

	// Two members of a plan were assumed on n0, and the third was refused there.
	limit := func() {
		t.Helper()
		members := []*corev1.Pod{c.bind(pod, "m1", "n0"), c.bind(pod, "m2", "n0")}
		planned := map[types.UID]bool{"m1": true, "m2": true, "m3": true}
		node, err := c.f.SnapshotSharedLister().NodeInfos().Get("n0")
		if err != nil {
			t.Fatal(err)
		}
		cache.Limit(c.f, node, planned, pod, now)
		for _, m := range members {
			c.unbind(m)
		}
	}
	limit()
	if got := on(); got["n0"] != 2 || got["n1"] != 4 {
		t.Errorf("placed %v, want only 2 on n0, its limit", got)
	}
	other := classPod("b").GPUs(2).Obj()
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, []*corev1.Pod{other}, Options{Cache: cache, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if node, _ := w.Place(0, ""); node != "n0" {
			t.Errorf("a pod of another kind is placed on %q, want n0", node)
		}
	}

	x := c.bind(classPod("x").Obj(), "x", "n1")
	if got := on(); got["n0"] != 2 {
		t.Errorf("placed %v, want 2 on n0: another node has changed", got)
	}
	c.unbind(x)
	now = now.Add(LimitLasts)
	if got := on(); got["n0"] != 6 {
		t.Errorf("placed %v, want all on n0: the limit has lasted long enough", got)
	}
	now = now.Add(time.Second)
	limit()
	if got := on(); got["n0"] != 2 {
		t.Errorf("placed %v, want 2 on n0", got)
	}
	c.bind(classPod("x").Obj(), "x", "n0")
	if got := on(); got["n0"] != 6 {
		t.Errorf("placed %v, want all on n0: it has changed", got)
	}
}
