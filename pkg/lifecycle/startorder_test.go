// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// order is a template of two standalone cliques and two scaling groups; the second group needs two replicas.
func order(inOrder bool, startsAfter map[string][]string) lifecycle.StartOrder {
	o := lifecycle.StartOrder{
		InOrder: inOrder, Explicit: !inOrder,
		Cliques: []lifecycle.OrderedClique{
			{Name: "store"}, {Name: "p-leader", Group: "prefill"}, {Name: "p-worker", Group: "prefill"},
			{Name: "d-leader", Group: "decode"}, {Name: "d-worker", Group: "decode"}, {Name: "frontend"},
		},
		GroupMinimum: map[string]int32{"prefill": 1, "decode": 2},
	}
	for i := range o.Cliques {
		o.Cliques[i].StartsAfter = startsAfter[o.Cliques[i].Name]
	}
	return o
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		order   lifecycle.StartOrder
		clique  string
		replica int
		want    []lifecycle.Requirement
	}{
		"in order, the first clique has no requirements": {order(true, nil), "store", -1, nil},
		"in order, after a standalone clique": {order(true, nil), "p-leader", 0,
			[]lifecycle.Requirement{{PodClique: "s-0-store"}}},
		"in order, within a group that needs one replica: its own": {order(true, nil), "p-worker", 0,
			[]lifecycle.Requirement{{PodClique: "s-0-prefill-0-p-leader"}}},
		"in order, after a group: any minAvailable of its replicas": {order(true, nil), "d-leader", 1,
			[]lifecycle.Requirement{{Group: "s-0-prefill", Clique: "p-worker", Need: 1}}},
		"in order, within a group that needs two: its own, and any two": {order(true, nil), "d-worker", 1,
			[]lifecycle.Requirement{{PodClique: "s-0-decode-1-d-leader"}, {Group: "s-0-decode", Clique: "d-leader", Need: 2}}},
		"in order, within a surplus replica: its own only": {order(true, nil), "d-worker", 2,
			[]lifecycle.Requirement{{PodClique: "s-0-decode-2-d-leader"}}},
		"in order, a surplus replica does not wait for the outside": {order(true, nil), "d-leader", 2, nil},
		"in order, a standalone clique after a group": {order(true, nil), "frontend", -1,
			[]lifecycle.Requirement{{Group: "s-0-decode", Clique: "d-worker", Need: 2}}},
		"explicit, several, in the order of the template": {
			order(false, map[string][]string{"frontend": {"d-leader", "store", "p-leader"}}), "frontend", -1,
			[]lifecycle.Requirement{{PodClique: "s-0-store"}, {Group: "s-0-prefill", Clique: "p-leader", Need: 1}, {Group: "s-0-decode", Clique: "d-leader", Need: 2}}},
		"explicit, itself and unknown cliques are left out": {
			order(false, map[string][]string{"store": {"store", "unknown"}}), "store", -1, nil},
		"any order":      {lifecycle.StartOrder{Cliques: []lifecycle.OrderedClique{{Name: "a"}, {Name: "b", StartsAfter: []string{"a"}}}}, "b", -1, nil},
		"unknown clique": {order(true, nil), "unknown", -1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tc.order.Requirements("s", 0, tc.clique, tc.replica)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			read, err := lifecycle.ParseRequirements(lifecycle.FormatRequirements(got))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, read); diff != "" {
				t.Errorf("written and read again (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRequirementsRefusesWhatNobodyCouldMeet(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"x", "[{}]", `[{"group":"g"}]`, `[{"group":"g","clique":"c"}]`, `[{"podClique":"p","group":"g","clique":"c","need":1}]`} {
		if rs, err := lifecycle.ParseRequirements(text); err == nil {
			t.Errorf("%s is read as %v", text, rs)
		}
	}
}

func TestUnmet(t *testing.T) {
	t.Parallel()
	clique := func(name, template, group string, ready int32) lifecycle.Clique {
		return lifecycle.Clique{Name: name, Template: template, Group: group, Observed: true, Replicas: 2, MinAvailable: 2, Ready: ready}
	}
	one := lifecycle.Requirement{PodClique: "s-0-store"}
	two := lifecycle.Requirement{Group: "s-0-g", Clique: "leader", Need: 2}
	zero := clique("s-0-store", "store", "", 0)
	zero.Replicas, zero.MinAvailable = 0, 0
	leaving := clique("s-0-store", "store", "", 2)
	leaving.Terminating = true
	for name, tc := range map[string]struct {
		requirement lifecycle.Requirement
		cliques     []lifecycle.Clique
		groups      []lifecycle.ScalingGroup
		started     bool
	}{
		"not there yet":              {one, nil, nil, false},
		"below its minimum":          {one, []lifecycle.Clique{clique("s-0-store", "store", "", 1)}, nil, false},
		"at its minimum":             {one, []lifecycle.Clique{clique("s-0-store", "store", "", 2)}, nil, true},
		"being deleted":              {one, []lifecycle.Clique{leaving}, nil, false},
		"scaled to zero":             {one, []lifecycle.Clique{zero}, nil, true},
		"a clique of a similar name": {one, []lifecycle.Clique{clique("s-0-store-0", "store", "", 2), clique("s-0-big-store", "store", "", 2)}, nil, false},
		"one of two group replicas":  {two, []lifecycle.Clique{clique("s-0-g-0-leader", "leader", "s-0-g", 2), clique("s-0-g-1-leader", "leader", "s-0-g", 1)}, nil, false},
		"any two of three": {two, []lifecycle.Clique{
			clique("s-0-g-0-leader", "leader", "s-0-g", 0), clique("s-0-g-1-leader", "leader", "s-0-g", 2), clique("s-0-g-2-leader", "leader", "s-0-g", 2)}, nil, true},
		"other cliques and groups do not count": {two, []lifecycle.Clique{
			clique("s-0-g-0-worker", "worker", "s-0-g", 2), clique("s-0-h-1-leader", "leader", "s-0-h", 2), clique("s-0-g-0-leader", "leader", "s-0-g", 2)}, nil, false},
		"the group is scaled to zero":          {two, nil, []lifecycle.ScalingGroup{{Name: "s-0-g"}}, true},
		"the group exists, its cliques do not": {two, nil, []lifecycle.ScalingGroup{{Name: "s-0-g", Replicas: 2}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unmet := lifecycle.Unmet([]lifecycle.Requirement{tc.requirement}, tc.cliques, tc.groups)
			if started := len(unmet) == 0; started != tc.started {
				t.Errorf("started: %v, want %v", started, tc.started)
			}
		})
	}
	if got, want := lifecycle.Describe([]lifecycle.Requirement{one, two}), "waits for clique s-0-store and clique leader in 2 of the replicas of s-0-g"; got != want {
		t.Errorf("Describe() = %q, want %q", got, want)
	}
}
