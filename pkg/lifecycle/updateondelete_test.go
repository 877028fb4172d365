// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// TestScaleInOnDelete: under OnDelete scaling in deletes outdated pods first, as long as the minimum stays ready.
func TestScaleInOnDelete(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		replicas, minAvailable int32
		pods                   []lifecycle.Pod
		want                   []string // deleted, in that order
		rolling                []string // under RollingRecreate
	}{
		"an outdated pod is deleted before one that is not ready": {2, 1,
			[]lifecycle.Pod{old(0), old(1), fresh(2, notReady)}, []string{"web-0-a"}, []string{"web-2-b"}},
		"of outdated pods, one that is not ready first": {2, 1,
			[]lifecycle.Pod{old(0), old(1, notReady), fresh(2)}, []string{"web-1-a"}, []string{"web-1-a"}},
		"before that, one without a node": {1, 1,
			[]lifecycle.Pod{old(0, pending), old(1, notReady), fresh(2)}, []string{"web-0-a", "web-1-a"}, []string{"web-0-a", "web-1-a"}},
		"no ready pod if too few would be left: the usual order": {2, 2,
			[]lifecycle.Pod{old(0), old(1), fresh(2, notReady)}, []string{"web-2-b"}, []string{"web-2-b"}},
		"down to the minimum and no further": {2, 2,
			[]lifecycle.Pod{old(0), old(1), fresh(2, notReady), fresh(3)}, []string{"web-0-a", "web-2-b"}, []string{"web-2-b", "web-0-a"}},
		"an unready pod does not count: it is deleted at the minimum, too": {1, 1,
			[]lifecycle.Pod{old(0, notReady), fresh(1)}, []string{"web-0-a"}, []string{"web-0-a"}},
		"more pods are surplus than may be deleted: outdated ones still before the others": {1, 2,
			[]lifecycle.Pod{old(0), fresh(1), fresh(2)}, []string{"web-0-a", "web-2-b"}, []string{"web-0-a", "web-2-b"}},
		"none is outdated: the usual order": {1, 1,
			[]lifecycle.Pod{fresh(0), fresh(1, pending), fresh(2)}, []string{"web-1-b", "web-2-b"}, []string{"web-1-b", "web-2-b"}},
		"terminating pods are not counted": {1, 1,
			[]lifecycle.Pod{old(0, terminating), old(1), fresh(2)}, []string{"web-1-a"}, []string{"web-1-a"}},
	} {
		for _, onDelete := range []bool{true, false} {
			var got []string
			for _, deletion := range lifecycle.DecidePods(lifecycle.CliquePods{Replicas: tc.replicas, MinAvailable: tc.minAvailable, OnDelete: onDelete, Pods: tc.pods}, now).Delete {
				got = append(got, deletion.Pod.Name)
			}
			want := tc.rolling
			if onDelete {
				want = tc.want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, OnDelete %v (-want +got):\n%s", name, onDelete, diff)
			}
		}
	}
}

// TestDeletedOnDelete: a pod that is deleted under OnDelete is replaced by one of the current template, as all new
// pods.
func TestDeletedOnDelete(t *testing.T) {
	t.Parallel()
	got := lifecycle.DecidePods(lifecycle.CliquePods{Replicas: 2, MinAvailable: 2, OnDelete: true, Pods: []lifecycle.Pod{old(0)}}, now)
	if diff := cmp.Diff([]lifecycle.NewPod{{Index: 1}}, got.Create); diff != "" || len(got.Delete) > 0 {
		t.Errorf("deletes %v, creates (-want +got):\n%s", got.Delete, diff)
	}
}

// TestUpdateCost compares the time of a decision on many objects with that of ten decisions on a tenth of them: it does
// not grow quadratically.
func TestUpdateCost(t *testing.T) {
	for name, decide := range map[string]func(n int) func(){
		"pods of a clique": func(n int) func() {
			u := rolling(begun(targetB, selected("web-7-a")), 1)
			for i := range n {
				u.Pods = append(u.Pods, old(n-i, func(p *lifecycle.Pod) { p.Ready = i%3 > 0 }))
			}
			return func() { lifecycle.DecideCliqueUpdate(u, now) }
		},
		"scaling in under OnDelete": func(n int) func() {
			c := lifecycle.CliquePods{Replicas: 1, MinAvailable: 1, OnDelete: true}
			for i := range n {
				c.Pods = append(c.Pods, old(n-i))
			}
			return func() { lifecycle.DecidePods(c, now) }
		},
		"replicas of a group": func(n int) func() {
			u := rollingGroup(begun(lifecycle.Target{Generation: "gen-b"}, selected("7")), 1)
			for i := range n {
				u.Replicas = append(u.Replicas, replica(i, before))
			}
			return func() { lifecycle.DecideGroupUpdate(u, now) }
		},
		"replicas of a set": func(n int) func() {
			u := rollingSet(begun(lifecycle.Target{Generation: "gen-b"}), -1)
			for i := range n {
				u.Replicas = append(u.Replicas, inSet(i, behind))
			}
			return func() { lifecycle.DecideSetUpdate(u, now) }
		},
	} {
		few, many := decide(2000), decide(20000)
		least := math.Inf(1) // of five; whatever else the machine does slows down both parts of an attempt
		for range 5 {
			start := time.Now()
			for range 10 {
				few()
			}
			middle := time.Now()
			many()
			least = min(least, float64(time.Since(middle))/float64(middle.Sub(start)))
		}
		t.Logf("%s: a decision on 20,000 takes %.1f times as long as ten on 2,000", name, least)
		if least > 3 {
			t.Errorf("%s: %.1f times as long; 10 would be quadratic", name, least)
		}
	}
}
