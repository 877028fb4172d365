// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is the work queue of a controller, with a virtual clock. As in the real queue, a request is in it only once, at
// the earliest of the times for which it was added. Requests are removed by take, not by Get.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request] // nil: methods that are not implemented panic

	clock   clock.PassiveClock
	limiter workqueue.TypedRateLimiter[reconcile.Request]

	mu  sync.Mutex
	due map[reconcile.Request]time.Time // guarded by mu
}

func newQueue(clock clock.PassiveClock, limiter workqueue.TypedRateLimiter[reconcile.Request]) *queue {
	return &queue{clock: clock, limiter: limiter, due: map[reconcile.Request]time.Time{}}
}

// Add implements workqueue.TypedInterface.
func (q *queue) Add(r reconcile.Request) { q.AddAfter(r, 0) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *queue) AddAfter(r reconcile.Request, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.clock.Now().Add(max(0, wait))
	if due, ok := q.due[r]; !ok || at.Before(due) {
		q.due[r] = at
	}
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *queue) AddRateLimited(r reconcile.Request) { q.AddAfter(r, q.limiter.When(r)) }

// Forget implements workqueue.TypedRateLimitingInterface.
func (q *queue) Forget(r reconcile.Request) { q.limiter.Forget(r) }

// ShutDown implements workqueue.TypedInterface. No worker runs.
func (q *queue) ShutDown() {}

// ready returns the requests that are due: in the order of their times, then by name.
func (q *queue) ready() []reconcile.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	var ready []reconcile.Request
	for r, at := range q.due {
		if !at.After(now) {
			ready = append(ready, r)
		}
	}
	slices.SortFunc(ready, func(x, y reconcile.Request) int {
		return cmp.Or(q.due[x].Compare(q.due[y]), strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	return ready
}

// next returns the earliest time at which a request is due; false if there is none.
func (q *queue) next() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.due) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(slices.Collect(maps.Values(q.due)), time.Time.Compare), true
}

// take removes a request at the beginning of its pass.
func (q *queue) take(r reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.due, r)
}
