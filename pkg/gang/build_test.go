// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/gang"
)

// leaf, inner and bare return the three forms of a sub-group.
func leaf(name, parent string, minMember int32) gang.Node {
	return gang.Node{Name: name, Parent: parent, MinMember: &minMember}
}

func inner(name, parent string, minSubGroup int32) gang.Node {
	return gang.Node{Name: name, Parent: parent, MinSubGroup: &minSubGroup}
}

func bare(name, parent string) gang.Node { return gang.Node{Name: name, Parent: parent} }

// chain returns inner groups level-1 .. level-(n-1), each below the one before, and a leaf at level n.
func chain(n int) []gang.Node {
	var groups []gang.Node
	parent := ""
	for i := 1; i < n; i++ {
		name := fmt.Sprintf("level-%d", i)
		groups = append(groups, bare(name, parent))
		parent = name
	}
	return append(groups, leaf(fmt.Sprintf("level-%d", n), parent, 1))
}

func leaves(n int) []gang.Node {
	groups := make([]gang.Node, n)
	for i := range groups {
		groups[i] = leaf(fmt.Sprintf("leaf-%d", i), "", 1)
	}
	return groups
}

func both(n gang.Node, minMember int32) gang.Node {
	n.MinMember = &minMember
	return n
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	type problem struct {
		Index int
		Kind  gang.Kind
		Field string
	}
	tests := map[string]struct {
		root   gang.Node
		groups []gang.Node
		want   []problem
	}{
		"a root without sub-groups and minMember 0": {
			root: leaf("", "", 0),
			want: []problem{{-1, gang.NotPositive, "minMember"}},
		},
		"a negative root minMember, even beside minSubGroup": {
			root:   both(inner("", "", 1), -1),
			groups: leaves(1),
			want:   []problem{{-1, gang.NotPositive, "minMember"}},
		},
		"root minMember 0 with sub-groups but without minSubGroup": {
			root:   leaf("", "", 0),
			groups: leaves(1),
			want:   []problem{{-1, gang.NotPositive, "minMember"}},
		},
		"both minimums on the root": {
			root:   both(inner("", "", 3), 24),
			groups: leaves(4),
			want:   []problem{{-1, gang.BothMinimums, "minMember"}},
		},
		"minSubGroup on a root without sub-groups": {
			root: inner("", "", 1),
			want: []problem{{-1, gang.MinSubGroupOnLeaf, "minSubGroup"}},
		},
		"minSubGroup above the number of children of the root": {
			root:   inner("", "", 5),
			groups: leaves(4),
			want:   []problem{{-1, gang.MinSubGroupTooLarge, "minSubGroup"}},
		},
		"minSubGroup that counts grandchildren": {
			root:   inner("", "", 2),
			groups: []gang.Node{bare("a", ""), leaf("b", "a", 1)},
			want:   []problem{{-1, gang.MinSubGroupTooLarge, "minSubGroup"}},
		},
		"minSubGroup 0": {
			root:   inner("", "", 0),
			groups: leaves(1),
			want:   []problem{{-1, gang.NotPositive, "minSubGroup"}},
		},
		"minSubGroup on a leaf": {
			groups: []gang.Node{inner("prefill-0", "", 2)},
			want:   []problem{{0, gang.MinSubGroupOnLeaf, "minSubGroup"}},
		},
		"a leaf without minMember": {
			groups: []gang.Node{bare("prefill-0", "")},
			want:   []problem{{0, gang.MinMemberRequired, "minMember"}},
		},
		"a leaf with minMember 0, and one with a negative one": {
			groups: []gang.Node{leaf("a", "", 0), leaf("b", "", -3)},
			want:   []problem{{0, gang.NotPositive, "minMember"}, {1, gang.NotPositive, "minMember"}},
		},
		"both minimums on a leaf": {
			groups: []gang.Node{both(inner("a", "", 1), 1)},
			want:   []problem{{0, gang.BothMinimums, "minSubGroup"}},
		},
		"minMember on an inner group": {
			groups: []gang.Node{leaf("a", "", 2), leaf("b", "a", 1)},
			want:   []problem{{0, gang.MinMemberOnInner, "minMember"}},
		},
		"minMember 0 beside minSubGroup on an inner group: the exception is the root's": {
			groups: []gang.Node{both(inner("a", "", 1), 0), leaf("b", "a", 1)},
			want:   []problem{{0, gang.NotPositive, "minMember"}},
		},
		"two groups of one name": {
			groups: []gang.Node{leaf("a", "", 1), leaf("b", "", 1), leaf("a", "", 1)},
			want:   []problem{{2, gang.DuplicateName, "name"}},
		},
		"names that no pod could carry": {
			groups: []gang.Node{leaf("", "", 1), leaf("a/b", "", 1), leaf("-a", "", 1), leaf(strings.Repeat("a", 64), "", 1)},
			want: []problem{
				{0, gang.InvalidName, "name"}, {1, gang.InvalidName, "name"},
				{2, gang.InvalidName, "name"}, {3, gang.InvalidName, "name"},
			},
		},
		"a parent that does not exist": {
			groups: []gang.Node{leaf("a", "nobody", 1)},
			want:   []problem{{0, gang.UnknownParent, "parent"}},
		},
		"a group that is its own parent": {
			groups: []gang.Node{bare("a", "a"), leaf("b", "", 1)},
			want:   []problem{{0, gang.Cycle, "parent"}},
		},
		"a cycle of three, and no problem for the leaf below it": {
			groups: []gang.Node{leaf("d", "a", 1), bare("a", "b"), bare("b", "c"), bare("c", "a"), leaf("ok", "", 1)},
			want:   []problem{{1, gang.Cycle, "parent"}, {2, gang.Cycle, "parent"}, {3, gang.Cycle, "parent"}},
		},
		"nine levels below the root": {
			groups: chain(9),
			want:   []problem{{8, gang.TooDeep, "parent"}},
		},
		"twelve levels below the root: the first too deep is named": {
			groups: chain(12),
			want:   []problem{{8, gang.TooDeep, "parent"}},
		},
		"1025 sub-groups": {
			groups: leaves(1025),
			want:   []problem{{-1, gang.TooManyGroups, "subGroups"}},
		},
		"many problems together: all are listed, root first": {
			root:   inner("", "", 9),
			groups: []gang.Node{leaf("a", "x", 0), leaf("a", "", 1), inner("c", "", 1)},
			want: []problem{
				{-1, gang.MinSubGroupTooLarge, "minSubGroup"},
				{0, gang.UnknownParent, "parent"}, {0, gang.NotPositive, "minMember"},
				{1, gang.DuplicateName, "name"},
				{2, gang.MinSubGroupOnLeaf, "minSubGroup"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := gang.Build(tt.root, tt.groups)
			structure, ok := errors.AsType[*gang.StructureError](err)
			if !ok || tree != nil {
				t.Fatalf("Build = %v, %v, want no tree and a *StructureError", tree, err)
			}
			var got []problem
			for _, p := range structure.Problems {
				if p.Detail == "" {
					t.Errorf("problem %+v has no detail", p)
				}
				got = append(got, problem{p.Index, p.Kind, p.Field})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

func TestBuildAccepts(t *testing.T) {
	t.Parallel()
	type group struct {
		Path string
		Min  int
		Leaf bool
	}
	tests := map[string]struct {
		root    gang.Node
		groups  []gang.Node
		want    []group // root first, then spec order
		minPods int
	}{
		"no sub-groups, no minimum: one pod": {
			want:    []group{{"root", 1, true}},
			minPods: 1,
		},
		"no sub-groups, minMember": {
			root:    leaf("", "", 4),
			want:    []group{{"root", 4, true}},
			minPods: 4,
		},
		"the proposal's single level: 3 of 4 replicas of 8 pods": {
			root:    inner("", "", 3),
			groups:  []gang.Node{leaf("prefill-0", "", 8), leaf("prefill-1", "", 8), leaf("prefill-2", "", 8), leaf("prefill-3", "", 8)},
			want:    []group{{"root", 3, false}, {"prefill-0", 8, true}, {"prefill-1", 8, true}, {"prefill-2", 8, true}, {"prefill-3", 8, true}},
			minPods: 24,
		},
		"the proposal's two levels, parents declared after their children": {
			root: inner("", "", 2),
			groups: []gang.Node{
				leaf("decode-leaders", "decode", 1), leaf("decode-workers", "decode", 4), inner("decode", "", 2),
				leaf("prefill-leaders", "prefill", 1), leaf("prefill-workers", "prefill", 4), inner("prefill", "", 2),
			},
			want: []group{
				{"root", 2, false},
				{"decode/decode-leaders", 1, true}, {"decode/decode-workers", 4, true}, {"decode", 2, false},
				{"prefill/prefill-leaders", 1, true}, {"prefill/prefill-workers", 4, true}, {"prefill", 2, false},
			},
			minPods: 10,
		},
		"root minMember 0 beside minSubGroup": {
			root:    both(inner("", "", 1), 0),
			groups:  leaves(2),
			want:    []group{{"root", 1, false}, {"leaf-0", 1, true}, {"leaf-1", 1, true}},
			minPods: 1,
		},
		"the old form: root minMember beside sub-groups needs all children, whatever its number": {
			root:    leaf("", "", 99),
			groups:  leaves(2),
			want:    []group{{"root", 2, false}, {"leaf-0", 1, true}, {"leaf-1", 1, true}},
			minPods: 2,
		},
		"root and inner groups with neither field need all their children": {
			groups:  []gang.Node{bare("a", ""), leaf("b", "a", 2), leaf("c", "a", 3), leaf("d", "", 4)},
			want:    []group{{"root", 2, false}, {"a", 2, false}, {"a/b", 2, true}, {"a/c", 3, true}, {"d", 4, true}},
			minPods: 9,
		},
		"unequal children: the cheapest make the minimum": {
			root:    inner("", "", 2),
			groups:  []gang.Node{leaf("a", "", 5), leaf("b", "", 1), leaf("c", "", 3)},
			want:    []group{{"root", 2, false}, {"a", 5, true}, {"b", 1, true}, {"c", 3, true}},
			minPods: 4,
		},
		"eight levels below the root": {
			groups: chain(8),
			want: []group{
				{"root", 1, false}, {"level-1", 1, false}, {"level-1/level-2", 1, false}, {"level-1/level-2/level-3", 1, false},
				{"level-1/level-2/level-3/level-4", 1, false}, {"level-1/level-2/level-3/level-4/level-5", 1, false},
				{"level-1/level-2/level-3/level-4/level-5/level-6", 1, false},
				{"level-1/level-2/level-3/level-4/level-5/level-6/level-7", 1, false},
				{"level-1/level-2/level-3/level-4/level-5/level-6/level-7/level-8", 1, true},
			},
			minPods: 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := gang.Build(tt.root, tt.groups)
			if err != nil {
				t.Fatal(err)
			}
			got := []group{{tree.Root().Path(), tree.Root().Min(), tree.Root().IsLeaf()}}
			for _, g := range tree.Groups() {
				got = append(got, group{g.Path(), g.Min(), g.IsLeaf()})
				if tree.Group(g.Name()) != g {
					t.Errorf("Group(%q) is another group", g.Name())
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if got := tree.MinPods(); got != tt.minPods {
				t.Errorf("MinPods = %d, want %d", got, tt.minPods)
			}
		})
	}
	if tree, err := gang.Build(gang.Node{}, leaves(1024)); err != nil || len(tree.Leaves()) != 1024 {
		t.Errorf("1024 sub-groups are refused: %v", err)
	}
}

func TestStructureErrorNamesTheFirstProblems(t *testing.T) {
	t.Parallel()
	_, err := gang.Build(inner("", "", 0), []gang.Node{leaf("a", "x", 1), leaf("a", "", 1), bare("c", ""), bare("d", "")})
	want := `invalid sub-group tree: minSubGroup: must be greater than 0, is 0; subGroups[0].parent: no sub-group is named "x"; ` +
		`subGroups[1].name: "a" is already the name of subGroups[0]; and 2 more`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("Error() (-want +got):\n%s", diff)
	}
}

// FuzzBuild decodes bytes to a specification, four bytes per group: name, parent, minMember, minSubGroup. Names often
// repeat and parents are often unknown. Build must not panic, and a specification that it accepts must be a valid
// tree.
func FuzzBuild(f *testing.F) {
	f.Add([]byte{0, 0, 0, 3, 1, 0, 8, 0, 2, 0, 8, 0, 3, 0, 8, 0, 4, 0, 8, 0})
	f.Add([]byte{0, 0, 0, 2, 1, 0, 0, 2, 2, 1, 1, 0, 3, 1, 4, 0, 4, 0, 0, 2, 5, 4, 1, 0, 6, 4, 4, 0})
	f.Add([]byte{0, 0, 0, 0, 1, 2, 0, 0, 2, 1, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 1, 1, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		name := func(b byte) string {
			if b%32 == 0 {
				return ""
			}
			return fmt.Sprintf("g%d", b%32)
		}
		minimum := func(b byte) *int32 { // 0: nil, most often small and positive, sometimes zero or negative
			if b == 0 {
				return nil
			}
			v := int32(int8(b))
			if b == 255 {
				v = 0
			}
			return &v
		}
		var nodes []gang.Node
		for ; len(data) >= 4; data = data[4:] {
			nodes = append(nodes, gang.Node{Name: name(data[0]), Parent: name(data[1]), MinMember: minimum(data[2]), MinSubGroup: minimum(data[3])})
		}
		if len(nodes) == 0 {
			nodes = append(nodes, gang.Node{})
		}
		tree, err := gang.Build(nodes[0], nodes[1:])
		if err != nil {
			structure, ok := errors.AsType[*gang.StructureError](err)
			if !ok || len(structure.Problems) == 0 || err.Error() == "" {
				t.Fatalf("Build returned %#v, want a *StructureError with problems", err)
			}
			return
		}
		checkInvariants(t, tree, len(nodes)-1)
	})
}

// checkInvariants fails the test if the tree violates a guarantee of Build.
func checkInvariants(t *testing.T, tree *gang.Tree, groups int) {
	t.Helper()
	reached := map[*gang.Group]bool{}
	enough := gang.Counts{}
	var visit func(g *gang.Group, depth int)
	visit = func(g *gang.Group, depth int) {
		if reached[g] || depth > gang.MaxDepth {
			t.Fatalf("%s is reached twice or too deep", g.Path())
		}
		reached[g] = true
		if g.Min() < 1 || !g.IsLeaf() && g.Min() > len(g.Children()) {
			t.Fatalf("%s has minimum %d of %d children", g.Path(), g.Min(), len(g.Children()))
		}
		if g.IsLeaf() {
			enough[g.Name()] = g.Min()
		}
		for _, child := range g.Children() {
			if child.Parent() != g {
				t.Fatalf("%s does not know its parent", child.Path())
			}
			visit(child, depth+1)
		}
	}
	visit(tree.Root(), 0)
	if len(reached) != groups+1 || len(tree.Groups()) != groups {
		t.Fatalf("%d groups are reached from the root, want %d", len(reached)-1, groups)
	}
	if len(tree.Leaves()) != len(enough) {
		t.Fatalf("Leaves has %d groups, want %d", len(tree.Leaves()), len(enough))
	}
	if !tree.Satisfied(enough) || tree.Satisfied(nil) || len(tree.Missing(enough)) != 0 {
		t.Fatalf("a tree with all minimums met must be satisfied, an empty one must not")
	}
}
