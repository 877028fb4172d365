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
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
)

// firstInterval is how soon a PodGroup gets its first status if it says no more than that the gang waits: somebody may
// look for it, but most PodGroups are made a moment before their pods, and with these there is something better to say.
const firstInterval = 200 * time.Millisecond

// numbersInterval is how long the numbers in the text about a refused attempt may be old: every attempt moves them.
const numbersInterval = 30 * time.Second

// busyInterval is how soon a status that made way for bindings is looked at again.
const busyInterval = 100 * time.Millisecond

// settleTime is how long after a change of reason its event comes. A gang may go through several reasons in a moment; the
// event is about the last of them.
const settleTime = 2 * time.Second

// statuses writes the status of PodGroups, and the events that go with it.
type statuses struct {
	pace     *pacer
	writer   StatusWriter
	recorder events.EventRecorder
	clock    clock.WithTicker
	interval time.Duration
	busy     func() bool
	queue    queue
	makers   *makers

	mu     sync.Mutex
	groups map[gangstate.Key]*groupStatus // guarded by mu; the entries belong to the worker that has the key
}

// groupStatus is what is remembered of one PodGroup between two looks.
type groupStatus struct {
	uid types.UID
	// written is the PodGroup as the last write left it, nil if the cache shows that or newer; superseded are the
	// resourceVersions that the cache may still show meanwhile. A write succeeds on the newest version only, so these
	// and written follow on each other without a gap.
	written    *v2alpha2.PodGroup
	superseded sets.Set[string]
	// pendingSince is since when there is something to write; zero: there is nothing.
	pendingSince time.Time
	// told is the status that the last event was about, or the one before the change that none was about yet; nil: nothing
	// has changed.
	told *v2alpha2.PodGroupStatus
	// tellAt is when the event about what has changed since told is due; zero: nothing has.
	tellAt time.Time
	// lackingSince is since when the gang has lacked pods without a break; zero: it does not. warned: an event said so.
	lackingSince time.Time
	warned       bool
	// claims are the pods that were told that they name the PodGroup in a place without meaning.
	claims sets.Set[types.UID]
}

func newStatuses(o Options) *statuses {
	return &statuses{
		pace: newPacer(o.Registry), writer: o.PodGroups, recorder: o.Recorder, clock: o.Clock, interval: o.StatusInterval, busy: o.Busy,
		queue: newQueue(o.Clock), groups: map[gangstate.Key]*groupStatus{}, makers: newMakers(o),
	}
}

// sync writes the status of one PodGroup if it differs and its time has come, else returns when it will have come.
func (s *statuses) sync(ctx context.Context, key gangstate.Key) (time.Duration, error) {
	now := s.clock.Now()
	if s.makesWay(key, now) {
		return busyInterval, nil // whatever there is to write, it would not be written now
	}

	// 1. What is, and what the API server knows of it.
	f, ok, wait := s.pace.look(key, now)
	if wait > 0 {
		return wait, nil
	}
	if !ok || f.Group == nil || f.NotOurs {
		s.forget(key)
		return 0, nil
	}
	st := s.of(key, f.Group.UID)
	if st.superseded.Has(f.Group.ResourceVersion) {
		f.Group = st.written
	} else {
		st.written, st.superseded = nil, sets.New[string]()
	}
	group := f.Group

	// 2. Is there news, and is it time for it?
	later := s.lookForMakers(ctx, st, &f, now)
	after := podgroup.Status(f, metav1.NewTime(now))
	later = sooner(later, s.tellSettled(st, group, &after, now))
	s.warn(st, group, &after, now)
	change := podgroup.Compare(&group.Status, &after)
	if change == podgroup.Same {
		st.pendingSince = time.Time{}
		return later, nil
	}
	if st.pendingSince.IsZero() {
		st.pendingSince = now
	}
	due := st.pendingSince
	switch change {
	case podgroup.Numbers:
		due = due.Add(numbersInterval)
	case podgroup.Content:
		due = due.Add(s.interval)
	case podgroup.First:
		due = due.Add(min(firstInterval, s.interval))
	}
	if wait := due.Sub(now); wait > 0 {
		return sooner(wait, later), nil
	}
	if s.makesWay(key, now) {
		return busyInterval, nil
	}

	// 3. Write, then tell.
	next := group.DeepCopy()
	next.Status = after
	writing, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	written, err := s.writer.UpdateStatus(writing, next)
	if apierrors.IsNotFound(err) {
		s.forget(key) // the informer is about to say so
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("writing the status of PodGroup %s: %w", key, err)
	}
	klog.FromContext(ctx).V(4).Info("Wrote the status of a PodGroup", "podGroup", key, "phase", after.Phase, "reason", after.Reason)
	st.superseded.Insert(group.ResourceVersion)
	st.written, st.pendingSince = written, time.Time{}
	if st.tellAt.IsZero() && !podgroup.SameReason(&group.Status, &after) {
		if st.tellAt = now.Add(settleTime); st.told == nil {
			st.told = outlineOf(&group.Status)
		}
	}
	return sooner(later, s.tellSettled(st, written, &after, now)), nil
}

// makesWay reports whether the PodGroup's status is to wait because bindings are posted. It waits no longer than the
// interval.
func (s *statuses) makesWay(key gangstate.Key, now time.Time) bool {
	s.mu.Lock()
	st := s.groups[key]
	s.mu.Unlock()
	return st != nil && !st.pendingSince.IsZero() && now.Before(st.pendingSince.Add(s.interval)) && s.busy()
}

// tellSettled emits the event about what has changed since the last one, once it has settled and its reason has been written; it
// returns in how long that will be, 0: there is nothing to tell, or something to write first.
func (s *statuses) tellSettled(st *groupStatus, written *v2alpha2.PodGroup, after *v2alpha2.PodGroupStatus, now time.Time) time.Duration {
	if st.tellAt.IsZero() {
		return 0
	}
	if wait := st.tellAt.Sub(now); wait > 0 {
		return wait
	}
	if !podgroup.SameReason(&written.Status, after) {
		return 0
	}
	st.tellAt = time.Time{}
	e := podgroup.StatusEvent(st.told, after)
	if e != nil {
		s.tell(written, e)
	}
	// What passes by itself between twice the same reason is no news.
	if e != nil || isSatisfied(st.told) || isSatisfied(after) {
		st.told = outlineOf(after)
	}
	return 0
}

// lookForMakers adds to the facts what keeps the pods that the gang lacks from being made, once it has lacked them for a
// while. It returns in how long to look again, 0 for no need.
func (s *statuses) lookForMakers(ctx context.Context, st *groupStatus, f *podgroup.Facts, now time.Time) time.Duration {
	if !podgroup.LacksPods(*f) {
		st.lackingSince, st.warned = time.Time{}, false
		return 0
	}
	if st.lackingSince.IsZero() {
		st.lackingSince = now
	}
	if wait := st.lackingSince.Add(makersAfter).Sub(now); wait > 0 {
		return wait
	}
	for _, c := range s.makers.complete(ctx, f) {
		if !st.claims.Has(c.pod.UID) {
			st.claims.Insert(c.pod.UID)
			emit(s.recorder, c.pod, true, v2alpha2.EventPodGroupNotNamed,
				fmt.Sprintf("the pod is in no gang, and PodGroup %s has no pods: %s", f.Name, podgroup.UnclaimedAdvice(c.Unclaimed)))
		}
	}
	return max(0, st.lackingSince.Add(warnAfter).Sub(now))
}

// warn emits the event that the gang lacks pods for long, once.
func (s *statuses) warn(st *groupStatus, group *v2alpha2.PodGroup, after *v2alpha2.PodGroupStatus, now time.Time) {
	if st.warned || st.lackingSince.IsZero() || now.Before(st.lackingSince.Add(warnAfter)) {
		return
	}
	if e := podgroup.LackingEvent(after, warnAfter); e != nil {
		st.warned = true
		s.tell(group, e)
	}
}

func (s *statuses) tell(group *v2alpha2.PodGroup, e *podgroup.Event) {
	emit(s.recorder, Reference(group), e.Warning, e.Reason, e.Note)
}

func isSatisfied(s *v2alpha2.PodGroupStatus) bool {
	return meta.IsStatusConditionTrue(s.Conditions, v2alpha2.ConditionSatisfied)
}

// outlineOf returns a copy of what StatusEvent reads of a status.
func outlineOf(s *v2alpha2.PodGroupStatus) *v2alpha2.PodGroupStatus {
	return &v2alpha2.PodGroupStatus{Conditions: slices.Clone(s.Conditions)}
}

// of returns what is remembered of a PodGroup, nothing if that was another object of the same name.
func (s *statuses) of(key gangstate.Key, uid types.UID) *groupStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.groups[key]
	if st == nil || st.uid != uid {
		st = &groupStatus{uid: uid, superseded: sets.New[string](), claims: sets.New[types.UID]()}
		s.groups[key] = st
	}
	return st
}

func (s *statuses) forget(key gangstate.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.groups, key)
}
