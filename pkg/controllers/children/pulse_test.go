// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestPulse: a process that has stood still waits for as long as it may take to learn that it no longer leads, whether
// a pass or a beat is first, and one that is only slow does not.
func TestPulse(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		gap       time.Duration
		beatFirst bool
		want      time.Duration
	}{
		"slow":                            {9 * time.Second, false, 0},
		"stood still, a pass comes first": {24 * time.Second, false, 10 * time.Second},
		"stood still, a beat comes first": {24 * time.Second, true, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := clocktesting.NewFakePassiveClock(start)
			p := NewPulse(10*time.Second, clock)
			if wait := p.wait(); wait != 0 {
				t.Errorf("before the first beat: waits %s", wait)
			}
			p.Beat(start)
			clock.SetTime(start.Add(tc.gap))
			if tc.beatFirst {
				p.Beat(clock.Now())
			}
			if got := p.wait(); got != tc.want {
				t.Errorf("waits %s, want %s", got, tc.want)
			}
			for at := tc.gap; at <= tc.gap+tc.want; at += time.Second {
				clock.SetTime(start.Add(at))
				p.Beat(clock.Now())
			}
			if got := p.wait(); got != 0 {
				t.Errorf("waits %s after that", got)
			}
		})
	}
	if wait := (*Pulse)(nil).wait(); wait != 0 {
		t.Errorf("without a pulse: waits %s", wait)
	}
}
