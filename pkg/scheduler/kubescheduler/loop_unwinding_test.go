// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import "testing"

// unwinding are members that have their reservations, or have released them, for so many calls.
type unwinding struct {
	MemberSource
	held, released, calls int
}

func (u *unwinding) Unwinding() (held, released bool) {
	u.calls++
	u.held, u.released = u.held-1, u.released-1
	return u.held >= 0, u.released >= 0
}

// The loop waits for members that are prepared, and once more when they release their reservations: a plan made in
// between would see room that is about to be free, and report that its gang does not fit.
func TestLoopWaitsForReleasedMembers(t *testing.T) {
	t.Parallel()
	const forever = 1_000_000
	u := &unwinding{held: forever}
	l := &loop{members: u}
	l.waitForUnwinding() // until the limit
	calls := u.calls
	if l.waitForUnwinding(); calls < 2 || u.calls != calls+1 {
		t.Errorf("it waits %d times for a preparation, and then %d times for the same one", calls, u.calls-calls)
	}
	u.released = 5
	if l.waitForUnwinding(); u.released > 0 {
		t.Errorf("it does not wait for members that are released: %d more calls would tell of them", u.released)
	}
	u.released = forever
	l.waitForUnwinding() // until the limit
	calls = u.calls
	if l.waitForUnwinding(); u.calls != calls+1 {
		t.Errorf("it waits %d times for the same releases", u.calls-calls)
	}
}
