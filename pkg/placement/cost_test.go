// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// large returns a gang of n leaves with the given number of pods each, of two classes, of which k leaves are needed,
// and a cluster of nodes with 8 GPUs.
func large(t testing.TB, n, podsPerLeaf, k, nodes int) (placement.Problem, *cluster) {
	t.Helper()
	var groups []gang.Node
	waiting := map[string][]placement.Pod{}
	for i := range n {
		name := fmt.Sprintf("worker%d", i)
		groups = append(groups, leaf(name, "", int32(podsPerLeaf)))
		waiting[name] = pods(name, i%2, podsPerLeaf)
	}
	p := placement.Problem{Tree: mustBuild(t, inner("", "", int32(k)), groups...), Pods: waiting}
	return p, newCluster(t, []class{{gpus: 1}, {gpus: 2}}, gpu8(nodes)...)
}

// A gang that fits without alternatives costs one question per pod and class.
func TestMinimumAsksOncePerPodThatFits(t *testing.T) {
	t.Parallel()
	p, w := large(t, 40, 25, 40, 200)
	plan, short := placement.Minimum(p, w, placement.Budget{})
	if short != nil {
		t.Fatalf("no plan: %+v", short)
	}
	if len(plan) != 1000 || w.calls != 1000 || w.refused != 0 || w.asked != 2 {
		t.Errorf("%d pods planned with %d calls of Place (%d refused) and %d of Capacity and Weight, want 1000 with 1000 (0) and 2",
			len(plan), w.calls, w.refused, w.asked)
	}
}

// A gang that cannot be placed costs a small multiple of its pods plus the budget, regardless of the number of
// choices.
func TestMinimumStopsWithinItsBudget(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T) (placement.Problem, *cluster){
		"identical children": func(t *testing.T) (placement.Problem, *cluster) { return large(t, 100, 8, 90, 60) },
		"children that all differ": func(t *testing.T) (placement.Problem, *cluster) {
			var groups []gang.Node
			var classes []class
			waiting := map[string][]placement.Pod{}
			for i := range 60 {
				name := fmt.Sprintf("worker%d", i)
				groups = append(groups, leaf(name, "", 4))
				classes = append(classes, class{gpus: 1, cpus: i})
				waiting[name] = pods(name, i, 4)
			}
			p := placement.Problem{Tree: mustBuild(t, inner("", "", 50), groups...), Pods: waiting}
			var nodes []node
			for range 10 {
				nodes = append(nodes, node{gpus: 16, cpus: 200})
			}
			return p, newCluster(t, classes, nodes...)
		},
		"blocks that need a rack each": func(t *testing.T) (placement.Problem, *cluster) {
			var groups []gang.Node
			var classes []class
			waiting := map[string][]placement.Pod{}
			for i := range 12 {
				name := fmt.Sprintf("block%d", i)
				groups = append(groups, leaf(name, "", 4))
				classes = append(classes, class{gpus: 8, sameRack: name})
				waiting[name] = pods(name, i, 4)
			}
			p := placement.Problem{Tree: mustBuild(t, inner("", "", 11), groups...), Pods: waiting}
			var nodes []node
			for i := range 40 {
				nodes = append(nodes, node{gpus: 8, rack: fmt.Sprintf("rack%d", i/4)})
			}
			return p, newCluster(t, classes, nodes...)
		},
	}
	for name, build := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, w := build(t)
			waiting := 0
			for _, list := range p.Pods {
				waiting += len(list)
			}
			budget := placement.Budget{Attempts: 30, Placements: 3000}
			_, short := placement.Minimum(p, w, budget)
			if short == nil {
				t.Fatal("a plan was found, want none")
			}
			t.Logf("%d pods: %d calls of Place, %d attempts, exhausted %v", waiting, w.calls, short.Attempts, short.Exhausted)
			// The walk that explains tries each pod once more.
			if most := 5*waiting + budget.Placements; w.calls > most || short.Attempts > budget.Attempts {
				t.Errorf("%d calls of Place and %d attempts, want at most %d and %d", w.calls, short.Attempts, most, budget.Attempts)
			}
		})
	}
}

// BenchmarkMinimumWorst is the largest tree, with a different class in every leaf and room for one leaf too few: the
// budget ends the search.
func BenchmarkMinimumWorst(b *testing.B) {
	var groups []gang.Node
	var classes []class
	waiting := map[string][]placement.Pod{}
	for i := range gang.MaxGroups {
		name := fmt.Sprintf("worker%d", i)
		groups = append(groups, leaf(name, "", 1))
		classes = append(classes, class{gpus: 1, cpus: i % 7})
		waiting[name] = pods(name, i, 1)
	}
	p := placement.Problem{Tree: mustBuild(b, inner("", "", gang.MaxGroups-10), groups...), Pods: waiting}
	w := newCluster(b, classes, node{gpus: gang.MaxGroups - 11, cpus: 1 << 20})
	b.ReportAllocs()
	for b.Loop() {
		if _, short := placement.Minimum(p, w, placement.Budget{}); short == nil {
			b.Fatal("a plan was found, want none")
		}
	}
	b.ReportMetric(float64(w.calls)/float64(b.N), "calls/op")
}

func BenchmarkMinimum(b *testing.B) {
	for name, nodes := range map[string]int{"fits": 200, "cannot fit": 120} {
		b.Run(name, func(b *testing.B) {
			p, w := large(b, 40, 25, 40, nodes)
			b.ReportAllocs()
			for b.Loop() {
				placement.Minimum(p, w, placement.Budget{})
				w.Undo(len(w.stack))
			}
		})
	}
}
