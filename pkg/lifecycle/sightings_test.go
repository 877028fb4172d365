// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/lifecycle"
)

// sight is one pass: what the object of a pod shows, and when the process looks at it.
type sight struct {
	pod  lifecycle.Pod
	at   time.Time
	want time.Time // ReadySince
}

func TestReadySince(t *testing.T) {
	t.Parallel()
	// readyAt is the pod whose kubelet wrote that it has been ready for d.
	readyAt := func(d time.Duration) lifecycle.Pod {
		return with(ready(0), func(p *lifecycle.Pod) { p.ReadySince = ago(d) })
	}
	unready := with(ready(0), notReady)
	ahead, behind := -24*time.Hour, 24*time.Hour // clocks of kubelets
	for name, tc := range map[string]struct {
		created time.Duration
		passes  []sight
	}{
		"it was not ready in the last pass: now": {
			passes: []sight{{unready, ago(time.Minute), time.Time{}}, {readyAt(time.Second), now, now}}},
		"a clock that is a day ahead": {
			passes: []sight{{unready, ago(time.Minute), time.Time{}}, {readyAt(ahead), now, now}, {readyAt(ahead), now.Add(time.Minute), now}}},
		"a clock that is a day behind": {
			passes: []sight{{unready, ago(time.Minute), time.Time{}}, {readyAt(behind), now, now}, {readyAt(behind), now.Add(time.Minute), now}}},
		"after a restart of the process: as the kubelet says": {
			passes: []sight{{readyAt(time.Minute), now, ago(time.Minute)}, {readyAt(time.Minute), now.Add(time.Minute), ago(time.Minute)}}},
		"after a restart, a clock that is a day ahead: now": {
			passes: []sight{{readyAt(ahead), now, now}, {readyAt(ahead), now.Add(time.Minute), now}}},
		"after a restart, a clock that is a day behind: its creation": {
			passes: []sight{{readyAt(behind), now, ago(time.Hour)}}},
		"created in the future of the own clock: now": {
			created: -time.Minute,
			passes:  []sight{{readyAt(0), now, now}}},
		"ready again: anew": {
			passes: []sight{{readyAt(time.Hour), ago(time.Minute), ago(time.Hour)}, {unready, ago(time.Second), time.Time{}}, {readyAt(0), now, now}}},
		"not ready for a moment between two passes: anew": {
			passes: []sight{{readyAt(time.Hour), ago(time.Minute), ago(time.Hour)}, {readyAt(30 * time.Second), now, now}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen lifecycle.Sightings
			for i, pass := range tc.passes {
				if tc.created != 0 {
					pass.pod.Created = ago(tc.created)
				}
				var pods []lifecycle.Pod
				pods, seen = seen.Date([]lifecycle.Pod{pass.pod}, nil, pass.at)
				want := pass.pod
				want.ReadySince = pass.want
				if diff := cmp.Diff([]lifecycle.Pod{want}, pods); diff != "" {
					t.Errorf("pass %d (-want +got):\n%s", i+1, diff)
				}
			}
		})
	}
}

func TestEndedAt(t *testing.T) {
	t.Parallel()
	// endedAt is the pod whose kubelet wrote that it ended a time ago.
	endedAt := func(d time.Duration) lifecycle.Pod {
		return with(ready(0), ended(d, time.Minute), created(time.Hour))
	}
	for name, tc := range map[string]struct {
		before lifecycle.Sightings
		pod    lifecycle.Pod
		ends   map[int]lifecycle.Ends
		at     time.Time
		want   time.Time
	}{
		"seen now, a clock that is a day ahead":   {lifecycle.Sightings{}, endedAt(-24 * time.Hour), nil, now, now},
		"seen now, a clock that is a day behind":  {lifecycle.Sightings{}, endedAt(24 * time.Hour), nil, now, now},
		"whole seconds, as in the status":         {lifecycle.Sightings{}, endedAt(0), nil, now.Add(700 * time.Millisecond), now},
		"after a restart of the process":          {nil, endedAt(time.Minute), nil, now, ago(time.Minute)},
		"after a restart, a clock that is ahead":  {nil, endedAt(-time.Hour), nil, now, now},
		"after a restart, a clock that is behind": {nil, endedAt(24 * time.Hour), nil, now, ago(time.Hour)},
		"after a restart, it was recorded before": {nil, endedAt(-time.Hour), map[int]lifecycle.Ends{0: {Count: 2, Last: ago(time.Minute)}}, now, ago(time.Minute)},
		"after a restart, its predecessor was":    {nil, endedAt(time.Minute), map[int]lifecycle.Ends{0: {Count: 2, Last: ago(2 * time.Hour)}}, now, ago(time.Minute)},
		"a container failed, the rest still runs": {lifecycle.Sightings{}, with(ready(0), func(p *lifecycle.Pod) { p.Failed = true }), nil, now, now},
		"it runs: no time":                        {lifecycle.Sightings{}, ready(0), nil, now, time.Time{}},
		"its predecessor's end is not its own":    {lifecycle.Sightings{}, endedAt(time.Minute), map[int]lifecycle.Ends{0: {Count: 2, Last: ago(time.Second)}}, now, now},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods, seen := tc.before.Date([]lifecycle.Pod{tc.pod}, tc.ends, tc.at)
			if got := pods[0].EndedAt; !got.Equal(tc.want) {
				t.Errorf("ended at %s, want %s", got, tc.want)
			}
			if pods, _ = seen.Date([]lifecycle.Pod{tc.pod}, tc.ends, tc.at.Add(time.Hour)); !pods[0].EndedAt.Equal(tc.want) {
				t.Errorf("an hour later: ended at %s, want %s", pods[0].EndedAt, tc.want)
			}
		})
	}
}

// TestPodsThatAreGoneAreForgotten: a clique that replaces pods for years needs no more memory than its pods do.
func TestPodsThatAreGoneAreForgotten(t *testing.T) {
	t.Parallel()
	_, seen := lifecycle.Sightings(nil).Date([]lifecycle.Pod{ready(0), ready(1)}, nil, now)
	if _, seen = seen.Date([]lifecycle.Pod{ready(1)}, nil, now); len(seen) != 1 {
		t.Errorf("%d pods are remembered, want 1", len(seen))
	}
}
