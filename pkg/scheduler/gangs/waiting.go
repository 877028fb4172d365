// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// A refused gang waits until an event may help it. Such a gang is cheap: an event visits only the gangs that it
// concerns, and a change of a node is compared with one number per gang.
//
// A gang that lacks room is tried when enough of its pods fit, in the order of the queue, and as long as the room is
// enough for all gangs that claim some of it. A gang that was refused although enough fits may be refused again: it is
// tried after an event that may help it, in the order of the queue. Without an event an attempt is repeated only if it
// was cut short, or after a very long time. Both have a share of the scheduling loop: see budget.

// Shape is a kind of pod. FittingPods returns an upper bound of how many of these pods fit on all nodes.
type Shape interface{ FittingPods() int }

// Topic identifies the gangs that an event may help other than by room for pods of a shape. It is comparable.
type Topic any

// Anything is the topic for which every gang waits.
const Anything = "anything"

// EventOf is the topic of events that may help gangs whose plans failed: the UID of the pod to which they happened, ""
// if to another object.
type EventOf types.UID

// Need is the minimum number of pods of a shape that must fit at the same time for the gang to be placed.
type Need struct {
	Shape Shape
	Pods  int
}

// Wait describes what a refused gang waits for. Its functions are called only by RecordGangRefused and RetryWaiting,
// and must not call the Registry.
type Wait struct {
	// Needs has an entry for every shape whose number of fitting pods is known.
	Needs []Need
	// Fits returns how many pods of a shape fit into room that is not reserved from the gang. nil: Shape.FittingPods.
	Fits func(Shape) int
	// MayFit evaluates the necessary condition of a plan with the current room, which must be that of Needs. nil: Needs
	// alone.
	MayFit func() bool
	// Topics are those of events, other than more room, that may help.
	Topics []Topic
	// Took is the time of the scheduling loop that the attempt used.
	Took time.Duration
	// Again is when an attempt that was cut short is continued. Zero: it was not.
	Again time.Time
	// Until is when something that the attempt took into account is no longer known: the gang is tried again. Zero:
	// never.
	Until time.Time
	// Progress is that of an attempt which was cut short: see Work.Progress.
	Progress Progress
	// Missed: an event occurred during the attempt that it may not have seen.
	Missed bool
	// Release is called once, by the first call of RecordGangRefused or RetryWaiting after the gang stopped waiting.
	// nil is allowed.
	Release func()
}

// wait is a gang's entry in the list of refused gangs, until the attempt that follows has ended.
type wait struct {
	Wait
	waiters []waiter  // by need
	task    Task      // what was refused
	units   *wait     // what its surplus sub-groups wait for that were refused before, while other surplus is tried or waits
	since   time.Time // when it was refused
	missed  bool      // an event that may help occurred while the gang was tried again
	heard   bool      // an event that may help occurred since, or the gang has changed: it waits for its turn
	repeat  time.Time // when the gang is tried without a further event, if enough fits
	turn    time.Time // when it is looked at for that, or for its numbers
	fits    []int     // by need: how many pods fitted when the condition was evaluated last; nil: never
	held    bool      // its result
}

// isFulfilled reports whether the necessary condition of a plan holds.
func (w *wait) isFulfilled() bool {
	same := len(w.fits) == len(w.Needs)
	if !same {
		w.fits = make([]int, len(w.Needs))
	}
	enough := true
	for i, n := range w.Needs {
		fits := w.fitsOf(n.Shape)
		enough = enough && fits >= n.Pods
		same = same && fits == w.fits[i]
		w.fits[i] = fits
	}
	if !same || len(w.Needs) == 0 {
		w.held = enough && (w.MayFit == nil || w.MayFit())
	}
	return w.held || w.units != nil && w.units.isFulfilled()
}

func (w *wait) fitsOf(s Shape) int {
	if w.Fits == nil {
		return s.FittingPods()
	}
	return w.Fits(s)
}

// waitList is the list of refused gangs. Guarded by Registry.mu.
type waitList struct {
	all     map[*gangState]struct{}
	byShape map[Shape]*count.Heap[*waiter] // gangs that wait for room of a shape, by the number of pods
	byTopic map[Topic]map[*gangState]struct{}
	heard   *count.Heap[*gangState] // gangs for which isHeard holds, in the order of the queue
	turns   *count.Heap[*gangState] // gangs in a phase of refused gangs, by wait.turn
	unheard map[*gangState]struct{} // gangs that saw no event that may help them since the cycle of their leader began, until its plan is refused or bound
	changed time.Time               // when what is free changed last
	freed   map[Shape]struct{}      // shapes of which less is claimed than at the last call of RetryWaiting
	ended   []func()                // Wait.Release of gangs that no longer wait
	// afterEvents, withoutEvent and forPromises are the loop's time for attempts that may fail again: of refused gangs
	// in heard, of others, and of those for which better room than they are promised may have become free.
	afterEvents, withoutEvent, forPromises budget
}

// waiter is a gang that waits until so many pods of a shape fit.
type waiter struct {
	pods int
	gang *gangState
	in   int // position in waitList.byShape
}

func newWaiters() *count.Heap[*waiter] {
	return count.NewHeap(func(a, b *waiter) bool { return a.pods < b.pods }, func(w *waiter) *int { return &w.in })
}

func newWaitList() waitList {
	return waitList{
		all: map[*gangState]struct{}{}, byShape: map[Shape]*count.Heap[*waiter]{}, byTopic: map[Topic]map[*gangState]struct{}{}, freed: map[Shape]struct{}{},
		heard:       count.NewHeap(func(a, b *gangState) bool { return compareIndexed(a, b) < 0 }, func(g *gangState) *int { return &g.inHeard }),
		turns:       count.NewHeap(comesBefore, func(g *gangState) *int { return &g.inTurns }),
		unheard:     map[*gangState]struct{}{},
		afterEvents: budget{share: eventShare}, withoutEvent: budget{share: repeatShare}, forPromises: budget{share: repeatShare},
	}
}

// comesBefore reports whether the turn of a refused gang comes before that of another one. At one moment it is that of
// the gang that was refused first, since the time may not suffice for all.
func comesBefore(a, b *gangState) bool {
	if c := cmp.Or(a.wait.turn.Compare(b.wait.turn), a.wait.since.Compare(b.wait.since)); c != 0 {
		return c < 0
	}
	return compareNames(a.key, b.key) < 0
}

// addGang enters what a gang waits for into the indices.
func (x *waitList) addGang(g *gangState, w *wait) {
	x.all[g] = struct{}{}
	w.waiters = make([]waiter, len(w.Needs))
	for i, n := range w.Needs {
		if x.byShape[n.Shape] == nil {
			x.byShape[n.Shape] = newWaiters()
		}
		w.waiters[i] = waiter{pods: n.Pods, gang: g}
		x.byShape[n.Shape].Set(&w.waiters[i])
	}
	for _, topic := range w.Topics {
		if x.byTopic[topic] == nil {
			x.byTopic[topic] = map[*gangState]struct{}{}
		}
		x.byTopic[topic][g] = struct{}{}
	}
}

// endGang removes a gang's entry. The entries from kept on do not end; nil: all end.
func (x *waitList) endGang(g *gangState, kept *wait) {
	x.heard.Remove(g)
	x.turns.Remove(g)
	delete(x.all, g)
	ends := true
	for w := g.wait; w != nil; w = w.units {
		for i, n := range w.Needs {
			waiters := x.byShape[n.Shape]
			if waiters.Remove(&w.waiters[i]); len(waiters.Items()) == 0 {
				delete(x.byShape, n.Shape)
			}
		}
		for _, topic := range w.Topics {
			delete(x.byTopic[topic], g)
			if len(x.byTopic[topic]) == 0 {
				delete(x.byTopic, topic)
			}
		}
		if ends = ends && w != kept; w.Release != nil && ends {
			x.ended = append(x.ended, w.Release)
		}
	}
	g.wait = nil
}

// callReleases calls Wait.Release of gangs that no longer wait.
func (x *waitList) callReleases() {
	for _, release := range x.ended {
		release()
	}
	x.ended = nil
}

// visitFitting calls visit with the gangs that wait for room of a shape and of which enough pods fit by now.
func (x *waitList) visitFitting(s Shape, visit func(*gangState)) {
	if waiters := x.byShape[s]; waiters != nil {
		fits := s.FittingPods()
		waiters.VisitWhile(func(w *waiter) bool { return w.pods <= fits }, func(w *waiter) { visit(w.gang) })
	}
}

// WaitingGangs returns the number of refused gangs.
func (r *Registry) WaitingGangs() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting.all)
}

// FewGangs is the number of refused gangs up to which their numbers are kept up to date.
const FewGangs = 100

// RecordRoomChanged records that what is free has changed, so that the numbers of refused gangs may be outdated.
func (r *Registry) RecordRoomChanged(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting.changed = now
}

// isOutdated reports whether a refused gang is tried for its numbers alone.
func (r *Registry) isOutdated(g *gangState) bool {
	x := &r.waiting
	return len(x.all) <= FewGangs && x.changed.After(g.refusedAt) && !r.now.Before(g.refusedAt.Add(refreshAfter))
}

// AwaitedShapes returns the shapes for which gangs wait, in no order.
func (r *Registry) AwaitedShapes() []Shape {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Shape
	for s := range r.waiting.byShape {
		out = append(out, s)
	}
	return out
}

// RecordGangRefused records that the leader's attempt found no plan, and what the gang waits for. It is tried again
// because of a later call of RetryWaiting, or because of its own pods.
func (r *Registry) RecordGangRefused(key Key, why podgroup.Refusal, what Wait, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	r.waiting.callReleases()
	g := r.gangs[key]
	if g == nil || g.phase != Planning {
		if what.Release != nil {
			what.Release()
		}
		if g == nil {
			return Effects{}
		}
	}
	g.refusal, g.refusedAt, g.progress = why, now, what.Progress
	if what.Again.IsZero() || what.Progress.Tried == 0 { // else the attempt goes on
		r.passPromise(g)
	}
	before := g.preemption
	e := r.reviewRefused(g)
	if until := g.hopeless.until; before != nil && g.preemption == nil && !until.IsZero() && until.Before(what.Until) {
		what.Until = until // the attempt expected to wait for the room as long as it would have been kept
	}
	if g.phase == Planning {
		r.parkRefused(g, what)
	} else {
		g.retried = g.leader != "" // another leader was elected in the meantime
	}
	r.reindex(g)
	e.Dirty = append(e.Dirty, key)
	if p := g.preemption; g.phase.isRefused() && (p != nil && p.Stage() == evictions.Announced || p == nil && before != nil && before.Stage() == evictions.Ended && before.Taken) {
		e.add(r.retryRefused(g)) // the decision was recorded during the attempt, or another one has to be made
	}
	e.add(r.retryReady(nil))
	return r.endCall(e)
}

// parkRefused enters a gang that was just refused into the list. The entries of its surplus sub-groups are kept while
// other surplus waits.
func (r *Registry) parkRefused(g *gangState, what Wait) {
	x, w, old := &r.waiting, &wait{Wait: what, task: g.task, since: r.now}, g.wait
	r.endClaim(g)
	if old != nil {
		w.missed = old.missed
		if g.passed > 0 {
			for w.units = old; w.units != nil && w.units.task >= g.task; w.units = w.units.units {
			}
		}
		x.endGang(g, w.units)
	}
	g.wait = w
	for u := w; u != nil; u = u.units {
		x.addGang(g, u)
	}
	if w.Missed || w.missed {
		g.hopeless.seen = 0
	}
	if w.repeat = w.Again; w.repeat.IsZero() {
		w.repeat = r.now.Add(longest)
	}
	switch {
	case !w.isFulfilled():
		w.turn = r.now.Add(recheckAfter)
		r.enterPhase(g, Lacking)
	default:
		w.turn = earlier(w.repeat, r.now.Add(refreshAfter))
		r.enterPhase(g, Parked)
		if w.Missed || w.missed {
			r.recordHeard(g)
		}
	}
	r.retryHopeless(g)
}
