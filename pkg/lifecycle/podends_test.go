// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// TestTheHistoryOfEndedPodsIsBounded: a clique with thousands of ended pods has a small history, and all its pods are
// replaced.
func TestTheHistoryOfEndedPodsIsBounded(t *testing.T) {
	t.Parallel()
	const pods = 6000
	c := lifecycle.CliquePods{Replicas: pods, Ends: map[int]lifecycle.Ends{7: {Count: 3, Last: ago(3 * time.Minute)}}}
	for i := range pods {
		c.Pods = append(c.Pods, with(ready(i), ended(time.Minute, time.Minute)))
	}
	d := lifecycle.DecidePods(c, now)
	if len(d.Delete) != pods || len(d.Ends) != 257 {
		t.Fatalf("%d of %d pods are replaced, the history has %d entries", len(d.Delete), pods, len(d.Ends))
	}
	want := map[int]lifecycle.Ends{7: {Count: 4, Last: ago(time.Minute)}, 0: {Count: 1, Last: ago(time.Minute)}, -1: {Count: 1, Last: ago(time.Minute)}}
	for i, e := range want {
		if diff := cmp.Diff(e, d.Ends[i]); diff != "" {
			t.Errorf("index %d (-want +got):\n%s", i, diff)
		}
	}

	// The pods end again: those that share a history wait like those with a history of their own, and are replaced.
	for i := range c.Pods {
		c.Pods[i].EndedAt = ago(5 * time.Second)
	}
	c.Ends = d.Ends
	if d = lifecycle.DecidePods(c, now); len(d.Delete) != 0 || d.RequeueAfter != 5*time.Second {
		t.Errorf("%d pods are replaced, and others after %s", len(d.Delete), d.RequeueAfter)
	}
	d = lifecycle.DecidePods(c, now.Add(5*time.Second))
	if len(d.Delete) != pods-1 || len(d.Ends) != 257 || d.Ends[-1].Count != 2 {
		t.Errorf("%d pods are replaced, the history has %d entries, the shared one %+v", len(d.Delete), len(d.Ends), d.Ends[-1])
	}
}

func TestRestartDelay(t *testing.T) {
	t.Parallel()
	const s, m = time.Second, time.Minute
	for name, tc := range map[string]struct {
		first               bool
		previous, ran, want time.Duration
	}{
		"the first restart":                     {true, 0, 0, 0},
		"the second":                            {false, 0, 5 * s, 10 * s},
		"the third, whose times were rounded":   {false, 11 * s, 5 * s, 20 * s},
		"the sixth":                             {false, 80 * s, 0, 160 * s},
		"at most five minutes":                  {false, 160 * s, 0, 5 * m},
		"still":                                 {false, 5*m + s, 0, 5 * m},
		"it ran for ten minutes":                {false, 5 * m, 10 * m, 0},
		"a breach before it was seen available": {false, 10 * s, -time.Hour, 20 * s},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := lifecycle.RestartDelay(tc.first, tc.previous, tc.ran); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
