// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// smallHeap is the size in bytes that the heap may have whatever part of it is garbage. A drain allocates much and
	// keeps little: at Go's default a fifth of the scheduler's CPU time goes into collecting garbage at 1,000 nodes,
	// and a third of that with this much room. At 5,000 nodes and 8,000 pods it keeps 123 MiB.
	smallHeap = 288 << 20
	// leastGCPercent and mostGCPercent bound GOGC. The first is Go's default.
	leastGCPercent, mostGCPercent = 100, 300
)

// tuneGC keeps GOGC at gcPercent from now on, unless the environment has a value for it.
func tuneGC() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(mostGCPercent)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	percent := mostGCPercent
	afterEachCollection(func() {
		metrics.Read(live)
		if now := gcPercent(live[0].Value.Uint64()); now != percent { // to set it stops the program for a moment
			percent = now
			debug.SetGCPercent(percent)
		}
	})
}

// gcPercent returns GOGC for a heap of which so many bytes are in use: it is collected when it has doubled, or later if
// it is smaller than smallHeap then.
func gcPercent(live uint64) int {
	if live == 0 {
		return mostGCPercent
	}
	return int(min(max(100*smallHeap/live, 100+leastGCPercent), 100+mostGCPercent)) - 100
}

// afterEachCollection calls the function some time after each garbage collection, one call at a time.
func afterEachCollection(do func()) {
	type sentinel struct{ _ *int } // with a pointer: an object without one shares its memory with others
	runtime.SetFinalizer(&sentinel{}, func(*sentinel) {
		do()
		afterEachCollection(do)
	})
}
