// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
	"github.com/muster-project/muster/pkg/topology"
	"github.com/muster-project/muster/test/wrappers"
)

func TestValidateTopologyLevels(t *testing.T) {
	t.Parallel()
	// levels returns a constraint of Topology t.
	levels := func(required, preferred string) *v2alpha2.TopologyConstraint {
		return &v2alpha2.TopologyConstraint{Topology: "t", RequiredTopologyLevel: required, PreferredTopologyLevel: preferred}
	}
	// tree returns a PodGroup of two cliques, one of them in a group, with the constraints of the four nodes.
	tree := func(root, group, member, standalone *v2alpha2.TopologyConstraint) *v2alpha2.PodGroupSpec {
		pg := wrappers.MakePodGroup("pg", "ns").
			SubGroupOf("group", "member", 1).Inner("", "group", 1).SubGroup("standalone", 1).Obj()
		pg.Spec.TopologyConstraint = root
		pg.Spec.SubGroups[0].TopologyConstraint = member
		pg.Spec.SubGroups[1].TopologyConstraint = group
		pg.Spec.SubGroups[2].TopologyConstraint = standalone
		return &pg.Spec
	}
	missing := levels("block", "")
	missing.Topology = "missing"
	unnamed := levels("zone", "")
	unnamed.Topology = ""
	for name, tc := range map[string]struct {
		spec         *v2alpha2.PodGroupSpec
		want         []string // field: detail
		wantWarnings []string
	}{
		"no constraints":   {spec: tree(nil, nil, nil, nil)},
		"narrower below":   {spec: tree(levels("zone", "block"), levels("block", "rack"), levels("rack", ""), levels("host", ""))},
		"the same below":   {spec: tree(levels("rack", ""), nil, levels("rack", ""), nil)},
		"preferred alone":  {spec: tree(levels("", "rack"), nil, levels("zone", ""), nil)},
		"only a Topology":  {spec: tree(levels("", ""), nil, nil, nil)},
		"another Topology": {spec: tree(levels("rack", ""), nil, missing, unnamed)},
		"wider below, in words": {
			spec: tree(levels("rack", ""), nil, nil, levels("zone", "")),
			want: []string{`spec.subGroups[2].topologyConstraint.requiredTopologyLevel: is wider than "rack", which the PodGroup requires: use the same level or a narrower one`},
		},
		"wider two levels below": {
			spec: tree(levels("rack", ""), nil, levels("block", ""), nil),
			want: []string{`spec.subGroups[0].topologyConstraint.requiredTopologyLevel: is wider than "rack", which the PodGroup requires: use the same level or a narrower one`},
		},
		"wider below a sub-group": {
			spec: tree(levels("zone", ""), levels("rack", ""), levels("block", ""), nil),
			want: []string{`spec.subGroups[0].topologyConstraint.requiredTopologyLevel: is wider than "rack", which sub-group "group" above it requires: use the same level or a narrower one`},
		},
		"prefers wider than the PodGroup requires": {
			spec:         tree(levels("rack", ""), nil, levels("", "zone"), nil),
			wantWarnings: []string{`spec.subGroups[0].topologyConstraint.preferredTopologyLevel: has no effect: "zone" is wider than "rack", which the PodGroup requires`},
		},
		"prefers wider than a sub-group above it requires": {
			spec:         tree(levels("zone", ""), levels("rack", ""), levels("", "block"), nil),
			wantWarnings: []string{`spec.subGroups[0].topologyConstraint.preferredTopologyLevel: has no effect: "block" is wider than "rack", which sub-group "group" above it requires`},
		},
		"prefers wider than it requires": {
			spec:         tree(levels("rack", "zone"), nil, nil, nil),
			wantWarnings: []string{`spec.topologyConstraint.preferredTopologyLevel: has no effect: "zone" is wider than the required level "rack"`},
		},
		"levels that the Topology does not have": {
			spec:         tree(levels("row", ""), levels("", "aisle"), nil, nil),
			want:         []string{`spec.topologyConstraint.requiredTopologyLevel: is not a level of Topology "t": zone, block, rack, host`},
			wantWarnings: []string{`spec.subGroups[1].topologyConstraint.preferredTopologyLevel: has no effect: "aisle" is not a level of Topology "t": zone, block, rack, host`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs, warnings := validation.ValidateTopologyLevels(tc.spec, func(name string) topology.Levels {
				if name == "t" {
					return topology.Levels{"zone", "block", "rack", "host"}
				}
				return nil
			})
			var got []string
			for _, err := range errs {
				got = append(got, fmt.Sprintf("%s: %s", err.Field, err.Detail))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
	if got := strings.Join(validation.Topologies(tree(levels("", ""), missing, levels("", ""), unnamed)), " "); got != "missing t" {
		t.Errorf("Topologies() = %q", got)
	}
}

// TestLevelsWithoutATopology: of two labels the nodes show which one is wider; of more, a warning asks for a Topology.
func TestLevelsWithoutATopology(t *testing.T) {
	t.Parallel()
	// tree returns the tree root > group > member, with the required and the preferred level of each node; a Topology is
	// written before the level, as in t:rack.
	tree := func(levels ...string) *v2alpha2.PodGroup {
		pg := wrappers.MakePodGroup("pg", "ns").SubGroupOf("group", "member", 1).Inner("", "group", 1).Obj()
		constraint := func(required, preferred string) *v2alpha2.TopologyConstraint {
			name, level, named := strings.Cut(required, ":")
			if !named {
				name, level = "", required
			}
			return &v2alpha2.TopologyConstraint{Topology: name, RequiredTopologyLevel: level, PreferredTopologyLevel: preferred}
		}
		pg.Spec.TopologyConstraint = constraint(levels[0], levels[1])
		pg.Spec.SubGroups[1].TopologyConstraint = constraint(levels[2], levels[3])
		pg.Spec.SubGroups[0].TopologyConstraint = constraint(levels[4], levels[5])
		return pg
	}
	listed := func(pg *v2alpha2.PodGroup) *v2alpha2.PodGroup {
		pg.Annotations = map[string]string{v2alpha2.TopologyLevelsAnnotation: "block,rack,host"}
		return pg
	}
	for name, tc := range map[string]struct {
		pg   *v2alpha2.PodGroup
		want string // "": no warning
	}{
		"two required":             {pg: tree("block", "", "rack", "", "", "")},
		"two, several times":       {pg: tree("block", "rack", "rack", "", "rack", "block")},
		"three, two in a Topology": {pg: tree("t:block", "", "t:rack", "", "host", "")},
		"three required": {pg: tree("block", "", "rack", "", "host", ""),
			want: "spec.subGroups[0].topologyConstraint.topology: the levels block, rack, host are not ordered without a Topology: name one that has them all"},
		"three, one of them preferred": {pg: tree("block", "rack", "host", "", "", ""),
			want: "spec.subGroups[0].topologyConstraint.topology: the levels block, rack, host are not ordered without a Topology: name one that has them all"},
		"three, which the PodGroup lists": {pg: listed(tree("block", "", "rack", "", "host", ""))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs, warnings := validation.ValidatePodGroup(tc.pg)
			if got := strings.Join(warnings, "\n"); len(errs) > 0 || got != tc.want {
				t.Errorf("errors %v, warnings %q, want %q", errs, got, tc.want)
			}
		})
	}
}
