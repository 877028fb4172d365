// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/message"
)

// The functions below return the object's own status with current values; fields they do not manage are kept. Equal
// facts give an equal status at any time, except that pods become available after minReadySeconds: otherwise now is
// used only as the transition time of a condition whose status changes, and as the time of a new error. The caller
// compares with equality.Semantic and writes only differences.

// Problem is a reason why the desired state of an object cannot be reached.
type Problem struct {
	// Condition is v1alpha1.ConditionReplicaFailure or ConditionForeignObject. "": reported in lastErrors only.
	Condition string
	// Reason is a machine-readable word, Message one sentence for users. Message does not change as long as the
	// problem lasts: it contains no times and no counters.
	Reason, Message string
}

const (
	// maxErrors and maxDescription are the limits of the CRDs.
	maxErrors      = 16
	maxDescription = 1024
)

// conditionIf returns a condition that is True for one reason and False for the other.
func conditionIf(conditionType string, yes bool, trueReason, falseReason string) metav1.Condition {
	if yes {
		return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: trueReason}
	}
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: falseReason}
}

// setConditions sets conditions; now is the transition time of those whose status changes.
func setConditions(conditions *[]metav1.Condition, generation int64, now metav1.Time, cs ...metav1.Condition) {
	for _, c := range cs {
		c.ObservedGeneration, c.LastTransitionTime = generation, now
		meta.SetStatusCondition(conditions, c)
	}
}

// setProblems reports problems in lastErrors, and the first problem of each condition in that condition, which is
// removed when there is none. An error that was reported before keeps its time.
func setProblems(conditions *[]metav1.Condition, lastErrors *[]v1alpha1.LastError, problems []Problem, generation int64, now metav1.Time) {
	for _, conditionType := range []string{v1alpha1.ConditionReplicaFailure, v1alpha1.ConditionForeignObject} {
		first := slices.IndexFunc(problems, func(p Problem) bool { return p.Condition == conditionType })
		if first < 0 {
			meta.RemoveStatusCondition(conditions, conditionType)
			continue
		}
		setConditions(conditions, generation, now, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue,
			Reason: problems[first].Reason, Message: message.Truncate(problems[first].Message, maxDescription)})
	}

	var errors []v1alpha1.LastError
	for _, p := range problems[:min(len(problems), maxErrors)] {
		e := v1alpha1.LastError{Code: cmp.Or(p.Reason, "Error"), Description: message.Truncate(p.Message, maxDescription), ObservedAt: now}
		for _, old := range *lastErrors {
			if old.Code == e.Code && old.Description == e.Description {
				e.ObservedAt = old.ObservedAt
			}
		}
		errors = append(errors, e)
	}
	*lastErrors = errors
}

func selector(match map[string]string) *string {
	text := labels.SelectorFromSet(match).String()
	return &text
}

func countIf(yes bool) int32 {
	if yes {
		return 1
	}
	return 0
}

// ConditionsDiffer reports whether the status of a condition differs, or the result of TroubleOf. An absent condition
// counts as False. Messages with numbers, and PodCliqueScheduled, are ignored, because no controller acts on them.
func ConditionsDiffer(before, after []metav1.Condition) bool {
	status := func(conditions []metav1.Condition, kind string) metav1.ConditionStatus {
		if c := meta.FindStatusCondition(conditions, kind); c != nil {
			return c.Status
		}
		return metav1.ConditionFalse
	}
	for _, conditions := range [][]metav1.Condition{before, after} {
		for i := range conditions {
			if kind := conditions[i].Type; kind != v1alpha1.ConditionPodCliqueScheduled && status(before, kind) != status(after, kind) {
				return true
			}
		}
	}
	return TroubleOf(before) != TroubleOf(after)
}

// TroubleOf returns the message of a child of a PodCliqueSet about an object that cannot be created as specified, "" if
// there is none.
func TroubleOf(conditions []metav1.Condition) string {
	for _, kind := range []string{v1alpha1.ConditionReplicaFailure, v1alpha1.ConditionForeignObject} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}
