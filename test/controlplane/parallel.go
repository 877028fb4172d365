// SPDX-License-Identifier: Apache-2.0

package controlplane

import "golang.org/x/sync/errgroup"

// InParallel calls do for 0 to n-1, atATime of them at a time, beginning in order, and returns the first error.
func InParallel(n, atATime int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(atATime)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}
