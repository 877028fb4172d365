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
