// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/scheduler/gangstate"
)

// waitlist records what each refused gang waits for, and determines which gangs a change in the cluster may help. A
// waiting gang is cheap: recording an event takes constant time, and a change of a node is compared with one number
// per gang.
//
// A gang is woken when the necessary condition of a plan holds (enough of its pods fit into the free resources of the
// nodes) and either it did not hold when the gang was refused, or the possible cause of the refusal has changed. In
// the second case the attempt may fail again, so attempts are spaced: see pause. Safe for concurrent use.
type waitlist struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	gangs  map[gangstate.Key]*parkedGang
	beside map[gangstate.Key]*parkedGang     // refused sub-groups of gangs whose single surplus pods were refused later
	byRoom map[room]map[*parkedGang]struct{} // gangs that wait for room of a shape
	others map[*parkedGang]struct{}          // gangs that wait for other changes than room
	paused map[*parkedGang]struct{}          // gangs that will be woken when their pause is over
	spent  time.Time                         // until when the share of attempts that may fail again is used up

	// claimed is how much of each room is assigned to gangs that were woken and have not been tried yet, so that the
	// same room does not wake every gang that fits into it.
	claimed map[room]int
	freed   map[room]struct{} // rooms of which less is claimed than at the last call of changed
	byRank  func([]gangstate.Key)
	kept    func(at room, key gangstate.Key, priority int32) int // fitting pods whose room is kept from the gang; nil: none
}

// room is an upper bound of how many pods of one shape fit on all nodes.
type room interface{ Fits() int }

// parkedGang is one refused gang. Guarded by waitlist.mu.
type parkedGang struct {
	key     gangstate.Key
	at      int32 // the gang's priority
	needs   []need
	mayFit  func() bool
	causes  causes    // causes of events, other than more room, that may help
	lacked  bool      // the necessary condition has not held since the gang was refused
	woken   time.Time // when the gang was woken; zero: not woken since it was refused
	claims  bool      // its needs are included in claimed
	notYet  time.Time // earliest time of the next attempt, unless lacked
	parked  time.Time // when it was refused
	unit    bool      // the refused attempt was for a surplus sub-group
	took    time.Duration
	tries   int // consecutive refused attempts that the necessary condition did not explain
	release func()
}

// need is the minimum number of pods of a shape that must fit at the same time for the gang to be placed.
type need struct {
	room room
	pods int
}

// refused describes an attempt that found no plan.
type refused struct {
	// needs has an entry for every shape whose room is known. A nil room is not allowed.
	needs []need
	// mayFit evaluates the necessary condition of a plan with the current room. nil: needs alone.
	mayFit func() bool
	// causes are the causes of events, other than more room, that may help.
	causes causes
	// priority is the gang's priority.
	priority int32
	// took is the time of the scheduling loop that the attempt used.
	took time.Duration
	// cut: the attempt ended for lack of time and will be continued.
	cut bool
	// recheck: an event occurred during the attempt that it may not have seen.
	recheck bool
	// unit: the attempt was for a surplus sub-group. single: it was for single surplus pods; a sub-group that was
	// refused before continues to wait.
	unit, single bool
	// release is called when the gang no longer waits; nil is allowed.
	release func()
}

const (
	// minPause and maxPause bound the pause between two attempts of a gang that is refused although enough of its
	// pods fit. Each such attempt doubles the pause.
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
	// pauseShare limits the attempts that may fail again (those of gangs that were refused although enough fits), of
	// all gangs together, to 1/20 = 5 % of the scheduling loop's time.
	pauseShare = 20
	// maxSpent is how far these attempts may exceed their share temporarily, so that a few gangs do not wait for each
	// other.
	maxSpent = 250 * time.Millisecond
	// sliceShare determines the minimum pause after an attempt that was cut short and will be continued, as a
	// multiple of its duration.
	sliceShare = 4
)

// pause returns the minimum pause of a gang after the given number of consecutive refused attempts; took is the
// duration of the last one.
func pause(tries int, took time.Duration, cut bool) time.Duration {
	if cut {
		return max(minPause, sliceShare*took)
	}
	return min(maxPause, minPause<<min(max(tries-1, 0), 10))
}

// newWaitlist returns an empty list. byRank sorts gangs in the order of the queue.
func newWaitlist(c clock.PassiveClock, byRank func([]gangstate.Key)) *waitlist {
	return &waitlist{
		clock: c, byRank: byRank, claimed: map[room]int{}, freed: map[room]struct{}{}, gangs: map[gangstate.Key]*parkedGang{}, beside: map[gangstate.Key]*parkedGang{}, byRoom: map[room]map[*parkedGang]struct{}{},
		others: map[*parkedGang]struct{}{}, paused: map[*parkedGang]struct{}{},
	}
}

// park records what a gang that was just refused waits for. It replaces earlier records of the gang, except that the
// record of a sub-group is kept if the new refusal is for single pods.
func (l *waitlist) park(key gangstate.Key, r refused) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	w := &parkedGang{key: key, at: r.priority, needs: r.needs, mayFit: r.mayFit, causes: r.causes, took: r.took, release: r.release, parked: now, unit: r.unit}
	w.lacked = !l.holds(w)
	switch old := l.gangs[key]; {
	case old != nil && old.unit && r.single:
		l.disclaim(old)
		old.woken = time.Time{}
		l.beside[key] = old
	case old != nil:
		w.tries = old.tries
		l.forget(old)
	}
	if other := l.beside[key]; other != nil && !r.single {
		l.forget(other)
	}
	if w.lacked {
		w.tries = 0
	} else {
		w.tries++
		w.notYet = now.Add(pause(w.tries, r.took, r.cut))
	}
	l.gangs[key] = w
	for _, n := range w.needs {
		if l.byRoom[n.room] == nil {
			l.byRoom[n.room] = map[*parkedGang]struct{}{}
		}
		l.byRoom[n.room][w] = struct{}{}
	}
	if w.causes&^moreRoom != 0 {
		l.others[w] = struct{}{}
	}
	if r.cut || r.recheck && !w.lacked {
		l.paused[w] = struct{}{}
	}
}

// leave removes a gang that was placed or is gone.
func (l *waitlist) leave(key gangstate.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.of(key) {
		l.forget(w)
	}
}

// leaveIdle removes those gangs that idle returns, and reports whether there were any. A gang that is refused again
// during the call of idle is kept. idle is called without holding the lock.
func (l *waitlist) leaveIdle(keys []gangstate.Key, idle func([]gangstate.Key) []gangstate.Key) bool {
	l.mu.Lock()
	before := make(map[gangstate.Key]*parkedGang, len(keys))
	for _, key := range keys {
		before[key] = l.gangs[key]
	}
	l.mu.Unlock()
	over := idle(keys)
	l.mu.Lock()
	defer l.mu.Unlock()
	left := false
	for _, key := range over {
		if w := l.gangs[key]; w == nil || w != before[key] {
			continue
		}
		left = true
		for _, w := range l.of(key) {
			l.forget(w)
		}
	}
	return left
}

// leaveSingle removes the record of a gang whose single surplus pods were placed, and keeps the record of its
// sub-groups.
func (l *waitlist) leaveSingle(key gangstate.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	unit := l.beside[key]
	if w := l.gangs[key]; w != nil && w.unit {
		unit = w
	} else if w != nil {
		l.forget(w)
	}
	if unit != nil {
		delete(l.beside, key)
		l.gangs[key] = unit
	}
}

// of returns the records of the gang.
func (l *waitlist) of(key gangstate.Key) []*parkedGang {
	var out []*parkedGang
	for _, w := range []*parkedGang{l.gangs[key], l.beside[key]} {
		if w != nil {
			out = append(out, w)
		}
	}
	return out
}

// keys returns the waiting gangs, in no order.
func (l *waitlist) keys() []gangstate.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.gangs))
}

func (l *waitlist) forget(w *parkedGang) {
	if l.gangs[w.key] == w {
		delete(l.gangs, w.key)
	} else {
		delete(l.beside, w.key)
	}
	delete(l.others, w)
	delete(l.paused, w)
	l.disclaim(w)
	for _, n := range w.needs {
		delete(l.byRoom[n.room], w)
		if len(l.byRoom[n.room]) == 0 {
			delete(l.byRoom, n.room)
		}
	}
	if w.release != nil {
		w.release()
	}
}

// len returns the number of waiting gangs.
func (l *waitlist) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.gangs)
}

// changed returns the gangs to be woken, sorted, after more pods of the raised shapes fit on some node, and events of
// the given causes occurred. It must be called when either may have happened, and periodically for pauses that are
// over.
func (l *waitlist) changed(raised []room, events causes) []gangstate.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	candidates := map[*parkedGang]struct{}{}
	for _, r := range raised {
		maps.Copy(candidates, l.byRoom[r])
	}
	for r := range l.freed {
		maps.Copy(candidates, l.byRoom[r])
	}
	clear(l.freed)
	if events != 0 {
		for w := range l.others {
			if w.causes&events != 0 {
				candidates[w] = struct{}{}
			}
		}
	}
	if events&nominationGone != 0 {
		for key := range l.gangs {
			for _, w := range l.of(key) {
				candidates[w] = struct{}{}
			}
		}
	}
	for w := range l.paused {
		if !now.Before(w.notYet) {
			candidates[w] = struct{}{}
		}
	}
	var sure, again []*parkedGang
	for w := range candidates {
		switch {
		case !w.woken.IsZero() || !l.holds(w):
			delete(l.paused, w)
		case w.lacked:
			sure = append(sure, w)
		default:
			again = append(again, w)
		}
	}
	keys := l.claim(sure, now)
	slices.SortFunc(again, func(a, b *parkedGang) int { return cmp.Or(a.notYet.Compare(b.notYet), compareKeys(a.key, b.key)) })
	for _, w := range again {
		if now.Before(w.notYet) || !l.affords(w, now) {
			l.paused[w] = struct{}{}
			continue
		}
		delete(l.paused, w)
		w.woken = now
		keys = append(keys, w.key)
	}
	slices.SortFunc(keys, compareKeys)
	return slices.Compact(keys)
}

// claim wakes gangs that lacked room until now, in rank order, as long as the room is sufficient for all woken gangs
// together. The other gangs are checked again when these have been tried.
func (l *waitlist) claim(gangs []*parkedGang, now time.Time) []gangstate.Key {
	byKey := map[gangstate.Key][]*parkedGang{}
	for _, w := range gangs {
		byKey[w.key] = append(byKey[w.key], w)
	}
	keys := slices.SortedFunc(maps.Keys(byKey), compareKeys)
	if len(keys) > 1 {
		l.byRank(keys)
	}
	var woken []gangstate.Key
	for _, key := range keys {
		for _, w := range byKey[key] {
			if slices.ContainsFunc(w.needs, func(n need) bool { return l.fits(n.room, w)-l.claimed[n.room] < n.pods }) {
				continue
			}
			for _, n := range w.needs {
				l.claimed[n.room] += n.pods
			}
			w.woken, w.lacked, w.claims = now, false, true
			woken = append(woken, key)
		}
	}
	return woken
}

// disclaim releases the claims of a gang.
func (l *waitlist) disclaim(w *parkedGang) {
	if !w.claims {
		return
	}
	w.claims = false
	for _, n := range w.needs {
		if l.claimed[n.room] -= n.pods; l.claimed[n.room] == 0 {
			delete(l.claimed, n.room)
		}
		l.freed[n.room] = struct{}{}
	}
}

// longest is the maximum time that a refused gang waits if enough of its pods fit, as in the stock scheduler: not
// every object that a filter reads causes an event (for example labels of namespaces).
const longest = 5 * time.Minute

// forgetful makes gangs eligible again that were woken some time ago and have not been tried since, for example
// because their leaders were deleted. It also schedules another check of gangs for which enough fits by now, or that
// have waited for a very long time.
func (l *waitlist) forgetful(after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	for key := range l.gangs {
		for _, w := range l.of(key) {
			if !w.woken.IsZero() && now.Sub(w.woken) >= after {
				w.lacked = w.lacked || w.claims
				l.disclaim(w)
				w.woken = time.Time{}
			}
			if w.woken.IsZero() && (w.lacked && l.holds(w) || !w.lacked && now.Sub(w.parked) >= longest) {
				l.paused[w] = struct{}{}
			}
		}
	}
}

// affords reports whether another attempt of the gang keeps the attempts that may fail again, of all gangs together,
// within their share of the loop's time. If so, it accounts for the attempt.
func (l *waitlist) affords(w *parkedGang, now time.Time) bool {
	if l.spent.Before(now) {
		l.spent = now
	}
	if l.spent.Sub(now) > maxSpent {
		return false
	}
	l.spent = l.spent.Add(pauseShare * w.took)
	return true
}

func compareKeys(a, b gangstate.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// holds reports whether the necessary condition of a plan holds.
func (l *waitlist) holds(w *parkedGang) bool {
	for _, n := range w.needs {
		if l.fits(n.room, w) < n.pods {
			return false
		}
	}
	return w.mayFit == nil || w.mayFit()
}
