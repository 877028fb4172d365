package children

import (
	"errors"
	"sync"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// InBatches calls do for 0 to n-1: one call, then two at a time, then four, up to limit, and goes on only while nothing of
// a batch is refused. What the API server refuses (a quota, a bad template) is so asked for a few times, not a thousand.
// A name that is taken (InTheWay) stops nobody else. It returns how many calls succeeded, and the errors, one of each
// wording.
func InBatches(n, limit int, do func(i int) error) (done int, err error) {
	first := 0
	var all []error
	for _, size := range sizes(n, limit) {
		errs := make([]error, size)
		var batch sync.WaitGroup
		for k := range size {
			batch.Go(func() { errs[k] = do(first + k) })
		}
		batch.Wait()
		all, first = append(all, errs...), first+size
		refused := false
		for _, e := range errs {
			if e == nil {
				done++
			}
			for _, single := range flatten(e) {
				inTheWay := (*InTheWay)(nil)
				refused = refused || !errors.As(single, &inTheWay)
			}
		}
		if refused {
			break
		}
	}
	return done, distinct(all)
}

// sizes returns lifecycle.Batches, cut into pieces of at most limit.
func sizes(n, limit int) []int {
	var out []int
	for _, size := range lifecycle.Batches(n) {
		for ; size > limit; size -= limit {
			out = append(out, limit)
		}
		out = append(out, size)
	}
	return out
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
