package children

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// InBatches calls do for 0 to n-1: one call, then two at a time, then four, up to limit, each batch only after one of which
// nothing was refused; from then on limit at a time, until something is. What the API server refuses (a quota, a bad
// template) is so asked for a few times, not a thousand. A name that is taken (InTheWay) stops nobody else. It returns how
// many calls succeeded, and the errors, one of each wording.
func InBatches(n, limit int, do func(i int) error) (done int, err error) {
	errs := make([]error, n)
	called, refused := 0, false
	for _, size := range lifecycle.Batches(n) {
		if size >= limit || refused {
			break
		}
		called, refused = untilRefused(called, called+size, size, errs, do)
	}
	if !refused {
		called, _ = untilRefused(called, n, limit, errs, do)
	}
	for _, e := range errs[:called] {
		if e == nil {
			done++
		}
	}
	return done, distinct(errs)
}

// untilRefused calls do from first to end-1, limit at a time, and begins no more once one was refused. It returns the first
// that was not called, and whether one was refused.
func untilRefused(first, end, limit int, errs []error, do func(i int) error) (next int, refused bool) {
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
			if errs[i] = do(i); refuses(errs[i]) {
				stop.Store(true)
			}
		})
	}
	group.Wait()
	return next, stop.Load()
}

// refuses tells whether there is an error other than that a name is taken.
func refuses(err error) bool {
	for _, single := range flatten(err) {
		inTheWay := (*InTheWay)(nil)
		if !errors.As(single, &inTheWay) {
			return true
		}
	}
	return false
}

// All calls do for 0 to n-1, at most limit at a time, whatever fails, and returns the errors, one of each wording.
func All(n, limit int, do func(i int) error) error {
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
