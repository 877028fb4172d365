// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// SetOutline is the part of a PodCliqueSet's status that its events about availability are based on.
type SetOutline struct {
	// Replicas is the desired number of replicas, Scheduled the number whose minimum is bound, AvailableReplicas the
	// number that are available.
	Replicas, Scheduled, AvailableReplicas int32
	// Available is the status of the condition Available, Message its message.
	Available bool
	Message   string
	// Degraded: EventDegraded was emitted, and the set has not recovered since.
	Degraded bool
}

// OutlineOf returns the outline of a status. If no status has been written yet, all replicas count as missing.
func OutlineOf(set *v1alpha1.PodCliqueSet) SetOutline {
	s := &set.Status
	if s.ObservedGeneration == 0 {
		return SetOutline{Replicas: max(set.Spec.Replicas, 0)}
	}
	o := SetOutline{Replicas: s.Replicas, Scheduled: s.ScheduledReplicas, AvailableReplicas: s.AvailableReplicas}
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAvailable); c != nil {
		o.Available, o.Message = c.Status == "True", c.Message
	}
	return o
}

// SetEvent is an event about a PodCliqueSet.
type SetEvent struct {
	Warning      bool
	Reason, Note string
}

// SetEvents returns the events about the changes between two outlines of a set, and the second outline, which must be
// passed as before in the next call. training: it is a Training workload, whose failures and restarts have events of
// their own.
func SetEvents(before, after SetOutline, training bool) ([]SetEvent, SetOutline) {
	var events []SetEvent
	add := func(warning bool, reason, format string, args ...any) {
		events = append(events, SetEvent{Warning: warning, Reason: reason, Note: fmt.Sprintf(format, args...)})
	}
	after.Degraded = before.Degraded && !after.Available && after.Replicas > 0
	if after.Replicas != before.Replicas {
		add(false, v1alpha1.EventScaled, "Scaled from %d to %d replicas", before.Replicas, after.Replicas)
	}
	if after.Replicas == 0 {
		return events, after
	}
	if !training && before.Available && !after.Available && after.AvailableReplicas < min(before.AvailableReplicas, after.Replicas) {
		after.Degraded = true
		add(true, v1alpha1.EventDegraded, "%s", after.Message)
	}
	if after.Scheduled >= after.Replicas && before.Scheduled < after.Replicas {
		note := "The minimum of the replica is bound"
		if after.Replicas > 1 {
			note = fmt.Sprintf("The minimums of all %d replicas are bound", after.Replicas)
		}
		add(false, v1alpha1.EventAdmitted, "%s", note)
	}
	switch {
	case training || !after.Available || before.Available && before.Replicas > 0:
	case before.Degraded:
		add(false, v1alpha1.EventRecovered, "%s", after.Message)
	default:
		add(false, v1alpha1.EventAvailable, "%s", after.Message)
	}
	return events, after
}
