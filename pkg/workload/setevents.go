// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"time"

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
	// WasAvailable: the set was available once. Degraded: EventDegraded was emitted, and the set has not recovered
	// since.
	WasAvailable, Degraded bool
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
	o.WasAvailable = o.Available && o.Replicas > 0
	return o
}

// SetEvent is an event about a PodCliqueSet.
type SetEvent struct {
	Warning      bool
	Reason, Note string
}

// eventDelay is the delay between a change of availability and its event: a set may go through several states in a
// short time. A loss has no event if the set is available again within this time.
const eventDelay = 2 * time.Second

// SetStory is what was reported of a set by its events about availability, and what is to be reported. NewSetStory
// begins one from the status of the set.
type SetStory struct {
	reported SetOutline
	// recorded is what the latest event was based on, or without one the set as it was observed first.
	recorded *v1alpha1.ReportedAvailability
	// available is the outline when the set was available for the last time, if that was not reported yet.
	available *SetOutline
	// due is when events about changes since reported are due; zero: there was no change. lostAt is when a pass first
	// observed a loss that lasts and was not reported yet; zero: there is none.
	due, lostAt time.Time
}

// NewSetStory returns the story of a set that a process observes for the first time. An event whose process ended
// before it recorded the event in the status is emitted again.
func NewSetStory(set *v1alpha1.PodCliqueSet) SetStory {
	now, s := OutlineOf(set), SetStory{recorded: set.Status.Reported}
	if s.recorded == nil {
		s.recorded = SetOutline{Replicas: now.Replicas}.record()
	}
	s.reported = recordedOutline(s.recorded)
	if IsReplacing(set) {
		return s
	}
	// Changes without an event: that not all replicas are scheduled, and that more are available. The others are to be
	// reported.
	if now.Scheduled < s.reported.Replicas {
		s.reported.Scheduled = now.Scheduled
	}
	s.reported.AvailableReplicas = max(s.reported.AvailableReplicas, now.AvailableReplicas)
	if now.WasAvailable && !s.reported.Available {
		s.available = &now
	}
	return s
}

// Recorded returns what the latest event was based on, for the status of the set.
func (s *SetStory) Recorded() *v1alpha1.ReportedAvailability {
	return s.recorded
}

// recordedOutline returns the outline that the status records, without a message.
func recordedOutline(r *v1alpha1.ReportedAvailability) SetOutline {
	return SetOutline{Replicas: r.Replicas, Scheduled: r.ScheduledReplicas, AvailableReplicas: r.AvailableReplicas,
		Available: r.State == v1alpha1.AvailabilityAvailable, WasAvailable: r.State != v1alpha1.AvailabilityPending, Degraded: r.State == v1alpha1.AvailabilityDegraded}
}

// record returns the outline in the form of the status.
func (o SetOutline) record() *v1alpha1.ReportedAvailability {
	r := &v1alpha1.ReportedAvailability{State: v1alpha1.AvailabilityUnavailable, Replicas: o.Replicas, ScheduledReplicas: o.Scheduled, AvailableReplicas: o.AvailableReplicas}
	switch {
	case o.Degraded:
		r.State = v1alpha1.AvailabilityDegraded
	case !o.WasAvailable: // also if no replicas are wanted
		r.State = v1alpha1.AvailabilityPending
	case o.Available:
		r.State = v1alpha1.AvailabilityAvailable
	}
	return r
}

// IsReplacing reports whether an update of the set replaces pods. One that is paused between two replicas or has
// reached its partition stays open, possibly for weeks, and does not.
func IsReplacing(set *v1alpha1.PodCliqueSet) bool {
	p := SetProgress(set)
	return p.Open() && (set.Status.UpdateProgress.CurrentlyUpdating != nil ||
		meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionProgressing))
}

// Suspend delays the events while an update replaces pods, which has events of its own: pods that it deletes are
// reported only if they are not replaced in time. That the set was available before the update is remembered, but no
// longer told.
func (s *SetStory) Suspend() {
	s.due, s.lostAt = time.Time{}, time.Time{}
	if s.available != nil {
		s.reported.WasAvailable, s.reported.AvailableReplicas = true, s.available.AvailableReplicas
		s.available, s.recorded = nil, s.reported.record()
	}
}

// Observe returns the events that are due, and the time until the next ones are, 0: there are none. After events the
// caller writes Recorded to the status. now is the outline of the written status. A loss that follows the first
// availability before that was reported is reported together with it. training is as for SetEvents.
func (s *SetStory) Observe(now SetOutline, training bool, at time.Time) ([]SetEvent, time.Duration) {
	if now.Available && now.Replicas > 0 {
		s.available = &now
	}
	events, reported := s.events(now, training)
	if len(events) == 0 {
		*s = SetStory{reported: reported, recorded: s.recorded}
		return nil, 0
	}
	if s.due.IsZero() {
		s.due = at.Add(eventDelay)
	}
	switch isLost := reported.Degraded && !s.reported.Degraded; {
	case !isLost:
		s.lostAt = time.Time{}
	case s.lostAt.IsZero():
		s.lostAt = at
	}
	wait := s.due.Sub(at)
	if !s.lostAt.IsZero() {
		wait = max(wait, s.lostAt.Add(eventDelay).Sub(at))
	}
	if wait > 0 {
		return nil, wait
	}
	*s = SetStory{reported: reported, recorded: reported.record()}
	return events, 0
}

// events returns the events since the reported outline. That a degraded set was available for less than eventDelay is
// not reported: it would be reported as degraded again.
func (s *SetStory) events(now SetOutline, training bool) ([]SetEvent, SetOutline) {
	if s.available == nil || now.Available || now.Replicas == 0 || s.reported.Degraded {
		return SetEvents(s.reported, now, training)
	}
	first, reported := SetEvents(s.reported, *s.available, training)
	second, reported := SetEvents(reported, now, training)
	return append(first, second...), reported
}

// SetEvents returns the events about the changes between two outlines of a set, and the second outline, which must be
// passed as before in the next call. training: it is a Training workload, whose failures and restarts have events of
// their own.
func SetEvents(before, after SetOutline, training bool) ([]SetEvent, SetOutline) {
	var events []SetEvent
	add := func(warning bool, reason, format string, args ...any) {
		events = append(events, SetEvent{Warning: warning, Reason: reason, Note: fmt.Sprintf(format, args...)})
	}
	after.WasAvailable = after.WasAvailable || before.WasAvailable
	after.Degraded = before.Degraded && !after.Available && after.Replicas > 0
	if after.Replicas != before.Replicas {
		add(false, v1alpha1.EventScaled, "Scaled from %d to %d replicas", before.Replicas, after.Replicas)
	}
	if after.Replicas == 0 {
		return events, after
	}
	if !training && before.WasAvailable && !before.Degraded && !after.Available && after.AvailableReplicas < min(before.AvailableReplicas, after.Replicas) {
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
