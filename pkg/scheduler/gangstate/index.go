// SPDX-License-Identifier: Apache-2.0

package gangstate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// indices find the gangs that a question concerns without visiting all gangs. Registry.reindex keeps them up to date.
type indices struct {
	timers   *orderedHeap[*gangState] // by the time at which Tick must check the gang
	ripe     *orderedHeap[*gangState] // by rank: parked gangs that are worth an attempt, and gangs whose room is kept
	partials sets.Set[Key]            // gangs that PodsToRelease must check
	units    map[int32]int            // number of gangs that wait with a surplus sub-group, by priority
	gated    map[*gangState]struct{}  // gangs whose single surplus pods wait for units
	grewAt   time.Time                // when room was last freed or added
}

// indexed is the entries of a gang in the indices.
type indexed struct {
	due       time.Time // in timers; zero: no entry
	inTimers  int
	rank      Rank // in ripe
	inRipe    int
	unitAt    int32 // in units
	unitWaits bool  // counted in units
}

func newIndices() indices {
	return indices{
		timers: &orderedHeap[*gangState]{
			less:  func(a, b *gangState) bool { return a.due.Before(b.due) },
			place: func(g *gangState) *int { return &g.inTimers },
		},
		ripe: &orderedHeap[*gangState]{
			less:  func(a, b *gangState) bool { return a.rank.Compare(b.rank) < 0 },
			place: func(g *gangState) *int { return &g.inRipe },
		},
		partials: sets.New[Key](), units: map[int32]int{}, gated: map[*gangState]struct{}{},
	}
}

// reindex updates the indices after a gang has changed.
func (r *Registry) reindex(g *gangState) {
	x := &r.index
	if r.gangs[g.key] != g {
		r.unindex(g)
		return
	}
	if g.leader != "" && (g.parked && g.ripe || r.now.Before(g.keepUntil)) {
		x.ripe.remove(g)
		g.rank = r.leaderRank(g)
		x.ripe.set(g)
	} else {
		x.ripe.remove(g)
		r.endYields(g)
	}
	if g.isCandidate() || g.numbers.flag(isLeaver) > 0 {
		x.partials.Insert(g.key)
	} else if x.partials.Has(g.key) {
		x.partials.Delete(g.key)
		g.proven = false
		if g.plan == nil || g.admitted || !g.holds() {
			g.incompleteFor = 0
		}
	}
	if g.gatedUntil.IsZero() {
		delete(x.gated, g)
	} else {
		x.gated[g] = struct{}{}
	}
	r.countUnit(g, g.admitted && g.tree != nil && g.numbers.unitsOf(g.profile()) > 0)
	r.setDue(g, r.dueAt(g))
}

// unindex removes a forgotten gang from the indices.
func (r *Registry) unindex(g *gangState) {
	x := &r.index
	x.ripe.remove(g)
	r.endYields(g)
	if h := g.yieldedTo; h != nil {
		h.yielders = slices.DeleteFunc(h.yielders, func(y *gangState) bool { return y == g })
		g.yieldedTo = nil
	}
	delete(x.gated, g)
	x.partials.Delete(g.key)
	r.countUnit(g, false)
	x.timers.remove(g)
}

// endYields ends the wait of the gangs that let this one go first.
func (r *Registry) endYields(g *gangState) {
	for _, y := range g.yielders {
		if y.yieldedTo == g {
			y.yieldOver = true
			r.setDue(y, r.dueAt(y))
		}
	}
	g.yielders = nil
}

func (r *Registry) setDue(g *gangState, due time.Time) {
	if due.IsZero() {
		r.index.timers.remove(g)
		g.due = due
		return
	}
	if g.inTimers == 0 || !due.Equal(g.due) {
		r.index.timers.remove(g)
		g.due = due
		r.index.timers.set(g)
	}
}

// countUnit updates the number of gangs that wait with a surplus sub-group. When the last of them at a priority is
// gone, single pods of this priority may proceed.
func (r *Registry) countUnit(g *gangState, waits bool) {
	x, priority := &r.index, r.priority(g)
	if waits == g.unitWaits && (!waits || priority == g.unitAt) {
		return
	}
	if g.unitWaits {
		if x.units[g.unitAt]--; x.units[g.unitAt] == 0 {
			delete(x.units, g.unitAt)
			for h := range x.gated {
				if h != g && r.priority(h) == g.unitAt {
					h.gatedUntil = r.now
					r.setDue(h, r.dueAt(h))
				}
			}
		}
	}
	if waits {
		x.units[priority]++
	}
	g.unitWaits, g.unitAt = waits, priority
}

// unitsOf returns how many groups could have another surplus sub-group if planned with this profile.
func (n *numbers) unitsOf(profile string) int {
	if p := n.pools[profile]; p != nil && p.ours {
		return p.units.all
	}
	return 0
}

// recordGrowth records that room was freed or added.
func (r *Registry) recordGrowth() { r.index.grewAt = r.now }

// dueAt returns when Tick must check the gang; zero: never.
func (r *Registry) dueAt(g *gangState) time.Time {
	soon := r.now.Add(-time.Nanosecond)
	switch {
	case g.tree == nil || g.plan != nil || g.completeAt.IsZero():
		return time.Time{}
	case g.leader == "":
		due := later(g.notBefore, g.gatedUntil)
		if g.incompleteFor > 0 && g.incompleteFor >= r.opts.RepairTimeout {
			due = later(due, r.now.Add(retryInterval)) // it is being released
		}
		return later(due, soon)
	case g.yieldedTo != nil && g.yieldOver:
		return soon
	case g.yieldedTo != nil:
		return g.yieldedAt.Add(yieldLimit)
	case !g.seen:
		return g.woken.Add(wakeInterval)
	case !g.parked:
		return time.Time{}
	}
	var due time.Time
	next := func(t time.Time) {
		if due.IsZero() || t.Before(due) {
			due = t
		}
	}
	tried := later(g.refusedAt, g.woken)
	if g.changed {
		next(tried.Add(retryInterval))
	}
	if g.task == SurplusUnit && !g.ripe && !g.unitsTried && g.hasSingles() {
		next(later(g.refusedAt, r.index.grewAt).Add(r.opts.SingleSurplusAfter))
	}
	return due
}

// hasSingles reports whether single pods wait in sub-groups that are satisfied at all levels.
func (g *gangState) hasSingles() bool {
	n, profile := g.numbers, g.profile()
	p := n.pools[profile]
	if p == nil || !p.ours {
		return false
	}
	for leaf := range p.leaves {
		if g.isWhole(leaf) {
			return true
		}
	}
	return false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
