// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
	"github.com/muster-project/muster/test/wrappers"
)

func TestValidatePodGroup(t *testing.T) {
	podGroup := func() *wrappers.PodGroupWrapper { return wrappers.MakePodGroup("pg", "ns") }
	parent := func(name string) *string { return &name }
	n := func(v int32) *int32 { return &v }

	for name, tc := range map[string]struct {
		pg *wrappers.PodGroupWrapper
		// want is one "<type>: <field>" per error, in order.
		want         []string
		wantWarnings []string
	}{
		"an empty spec is a gang of one pod": {
			pg: podGroup(),
		},
		"minMember alone": {
			pg: podGroup().MinMember(4),
		},
		"three of four leaves": {
			pg: podGroup().MinSubGroup(3).SubGroup("a", 8).SubGroup("b", 8).SubGroup("c", 8).SubGroup("d", 8),
		},
		"two levels, children declared before their parents": {
			pg: podGroup().MinSubGroup(2).
				SubGroupOf("decode", "decode-leaders", 1).SubGroupOf("decode", "decode-workers", 4).Inner("", "decode", 2).
				SubGroupOf("prefill", "prefill-leaders", 1).Inner("", "prefill", 2).SubGroupOf("prefill", "prefill-workers", 4),
		},
		"a root and an inner sub-group with neither minimum need all children": {
			pg: podGroup().Inner("", "a", 0).SubGroupOf("a", "b", 1).SubGroup("c", 2),
		},
		"root minMember 0 beside minSubGroup": {
			pg: podGroup().MinMember(0).MinSubGroup(1).SubGroup("a", 1),
		},
		"names are label values of up to 63 characters": {
			pg: podGroup().SubGroup(strings.Repeat("a", 63), 1).SubGroup("A_b.c-9", 1),
		},
		"eight levels and 1,024 sub-groups": {
			pg: wide(chain(podGroup(), 8), 1024-8),
		},

		"root with both minimums": {
			pg:   podGroup().MinMember(24).MinSubGroup(3).SubGroup("a", 8).SubGroup("b", 8).SubGroup("c", 8),
			want: []string{"Forbidden: spec.minMember"},
		},
		"sub-groups with both minimums": {
			pg: podGroup().
				Append(v2alpha2.SubGroup{Name: "a", MinMember: n(1), MinSubGroup: n(1)}).SubGroupOf("a", "b", 1).
				Append(v2alpha2.SubGroup{Name: "c", MinMember: n(1), MinSubGroup: n(1)}),
			want: []string{"Forbidden: spec.subGroups[0].minMember", "Forbidden: spec.subGroups[2].minSubGroup"},
		},
		"root minMember 0 alone": {
			pg:   podGroup().MinMember(0),
			want: []string{"Invalid value: spec.minMember"},
		},
		"root minMember 0 beside sub-groups without minSubGroup": {
			pg:   podGroup().MinMember(0).SubGroup("a", 1),
			want: []string{"Invalid value: spec.minMember"},
		},
		"root minMember below 0 beside minSubGroup": {
			pg:   podGroup().MinMember(-1).MinSubGroup(1).SubGroup("a", 1),
			want: []string{"Invalid value: spec.minMember"},
		},
		"root minSubGroup 0": {
			pg:   podGroup().MinSubGroup(0).SubGroup("a", 1),
			want: []string{"Invalid value: spec.minSubGroup"},
		},
		"a leaf's minMember 0, also below a parent that could do without it": {
			pg:   podGroup().MinSubGroup(1).SubGroup("a", 0).SubGroup("b", 1),
			want: []string{"Invalid value: spec.subGroups[0].minMember"},
		},
		"an inner sub-group's minMember 0 beside minSubGroup, which only the root may have": {
			pg: podGroup().
				Append(v2alpha2.SubGroup{Name: "a", MinMember: n(0), MinSubGroup: n(1)}).SubGroupOf("a", "b", 1),
			want: []string{"Invalid value: spec.subGroups[0].minMember"},
		},
		"an inner sub-group's minSubGroup 0": {
			pg: podGroup().
				Append(v2alpha2.SubGroup{Name: "a", MinSubGroup: n(0)}).SubGroupOf("a", "b", 1),
			want: []string{"Invalid value: spec.subGroups[0].minSubGroup"},
		},
		"root minSubGroup without sub-groups": {
			pg:   podGroup().MinSubGroup(1),
			want: []string{"Forbidden: spec.minSubGroup"},
		},
		"root minSubGroup above the number of direct children, grandchildren not counted": {
			pg:   podGroup().MinSubGroup(3).Inner("", "a", 0).SubGroupOf("a", "b", 1).SubGroup("c", 1),
			want: []string{"Invalid value: spec.minSubGroup"},
		},
		"inner minSubGroup above the number of direct children": {
			pg:   podGroup().Inner("", "a", 2).SubGroupOf("a", "b", 1),
			want: []string{"Invalid value: spec.subGroups[0].minSubGroup"},
		},
		"a leaf with minSubGroup": {
			pg:   podGroup().Append(v2alpha2.SubGroup{Name: "a", MinSubGroup: n(2)}),
			want: []string{"Forbidden: spec.subGroups[0].minSubGroup"},
		},
		"a leaf without minMember": {
			pg:   podGroup().Append(v2alpha2.SubGroup{Name: "a"}),
			want: []string{"Required value: spec.subGroups[0].minMember"},
		},
		"an inner sub-group with minMember": {
			pg:   podGroup().SubGroup("a", 2).SubGroupOf("a", "b", 1),
			want: []string{"Forbidden: spec.subGroups[0].minMember"},
		},
		"the same name twice": {
			pg:   podGroup().SubGroup("a", 1).SubGroup("a", 2),
			want: []string{"Duplicate value: spec.subGroups[1].name"},
		},
		"names that are no label values": {
			pg: podGroup().SubGroup("", 1).SubGroup("-a", 1).SubGroup("a/b", 1).SubGroup(strings.Repeat("a", 64), 1),
			want: []string{"Invalid value: spec.subGroups[0].name", "Invalid value: spec.subGroups[1].name",
				"Invalid value: spec.subGroups[2].name", "Invalid value: spec.subGroups[3].name"},
		},
		"a parent that does not exist": {
			pg:   podGroup().SubGroup("a", 1).SubGroupOf("x", "b", 1),
			want: []string{"Not found: spec.subGroups[1].parent"},
		},
		"an empty parent": {
			pg:   podGroup().Append(v2alpha2.SubGroup{Name: "a", Parent: parent(""), MinMember: n(1)}),
			want: []string{"Invalid value: spec.subGroups[0].parent"},
		},
		"its own parent": {
			pg:   podGroup().SubGroup("a", 1).Append(v2alpha2.SubGroup{Name: "b", Parent: parent("b")}),
			want: []string{"Invalid value: spec.subGroups[1].parent"},
		},
		"a cycle of two is reported at both": {
			pg: podGroup().SubGroup("a", 1).
				Append(v2alpha2.SubGroup{Name: "b", Parent: parent("c")}).Append(v2alpha2.SubGroup{Name: "c", Parent: parent("b")}),
			want: []string{"Invalid value: spec.subGroups[1].parent", "Invalid value: spec.subGroups[2].parent"},
		},
		"nine levels": {
			pg:   chain(podGroup(), 9),
			want: []string{"Invalid value: spec.subGroups[8].parent"},
		},
		"1,025 sub-groups": {
			pg:   wide(podGroup(), 1025),
			want: []string{"Too many: spec.subGroups"},
		},
		"a preemptibility that does not exist": {
			pg:   podGroup().Spec(func(s *v2alpha2.PodGroupSpec) { s.Preemptibility = "sometimes" }),
			want: []string{"Unsupported value: spec.preemptibility"},
		},
		"how a gang preempts and is preempted has an effect, and no warning": {
			pg: podGroup().Spec(func(s *v2alpha2.PodGroupSpec) {
				s.Preemptibility = v2alpha2.SemiPreemptible
				s.PreemptionDelay = &metav1.Duration{Duration: time.Minute}
			}),
		},
		"topology levels, at the root and below": {
			pg: podGroup().
				Spec(func(s *v2alpha2.PodGroupSpec) {
					s.TopologyConstraint = &v2alpha2.TopologyConstraint{Topology: "t", RequiredTopologyLevel: "example.com/block"}
				}).
				Append(v2alpha2.SubGroup{Name: "a", MinMember: n(1), TopologyConstraint: &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "rack", PreferredTopologyLevel: "host"}}).
				Append(v2alpha2.SubGroup{Name: "b", MinMember: n(1), TopologyConstraint: &v2alpha2.TopologyConstraint{PreferredTopologyLevel: "of any form"}}).
				Append(v2alpha2.SubGroup{Name: "c", MinMember: n(1), TopologyConstraint: &v2alpha2.TopologyConstraint{}}).
				Append(v2alpha2.SubGroup{Name: "d", MinMember: n(1), TopologyConstraint: &v2alpha2.TopologyConstraint{Topology: "t"}}),
			wantWarnings: []string{
				`spec.subGroups[1].topologyConstraint.preferredTopologyLevel: has no effect: "of any form" is not the key of a node label`,
				"spec.subGroups[3].topologyConstraint: has no effect: neither requiredTopologyLevel nor preferredTopologyLevel is set",
			},
		},
		"required levels that are no node labels": {
			pg: podGroup().
				Spec(func(s *v2alpha2.PodGroupSpec) {
					s.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "a/b/c"}
				}).
				Append(v2alpha2.SubGroup{Name: "a", MinMember: n(1), TopologyConstraint: &v2alpha2.TopologyConstraint{RequiredTopologyLevel: strings.Repeat("n", 64)}}),
			want: []string{"Invalid value: spec.topologyConstraint.requiredTopologyLevel", "Invalid value: spec.subGroups[0].topologyConstraint.requiredTopologyLevel"},
		},
		"all errors are returned together": {
			pg: podGroup().MinMember(1).MinSubGroup(7).
				SubGroup("a", 0).SubGroup("a", 1).SubGroupOf("x", "b", 1).
				Append(v2alpha2.SubGroup{Name: "c", TopologyConstraint: &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "a b"}}),
			want: []string{
				"Forbidden: spec.minMember", "Invalid value: spec.minSubGroup",
				"Invalid value: spec.subGroups[0].minMember", "Duplicate value: spec.subGroups[1].name",
				"Not found: spec.subGroups[2].parent", "Required value: spec.subGroups[3].minMember",
				"Invalid value: spec.subGroups[3].topologyConstraint.requiredTopologyLevel",
			},
		},

		"the old form: all children are required": {
			pg:           podGroup().MinMember(3).SubGroup("a", 8).SubGroup("b", 8),
			wantWarnings: []string{"spec.minMember: beside subGroups this is the old form and means that all 2 direct children are required (16 pods); leave it out, or use minSubGroup"},
		},
		"the old form above the sum of the leaves": {
			pg: podGroup().MinMember(17).SubGroup("a", 8).SubGroup("b", 8),
			wantWarnings: []string{
				"spec.minMember: beside subGroups this is the old form and means that all 2 direct children are required (16 pods); leave it out, or use minSubGroup",
				"spec.minMember: 17 is not enforced: it is above the sum of the leaves, 16 pods",
			},
		},
		"the old form above what the tree needs": {
			pg: podGroup().MinMember(10).Inner("", "x", 1).SubGroupOf("x", "a", 8).SubGroupOf("x", "b", 8),
			wantWarnings: []string{
				"spec.minMember: beside subGroups this is the old form and means that all 1 direct children are required (8 pods); leave it out, or use minSubGroup",
				"spec.minMember: 10 is not enforced: the tree is satisfied with 8 pods",
			},
		},
		"fields that have no effect": {
			pg: podGroup().
				Spec(func(s *v2alpha2.PodGroupSpec) {
					s.Queue = "research"
					s.SchedulingBackoff = n(1)
					s.BackoffLimit = n(0)
					s.Completions = n(8)
					s.Parallelism = n(-1)
					s.StalenessGracePeriod = &metav1.Duration{Duration: time.Minute}
				}),
			wantWarnings: []string{
				"spec.queue: stored, but has no effect: there are no queues with quota",
				"spec.schedulingBackoff: stored, but has no effect: a waiting gang is tried again when something that could help has changed",
				"spec.backoffLimit: stored, but has no effect: pods are retried by the controller that creates them",
				"spec.completions: stored, but has no effect: minMember or minSubGroup define what the gang needs, and the controller of the pods counts those that succeed",
				"spec.parallelism: stored, but has no effect: the controller of the pods decides how many there are",
				"spec.stalenessGracePeriod: stored, but has no effect: the scheduler never ends a gang because it fell below its minimum",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs, warnings := validation.ValidatePodGroup(tc.pg.Obj())
			if diff := cmp.Diff(tc.want, outline(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s\n%v", diff, errs)
			}
			if diff := cmp.Diff(tc.wantWarnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			tree, treeErrs := validation.BuildTree(&tc.pg.Obj().Spec)
			if (tree == nil) != (len(tc.want) > 0) {
				t.Errorf("Tree() = %v with errors %v, want a tree exactly for a valid spec", tree, treeErrs)
			}
			if diff := cmp.Diff(outline(errs), outline(treeErrs)); diff != "" {
				t.Errorf("Tree() and ValidatePodGroup() disagree:\n%s", diff)
			}
			for _, warning := range warnings {
				if len(warning) > 256 {
					t.Errorf("the API server may cut a warning of %d characters: %s", len(warning), warning)
				}
			}
		})
	}
}

func TestValidatePodGroupUpdate(t *testing.T) {
	valid := wrappers.MakePodGroup("pg", "ns").MinSubGroup(1).SubGroup("a", 1)
	invalid := wrappers.MakePodGroup("pg", "ns").MinSubGroup(5).SubGroup("a", 1)
	for name, tc := range map[string]struct {
		old, pg *v2alpha2.PodGroup
		want    []string
	}{
		"any field may change": {
			old: valid.Obj(),
			pg:  wrappers.MakePodGroup("pg", "ns").MinMember(3).Priority("high").Obj(),
		},
		"the new spec must be valid": {
			old:  valid.Obj(),
			pg:   invalid.Obj(),
			want: []string{"Invalid value: spec.minSubGroup"},
		},
		"also after one that was not": {
			old:  invalid.Obj(),
			pg:   wrappers.MakePodGroup("pg", "ns").MinSubGroup(6).SubGroup("a", 1).Obj(),
			want: []string{"Invalid value: spec.minSubGroup"},
		},
		"an invalid spec can be repaired": {
			old: invalid.Obj(),
			pg:  valid.Obj(),
		},
		"an invalid spec that is left alone passes": {
			old: invalid.Obj(),
			pg:  wrappers.MakePodGroup("pg", "ns").MinSubGroup(5).SubGroup("a", 1).Label("k", "v").Obj(),
		},
		"a terminating object passes": {
			old: valid.Obj(),
			pg:  wrappers.MakePodGroup("pg", "ns").MinSubGroup(5).SubGroup("a", 1).Terminating().Obj(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs, _ := validation.ValidatePodGroupUpdate(tc.pg, tc.old)
			if diff := cmp.Diff(tc.want, outline(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorSaysHowManyItDoesNotShow(t *testing.T) {
	if err := validation.CombineErrors(nil); err != nil {
		t.Errorf("Error(nil) = %v, want nil", err)
	}
	pg := wrappers.MakePodGroup("pg", "ns").SubGroup("a", 0).SubGroup("b", 0).SubGroup("c", 0).SubGroup("d", 0).Obj()
	errs, _ := validation.ValidatePodGroup(pg)
	got := validation.CombineErrors(errs).Error()
	want := "spec.subGroups[0].minMember: Invalid value: 0: must be greater than 0, is 0; " +
		"spec.subGroups[1].minMember: Invalid value: 0: must be greater than 0, is 0; " +
		"spec.subGroups[2].minMember: Invalid value: 0: must be greater than 0, is 0; and 1 more"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// chain appends depth sub-groups, each below the one before; the last is a leaf.
func chain(w *wrappers.PodGroupWrapper, depth int) *wrappers.PodGroupWrapper {
	above := ""
	for level := 1; level < depth; level++ {
		name := fmt.Sprintf("level-%d", level)
		w.Inner(above, name, 1)
		above = name
	}
	return w.SubGroupOf(above, "bottom", 1)
}

// wide appends leaves below the PodGroup.
func wide(w *wrappers.PodGroupWrapper, leaves int) *wrappers.PodGroupWrapper {
	for i := range leaves {
		w.SubGroup(fmt.Sprintf("leaf-%d", i), 1)
	}
	return w
}

// outline returns "<type>: <field>" per error.
func outline(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, fmt.Sprintf("%s: %s", e.Type, e.Field))
	}
	return out
}
