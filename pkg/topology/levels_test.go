// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var cluster = Levels{"zone", "block", "rack", "host"}

func TestIsNarrower(t *testing.T) {
	t.Parallel()
	sixteen := Levels{}
	for i := range 16 {
		sixteen = append(sixteen, strconv.Itoa(i))
	}
	for name, tc := range map[string]struct {
		levels Levels
		a, b   string
		want   bool
	}{
		"a rack is inside a block":               {cluster, "rack", "block", true},
		"a host is inside a zone":                {cluster, "host", "zone", true},
		"a block is not inside a rack":           {cluster, "block", "rack", false},
		"a level is not narrower than itself":    {cluster, "rack", "rack", false},
		"an unknown level is not narrower":       {cluster, "row", "block", false},
		"no level is narrower than an unknown":   {cluster, "rack", "row", false},
		"no request":                             {cluster, "", "rack", false},
		"nothing is known of no levels":          {nil, "rack", "block", false},
		"the last of 16 is inside the first":     {sixteen, "15", "0", true},
		"the first of 16 is not inside the last": {sixteen, "0", "15", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.levels.IsNarrower(tc.a, tc.b); got != tc.want {
				t.Errorf("%v.IsNarrower(%q, %q) = %v", tc.levels, tc.a, tc.b, got)
			}
		})
	}
}

func TestContainsInOrder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		other Levels
		want  bool
	}{
		"all":           {cluster, true},
		"none":          {nil, true},
		"some":          {Levels{"zone", "rack"}, true},
		"another order": {Levels{"rack", "zone"}, false},
		"another level": {Levels{"zone", "row"}, false},
		"one twice":     {Levels{"rack", "rack"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cluster.ContainsInOrder(tc.other); got != tc.want {
				t.Errorf("ContainsInOrder(%v) = %v", tc.other, got)
			}
		})
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	root := func(required, preferred string) Node { return Node{-1, "t", required, preferred} }
	for name, tc := range map[string]struct {
		nodes []Node
		want  []Conflict
	}{
		"no nodes":            {nil, nil},
		"wider at the parent": {[]Node{root("block", ""), {0, "t", "rack", ""}}, nil},
		"the same level":      {[]Node{root("rack", ""), {0, "t", "rack", ""}}, nil},
		"narrower at the parent": {
			[]Node{root("rack", ""), {0, "t", "block", ""}}, []Conflict{{1, 0, false}}},
		"narrower at an ancestor beyond one without a constraint": {
			[]Node{root("rack", ""), {Parent: 0}, {1, "t", "block", ""}}, []Conflict{{2, 0, false}}},
		"narrower at two ancestors: the nearest": {
			[]Node{root("rack", ""), {0, "t", "rack", ""}, {1, "t", "zone", ""}}, []Conflict{{2, 1, false}}},
		"siblings are independent": {
			[]Node{root("", ""), {0, "t", "rack", ""}, {0, "t", "block", ""}}, nil},
		"the child is listed before its parent": {
			[]Node{{1, "t", "block", ""}, root("host", "")}, []Conflict{{0, 1, false}}},
		"a preferred level constrains no child": {
			[]Node{root("", "rack"), {0, "t", "block", ""}}, nil},
		"prefers narrower than it requires": {[]Node{root("block", "rack")}, nil},
		"prefers what it requires":          {[]Node{root("rack", "rack")}, nil},
		"prefers wider than it requires":    {[]Node{root("rack", "block")}, []Conflict{{0, 0, true}}},
		"prefers wider than a node above it requires": {
			[]Node{root("rack", ""), {Parent: 0}, {1, "t", "", "block"}}, []Conflict{{2, 0, true}}},
		"prefers narrower than a node above it requires": {
			[]Node{root("block", ""), {0, "t", "", "rack"}}, nil},
		"prefers wider than it and a node above it require: itself": {
			[]Node{root("rack", ""), {0, "t", "host", "block"}}, []Conflict{{1, 1, true}}},
		"both contradictions in one node": {
			[]Node{root("host", ""), {0, "t", "rack", "zone"}}, []Conflict{{1, 0, false}, {1, 1, true}}},
		"different topologies are not compared": {
			[]Node{root("rack", ""), {0, "other", "block", ""}}, nil},
		"an ancestor of another topology in between": {
			[]Node{root("rack", ""), {0, "other", "rack", ""}, {1, "t", "block", ""}}, []Conflict{{2, 0, false}}},
		"without a topology nothing is compared": {
			[]Node{{-1, "", "rack", "zone"}, {0, "", "block", ""}}, nil},
		"an unknown topology is not compared": {
			[]Node{{-1, "gone", "rack", "zone"}, {0, "gone", "block", ""}}, nil},
		"unknown levels are not compared": {
			[]Node{root("row", "aisle"), {0, "t", "zone", ""}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Conflicts(tc.nodes, func(name string) Levels {
				if name == "t" || name == "other" {
					return cluster
				}
				return nil
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
