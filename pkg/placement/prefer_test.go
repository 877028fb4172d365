// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// usedDomains counts the domains that groups use of their preferred levels. One of a wider level counts more than all
// of the narrower ones. A node outside of the level is a domain of its own.
type usedDomains struct {
	levels map[*gang.Group][]string // the widest first
	pods   map[string]int
	count  int
	limit  int // on count
}

const widerCounts = 100

func newUsedDomains(p placement.Problem, w *cluster) *usedDomains {
	u := &usedDomains{levels: map[*gang.Group][]string{}, pods: map[string]int{}, limit: 1 << 40}
	for _, g := range append([]*gang.Group{p.Tree.Root()}, p.Tree.Groups()...) {
		if level := p.Preferred[g.Name()]; level != "" {
			keys := strings.Split(level, ",")
			for i := range keys {
				u.levels[g] = append(u.levels[g], strings.Join(keys[:i+1], ","))
			}
		}
	}
	for leaf, names := range p.Nodes {
		for _, name := range names {
			u.add(p.Tree.Group(leaf), w.nodeOf(name), 1)
		}
	}
	return u
}

func (w *cluster) nodeOf(name string) node {
	return w.nodes[slices.IndexFunc(w.nodes, func(n node) bool { return n.name == name })]
}

// add counts a pod on a node, or takes it back (-1). It reports whether the count is below the limit.
func (u *usedDomains) add(leaf *gang.Group, n node, pods int) bool {
	if u == nil {
		return true
	}
	for g := leaf; g != nil; g = g.Parent() {
		weight := 1
		for _, level := range slices.Backward(u.levels[g]) {
			values, ok := valuesOf(n, level)
			if !ok {
				values = "outside," + n.name
			}
			key := fmt.Sprint(g.Path(), level, values)
			before := u.pods[key]
			if u.pods[key] += pods; before == 0 {
				u.count += weight
			} else if u.pods[key] == 0 {
				u.count -= weight
			}
			weight *= widerCounts
		}
	}
	return u.count < u.limit
}

// countUsed returns the domains that a plan uses, with those of the pods that run.
func countUsed(p placement.Problem, w *cluster, plan []placement.Placement) int {
	u := newUsedDomains(p, w)
	for _, pl := range plan {
		u.add(p.Tree.Group(pl.Leaf), w.nodeOf(pl.Node), 1)
	}
	return u.count
}

// TestPreferredLevelsAgainstExhaustiveSearch: a plan is found whenever one is found without preferred levels. It
// measures how often the pods of its leaves could not use fewer domains.
func TestPreferredLevelsAgainstExhaustiveSearch(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		leveled
		required bool // some groups require their level
		floor    float64
	}{
		"equal pods":                             {leveled: leveled{classes: 1}, floor: 0.95},
		"equal pods, nested levels":              {leveled: leveled{classes: 1, nested: true}, floor: 0.95},
		"equal pods, some run":                   {leveled: leveled{classes: 1, nested: true, bound: true}, floor: 0.85},
		"equal pods, some levels are required":   {leveled: leveled{classes: 1, nested: true, bound: true}, required: true, floor: 0.9},
		"equal pods, levels that do not nest":    {leveled: leveled{classes: 1, nested: true, uneven: true}, floor: 0.8},
		"three classes":                          {leveled: leveled{classes: 3}, floor: 0.9},
		"three classes, nested levels, some run": {leveled: leveled{classes: 3, nested: true, bound: true}, required: true, floor: 0.85},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(41, 43))
			planned, fewest, before := 0, 0, 0
			for round := range 400 {
				p, w := randomLevels(t, r, tt.leveled)
				p.Preferred = map[string]string{}
				for _, name := range slices.Sorted(maps.Keys(p.Required)) {
					if !tt.required || r.IntN(2) == 0 {
						p.Preferred[name] = p.Required[name]
						delete(p.Required, name)
					} else if r.IntN(2) == 0 {
						p.Preferred[name] = []string{"rack", "host", p.Required[name] + ",host"}[r.IntN(3)]
					}
				}
				plain, _ := placement.Minimum(p, w, placement.Budget{})
				w.Undo(len(w.stack))
				plan, short := placement.Minimum(p, w, preferringNow())
				if len(plain) > 0 && len(plan) == 0 {
					t.Fatalf("round %d: a plan is found without preferred levels only: %+v", round, short)
				}
				if len(plan) == 0 {
					if len(w.stack) > 0 {
						t.Fatalf("round %d: no plan, but %d placements", round, len(w.stack))
					}
					continue
				}
				checkPlan(t, p, w, plan)
				checkLevels(t, p, w, plan)
				w.Undo(len(w.stack))
				again, _ := placement.Minimum(p, w, preferringNow())
				w.Undo(len(w.stack))
				if !slices.Equal(plan, again) {
					t.Fatalf("round %d: two plans for the same facts: %v, %v", round, lines(plan), lines(again))
				}
				calls, most := 0, r.IntN(1+4*len(plan)) // the time for preferred levels is over at any moment
				cut, _ := placement.Minimum(p, w, placement.Budget{PreferencesExpired: func() bool { calls++; return calls > most }})
				if len(plain) > 0 && len(cut) == 0 {
					t.Fatalf("round %d: no plan if the time for preferred levels is over after %d calls", round, most)
				}
				checkPlan(t, p, w, cut)
				checkLevels(t, p, w, cut)
				w.Undo(len(w.stack))
				if len(p.Preferred) == 0 || len(plan) > 8 {
					continue
				}
				planned++
				least := func(plan []placement.Placement) bool {
					same := p // the same leaves
					same.Pods = map[string][]placement.Pod{}
					for _, pl := range plan {
						same.Pods[pl.Leaf] = p.Pods[pl.Leaf]
					}
					u := newUsedDomains(p, w)
					u.limit = countUsed(p, w, plan)
					return u.count >= u.limit || !solvableWithLevels(same, w, u)
				}
				if least(plan) {
					fewest++
				}
				if len(plain) > 0 && least(plain) {
					before++
				}
			}
			rate := float64(fewest) / float64(planned)
			t.Logf("%s: %d of %d plans use the fewest domains (%.1f %%), %d without preferences", name, fewest, planned, 100*rate, before)
			if rate < tt.floor {
				t.Errorf("%.1f %% of the plans use the fewest domains, want at least %.1f %%", 100*rate, 100*tt.floor)
			}
		})
	}
}

// run turns a plan into pods that run.
func run(p *placement.Problem, w *cluster, plan []placement.Placement) {
	for _, pl := range plan {
		i := slices.IndexFunc(w.nodes, func(n node) bool { return n.name == pl.Node })
		w.nodes[i].gpus -= w.classes[pl.Pod.Class].gpus
		p.Have[pl.Leaf]++
		p.Bound[pl.Leaf]++
		p.Nodes[pl.Leaf] = append(p.Nodes[pl.Leaf], pl.Node)
		p.Pods[pl.Leaf] = slices.DeleteFunc(slices.Clone(p.Pods[pl.Leaf]), func(pod placement.Pod) bool { return pod == pl.Pod })
	}
	w.stack = nil
}

// TestSurplusWithPreferredLevels: the same units of surplus, and as many single pods, are placed as without preferred
// levels, also if their time ends at any moment.
func TestSurplusWithPreferredLevels(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(47, 53))
	units, pods := 0, 0
	for round := range 1500 {
		p, w := randomLevels(t, r, leveled{classes: 1, nested: true, bound: true, uneven: round%2 == 0})
		p.Preferred, p.Required = p.Required, nil
		for name := range p.Pods { // room for surplus
			for i := range w.nodes[:len(w.nodes)/2] {
				w.nodes[i].gpus, w.nodes[i].free[0] = w.nodes[i].gpus+len(name)%2, w.nodes[i].free[0]+len(name)%2
			}
		}
		budget := preferringNow()
		if round%3 == 0 {
			calls, most := 0, r.IntN(20)
			budget.PreferencesExpired = func() bool { calls++; return calls > most }
		}
		plan, short := placement.Minimum(p, w, budget)
		if short != nil {
			continue
		}
		run(&p, w, plan)
		for {
			plain := placement.Unit(p, w, placement.Budget{})
			w.Undo(len(w.stack))
			unit := placement.Unit(p, w, budget)
			if unit.UnitRef != plain.UnitRef || len(unit.Placements) != len(plain.Placements) || len(w.stack) != len(unit.Placements) {
				t.Fatalf("round %d: unit %v of %d pods, without preferences %v of %d", round, unit.UnitRef, len(unit.Placements), plain.UnitRef, len(plain.Placements))
			}
			if len(unit.Placements) == 0 {
				break
			}
			units++
			run(&p, w, unit.Placements)
		}
		plain := placement.Singles(p, w, placement.Budget{})
		w.Undo(len(w.stack))
		singles := placement.Singles(p, w, budget)
		if len(singles) != len(plain) || len(w.stack) != len(singles) {
			t.Fatalf("round %d: %d single pods, without preferences %d", round, len(singles), len(plain))
		}
		pods += len(singles)
	}
	if units < 100 || pods < 100 {
		t.Errorf("only %d units and %d single pods", units, pods)
	}
}
