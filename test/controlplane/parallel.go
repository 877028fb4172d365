// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"sync"
	"sync/atomic"
)

// InParallel calls do for 0 to n-1, atATime of them at a time, beginning in order, and returns the first error.
func InParallel(n, atATime int, do func(i int) error) error {
	var (
		group sync.WaitGroup
		next  atomic.Int64
		once  sync.Once
		first error
	)
	for range atATime {
		group.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				if err := do(i); err != nil {
					once.Do(func() { first = err })
					return
				}
			}
		})
	}
	group.Wait()
	return first
}
