package gangadmission

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// waitsFor returns once n takers wait for a slot.
func (s *slots) waitsFor(n int) {
	for {
		s.mu.Lock()
		now := len(s.waiting)
		s.mu.Unlock()
		if now == n {
			return
		}
	}
}

func TestSlotsAreGrantedInOrderOfPlans(t *testing.T) {
	t.Parallel()
	s := newSlots(1)
	if err := s.take(t.Context(), slot{plan: 9, index: 9}); err != nil {
		t.Fatal(err)
	}
	var wanted []slot
	for plan := range uint64(5) {
		for index := range 4 {
			wanted = append(wanted, slot{plan, index})
		}
	}
	var mu sync.Mutex
	var got []slot
	var group sync.WaitGroup
	for i, at := range rand.Perm(len(wanted)) {
		group.Go(func() {
			if err := s.take(context.Background(), wanted[at]); err != nil {
				t.Error(err)
			}
			mu.Lock()
			got = append(got, wanted[at])
			mu.Unlock()
			s.free()
		})
		s.waitsFor(i + 1)
	}
	s.free()
	group.Wait()
	for i := range wanted {
		if got[i] != wanted[i] {
			t.Fatalf("slots were granted as %v, want the order of plans and members %v", got, wanted)
		}
	}
	if s.unused != 1 {
		t.Errorf("%d slots are unused in the end, want 1", s.unused)
	}
}

func TestSlotsAreNeverMoreThanAllowed(t *testing.T) {
	t.Parallel()
	const limit, takers = 3, 200
	s := newSlots(limit)
	var held, most atomic.Int64
	var group sync.WaitGroup
	for i := range takers {
		group.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%3 == 0 {
				go cancel() // gives up at some point, maybe just when the slot is granted
			}
			if err := s.take(ctx, slot{plan: uint64(i % 7), index: i}); err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			n := held.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			held.Add(-1)
			s.free()
		})
	}
	group.Wait()
	if most.Load() > limit {
		t.Errorf("%d slots were held at once, want at most %d", most.Load(), limit)
	}
	if s.unused != limit || len(s.waiting) != 0 {
		t.Errorf("%d slots unused and %d takers waiting in the end, want %d and 0: a slot was lost", s.unused, len(s.waiting), limit)
	}
}

// takers has n bindings more than there are slots wait for one. Each gives its slot back when it is told to go on.
func (s *slots) takers(t *testing.T, n int) (goOn chan<- struct{}) {
	t.Helper()
	next := make(chan struct{})
	for i := range s.all + n {
		go func() {
			if err := s.take(context.Background(), slot{index: i}); err != nil {
				t.Error(err)
			}
			<-next
			s.free()
		}()
	}
	s.waitsFor(n)
	return next
}

// asked reports whether somebody has waited for the queue to be short, and it has not been so since.
func (s *slots) asked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.short != nil
}

func TestSlotsSettleWhenFewBindingsWait(t *testing.T) {
	t.Parallel()
	s := newSlots(2)
	if !s.settle(clock.RealClock{}, 0) {
		t.Error("does not settle with nothing to bind")
	}
	short := 2 * ahead
	goOn := s.takers(t, short+2) // beside the two in flight
	if s.settle(clock.RealClock{}, time.Nanosecond) {
		t.Errorf("settles with %d bindings waiting for 2 slots", short+2)
	}
	settled := make(chan bool)
	go func() { settled <- s.settle(clock.RealClock{}, time.Hour) }()
	for !s.asked() {
	}
	goOn <- struct{}{}
	s.waitsFor(short + 1)
	if !s.asked() {
		t.Errorf("settled with %d bindings waiting for 2 slots", short+1)
	}
	goOn <- struct{}{}
	if !<-settled {
		t.Errorf("has not settled with %d bindings waiting for 2 slots", short)
	}
	close(goOn)
}

func TestSlotsSettleWhenABindingGivesUp(t *testing.T) {
	t.Parallel()
	s := newSlots(1)
	goOn := s.takers(t, ahead)
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error)
	go func() { given <- s.take(ctx, slot{plan: 1}) }()
	s.waitsFor(ahead + 1)
	settled := make(chan bool)
	go func() { settled <- s.settle(clock.RealClock{}, time.Hour) }()
	for !s.asked() {
	}
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if !<-settled {
		t.Errorf("has not settled with %d bindings waiting for 1 slot", ahead)
	}
	close(goOn)
}

// The loop waits for bindings once for each plan: a leader that is refused meanwhile goes through.
func TestLoopWaitsOncePerPlan(t *testing.T) {
	t.Parallel()
	g := New()
	g.slots = newSlots(1)
	goOn := g.slots.takers(t, ahead+1)
	burst{g}.Pace()
	if g.slots.asked() {
		t.Fatal("waits without a plan")
	}
	g.committed = true
	burst{g}.Pace() // for bindings, of which none ends, so for paceLimit
	if !g.slots.asked() {
		t.Error("has not waited after a plan")
	}
	if g.committed {
		t.Error("waits again without another plan")
	}
	close(goOn)
}
