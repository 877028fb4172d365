// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

func mustBuild(t testing.TB, root gang.Node, groups ...gang.Node) *gang.Tree {
	t.Helper()
	tree, err := gang.Build(root, groups)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func leafOf(name, parent string, minimum int32) gang.Node {
	return gang.Node{Name: name, Parent: parent, MinMember: &minimum}
}

func innerOf(name, parent string, minimum int32) gang.Node {
	return gang.Node{Name: name, Parent: parent, MinSubGroup: &minimum}
}

// fill adds a workload whose pods have a GPU each: of the leaves in order, so many pods on the nodes in order.
func (i *instance) fill(w Workload, leaves []string, nodes ...int) {
	for k, n := range nodes {
		w.Pods = append(w.Pods, Pod{ID: len(i.pods), Leaf: leaves[k], Amount: 1})
		i.pods = append(i.pods, running{node: n, gpus: 1})
	}
	i.in.Workloads = append(i.in.Workloads, w)
}

func TestWhichVictims(t *testing.T) {
	t.Parallel()
	two := func(t *testing.T) *gang.Tree { return mustBuild(t, leafOf("", "", 2)) }
	root := []string{"", "", "", ""}
	for _, tc := range []struct {
		name  string
		nodes []int // GPUs
		fill  func(t *testing.T, i *instance)
		pods  int // of the preemptor
		gpus  int
		want  []Victim // nil: hopeless
	}{
		{
			name: "surplus before a plain pod", nodes: []int{4}, pods: 1, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				i.fill(Workload{Name: "plain"}, root, 0)
				i.fill(Workload{Name: "gang", Tree: two(t)}, root, 0, 0, 0)
			},
			want: []Victim{{1, SurplusPod, []int{3}}},
		},
		{
			name: "a gang that ends as a whole has no surplus", nodes: []int{4}, pods: 1, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				i.fill(Workload{Name: "plain"}, root, 0)
				i.fill(Workload{Name: "gang", Tree: two(t), Undivided: map[string]bool{"": true}}, root, 0, 0, 0)
			},
			want: []Victim{{0, PlainPod, []int{0}}},
		},
		{
			name: "a sub-group that ends as a whole has no surplus", nodes: []int{5}, pods: 1, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				tree := mustBuild(t, innerOf("", "", 1), leafOf("a", "", 2), leafOf("b", "", 1))
				i.fill(Workload{Name: "gang", Tree: tree, Undivided: map[string]bool{"b": true}}, []string{"a", "a", "b", "b", "b"}, 0, 0, 0, 0, 0)
			},
			want: []Victim{{0, SurplusSubGroup, []int{0, 1}}},
		},
		{
			name: "a plain pod before a gang", nodes: []int{3}, pods: 1, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				i.fill(Workload{Name: "gang", Tree: two(t)}, root, 0, 0)
				i.fill(Workload{Name: "plain"}, root, 0)
			},
			want: []Victim{{1, PlainPod, []int{2}}},
		},
		{
			name: "one gang of two pods before two plain pods", nodes: []int{4}, pods: 2, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				i.fill(Workload{Name: "plain-a"}, root, 0)
				i.fill(Workload{Name: "gang", Tree: two(t)}, root, 0, 0)
				i.fill(Workload{Name: "plain-b"}, root, 0)
			},
			want: []Victim{{1, WholeGang, []int{1, 2}}},
		},
		{
			name: "a gang of low priority before surplus of a higher one", nodes: []int{5}, pods: 1, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				i.fill(Workload{Name: "high", Priority: 10, Tree: two(t)}, root, 0, 0, 0)
				i.fill(Workload{Name: "low", Priority: 1, Tree: two(t)}, root, 0, 0)
			},
			want: []Victim{{1, WholeGang, []int{3, 4}}},
		},
		{
			name: "a gang over two nodes ends whole", nodes: []int{2, 2}, pods: 1, gpus: 2,
			fill: func(t *testing.T, i *instance) {
				i.fill(Workload{Name: "gang", Tree: two(t)}, root, 0, 1)
				i.fill(Workload{Name: "other", Priority: 5, Tree: two(t)}, root, 0, 1)
			},
			want: []Victim{{0, WholeGang, []int{0, 1}}, {1, WholeGang, []int{2, 3}}},
		},
		{
			name: "the last sub-group of equal ones", nodes: []int{6}, pods: 2, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				tree := mustBuild(t, innerOf("", "", 2), leafOf("a", "", 2), leafOf("b", "", 2), leafOf("c", "", 2))
				i.fill(Workload{Name: "gang", Tree: tree}, []string{"a", "a", "b", "b", "c", "c"}, 0, 0, 0, 0, 0, 0)
			},
			want: []Victim{{0, SurplusSubGroup, []int{4, 5}}},
		},
		{
			name: "a sub-group is not broken, however little is needed", nodes: []int{6}, pods: 1, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				tree := mustBuild(t, innerOf("", "", 2), leafOf("a", "", 2), leafOf("b", "", 2), leafOf("c", "", 2))
				i.fill(Workload{Name: "gang", Tree: tree}, []string{"a", "a", "b", "b", "c", "c"}, 0, 0, 0, 0, 0, 0)
			},
			want: []Victim{{0, SurplusSubGroup, []int{4, 5}}},
		},
		{
			name: "the sub-group that is on the node that is needed", nodes: []int{2, 1, 1}, pods: 1, gpus: 2,
			fill: func(t *testing.T, i *instance) {
				tree := mustBuild(t, innerOf("", "", 1), leafOf("a", "", 2), leafOf("b", "", 2))
				i.fill(Workload{Name: "gang", Tree: tree, MinimumProtected: true}, []string{"a", "a", "b", "b"}, 0, 0, 1, 2)
			},
			want: []Victim{{0, SurplusSubGroup, []int{0, 1}}},
		},
		{
			name: "the only pod of a sub-group that is on the node that is needed", nodes: []int{4, 3, 3}, pods: 1, gpus: 4,
			fill: func(t *testing.T, i *instance) {
				tree := mustBuild(t, innerOf("", "", 1), leafOf("a", "", 2), leafOf("b", "", 2))
				i.fill(Workload{Name: "gang", Priority: 10, Tree: tree}, []string{"a", "b", "a", "b", "a"}, 1, 2, 0, 2, 1)
				i.fill(Workload{Name: "other", Tree: mustBuild(t, leafOf("", "", 3))}, root, 0, 0, 0)
			},
			want: []Victim{{0, SurplusPod, []int{2}}, {1, WholeGang, []int{5, 6, 7}}},
		},
		{
			name: "protected minimums", nodes: []int{2}, pods: 1, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				i.fill(Workload{Name: "gang", Tree: two(t), MinimumProtected: true}, root, 0, 0)
			},
		},
		{
			name: "nobody ends for a gang that cannot be placed", nodes: []int{2}, pods: 3, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				i.fill(Workload{Name: "gang", Tree: two(t)}, root, 0, 0)
			},
		},
		{
			name: "nobody ends if there is room", nodes: []int{3}, pods: 1, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				i.fill(Workload{Name: "gang", Tree: two(t)}, root, 0, 0)
			},
			want: []Victim{},
		},
		{
			name: "a gang below its minimum ends whole", nodes: []int{3}, pods: 1, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				i.fill(Workload{Name: "broken", Tree: mustBuild(t, leafOf("", "", 4))}, root, 0, 0, 0)
			},
			want: []Victim{{0, WholeGang, []int{0, 1, 2}}},
		},
		{
			name: "a gang of whose other sub-group all pods have succeeded", nodes: []int{2}, pods: 2, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				tree := mustBuild(t, innerOf("", "", 1), leafOf("a", "", 1), leafOf("b", "", 1))
				i.fill(Workload{Name: "gang", Tree: tree, Completed: gang.Counts{"a": 1}}, []string{"b"}, 0)
				i.fill(Workload{Name: "plain"}, root, 0)
			},
			want: []Victim{{0, SurplusSubGroup, []int{0}}, {1, PlainPod, []int{1}}},
		},
		{
			name: "the rest of a broken sub-group before anything that runs", nodes: []int{4}, pods: 1, gpus: 1,
			fill: func(t *testing.T, i *instance) {
				tree := mustBuild(t, innerOf("", "", 1), leafOf("a", "", 2), leafOf("b", "", 2))
				i.fill(Workload{Name: "gang", Tree: tree}, []string{"b", "a", "a"}, 0, 0, 0)
				i.fill(Workload{Name: "plain"}, root, 0)
			},
			want: []Victim{{0, SurplusSubGroup, []int{0}}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			i := &instance{classes: []fakeClass{{gpus: tc.gpus}}}
			for _, gpus := range tc.nodes {
				i.nodes = append(i.nodes, fakeNode{gpus: gpus})
			}
			tc.fill(t, i)
			i.in.Problem = problemOf(t, tc.pods)
			w := i.world(t)
			d, result := FindVictims(i.in, w, Budget{})
			w.check(d, i.in.Workloads)
			switch {
			case tc.want == nil && (d != nil || result != Hopeless):
				t.Errorf("decision %+v, result %d, want none", d, result)
			case tc.want != nil && d == nil:
				t.Errorf("result %d, want victims %v", result, tc.want)
			case tc.want != nil:
				if diff := cmp.Diff(tc.want, d.Victims, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("victims (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestBudgetsComeFirst: a pod of higher priority ends rather than one that a PodDisruptionBudget protects.
func TestBudgetsComeFirst(t *testing.T) {
	t.Parallel()
	i := &instance{nodes: []fakeNode{{gpus: 3}}, classes: []fakeClass{{gpus: 1}}}
	for k, p := range []int32{1, 1, 7} {
		i.fill(Workload{Name: fmt.Sprint(k), Priority: p}, []string{""}, 0)
	}
	i.in.Workloads[0].Pods[0].Budgets, i.in.Workloads[1].Pods[0].Budgets = []int{0}, []int{0, 1}
	for _, tc := range []struct {
		allowed    []int
		pods, want int // the first victim
		violations int
	}{
		{[]int{0, 0}, 1, 2, 0},
		{[]int{1, 0}, 1, 0, 0},
		{[]int{1, 1}, 1, 0, 0},
		{[]int{0, 0}, 2, 0, 1},
		{[]int{1, 1}, 3, 0, 1},
		{[]int{9, 9}, 3, 0, 0},
	} {
		i.in.Allowed, i.in.Problem = tc.allowed, problemOf(t, tc.pods)
		w := i.world(t)
		d, _ := FindVictims(i.in, w, Budget{})
		w.check(d, i.in.Workloads)
		if d == nil || d.Victims[0].Workload != tc.want || d.Cost.Violations != tc.violations {
			t.Errorf("%+v: decision %+v", tc, d)
		}
	}
}

// TestProtectedPods counts how many pods semi-preemptible gangs keep. Source: KAI Scheduler's minSubGroups proposal,
// "Non-preemptible pods calculation", and the prefill example with two of four replicas.
func TestProtectedPods(t *testing.T) {
	t.Parallel()
	repeat := func(n int, leaf string) (names []string) {
		for range n {
			names = append(names, leaf)
		}
		return names
	}
	concat := func(lists ...[]string) (all []string) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	roles := []gang.Node{
		innerOf("", "", 2),
		innerOf("decode", "", 2), leafOf("decode-leaders", "decode", 1), leafOf("decode-workers", "decode", 4),
		innerOf("prefill", "", 2), leafOf("prefill-leaders", "prefill", 1), leafOf("prefill-workers", "prefill", 4),
	}
	for _, tc := range []struct {
		name   string
		groups []gang.Node
		leaves []string
		want   int
	}{
		{"two of four replicas with 8 pods", []gang.Node{innerOf("", "", 2), leafOf("a", "", 8), leafOf("b", "", 8), leafOf("c", "", 8), leafOf("d", "", 8)},
			concat(repeat(8, "a"), repeat(8, "b"), repeat(8, "c"), repeat(8, "d")), 16},
		{"leaders and workers, none above the minimum", roles,
			concat(repeat(1, "decode-leaders"), repeat(4, "decode-workers"), repeat(1, "prefill-leaders"), repeat(4, "prefill-workers")), 10},
		{"leaders and workers, three above the minimum", roles,
			concat(repeat(1, "decode-leaders"), repeat(6, "decode-workers"), repeat(2, "prefill-leaders"), repeat(4, "prefill-workers")), 10},
		{"children of different size: the smallest ones", []gang.Node{innerOf("", "", 2), leafOf("a", "", 6), leafOf("b", "", 1), leafOf("c", "", 3)},
			concat(repeat(6, "a"), repeat(1, "b"), repeat(3, "c")), 4},
	} {
		i := &instance{nodes: []fakeNode{{gpus: len(tc.leaves)}}, classes: []fakeClass{{gpus: 1}}}
		i.fill(Workload{Name: "gang", Tree: mustBuild(t, tc.groups[0], tc.groups[1:]...), MinimumProtected: true}, tc.leaves, make([]int, len(tc.leaves))...)
		decides := func(pods int) bool {
			i.in.Problem = problemOf(t, pods)
			d, _ := FindVictims(i.in, i.world(t), Budget{})
			return d != nil
		}
		if surplus := len(tc.leaves) - tc.want; surplus > 0 && !decides(surplus) || decides(surplus+1) {
			t.Errorf("%s: not exactly %d of %d pods are protected", tc.name, tc.want, len(tc.leaves))
		}
	}
}

// TestSearchIsCutShort ends the time of search and World after each number of questions: there is a valid decision
// then, or none at all. The plan for victims that were found before is made in time that is given for it, or not at
// all.
func TestSearchIsCutShort(t *testing.T) {
	t.Parallel()
	i := &instance{nodes: []fakeNode{{gpus: 6}, {gpus: 6}}, classes: []fakeClass{{gpus: 2}}}
	tree := mustBuild(t, leafOf("", "", 2))
	for k := range 4 {
		i.fill(Workload{Name: fmt.Sprint(k), Priority: int32(k), Tree: tree}, []string{"", "", ""}, k%2, k%2, (k+1)%2)
	}
	i.in.Problem = problemOf(t, 3)
	none, some, late := 0, 0, 0
	for limit := 0; limit < 4000; limit += 7 {
		w := i.world(t)
		asked, again, most := 0, 0, limit
		w.expired = func() bool { return asked > most }
		d, result := FindVictims(i.in, w, Budget{
			Plan:  placement.Budget{Expired: func() bool { asked++; return w.expired() }},
			Again: func() { again, most = again+1, asked+100*(limit%2) },
		})
		w.check(d, i.in.Workloads)
		if late += again; again > 1 || again > 0 && (d != nil) != (limit%2 > 0) {
			t.Errorf("after %d questions and %d times more of them the decision is %v", limit, again, d)
		}
		switch {
		case d == nil && result != Cut:
			t.Errorf("after %d questions the result is %d", limit, result)
		case d == nil:
			none++
		default:
			some++
			checkAllowed(t, limit, i, d)
		}
	}
	if none == 0 || some == 0 || late == 0 {
		t.Errorf("%d searches without a decision, %d with one; %d of them had more time", none, some, late)
	}
}

// TestNobodyEndsWhoIsNotNeeded ends the time of searches after any number of questions: the victims are found with
// twice the time again and again, and whoever ends in time is needed. So it is if only the number of plans is bounded.
func TestNobodyEndsWhoIsNotNeeded(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		cut, decided, plans := 0, 0, 0
		for seed := range 200 {
			i := randomInstance(rand.New(rand.NewPCG(uint64(seed), uint64(len(f.name)))), f)
			whole := i.world(t)
			want, _ := FindVictims(i.in, whole, Budget{})
			for limit := 1; ; limit *= 2 {
				w := i.world(t)
				asked, most := 0, limit
				w.expired = func() bool { return asked > most }
				d, result := FindVictims(i.in, w, Budget{
					Plan:  placement.Budget{Expired: func() bool { asked++; return w.expired() }},
					Again: func() { most = math.MaxInt },
				})
				w.check(d, i.in.Workloads)
				switch {
				case result == Cut:
					cut++
				case (d != nil) != (want != nil):
					t.Errorf("%s, seed %d: after %d questions decision %+v, result %d, with all the time %+v", f.name, seed, limit, d, result, want)
				case d != nil:
					decided++
					checkAllowed(t, seed, i, d)
					if asked <= limit { // otherwise the time was over before each victim was tried
						checkMinimal(t, seed, i, d)
					}
				}
				if result != Cut && asked <= limit {
					break
				}
			}
			if d, _ := FindVictims(i.in, i.world(t), Budget{Plans: 8}); d != nil && f.like {
				plans++
				checkMinimal(t, seed, i, d)
			}
		}
		if cut == 0 || decided < 100 || f.like && plans < 20 {
			t.Errorf("%s: %d searches were cut short, %d and %d made a decision", f.name, cut, decided, plans)
		}
	}
}

// TestVictimsOfLikePodsAreCounted frees half of a cluster for pods that are alike: whether a victim can be spared is a
// question of numbers then, not of a plan for each.
func TestVictimsOfLikePodsAreCounted(t *testing.T) {
	t.Parallel()
	const gang = 399
	in, nodes, pods := fullCluster(t, 100)
	in.Problem = problemOf(t, gang)
	w := newCluster(t, nodes, []fakeClass{{gpus: 1}}, pods)
	d, _ := FindVictims(in, w, Budget{})
	w.check(d, in.Workloads)
	if d == nil || d.Cost.Amount != gang {
		t.Fatalf("decision %+v, want one that frees %d GPUs", d, gang)
	}
	if w.asked > 40*gang {
		t.Errorf("a pod was placed %d times for a gang of %d", w.asked, gang)
	}
}

// TestNumbersThatPromiseTooMuch counts pods that do not fit in fact, as filters other than those for resources cause
// it.
func TestNumbersThatPromiseTooMuch(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		for seed := range 300 {
			i := randomInstance(rand.New(rand.NewPCG(uint64(seed), uint64(len(f.name)))), f)
			want, _ := FindVictims(i.in, i.world(t), Budget{})
			w := i.world(t)
			w.unreal = 1 + seed%3
			d, result := FindVictims(i.in, w, Budget{})
			w.check(d, i.in.Workloads)
			if (d == nil) != (want == nil) && !f.affinity { // there the search is not exact
				t.Errorf("%s, seed %d: decision %+v (result %d), want %+v", f.name, seed, d, result, want)
			}
			if d != nil {
				checkAllowed(t, seed, i, d)
				checkMinimal(t, seed, i, d)
			}
		}
	}
}
