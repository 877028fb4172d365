// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/gang"
)

func mustBuild(t testing.TB, root gang.Node, groups ...gang.Node) *gang.Tree {
	t.Helper()
	tree, err := gang.Build(root, groups)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// threeOfFour is the single-level example of KAI Scheduler's minSubGroups proposal.
func threeOfFour(t testing.TB) *gang.Tree {
	t.Helper()
	return mustBuild(t, inner("", "", 3), leaf("p0", "", 8), leaf("p1", "", 8), leaf("p2", "", 8), leaf("p3", "", 8))
}

// leaderWorkers is the two-level example of KAI Scheduler's minSubGroups proposal.
func leaderWorkers(t testing.TB) *gang.Tree {
	t.Helper()
	return mustBuild(t, inner("", "", 2),
		inner("decode", "", 2), leaf("dl", "decode", 1), leaf("dw", "decode", 4),
		inner("prefill", "", 2), leaf("pl", "prefill", 1), leaf("pw", "prefill", 4))
}

func TestQuorum(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		tree        func(testing.TB) *gang.Tree
		counts      gang.Counts
		satisfied   bool
		missingPods int
		missing     []string // path have/need
		surplus     int      // of a satisfied tree
	}{
		"nothing yet": {
			tree: threeOfFour, missingPods: 24,
			missing: []string{"root 0/3", "p0 0/8", "p1 0/8", "p2 0/8", "p3 0/8"},
		},
		"any three of four satisfy, the fourth is not missing": {
			tree: threeOfFour, counts: gang.Counts{"p0": 8, "p2": 8, "p3": 8}, satisfied: true,
		},
		"24 pods in four children satisfy nothing": {
			tree: threeOfFour, counts: gang.Counts{"p0": 6, "p1": 6, "p2": 6, "p3": 6}, missingPods: 6,
			missing: []string{"root 0/3", "p0 6/8", "p1 6/8", "p2 6/8", "p3 6/8"},
		},
		"two satisfied, K is three: one more child is enough": {
			tree: threeOfFour, counts: gang.Counts{"p0": 8, "p1": 8, "p3": 7}, missingPods: 1,
			missing: []string{"root 2/3", "p3 7/8", "p2 0/8"},
		},
		"pods in a leaf come before an empty leaf, the more starved before the less": {
			tree: threeOfFour, counts: gang.Counts{"p1": 6, "p3": 3}, missingPods: 2 + 5 + 8,
			missing: []string{"root 0/3", "p3 3/8", "p1 6/8", "p0 0/8", "p2 0/8"},
		},
		"pods above minMember and a fourth child are surplus": {
			tree: threeOfFour, counts: gang.Counts{"p0": 9, "p1": 8, "p2": 10, "p3": 8}, satisfied: true,
			surplus: 1 + 2 + 8,
		},
		"the minimum uses the smallest of the satisfied children": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, inner("", "", 1), leaf("a", "", 3), leaf("b", "", 1))
			},
			counts: gang.Counts{"a": 3, "b": 2}, satisfied: true,
			surplus: 4,
		},
		"an optional child below its own minimum is surplus": {
			tree: threeOfFour, counts: gang.Counts{"p0": 2, "p1": 8, "p2": 8, "p3": 8}, satisfied: true,
			surplus: 2,
		},
		"heterogeneous children: decode twice is not decode and prefill": {
			tree: leaderWorkers, counts: gang.Counts{"dl": 2, "dw": 8}, missingPods: 5,
			missing: []string{"root 1/2", "prefill 0/2", "prefill/pl 0/1", "prefill/pw 0/4"},
		},
		"leaders do not make up for workers": {
			tree: leaderWorkers, counts: gang.Counts{"dl": 1, "dw": 4, "pl": 5}, missingPods: 4,
			missing: []string{"root 1/2", "prefill 1/2", "prefill/pw 0/4"},
		},
		"unknown names and inner groups are not counted": {
			tree: leaderWorkers, counts: gang.Counts{"decode": 9, "nobody": 9, "": 9}, missingPods: 10,
			missing: []string{
				"root 0/2", "decode 0/2", "decode/dl 0/1", "decode/dw 0/4", "prefill 0/2", "prefill/pl 0/1", "prefill/pw 0/4",
			},
		},
		"below an optional group nothing is missing": {
			tree: func(t testing.TB) *gang.Tree {
				return mustBuild(t, inner("", "", 1), bare("a", ""), leaf("a1", "a", 1), leaf("a2", "a", 1), leaf("b", "", 1))
			},
			counts: gang.Counts{"a1": 1, "b": 1}, satisfied: true,
			surplus: 1,
		},
		"a PodGroup without sub-groups is one leaf without a name": {
			tree:   func(t testing.TB) *gang.Tree { return mustBuild(t, leaf("", "", 4)) },
			counts: gang.Counts{"": 3}, missingPods: 1,
			missing: []string{"root 3/4"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := tt.tree(t)
			if got := tree.Satisfied(tt.counts); got != tt.satisfied {
				t.Errorf("Satisfied = %v, want %v", got, tt.satisfied)
			}
			if got := tree.MissingPods(tt.counts); got != tt.missingPods {
				t.Errorf("MissingPods = %d, want %d", got, tt.missingPods)
			}
			var missing []string
			for _, l := range tree.Missing(tt.counts) {
				missing = append(missing, fmt.Sprintf("%s %d/%d", l.Group.Path(), l.Have, l.Need))
			}
			if diff := cmp.Diff(tt.missing, missing); diff != "" {
				t.Errorf("Missing (-want +got):\n%s", diff)
			}
			if tt.satisfied && tree.SurplusPods(tt.counts) != tt.surplus {
				t.Errorf("SurplusPods = %d, want %d", tree.SurplusPods(tt.counts), tt.surplus)
			}
		})
	}
}

// spec is a random specification together with the data that the oracle needs: only names, no code of the package.
type spec struct {
	root   gang.Node
	groups []gang.Node
}

// randomSpec generates a valid tree of at most n groups and four levels, with children declared before or after their
// parents.
func randomSpec(r *rand.Rand, n int) spec {
	depth := map[string]int{"": 0}
	names := []string{""}
	children := map[string]int{}
	var s spec
	for i := range r.IntN(n + 1) {
		parent := names[r.IntN(len(names))]
		for depth[parent] == 4 {
			parent = names[r.IntN(len(names))]
		}
		name := fmt.Sprintf("g%d", i)
		depth[name] = depth[parent] + 1
		children[parent]++
		names = append(names, name)
		s.groups = append(s.groups, gang.Node{Name: name, Parent: parent})
	}
	minimums := func(n *gang.Node) {
		if k := children[n.Name]; k > 0 {
			if r.IntN(3) > 0 {
				n.MinSubGroup = new(int32(1 + r.IntN(k)))
			}
		} else if n.Name != "" || r.IntN(2) == 0 {
			n.MinMember = new(int32(1 + r.IntN(3)))
		}
	}
	minimums(&s.root)
	for i := range s.groups {
		minimums(&s.groups[i])
	}
	r.Shuffle(len(s.groups), func(i, j int) { s.groups[i], s.groups[j] = s.groups[j], s.groups[i] })
	return s
}

// satisfiedByHand is the oracle: it applies the definition of KAI Scheduler's minSubGroups proposal to the
// specification.
func (s spec) satisfiedByHand(n gang.Node, c map[string]int) bool {
	satisfied, children := 0, 0
	for _, child := range s.groups {
		if child.Parent != n.Name {
			continue
		}
		children++
		if s.satisfiedByHand(child, c) {
			satisfied++
		}
	}
	switch {
	case children == 0 && n.MinMember == nil:
		return c[n.Name] >= 1
	case children == 0:
		return c[n.Name] >= int(*n.MinMember)
	case n.MinSubGroup == nil:
		return satisfied == children
	default:
		return satisfied >= int(*n.MinSubGroup)
	}
}

func TestRandomTreesAgreeWithTheOracle(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 3))
	for round := range 3000 {
		s := randomSpec(r, 12)
		tree, err := gang.Build(s.root, s.groups)
		if err != nil {
			t.Fatalf("round %d: %v\n%+v", round, err, s)
		}
		checkInvariants(t, tree, len(s.groups))
		for range 5 {
			c := gang.Counts{}
			for _, l := range tree.Leaves() {
				c[l.Name()] = r.IntN(l.Min() + 2)
			}
			if got, want := tree.Satisfied(c), s.satisfiedByHand(s.root, c); got != want {
				t.Fatalf("round %d: Satisfied(%v) = %v, want %v\n%+v", round, c, got, want, s)
			}
			for _, n := range s.groups {
				if got, want := tree.Group(n.Name).Satisfied(c), s.satisfiedByHand(n, c); got != want {
					t.Fatalf("round %d: %s.Satisfied(%v) = %v, want %v\n%+v", round, n.Name, c, got, want, s)
				}
			}
			checkQuorum(t, tree, s, c)
		}
	}
}

// checkQuorum checks the properties of Missing, MissingPods and Surplus that hold for any counts.
func checkQuorum(t *testing.T, tree *gang.Tree, s spec, c gang.Counts) {
	t.Helper()
	satisfied := tree.Satisfied(c)
	if (tree.MissingPods(c) == 0) != satisfied {
		t.Fatalf("MissingPods(%v) = %d, Satisfied = %v\n%+v", c, tree.MissingPods(c), satisfied, s)
	}

	// Missing lists exactly the groups that are below their minimum, and below no satisfied one, each once.
	named := map[*gang.Group]bool{}
	for _, l := range tree.Missing(c) {
		if named[l.Group] || l.Have >= l.Need {
			t.Fatalf("Missing(%v) names %s twice or unnecessarily\n%+v", c, l.Group.Path(), s)
		}
		named[l.Group] = true
	}
	for _, g := range slices.Concat([]*gang.Group{tree.Root()}, tree.Groups()) {
		isMissing := true
		for up := g; up != nil; up = up.Parent() {
			isMissing = isMissing && !up.Satisfied(c)
		}
		if named[g] != isMissing {
			t.Fatalf("Missing(%v) names %s: %v, want %v\n%+v", c, g.Path(), named[g], isMissing, s)
		}
	}

	// A satisfied tree stays satisfied without its surplus, and is not satisfied if one more pod is removed.
	if !satisfied {
		return
	}
	pods := 0
	for _, n := range c {
		pods += n
	}
	if core := pods - tree.SurplusPods(c); !s.coresByHand(s.root, c)[core] {
		t.Fatalf("SurplusPods(%v) = %d leaves %d pods, which is no minimum\n%+v", c, tree.SurplusPods(c), core, s)
	}
}

// coresByHand returns the sizes of all sets of counted pods that satisfy a group, and do not without any one of them.
func (s spec) coresByHand(n gang.Node, c map[string]int) map[int]bool {
	if !s.satisfiedByHand(n, c) {
		return nil
	}
	var children []map[int]bool
	for _, child := range s.groups {
		if child.Parent == n.Name {
			children = append(children, s.coresByHand(child, c))
		}
	}
	if len(children) == 0 {
		if n.MinMember == nil {
			return map[int]bool{1: true}
		}
		return map[int]bool{int(*n.MinMember): true}
	}
	most := len(children)
	if n.MinSubGroup != nil {
		most = int(*n.MinSubGroup)
	}
	sums := make([]map[int]bool, most+1) // by number of children
	for k := range sums {
		sums[k] = map[int]bool{}
	}
	sums[0][0] = true
	for _, child := range children {
		for k := most; k > 0; k-- {
			for pods := range child {
				for sum := range sums[k-1] {
					sums[k][sum+pods] = true
				}
			}
		}
	}
	return sums[most]
}

// TestMissingPodsIsTheFewest compares MissingPods with trying every way of adding pods, on small trees.
func TestMissingPodsIsTheFewest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 7))
	for round := range 1500 {
		s := randomSpec(r, 6)
		tree, err := gang.Build(s.root, s.groups)
		if err != nil {
			t.Fatal(err)
		}
		c := gang.Counts{}
		for _, l := range tree.Leaves() {
			c[l.Name()] = r.IntN(l.Min() + 1)
		}
		fewest := 1 << 30
		var try func(i, added int)
		try = func(i, added int) {
			if i == len(tree.Leaves()) {
				if s.satisfiedByHand(s.root, c) {
					fewest = min(fewest, added)
				}
				return
			}
			l := tree.Leaves()[i]
			had := c[l.Name()]
			for ; c[l.Name()] <= l.Min(); c[l.Name()]++ {
				try(i+1, added+c[l.Name()]-had)
			}
			c[l.Name()] = had
		}
		try(0, 0)
		if got := tree.MissingPods(c); got != fewest {
			t.Fatalf("round %d: MissingPods(%v) = %d, want %d\n%+v", round, c, got, fewest, s)
		}
	}
}
