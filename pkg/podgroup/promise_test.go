// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

func TestDescribePromise(t *testing.T) {
	t.Parallel()
	since, starts := time.Date(2026, 3, 1, 10, 0, 0, 5, time.UTC), time.Date(2026, 3, 1, 14, 20, 0, 7, time.UTC)
	second := func(t time.Time) *metav1.Time { return &metav1.Time{Time: t.Truncate(time.Second)} }
	for name, tc := range map[string]struct {
		promised *Promised
		text     string
		want     v2alpha2.PodGroupStatus
	}{
		"nothing": {},
		"a start is known": {
			promised: &Promised{Since: since, Nodes: []string{"n1", "n2", "n3", "n4", "n5"}, Starts: starts},
			text:     "; room on 5 nodes is reserved for it as it becomes free: n1, n2, n3, and 2 more; it starts by 2026-03-01 14:20:00 UTC if pods end as they promise",
			want:     v2alpha2.PodGroupStatus{ReservedSince: second(since), StartsBy: second(starts)},
		},
		"no start is known": {
			promised: &Promised{Since: since, Nodes: []string{"n1"}},
			text:     "; room on 1 node is reserved for it as it becomes free: n1",
			want:     v2alpha2.PodGroupStatus{ReservedSince: second(since)},
		},
		"by an earlier process": {promised: &Promised{Since: since}, want: v2alpha2.PodGroupStatus{ReservedSince: second(since)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := describePromise(tc.promised); got != tc.text {
				t.Errorf("text %q, want %q", got, tc.text)
			}
			var got v2alpha2.PodGroupStatus
			addPromise(&got, tc.promised)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEndsBy(t *testing.T) {
	t.Parallel()
	now, started := time.Unix(1_000_000, 0), time.Unix(999_000, 0)
	for name, tc := range map[string]struct {
		deadline  int64 // 0: none
		promise   string
		waits     bool // its node has not started it
		want      time.Time
		noneKnown bool
	}{
		"neither":                {noneKnown: true},
		"activeDeadlineSeconds":  {deadline: 600, want: started.Add(10 * time.Minute)},
		"the PodGroup":           {promise: "1h30m", want: started.Add(90 * time.Minute)},
		"the shorter of both":    {deadline: 7200, promise: "1h", want: started.Add(time.Hour)},
		"the shorter is the pod": {deadline: 60, promise: "1h", want: started.Add(time.Minute)},
		"not started":            {deadline: 600, waits: true, want: now.Add(10 * time.Minute)},
		"no duration":            {promise: "soon", noneKnown: true},
		"no unit":                {promise: "90", noneKnown: true},
		"none":                   {promise: "0s", noneKnown: true},
		"negative":               {promise: "-1h", noneKnown: true},
		"a hundred years":        {promise: "876000h", want: started.Add(longestRuntime)},
		"too long to represent":  {deadline: 1<<62 - 1, want: started.Add(longestRuntime)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := wrappers.MakePod("p", "ml").Obj()
			if tc.deadline != 0 {
				pod.Spec.ActiveDeadlineSeconds = &tc.deadline
			}
			if !tc.waits {
				pod.Status.StartTime = &metav1.Time{Time: started}
			}
			group := wrappers.MakePodGroup("g", "ml").Obj()
			if tc.promise != "" {
				group.Annotations = map[string]string{v2alpha2.MaxRuntimeAnnotation: tc.promise}
			}
			got := EndsBy(pod, group, now)
			if tc.noneKnown != got.IsZero() || !tc.noneKnown && !got.Equal(tc.want) {
				t.Errorf("ends by %v, want %v", got, tc.want)
			}
			if tc.promise == "" && !EndsBy(pod, nil, now).Equal(got) {
				t.Error("without a PodGroup it is another time")
			}
		})
	}
}
