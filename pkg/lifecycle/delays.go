// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// RequeueAfter returns the shortest time after which one of the decisions changes without an event, 0 if none does.
// raised: an attempt was raised, and its unit must be processed again immediately.
func RequeueAfter(decisions []UnitDecision, raised bool) time.Duration {
	if raised {
		return time.Millisecond
	}
	after := time.Duration(0)
	for _, d := range decisions {
		after = Sooner(after, d.RequeueAfter)
	}
	return after
}

// delayUntil returns the time from now until t, at least a millisecond: a delay of 0 means that none is set.
func delayUntil(t, now time.Time) time.Duration { return max(t.Sub(now), time.Millisecond) }

// Sooner returns the shorter of two delays, where 0 means no delay is set.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
