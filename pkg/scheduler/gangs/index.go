// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// indices find the gangs that a question concerns without visiting all gangs. Registry.reindex keeps them up to date.
type indices struct {
	timers   *count.Heap[*gangState] // by the time at which Tick must check the gang
	first    *count.Heap[*gangState] // by rank: gangs that gangs of lower rank let go first, see MustYield
	partials sets.Set[Key]           // gangs that PodsToRelease must check
	units    priorityCounts          // gangs that wait with a surplus sub-group
	minimums priorityCounts          // gangs whose minimum was refused
	gated    map[*gangState]struct{} // gangs whose surplus waits for these
	yielding map[*gangState]struct{} // gangs in phase Yielding
	grewAt   time.Time               // when room was last freed or added
	growing  time.Time               // since when it has grown without a pause in which surplus that waits could be tried
}

// indexed is the entries of a gang in the indices.
type indexed struct {
	due      time.Time // in timers; zero: no entry
	inTimers int
	rank     Rank // in first, or in waitList.heard
	inFirst  int

	inHeard, inTurns int // in waitList
}

// priorityCounts counts gangs by priority.
type priorityCounts struct {
	count      map[int32]int
	priorityOf map[*gangState]int32 // the priority with which a gang is counted
}

func newPriorityCounts() priorityCounts {
	return priorityCounts{map[int32]int{}, map[*gangState]int32{}}
}

// setGang counts the gang, or not. gone: it was the last one of its earlier priority, was.
func (w *priorityCounts) setGang(g *gangState, waits bool, priority int32) (was int32, gone bool) {
	was, counted := w.priorityOf[g]
	if counted == waits && (!waits || was == priority) {
		return was, false
	}
	if counted {
		delete(w.priorityOf, g)
		if w.count[was]--; w.count[was] == 0 {
			delete(w.count, was)
			gone = true
		}
	}
	if waits {
		w.priorityOf[g] = priority
		w.count[priority]++
	}
	return was, gone
}

// hasFrom reports whether a gang of this or a higher priority is counted.
func (w *priorityCounts) hasFrom(priority int32) bool {
	for p := range w.count {
		if p >= priority {
			return true
		}
	}
	return false
}

func newIndices() indices {
	return indices{
		timers:   count.NewHeap(func(a, b *gangState) bool { return a.due.Before(b.due) }, func(g *gangState) *int { return &g.inTimers }),
		first:    count.NewHeap(func(a, b *gangState) bool { return compareIndexed(a, b) < 0 }, func(g *gangState) *int { return &g.inFirst }),
		partials: sets.New[Key](), units: newPriorityCounts(), minimums: newPriorityCounts(), gated: map[*gangState]struct{}{}, yielding: map[*gangState]struct{}{},
	}
}

// reindex updates the indices after a gang has changed.
func (r *Registry) reindex(g *gangState) {
	x := &r.index
	if r.gangs[g.key] != g {
		r.unindex(g)
		return
	}
	if g.isCandidate() || g.broken || g.numbers.Flagged(count.IsReleased) > 0 || len(g.begun) > 0 {
		x.partials.Insert(g.key)
	} else if x.partials.Has(g.key) {
		x.partials.Delete(g.key)
		g.proven = false
		if g.plan == nil || g.admitted || !g.holdsOwnPods() {
			g.incompleteFor = 0
		}
	}
	if g.retried {
		x.first.Remove(g)
		g.rank = g.leaderRank() // after proven is up to date
		x.first.Set(g)
	} else if g.inFirst > 0 {
		x.first.Remove(g)
		r.resume = true
	}
	r.waiting.heard.Remove(g)
	if r.isHeard(g) {
		g.rank = g.leaderRank()
		r.waiting.heard.Set(g)
	}
	if g.phase.isRefused() {
		r.waiting.turns.Set(g)
	} else {
		r.waiting.turns.Remove(g)
	}
	if g.phase == Yielding {
		x.yielding[g] = struct{}{}
	} else {
		delete(x.yielding, g)
	}
	if g.gatedUntil.IsZero() {
		delete(x.gated, g)
	} else {
		x.gated[g] = struct{}{}
	}
	r.countWaiting(g, g.admitted && g.tree != nil && g.numbers.GroupsWithUnits(g.numbers.Profile()) > 0,
		g.leader != "" && !g.task.followsMinimums() && !g.refusedAt.IsZero())
	due := r.timerOf(g)
	if p := g.preemption; p != nil && g.plan == nil {
		due = earlier(cmp.Or(due, p.NextTime()), p.NextTime())
	}
	r.setTimer(g, due)
}

// unindex removes a forgotten gang from the indices.
func (r *Registry) unindex(g *gangState) {
	x := &r.index
	r.resume = r.resume || g.inFirst > 0
	x.first.Remove(g)
	delete(x.yielding, g)
	r.waiting.heard.Remove(g)
	delete(r.waiting.unheard, g)
	if g.wait != nil {
		r.waiting.endGang(g, nil)
	}
	delete(x.gated, g)
	x.partials.Delete(g.key)
	if g.promise != nil {
		r.endPromise(g, PromiseCancelled)
	}
	r.countWaiting(g, false, false)
	x.timers.Remove(g)
}

func (r *Registry) setTimer(g *gangState, due time.Time) {
	if due.IsZero() {
		r.index.timers.Remove(g)
		g.due = due
		return
	}
	if g.inTimers == 0 || !due.Equal(g.due) {
		r.index.timers.Remove(g)
		g.due = due
		r.index.timers.Set(g)
	}
}

// countWaiting updates the numbers of gangs that wait with a surplus sub-group, and with a refused minimum. When the
// last of them at a priority is gone, the surplus that waited for it may proceed.
func (r *Registry) countWaiting(g *gangState, unit, minimum bool) {
	x, priority := &r.index, g.priority()
	proceed := func(may func(priority int32) bool) {
		for h := range x.gated {
			if h != g && may(h.priority()) {
				h.gatedUntil = r.now
				r.setTimer(h, r.timerOf(h))
			}
		}
	}
	if was, gone := x.units.setGang(g, unit, priority); gone {
		proceed(func(p int32) bool { return p == was })
	}
	if was, gone := x.minimums.setGang(g, minimum, priority); gone {
		proceed(func(p int32) bool { return p <= was })
	}
}

// recordRoomGrowth records that room was freed or added.
func (r *Registry) recordRoomGrowth() {
	if r.now.Sub(r.index.grewAt) >= 2*r.opts.SingleSurplusAfter {
		r.index.growing = r.now
	}
	r.index.grewAt = r.now
}

// timerOf returns when Tick must check the gang; zero: never.
func (r *Registry) timerOf(g *gangState) time.Time {
	soon := r.now.Add(-time.Nanosecond)
	switch {
	case g.tree == nil || g.plan != nil || g.phase == Idle:
		return time.Time{}
	case g.leader == "":
		due := later(g.notBefore, g.gatedUntil)
		if g.incompleteFor > 0 && g.incompleteFor >= r.opts.RepairTimeout {
			due = later(due, r.now.Add(retryInterval)) // it is being released
		}
		return later(due, soon)
	case g.phase == Yielding:
		return g.yieldedAt.Add(yieldLimit)
	case g.phase == Elected:
		return g.woken.Add(wakeInterval)
	case !g.phase.isRefused():
		return time.Time{}
	}
	var due time.Time
	next := func(t time.Time) {
		if due.IsZero() || t.Before(due) {
			due = t
		}
	}
	if g.changed && !g.wait.heard {
		next(g.dueAfterChange())
	}
	if until := g.wait.Until; !until.IsZero() {
		next(until)
	}
	if g.hasFurtherSurplus() {
		next(r.furtherSurplusDue(g))
	}
	return due
}

// dueAfterChange returns when a refused gang that has changed itself takes its turn beside those that saw an event: one
// label or Topology may change many gangs.
func (g *gangState) dueAfterChange() time.Time { return later(g.refusedAt, g.woken).Add(retryInterval) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
