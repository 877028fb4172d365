// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/test/rounds"
)

// Many gangs are created and deleted, some of them after waiting or being refused: the scheduler keeps no state of
// them. Waits at the barrier, slots and timers are goroutines, so the test counts these.
func TestNothingGrows(t *testing.T) {
	const size = 8
	many := 60
	if rounds.Exhaustive() {
		many = 600
	}
	c := newCluster(t, 2)
	c.start()
	round := 0
	gangs := func(n int) {
		for range n {
			round++
			g := fmt.Sprintf("gang-%d", round)
			switch round % 10 {
			case 3: // its PodGroup is created last
				for _, pod := range names(g, 0, size) {
					c.create(c.pod(pod, g, 1))
				}
				c.apply(c.group(g).MinMember(size))
			case 7: // too large for the cluster
				c.createGang(g, size, 8)
				c.untilStatus(g, "has been refused", func(s v2Status) bool { return s.Reason == "TooLarge" })
				c.deleteGang(g)
				continue
			default:
				c.createGang(g, size, 1)
			}
			c.untilBound(g, size)
			c.deleteGang(g)
		}
	}
	gangs(20) // growth that happens once: connections, caches, informers
	before := c.settled(0)
	start := time.Now()
	gangs(many)
	took := time.Since(start)
	after := c.settled(int(before.goroutines) + 10)
	t.Logf("%d gangs of %d in %s: goroutines %.0f before, %.0f after; heap %.1f MiB before, %.1f MiB after",
		many, size, ms(took), before.goroutines, after.goroutines, before.heap/(1<<20), after.heap/(1<<20))
	if after.goroutines > before.goroutines+10 {
		t.Errorf("goroutines grew from %.0f to %.0f", before.goroutines, after.goroutines)
	}
	if after.heap > before.heap+10<<20 {
		t.Errorf("the heap grew from %.1f MiB to %.1f MiB", before.heap/(1<<20), after.heap/(1<<20))
	}
}

// sizes is how large a process is.
type sizes struct{ goroutines, heap float64 }

// settled returns the scheduler's sizes after a garbage collection, when it has at most this number of goroutines or
// half a minute has passed; 0: when their number no longer changes. They cannot be watched, so this polls.
func (c *cluster) settled(most int) sizes {
	c.t.Helper()
	c.until("no pod is left", time.Minute, func(pods []*corev1.Pod) bool { return len(pods) == 0 })
	last := -1.0
	var s sizes
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(400 * time.Millisecond) {
		c.ask("/debug/pprof/heap?gc=1")
		metrics := c.ask("/metrics")
		s = sizes{goroutines: c.metric(metrics, "go_goroutines"), heap: c.metric(metrics, "go_memstats_heap_alloc_bytes")}
		if most > 0 && int(s.goroutines) <= most || most == 0 && s.goroutines == last {
			break
		}
		last = s.goroutines
	}
	return s
}
