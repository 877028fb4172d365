// SPDX-License-Identifier: Apache-2.0

package children

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/metrics"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// BreachStatus is the part of the status of a PodClique or PodCliqueScalingGroup that describes its minimum.
type BreachStatus struct {
	Conditions []metav1.Condition
	// Since is when the breach of the minimum began.
	Since *metav1.Time
	// Deadline is the termination deadline of the breach.
	Deadline *metav1.Time
}

func (s BreachStatus) condition() metav1.Condition {
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionMinAvailableBreached); c != nil {
		return *c
	}
	return metav1.Condition{Status: metav1.ConditionFalse}
}

func (s BreachStatus) breached() bool { return s.condition().Status == metav1.ConditionTrue }

// recovered reports whether the minimum is reached again, and not only no longer checked.
func (s BreachStatus) recovered() bool {
	switch s.condition().Reason {
	case v1alpha1.ReasonSufficientReadyPods, v1alpha1.ReasonSufficientReplicas:
		return true
	}
	return false
}

// ReportBreach emits events about the beginning of a breach, its deadline, and its end, after a status was written at
// now, and counts them. kind is the kind of the object.
func ReportBreach(recorder events.EventRecorder, object client.Object, kind string, before, after BreachStatus, now time.Time) {
	switch was, is := before.breached(), after.breached(); {
	case is && !was:
		metrics.BreachBegan(kind)
		recorder.Eventf(object, nil, corev1.EventTypeWarning, v1alpha1.EventMinAvailableBreached, v1alpha1.ActionWatchMinimum, "%s", after.condition().Message)
		ReportTerminationDue(recorder, object, nil, after.Deadline)
	case is:
		ReportTerminationDue(recorder, object, before.Deadline, after.Deadline)
	case was:
		end := metrics.EndRemoved
		if after.recovered() {
			end = metrics.EndRecovered
			recorder.Eventf(object, nil, corev1.EventTypeNormal, v1alpha1.EventMinAvailableRecovered, v1alpha1.ActionWatchMinimum, "%s", after.condition().Message)
		}
		if before.Since != nil {
			metrics.BreachEnded(kind, end, now.Sub(before.Since.Time))
		}
	}
}

// ReportTerminationDue emits an event if a termination deadline was set or has changed. nil: there is none.
func ReportTerminationDue(recorder events.EventRecorder, object client.Object, before, after *metav1.Time) {
	if after == nil || after.Equal(before) {
		return
	}
	recorder.Eventf(object, nil, corev1.EventTypeWarning, v1alpha1.EventTerminationDue, v1alpha1.ActionWatchMinimum,
		"Termination is due at %s, unless the minimum is reached again before", lifecycle.Timestamp(after.Time))
}

// ReportFailures emits an event for each condition about objects that cannot be created as specified that is new in
// after, or has another message than before. action is what the controller tried.
func ReportFailures(recorder events.EventRecorder, object client.Object, action string, before, after []metav1.Condition) {
	for _, c := range newFailures(before, after) {
		recorder.Eventf(object, nil, corev1.EventTypeWarning, c.Reason, action, "%s", c.Message)
	}
}

// ReportReplaced emits an event for each replica of owner whose attempt was raised, and counts these replicas and
// those that have become available again. level is the kind of owner, v1alpha1.KindPodCliqueSet or
// v1alpha1.KindPodCliqueScalingGroup; before and after are the attempts in its status. For a restart, also one
// after a preemption, the caller emits the event.
func ReportReplaced(recorder events.EventRecorder, owner client.Object, level string, before, after []v1alpha1.ReplicaAttempt) {
	for _, a := range after {
		if a.Attempt != workload.ReplicaAttempt(before, int(a.Index)) {
			metrics.CountReplacement(level, a.Reason)
			emitReplaced(recorder, owner, a)
			continue
		}
		for _, b := range before {
			if b.Index == a.Index && b.AvailableAt == nil && a.AvailableAt != nil {
				metrics.AvailableAgain(level, a.Reason, a.AvailableAt.Sub(a.StartedAt.Time))
			}
		}
	}
}

func emitReplaced(recorder events.EventRecorder, owner client.Object, a v1alpha1.ReplicaAttempt) {
	switch a.Reason {
	case v1alpha1.ReasonPodCliquesDeleted:
		recorder.Eventf(owner, nil, corev1.EventTypeNormal, v1alpha1.EventReplicaReplaced, v1alpha1.ActionReplaceReplica,
			"Replacing replica %d (attempt %d): %s", a.Index, a.Attempt, a.Message)
	case v1alpha1.ReasonUpdate:
		recorder.Eventf(owner, nil, corev1.EventTypeNormal, v1alpha1.EventReplicaUpdating, v1alpha1.ActionUpdate,
			"Replacing replica %d (attempt %d): %s", a.Index, a.Attempt, a.Message)
	case v1alpha1.ReasonTermination:
		recorder.Eventf(owner, nil, corev1.EventTypeWarning, v1alpha1.EventReplicaTerminated, v1alpha1.ActionReplaceReplica,
			"Terminated replica %d (attempt %d): %s", a.Index, a.Attempt, a.Message)
	}
}
