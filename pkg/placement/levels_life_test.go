// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// life is a gang with levels on a small cluster, whose pods run where they are planned.
type life struct {
	t       *testing.T
	round   int
	p       placement.Problem
	classes []class
	nodes   []node // gpus: free
	made    int    // replacements of pods
}

func (l *life) cluster() *cluster { return newCluster(l.t, slices.Clone(l.classes), l.nodes...) }

// run lets the pods of a plan run.
func (l *life) run(plan []placement.Placement) {
	l.t.Helper()
	checkLevels(l.t, l.p, l.cluster(), plan)
	for _, pl := range plan {
		i := slices.IndexFunc(l.nodes, func(n node) bool { return n.name == pl.Node })
		if l.nodes[i].gpus -= l.classes[pl.Pod.Class].gpus; l.nodes[i].gpus < 0 {
			l.t.Fatalf("round %d: node %s has too many pods", l.round, pl.Node)
		}
		l.p.Have[pl.Leaf]++
		l.p.Bound[pl.Leaf]++
		l.p.Nodes[pl.Leaf] = append(l.p.Nodes[pl.Leaf], pl.Node)
		l.p.Pods[pl.Leaf] = slices.DeleteFunc(slices.Clone(l.p.Pods[pl.Leaf]), func(pod placement.Pod) bool { return pod.ID == pl.Pod.ID })
	}
}

// lose ends the pods of a leaf from the given one on, which wait again. All are of one class.
func (l *life) lose(leaf string, from int) {
	for _, name := range l.p.Nodes[leaf][from:] {
		l.nodes[slices.IndexFunc(l.nodes, func(n node) bool { return n.name == name })].gpus += l.classes[0].gpus
		l.p.Have[leaf]--
		l.p.Bound[leaf]--
		l.made++
		l.p.Pods[leaf] = append(l.p.Pods[leaf], placement.Pod{ID: fmt.Sprintf("%s-new%d", leaf, l.made)})
	}
	l.p.Nodes[leaf] = slices.Clone(l.p.Nodes[leaf][:from])
}

// nodesFor returns the nodes in the domains in which pods of the groups above run, nil if these are in no single
// domain.
func (l *life) nodesFor(g *gang.Group) []node {
	nodes := slices.Clone(l.nodes)
	for up := g; up != nil; up = up.Parent() {
		level := l.p.Required[up.Name()]
		if level == "" {
			continue
		}
		domains := map[string]bool{}
		for _, leaf := range l.p.Tree.Leaves() {
			for at := leaf; at != nil; at = at.Parent() {
				if at != up {
					continue
				}
				for _, name := range l.p.Nodes[leaf.Name()] {
					values, ok := valuesOf(l.nodes[slices.IndexFunc(l.nodes, func(n node) bool { return n.name == name })], level)
					domains[values] = true
					if !ok {
						return nil
					}
				}
			}
		}
		if len(domains) > 1 {
			return nil
		}
		nodes = slices.DeleteFunc(nodes, func(n node) bool {
			values, ok := valuesOf(n, level)
			return !ok || len(domains) == 1 && !domains[values]
		})
	}
	return nodes
}

// holdsUnit reports whether a group that is no part of the minimum can have its own.
func (l *life) holdsUnit(unit *gang.Group) bool {
	nodes := l.nodesFor(unit.Parent())
	if len(nodes) == 0 {
		return false
	}
	name := func(g *gang.Group) string {
		if g == unit {
			return ""
		}
		return g.Name()
	}
	p := placement.Problem{Have: gang.Counts{}, Bound: gang.Counts{}, Nodes: map[string][]string{}, Pods: map[string][]placement.Pod{}, Required: map[string]string{}}
	var root gang.Node
	var groups []gang.Node
	for _, g := range l.p.Tree.Groups() {
		if !isBelowGroup(g, unit) {
			continue
		}
		n := gang.Node{Name: name(g)}
		if g.IsLeaf() {
			n.MinMember = new(int32(g.Min()))
			p.Have[n.Name], p.Nodes[n.Name], p.Pods[n.Name] = l.p.Have[g.Name()], l.p.Nodes[g.Name()], l.p.Pods[g.Name()]
		} else {
			n.MinSubGroup = new(int32(g.Min()))
		}
		if p.Required[n.Name] = l.p.Required[g.Name()]; g == unit {
			root = n
		} else {
			n.Parent = name(g.Parent())
			groups = append(groups, n)
		}
	}
	p.Tree = mustBuild(l.t, root, groups...)
	for _, names := range p.Nodes {
		for _, name := range names {
			if !slices.ContainsFunc(nodes, func(n node) bool { return n.name == name }) {
				return false // it runs elsewhere
			}
		}
	}
	return solvableWithLevels(p, newCluster(l.t, slices.Clone(l.classes), nodes...), nil)
}

func isBelowGroup(g, other *gang.Group) bool {
	for ; g != nil; g = g.Parent() {
		if g == other {
			return true
		}
	}
	return false
}

// holdsAbove reports whether the groups above have their minimum.
func (l *life) holdsAbove(g *gang.Group) bool {
	for up := g.Parent(); up != nil; up = up.Parent() {
		if !up.Satisfied(l.p.Have) {
			return false
		}
	}
	return true
}

// TestLifeOfAGangWithLevels plans the minimum, surplus and replacements of like pods step by step, in random trees with
// required levels, some of which prefer levels too. All that can be placed is placed, and only that.
func TestLifeOfAGangWithLevels(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(83, 89))
	var minimums, refills, waits, units, refused, singles int
	for round := range 2000 {
		p, w := randomLevels(t, r, leveled{classes: 1, nested: round%2 == 0, bound: round%4 < 2})
		l := &life{t: t, round: round, p: p, classes: slices.Clone(w.classes), nodes: slices.Clone(w.nodes)}
		budget := placement.Budget{}
		if round%3 == 0 {
			l.p.Preferred, budget.PreferencesExpired = map[string]string{}, never
			for _, g := range append([]*gang.Group{p.Tree.Root()}, p.Tree.Groups()...) {
				if r.IntN(3) == 0 {
					l.p.Preferred[g.Name()] = []string{"rack", "block", "block,rack", "host"}[r.IntN(4)]
				}
			}
		}
		for range 5 {
			if !l.p.Tree.Satisfied(l.p.Have) {
				want, ran := solvableWithLevels(l.p, l.cluster(), nil), len(slices.Concat(slices.Collect(maps.Values(l.p.Nodes))...)) > 0
				plan, short := placement.Minimum(l.p, l.cluster(), budget)
				if want != (short == nil) {
					t.Fatalf("round %d: there is a plan: %t; shortfall %+v", round, want, short)
				}
				l.run(plan)
				switch {
				case !want:
					waits++
				case ran:
					refills++
				default:
					minimums++
				}
			}
			for l.p.Tree.Satisfied(l.p.Have) {
				plan := placement.Unit(l.p, l.cluster(), budget)
				for _, ref := range plan.Refused {
					refused++
					if l.holdsUnit(l.p.Tree.Group(ref.Group)) {
						t.Fatalf("round %d: unit %q is refused, but there is a plan", round, ref.Group)
					}
				}
				if plan.Placements == nil {
					for _, g := range l.p.Tree.Groups() {
						if !g.Satisfied(l.p.Have) && l.holdsAbove(g) && l.holdsUnit(g) {
							t.Fatalf("round %d: there is no unit, but %q could be one", round, g.Name())
						}
					}
					break
				}
				units++
				l.run(plan.Placements)
				if g := l.p.Tree.Group(plan.Group); !g.Satisfied(l.p.Have) || !l.holdsAbove(g) {
					t.Fatalf("round %d: %q is no whole unit", round, plan.Group)
				}
			}
			plan := placement.Singles(l.p, l.cluster(), budget)
			singles += len(plan)
			l.run(plan)
			for _, leaf := range l.p.Tree.Leaves() {
				if len(l.p.Pods[leaf.Name()]) == 0 || !leaf.Satisfied(l.p.Have) || !l.holdsAbove(leaf) {
					continue
				}
				for _, n := range l.nodesFor(leaf) {
					if w.classes[0].label != "" && n.label != w.classes[0].label {
						continue
					}
					if n.gpus >= l.classes[0].gpus {
						t.Fatalf("round %d: a pod of %q is refused, but node %s has room", round, leaf.Name(), n.name)
					}
				}
			}
			leaf := l.p.Tree.Leaves()[r.IntN(len(l.p.Tree.Leaves()))].Name()
			if n := len(l.p.Nodes[leaf]); n > 0 {
				l.lose(leaf, r.IntN(n))
			}
		}
	}
	t.Logf("%d minimums, %d refills, %d that wait; %d units, %d refused; %d single pods", minimums, refills, waits, units, refused, singles)
	if min(minimums, refills, waits, units, refused, singles) < 100 {
		t.Error("something has not happened often enough: the instances are no test")
	}
}
