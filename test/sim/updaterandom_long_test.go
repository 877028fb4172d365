// SPDX-License-Identifier: Apache-2.0

//go:build long

package sim

import (
	"fmt"
	"testing"
	"time"
)

// TestUpdatesInAnyOrder: the template of a random set is edited repeatedly, while it is scaled, pods and nodes fail,
// the controllers and the scheduler restart, caches are held back, and new pods start late or never become ready. After
// all faults have ended, every pod has the newest template.
func TestUpdatesInAnyOrder(t *testing.T) {
	// Each of the former seeds found a fault of the controllers or of the oracle.
	for _, seed := range append([]int64{175, 1375, 1789, 3865}, seeds(20)...) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			f := newUpdateFuzz(t, seed, Options{Nodes: Nodes(30, 4)})
			for range 4 + f.random.Intn(8) {
				f.act()
				if f.random.Intn(2) == 0 {
					disturb(f.Cluster, f.random)
				}
				for range f.random.Intn(200) {
					f.Step()
				}
				f.Advance(time.Duration(f.random.Intn(60_000)) * time.Millisecond)
			}
			f.heal()
			f.Advance(30 * time.Minute)
			if f.edited {
				wantUpdated(f.Cluster)
			}
			wantEveryPodReady(f.Cluster)
		})
	}
}
