// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecideMembers(t *testing.T) {
	wanted := [][]string{{"g-0-a", "g-0-b"}, {"g-1-a", "g-1-b"}}
	existing := []Member{{"g-1-b", 1}, {"g-0-a", 0}, {"g-2-a", 2}, {"g-3-a", 3}, {"odd", -1}}
	for name, tc := range map[string]struct {
		listed []string
		units  []UnitDecision
		want   MembersDecision
	}{
		"PodCliques are created if they are listed and in the decision on their replica": {
			listed: []string{"g-0-a", "g-0-b", "g-1-a", "g-1-b"},
			units:  []UnitDecision{{Create: []string{"g-0-b"}}, {}},
			want:   MembersDecision{Update: []string{"g-0-a", "g-1-b"}, Create: []string{"g-0-b"}, Delete: []string{"g-2-a", "g-3-a"}},
		},
		"the PodGroup does not list the new PodCliques, and still lists one above spec.replicas": {
			listed: []string{"g-0-a", "g-1-b", "g-3-a"},
			units:  []UnitDecision{{Create: []string{"g-0-b"}}, {Create: []string{"g-1-a"}}},
			want:   MembersDecision{Update: []string{"g-0-a", "g-1-b"}, Delete: []string{"g-2-a"}},
		},
		"a PodClique of an earlier attempt is deleted, whether it is listed or not": {
			listed: []string{"g-1-b", "g-2-a", "g-3-a"},
			units:  []UnitDecision{{}, {Delete: []string{"g-1-b"}}},
			want:   MembersDecision{Update: []string{"g-0-a", "g-1-b"}, Delete: []string{"g-1-b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := Members{Wanted: wanted, Existing: existing, Units: tc.units, Listed: map[string]bool{}}
			for _, name := range tc.listed {
				m.Listed[name] = true
			}
			if diff := cmp.Diff(tc.want, DecideMembers(m)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
