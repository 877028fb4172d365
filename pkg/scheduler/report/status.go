package report

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// statuses writes the status of PodGroups, and the events that go with it.
type statuses struct {
	pace     *pacer
	writer   StatusWriter
	recorder events.EventRecorder
	clock    clock.WithTicker
	interval time.Duration
	busy     func() bool
	queue    queue

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
	// untoldSince is since when the status has what nobody was told by an event yet; zero: there is nothing.
	untoldSince time.Time
}

func newStatuses(o Options) *statuses {
	return &statuses{
		pace: newPacer(o.Registry), writer: o.PodGroups, recorder: o.Recorder, clock: o.Clock, interval: o.StatusInterval, busy: o.Busy,
		queue: newQueue(o.Clock), groups: map[gangstate.Key]*groupStatus{},
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
	after := podgroup.Status(f, metav1.NewTime(now))
	later := s.tellFirst(st, group, &after, now)
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
	if after.Reason != group.Status.Reason {
		st.untoldSince = time.Time{}
	}
	e := podgroup.StatusEvent(&group.Status, &after)
	switch {
	case e == nil:
	case change == podgroup.First:
		st.untoldSince = now
		return s.interval, nil
	default:
		s.tell(written, e)
	}
	return later, nil
}

// makesWay reports whether the PodGroup's status is to wait because bindings are posted. It waits no longer than the
// interval.
func (s *statuses) makesWay(key gangstate.Key, now time.Time) bool {
	s.mu.Lock()
	st := s.groups[key]
	s.mu.Unlock()
	return st != nil && !st.pendingSince.IsZero() && now.Before(st.pendingSince.Add(s.interval)) && s.busy()
}

// tellFirst emits the event that was not worth it when the first status was written, once what it tells of has lasted; it
// returns in how long that will be.
func (s *statuses) tellFirst(st *groupStatus, group *v2alpha2.PodGroup, after *v2alpha2.PodGroupStatus, now time.Time) time.Duration {
	if st.untoldSince.IsZero() || after.Reason != group.Status.Reason {
		return 0
	}
	if wait := st.untoldSince.Add(s.interval).Sub(now); wait > 0 {
		return wait
	}
	st.untoldSince = time.Time{}
	if e := podgroup.StatusEvent(&v2alpha2.PodGroupStatus{}, after); e != nil {
		s.tell(group, e)
	}
	return 0
}

func (s *statuses) tell(group *v2alpha2.PodGroup, e *podgroup.Event) {
	emit(s.recorder, Reference(group), e.Warning, e.Reason, e.Note)
}

// of returns what is remembered of a PodGroup, nothing if that was another object of the same name.
func (s *statuses) of(key gangstate.Key, uid types.UID) *groupStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.groups[key]
	if st == nil || st.uid != uid {
		st = &groupStatus{uid: uid, superseded: sets.New[string]()}
		s.groups[key] = st
	}
	return st
}

func (s *statuses) forget(key gangstate.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.groups, key)
}
