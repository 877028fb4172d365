// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
)

// Event is the event for a change of a PodGroup's status.
type Event struct {
	Warning      bool
	Reason, Note string
}

// LackingEvent returns the warning for a gang that has lacked pods for the given time. It returns nil if its status has
// another reason, if it is idle, or if all of its pods have succeeded: more may be needed after its spec was changed.
func LackingEvent(f Facts, status *v2alpha2.PodGroupStatus, lasted time.Duration) *Event {
	is := meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionSatisfied)
	if is == nil || v2alpha2.Reason(is.Reason) != v2alpha2.ReasonWaitingForPods || status.Phase == v2alpha2.PodGroupIdle || f.Ended && f.Failed.Total == 0 {
		return nil
	}
	return lastingEvent(v2alpha2.EventGangIncomplete, is, lasted)
}

// FailingEvent returns the warning for a gang whose plans have failed for the given time. It returns nil if its status
// has another reason.
func FailingEvent(status *v2alpha2.PodGroupStatus, lasted time.Duration) *Event {
	is := meta.FindStatusCondition(status.Conditions, v2alpha2.ConditionSatisfied)
	if is == nil || v2alpha2.Reason(is.Reason) != v2alpha2.ReasonBackingOff {
		return nil
	}
	return lastingEvent(v2alpha2.EventGangBlocked, is, lasted)
}

// lastingEvent returns the warning that a gang has had the reason of a condition for the given time.
func lastingEvent(reason string, is *metav1.Condition, lasted time.Duration) *Event {
	return &Event{Warning: true, Reason: reason,
		Note: fmt.Sprintf("%s for more than %s: %s", is.Reason, message.Count(int(lasted.Minutes()), "minute"), is.Message)}
}

// StatusEvent returns the event for a change of status, nil if the change does not justify one: there is one event per
// gang and change of reason. Reasons that pass by themselves (BehindInQueue, BackingOff, Binding, Preempting) cause no
// event; for plans that fail for long see FailingEvent, for preemption PreemptionEvents.
func StatusEvent(before, after *v2alpha2.PodGroupStatus) *Event {
	was, is := meta.FindStatusCondition(before.Conditions, v2alpha2.ConditionSatisfied), meta.FindStatusCondition(after.Conditions, v2alpha2.ConditionSatisfied)
	if is == nil || SameReason(before, after) {
		return nil
	}
	admittedBefore := meta.IsStatusConditionTrue(before.Conditions, v2alpha2.ConditionAdmitted)
	admitted := meta.IsStatusConditionTrue(after.Conditions, v2alpha2.ConditionAdmitted)
	note := fmt.Sprintf("%s: %s", is.Reason, is.Message)
	switch reason := v2alpha2.Reason(is.Reason); {
	case reason == v2alpha2.ReasonCompleted:
		return &Event{Reason: v2alpha2.EventGangCompleted, Note: is.Message}
	case is.Status == metav1.ConditionTrue && !admittedBefore:
		return &Event{Reason: v2alpha2.EventGangAdmitted, Note: is.Message}
	case is.Status == metav1.ConditionTrue && was != nil && was.Status == is.Status:
		return nil // satisfied before and after
	case is.Status == metav1.ConditionTrue:
		return &Event{Reason: v2alpha2.EventGangRestored, Note: message.FirstClause(is.Message) + " again"}
	case reason == v2alpha2.ReasonInvalid:
		return &Event{Warning: true, Reason: v2alpha2.EventGangInvalid, Note: is.Message}
	case admitted && was != nil && was.Status == metav1.ConditionTrue:
		return &Event{Warning: true, Reason: v2alpha2.EventGangBelowMinimum, Note: note}
	case reason == v2alpha2.ReasonWaitingForPods || reason == v2alpha2.ReasonGated:
		return &Event{Reason: v2alpha2.EventGangIncomplete, Note: note}
	case passing.Has(reason):
		return nil
	default:
		return &Event{Warning: true, Reason: v2alpha2.EventGangBlocked, Note: note}
	}
}

// SameReason reports whether the condition Satisfied of two statuses has the same status and reason.
func SameReason(a, b *v2alpha2.PodGroupStatus) bool {
	x, y := meta.FindStatusCondition(a.Conditions, v2alpha2.ConditionSatisfied), meta.FindStatusCondition(b.Conditions, v2alpha2.ConditionSatisfied)
	if x == nil || y == nil {
		return x == y
	}
	return x.Status == y.Status && x.Reason == y.Reason
}
