// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSetEvents(t *testing.T) {
	t.Parallel()
	up := func(n int32) SetOutline {
		return SetOutline{Replicas: n, Scheduled: n, AvailableReplicas: n, Available: true, Message: "all are available", WasAvailable: true}
	}
	down := func(replicas, scheduled, available int32) SetOutline {
		return SetOutline{Replicas: replicas, Scheduled: scheduled, AvailableReplicas: available, Message: "some are not available"}
	}
	degraded := down(2, 1, 1)
	degraded.Degraded, degraded.WasAvailable = true, true
	scaled := down(2, 1, 1)
	scaled.WasAvailable = true
	const (
		isAvailable = "Normal Available: all are available"
		isDegraded  = "Warning Degraded: some are not available"
		isRecovered = "Normal Recovered: all are available"
		isAdmitted  = "Normal Admitted: The minimums of all 2 replicas are bound"
	)
	tests := map[string]struct {
		before, after SetOutline
		training      bool
		want          []string
		degraded      bool
	}{
		"nothing":                         {before: up(2), after: up(2)},
		"some replicas are admitted":      {before: down(2, 0, 0), after: down(2, 1, 0)},
		"all replicas are admitted":       {before: down(2, 1, 0), after: down(2, 2, 0), want: []string{isAdmitted}},
		"they are available":              {before: down(2, 2, 0), after: up(2), want: []string{isAvailable}},
		"admitted and available together": {before: SetOutline{Replicas: 2}, after: up(2), want: []string{isAdmitted, isAvailable}},
		"one is lost":                     {before: up(2), after: down(2, 1, 1), want: []string{isDegraded}, degraded: true},
		"another one is lost":             {before: degraded, after: down(2, 0, 0), degraded: true},
		"both are back":                   {before: degraded, after: up(2), want: []string{isAdmitted, isRecovered}},
		"scaled out":                      {before: up(1), after: down(2, 1, 1), want: []string{"Normal Scaled: Scaled from 1 to 2 replicas"}},
		"the new replicas are available":  {before: down(2, 1, 1), after: up(2), want: []string{isAdmitted, isAvailable}},
		"scaled out and lost":             {before: up(1), after: down(2, 0, 0), want: []string{"Normal Scaled: Scaled from 1 to 2 replicas", isDegraded}, degraded: true},
		"the old replica is lost before the new one is available": {before: scaled, after: down(2, 0, 0), want: []string{isDegraded}, degraded: true},
		"a replica is lost before all were available":             {before: down(2, 1, 1), after: down(2, 0, 0)},
		"scaled in": {before: up(2), after: up(1), want: []string{"Normal Scaled: Scaled from 2 to 1 replicas"}},
		"scaled in from being degraded": {before: degraded, after: up(1),
			want: []string{"Normal Scaled: Scaled from 2 to 1 replicas", isRecovered}},
		"scaled to nothing": {before: degraded, after: SetOutline{Available: true}, want: []string{"Normal Scaled: Scaled from 2 to 0 replicas"}},
		"scaled from nothing": {before: SetOutline{Available: true}, after: up(2),
			want: []string{"Normal Scaled: Scaled from 0 to 2 replicas", isAdmitted, isAvailable}},
		"a training job":            {before: down(2, 1, 0), after: up(2), training: true, want: []string{isAdmitted}},
		"a training job that fails": {before: up(2), after: down(2, 1, 1), training: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, told := SetEvents(tc.before, tc.after, tc.training)
			var got []string
			for _, e := range events {
				kind := "Normal"
				if e.Warning {
					kind = "Warning"
				}
				got = append(got, kind+" "+e.Reason+": "+e.Note)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			want := tc.after
			want.Degraded, want.WasAvailable = tc.degraded, tc.before.WasAvailable || tc.after.WasAvailable
			if diff := cmp.Diff(want, told); diff != "" {
				t.Errorf("outline (-want +got):\n%s", diff)
			}
		})
	}
}
