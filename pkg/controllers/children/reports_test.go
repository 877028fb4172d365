// SPDX-License-Identifier: Apache-2.0

package children

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// emitted returns the emitted events, without their type.
func emitted(recorder *events.FakeRecorder) string {
	var all []string
	for len(recorder.Events) > 0 {
		all = append(all, <-recorder.Events)
	}
	return strings.Join(all, "\n")
}

func TestReportBreach(t *testing.T) {
	t.Parallel()
	at := func(minute int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)}
	}
	status := func(value metav1.ConditionStatus, reason string, since, deadline *metav1.Time) BreachStatus {
		return BreachStatus{Since: since, Deadline: deadline, Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionMinAvailableBreached, Status: value, Reason: reason, Message: "the message"}}}
	}
	well := status(metav1.ConditionFalse, v1alpha1.ReasonSufficientReadyPods, nil, nil)
	breached := status(metav1.ConditionTrue, v1alpha1.ReasonInsufficientReadyPods, at(1), at(5))
	for name, tc := range map[string]struct {
		before, after BreachStatus
		want          string
	}{
		"nothing yet":    {BreachStatus{}, well, ""},
		"no breach":      {well, well, ""},
		"a breach":       {well, status(metav1.ConditionTrue, v1alpha1.ReasonInsufficientReadyPods, at(1), nil), "Warning MinAvailableBreached the message"},
		"the same still": {breached, breached, ""},
		"a breach with a deadline": {well, breached,
			"Warning MinAvailableBreached the message\nWarning TerminationDue Termination is due at 2026-01-02T03:05:00Z, unless the minimum is reached again before"},
		"another deadline": {breached, status(metav1.ConditionTrue, v1alpha1.ReasonInsufficientReadyPods, at(1), at(9)),
			"Warning TerminationDue Termination is due at 2026-01-02T03:09:00Z, unless the minimum is reached again before"},
		"the delay is removed":         {breached, status(metav1.ConditionTrue, v1alpha1.ReasonInsufficientReadyPods, at(1), nil), ""},
		"recovered":                    {breached, well, "Normal MinAvailableRecovered the message"},
		"an update":                    {breached, status(metav1.ConditionUnknown, v1alpha1.ReasonUpdateInProgress, nil, nil), ""},
		"a new attempt of its replica": {breached, status(metav1.ConditionFalse, v1alpha1.ReasonNeverAvailable, nil, nil), ""},
		"a single replica of a scaling group is due, the group is not in breach": {well, status(metav1.ConditionFalse, v1alpha1.ReasonSufficientReplicas, nil, at(5)), ""},
	} {
		recorder := events.NewFakeRecorder(10)
		ReportBreach(recorder, &v1alpha1.PodClique{}, v1alpha1.KindPodClique, tc.before, tc.after, at(7).Time)
		if got := emitted(recorder); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestReportReplaced(t *testing.T) {
	t.Parallel()
	entry := func(attempt int32, reason string) v1alpha1.ReplicaAttempt {
		return v1alpha1.ReplicaAttempt{Index: 3, Attempt: attempt, Reason: reason, Message: "why"}
	}
	for name, tc := range map[string]struct {
		before, after []v1alpha1.ReplicaAttempt
		want          string
	}{
		"nothing":           {},
		"the same":          {[]v1alpha1.ReplicaAttempt{entry(1, v1alpha1.ReasonTermination)}, []v1alpha1.ReplicaAttempt{entry(1, v1alpha1.ReasonTermination)}, ""},
		"terminated":        {nil, []v1alpha1.ReplicaAttempt{entry(1, v1alpha1.ReasonTermination)}, "Warning ReplicaTerminated Terminated replica 3 (attempt 1): why"},
		"terminated again":  {[]v1alpha1.ReplicaAttempt{entry(1, v1alpha1.ReasonTermination)}, []v1alpha1.ReplicaAttempt{entry(2, v1alpha1.ReasonTermination)}, "Warning ReplicaTerminated Terminated replica 3 (attempt 2): why"},
		"deleted by a user": {nil, []v1alpha1.ReplicaAttempt{entry(1, v1alpha1.ReasonPodCliquesDeleted)}, "Normal ReplicaReplaced Replacing replica 3 (attempt 1): why"},
		"a restart, whose event the caller emits": {nil, []v1alpha1.ReplicaAttempt{entry(1, v1alpha1.ReasonRestart)}, ""},
	} {
		recorder := events.NewFakeRecorder(10)
		ReportReplaced(recorder, &v1alpha1.PodCliqueSet{}, v1alpha1.KindPodCliqueSet, tc.before, tc.after)
		if got := emitted(recorder); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
