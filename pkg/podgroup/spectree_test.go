// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

func TestTree(t *testing.T) {
	type group struct {
		Path     string
		Leaf     bool
		Min      int
		Children int
	}
	for name, tc := range map[string]struct {
		pg      *wrappers.PodGroupWrapper
		root    group
		groups  []group
		minPods int
	}{
		"without sub-groups the root is the leaf": {
			pg:      wrappers.MakePodGroup("pg", "ns").MinMember(4),
			root:    group{Path: "root", Leaf: true, Min: 4},
			minPods: 4,
		},
		"an empty spec needs one pod": {
			pg:      wrappers.MakePodGroup("pg", "ns"),
			root:    group{Path: "root", Leaf: true, Min: 1},
			minPods: 1,
		},
		"three of four": {
			pg:   wrappers.MakePodGroup("pg", "ns").MinSubGroup(3).SubGroup("a", 8).SubGroup("b", 8).SubGroup("c", 8).SubGroup("d", 8),
			root: group{Path: "root", Min: 3, Children: 4},
			groups: []group{
				{Path: "a", Leaf: true, Min: 8}, {Path: "b", Leaf: true, Min: 8},
				{Path: "c", Leaf: true, Min: 8}, {Path: "d", Leaf: true, Min: 8}},
			minPods: 24,
		},
		"two levels, child first": {
			pg:      wrappers.MakePodGroup("pg", "ns").SubGroupOf("decode", "workers", 4).Inner("", "decode", 0).SubGroupOf("decode", "leaders", 1),
			root:    group{Path: "root", Min: 1, Children: 1},
			groups:  []group{{Path: "decode/workers", Leaf: true, Min: 4}, {Path: "decode", Min: 2, Children: 2}, {Path: "decode/leaders", Leaf: true, Min: 1}},
			minPods: 5,
		},
		"the old form needs all children, regardless of minMember": {
			pg:      wrappers.MakePodGroup("pg", "ns").MinMember(3).SubGroup("a", 8).SubGroup("b", 8),
			root:    group{Path: "root", Min: 2, Children: 2},
			groups:  []group{{Path: "a", Leaf: true, Min: 8}, {Path: "b", Leaf: true, Min: 8}},
			minPods: 16,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := podgroup.Tree(&tc.pg.Obj().Spec)
			if err != nil {
				t.Fatal(err)
			}
			facts := func(g *gang.Group) group {
				return group{Path: g.Path(), Leaf: g.IsLeaf(), Min: g.Min(), Children: len(g.Children())}
			}
			if diff := cmp.Diff(tc.root, facts(tree.Root())); diff != "" {
				t.Errorf("root (-want +got):\n%s", diff)
			}
			var groups []group
			for _, g := range tree.Groups() {
				groups = append(groups, facts(g))
			}
			if diff := cmp.Diff(tc.groups, groups); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if got := tree.MinPods(); got != tc.minPods {
				t.Errorf("MinPods() = %d, want %d", got, tc.minPods)
			}
		})
	}
}

func TestTreeOfAnInvalidSpecNamesTheField(t *testing.T) {
	pg := wrappers.MakePodGroup("pg", "ns").SubGroupOf("x", "a", 1).Obj()
	_, err := podgroup.Tree(&pg.Spec)
	want := `spec.subGroups[0].parent: Not found: "x": no sub-group is named "x"`
	if err == nil || err.Error() != want {
		t.Errorf("Tree() error = %v, want %s", err, want)
	}
}

// FuzzTree: no spec causes a panic, and a tree is built exactly if validation has no errors.
func FuzzTree(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 0, 0, 5, 9, 1, 0, 8, 9, 2, 0, 8, 9})
	f.Add([]byte{0, 3, 1, 1, 1, 2, 1, 2, 2, 2, 1, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		pg := wrappers.MakePodGroup("pg", "ns").Spec(func(s *v2alpha2.PodGroupSpec) { *s = specOf(data) }).Obj()
		before := pg.DeepCopy()
		errs, _ := validation.ValidatePodGroup(pg)
		tree, err := podgroup.Tree(&pg.Spec)
		if (err == nil) != (len(errs) == 0) || (err == nil) != (tree != nil) {
			t.Errorf("validation: %v\nTree(): %v, %v", errs, tree, err)
		}
		if updateErrs, _ := validation.ValidatePodGroupUpdate(pg, wrappers.MakePodGroup("pg", "ns").MinMember(12345).Obj()); len(updateErrs) != len(errs) {
			t.Errorf("create: %v\nupdate: %v", errs, updateErrs)
		}
		if diff := cmp.Diff(before, pg); diff != "" {
			t.Errorf("validation changed the object:\n%s", diff)
		}
		if tree == nil {
			return
		}
		if tree.MinPods() < 1 {
			t.Errorf("a valid tree needs %d pods", tree.MinPods())
		}
		if len(tree.Groups()) != len(pg.Spec.SubGroups) {
			t.Errorf("%d groups from %d sub-groups", len(tree.Groups()), len(pg.Spec.SubGroups))
		}
	})
}

// specOf decodes a spec from bytes: two for the root's minimums, then four per sub-group (name, parent, minMember,
// minSubGroup). The values are few, so that names collide, parents exist and minimums are met often enough.
func specOf(data []byte) v2alpha2.PodGroupSpec {
	next := func() byte {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return b
	}
	minimum := func(b byte) *int32 {
		if b%8 == 0 {
			return nil
		}
		v := int32(b%8) - 2 // -1 to 5
		return &v
	}
	name := func(b byte) string {
		switch b % 24 {
		case 22:
			return ""
		case 23:
			return "not a label value"
		default:
			return fmt.Sprintf("g%d", b%24)
		}
	}
	spec := v2alpha2.PodGroupSpec{MinMember: minimum(next()), MinSubGroup: minimum(next())}
	for len(data) > 0 {
		sg := v2alpha2.SubGroup{Name: name(next())}
		if b := next(); b%3 != 0 {
			parent := name(b / 3)
			sg.Parent = &parent
		}
		sg.MinMember, sg.MinSubGroup = minimum(next()), minimum(next())
		if b := next(); b == 255 {
			sg.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "a/b/c"}
		}
		spec.SubGroups = append(spec.SubGroups, sg)
	}
	return spec
}
