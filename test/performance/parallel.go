// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// inParallel does n things, writers at a time, beginning them in order. It returns the first error.
func inParallel(n int, do func(i int) error) error {
	var (
		group sync.WaitGroup
		next  atomic.Int64
		once  sync.Once
		first error
	)
	for range writers {
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

func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	load, _, _ := strings.Cut(string(content), " ")
	return load
}
