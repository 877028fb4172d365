// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"
	"time"
)

// The tightest last domain is sought among thousands for a bounded time.
func TestFewestOfManyDomainsTakesLittleTime(t *testing.T) {
	t.Parallel()
	const racks = 20_000
	var list []*domain
	for i := range racks {
		d, nodes, room := &domain{room: 64}, 8, 8
		if i >= racks/2 { // they would do for the last one, but for the number of nodes
			d.room, nodes, room = 63, 21, 3
		}
		for range nodes {
			d.inside = append(d.inside, &domain{room: room})
		}
		list = append(list, d)
	}
	start := time.Now()
	if chosen := fewestOf(list, false, racks/4*64-8); len(chosen) != racks/4 {
		t.Errorf("%d racks, want %d", len(chosen), racks/4)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}
