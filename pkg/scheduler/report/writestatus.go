// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// firstInterval is the delay of a PodGroup's first status if it only records that the gang waits. Users may look for
// it, but most PodGroups are created a moment before their pods, and with the pods the status is more specific.
const firstInterval = 200 * time.Millisecond

// numbersInterval is how long changed numbers in the text about a refused attempt wait for their write, because every
// attempt changes them; fewInterval the same while few gangs wait (docs/decisions, G14).
const numbersInterval, fewInterval = 30 * time.Second, 10 * time.Second

const (
	// busyInterval is the pause before a status that was deferred in favor of bindings is checked again.
	busyInterval = 100 * time.Millisecond
	// busyLimit is how long a status may be deferred in favor of bindings. Most bursts are over by then, and each gang
	// of them gets one status instead of one before its last binding and one after it.
	busyLimit = 5 * time.Second
)

// eventDelay is the delay of the event after a change of reason. A gang may pass through several reasons in a short
// time; the event reports the last one.
const eventDelay = 2 * time.Second

// statuses writes the status of PodGroups and emits the corresponding events.
type statuses struct {
	Options
	pace     *pacer
	queue    queue
	makers   *makers
	repeated *repeatedNames

	mu     sync.Mutex
	groups map[gangs.Key]*groupStatus // guarded by mu; an entry belongs to the worker that processes the key
}

// groupStatus is the state of one PodGroup between two checks.
type groupStatus struct {
	uid types.UID
	// written is the PodGroup after the last write, nil if the cache has this version or a newer one. superseded
	// contains the resourceVersions that the cache may still have. A write succeeds only on the latest version, so
	// these versions and written follow each other without a gap.
	written    *v2alpha2.PodGroup
	superseded sets.Set[string]
	// pendingSince is the time since which a write is pending; zero: none is pending.
	pendingSince time.Time
	// reported is the status that the last event reported, or the status before the first change that no event has
	// reported yet; nil: nothing has changed.
	reported *v2alpha2.PodGroupStatus
	// reportAt is when the event about the changes since reported is due; zero: there are none.
	reportAt time.Time
	// lackingSince is the time since which the gang has lacked pods without interruption; zero: it does not. It begins
	// again when the first pod is created or the last one is gone; withoutPods: there is none. warned: an event has
	// reported it.
	lackingSince time.Time
	withoutPods  bool
	warned       bool
	// warnedOf is the Facts.FailingSince of which an event has reported that plans have failed for long.
	warnedOf time.Time
	// claims contains the pods with an event that they name the PodGroup in a place without effect; at most
	// maxAnnounced.
	claims sets.Set[types.UID]
}

func newStatuses(o Options, m *makers) *statuses {
	return &statuses{Options: o, pace: newPacer(o.Registry), queue: newQueue(o.Clock), makers: m, repeated: newRepeatedNames(o), groups: map[gangs.Key]*groupStatus{}}
}

// syncStatus writes the status of one PodGroup if it differs and the write is due; otherwise it returns the time until
// it is due.
func (s *statuses) syncStatus(ctx context.Context, key gangs.Key) (time.Duration, error) {
	now := s.Clock.Now()
	if s.yieldsToBindings(key, now) {
		return busyInterval, nil // nothing would be written now in any case
	}

	// 1. Read the facts, and the latest version in the API server.
	f, ok, wait := s.pace.factsIfDue(key, now)
	if wait > 0 {
		return wait, nil
	}
	if !ok || f.Group == nil || f.NotOurs {
		s.forgetGroup(key)
		if ok && !f.UnattendedAt.IsZero() {
			return max(f.UnattendedAt.Sub(now), time.Millisecond), nil // no event will tell that nothing has happened
		}
		return 0, nil
	}
	st, group := s.stateOf(key, f.Group)
	f.Group = group
	f = s.makers.factsOfLastRun(f)
	f.NodeLabels, f.OuterLabels = s.labelsOf(f.Nodes), s.repeated.outerLabels(f.Group, now)

	// 2. Check whether the status differs, and whether the write is due.
	later := s.lookForMakers(ctx, st, &f, now)
	after := podgroup.Status(f, metav1.NewTime(now))
	later = shorterWait(later, s.reportSettled(st, group, &after, now))
	s.warnOnce(st, f, &after, now)
	change := podgroup.Compare(&group.Status, &after)
	if change == podgroup.Same {
		st.pendingSince = time.Time{}
		return later, nil
	}
	if st.pendingSince.IsZero() {
		st.pendingSince = now
	}
	if wait := st.pendingSince.Add(s.delayOf(change)).Sub(now); wait > 0 {
		return shorterWait(wait, later), nil
	}
	if s.yieldsToBindings(key, now) {
		return busyInterval, nil
	}

	// 3. Write the status, then emit the event.
	written, err := s.writeStatus(ctx, key, group, after)
	if err != nil || written == nil {
		return 0, err
	}
	for _, e := range podgroup.PreemptionEvents(&group.Status, &after) {
		s.emitEvent(written, &e)
	}
	st.superseded.Insert(group.ResourceVersion)
	st.written, st.pendingSince = written, time.Time{}
	if st.reportAt.IsZero() && !podgroup.SameReason(&group.Status, &after) {
		if st.reportAt = now.Add(eventDelay); st.reported == nil {
			st.reported = outlineOf(&group.Status)
		}
	}
	return shorterWait(later, s.reportSettled(st, written, &after, now)), nil
}

// labelsOf returns the labels of those of the nodes that exist, by name. nil for no nodes. The labels must not be
// modified.
func (s *statuses) labelsOf(nodes map[string][]string) map[string]map[string]string {
	if len(nodes) == 0 {
		return nil
	}
	labels := map[string]map[string]string{}
	for _, names := range nodes {
		for _, name := range names {
			if node, err := s.Nodes.Get(name); err == nil { // the only error is that it does not exist
				labels[name] = node.Labels
			}
		}
	}
	return labels
}

// delayOf returns how long a change of a status may wait, so that several are written at once.
func (s *statuses) delayOf(change podgroup.Change) time.Duration {
	switch change {
	case podgroup.Numbers:
		if s.Registry.WaitingGangs() <= gangs.FewGangs {
			return fewInterval
		}
		return numbersInterval
	case podgroup.Content:
		return s.StatusInterval
	case podgroup.First:
		return min(firstInterval, s.StatusInterval)
	}
	return 0
}

// writeStatus writes the status of a PodGroup, and returns the new version; nil if the PodGroup does not exist any
// more.
func (s *statuses) writeStatus(ctx context.Context, key gangs.Key, group *v2alpha2.PodGroup, status v2alpha2.PodGroupStatus) (*v2alpha2.PodGroup, error) {
	next := group.DeepCopy()
	next.Status = status
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	written, err := s.PodGroups.UpdateStatus(ctx, next)
	if apierrors.IsNotFound(err) {
		s.forgetGroup(key) // the informer will report the deletion
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("writing the status of PodGroup %s: %w", key, err)
	}
	klog.FromContext(ctx).V(4).Info("Wrote the status of a PodGroup", "podGroup", key, "phase", status.Phase, "reason", status.Reason)
	return written, nil
}

// yieldsToBindings reports whether the PodGroup's status must wait because bindings are being posted. It waits at most
// for busyLimit, and not at all if evictions wait for it.
func (s *statuses) yieldsToBindings(key gangs.Key, now time.Time) bool {
	s.mu.Lock()
	st := s.groups[key]
	s.mu.Unlock()
	return st != nil && !st.pendingSince.IsZero() && now.Before(st.pendingSince.Add(busyLimit)) && s.Busy() && !s.pace.isUrgent(key)
}

// reportSettled emits the event about the changes since the last event, after they have settled and the reason has been
// written. It returns the time until then, 0: there is no event, or the status must be written first.
func (s *statuses) reportSettled(st *groupStatus, written *v2alpha2.PodGroup, after *v2alpha2.PodGroupStatus, now time.Time) time.Duration {
	if st.reportAt.IsZero() {
		return 0
	}
	if wait := st.reportAt.Sub(now); wait > 0 {
		return wait
	}
	if !podgroup.SameReason(&written.Status, after) {
		return 0
	}
	st.reportAt = time.Time{}
	e := podgroup.StatusEvent(st.reported, after)
	if e != nil {
		s.emitEvent(written, e)
	}
	// A reason that passes by itself between two occurrences of the same reason is not reported.
	if e != nil || isSatisfied(st.reported) || isSatisfied(after) {
		st.reported = outlineOf(after)
	}
	return 0
}

// lookForMakers adds to the facts why the pods that the gang lacks are not created, after it has lacked them for a
// while. It returns the time until the next check, 0 if none is needed.
func (s *statuses) lookForMakers(ctx context.Context, st *groupStatus, f *podgroup.Facts, now time.Time) time.Duration {
	if !podgroup.LacksPods(*f) {
		st.lackingSince, st.warned = time.Time{}, false
		return 0
	}
	switch {
	case st.lackingSince.IsZero():
		st.lackingSince = now
		if reason := f.Group.Status.Reason; reason == v2alpha2.ReasonWaitingForPods || reason == v2alpha2.ReasonInvalid {
			// After a restart the status already says why. Without the owners it would be rewritten twice.
			st.lackingSince = now.Add(-makersAfter)
		}
	case st.withoutPods != (f.Pods == 0):
		st.lackingSince, st.warned = now, false
	}
	st.withoutPods = f.Pods == 0
	if wait := st.lackingSince.Add(makersAfter).Sub(now); wait > 0 {
		return wait
	}
	for _, c := range s.makers.completeFacts(ctx, f) {
		if !st.claims.Has(c.pod.UID) && len(st.claims) < maxAnnounced {
			st.claims.Insert(c.pod.UID)
			emitEvent(s.Recorder, c.pod, true, v2alpha2.EventPodGroupNotNamed,
				fmt.Sprintf("the pod is in no gang, and PodGroup %s has no pods: %s", f.Name, podgroup.UnclaimedAdvice(c.Unclaimed)))
		}
	}
	return max(0, st.lackingSince.Add(warnAfter).Sub(now))
}

// warnOnce emits once the event that the gang has lacked pods, or that its plans have failed, for a long time.
func (s *statuses) warnOnce(st *groupStatus, f podgroup.Facts, after *v2alpha2.PodGroupStatus, now time.Time) {
	if since := f.FailingSince; !since.IsZero() && !since.Equal(st.warnedOf) && !now.Before(since.Add(warnAfter)) {
		if e := podgroup.FailingEvent(after, warnAfter); e != nil {
			st.warnedOf = since
			s.emitEvent(f.Group, e)
		}
	}
	if st.warned || st.lackingSince.IsZero() || now.Before(st.lackingSince.Add(warnAfter)) {
		return
	}
	if e := podgroup.LackingEvent(f, after, warnAfter); e != nil {
		st.warned = true
		s.emitEvent(f.Group, e)
	}
}

func (s *statuses) emitEvent(group *v2alpha2.PodGroup, e *podgroup.Event) {
	emitEvent(s.Recorder, Reference(group), e.Warning, e.Reason, e.Note)
}

func isSatisfied(s *v2alpha2.PodGroupStatus) bool {
	return meta.IsStatusConditionTrue(s.Conditions, v2alpha2.ConditionSatisfied)
}

// outlineOf returns a copy of the fields of a status that StatusEvent reads.
func outlineOf(s *v2alpha2.PodGroupStatus) *v2alpha2.PodGroupStatus {
	return &v2alpha2.PodGroupStatus{Conditions: slices.Clone(s.Conditions)}
}

// stateOf returns the state of a PodGroup, a new one for a new object, and its latest version: cached, or the last
// written.
func (s *statuses) stateOf(key gangs.Key, cached *v2alpha2.PodGroup) (*groupStatus, *v2alpha2.PodGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.groups[key]
	if st == nil || st.uid != cached.UID {
		st = &groupStatus{uid: cached.UID, claims: sets.New[types.UID]()}
		s.groups[key] = st
	}
	if st.superseded.Has(cached.ResourceVersion) {
		return st, st.written
	}
	st.written, st.superseded = nil, sets.New[string]()
	return st, cached
}

func (s *statuses) forgetGroup(key gangs.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.groups, key)
}
