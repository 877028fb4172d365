// SPDX-License-Identifier: Apache-2.0

package podgroup_test

import (
	"fmt"
	"strings"
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
	notAList := func(level string) string {
		return fmt.Sprintf("b: level %q is required, and annotation scheduling.run.ai/topology-levels of the PodGroup is not a list of at most 16 node labels: correct it", level)
	}
	for name, tt := range map[string]struct {
		of     map[string]*v2alpha2.TopologyConstraint // by sub-group
		list   string                                  // of the PodGroup
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
		"the outermost":                        {of: map[string]*v2alpha2.TopologyConstraint{"": at("fabric", "example.com/block")}, want: map[string]string{"": "example.com/block"}},
		"those above it":                       {of: map[string]*v2alpha2.TopologyConstraint{"a": at("fabric", "example.com/rack")}, want: map[string]string{"a": "example.com/block,example.com/rack"}},
		"a label without Topology":             {of: map[string]*v2alpha2.TopologyConstraint{"b": at("", "zone")}, want: map[string]string{"b": "zone"}},
		"a level that the PodGroup lists":      {of: map[string]*v2alpha2.TopologyConstraint{"b": at("", "rack")}, list: "zone,block,rack", want: map[string]string{"b": "zone,block,rack"}},
		"a level of a Topology beside a list":  {of: map[string]*v2alpha2.TopologyConstraint{"b": at("fabric", "example.com/block")}, list: "rack", want: map[string]string{"b": "example.com/block"}},
		"a preferred level that is not listed": {of: map[string]*v2alpha2.TopologyConstraint{"b": {PreferredTopologyLevel: "tray"}}, list: "block,rack"},
		"a required level that is not listed": {
			of: map[string]*v2alpha2.TopologyConstraint{"b": at("", "tray")}, list: "block,rack",
			why: `b: level "tray" is required and is none of block, rack, which the PodGroup lists: correct topologyConstraint.requiredTopologyLevel`,
		},
		"as many levels as a PodGroup may list": {
			of: map[string]*v2alpha2.TopologyConstraint{"b": at("", "rack")}, list: "rack" + strings.Repeat(",host", 15), want: map[string]string{"b": "rack"},
		},
		"more levels than a PodGroup may list": {
			of: map[string]*v2alpha2.TopologyConstraint{"b": at("", "host")}, list: "rack" + strings.Repeat(",host", 16), why: notAList("host"),
		},
		"a list with a part that is no node label":            {of: map[string]*v2alpha2.TopologyConstraint{"b": at("", "rack")}, list: "block, rack", why: notAList("rack")},
		"a list with an empty part":                           {of: map[string]*v2alpha2.TopologyConstraint{"b": at("", "rack")}, list: "block,,rack", why: notAList("rack")},
		"one label that is too long":                          {of: map[string]*v2alpha2.TopologyConstraint{"b": at("", "rack")}, list: strings.Repeat("x", 1<<18), why: notAList("rack")},
		"a preferred level of a list that is none":            {of: map[string]*v2alpha2.TopologyConstraint{"b": {PreferredTopologyLevel: "rack"}}, list: "block,,rack"},
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
			pg.Spec.TopologyConstraint, pg.Annotations = tt.of[""], map[string]string{v2alpha2.TopologyLevelsAnnotation: tt.list}
			for i := range pg.Spec.SubGroups {
				pg.Spec.SubGroups[i].TopologyConstraint = tt.of[pg.Spec.SubGroups[i].Name]
			}
			tree, err := gang.Build(gang.Node{}, []gang.Node{{Name: "a", MinMember: new(int32(2))}, {Name: "b", MinMember: new(int32(1))}})
			if err != nil {
				t.Fatal(err)
			}
			got, preferred, refusal := podgroup.Levels(tree, &pg.Spec, podgroup.WithListed(pg, levelsOf), tt.unread)
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

// The levels that a leaf and the groups above it name come before those that nobody names, and before those of other
// leaves.
func TestLevelLabels(t *testing.T) {
	t.Parallel()
	levelsOf := func(name string) topology.Levels {
		return map[string]topology.Levels{"fabric": {"zone", "block", "rack"}, "power": {"site", "row", "panel"}, "mixed": {"zone", "row"}}[name]
	}
	requires := func(topology, level string) *v2alpha2.TopologyConstraint {
		return &v2alpha2.TopologyConstraint{Topology: topology, RequiredTopologyLevel: level}
	}
	prefers := func(topology, level string) *v2alpha2.TopologyConstraint {
		return &v2alpha2.TopologyConstraint{Topology: topology, PreferredTopologyLevel: level}
	}
	for name, tt := range map[string]struct {
		root, mid, a, b *v2alpha2.TopologyConstraint
		wantA, wantB    []string
	}{
		"none":                        {},
		"a level that is not known":   {root: prefers("fabric", "tray")},
		"a Topology that is not read": {root: prefers("none", "zone")},
		"narrower levels, too":        {root: requires("fabric", "zone"), wantA: []string{"zone", "block", "rack"}, wantB: []string{"zone", "block", "rack"}},
		"a label without Topology":    {a: prefers("", "tray"), wantA: []string{"tray"}, wantB: []string{"tray"}},
		"two labels without Topology: that of the group above comes first": {
			root: prefers("", "z-block"), a: prefers("", "a-rack"),
			wantA: []string{"z-block", "a-rack"}, wantB: []string{"z-block", "a-rack"},
		},
		"required and preferred": {
			root:  &v2alpha2.TopologyConstraint{RequiredTopologyLevel: "row", PreferredTopologyLevel: "panel"},
			wantA: []string{"row", "panel"}, wantB: []string{"row", "panel"},
		},
		"two Topologies on one path: named levels before narrower ones": {
			root: prefers("fabric", "zone"), a: prefers("power", "row"),
			wantA: []string{"zone", "site", "row", "block", "rack", "panel"},
			wantB: []string{"zone", "block", "rack", "site", "row", "panel"},
		},
		"three groups on one path": {
			root: prefers("power", "site"), mid: prefers("fabric", "block"), a: requires("fabric", "rack"),
			wantA: []string{"site", "zone", "block", "rack", "row", "panel"},
			wantB: []string{"site", "row", "panel", "zone", "block", "rack"},
		},
		"two leaves: each by its own Topology first": {
			a: requires("fabric", "block"), b: prefers("power", "row"),
			wantA: []string{"zone", "block", "rack", "site", "row", "panel"},
			wantB: []string{"site", "row", "panel", "zone", "block", "rack"},
		},
		"a level in two Topologies": {
			root: prefers("fabric", "block"), b: prefers("mixed", "row"),
			wantA: []string{"zone", "block", "rack", "row"}, wantB: []string{"zone", "block", "row", "rack"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pg := wrappers.MakePodGroup("pg", "ns").MinSubGroup(2).Inner("", "mid", 1).SubGroupOf("mid", "a", 2).SubGroup("b", 1).Obj()
			pg.Spec.TopologyConstraint = tt.root
			for i, c := range []*v2alpha2.TopologyConstraint{tt.mid, tt.a, tt.b} {
				pg.Spec.SubGroups[i].TopologyConstraint = c
			}
			tree, err := podgroup.Tree(&pg.Spec)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string][]string{"a": tt.wantA, "b": tt.wantB}
			if tt.wantA == nil {
				want = nil
			}
			if diff := cmp.Diff(want, podgroup.LevelLabels(tree, &pg.Spec, levelsOf)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
