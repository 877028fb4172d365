// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/muster-project/muster/pkg/lifecycle"
)

func TestStatusDelay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change lifecycle.StatusChange
		want   time.Duration
	}{
		"a first status waits for pods that are ready soon": {
			lifecycle.StatusChange{First: true, Settling: true, Since: now}, 1500 * time.Millisecond},
		"and is written before 2 s have passed": {
			lifecycle.StatusChange{First: true, Settling: true, Since: ago(1500 * time.Millisecond)}, 0},
		"so is the first status of a changed spec": {
			lifecycle.StatusChange{Observed: true, Settling: true, Since: ago(time.Second)}, 500 * time.Millisecond},
		"numbers of pods that start wait": {
			lifecycle.StatusChange{Settling: true, Since: ago(time.Second)}, 2 * time.Second},
		"however many changes follow, the first counts": {
			lifecycle.StatusChange{Settling: true, Since: ago(3 * time.Second)}, 0},
		"numbers that nothing is about to change wait a moment": {
			lifecycle.StatusChange{Since: now}, 500 * time.Millisecond},
		"what is overdue is written":    {lifecycle.StatusChange{Settling: true, Since: ago(time.Hour)}, 0},
		"what others act on is written": {lifecycle.StatusChange{Urgent: true, Since: now}, 0},
		"also as a first status":        {lifecycle.StatusChange{Urgent: true, First: true, Settling: true, Since: now}, 0},
		"a clock that was set back delays no longer": {
			lifecycle.StatusChange{Settling: true, Since: now.Add(10 * time.Minute)}, 3 * time.Second},
	} {
		if got := lifecycle.StatusDelay(tc.change, now); got != tc.want {
			t.Errorf("%s: delay = %s, want %s", name, got, tc.want)
		}
	}
}
