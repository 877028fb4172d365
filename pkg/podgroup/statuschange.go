// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// Change is the significance of a difference between two statuses.
type Change int

const (
	// Same: there is nothing to write.
	Same Change = iota
	// Numbers: only numbers in the text about a refused attempt differ.
	Numbers
	// Content: counts, names or the generation differ, or the new reason is one that passes by itself (Binding,
	// Preempting, BehindInQueue, BackingOff, WaitingForPods).
	Content
	// First: there was no status, and the new one only contains a reason that most gangs pass through.
	First
	// Condition: the status of a condition or its reason differs, or anything in a condition about preemption: a
	// preemptor ends nobody before that is written, and a victim has to be told why its pods are gone.
	Condition
)

// passing contains the reasons that gangs pass through without user action.
var passing = sets.New(v2alpha2.ReasonWaitingForPods, v2alpha2.ReasonBehindInQueue, v2alpha2.ReasonBackingOff, v2alpha2.ReasonBinding,
	v2alpha2.ReasonPreempting)

// ofPreemption contains the types of the conditions about preemption.
var ofPreemption = sets.New(v2alpha2.ConditionPreempting, v2alpha2.ConditionPreempted)

// Compare returns the significance of the change from the status before to the status after.
//
// A message is rewritten when its reason or its blocking set (the names in it, in any order) changes. The blocking
// set also covers counts that are fields of the status, so these are exact whenever the status is. A change of
// numbers only, such as the nodes per filter reason of successive attempts, is Numbers: it is correct, but does not
// justify an immediate write.
func Compare(before, after *v2alpha2.PodGroupStatus) Change {
	change := Same
	raise := func(c Change) { change = max(change, c) }
	for _, a := range after.Conditions {
		b := meta.FindStatusCondition(before.Conditions, a.Type)
		switch {
		case b == nil || b.Status != a.Status:
			if b == nil && a.Status == metav1.ConditionFalse && passing.Has(v2alpha2.Reason(a.Reason)) {
				raise(First)
			} else {
				raise(Condition)
			}
		case b.Reason != a.Reason:
			if passing.Has(v2alpha2.Reason(a.Reason)) {
				raise(Content)
			} else {
				raise(Condition)
			}
		case b.Message != a.Message && ofPreemption.Has(a.Type):
			raise(Condition)
		case b.Message != a.Message:
			raise(textChange(b.Message, a.Message, after.Reason))
		}
		if b != nil && b.ObservedGeneration != a.ObservedGeneration {
			raise(Content)
		}
	}
	for _, b := range before.Conditions {
		if ofPreemption.Has(b.Type) && meta.FindStatusCondition(after.Conditions, b.Type) == nil {
			raise(Condition)
		}
	}
	if len(before.Conditions) != len(after.Conditions) ||
		before.ObservedGeneration != after.ObservedGeneration || before.Phase != after.Phase ||
		before.Scheduled != after.Scheduled || before.Needs != after.Needs || before.GPUs != after.GPUs || before.Placement != after.Placement || before.Reason != after.Reason || !slices.Equal(before.SubGroups, after.SubGroups) || len(before.FormerSubGroups) != len(after.FormerSubGroups) ||
		!before.WaitingSince.Equal(after.WaitingSince) || !before.ReservedSince.Equal(after.ReservedSince) || !before.StartsBy.Equal(after.StartsBy) || !equalPointees(before.Priority, after.Priority) {
		raise(Content)
	}
	if before.Summary != after.Summary || before.Brief != after.Brief {
		raise(textChange(before.Summary, after.Summary, after.Reason))
	}
	return change
}

func equalPointees(a, b *int32) bool { return a == b || a != nil && b != nil && *a == *b }

// textChange compares two texts with the same reason. Texts consisting of counts are exact; texts about a refused
// attempt, or about refused surplus ("" is the reason of a satisfied gang), may contain outdated numbers for a while.
func textChange(before, after string, reason v2alpha2.Reason) Change {
	if passing.Has(reason) || reason == v2alpha2.ReasonInvalid || reason == v2alpha2.ReasonOtherScheduler || reason == v2alpha2.ReasonGated {
		return Content
	}
	if slices.Equal(blockingSet(before), blockingSet(after)) {
		return Numbers
	}
	return Content
}

// blockingSet returns the phrases of a text without their numbers, sorted. "prefill-2" is a name; "2" and "14/16" are
// numbers.
func blockingSet(text string) []string {
	phrases := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",;:()", r) })
	for i, phrase := range phrases {
		phrases[i] = withoutNumbers(phrase)
	}
	slices.Sort(phrases)
	return phrases
}
