// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/placement"
)

// placed returns placements of the form "leaf rank class node". The nodes are named rack-node.
func placed(lines ...string) []placement.Placement {
	var plan []placement.Placement
	for _, line := range lines {
		f := strings.Fields(line)
		p := placement.Placement{Leaf: f[0], Node: f[3]}
		fmt.Sscanf(f[1], "%d", &p.Pod.Index)
		fmt.Sscanf(f[2], "%d", &p.Pod.Class)
		plan = append(plan, p)
	}
	return plan
}

func byIndex(a, b placement.Pod) int { return cmp.Compare(a.Index, b.Index) }

func rackOfName(_, node string) []string { return strings.Split(node, "-")[:1] }

func TestOrderByRank(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ plan, want []string }{
		"an empty plan": {},
		"neighbours share a rack": {
			plan: []string{"a 0 0 r1-0", "a 1 0 r2-0", "a 2 0 r1-1", "a 3 0 r2-1"},
			want: []string{"a 0 0 r1-0", "a 2 0 r2-0", "a 1 0 r1-1", "a 3 0 r2-1"},
		},
		"neighbours share a node": {
			plan: []string{"a 3 0 r1-0", "a 2 0 r1-1", "a 1 0 r1-0", "a 0 0 r1-1"},
			want: []string{"a 0 0 r1-0", "a 2 0 r1-1", "a 1 0 r1-0", "a 3 0 r1-1"},
		},
		"each leaf by itself": {
			plan: []string{"a 0 0 r2-0", "b 0 0 r1-0", "b 1 0 r2-1", "a 1 0 r1-1"},
			want: []string{"a 1 0 r2-0", "b 0 0 r1-0", "b 1 0 r2-1", "a 0 0 r1-1"},
		},
		"each class by itself": {
			plan: []string{"a 0 0 r2-0", "a 1 1 r1-0", "a 2 0 r1-1", "a 3 1 r2-1"},
			want: []string{"a 2 0 r2-0", "a 1 1 r1-0", "a 0 0 r1-1", "a 3 1 r2-1"},
		},
		// Ranks 3 and 9 of a gang that runs were lost in racks r1 and r3.
		"lost pods in the direction of the plan before": {
			plan: []string{"a 9 0 r1-3", "a 3 0 r3-1"},
			want: []string{"a 3 0 r1-3", "a 9 0 r3-1"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := placed(tt.plan...)
			placement.OrderByRank(got, byIndex, rackOfName)
			if diff := gocmp.Diff(placed(tt.want...), got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrderByRankKeepsThePlan permutes random plans: leaves, nodes and classes stay, each pod is placed once, and the
// ranks in each rack are neighbours.
func TestOrderByRankKeepsThePlan(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 5))
	for round := range 1000 {
		plan := make([]placement.Placement, r.IntN(20))
		for i, rank := range r.Perm(len(plan)) {
			plan[i] = placement.Placement{
				Pod:  placement.Pod{ID: fmt.Sprint(rank), Index: rank, Class: r.IntN(2)},
				Leaf: []string{"a", "b"}[r.IntN(2)], Node: fmt.Sprintf("r%d-%d", r.IntN(3), r.IntN(3)),
			}
		}
		before := slices.Clone(plan)
		placement.OrderByRank(plan, byIndex, rackOfName)
		seen := map[string]string{} // class and leaf, by pod
		for _, p := range before {
			seen[p.Pod.ID] = fmt.Sprint(p.Pod.Class, p.Leaf)
		}
		for i, p := range plan {
			was := before[i]
			if p.Leaf != was.Leaf || p.Node != was.Node || p.Pod.Class != was.Pod.Class || seen[p.Pod.ID] != fmt.Sprint(p.Pod.Class, p.Leaf) {
				t.Fatalf("round %d: placement %d was %v and is %v", round, i, was, p)
			}
			delete(seen, p.Pod.ID)
		}
		slices.SortFunc(plan, func(a, b placement.Placement) int {
			return cmp.Or(cmp.Compare(a.Leaf, b.Leaf), cmp.Compare(a.Pod.Class, b.Pod.Class), byIndex(a.Pod, b.Pod))
		})
		for i := 1; i < len(plan); i++ {
			a, b := plan[i-1], plan[i]
			if a.Leaf == b.Leaf && a.Pod.Class == b.Pod.Class && a.Node > b.Node {
				t.Fatalf("round %d: rank %d is on %s, rank %d on %s", round, a.Pod.Index, a.Node, b.Pod.Index, b.Node)
			}
		}
	}
}
