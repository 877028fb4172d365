package children

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// passLimit is how long a pass may create objects. One that creates hundreds would otherwise keep the status from being
// written for as long.
const passLimit = time.Second

// ErrUnfinished is the error of SlowStart when it leaves the rest to the next pass, because this one has lasted passLimit.
var ErrUnfinished = errors.New("the next pass creates the rest")

// SlowStart calls a function for 0 to n-1: one call, then two at a time, then four, up to limit, each batch only after one
// without a failure; from then on limit at a time, until a call fails. So a rejected request (a quota, a bad template) is
// sent a few times, not a thousand. A NameConflictError does not count as a failure: it concerns one object. SlowStart
// returns how many calls succeeded, and the errors, one of each wording; ErrUnfinished is among them if there was no time
// for all. The next pass of the object of that name then begins with limit calls at a time.
func (c *Client) SlowStart(clock clock.PassiveClock, name types.NamespacedName, n, limit int, call func(i int) error) (done int, err error) {
	began := clock.Now()
	do := func(i int) error {
		if i > 0 && clock.Since(began) >= passLimit {
			return ErrUnfinished
		}
		return call(i)
	}
	errs := make([]error, n)
	called, failed := 0, false
	batches := lifecycle.Batches(n)
	if c.unfinished.Holds(name.String()) {
		batches = nil
	}
	for _, size := range batches {
		if size >= limit || failed {
			break
		}
		called, failed = untilFailure(called, called+size, size, errs, do)
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

// untilFailure calls do from first to end-1, limit at a time, and starts no more calls after a failure. It returns the index
// of the first call that was not made, and whether a call failed.
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

// ForEach calls do for 0 to n-1, at most limit at a time, whatever fails, and returns the errors, one of each wording.
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

// distinct joins the errors, one of each wording. nil: there is none.
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
