package lifecycle

import "time"

// StatusChange is how the status that an object should have differs from the one that was written last.
type StatusChange struct {
	// First: no status has been written yet. Observed: the status describes another generation of the spec.
	First, Observed bool
	// Urgent: others act on what has changed: availability, a breach, the minimum, an error, or a fact that must be
	// recorded before the controller acts on it itself. Otherwise only numbers have changed.
	Urgent bool
	// Settling: pods are being created or started, so that more changes are about to follow.
	Settling bool
	// Since is when the controller first saw a difference, by its own clock. A timestamp of an API object would be that of
	// another clock.
	Since time.Time
}

const (
	// firstStatusDelay is for a first status, or the first of a changed spec, on which users wait with kubectl wait. The
	// status is to be there 2 s after the object or its change. Pods that are ready by then cost no write of their own.
	firstStatusDelay = 1500 * time.Millisecond
	// settlingDelay is for numbers while pods start: they are to be there after 5 s, one of which the controller may have
	// waited for more events. A pod that starts without trouble is ready within that time: binding costs no write.
	settlingDelay = 3 * time.Second
	// settledDelay is for numbers when no other change is expected.
	settledDelay = 500 * time.Millisecond
)

// StatusDelay returns how long to wait before a changed status is written; 0: write it now. It depends on nothing but the
// object itself: what happens elsewhere delays no status.
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
