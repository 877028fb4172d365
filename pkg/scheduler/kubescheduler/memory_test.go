// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/test/wrappers"
)

// TestFullNodesAreAskedOnce: nodes that a plan has filled are not filtered repeatedly.
func TestFullNodesAreAskedOnce(t *testing.T) {
	t.Parallel()
	const count = 50
	f := newCounted(t)
	var nodes []fwk.NodeInfo
	for i := range count {
		nodes = append(nodes, nodeInfo(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(8).Obj()))
	}
	w, err := NewSnapshot(context.Background(), f, nodes, []*corev1.Pod{wrappers.MakePod("p", "ns").UID("p").GPUs(1).Obj()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	pass := func() {
		for k := range 8 * count {
			if _, ok := w.Place(0, ""); !ok {
				t.Fatalf("pod %d refused: %v", k, w.Explain(0, "").Reasons)
			}
		}
		for range 10 {
			if _, ok := w.Place(0, ""); ok {
				t.Fatal("placed on full nodes")
			}
		}
	}
	pass()
	w.Undo(8 * count)
	pass()
	// All nodes once without planned pods; then each pod on its node, except for the first pod of each node in the
	// first round.
	if n, most := f.filtered.Load(), int64(count+7*count+8*count); n > most {
		t.Errorf("%d times a node was filtered, want at most %d", n, most)
	}
	if diff := cmp.Diff(map[string]int{"Insufficient nvidia.com/gpu": count}, w.Explain(0, "").Reasons); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
}

// TestPlansWithMemoryAreAnsweredAsWithout sends the same random calls to two Snapshots: one uses the cache of earlier
// plans, the other one starts with an empty cache.
func TestPlansWithMemoryAreAnsweredAsWithout(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	f := newCounted(t)
	memory := NewFilterCache()
	for round := range 300 {
		clear(f.nominated)
		var nodes []fwk.NodeInfo
		for i := range 6 {
			n := wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(int64(2+random.IntN(4))).Label("rack", fmt.Sprint(i%2))
			nodes = append(nodes, nodeInfo(n.Obj()))
		}
		var classes []*corev1.Pod
		for i := range 8 {
			name := fmt.Sprintf("leaf-%d", i)
			p := wrappers.MakePod(name, "ns").UID(name).GPUs(int64(1 + random.IntN(2))).SubGroup(name)
			switch random.IntN(8) {
			case 0:
				p.NodeSelector("rack", "1")
			case 1:
				p.HostPort(8000)
			case 2:
				p.Priority(int32(random.IntN(2)))
			}
			classes = append(classes, p.Obj())
		}
		if random.IntN(3) == 0 {
			f.nominated["n3"] = []fwk.PodInfo{podInfo(t, wrappers.MakePod("nominated", "ns").UID("nominated").GPUs(1).Obj())}
		}
		refuse := map[string]bool{"n5": random.IntN(2) == 0}
		var worlds []*Snapshot
		for _, memory := range []*FilterCache{nil, memory} {
			w, err := NewSnapshot(context.Background(), f, nodes, classes, Options{Cache: memory, Refusals: refusing(f, classes[0], refuse)})
			if err != nil {
				t.Fatal(err)
			}
			worlds = append(worlds, w)
		}
		height := 0
		for range 60 {
			if n := random.IntN(1 + height); random.IntN(5) == 0 && n > 0 {
				height -= n
				for _, w := range worlds {
					w.Undo(n)
				}
				continue
			}
			type answer struct {
				Node    string
				Reasons map[string]int
			}
			var answers []answer
			i := random.IntN(len(classes))
			for _, w := range worlds {
				node, ok := w.Place(i, "")
				a := answer{Node: node}
				if !ok {
					a.Reasons = w.Explain(i, "").Reasons
				}
				answers = append(answers, a)
			}
			if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
				t.Fatalf("round %d: answer without memory (-) and with (+):\n%s", round, diff)
			}
			if answers[0].Node != "" {
				height++
			}
		}
	}
}
