package gangadmission

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
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
