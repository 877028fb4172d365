package gangadmission

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// bindLimiter bounds the bindings in flight and grants them in order: the older plan first, then the member's place in it.
type bindLimiter struct {
	mu      sync.Mutex
	unused  int
	all     int
	waiting waiters
	short   chan struct{} // closed, and nil again, once the queue is short; nil: nobody has asked
}

// turn is a place in the order of bindings.
type turn struct {
	plan  uint64
	index int
}

func (a turn) before(b turn) bool {
	return a.plan < b.plan || a.plan == b.plan && a.index < b.index
}

type waiter struct {
	turn    turn
	granted chan struct{} // closed when the place is this waiter's
	at      int           // in the heap; -1 = not in it
}

func newBindLimiter(n int) *bindLimiter { return &bindLimiter{unused: n, all: n} }

// acquire waits for a place. The error is ctx's; then there is nothing to release.
func (l *bindLimiter) acquire(ctx context.Context, at turn) error {
	l.mu.Lock()
	if l.unused > 0 && len(l.waiting) == 0 {
		l.unused--
		l.mu.Unlock()
		return nil
	}
	w := &waiter{turn: at, granted: make(chan struct{})}
	heap.Push(&l.waiting, w)
	l.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		if w.at < 0 { // granted meanwhile: pass it on
			l.grantNext()
			return ctx.Err()
		}
		heap.Remove(&l.waiting, w.at)
		l.shorter()
		return ctx.Err()
	}
}

// release gives a place back.
func (l *bindLimiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grantNext()
}

func (l *bindLimiter) grantNext() {
	if len(l.waiting) == 0 {
		l.unused++
		return
	}
	close(heap.Pop(&l.waiting).(*waiter).granted)
	l.shorter()
}

// queuedPerBinding is how many bindings may wait for each that is in flight in a queue that is short: enough for the loop not to be missed for half
// a second, and few enough not to matter in memory.
const queuedPerBinding = 4

func (l *bindLimiter) isShort() bool { return len(l.waiting) <= queuedPerBinding*l.all }

// shorter tells who waits in settle that the queue has become short.
func (l *bindLimiter) shorter() {
	if l.short != nil && l.isShort() {
		close(l.short)
		l.short = nil
	}
}

// settle waits until the queue of bindings is short, but no longer than the limit. It reports whether it is.
func (l *bindLimiter) settle(c clock.Clock, limit time.Duration) bool {
	l.mu.Lock()
	if l.isShort() {
		l.mu.Unlock()
		return true
	}
	if l.short == nil {
		l.short = make(chan struct{})
	}
	short := l.short
	l.mu.Unlock()
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
func (l *bindLimiter) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unused < l.all
}

// waiters is a heap, the one to be granted next on top.
type waiters []*waiter

func (h waiters) Len() int           { return len(h) }
func (h waiters) Less(i, j int) bool { return h[i].turn.before(h[j].turn) }
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
