// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The gap between two deletions of a partial gang that is released: the rest is released after the restart, too.
func TestKilledWhileAPartialGangIsReleased(t *testing.T) {
	c := newCluster(t, 1)
	liftBindings := c.refuseBindings(names("gang", 6, 8), nil)
	c.createOwnedGang("gang", 8, 1)
	liftDeletions := c.refuseDeletions(names("gang", 2, 6)...)
	c.startWith(map[string]any{"repairTimeout": "2s"})
	c.untilBound("gang", 6)
	c.until("two pods are released", time.Minute, func(pods []*corev1.Pod) bool { return bound(pods, "gang") == 4 })
	c.scheduler.Kill()
	liftBindings()
	liftDeletions()
	c.restart()
	c.until("the other four are released", 30*time.Second, func(pods []*corev1.Pod) bool { return bound(pods, "gang") == 0 })
}
