// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/observed"
)

// SetOutline is the part of a PodCliqueSet's status that its events about availability are based on.
type SetOutline struct {
	// Replicas is the desired number of replicas, Scheduled the number whose minimum is bound, AvailableReplicas the
	// number that are available.
	Replicas, Scheduled, AvailableReplicas int32
	// Available is the status of the condition Available, Message its message.
	Available bool
	Message   string
	// WasAvailable: the set was available once. Degraded: EventDegraded was emitted, and the set has not recovered since.
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

// settleTime is the delay between a change of availability and its event: a set may go through several states in a short
// time. A loss has no event if the set is available again within this time.
const settleTime = 2 * time.Second

// untoldTime is the age up to which a loss or a gain that the previous process recorded may not have had its event: a new leader
// takes over and reads its cache within this time.
const untoldTime = time.Minute

// firstStatusTime is the time after its creation within which a set gets its first status.
const firstStatusTime = 5 * time.Second

// SetStory is what was reported of a set by its events about availability, and what is to be reported. It is kept in
// memory: NewSetStory begins one from the status of the set.
type SetStory struct {
	reported SetOutline
	// available is the outline when the set was available for the last time, if that was not reported yet.
	available *SetOutline
	// due is when events about changes since reported are due; zero: there was no change. lostAt is when a pass first
	// observed a loss that lasts and was not reported yet; zero: there is none.
	due, lostAt time.Time
}

// NewSetStory returns the story of a set that a process observes for the first time. The previous process may have
// written the status of a loss or a gain without the event that follows settleTime later: such an event may be emitted
// twice, but not never.
func NewSetStory(set *v1alpha1.PodCliqueSet, at time.Time) SetStory {
	o := OutlineOf(set)
	c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionAvailable)
	if c == nil {
		return SetStory{reported: o}
	}
	untold := func(since metav1.Time) bool { return at.Sub(since.Time) < untoldTime }
	if o.Available {
		o.Available = !untold(c.LastTransitionTime) || IsReplacing(set) // an update has events of its own
		return SetStory{reported: o}
	}
	// The condition has changed since the first status of the set, so it was True once. A breach does not prove that: one
	// replica may have been available, and then lost, while others never were.
	o.WasAvailable = c.LastTransitionTime.Sub(set.CreationTimestamp.Time) > firstStatusTime
	if breach := set.Status.MinAvailableBreachedSince; breach != nil && o.WasAvailable {
		// A set that was scaled out has not been available for longer than since the loss.
		if untold(c.LastTransitionTime) || untold(*breach) {
			o.Available, o.AvailableReplicas = true, o.Replicas
		} else {
			o.Degraded = true
		}
	}
	return SetStory{reported: o}
}

// IsReplacing reports whether an update of the set replaces pods. One that is paused between two replicas or has reached
// its partition stays open, possibly for weeks, and does not.
func IsReplacing(set *v1alpha1.PodCliqueSet) bool {
	p := observed.SetProgress(set)
	return p.Open() && (set.Status.UpdateProgress.CurrentlyUpdating != nil ||
		meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionProgressing))
}

// Suspend delays the events while an update replaces pods, which has events of its own: pods that it deletes are reported
// only if they are not replaced in time. That the set was available before the update is remembered, but no longer told.
func (s *SetStory) Suspend() {
	s.due, s.lostAt = time.Time{}, time.Time{}
	if s.available != nil {
		s.reported.WasAvailable, s.reported.AvailableReplicas = true, s.available.AvailableReplicas
		s.available = nil
	}
}

// Observe returns the events that are due, and the time until the next ones are, 0: there are none. now is the outline of
// the written status. A loss that follows the first availability before that was reported is reported together with it.
// training is as for SetEvents.
func (s *SetStory) Observe(now SetOutline, training bool, at time.Time) ([]SetEvent, time.Duration) {
	if now.Available && now.Replicas > 0 {
		s.available = &now
	}
	events, reported := s.events(now, training)
	if len(events) == 0 {
		*s = SetStory{reported: reported}
		return nil, 0
	}
	if s.due.IsZero() {
		s.due = at.Add(settleTime)
	}
	switch isLost := reported.Degraded && !s.reported.Degraded; {
	case !isLost:
		s.lostAt = time.Time{}
	case s.lostAt.IsZero():
		s.lostAt = at
	}
	wait := s.due.Sub(at)
	if !s.lostAt.IsZero() {
		wait = max(wait, s.lostAt.Add(settleTime).Sub(at))
	}
	if wait > 0 {
		return nil, wait
	}
	*s = SetStory{reported: reported}
	return events, 0
}

// events returns the events since the reported outline. That a degraded set was available for less than settleTime is not
// reported: it would be reported as degraded again.
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
