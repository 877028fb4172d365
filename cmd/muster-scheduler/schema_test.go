// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/muster-project/muster/pkg/scheduler/report"
)

func TestWaitForSchema(t *testing.T) {
	foreign := fmt.Errorf("%w: it lacks spec.minSubGroup", report.ErrForeignSchema)
	unread := fmt.Errorf("no answer")
	for name, tc := range map[string]struct {
		answers []error // the last one for ever
		want    int     // calls
	}{
		"a schema that fits is asked for once":                  {answers: []error{nil}, want: 1},
		"a foreign one is waited for, however long it takes":    {answers: []error{foreign, foreign, foreign, foreign, foreign, foreign, nil}, want: 7},
		"one that cannot be read is taken to fit after a while": {answers: []error{unread}, want: 4},
		"but not if it was read and is foreign":                 {answers: []error{unread, unread, foreign, unread, unread, foreign, nil}, want: 7},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			waitForSchema(context.Background(), func(context.Context) error {
				calls++
				return tc.answers[min(calls, len(tc.answers))-1]
			}, time.Millisecond, 4*time.Millisecond)
			if calls != tc.want {
				t.Errorf("asked %d times, want %d", calls, tc.want)
			}
		})
	}
}
