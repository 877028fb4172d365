// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/test/wrappers"
)

const (
	rackLabel   = "topology.example.com/rack"
	blockLabel  = "topology.example.com/block"
	switchLabel = "switch"
)

// preferring and requiring return constraints; "" names no level.
func preferring(level string) *v2alpha2.TopologyConstraint {
	return &v2alpha2.TopologyConstraint{PreferredTopologyLevel: level}
}

func requiring(required, preferred string) *v2alpha2.TopologyConstraint {
	return &v2alpha2.TopologyConstraint{RequiredTopologyLevel: required, PreferredTopologyLevel: preferred}
}

// constrain sets the constraint of a sub-group, of the whole for "".
func constrain(group string, tc *v2alpha2.TopologyConstraint) func(*v2alpha2.PodGroupSpec) {
	return func(spec *v2alpha2.PodGroupSpec) {
		if group == "" {
			spec.TopologyConstraint = tc
			return
		}
		i := slices.IndexFunc(spec.SubGroups, func(s v2alpha2.SubGroup) bool { return s.Name == group })
		spec.SubGroups[i].TopologyConstraint = tc
	}
}

// factsOn returns the facts of a PodGroup with bound pods. The tree is that of the spec without constraints, so that
// levels can be required which validation does not accept.
func factsOn(t *testing.T, group *v2alpha2.PodGroup, nodes map[string][]string, labels map[string]map[string]string) Facts {
	t.Helper()
	plain := group.DeepCopy()
	plain.Spec.TopologyConstraint = nil
	for i := range plain.Spec.SubGroups {
		plain.Spec.SubGroups[i].TopologyConstraint = nil
	}
	tree, err := Tree(&plain.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return Facts{Group: group, Tree: tree, Nodes: nodes, NodeLabels: labels}
}

// fabric has racks of two nodes, n1 and n2 in r1, and blocks of two racks; unlabelled has no labels, blank an empty
// one.
func fabric() map[string]map[string]string {
	labels := map[string]map[string]string{"unlabelled": nil, "blank": {rackLabel: "", blockLabel: "b1"}}
	for i := range 12 {
		labels[fmt.Sprintf("n%d", i+1)] = map[string]string{rackLabel: fmt.Sprintf("r%d", i/2+1), blockLabel: fmt.Sprintf("b%d", i/4+1), switchLabel: fmt.Sprintf("s%d", i%2)}
	}
	return labels
}

func TestPlacement(t *testing.T) {
	t.Parallel()
	roles := func() *wrappers.PodGroupWrapper {
		return wrappers.MakePodGroup("llm", "ml").SubGroup("prefill", 2).SubGroup("decode", 2)
	}
	long := strings.Repeat("x", 63)
	many, manyLabels := make([]string, 10_000), fabric()
	for i := range many {
		many[i] = fmt.Sprintf("m%d", i%1250)
		manyLabels[many[i]] = map[string]string{rackLabel: fmt.Sprintf("r%03d", i%1250/16)}
	}
	for name, tc := range map[string]struct {
		group  *wrappers.PodGroupWrapper
		nodes  map[string][]string
		labels map[string]map[string]string // nil: of the fabric
		outer  map[NamedLevel][]string
		want   string
		groups map[string]string
	}{
		"a level that is preferred, and one domain": {
			group: flat().Spec(constrain("", preferring(rackLabel))), nodes: map[string][]string{"": {"n1", "n2", "n1"}}, want: "rack r1",
		},
		"a level that is required": {
			group: flat().Spec(constrain("", requiring(rackLabel, ""))), nodes: map[string][]string{"": {"n3"}}, want: "rack r2",
		},
		"one is required and a narrower one preferred": {
			group: flat().Spec(constrain("", requiring(blockLabel, rackLabel))), nodes: map[string][]string{"": {"n1", "n3"}}, want: "block b1, 2 racks (r1, r2)",
		},
		"the same is required and preferred": {
			group: flat().Spec(constrain("", requiring(rackLabel, rackLabel))), nodes: map[string][]string{"": {"n1"}}, want: "rack r1",
		},
		"several domains are sorted": {
			group: flat().Spec(constrain("", preferring(rackLabel))), nodes: map[string][]string{"": {"n5", "n1", "n3"}}, want: "3 racks (r1, r2, r3)",
		},
		"more domains than are named": {
			group: flat().Spec(constrain("", preferring(rackLabel))), nodes: map[string][]string{"": {"n1", "n3", "n5", "n7", "n9"}}, want: "5 racks (r1, r2, r3, and 2 more)",
		},
		"a key without a prefix, whose plural is irregular": {
			group: flat().Spec(constrain("", preferring(switchLabel))), nodes: map[string][]string{"": {"n1", "n2"}}, want: "2 switches (s0, s1)",
		},
		"hosts": {
			group: flat().Spec(constrain("", preferring("kubernetes.io/hostname"))), nodes: map[string][]string{"": {"n1"}},
			labels: map[string]map[string]string{"n1": {"kubernetes.io/hostname": "gpu-17"}}, want: "node gpu-17",
		},
		"a node without the label": {
			group: flat().Spec(constrain("", preferring(rackLabel))), nodes: map[string][]string{"": {"n1", "unlabelled", "unlabelled"}}, want: "rack r1, 1 node without rack",
		},
		"a node that does not exist": {
			group: flat().Spec(constrain("", preferring(rackLabel))), nodes: map[string][]string{"": {"gone", "unlabelled"}}, want: "2 nodes without rack",
		},
		"no labels are known": {
			group: flat().Spec(constrain("", preferring(rackLabel))), nodes: map[string][]string{"": {"n1"}}, labels: map[string]map[string]string{}, want: "1 node without rack",
		},
		"racks whose names repeat in blocks": {
			group: flat().Spec(constrain("", preferring(rackLabel))), nodes: map[string][]string{"": {"a", "b", "c", "d"}},
			labels: map[string]map[string]string{"a": {blockLabel: "b0", rackLabel: "r0"}, "b": {blockLabel: "b1", rackLabel: "r0"}, "c": {blockLabel: "b1", rackLabel: "r0"}, "d": {blockLabel: "b0"}},
			outer:  map[NamedLevel][]string{{Label: rackLabel}: {blockLabel}}, want: "2 racks (b0/r0, b1/r0), 1 node without rack",
		},
		"racks of another Topology": {
			group: flat().Spec(constrain("", preferring(rackLabel))), nodes: map[string][]string{"": {"n1"}},
			outer: map[NamedLevel][]string{{Topology: "fabric", Label: rackLabel}: {blockLabel}}, want: "rack r1",
		},
		"an empty value is a domain": {
			group: flat().Spec(constrain("", preferring(rackLabel))), nodes: map[string][]string{"": {"blank", "n1"}}, want: `2 racks ("", r1)`,
		},
		"no pod is bound": {
			group: flat().Spec(constrain("", preferring(rackLabel))),
		},
		"no level is named": {
			group: flat().Spec(constrain("", &v2alpha2.TopologyConstraint{Topology: "cluster"})), nodes: map[string][]string{"": {"n1"}},
		},
		"text that is no key of a label": {
			group: flat().Spec(constrain("", preferring("x, admitted"))), nodes: map[string][]string{"": {"n1"}},
		},
		"sub-groups": {
			group: roles().Spec(constrain("prefill", preferring(rackLabel))).Spec(constrain("decode", preferring(rackLabel))),
			nodes: map[string][]string{"prefill": {"n1"}, "decode": {"n3", "n5"}},
			want:  "prefill: rack r1; decode: 2 racks (r2, r3)", groups: map[string]string{"prefill": "rack r1", "decode": "2 racks (r2, r3)"},
		},
		"only sub-groups that name a level, and with bound pods": {
			group: wrappers.MakePodGroup("llm", "ml").SubGroup("a", 1).SubGroup("b", 1).SubGroup("c", 1).
				Spec(constrain("a", preferring(rackLabel))).Spec(constrain("c", preferring(rackLabel))),
			nodes: map[string][]string{"b": {"n3"}, "c": {"n5"}},
			want:  "c: rack r3", groups: map[string]string{"c": "rack r3"},
		},
		"nested groups, each with its own level": {
			group: tree().Spec(constrain("", preferring(blockLabel))).Spec(constrain("prefill", preferring(rackLabel))).
				Spec(constrain("prefill-1", requiring(switchLabel, ""))),
			nodes: map[string][]string{"prefill-0": {"n1"}, "prefill-1": {"n3", "n5"}, "decode": {"n9"}},
			want:  "3 blocks (b1, b2, b3); prefill: 3 racks (r1, r2, r3); prefill-1: switch s0",
			groups: map[string]string{
				"prefill": "3 racks (r1, r2, r3)", "prefill-1": "switch s0",
			},
		},
		"10,000 pods": {
			group: flat().Spec(constrain("", preferring(rackLabel))), nodes: map[string][]string{"": many}, labels: manyLabels,
			want: "79 racks (r000, r001, r002, and 76 more)",
		},
		"values and a name of 63 characters": {
			group: flat().Spec(constrain("", preferring(long))), nodes: map[string][]string{"": {"a", "b", "c"}},
			labels: map[string]map[string]string{"a": {long: long}, "b": {long: strings.Repeat("y", 63)}, "c": {long: strings.Repeat("z", 63)}},
			// 256 characters have no room for a list of the longest names.
			want: message.Truncate("3 "+long+"es ("+long+", "+strings.Repeat("y", 63)+", "+strings.Repeat("z", 63)+")", 256),
		},
		"values longer than the API server accepts": {
			group: flat().Spec(constrain("", preferring(rackLabel))), nodes: map[string][]string{"": {"a"}},
			labels: map[string]map[string]string{"a": {rackLabel: strings.Repeat("x", 10_000)}}, want: "rack " + strings.Repeat("x", 62) + "…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			labels := tc.labels
			if labels == nil {
				labels = fabric()
			}
			f := factsOn(t, tc.group.Obj(), tc.nodes, labels)
			f.OuterLabels = tc.outer
			s := Status(f, now)
			if s.Placement != tc.want {
				t.Errorf("placement %q, want %q", s.Placement, tc.want)
			}
			groups := map[string]string{}
			for _, g := range s.SubGroups {
				if g.Placement != "" {
					groups[g.Name] = g.Placement
				}
			}
			if diff := cmp.Diff(tc.groups, groups, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("sub-groups (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPlacementOfATreeIsBounded: the largest tree with the longest names fits into the status, and is read again as it
// was written.
func TestPlacementOfATreeIsBounded(t *testing.T) {
	t.Parallel()
	group, nodes, labels := wrappers.MakePodGroup("llm", "ml"), map[string][]string{}, map[string]map[string]string{}
	key := strings.Repeat("k", 63)
	for i := range v2alpha2.MaxSubGroups {
		name := fmt.Sprintf("%s%04d", strings.Repeat("n", 59), i)
		group.SubGroup(name, 4)
		group.Spec(constrain(name, requiring("example.com/"+key, "example.org/"+key)))
		for j := range 5 {
			node := fmt.Sprintf("%d-%d", i, j)
			nodes[name] = append(nodes[name], node)
			value := fmt.Sprintf("%s%d", strings.Repeat("v", 62), j)
			labels[node] = map[string]string{"example.com/" + key: value, "example.org/" + key: value}
		}
	}
	f := factsOn(t, group.Obj(), nodes, labels)
	s := Status(f, now)
	if n := utf8.RuneCountInString(s.Placement); n > message.MaxSummary || !strings.HasSuffix(s.Placement, "…") {
		t.Errorf("placement has %d characters: %s", n, s.Placement)
	}
	for _, g := range s.SubGroups {
		if n := utf8.RuneCountInString(g.Placement); n != maxPlacement {
			t.Fatalf("%d characters, want the first %d: %s", n, maxPlacement, g.Placement)
		}
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 1<<18 {
		t.Errorf("a status of %d bytes", len(data))
	}
	var read v2alpha2.PodGroupStatus
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if change := Compare(&read, &s); change != Same {
		t.Errorf("the status that was read differs from the one that was written: %d", change)
	}
}

// TestPlacementOfAnInvalidTree: an invalid PodGroup says that it is invalid, whatever its pods use.
func TestPlacementOfAnInvalidTree(t *testing.T) {
	t.Parallel()
	group := flat().Spec(constrain("", preferring(rackLabel))).Obj()
	if s := Status(Facts{Group: group, Nodes: map[string][]string{"": {"n1"}}, NodeLabels: fabric()}, now); s.Placement != "" {
		t.Errorf("placement %q", s.Placement)
	}
}

// A preferred level that none of its nodes has is told where the gang runs, since nothing refuses it.
func TestPreferredLevelOfNoNode(t *testing.T) {
	t.Parallel()
	const bound, rak = "the minimum of 2 pods is bound", "topology.example.com/rak"
	unmet := func(group, label string) string {
		return fmt.Sprintf("; no node of %s has label %s, which it prefers: correct the level, or label the nodes", group, label)
	}
	roles := func() *wrappers.PodGroupWrapper {
		return wrappers.MakePodGroup("llm", "ml").SubGroup("a", 1).SubGroup("b", 1)
	}
	for name, tc := range map[string]struct {
		group *wrappers.PodGroupWrapper
		nodes map[string][]string
		want  string
	}{
		"no node has it":           {flat().MinMember(2).Spec(constrain("", preferring(rak))), map[string][]string{"": {"n1", "n2"}}, bound + unmet("the gang", rak)},
		"all nodes have it":        {flat().MinMember(2).Spec(constrain("", preferring(rackLabel))), map[string][]string{"": {"n1", "n2"}}, bound},
		"one node has it":          {flat().MinMember(2).Spec(constrain("", preferring(rackLabel))), map[string][]string{"": {"n1", "unlabelled"}}, bound},
		"the nodes are gone":       {flat().MinMember(2).Spec(constrain("", preferring(rackLabel))), map[string][]string{"": {"gone"}}, bound},
		"it is required":           {flat().MinMember(2).Spec(constrain("", requiring(rackLabel, rackLabel))), map[string][]string{"": {"unlabelled"}}, bound},
		"beside one that is not":   {flat().MinMember(2).Spec(constrain("", requiring(rackLabel, rak))), map[string][]string{"": {"n1", "n2"}}, bound + unmet("the gang", rak)},
		"of one sub-group":         {roles().Spec(constrain("a", preferring(rak))).Spec(constrain("b", preferring(rackLabel))), map[string][]string{"a": {"n1"}, "b": {"n2"}}, bound + unmet("a", rak)},
		"of two sub-groups, once":  {roles().Spec(constrain("a", preferring(rak))).Spec(constrain("b", preferring(rak))), map[string][]string{"a": {"n1"}, "b": {"n2"}}, bound + unmet("a", rak)},
		"of a sub-group of no pod": {roles().Spec(constrain("a", preferring(rak))), map[string][]string{"b": {"n2"}}, bound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := factsOn(t, tc.group.Obj(), tc.nodes, fabric())
			f.Bound = gang.Counts{"": 2, "a": 1, "b": 1}
			s := Status(f, now)
			if got := meta.FindStatusCondition(s.Conditions, v2alpha2.ConditionSatisfied).Message; got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if e := StatusEvent(&v2alpha2.PodGroupStatus{}, &s); e == nil || e.Reason != v2alpha2.EventGangAdmitted || e.Note != tc.want {
				t.Errorf("event %+v, want one with %q", e, tc.want)
			}
		})
	}
}
