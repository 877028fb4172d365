// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"testing"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// A gang that was tried many times goes before a younger one when there is room again (docs/decisions, G16): it keeps
// its place over retries, whatever its back-off.
func TestOldGangGoesFirstHoweverOftenItWasTried(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.create(c.pod("occupant", "", 8))
	c.untilPodBound("occupant")
	c.createGang("old", 2, 4)
	c.untilSays("old", v2alpha2.ReasonInsufficientGPUs)
	for i := range 8 { // attempts
		name := fmt.Sprintf("coming-%d", i)
		c.createPlain(name)
		c.untilPodBound(name)
		c.delete(name)
		c.untilPodSays("Unschedulable", "old-0")
	}
	c.createGang("young", 2, 4)
	c.untilSays("young", v2alpha2.ReasonInsufficientGPUs)
	c.untilPodSays("Unschedulable", "young-0", "young-1", "old-0", "old-1")
	c.delete("occupant")
	c.untilBound("old", 2)
	c.untilSatisfied("old")
	c.notBound("young-0", "young-1")
	c.stillSchedules()
}
