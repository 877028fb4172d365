// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

// Every pod of a gang marks it, and thousands of pods may do so in a short time.
func TestLargeGangsAreLookedAtOnceASecond(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ pods, most int }{
		"a large gang": {pods: 2000, most: 2 * 4}, // one check of its status and one of its pods, each second
		"a small gang": {pods: 4, most: 2 * 4},    // two checks for each of its four events
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			looks := 0
			count := func(key gangs.Key) (podgroup.Facts, bool) {
				looks++
				return c.registry.Facts(key)
			}
			c.reporter.statuses.pace.facts, c.reporter.pods.pace.facts = count, count
			c.group(wrappers.MakePodGroup("g", namespace).UID("g").MinMember(int32(tc.pods)))
			var pods []*wrappers.PodWrapper
			for i := range tc.pods {
				pods = append(pods, member("g", fmt.Sprintf("p%d", i)))
				c.registry.SetPod(pods[i].Obj(), c.clock.Now())
			}
			for i := range tc.pods {
				c.registry.SetPod(pods[i].Label("event", "1").Obj(), c.clock.Now())
				c.mustLook("g")
				c.passes(3 * time.Second / time.Duration(tc.pods)) // 3 seconds in total
			}
			if looks < 2*3 || looks > tc.most {
				t.Errorf("looked %d times in 3 seconds, want 6 to %d", looks, tc.most)
			}
			c.passes(lookPause)
			for wait := c.mustLook("g"); wait > 0; wait = c.mustLook("g") {
				c.passes(wait)
				if c.clock.Since(start) > time.Minute {
					break
				}
			}
			if got := c.groups.Get(keyOf("g")).Status.Reason; got == "" || got == "WaitingForPods" {
				t.Errorf("the reason is %q at last, want that of a gang whose pods all exist", got)
			}
		})
	}
}

// A process that waits to lead keeps no name of the gangs that come and go meanwhile.
func TestMarksBeforeRunAreNotKept(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i := range 100 {
		name := fmt.Sprintf("job-%d", i)
		c.reporter.MarkChanged(c.registry.SetGroup(podGroup(name).MinMember(1).Obj(), c.clock.Now()).Dirty...)
		c.reporter.MarkChanged(c.registry.RemoveGroup(keyOf(name), c.clock.Now()).Dirty...)
	}
	if n := len(c.reporter.takeMarked()); n > 0 {
		t.Errorf("%d gangs are marked, none exists", n)
	}
}
