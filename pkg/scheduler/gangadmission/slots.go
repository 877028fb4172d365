package gangadmission

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// slots bounds the bindings in flight and grants them in order: the older plan first, then the member's place in it.
type slots struct {
	mu      sync.Mutex
	unused  int
	all     int
	waiting waiters
	short   chan struct{} // closed, and nil again, once the queue is short; nil: nobody has asked
}

// slot is a place in the order.
type slot struct {
	plan  uint64
	index int
}

func (a slot) before(b slot) bool {
	return a.plan < b.plan || a.plan == b.plan && a.index < b.index
}

type waiter struct {
	slot    slot
	granted chan struct{} // closed when the slot is this waiter's
	at      int           // in the heap; -1 = not in it
}

func newSlots(n int) *slots { return &slots{unused: n, all: n} }

// take waits for a slot. The error is ctx's; then there is nothing to free.
func (s *slots) take(ctx context.Context, at slot) error {
	s.mu.Lock()
	if s.unused > 0 && len(s.waiting) == 0 {
		s.unused--
		s.mu.Unlock()
		return nil
	}
	w := &waiter{slot: at, granted: make(chan struct{})}
	heap.Push(&s.waiting, w)
	s.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.at < 0 { // granted meanwhile: pass it on
			s.release()
			return ctx.Err()
		}
		heap.Remove(&s.waiting, w.at)
		s.shorter()
		return ctx.Err()
	}
}

// free gives a slot back.
func (s *slots) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
}

func (s *slots) release() {
	if len(s.waiting) == 0 {
		s.unused++
		return
	}
	close(heap.Pop(&s.waiting).(*waiter).granted)
	s.shorter()
}

// ahead is how many bindings may wait for each slot in a queue that is short: enough for the loop not to be missed for half
// a second, and few enough not to matter in memory.
const ahead = 4

func (s *slots) isShort() bool { return len(s.waiting) <= ahead*s.all }

// shorter tells who waits in settle that the queue has become short.
func (s *slots) shorter() {
	if s.short != nil && s.isShort() {
		close(s.short)
		s.short = nil
	}
}

// settle waits until the queue of bindings is short, but no longer than the limit. It reports whether it is.
func (s *slots) settle(c clock.Clock, limit time.Duration) bool {
	s.mu.Lock()
	if s.isShort() {
		s.mu.Unlock()
		return true
	}
	if s.short == nil {
		s.short = make(chan struct{})
	}
	short := s.short
	s.mu.Unlock()
	timer := c.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-short:
		return true
	case <-timer.C():
		return false
	}
}

// busy reports whether a binding is in flight.
func (s *slots) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unused < s.all
}

// waiters is a heap, the slot to be granted next on top.
type waiters []*waiter

func (h waiters) Len() int           { return len(h) }
func (h waiters) Less(i, j int) bool { return h[i].slot.before(h[j].slot) }
func (h waiters) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *waiters) Push(x any) {
	w := x.(*waiter)
	w.at = len(*h)
	*h = append(*h, w)
}
func (h *waiters) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.at = -1
	return w
}
