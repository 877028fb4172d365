// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"runtime"
	"testing"
)

func TestGCPercent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		live uint64
		want int
	}{
		{"nothing collected yet", 0, 300},
		{"small", 20 << 20, 300},
		{"a quarter of a small heap", smallHeap / 4, 300},
		{"a third of a small heap", smallHeap / 3, 200},
		{"half of a small heap", smallHeap / 2, 100},
		{"large", 4 << 30, 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := gcPercent(test.live); got != test.want {
				t.Errorf("GOGC %d, want %d", got, test.want)
			}
		})
	}
}

func TestAfterEachCollection(t *testing.T) {
	t.Parallel()
	calls := make(chan struct{}, 1)
	afterEachCollection(func() {
		select {
		case calls <- struct{}{}:
		default: // the test is over; finalizers must not wait
		}
	})
	for range 3 {
		runtime.GC()
		<-calls
	}
}
