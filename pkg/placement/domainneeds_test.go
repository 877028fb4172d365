// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

func TestDomainNeeds(t *testing.T) {
	t.Parallel()
	two := []leveledNode{required("rack", leaf("a", "", 3)), required("rack", leaf("b", "", 2))}
	for name, tt := range map[string]struct {
		root   leveledNode
		groups []leveledNode
		bound  map[string][]string
		want   []string // level, area, pods
	}{
		"the whole":                        {required("rack", leaf("", "", 3)), nil, nil, []string{"rack * 3"}},
		"the largest child":                {required("", inner("", "", 2)), two, nil, []string{"rack * 3"}},
		"the smaller of two children":      {required("", inner("", "", 1)), two, nil, []string{"rack * 2"}},
		"a child without a level suffices": {required("", inner("", "", 1)), []leveledNode{two[0], required("", leaf("b", "", 2))}, nil, []string{"rack * 0"}},
		"two levels":                       {required("block", inner("", "", 2)), two, nil, []string{"block * 5", "rack * 3"}},
		"where it runs":                    {required("", inner("", "", 2)), two, map[string][]string{"a": {"r1-0"}}, []string{"rack * 2", "rack r1 2"}},
		"torn: no room helps":              {required("", inner("", "", 2)), two, map[string][]string{"a": {"r1-0", "r0-0"}}, []string{"rack * 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCluster(t, []class{{gpus: 1}}, racksOf(4, 4)...)
			p := placement.Problem{Have: gang.Counts{}, Bound: gang.Counts{}, Nodes: tt.bound, Pods: map[string][]placement.Pod{}}
			p.Tree, p.Required = buildLeveled(t, tt.root, tt.groups...)
			for leaf, nodes := range tt.bound {
				p.Have[leaf], p.Bound[leaf] = len(nodes), len(nodes)
			}
			for _, l := range p.Tree.Leaves() {
				p.Pods[l.Name()] = pods(l.Name(), 0, 4)
			}
			var got []string
			for _, n := range placement.DomainNeeds(p, w) {
				area := "*"
				if n.Area != 0 {
					area = w.areas[n.Area-1].values
				}
				got = append(got, n.Level+" "+area+" "+string(rune('0'+n.Pods)))
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDomainNeedsAreNecessary compares random instances with the exhaustive solver: whenever there is a plan, the
// domains have the room.
func TestDomainNeedsAreNecessary(t *testing.T) {
	t.Parallel()
	needs, plans := 0, 0
	for seed := range uint64(6000) {
		r := rand.New(rand.NewPCG(seed, 7))
		p, w := randomLevels(t, r, leveled{classes: 1 + int(seed%2), nested: seed%3 == 0, uneven: seed%5 == 0, bound: seed%4 == 0})
		list := placement.DomainNeeds(p, w)
		for _, n := range list {
			needs += min(n.Pods, 1)
		}
		met := !slices.ContainsFunc(list, func(n placement.DomainNeed) bool {
			if n.Pods == 0 {
				return false
			}
			rooms, areas := w.Rooms(n.Class, n.Level, 0), w.Areas(n.Level, 0)
			for i, room := range rooms {
				around, _ := w.AreaAround(n.Level, 0, n.Area)
				if (n.Area == 0 || areas[i] == around) && room >= n.Pods {
					return false
				}
			}
			return true
		})
		if met {
			continue
		}
		plans++
		if solvableWithLevels(p, w, nil) {
			t.Fatalf("seed %d: there is a plan, and the needs %+v are not met", seed, list)
		}
	}
	t.Logf("%d needs; in %d instances they are not met", needs, plans)
	if needs < 1000 || plans < 300 {
		t.Errorf("the instances show too little: %d needs, %d not met", needs, plans)
	}
}

func TestPinnedDomains(t *testing.T) {
	t.Parallel()
	w := newCluster(t, []class{{gpus: 1}, {gpus: 1}}, racksOf(4, 4, 4)...)
	p := placement.Problem{Have: gang.Counts{}, Bound: gang.Counts{}, Nodes: map[string][]string{"a": {"r1-0"}, "b": {"r0-0"}}}
	p.Tree, p.Required = buildLeveled(t, leveledNode{}, required("rack", leaf("a", "", 3)), required("rack", leaf("b", "", 2)), required("rack", leaf("c", "", 2)))
	names := func(pinned map[int][]placement.Domain) map[int][]string {
		out := map[int][]string{}
		for class, domains := range pinned {
			for _, d := range domains {
				out[class] = append(out[class], w.areas[d.Area-1].values)
			}
			slices.Sort(out[class])
		}
		return out
	}
	p.Pods = map[string][]placement.Pod{"a": pods("a", 0, 1), "b": pods("b", 0, 1), "c": pods("c", 1, 1)}
	if diff := cmp.Diff(map[int][]string{0: {"r0", "r1"}}, names(placement.PinnedDomains(w, p, placement.Problem{}))); diff != "" {
		t.Errorf("of one problem (-want +got):\n%s", diff)
	}
	other := p
	other.Pods = map[string][]placement.Pod{"c": pods("c", 0, 1)}
	if got := placement.PinnedDomains(w, p, other); len(got) > 0 {
		t.Errorf("pods of the other problem may be placed elsewhere: %v", names(got))
	}
}
