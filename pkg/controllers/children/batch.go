// SPDX-License-Identifier: Apache-2.0

package children

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// passLimit is how long a pass may create objects. A pass that creates hundreds of objects would otherwise delay the
// write of the status until all are created.
const passLimit = time.Second

// ErrUnfinished is the error of SlowStart when the pass has lasted for passLimit and the next pass must create the
// remaining objects.
var ErrUnfinished = errors.New("the next pass creates the rest")

// SlowStart calls a function for 0 to n-1: one call, then two at a time, then four, up to limit, starting a batch only
// after one without a failure; from then on limit calls at a time, until a call fails. A request that is rejected (by
// a quota, or because of a bad template) is therefore sent a few times, not a thousand. A NameConflictError does not
// count as a failure, because it concerns one object. SlowStart returns the number of successful calls and the errors,
// one of each wording; ErrUnfinished is among them if there was no time for all calls. The next pass for the object
// with this name then begins with limit calls at a time.
func (c *Client) SlowStart(clock clock.PassiveClock, name types.NamespacedName, n, limit int, call func(i int) error) (done int, err error) {
	began := clock.Now()
	do := func(i int) error {
		if i > 0 && clock.Since(began) >= passLimit {
			return ErrUnfinished
		}
		return call(i)
	}
	errs := make([]error, n)
	called, failed, goesOn := 0, false, c.unfinished.HasFacts(name.String())
	for size := 1; size < limit && called < n && !failed && !goesOn; size *= 2 {
		called, failed = untilFailure(called, min(called+size, n), size, errs, do)
	}
	if !failed {
		called, _ = untilFailure(called, n, limit, errs, do)
	}
	for _, e := range errs[:called] {
		if e == nil {
			done++
		}
	}
	return done, distinct(errs)
}

// untilFailure calls do from first to end-1, limit at a time, and starts no more calls after a failure. It returns the
// index of the first call that was not made, and whether a call failed.
func untilFailure(first, end, limit int, errs []error, do func(i int) error) (next int, failed bool) {
	var stop atomic.Bool
	slots := make(chan struct{}, limit)
	var group sync.WaitGroup
	for next = first; next < end; next++ {
		slots <- struct{}{}
		if stop.Load() {
			break
		}
		i := next
		group.Go(func() {
			defer func() { <-slots }()
			if errs[i] = do(i); isFailure(errs[i]) {
				stop.Store(true)
			}
		})
	}
	group.Wait()
	return next, stop.Load()
}

// isFailure reports whether there is an error other than a NameConflictError.
func isFailure(err error) bool {
	for _, single := range flatten(err) {
		conflict := (*NameConflictError)(nil)
		if !errors.As(single, &conflict) {
			return true
		}
	}
	return false
}

// ForEach calls do for 0 to n-1, at most limit calls at a time, even if some fail, and returns the errors, one of each
// wording.
func ForEach(n, limit int, do func(i int) error) error {
	errs := make([]error, n)
	slots := make(chan struct{}, limit)
	var group sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	group.Wait()
	return distinct(errs)
}

// distinct joins the errors, one of each wording. nil if there are none.
func distinct(errs []error) error {
	seen := map[string]bool{}
	var kept []error
	for _, err := range errs {
		if err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			kept = append(kept, err)
		}
	}
	if len(kept) == 1 {
		return kept[0]
	}
	return errors.Join(kept...)
}
