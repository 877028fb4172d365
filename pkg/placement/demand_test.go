// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

func TestMayFit(t *testing.T) {
	t.Parallel()
	flat := func(t testing.TB, n int32) *gang.Tree { t.Helper(); return mustBuild(t, leaf("", "", n)) }
	tests := map[string]struct {
		tree     func(testing.TB) *gang.Tree
		have     gang.Counts
		pods     map[string][]placement.Pod
		capacity []int
		want     bool
	}{
		"80 like pods where 40 fit": {
			tree: func(t testing.TB) *gang.Tree { return flat(t, 80) }, pods: rootPods(80), capacity: []int{40},
		},
		"80 like pods where 80 fit": {
			tree: func(t testing.TB) *gang.Tree { return flat(t, 80) }, pods: rootPods(80), capacity: []int{80}, want: true,
		},
		"pods that count already are not needed again": {
			tree: func(t testing.TB) *gang.Tree { return flat(t, 80) }, have: gang.Counts{"": 40},
			pods: rootPods(40), capacity: []int{40}, want: true,
		},
		"too few pods": {
			tree: func(t testing.TB) *gang.Tree { return flat(t, 3) }, pods: waiting(pods("root", 0, 2)), capacity: []int{math.MaxInt},
		},
		"a satisfied tree needs nothing": {
			tree: func(t testing.TB) *gang.Tree { return flat(t, 3) }, have: gang.Counts{"": 3}, want: true,
		},
		"three of four children": {
			tree: func(t testing.TB) *gang.Tree { return prefill(t, 3, 2) }, have: gang.Counts{"p1": 2},
			pods: waiting(pods("p0", 0, 2), pods("p1", 0, 1), pods("p2", 0, 2), pods("p3", 0, 2)), capacity: []int{4}, want: true,
		},
		"three of four children, one pod too few": {
			tree: func(t testing.TB) *gang.Tree { return prefill(t, 3, 2) }, have: gang.Counts{"p1": 2},
			pods: waiting(pods("p0", 0, 2), pods("p1", 0, 1), pods("p2", 0, 2), pods("p3", 0, 2)), capacity: []int{3},
		},
		"a child of another class replaces the one without capacity": {
			tree: func(t testing.TB) *gang.Tree { return prefill(t, 2, 2) },
			pods: waiting(pods("p0", 0, 2), pods("p1", 1, 2), pods("p2", 1, 2)), capacity: []int{0, 4}, want: true,
		},
		"no child of another class is available": {
			tree: func(t testing.TB) *gang.Tree { return prefill(t, 3, 2) },
			pods: waiting(pods("p0", 0, 2), pods("p1", 1, 2), pods("p2", 1, 2)), capacity: []int{0, 4},
		},
		"each class would fit with others beside it, all together do not": {
			tree:     func(t testing.TB) *gang.Tree { return prefill(t, 2, 6) },
			pods:     waiting(append(pods("p0", 0, 6), pods("p0", 1, 6)...), append(pods("p1", 0, 6), pods("p1", 1, 6)...)),
			capacity: []int{5, 5},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := placement.Problem{Tree: tt.tree(t), Have: tt.have, Pods: tt.pods}
			if got := placement.MayFit(p, func(class int) int { return tt.capacity[class] }); got != tt.want {
				t.Errorf("MayFit is %t, want %t", got, tt.want)
			}
		})
	}
}

// rootPods returns n waiting pods of class 0 for a tree that is one leaf.
func rootPods(n int) map[string][]placement.Pod {
	return map[string][]placement.Pod{"": pods("root", 0, n)}
}

// TestMayFitIsNecessary compares with a plain recursion over the whole tree for every class, and with the exact
// solution: for an instance that has a plan MayFit never returns false.
func TestMayFitIsNecessary(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(31, 37))
	answers := map[bool]int{}
	for round := range 6000 {
		p, w := randomInstance(t, r, variety{classes: 1 + r.IntN(4), racks: true})
		demand := placement.NewDemand(p)
		for range 3 {
			capacity := make([]int, 4)
			for c := range capacity {
				capacity[c] = r.IntN(8)
			}
			want := mayFit(p, capacity)
			answers[want]++
			if got := demand.MayFit(func(class int) int { return capacity[class] }); got != want {
				t.Fatalf("round %d: MayFit is %t with %v, want %t", round, got, capacity, want)
			}
		}
		if round%4 == 0 && solvable(p, w, false) && !demand.MayFit(func(class int) int { return w.Capacity(class).Pods }) {
			t.Fatalf("round %d: MayFit is false, but there is a plan", round)
		}
	}
	if answers[true] < 2000 || answers[false] < 2000 {
		t.Errorf("%v: the instances are no test", answers)
	}
}

// mayFit is a straightforward implementation of MayFit that ignores its cost.
func mayFit(p placement.Problem, capacity []int) bool {
	sum := 0
	for class, n := range capacity {
		waiting := 0
		for _, l := range p.Tree.Leaves() {
			waiting += countOf(p, l, class)
		}
		sum += min(n, waiting)
		if pods, ok := leastOf(p, p.Tree.Root(), capacity, class); !ok || pods > n {
			return false
		}
	}
	pods, ok := leastOf(p, p.Tree.Root(), capacity, -1)
	return ok && pods <= sum
}

func countOf(p placement.Problem, leaf *gang.Group, class int) int {
	n := 0
	for _, pod := range p.Pods[leaf.Name()] {
		if pod.Class == class {
			n++
		}
	}
	return n
}

// leastOf returns the fewest pods of the class that satisfy the group. class -1 means any class.
func leastOf(p placement.Problem, g *gang.Group, capacity []int, class int) (int, bool) {
	if g.Satisfied(p.Have) {
		return 0, true
	}
	if g.IsLeaf() {
		missing, others, all := g.Min()-p.Have[g.Name()], 0, 0
		for c := range capacity {
			n := min(countOf(p, g, c), capacity[c])
			all += n
			if c != class {
				others += n
			}
		}
		if class < 0 {
			others = 0
		}
		return max(0, missing-others), all >= missing
	}
	var each []int
	for _, child := range g.Children() {
		if n, ok := leastOf(p, child, capacity, class); ok {
			each = append(each, n)
		}
	}
	if len(each) < g.Min() {
		return 0, false
	}
	slices.Sort(each)
	sum := 0
	for _, n := range each[:g.Min()] {
		sum += n
	}
	return sum, true
}

func BenchmarkMayFit(b *testing.B) {
	for _, classes := range []int{1, 8, 1024} {
		b.Run(fmt.Sprintf("1024 leaves of 8, %d classes", classes), func(b *testing.B) {
			p := wide(b, 1024, 8, 900, classes)
			demand := placement.NewDemand(p)
			capacity := func(int) int { return 8 * 899 / classes }
			b.ReportAllocs()
			for b.Loop() {
				demand.MayFit(capacity)
			}
		})
		b.Run(fmt.Sprintf("1024 leaves of 8, %d classes, prepared each time", classes), func(b *testing.B) {
			p := wide(b, 1024, 8, 900, classes)
			b.ReportAllocs()
			for b.Loop() {
				placement.MayFit(p, func(int) int { return 8 * 899 / classes })
			}
		})
	}
}

// wide returns a gang of leaves below the root with the given number of pods each, of which some are needed. The
// classes alternate leaf by leaf.
func wide(t testing.TB, leaves, podsPerLeaf, needed, classes int) placement.Problem {
	t.Helper()
	groups := make([]gang.Node, leaves)
	waiting := make(map[string][]placement.Pod, leaves)
	for i := range groups {
		name := fmt.Sprintf("worker%d", i)
		groups[i] = leaf(name, "", int32(podsPerLeaf))
		waiting[name] = pods(name, i%classes, podsPerLeaf)
	}
	return placement.Problem{Tree: mustBuild(t, inner("", "", int32(needed)), groups...), Pods: waiting}
}
