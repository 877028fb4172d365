// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// waitsFor returns when n takers wait for a slot.
func (l *bindLimiter) waitsFor(n int) {
	for {
		l.mu.Lock()
		now := len(l.waiting)
		l.mu.Unlock()
		if now == n {
			return
		}
	}
}

func TestSlotsAreGrantedInOrder(t *testing.T) {
	t.Parallel()
	l := newBindLimiter(clock.RealClock{}, 1)
	if err := l.acquire(t.Context(), turn{plan: 9, index: 9}); err != nil {
		t.Fatal(err)
	}
	var wanted []turn
	for _, priority := range []int32{math.MaxInt32, 1, 0, math.MinInt32} {
		for plan := range uint64(3) {
			for index := range 3 {
				wanted = append(wanted, turn{priority, plan, index})
			}
		}
	}
	var mu sync.Mutex
	var got []turn
	var group sync.WaitGroup
	for i, at := range rand.Perm(len(wanted)) {
		group.Go(func() {
			if err := l.acquire(context.Background(), wanted[at]); err != nil {
				t.Error(err)
			}
			mu.Lock()
			got = append(got, wanted[at])
			mu.Unlock()
			l.release()
		})
		l.waitsFor(i + 1)
	}
	l.release()
	group.Wait()
	for i := range wanted {
		if got[i] != wanted[i] {
			t.Fatalf("places were granted as %v, want the order of priorities, plans and members %v", got, wanted)
		}
	}
	if l.unused != 1 {
		t.Errorf("%d places are unused in the end, want 1", l.unused)
	}
}

// Whoever gives up while it waits does not change the order of the others.
func TestTheOrderHoldsWhenBindingsGiveUp(t *testing.T) {
	t.Parallel()
	const takers = 300
	l := newBindLimiter(clock.RealClock{}, 1)
	if err := l.acquire(t.Context(), turn{}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []int
	var group sync.WaitGroup
	var givingUp []context.CancelFunc
	var wanted []int
	for n, index := range rand.Perm(takers) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if index%3 == 0 {
			givingUp = append(givingUp, cancel)
		} else {
			wanted = append(wanted, index)
		}
		group.Go(func() {
			if l.acquire(ctx, turn{plan: 1, index: index}) != nil {
				return
			}
			mu.Lock()
			got = append(got, index)
			mu.Unlock()
			l.release()
		})
		l.waitsFor(n + 1)
	}
	for i, cancel := range givingUp {
		cancel()
		l.waitsFor(takers - i - 1)
	}
	l.release()
	group.Wait()
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("slots were granted to %v, want %v", got, wanted)
	}
}

func TestSlotsAreNeverMoreThanAllowed(t *testing.T) {
	t.Parallel()
	const limit, takers = 3, 200
	l := newBindLimiter(clock.RealClock{}, limit)
	var held, most atomic.Int64
	var group sync.WaitGroup
	for i := range takers {
		group.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%3 == 0 {
				go cancel() // gives up at some point, possibly exactly when the slot is granted
			}
			if err := l.acquire(ctx, turn{plan: uint64(i % 7), index: i}); err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			n := held.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			held.Add(-1)
			l.release()
		})
	}
	group.Wait()
	if most.Load() > limit {
		t.Errorf("%d places were taken together, want at most %d", most.Load(), limit)
	}
	if l.unused != limit || len(l.waiting) != 0 {
		t.Errorf("%d places unused and %d takers waiting in the end, want %d and 0: a place was lost", l.unused, len(l.waiting), limit)
	}
}

// takers starts n bindings more than there are slots. Each releases its slot when goOn receives a value.
func (l *bindLimiter) takers(t *testing.T, n int) (goOn chan<- struct{}) {
	t.Helper()
	next := make(chan struct{})
	for i := range l.all + n {
		go func() {
			if err := l.acquire(context.Background(), turn{index: i}); err != nil {
				t.Error(err)
			}
			<-next
			l.release()
		}()
	}
	l.waitsFor(n)
	return next
}

// asked reports whether a caller waits for the queue to become short.
func (l *bindLimiter) asked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.short != nil
}

func TestSlotsSettleWhenFewBindingsWait(t *testing.T) {
	t.Parallel()
	l := newBindLimiter(clock.RealClock{}, 2)
	if !l.settle(0) {
		t.Error("does not settle with nothing to bind")
	}
	short := 2 * queuedPerBinding
	goOn := l.takers(t, short+2) // in addition to the two in flight
	if l.settle(time.Nanosecond) {
		t.Errorf("settles with %d bindings waiting for 2 places", short+2)
	}
	settled := make(chan bool)
	go func() { settled <- l.settle(time.Hour) }()
	for !l.asked() {
	}
	goOn <- struct{}{}
	l.waitsFor(short + 1)
	if !l.asked() {
		t.Errorf("settled with %d bindings waiting for 2 places", short+1)
	}
	goOn <- struct{}{}
	if !<-settled {
		t.Errorf("has not settled with %d bindings waiting for 2 places", short)
	}
	close(goOn)
}

func TestSlotsSettleWhenABindingGivesUp(t *testing.T) {
	t.Parallel()
	l := newBindLimiter(clock.RealClock{}, 1)
	goOn := l.takers(t, queuedPerBinding)
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error)
	go func() { given <- l.acquire(ctx, turn{plan: 1}) }()
	l.waitsFor(queuedPerBinding + 1)
	settled := make(chan bool)
	go func() { settled <- l.settle(time.Hour) }()
	for !l.asked() {
	}
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if !<-settled {
		t.Errorf("has not settled with %d bindings waiting for 1 place", queuedPerBinding)
	}
	close(goOn)
}

// Statuses and events make way for a whole burst, also between a plan and its first binding, and between two bindings.
func TestSlotsAreBusyForAWholeBurst(t *testing.T) {
	t.Parallel()
	c := testingclock.NewFakeClock(time.Now())
	l := newBindLimiter(c, 2)
	want := func(busy bool, when string) {
		t.Helper()
		if l.busy() != busy {
			t.Errorf("busy %v %s, want %v", !busy, when, busy)
		}
	}
	want(false, "before the first plan")
	l.expect()
	want(true, "before the first binding")
	c.Step(burstGap)
	want(false, "long after a plan without bindings")
	if err := l.acquire(t.Context(), turn{plan: 1}); err != nil {
		t.Fatal(err)
	}
	c.Step(time.Hour)
	want(true, "while a binding is in flight")
	l.release()
	c.Step(burstGap - 1)
	want(true, "right after a binding")
	c.Step(1)
	want(false, "long after a binding")
}

// The loop waits for bindings once per plan: a leader that is refused in the meantime is not delayed.
func TestLoopWaitsOncePerPlan(t *testing.T) {
	t.Parallel()
	g := New()
	g.binds = newBindLimiter(g.clock, 1)
	goOn := g.binds.takers(t, queuedPerBinding+1)
	memberSource{g}.Pace()
	if g.binds.asked() {
		t.Fatal("waits without a plan")
	}
	g.committed = true
	memberSource{g}.Pace() // waits for bindings, none of which ends, until paceLimit
	if !g.binds.asked() {
		t.Error("has not waited after a plan")
	}
	if g.committed {
		t.Error("waits again without another plan")
	}
	close(goOn)
}
