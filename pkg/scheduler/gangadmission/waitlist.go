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

// waitlist knows what each refused gang waits for, and which gangs a change in the cluster may help. A gang costs nothing
// until that: an event is noted in constant time, and a change of a node is compared with one number per gang.
//
// A gang is woken when the necessary condition of a plan holds (enough of its pods fit by what the nodes have free) and
// either did not hold when it was refused, or something changed that the last attempt may have failed for. In the second
// case the same attempt may fail again, so attempts are spaced: see pause. Safe for concurrent use.
type waitlist struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	gangs  map[gangstate.Key]*parkedGang
	beside map[gangstate.Key]*parkedGang     // refused sub-groups of gangs whose single surplus pods were refused since
	byRoom map[room]map[*parkedGang]struct{} // gangs that wait for room of a shape
	others map[*parkedGang]struct{}          // gangs that wait for more than room
	paused map[*parkedGang]struct{}          // gangs that will be woken when their pause is over
	spent  time.Time                         // until when the share of attempts that may be in vain is used up

	// claimed is how much of each room is meant for gangs that were woken and have not been tried yet: what is free is not
	// promised to every gang that it would be enough for.
	claimed map[room]int
	freed   map[room]struct{} // rooms of which less is claimed than at the last look
	byRank  func([]gangstate.Key)
	kept    func(at room, key gangstate.Key, priority int32) int // of what fits, what is kept from the gang; nil: nothing is
}

// room is how many pods of one shape fit, over all nodes, as an upper bound.
type room interface{ Fits() int }

// parkedGang is one refused gang. Guarded by waitlist.mu.
type parkedGang struct {
	key     gangstate.Key
	at      int32 // its priority
	needs   []need
	mayFit  func() bool
	causes  causes    // of events that may help beside room
	lacked  bool      // the necessary condition did not hold when the gang was refused, nor since
	woken   time.Time // when the gang was woken; zero: not since it was refused
	claims  bool      // its needs are in claimed
	notYet  time.Time // no attempt before, unless lacked
	parked  time.Time // when it was refused
	unit    bool      // it was for a surplus sub-group
	took    time.Duration
	tries   int // refused attempts in a row that the necessary condition did not explain
	release func()
}

// need is the fewest pods of a shape that have to fit at the same time for the gang to be placed.
type need struct {
	room room
	pods int
}

// refused is what is known of an attempt that found no plan.
type refused struct {
	// needs has an entry for every shape whose room is known; nil room is not allowed.
	needs []need
	// mayFit is the necessary condition of a plan over the present room. nil: needs alone.
	mayFit func() bool
	// causes are the events beside more room that may help.
	causes causes
	// priority is the gang's.
	priority int32
	// took is the loop's time that the attempt cost.
	took time.Duration
	// cut: the attempt ended for want of time and goes on by itself.
	cut bool
	// recheck: something happened while the attempt was made that it may not have seen.
	recheck bool
	// unit: it was for a surplus sub-group. single: for single surplus pods; a sub-group that was refused before waits beside.
	unit, single bool
	// release is called when the gang does not wait any more; nil is allowed.
	release func()
}

const (
	// minPause and maxPause bound the pause between two attempts of a gang for which enough fits and that is refused all
	// the same. It doubles with every such attempt.
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
	// pauseShare is the loop's time over the part of it that attempts may take for which enough fits and that failed before,
	// those of all gangs together: 5 %.
	pauseShare = 20
	// maxSpent is how far these attempts may run ahead of their share: a few gangs do not wait for each other.
	maxSpent = 250 * time.Millisecond
	// sliceShare is how many times as long as it took the pause after an attempt is at least that was cut short and goes on.
	sliceShare = 4
)

// pause returns how long a gang pauses at least after so many refused attempts in a row, the last of which took so long.
func pause(tries int, took time.Duration, cut bool) time.Duration {
	if cut {
		return max(minPause, sliceShare*took)
	}
	return min(maxPause, minPause<<min(max(tries-1, 0), 10))
}

// newWaitlist returns an empty list. byRank sorts gangs as the queue would: those that go first come first.
func newWaitlist(c clock.PassiveClock, byRank func([]gangstate.Key)) *waitlist {
	return &waitlist{
		clock: c, byRank: byRank, claimed: map[room]int{}, freed: map[room]struct{}{}, gangs: map[gangstate.Key]*parkedGang{}, beside: map[gangstate.Key]*parkedGang{}, byRoom: map[room]map[*parkedGang]struct{}{},
		others: map[*parkedGang]struct{}{}, paused: map[*parkedGang]struct{}{},
	}
}

// park records what a gang waits for that was refused just now. It replaces what was known of the gang, but for what a
// sub-group waits for if this is for single pods.
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

// leave forgets a gang: it was placed, or is gone.
func (l *waitlist) leave(key gangstate.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.of(key) {
		l.forget(w)
	}
}

// leaveIdle forgets those of the gangs that idle returns, and reports whether there were any. A gang that is refused again
// while idle is asked is kept. idle is called without the lock.
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

// leaveSingle forgets what a gang waits for whose single surplus pods were placed, but for what its sub-groups wait for.
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

// of returns what the gang waits for.
func (l *waitlist) of(key gangstate.Key) []*parkedGang {
	var out []*parkedGang
	for _, w := range []*parkedGang{l.gangs[key], l.beside[key]} {
		if w != nil {
			out = append(out, w)
		}
	}
	return out
}

// keys returns the gangs that wait, in no order.
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

// len returns the number of gangs that wait.
func (l *waitlist) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.gangs)
}

// changed returns the gangs to be woken, sorted, now that these shapes fit on some node more often than before and events
// of these causes came. It is to be called when either may have happened, and from time to time for pauses that are over.
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

// claim wakes gangs that lacked room until now, those that go first first, as far as the room is enough for all of them
// together. The others are looked at again when these have been tried.
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

// disclaim gives back what a gang claimed.
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

// longest is how long a refused gang sleeps at most for which enough fits, as in the stock scheduler: not everything that a
// filter reads is told by an event (labels of namespaces, for one).
const longest = 5 * time.Minute

// forgetful makes gangs eligible again that were woken a while ago and have not been tried since: their leaders have gone,
// perhaps. It also has gangs looked at again for which enough fits by now, or that have slept for very long.
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

// affords reports whether another attempt of the gang keeps the attempts that may be in vain, of all gangs together, within
// their part of the loop's time, and takes it into account if so.
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
