// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"cmp"
	"container/heap"
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// bindLimiter bounds the number of bindings in flight and grants them in order: the plan of the higher priority first,
// then the older one, then by the member's index in the plan. A plan of a higher priority thus waits for the bindings
// in flight only, also if thousands of a lower priority wait.
type bindLimiter struct {
	clock clock.Clock

	mu      sync.Mutex
	unused  int
	all     int
	waiting waiters       // a heap
	short   chan struct{} // closed and set to nil when the queue becomes short; nil: no caller waits for it
	lastAt  time.Time     // when a plan last came into force or a slot became unused; zero: never
}

// turn is a position in the order of bindings.
type turn struct {
	priority int32
	plan     uint64
	index    int
}

func (a turn) compare(b turn) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.plan, b.plan), cmp.Compare(a.index, b.index))
}

type waiter struct {
	turn    turn
	granted chan struct{} // closed when the slot is granted to this waiter
	at      int           // index in waiters; negative: granted
}

// waiters implements heap.Interface: the next one is the first. The members of a large gang arrive in any order, and a
// sorted list would be copied for each of them.
type waiters []*waiter

func (w waiters) Len() int           { return len(w) }
func (w waiters) Less(i, k int) bool { return w[i].turn.compare(w[k].turn) < 0 }
func (w waiters) Swap(i, k int)      { w[i], w[k] = w[k], w[i]; w[i].at, w[k].at = i, k }

// Push implements heap.Interface.
func (w *waiters) Push(x any) {
	one := x.(*waiter)
	one.at = len(*w)
	*w = append(*w, one)
}

// Pop implements heap.Interface.
func (w *waiters) Pop() any {
	last := len(*w) - 1
	one := (*w)[last]
	(*w)[last], *w = nil, (*w)[:last]
	one.at = -1
	return one
}

func newBindLimiter(c clock.Clock, n int) *bindLimiter {
	return &bindLimiter{clock: c, unused: n, all: n}
}

// acquire waits for a slot. If it returns an error, which is that of ctx, there is no slot to release.
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
		if w.at < 0 { // granted in the meantime: pass the slot on
			l.grantNext()
			return ctx.Err()
		}
		heap.Remove(&l.waiting, w.at)
		l.shorter()
		return ctx.Err()
	}
}

// release returns a slot.
func (l *bindLimiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grantNext()
}

func (l *bindLimiter) grantNext() {
	if len(l.waiting) == 0 {
		l.unused++
		l.lastAt = l.clock.Now()
		return
	}
	close(heap.Pop(&l.waiting).(*waiter).granted)
	l.shorter()
}

// queuedPerBinding is the number of waiting bindings per binding in flight up to which the queue is short. This is
// enough work while the scheduling loop is busy for half a second, and too little to matter for memory.
const queuedPerBinding = 4

func (l *bindLimiter) isShort() bool { return len(l.waiting) <= queuedPerBinding*l.all }

// shorter notifies the callers that wait in settle if the queue has become short.
func (l *bindLimiter) shorter() {
	if l.short != nil && l.isShort() {
		close(l.short)
		l.short = nil
	}
}

// settle waits until the queue of bindings is short, but not longer than the limit. It reports whether the queue is
// short.
func (l *bindLimiter) settle(limit time.Duration) bool {
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
	timer := l.clock.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-short:
		return true
	case <-timer.C():
		return false
	}
}

// burstGap is the longest pause between two bindings of one burst: a plan is in force somewhat earlier than its first
// binding is posted, and the last minimum of a burst is bound somewhat earlier than the first surplus is planned.
const burstGap = 200 * time.Millisecond

// expect makes the limiter busy: a plan is in force, its bindings follow.
func (l *bindLimiter) expect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastAt = l.clock.Now()
}

// busy reports whether there is a burst of bindings: one is in flight, or was or is expected within burstGap.
func (l *bindLimiter) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unused < l.all || l.clock.Since(l.lastAt) < burstGap
}
