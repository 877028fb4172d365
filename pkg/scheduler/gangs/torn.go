// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// A unit of surplus is torn if its plan was bound only in part. Its waiting pods are tried first (hasTornGroup). If it
// cannot be completed within the repair time, the pods that this scheduler bound for it are released, like those of a
// partial gang, and the sub-group starts again as a unit (docs/decisions, G20).
//
// A sub-group that had its minimum is never released. The proof that it had not is the memory of this process:
//
//  1. When the first plan for the unit was committed, no pod of the sub-group was bound.
//  2. Since then only pods of plans for the unit were bound in it. A pod of another plan or of another scheduler ends
//     the proof when it is observed in the sub-group.
//  3. All pods of those plans that may have been bound at any time do not satisfy the sub-group together. A pod that is
//     gone counts as bound: its binding may have been accepted without an answer.
//  4. The tree is the same. Every new generation of the PodGroup ends the proof.
//
// Another process has no such proof, and releases only pods whose release was recorded before (HasReleaseCondition).

// begunUnit is a sub-group above the gang's minimum that was begun by a plan of this process and has not had its
// minimum since.
type begunUnit struct {
	first   *Plan
	leaves  map[types.UID]string // the pods of all plans for the unit, and the leaf for which they were planned
	tornFor time.Duration        // how long it has been bound in part, without the time of the first plan
	quiet   bool                 // the gang had no plan in force at the last call of PodsToRelease, nor since
}

// unitOf returns the sub-group with which pods of the leaf start: the largest one that is not admitted. nil: all are.
func (g *gangState) unitOf(leaf *gang.Group) *gang.Group {
	var unit *gang.Group
	for group := leaf; group.Parent() != nil; group = group.Parent() {
		if !g.admittedGroups.Has(group.Name()) {
			unit = group
		}
	}
	return unit
}

// recordUnits records the units that a new plan begins, and adds its pods to those that were begun before. A sub-group
// without bound pods is surplus if the groups above it have their minimum.
func (g *gangState) recordUnits(p *Plan) {
	for _, u := range g.begun {
		u.quiet = false
	}
	units := map[*gang.Group]*begunUnit{}
	for leaf := range p.leaves {
		group := g.unitOf(leaf)
		if group == nil {
			continue
		}
		u := g.begun[group.Name()]
		if (u == nil || u.first != p) && g.numbers.Bound.Pods(group) == 0 && g.isWhole(group.Parent()) {
			u = &begunUnit{first: p, leaves: map[types.UID]string{}}
			if g.begun == nil {
				g.begun = map[string]*begunUnit{}
			}
			g.begun[group.Name()] = u
		}
		if u != nil {
			units[leaf] = u
		}
	}
	if len(units) == 0 {
		return
	}
	for i := range p.members {
		x := &p.members[i]
		if u := units[x.leaf]; u != nil {
			u.leaves[x.member.pod.UID] = x.leaf.Name()
		}
	}
}

// dropUnits forgets the units that are admitted now, and those without bound pods.
func (g *gangState) dropUnits() {
	if !g.admitted || g.tree == nil {
		g.begun = nil
		return
	}
	for name := range g.begun {
		if g.admittedGroups.Has(name) || g.plan == nil && g.numbers.Bound.Pods(g.tree.Group(name)) == 0 {
			delete(g.begun, name)
		}
	}
}

// dropUnitOfStranger ends the proof for the unit of a bound pod that no plan for the unit placed.
func (g *gangState) dropUnitOfStranger(m *member) {
	if len(g.begun) == 0 || !m.isBound() || m.entry.Share().Leaf == nil {
		return
	}
	for group := m.entry.Share().Leaf; group.Parent() != nil; group = group.Parent() {
		if u := g.begun[group.Name()]; u != nil {
			if _, planned := u.leaves[m.pod.UID]; !planned {
				delete(g.begun, group.Name())
			}
		}
	}
}

// isTornUnit reports whether the unit is bound in part, and its first plan is over.
func (g *gangState) isTornUnit(name string, u *begunUnit) bool {
	return g.plan != u.first && g.numbers.Bound.Pods(g.tree.Group(name)) > 0
}

// neverHadMinimum reports whether the pods that may have been bound for the unit at any time do not satisfy it.
func (g *gangState) neverHadMinimum(name string, u *begunUnit) bool {
	ever := gang.Counts{}
	for uid, leaf := range u.leaves {
		if m := g.members[uid]; m == nil || !m.wasNeverBound() {
			ever[leaf]++
		}
	}
	return !g.tree.Group(name).Satisfied(ever)
}

// placedFor returns the pods that were bound for the unit, and whether a controller would replace one of them.
func (g *gangState) placedFor(name string, u *begunUnit) (placed []*member, replaceable bool) {
	below := sets.New[*gang.Group]()
	for _, leaf := range g.tree.Leaves() {
		for group := leaf; group != nil; group = group.Parent() {
			if group.Name() == name {
				below.Insert(leaf)
			}
		}
	}
	for uid := range u.leaves {
		if m := g.members[uid]; m != nil && below.Has(m.entry.Share().Leaf) && g.wasPlaced(m) {
			placed = append(placed, m)
			replaceable = replaceable || count.Controller(m.pod) != ""
		}
	}
	return placed, replaceable
}

// hasDueUnit reports whether the repair time of a torn unit is over and the next call of PodsToRelease will release it.
func (g *gangState) hasDueUnit() bool {
	for name, u := range g.begun {
		if u.tornFor >= g.opts.RepairTimeout && g.isTornUnit(name, u) && g.neverHadMinimum(name, u) {
			if _, replaceable := g.placedFor(name, u); replaceable {
				return true
			}
		}
	}
	return false
}

// repairsUnit reports whether the gang has a torn unit whose repair time is running, or is over and its pods must be
// released.
func (g *gangState) repairsUnit() bool {
	for name, u := range g.begun {
		if u.tornFor < g.opts.RepairTimeout && g.isTornUnit(name, u) {
			return true
		}
	}
	return g.hasDueUnit()
}

// unitsToRelease is the part of PodsToRelease for torn units. The repair time of a unit does not run while a group
// above it is below its minimum, because the unit may be needed then. After the last attempt one call passes before
// the release, so that informers show a binding that was accepted without an answer.
func (g *gangState) unitsToRelease(elapsed time.Duration, answering bool) []*corev1.Pod {
	var out []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(g.begun)) {
		u := g.begun[name]
		quiet := u.quiet && g.plan == nil
		u.quiet = g.plan == nil
		switch {
		case !g.isTornUnit(name, u):
			continue
		case !g.isWhole(g.tree.Group(name).Parent()):
			u.tornFor = 0
			continue
		case answering:
			u.tornFor += min(elapsed, watched)
		}
		switch {
		case u.tornFor < g.opts.RepairTimeout || !quiet || g.vanished > 0:
			continue
		case !g.neverHadMinimum(name, u):
			delete(g.begun, name)
			continue
		}
		placed, _ := g.placedFor(name, u)
		for _, m := range placed {
			out = append(out, m.release())
		}
	}
	return out
}
