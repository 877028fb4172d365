// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// StatusChange describes how the desired status of an object differs from the written one.
type StatusChange struct {
	// First: no status has been written yet. Observed: the observed generation of the spec has changed.
	First, Observed bool
	// Urgent: the change contains more than counts: availability, a breach, the minimum, an error, which other
	// controllers act on, or a fact that must be recorded before the controller itself acts on it.
	Urgent bool
	// Settling: pods are being created or started, so that more changes will follow soon.
	Settling bool
	// Since is when the controller first observed a difference, by its own clock. Timestamps of API objects are not
	// used, because they come from another clock.
	Since time.Time
}

const (
	// firstStatusDelay applies to the first status of an object or of a changed spec, which users wait for with
	// kubectl wait. The status must be written within 2 s after the object or its change. Pods that become ready in
	// the meantime need no further write.
	firstStatusDelay = 1500 * time.Millisecond
	// settlingDelay applies to counts while pods start. They must be written within 5 s, one of which the controller
	// may have waited for more events. A pod that starts without problems becomes ready within that time, so that its
	// binding needs no write.
	settlingDelay = 3 * time.Second
	// settledDelay applies to counts when no other change is expected.
	settledDelay = 500 * time.Millisecond
)

// StatusDelay returns how long to wait before a changed status is written; 0: write it now. It depends on the object
// alone, so that changes of other objects never delay the status.
func StatusDelay(c StatusChange, now time.Time) time.Duration {
	var delay time.Duration
	switch {
	case c.Urgent:
		return 0
	case c.First || c.Observed:
		delay = firstStatusDelay
	case c.Settling:
		delay = settlingDelay
	default:
		delay = settledDelay
	}
	return min(delay, max(0, c.Since.Add(delay).Sub(now)))
}
