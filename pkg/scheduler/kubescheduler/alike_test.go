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

// TestSubGroupsThatDifferInALabelAreNotTriedOneByOne: the label of its sub-group makes every leaf's pods a class of their
// own. A node that is full is full for all of them.
func TestSubGroupsThatDifferInALabelAreNotTriedOneByOne(t *testing.T) {
	t.Parallel()
	const leaves, count = 100, 50
	f := newCounted(t)
	var nodes []fwk.NodeInfo
	for i := range count {
		nodes = append(nodes, nodeInfo(wrappers.MakeNode(fmt.Sprintf("n%d", i)).GPUs(8).Obj()))
	}
	var classes []*corev1.Pod
	for i := range leaves {
		name := fmt.Sprintf("leaf-%d", i)
		classes = append(classes, wrappers.MakePod(name, "ns").UID(name).GPUs(1).SubGroup(name).Obj())
	}
	w, err := NewSnapshot(context.Background(), f, nodes, classes, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.UseCache(NewFilterCache())
	pass := func() {
		for k := range 8 * count {
			if _, ok := w.Place(k%leaves, ""); !ok {
				t.Fatalf("pod %d refused: %v", k, w.Explain(k%leaves, "").Reasons)
			}
		}
		want := map[string]int{"Insufficient nvidia.com/gpu": count}
		for i := range leaves {
			if _, ok := w.Place(i, ""); ok {
				t.Fatalf("leaf %d is placed on full nodes", i)
			} else if diff := cmp.Diff(want, w.Explain(i, "").Reasons); diff != "" {
				t.Fatalf("refusal of leaf %d (-want +got):\n%s", i, diff)
			}
		}
	}
	pass()
	w.Undo(8 * count)
	pass()
	// Each pod is filtered where it goes, and each node a few times more in a pass.
	if n, most := f.filtered.Load(), int64(2*(8*count+4*count)+count); n > most {
		t.Errorf("%d times a node was filtered, want at most %d", n, most)
	}
}

// TestClassesThatLookAlikeAreAnsweredAsBefore asks two worlds the same at random: one shares what it finds out about a
// class with those that look alike, the other, without a memory, never does.
func TestClassesThatLookAlikeAreAnsweredAsBefore(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	shared := 0
	f := newCounted(t)
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
		avoid := map[string]bool{"n5": random.IntN(2) == 0}
		var worlds []*Snapshot
		for _, memory := range []*FilterCache{nil, NewFilterCache()} {
			w, err := NewSnapshot(context.Background(), f, nodes, classes, avoid)
			if err != nil {
				t.Fatal(err)
			}
			w.UseCache(memory)
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
				t.Fatalf("round %d: answer alone (-) and shared (+):\n%s", round, diff)
			}
			if answers[0].Node != "" {
				height++
			}
		}
		scans := map[*scan]bool{}
		for _, c := range worlds[1].classes {
			scans[c.scan] = true
		}
		shared += len(classes) - len(scans)
	}
	if shared < 300 {
		t.Errorf("%d classes shared anything: the test compares nothing", shared)
	}
}
