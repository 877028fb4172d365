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
// the second case the attempt may fail again. Gangs that saw such an event since their last attempt are woken in the
// order of the queue; without an event an attempt is repeated only if it was cut short, or after a very long time. Both
// have a share of the scheduling loop: see budget. Safe for concurrent use.
type waitlist struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	gangs  map[gangstate.Key]*parkedGang
	beside map[gangstate.Key]*parkedGang       // refused sub-groups of gangs whose single surplus pods were refused later
	byRoom map[room][]neededBy                 // gangs that wait for room of a shape, by the number of pods
	others [allCauses]map[*parkedGang]struct{} // gangs that wait for other changes than room of a shape, by cause
	// informed contains the gangs that saw an event since their last attempt that may help, and were not woken since;
	// paused those that are tried without an event: their attempt was cut short, or they have waited very long.
	informed, paused map[*parkedGang]struct{}
	// afterEvents and withoutEvent are the loop's time for attempts that may fail again, of informed gangs and of others.
	afterEvents, withoutEvent budget

	// claiming contains the gangs that lacked room, were woken, and have not been tried yet. What they need is not promised
	// to gangs that follow them, so that the same room does not wake every gang that fits into it.
	claiming map[*parkedGang]struct{}
	freed    map[room]struct{} // rooms of which less is claimed than at the last call of changed
	queue    queueOrder
	kept     func(at room, key gangstate.Key, priority int32) int // fitting pods whose room is kept from the gang; nil: none
}

// queueOrder is what the list asks the registry. The list calls it while it holds its lock.
type queueOrder interface {
	// SortByRank sorts gangs in the order of the queue.
	SortByRank([]gangstate.Key)
	// Idle returns those gangs that have nothing to plan.
	Idle([]gangstate.Key) []gangstate.Key
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
	notYet  time.Time // when the attempt is continued or repeated, unless an event comes before
	parked  time.Time // when it was refused
	unit    bool      // the refused attempt was for a surplus sub-group
	fits    []int     // by need: how many pods fitted when the necessary condition was evaluated last; nil: never
	held    bool      // its result
	took    time.Duration
	release func()
}

// need is the minimum number of pods of a shape that must fit at the same time for the gang to be placed.
type need struct {
	room room
	pods int
}

// neededBy is a gang that waits until so many pods of a shape fit.
type neededBy struct {
	pods int
	*parkedGang
}

func (w neededBy) compare(pods int) int { return cmp.Compare(w.pods, pods) }

// refused describes an attempt that found no plan.
type refused struct {
	// needs has an entry for every shape whose room is known. A nil room is not allowed.
	needs []need
	// mayFit evaluates the necessary condition of a plan with the current room, which must be that of needs. nil: needs
	// alone.
	mayFit func() bool
	// causes are the causes of events, other than more room, that may help.
	causes causes
	// priority is the gang's priority.
	priority int32
	// took is the time of the scheduling loop that the attempt used.
	took time.Duration
	// cut: the attempt ended for lack of time and will be continued. again: it is repeated then without an event; zero:
	// it is not.
	cut   bool
	again time.Time
	// recheck: an event occurred during the attempt that it may not have seen.
	recheck bool
	// unit: the attempt was for a surplus sub-group. single: it was for single surplus pods; a sub-group that was
	// refused before continues to wait.
	unit, single bool
	// release is called when the gang no longer waits; nil is allowed.
	release func()
}

const (
	// fairAfter is the time after which a gang that saw an event may use the share of repeated attempts too, the longest
	// waiting one first. Otherwise gangs of higher rank with constant events could use up the share of both.
	fairAfter = 5 * time.Second
	// repeatShare and informedShare limit the attempts that may fail again (those of gangs that were refused although
	// enough fits), of all gangs together, to 1/20 = 5 % of the scheduling loop's time if no event occurred since the
	// last attempt of the gang, and to 1/4 after one.
	repeatShare, informedShare = 20, 4
	// maxSpent is how far these attempts may exceed their share temporarily, so that a few gangs do not wait for each
	// other. maxSpentBefore is this limit for gangs that precede one which is about to be planned.
	maxSpent, maxSpentBefore = 250 * time.Millisecond, time.Second
	// sliceShare determines the pause after an attempt that was cut short and will be continued, as a multiple of its
	// duration, at least minPause.
	sliceShare = 4
	minPause   = 100 * time.Millisecond
)

// newWaitlist returns an empty list.
func newWaitlist(c clock.PassiveClock, queue queueOrder) *waitlist {
	return &waitlist{
		clock: c, queue: queue, claiming: map[*parkedGang]struct{}{}, freed: map[room]struct{}{}, gangs: map[gangstate.Key]*parkedGang{}, beside: map[gangstate.Key]*parkedGang{}, byRoom: map[room][]neededBy{},
		informed: map[*parkedGang]struct{}{}, paused: map[*parkedGang]struct{}{},
		afterEvents: budget{share: informedShare}, withoutEvent: budget{share: repeatShare},
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
		l.forget(old)
	}
	if other := l.beside[key]; other != nil && !r.single {
		l.forget(other)
	}
	if w.notYet = r.again; r.cut {
		w.notYet = now.Add(max(minPause, sliceShare*r.took))
	}
	l.gangs[key] = w
	for _, n := range w.needs {
		waiters := l.byRoom[n.room]
		i, _ := slices.BinarySearchFunc(waiters, n.pods, neededBy.compare)
		l.byRoom[n.room] = slices.Insert(waiters, i, neededBy{n.pods, w})
	}
	if w.causes&^moreRoom != 0 {
		for cause := range w.causes.each() {
			if l.others[cause] == nil {
				l.others[cause] = map[*parkedGang]struct{}{}
			}
			l.others[cause][w] = struct{}{}
		}
	}
	if !w.notYet.IsZero() {
		l.paused[w] = struct{}{}
	}
	if r.recheck && !w.lacked {
		l.informed[w] = struct{}{}
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

// leaveIdle removes those gangs that have nothing to plan, and reports whether there were any.
func (l *waitlist) leaveIdle(keys []gangstate.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forgetIdle(keys)
}

func (l *waitlist) forgetIdle(keys []gangstate.Key) bool {
	left := false
	for _, key := range l.queue.Idle(keys) {
		for _, w := range l.of(key) {
			left = true
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
	for cause := range w.causes.each() {
		delete(l.others[cause], w)
	}
	delete(l.paused, w)
	delete(l.informed, w)
	l.disclaim(w)
	for _, n := range w.needs {
		waiters := l.byRoom[n.room]
		i, _ := slices.BinarySearchFunc(waiters, n.pods, neededBy.compare)
		for i < len(waiters) && waiters[i] != (neededBy{n.pods, w}) {
			i++
		}
		if waiters = slices.Delete(waiters, i, i+1); len(waiters) == 0 {
			delete(l.byRoom, n.room)
		} else {
			l.byRoom[n.room] = waiters
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
// the given causes occurred. It must be called when either may have happened, periodically for pauses that are over,
// and before a gang is planned, which is then passed as before.
func (l *waitlist) changed(raised []room, events causes, before gangstate.Key) []gangstate.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if len(l.claiming) > 0 {
		var claiming []gangstate.Key
		for w := range l.claiming {
			claiming = append(claiming, w.key)
		}
		l.forgetIdle(claiming) // they will not be tried
	}
	candidates := map[*parkedGang]bool{} // true: an event may help it
	for w := range l.paused {
		if w.lacked {
			candidates[w] = false
		}
	}
	for r := range l.freed {
		l.fitting(r, func(w *parkedGang) { candidates[w] = false })
	}
	clear(l.freed)
	helped := func(w *parkedGang) { candidates[w] = true }
	for _, r := range raised {
		l.fitting(r, helped)
	}
	for cause := range events.each() {
		for w := range l.others[cause] {
			helped(w)
		}
	}
	if events&nominationGone != 0 {
		for key := range l.gangs {
			for _, w := range l.of(key) {
				helped(w)
			}
		}
	}
	var lacked []*parkedGang
	for w, helped := range candidates {
		switch {
		case !w.woken.IsZero() || !l.holds(w):
			delete(l.paused, w)
		case w.lacked:
			lacked = append(lacked, w)
		case helped:
			l.informed[w] = struct{}{}
		}
	}
	keys := slices.Concat(l.claim(lacked, now), l.wakeInformed(before, now), l.repeat(now))
	slices.SortFunc(keys, compareKeys)
	return slices.Compact(keys)
}

// fitting calls visit with the gangs that wait for room of a shape and of which enough pods fit by now.
func (l *waitlist) fitting(at room, visit func(*parkedGang)) {
	fits := at.Fits()
	for _, w := range l.byRoom[at] {
		if w.pods > fits {
			return
		}
		visit(w.parkedGang)
	}
}

// wakeInformed wakes those gangs that saw an event since their last attempt, in the order of the queue. before is a
// gang that is about to be planned, zero if none: those that precede it go first, unless that has delayed gangs by
// maxSpentBefore already.
func (l *waitlist) wakeInformed(before gangstate.Key, now time.Time) []gangstate.Key {
	most, precede := maxSpent, before != gangstate.Key{}
	if precede {
		most = maxSpentBefore
	}
	if len(l.informed) == 0 || !l.afterEvents.isOpen(most, now) {
		return nil
	}
	byKey := map[gangstate.Key][]*parkedGang{}
	for w := range l.informed {
		if !w.woken.IsZero() || !l.holds(w) { // if it does not hold, another event has to change that
			delete(l.informed, w)
		} else {
			byKey[w.key] = append(byKey[w.key], w)
		}
	}
	if precede {
		byKey[before] = nil // its attempt begins
	}
	keys := slices.Collect(maps.Keys(byKey))
	l.queue.SortByRank(keys)
	var woken []gangstate.Key
	for _, key := range keys {
		if key == before {
			most = maxSpent
		}
		for _, w := range byKey[key] {
			if !l.afterEvents.affords(w.took, most, now) {
				return woken
			}
			woken = append(woken, l.wake(w, now))
		}
	}
	return woken
}

// repeat wakes gangs without an event: those whose attempt was cut short, and those that wait for a very long time; and
// gangs that saw an event long ago, and were not tried because of others.
func (l *waitlist) repeat(now time.Time) []gangstate.Key {
	if len(l.paused)+len(l.informed) == 0 || !l.withoutEvent.isOpen(maxSpent, now) {
		return nil
	}
	var due []*parkedGang
	for w := range l.paused {
		switch {
		case !w.woken.IsZero() || !l.holds(w):
			delete(l.paused, w)
		case !w.lacked && !now.Before(w.notYet):
			due = append(due, w)
		}
	}
	for w := range l.informed {
		if w.woken.IsZero() && now.Sub(w.parked) >= fairAfter && l.holds(w) {
			due = append(due, w)
		}
	}
	slices.SortFunc(due, func(a, b *parkedGang) int { return cmp.Or(a.parked.Compare(b.parked), compareKeys(a.key, b.key)) })
	var woken []gangstate.Key
	for _, w := range due {
		if w.woken.IsZero() { // it may be in both sets
			if !l.withoutEvent.affords(w.took, maxSpent, now) {
				break
			}
			woken = append(woken, l.wake(w, now))
		}
	}
	return woken
}

// wake records that the gang is woken for an attempt that may fail again.
func (l *waitlist) wake(w *parkedGang, now time.Time) gangstate.Key {
	delete(l.paused, w)
	delete(l.informed, w)
	w.woken = now
	return w.key
}

// claim wakes gangs that lacked room until now, in rank order, as long as the room is sufficient for all woken gangs up
// to this one together. The other gangs are checked again when these have been tried.
func (l *waitlist) claim(lacked []*parkedGang, now time.Time) []gangstate.Key {
	if len(lacked) == 0 {
		return nil
	}
	byKey := map[gangstate.Key][]*parkedGang{}
	for _, w := range slices.AppendSeq(lacked, maps.Keys(l.claiming)) {
		byKey[w.key] = append(byKey[w.key], w)
	}
	keys := slices.SortedFunc(maps.Keys(byKey), compareKeys)
	if len(keys) > 1 {
		l.queue.SortByRank(keys)
	}
	var woken []gangstate.Key
	claimed := map[room]int{}
	for _, key := range keys {
		for _, w := range byKey[key] {
			if _, claims := l.claiming[w]; !claims {
				if slices.ContainsFunc(w.needs, func(n need) bool { return l.fits(n.room, w)-claimed[n.room] < n.pods }) {
					continue
				}
				w.woken, w.lacked = now, false
				l.claiming[w] = struct{}{}
				woken = append(woken, key)
			}
			for _, n := range w.needs {
				claimed[n.room] += n.pods
			}
		}
	}
	return woken
}

// disclaim releases the claims of a gang. It reports whether there were any.
func (l *waitlist) disclaim(w *parkedGang) bool {
	if _, claims := l.claiming[w]; !claims {
		return false
	}
	delete(l.claiming, w)
	for _, n := range w.needs {
		l.freed[n.room] = struct{}{}
	}
	return true
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
				if w.lacked = l.disclaim(w); !w.lacked {
					l.informed[w] = struct{}{}
				}
				w.woken = time.Time{}
			}
			if w.woken.IsZero() && (w.lacked && l.holds(w) || !w.lacked && now.Sub(w.parked) >= longest) {
				l.paused[w] = struct{}{}
			}
		}
	}
}

// budget is the time of the scheduling loop, 1/share of it, that attempts may use.
type budget struct {
	share int
	spent time.Time // until when it is used up
	// closed is until when nothing is afforded, by limit. One that was reached is open again when less than a quarter is
	// used, so that waiting gangs are not sorted for each attempt.
	closed map[time.Duration]time.Time
}

// isOpen reports whether an attempt may be affordable with this limit.
func (b *budget) isOpen(most time.Duration, now time.Time) bool { return !now.Before(b.closed[most]) }

// affords reports whether the budget exceeds its share by at most the given time. If so, it accounts for an attempt of
// the given duration.
func (b *budget) affords(took, most time.Duration, now time.Time) bool {
	if b.spent.Before(now) {
		b.spent = now
	}
	if b.spent.Sub(now) > most {
		if b.closed == nil {
			b.closed = map[time.Duration]time.Time{}
		}
		b.closed[most] = b.spent.Add(-most / 4)
		return false
	}
	b.spent = b.spent.Add(time.Duration(b.share) * took)
	return true
}

func compareKeys(a, b gangstate.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// holds reports whether the necessary condition of a plan holds.
func (l *waitlist) holds(w *parkedGang) bool {
	same := len(w.fits) == len(w.needs)
	if !same {
		w.fits = make([]int, len(w.needs))
	}
	enough := true
	for i, n := range w.needs {
		fits := l.fits(n.room, w)
		enough = enough && fits >= n.pods
		same = same && fits == w.fits[i]
		w.fits[i] = fits
	}
	if !same || len(w.needs) == 0 {
		w.held = enough && (w.mayFit == nil || w.mayFit())
	}
	return w.held
}
