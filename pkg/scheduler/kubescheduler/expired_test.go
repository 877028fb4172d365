// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/test/wrappers"
)

func manyNodes(n int) []fwk.NodeInfo {
	var nodes []fwk.NodeInfo
	for i := range n {
		nodes = append(nodes, nodeInfo(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(8).Obj()))
	}
	return nodes
}

// TestPlaceEndsWithTheTime: a search over the nodes does not continue when the plan's time is over, unless it is given
// more.
func TestPlaceEndsWithTheTime(t *testing.T) {
	t.Parallel()
	f := newCounted(t)
	nodes := manyNodes(200)
	refuse := map[string]bool{}
	for _, n := range nodes {
		refuse[n.Node().Name] = true
	}
	delete(refuse, "n199")
	for _, tc := range []struct {
		expired bool
		want    string
	}{{false, "n199"}, {true, ""}} {
		w, err := NewSnapshot(context.Background(), f, nodes, []*corev1.Pod{worker(0).Obj()},
			Options{Refusals: refusing(f, worker(0).Obj(), refuse), Expired: func() bool { return tc.expired }})
		if err != nil {
			t.Fatal(err)
		}
		if node, _ := w.Place(0, ""); node != tc.want {
			t.Errorf("expired %t: placed on %q, want %q", tc.expired, node, tc.want)
		}
		if tc.expired {
			tc.expired = false
			if node, _ := w.Place(0, ""); node != "n199" {
				t.Errorf("with more time: placed on %q, want n199", node)
			}
		}
	}
}

// TestWhatWasNotJudgedIsJudgedLater: a plan whose context ends while it evaluates nodes leaves no wrong results in
// the cache.
func TestWhatWasNotJudgedIsJudgedLater(t *testing.T) {
	t.Parallel()
	f := newCounted(t)
	nodes := manyNodes(200)
	cache := NewFilterCache()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	place := func(ctx context.Context) int {
		w, err := NewSnapshot(ctx, f, nodes, []*corev1.Pod{worker(0).GPUs(8).Obj()}, Options{Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for n < 300 {
			if _, ok := w.Place(0, ""); !ok {
				break
			}
			n++
		}
		if got := w.Capacity(0).Nodes; ctx.Err() == nil && got != 200 {
			t.Errorf("Capacity says %d nodes, want 200", got)
		}
		return n
	}
	if n := place(ended); n == 200 {
		t.Error("all nodes were judged although the context had ended: the test shows nothing")
	}
	for range 2 {
		if n := place(context.Background()); n != 200 {
			t.Errorf("%d pods placed on 200 nodes, want 200", n)
		}
	}
}
