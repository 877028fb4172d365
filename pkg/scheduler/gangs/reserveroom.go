// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/backfill"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// A gang that has waited for room for some time is promised some (docs/decisions, G25): an attempt that finds no plan
// chooses it (package backfill), and it is reserved as the pods end that have it. The first gang of a priority is
// promised room, and only a few at a time. The room is chosen anew when a better one can be had, and given up when
// nothing of it has become free for a while.

const (
	// reviewInterval is the time after which a promise is compared with what could be promised now, if room has become
	// free.
	reviewInterval = 30 * time.Second
	// captureInterval is the same for a gang of which it is not known when it starts: what becomes free on another node
	// may be worth more than what it waits for.
	captureInterval = time.Second
	// unfitPause is the time after which room is chosen again for a gang that did not fit without the pods for which it
	// may wait either, or of which this could not be told.
	unfitPause = time.Minute
)

// promise is the room that a gang is promised.
type promise struct {
	since    time.Time           // when the gang was promised room first
	room     roomByNode          // what its plan needs
	nodes    []string            // of room, sorted
	behind   sets.Set[types.UID] // pods that have it, and had not ended when an attempt looked last
	starts   time.Time           // when the gang starts at the latest; zero: not known
	progress time.Time           // when a part of it became free last
	reviewed time.Time           // when an attempt looked for a better one last
	outdated bool                // what is reserved may not be what the gang needs any more: it is chosen anew
	changed  time.Time           // when a node of it changed, or was deleted, since it was chosen; zero: none was
}

// lastProgress returns when a part of the room became free last. Pods that are to end as they promise count as progress
// until the start that is known has come.
func (p *promise) lastProgress(now time.Time) time.Time {
	return later(p.progress, earlier(p.starts, now))
}

// PromiseEvent is what happens to the promise of a gang, with few distinct values, so that it can label a metric.
type PromiseEvent string

const (
	PromiseMade      PromiseEvent = "made"      // room is reserved for the gang for the first time
	PromisePlaced    PromiseEvent = "placed"    // the gang has started
	PromiseGivenUp   PromiseEvent = "given-up"  // nothing of it has become free for Options.ReservationTimeout
	PromiseUnfit     PromiseEvent = "unfit"     // the gang does not fit any more if the pods end for which it may wait
	PromiseCancelled PromiseEvent = "cancelled" // the gang was deleted or changed, or preempts others
)

// PromiseSearch is what an attempt needs to choose room for its gang.
type PromiseSearch struct {
	Pods []backfill.Pod // for whose end the gang may wait
	// Held is the promise that the gang has; nil: none, or it is to choose another one.
	Held *backfill.Held
	Cuts int // consecutive searches before this one for which the time did not suffice

	running []*corev1.Pod // by ID
	gangs   []Key         // by index of Pods: that of the pod; zero: it has none
}

// mayBePromised reports whether a gang that waits may be promised room, as far as other promises do not matter.
func (r *Registry) mayBePromised(g *gangState) bool {
	return r.opts.ReservationAfter > 0 && r.opts.Amount != nil && g.promise == nil && g.group != nil && g.tree != nil && !g.task.isSurplus() &&
		g.preemption == nil && g.victimOf == nil && !r.now.Before(g.unfitUntil) && !g.completeAt.IsZero() &&
		(!g.promisedSince.IsZero() || !r.now.Before(g.promiseDue())) &&
		!g.hasMinimum() // else it runs, and lacks only a part of a sub-group above the minimum
}

// promiseDue returns from when on the gang may be promised room: when it has waited for Options.ReservationAfter, and
// for Options.ReservationTimeout since it gave up a promise. The latter is forgotten when the process restarts.
func (g *gangState) promiseDue() time.Time {
	return later(g.completeAt.Add(g.opts.ReservationAfter), g.gaveUpAt.Add(g.opts.ReservationTimeout))
}

// promisable returns a function that reports whether a gang that waits may be promised room beside those that are.
func (r *Registry) promisable() func(*gangState) bool {
	if len(r.promised) >= r.opts.MaxReservations.InAll {
		return func(*gangState) bool { return false }
	}
	ofPriority, ofNamespace := map[int32]int{}, map[string]int{}
	for _, g := range r.promised {
		ofPriority[g.priority()]++
		ofNamespace[g.key.Namespace]++
	}
	return func(g *gangState) bool {
		return r.mayBePromised(g) && ofPriority[g.priority()] < r.opts.MaxReservations.OfPriority && ofNamespace[g.key.Namespace] < r.opts.MaxReservations.OfNamespace
	}
}

// nextToBePromised returns the gang that is to be promised room next, of those that were refused: of the highest
// priority for which there may be another promise one to which an earlier process had promised room, else the first in
// the order of the queue, in which one that has given up a promise is as old as its promiseDue. nil: there is none.
func (r *Registry) nextToBePromised() (next *gangState) {
	may := r.promisable()
	for g := range r.waiting.all {
		if may(g) && (next == nil || g.precedesInPromises(next)) {
			next = g
		}
	}
	return next
}

// isNextToBePromised reports whether a gang that is being tried is to be promised room before those that were refused.
func (r *Registry) isNextToBePromised(g *gangState) bool {
	may := r.promisable()
	if !may(g) {
		return false
	}
	for other := range r.waiting.all {
		if may(other) && other.precedesInPromises(g) {
			return false
		}
	}
	return true
}

// passPromise lets other gangs have their turn if the attempt of a gang has ended that was to be promised room, and did
// not come to choose any: for example because its topology is not known, an HTTP extender filters its nodes, or its
// search for a plan is cut short again and again.
func (r *Registry) passPromise(g *gangState) {
	if r.isNextToBePromised(g) {
		g.unfitUntil = r.now.Add(unfitPause)
	}
}

func (g *gangState) precedesInPromises(other *gangState) bool {
	if a, b := g.priority(), other.priority(); a != b {
		return a > b
	}
	if a, b := g.promisedSince.IsZero(), other.promisedSince.IsZero(); a != b {
		return b
	}
	rank, otherRank := g.leaderRank(), other.leaderRank()
	rank.Time, otherRank.Time = g.promiseDue(), other.promiseDue()
	return compareInQueue(rank, g.key, otherRank, other.key) < 0
}

// PodsOnNodes are the pods on the nodes of an attempt, by ID, and what each has of the resource by which nodes are
// compared. Its methods must not call the Registry.
type PodsOnNodes interface {
	VisitPods(visit func(id int, pod *corev1.Pod))
	ExtendedAmounts() func(id int) int64
}

// BeginPromise returns what an attempt that found no plan needs to choose room for its gang. nil: the gang is not
// promised room now.
func (r *Registry) BeginPromise(w *Work, on PodsOnNodes, now time.Time) *PromiseSearch {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[w.Gang]
	switch {
	case g == nil || g.tree != w.Tree || w.Task.isSurplus() || g.preemption != nil:
		return nil
	case g.promise == nil && !r.isNextToBePromised(g):
		return nil
	}
	s, amount := &PromiseSearch{Cuts: g.promiseCuts}, on.ExtendedAmounts()
	if g.promise != nil && !g.promise.outdated {
		s.Held = &backfill.Held{Nodes: g.promise.nodes}
	}
	on.VisitPods(func(id int, pod *corev1.Pod) {
		s.running = append(s.running, pod)
		if count.PodPriority(pod) > w.Priority {
			return // the gang does not wait for it
		}
		var group Key
		p := backfill.Pod{ID: id, Amount: amount(id), Lasts: pod.Spec.RestartPolicy == corev1.RestartPolicyAlways}
		if m := r.members[pod.UID]; m != nil {
			group = m.gang.key
			p.Ends = podgroup.EndsBy(pod, m.gang.group, now)
		} else {
			p.Ends = podgroup.EndsBy(pod, nil, now)
		}
		if group == g.key {
			return // its own pods stay
		}
		s.Pods, s.gangs = append(s.Pods, p), append(s.gangs, group)
		if s.Held != nil && g.promise.behind.Has(pod.UID) {
			s.Held.Behind = append(s.Held.Behind, p)
		}
	})
	return s
}

// RecordPromise records what backfill.Revise has returned for a gang: the room that it is promised from now on, or that
// it keeps what it has.
func (r *Registry) RecordPromise(w *Work, s *PromiseSearch, p *backfill.Promise, keep bool, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	g := r.gangs[w.Gang]
	if g == nil || g.tree != w.Tree || g.plan != nil || g.preemption != nil {
		return r.endCall(Effects{})
	}
	old := g.promise
	switch {
	case p == nil && keep && s.Held == nil: // the time was over: the next search has more of it
		g.promiseCuts++
		g.unfitUntil = now.Add(unfitPause)
		if old != nil {
			old.reviewed = now
		}
		return r.endCall(Effects{})
	case p == nil && !keep:
		g.unfitUntil, g.promisedSince, g.promiseCuts = now.Add(unfitPause), time.Time{}, 0
		if old == nil {
			return r.endCall(Effects{})
		}
		r.endPromise(g, PromiseUnfit) // a node is drained, or gone
		return r.endCall(Effects{Dirty: []Key{g.key}})
	case p == nil:
		if old.progress = old.lastProgress(now); len(s.Held.Behind) < len(old.behind) {
			old.progress = now
		}
		starts := s.Held.Starts(now)
		moved := !starts.Equal(old.starts)
		old.starts, old.reviewed = starts, now
		old.behind = sets.New[types.UID]()
		for _, b := range s.Held.Behind {
			old.behind.Insert(s.running[b.ID].UID)
		}
		if moved { // else what is reserved stays as it is
			r.reservePromised(g, s)
		}
		return r.endCall(Effects{Dirty: []Key{g.key}})
	}
	next := &promise{since: now, room: roomByNode{}, behind: sets.New[types.UID](), starts: p.Starts, progress: now, reviewed: now}
	if old != nil {
		if next.since = old.since; old.outdated { // what it has is none that is better
			next.progress = old.lastProgress(now)
		}
	} else {
		next.since = earlier(cmp.Or(g.promisedSince, now), now)
		r.promised = append(r.promised, g)
		r.tellPromise(g, PromiseMade)
	}
	for i := range p.Plan {
		next.room.add(p.Plan[i].Node, r.opts.Amount(w.Classes[p.Plan[i].Pod.Class]))
	}
	next.nodes = slices.Sorted(maps.Keys(next.room))
	for _, id := range p.Behind {
		next.behind.Insert(s.running[id].UID)
	}
	g.promise, g.promisedSince, g.unfitUntil, g.promiseCuts = next, time.Time{}, time.Time{}, 0
	r.reservePromised(g, s)
	return r.endCall(Effects{Dirty: []Key{g.key}})
}

// reservePromised reserves the room that a gang is promised, in place of what was reserved for it before.
func (r *Registry) reservePromised(g *gangState, s *PromiseSearch) {
	p := g.promise
	ended := r.reserved.EndOfGang(g.key, isOfGang)
	returned := r.returnedTo(p, s)
	for _, node := range p.nodes { // an order, if there are too many
		r.reserved.Reserve(reservations.Reservation{
			Owner: reservations.Owner{Gang: g.key, Leaf: reservations.EveryLeaf}, Node: node, Priority: g.roomPriority, Amount: *p.room[node],
			Occupied: returned[node], Starts: p.starts, Promised: true,
		}, r.now.Add(foreverReserved), r.now)
	}
	for i := range s.Pods {
		pod := s.running[s.Pods[i].ID]
		if p.room[pod.Spec.NodeName] != nil && s.Pods[i].Ends.After(r.now) && !p.starts.IsZero() { // those that are overdue are not waited for
			r.reserved.Occupy(reservations.Asker{Gang: s.gangs[i], Ends: s.Pods[i].Ends}, pod.Spec.NodeName,
				reservations.Occupied{Pod: pod.UID, Amount: r.opts.Amount(pod)})
		}
	}
	had := sets.New[string]()
	for _, old := range ended {
		had.Insert(old.Node)
	}
	for _, other := range r.promised { // a gang of a lower priority may have lost its room there
		if other.roomPriority < g.roomPriority && slices.ContainsFunc(p.nodes, func(node string) bool { return !had.Has(node) && other.promise.room[node] != nil }) {
			other.promise.changed = r.now
		}
	}
	r.freeReserved(slices.DeleteFunc(ended, func(old *reservations.Reservation) bool { return p.room[old.Node] != nil }))
	r.haveReserved.Store(!r.reserved.IsEmpty())
}

// returnedTo returns, by node, what the pods for which a gang waits return of ordinary resources such as CPU when they
// end, if it is not known when it starts: that is not kept from what is free until then. Of extended resources all that
// becomes free is kept, so that the gang need not wait for all of these pods.
func (r *Registry) returnedTo(p *promise, s *PromiseSearch) map[string][]reservations.Occupied {
	if !p.starts.IsZero() {
		return nil // see Occupy
	}
	returned := map[string][]reservations.Occupied{}
	for i := range s.Pods {
		pod := s.running[s.Pods[i].ID]
		if room := p.room[pod.Spec.NodeName]; s.Pods[i].Amount > 0 && p.behind.Has(pod.UID) && room.HasExtended() {
			returned[pod.Spec.NodeName] = append(returned[pod.Spec.NodeName], reservations.Occupied{Pod: pod.UID, Amount: r.opts.Amount(pod).WithoutExtended()})
		}
	}
	return returned
}

// foreverReserved is longer than any promise lasts: what ends it is not the time of its reservations.
const foreverReserved = 100 * 365 * 24 * time.Hour

// RecordPlainPodAssumed records that a pod without a gang, which says when it ends, was assumed on a node. What it has
// there of room that is reserved for later does not count twice.
func (r *Registry) RecordPlainPodAssumed(pod *corev1.Pod, node string, a reservations.Asker) {
	if !r.haveReserved.Load() || r.opts.Amount == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reserved.Occupy(a, node, reservations.Occupied{Pod: pod.UID, Amount: r.opts.Amount(pod)})
}

// tellPromise tells what happens to the promise of a gang.
func (r *Registry) tellPromise(g *gangState, event PromiseEvent) {
	if r.opts.Promised != nil {
		r.opts.Promised(g.key, event)
	}
}

// outdatePromise lets the room be chosen anew that a gang is promised, if it is, because the gang has changed, or has
// taken a part of it.
func (g *gangState) outdatePromise() {
	if g.promise != nil {
		g.promise.outdated = true
	}
}

// RecordNodeChanged records that a node may not take the pods any more for which room is reserved there, for example
// because it is cordoned: gangs that are promised it choose again.
func (r *Registry) RecordNodeChanged(name string, now time.Time) {
	if !r.haveReserved.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordNodeChanged(name, now)
}

func (r *Registry) recordNodeChanged(name string, now time.Time) {
	for _, g := range r.promised {
		if g.promise.room[name] != nil {
			g.promise.changed = now
		}
	}
}

// forgetPromise ends the promise of a gang, if it has one. Its room stays reserved.
func (r *Registry) forgetPromise(g *gangState, why PromiseEvent) {
	if g.promise == nil {
		return
	}
	g.promise = nil
	r.tellPromise(g, why)
	r.promised = slices.DeleteFunc(r.promised, func(x *gangState) bool { return x == g })
}

// endPromise ends the promise of a gang. Its room is free for all.
func (r *Registry) endPromise(g *gangState, why PromiseEvent) {
	r.forgetPromise(g, why)
	r.freeReserved(r.reserved.EndOfGang(g.key, isOfGang))
}

// reviewPromise ends the promise of a gang that has started, or has nothing to start any more.
func (r *Registry) reviewPromise(g *gangState, task Task, state readiness) {
	if g.promise == nil && g.promisedSince.IsZero() || g.plan != nil {
		return
	}
	isBound := g.hasMinimum()
	if isBound || g.isSettled() && (state == idle || task.isSurplus()) {
		g.promisedSince = time.Time{}
		switch {
		case g.promise == nil:
		case isBound:
			r.endPromise(g, PromisePlaced)
		default:
			r.endPromise(g, PromiseCancelled)
		}
	}
}

// tickPromises gives up promises of which nothing has become free for long, lets the other ones be reviewed, and the
// gang be tried that is to be promised room next. It returns the gangs whose promises have ended.
func (r *Registry) tickPromises(now time.Time) (ended []Key) {
	for _, g := range slices.Clone(r.promised) {
		p := g.promise
		switch {
		case g.plan != nil: // it starts
		case now.Sub(p.lastProgress(now)) >= r.opts.ReservationTimeout:
			g.gaveUpAt = now
			r.endPromise(g, PromiseGivenUp)
			ended = append(ended, g.key)
		case !p.changed.IsZero() && now.Sub(p.changed) >= observedLate: // the scheduler's cache has the node as it is by now
			p.outdated, p.changed = true, time.Time{}
			r.tryForPromise(g)
		case now.Sub(p.reviewed) >= reviewInterval && (p.outdated || r.index.grewAt.After(p.reviewed)):
			if r.tryForPromise(g) {
				p.reviewed = now // the attempt may end before it looks for room
			}
		}
	}
	if r.opts.ReservationAfter > 0 && now.Sub(r.promisesAt) >= lineInterval {
		r.promisesAt = now
		if g := r.nextToBePromised(); g != nil {
			r.tryForPromise(g)
		}
	}
	return ended
}

// retryPromised lets gangs be tried first, within a share of their own, for which it is not known when they start, if
// room has become free: it is kept for them where that leaves them less to wait for.
func (r *Registry) retryPromised() Effects {
	var e Effects
	for _, g := range slices.Clone(r.promised) {
		p := g.promise
		if p.starts.IsZero() && g.phase.isRefused() && r.index.grewAt.After(p.reviewed) && r.now.Sub(p.reviewed) >= captureInterval &&
			r.waiting.forPromises.affords(g.wait.Took, r.now) {
			e.add(r.retryRefused(g))
		}
	}
	return e
}

// tryForPromise lets a gang be tried so that room is chosen for it. It returns false if it does not wait.
func (r *Registry) tryForPromise(g *gangState) bool {
	if !g.phase.isRefused() || g.wait == nil {
		return false
	}
	if g.wait.Until.IsZero() || r.now.Before(g.wait.Until) {
		g.wait.Until = r.now
		r.setTimer(g, r.timerOf(g))
	}
	return true
}
