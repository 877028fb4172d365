// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/gang"
)

// TestTallyAgreesWithTheCounts adds and removes pods at random and compares the Tally with a walk over the tree.
func TestTallyAgreesWithTheCounts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 11))
	for round := range 500 {
		s := randomSpec(r, 12)
		tree, err := gang.Build(s.root, s.groups)
		if err != nil {
			t.Fatalf("round %d: %v\n%+v", round, err, s)
		}
		tally, counts := gang.NewTally(tree), gang.Counts{}
		var copied *gang.Tally
		var copiedCounts gang.Counts
		for step := range 60 {
			leaf := tree.Leaves()[r.IntN(len(tree.Leaves()))]
			n := r.IntN(5) - 2
			if counts[leaf.Name()]+n < 0 {
				n = -counts[leaf.Name()]
			}
			tally.Add(leaf, n)
			if counts[leaf.Name()] += n; counts[leaf.Name()] == 0 {
				delete(counts, leaf.Name())
			}
			checkTally(t, tree, tally, counts)
			if step == 30 {
				copied, copiedCounts = tally.Clone(), tally.Counts()
			}
		}
		checkTally(t, tree, copied, copiedCounts)
	}
}

func checkTally(t *testing.T, tree *gang.Tree, tally *gang.Tally, counts gang.Counts) {
	t.Helper()
	if diff := cmp.Diff(counts, tally.Counts()); diff != "" {
		t.Fatalf("Counts (-want +got):\n%s", diff)
	}
	for _, g := range append([]*gang.Group{tree.Root()}, tree.Groups()...) {
		pods := 0
		for _, leaf := range tree.Leaves() {
			for above := leaf; above != nil; above = above.Parent() {
				if above == g {
					pods += counts[leaf.Name()]
				}
			}
		}
		have := counts[g.Name()]
		if !g.IsLeaf() {
			have = g.SatisfiedChildren(counts)
		}
		if got, want := tally.Satisfied(g), g.Satisfied(counts); got != want {
			t.Fatalf("%s is satisfied: %v, want %v by %v", g.Path(), got, want, counts)
		}
		if tally.Have(g) != have || tally.Pods(g) != pods {
			t.Fatalf("%s has %d and %d pods, want %d and %d by %v", g.Path(), tally.Have(g), tally.Pods(g), have, pods, counts)
		}
		partial := g.Parent() != nil && pods > 0 && !g.Satisfied(counts)
		if got := slices.Contains(tally.Partial(), g); got != partial {
			t.Fatalf("%s is partial: %v, want %v by %v", g.Path(), got, partial, counts)
		}
	}
}

func BenchmarkTally(b *testing.B) {
	tree, err := gang.Build(gang.Node{}, []gang.Node{{Name: "p"}, {Name: "l", Parent: "p", MinMember: new(int32(20000))}})
	if err != nil {
		b.Fatal(err)
	}
	tally := gang.NewTally(tree)
	b.ReportAllocs()
	for b.Loop() {
		tally.Add(tree.Leaves()[0], 1)
		tally.Add(tree.Leaves()[0], -1)
	}
}
