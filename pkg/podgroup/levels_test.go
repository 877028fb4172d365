// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/topology"
	"github.com/muster-project/muster/test/wrappers"
)

func TestLevels(t *testing.T) {
	t.Parallel()
	levelsOf := func(name string) topology.Levels {
		return map[string]topology.Levels{"fabric": {"example.com/block", "example.com/rack", "kubernetes.io/hostname"}}[name]
	}
	at := func(topology, required string) *v2alpha2.TopologyConstraint {
		return &v2alpha2.TopologyConstraint{Topology: topology, RequiredTopologyLevel: required}
	}
	for name, tt := range map[string]struct {
		of     map[string]*v2alpha2.TopologyConstraint // by sub-group
		want   map[string]string
		prefer map[string]string
		unread string
		why    string
	}{
		"none": {},
		"only preferred": {
			of:     map[string]*v2alpha2.TopologyConstraint{"": {Topology: "fabric", PreferredTopologyLevel: "example.com/rack"}},
			prefer: map[string]string{"": "example.com/block,example.com/rack"},
		},
		"the outermost":            {of: map[string]*v2alpha2.TopologyConstraint{"": at("fabric", "example.com/block")}, want: map[string]string{"": "example.com/block"}},
		"those above it":           {of: map[string]*v2alpha2.TopologyConstraint{"a": at("fabric", "example.com/rack")}, want: map[string]string{"a": "example.com/block,example.com/rack"}},
		"a label without Topology": {of: map[string]*v2alpha2.TopologyConstraint{"b": at("", "zone")}, want: map[string]string{"b": "zone"}},
		"a preferred level of a Topology that does not exist": {of: map[string]*v2alpha2.TopologyConstraint{"a": {Topology: "gone", PreferredTopologyLevel: "rack"}}},
		"a Topology that does not exist": {
			of:  map[string]*v2alpha2.TopologyConstraint{"a": at("gone", "rack")},
			why: `a: Topology "gone", whose level "rack" is required, is not known: create it, or change topologyConstraint.topology`,
		},
		"Topologies cannot be read": {
			of:     map[string]*v2alpha2.TopologyConstraint{"a": at("gone", "rack")},
			unread: "install the CRD, and create it",
			why:    `a: Topology "gone", whose level "rack" is required, cannot be read: install the CRD, and create it`,
		},
		"a Topology that was read before": {
			of:     map[string]*v2alpha2.TopologyConstraint{"": at("fabric", "example.com/block")},
			unread: "the API server does not answer",
			want:   map[string]string{"": "example.com/block"},
		},
		"no level of the Topology": {
			of:  map[string]*v2alpha2.TopologyConstraint{"": at("fabric", "rack")},
			why: `the gang: level "rack" is required and is no level of Topology "fabric", which has example.com/block, example.com/rack, kubernetes.io/hostname: correct topologyConstraint.requiredTopologyLevel`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pg := wrappers.MakePodGroup("pg", "ns").SubGroup("a", 2).SubGroup("b", 1).Obj()
			pg.Spec.TopologyConstraint = tt.of[""]
			for i := range pg.Spec.SubGroups {
				pg.Spec.SubGroups[i].TopologyConstraint = tt.of[pg.Spec.SubGroups[i].Name]
			}
			tree, err := gang.Build(gang.Node{}, []gang.Node{{Name: "a", MinMember: new(int32(2))}, {Name: "b", MinMember: new(int32(1))}})
			if err != nil {
				t.Fatal(err)
			}
			got, preferred, refusal := podgroup.Levels(tree, &pg.Spec, levelsOf, tt.unread)
			why := ""
			if refusal != nil {
				why = refusal.Message
			}
			if diff := cmp.Diff(tt.want, got) + cmp.Diff(tt.prefer, preferred) + cmp.Diff(tt.why, why); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLevelLabels(t *testing.T) {
	t.Parallel()
	levelsOf := func(name string) topology.Levels {
		return map[string]topology.Levels{"fabric": {"zone", "block", "rack"}, "power": {"zone", "row"}}[name]
	}
	for name, tt := range map[string]struct {
		root, child *v2alpha2.TopologyConstraint
		want        []string
	}{
		"none":                        {},
		"narrower levels, too":        {root: &v2alpha2.TopologyConstraint{Topology: "fabric", RequiredTopologyLevel: "zone"}, want: []string{"zone", "block", "rack"}},
		"a preferred level":           {child: &v2alpha2.TopologyConstraint{Topology: "fabric", PreferredTopologyLevel: "rack"}, want: []string{"zone", "block", "rack"}},
		"a label without Topology":    {child: &v2alpha2.TopologyConstraint{PreferredTopologyLevel: "tray"}, want: []string{"tray"}},
		"a level that is not known":   {root: &v2alpha2.TopologyConstraint{Topology: "fabric", PreferredTopologyLevel: "tray"}},
		"a Topology that is not read": {root: &v2alpha2.TopologyConstraint{Topology: "none", PreferredTopologyLevel: "zone"}},
		"the most levels come first": {
			root:  &v2alpha2.TopologyConstraint{Topology: "power", RequiredTopologyLevel: "row"},
			child: &v2alpha2.TopologyConstraint{Topology: "fabric", RequiredTopologyLevel: "block"},
			want:  []string{"zone", "block", "rack", "row"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pg := wrappers.MakePodGroup("pg", "ns").SubGroup("a", 2).Obj()
			pg.Spec.TopologyConstraint, pg.Spec.SubGroups[0].TopologyConstraint = tt.root, tt.child
			if diff := cmp.Diff(tt.want, podgroup.LevelLabels(&pg.Spec, levelsOf)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
