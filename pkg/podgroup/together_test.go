// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// inventoried are capacities with the nodes behind them.
type inventoried struct {
	fakeCapacities
	nodes *Inventory
}

func (f inventoried) Inventory(placement.Problem) *Inventory { return f.nodes }

// nodesOf returns like nodes with 8 GPUs and 64 CPUs, free ones first, and the capacity of the classes, of which each pod
// requests GPUs and CPUs.
func nodesOf(nodes, free int, requests ...[2]int64) inventoried {
	v := &Inventory{Resources: []corev1.ResourceName{"nvidia.com/gpu", "cpu"}, Apart: make([][][]int32, len(requests))}
	f := inventoried{nodes: v}
	for _, r := range requests {
		v.Requests = append(v.Requests, []int64{r[0], r[1]})
		f.fakeCapacities = append(f.fakeCapacities, ResourceCapacity{Resource: "nvidia.com/gpu", PerPod: r[0], Free: int64(8 * free), Total: int64(8 * nodes),
			Largest: 8, LargestFree: 8, Nodes: nodes, Offering: nodes, Slots: nodes * int(8/r[0]), SlotsNow: free * int(8/r[0])})
	}
	for i := range nodes {
		n := InventoryNode{Total: []int64{8, 64}, Free: []int64{0, 0}, Matches: make([]bool, len(requests)), Closed: make([]bool, len(requests)), Taken: make([]bool, len(requests))}
		if i < free {
			n.Free = []int64{8, 64}
		}
		for c := range requests {
			n.Matches[c] = true
		}
		v.Nodes = append(v.Nodes, n)
	}
	return f
}

// withFree returns the nodes, of which the free ones have only so many GPUs free.
func withFree(f inventoried, gpus int64) inventoried {
	for i := range f.nodes.Nodes {
		f.nodes.Nodes[i].Free[0] = min(f.nodes.Nodes[i].Free[0], gpus)
	}
	return f
}

// leavesOf returns the problem of a gang that needs some of its leaves; the pods of leaf i are of class i modulo the number of
// classes.
func leavesOf(t testing.TB, need, leaves, pods, classes int) placement.Problem {
	t.Helper()
	var groups []gang.Node
	p := placement.Problem{Pods: map[string][]placement.Pod{}}
	for i := range leaves {
		name := fmt.Sprintf("l%d", i)
		groups = append(groups, leafNode(name, "", int32(pods)))
		p.Pods[name] = waiting(pods, i%classes)
	}
	p.Tree = build(t, int32(need), groups...)
	return p
}

func TestReasonOfSeveralClasses(t *testing.T) {
	t.Parallel()
	five := [][2]int64{{5, 1}, {5, 2}}
	manyChoices := leavesOf(t, 13, 32, 1, 4) // a node holds two pods of the first class, or one of the other
	for _, pods := range manyChoices.Pods {
		pods[0].Class = min(pods[0].Class, 1)
	}
	for name, tc := range map[string]struct {
		problem placement.Problem
		world   inventoried
		reason  v2alpha2.Reason
		text    string
	}{
		"as many nodes as pods would be needed, of two sizes": {
			leavesOf(t, 2, 2, 11, 2), nodesOf(20, 20, five...), v2alpha2.ReasonTooLarge,
			"the gang needs 22 pods, and the nodes that they may use would hold only 20 of them if they were empty",
		},
		"a choice of very many children": { // which a search that did not end would try for years
			manyChoices, nodesOf(16, 8, [2]int64{4, 32}, [2]int64{1, 33}), v2alpha2.ReasonFragmented, "",
		},
		"both classes together are short": {
			leavesOf(t, 2, 2, 2, 2), nodesOf(8, 1, [2]int64{4, 1}, [2]int64{8, 1}), v2alpha2.ReasonInsufficientGPUs,
			"the gang needs 24 nvidia.com/gpu for 4 pods, 8 are free",
		},
		"both classes together are short, in pieces too small for either": {
			leavesOf(t, 2, 2, 2, 2), withFree(nodesOf(8, 3, [2]int64{4, 1}, [2]int64{8, 1}), 3), v2alpha2.ReasonInsufficientGPUs,
			"the gang needs 24 nvidia.com/gpu for 4 pods, 9 are free, at most 3 on one node",
		},
		"each class would fit alone": {
			leavesOf(t, 2, 2, 1, 2), nodesOf(8, 2, [2]int64{3, 1}, [2]int64{8, 64}), v2alpha2.ReasonFragmented, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			known := &knownCapacities{Capacities: tc.world, seen: map[int]ResourceCapacity{}}
			reason, text := newTogether(tc.problem, known).judgeTogether(nil)
			if reason != tc.reason || text != tc.text {
				t.Errorf("%s: %q, want %s: %q", reason, text, tc.reason, tc.text)
			}
		})
	}
}

// BenchmarkSeveralClasses is what the reason of a gang of 19,968 pods in 128 leaves costs on 5,000 nodes, without the copy of
// the nodes.
func BenchmarkSeveralClasses(b *testing.B) {
	for _, classes := range []int{2, 6} {
		requests := make([][2]int64, classes)
		for i := range requests {
			requests[i] = [2]int64{2, int64(1 + i)}
		}
		world := nodesOf(5000, 2500, requests...)
		p := leavesOf(b, 128, 128, 156, classes)
		b.Run(fmt.Sprintf("classes=%d", classes), func(b *testing.B) {
			for b.Loop() {
				newTogether(p, &knownCapacities{Capacities: world, seen: map[int]ResourceCapacity{}}).judgeTogether(nil)
			}
		})
	}
}

func TestSeveralClassesAreJudgedTogetherUpToALimit(t *testing.T) {
	t.Parallel()
	for classes, want := range map[int]bool{1: false, 2: true, maxClasses: true, maxClasses + 1: false} {
		requests := make([][2]int64, classes)
		for i := range requests {
			requests[i] = [2]int64{1, int64(i)}
		}
		known := &knownCapacities{Capacities: nodesOf(2, 2, requests...), seen: map[int]ResourceCapacity{}}
		if got := newTogether(leavesOf(t, classes, classes, 1, classes), known) != nil; got != want {
			t.Errorf("%d classes: %t, want %t", classes, got, want)
		}
	}
}
