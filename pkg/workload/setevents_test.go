// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
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

// reporter observes one set and records in its status what it has reported, as the controller does.
type reporter struct {
	story *SetStory
	set   *v1alpha1.PodCliqueSet
	got   []string
}

// observe is a pass. It returns whether an event is due; what was reported has to be recorded by the next pass.
func (r *reporter) observe(status v1alpha1.PodCliqueSetStatus, at time.Time) (due bool) {
	if r.story == nil {
		s := NewSetStory(r.set)
		r.story = &s
	}
	status.Reported = r.story.Recorded()
	r.set = &v1alpha1.PodCliqueSet{Status: status}
	if IsReplacing(r.set) {
		r.story.Suspend()
		return false
	}
	events, wait := r.story.Observe(OutlineOf(r.set), false, at)
	for _, e := range events {
		r.got = append(r.got, fmt.Sprintf("%s %s", at.Format(time.TimeOnly), e.Reason))
	}
	return wait > 0
}

// restart ends the process, unless it has reported something that is not recorded yet.
func (r *reporter) restart() {
	if r.story != nil && cmp.Equal(r.story.Recorded(), r.set.Status.Reported) {
		r.story = nil
	}
}

// TestStoryAfterARestart: a process that starts when nothing is due, and no update is in progress, emits the same
// events as one that goes on. One that starts at any time emits Recovered, not Available, after Degraded, and Degraded
// once.
func TestStoryAfterARestart(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4000) {
		random := rand.New(rand.NewPCG(seed, 0))
		first := &v1alpha1.PodCliqueSet{Status: v1alpha1.PodCliqueSetStatus{ObservedGeneration: 1, Replicas: 2}}
		whole, atRest, anyTime := reporter{set: first}, reporter{set: first}, reporter{set: first}
		status, at, due, replacing := first.Status, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), false, false
		for step := range 80 {
			quiet := step >= 72 // long enough for every event
			if !due && !replacing && random.IntN(4) == 0 {
				atRest.restart()
			}
			if !quiet && random.IntN(4) == 0 {
				anyTime.restart()
			}
			if !quiet && random.IntN(3) == 0 {
				switch random.IntN(8) {
				case 0:
					status.Replicas = int32(random.IntN(4))
				case 1:
					replacing = !replacing
				default:
					status.AvailableReplicas = int32(random.IntN(int(status.Replicas) + 1))
				}
				status.AvailableReplicas = min(status.AvailableReplicas, status.Replicas)
				status.ScheduledReplicas = status.AvailableReplicas + int32(random.IntN(int(status.Replicas-status.AvailableReplicas)+1))
			}
			status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse}}
			if status.AvailableReplicas >= status.Replicas {
				status.Conditions[0].Status = metav1.ConditionTrue
			}
			status.UpdateProgress = nil
			if replacing = replacing && !quiet; replacing {
				status.UpdateProgress = &v1alpha1.PodCliqueSetUpdateProgress{State: v1alpha1.ReasonUpdating}
				status.Conditions = append(status.Conditions, metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue})
			}
			due = whole.observe(*status.DeepCopy(), at)
			atRest.observe(*status.DeepCopy(), at)
			anyTime.observe(*status.DeepCopy(), at)
			at = at.Add(time.Second)
		}
		if diff := cmp.Diff(whole.got, atRest.got); diff != "" {
			t.Fatalf("seed %d: events without restarts (-) and with restarts when nothing is due (+):\n%s", seed, diff)
		}
		degraded := false
		for _, event := range anyTime.got {
			switch _, reason, _ := strings.Cut(event, " "); reason {
			case v1alpha1.EventDegraded, v1alpha1.EventAvailable:
				if degraded {
					t.Fatalf("seed %d: %s without Recovered before it: %v", seed, event, anyTime.got)
				}
				degraded = reason == v1alpha1.EventDegraded
			case v1alpha1.EventRecovered, v1alpha1.EventScaled: // scaled to 0, it is no longer degraded
				degraded = false
			}
		}
		if got := anyTime.story.Recorded().State; (got == v1alpha1.AvailabilityAvailable) != (status.AvailableReplicas >= status.Replicas) && status.Replicas > 0 {
			t.Fatalf("seed %d: reported as %s at the end, with %d of %d replicas", seed, got, status.AvailableReplicas, status.Replicas)
		}
	}
}
