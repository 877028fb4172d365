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
	"github.com/muster-project/muster/pkg/desired"
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
)

// numbersInterval is how long the numbers in the text about a refused attempt may be old: every attempt moves them.
const numbersInterval = 30 * time.Second

// busyInterval is how soon a status that made way for bindings is looked at again.
const busyInterval = 100 * time.Millisecond

// statuses writes the status of PodGroups, and the events that go with it.
type statuses struct {
	registry *gangstate.Registry
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
}

func newStatuses(o Options) *statuses {
	return &statuses{
		registry: o.Registry, writer: o.PodGroups, recorder: o.Recorder, clock: o.Clock, interval: o.StatusInterval, busy: o.Busy,
		queue: newQueue(o.Clock), groups: map[gangstate.Key]*groupStatus{},
	}
}

// sync writes the status of one PodGroup if it differs and its time has come, else returns when it will have come.
func (s *statuses) sync(ctx context.Context, key gangstate.Key) (time.Duration, error) {
	// 1. What is, and what the API server knows of it.
	f, ok := s.registry.Facts(key)
	if !ok || f.Group == nil {
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
	now := s.clock.Now()
	after := desired.PodGroupStatus(f, metav1.NewTime(now))
	change := desired.Compare(&group.Status, &after)
	if change == desired.Same {
		st.pendingSince = time.Time{}
		return 0, nil
	}
	if st.pendingSince.IsZero() {
		st.pendingSince = now
	}
	due := st.pendingSince
	switch change {
	case desired.Numbers:
		due = due.Add(numbersInterval)
	case desired.Content:
		due = due.Add(s.interval)
	}
	if wait := due.Sub(now); wait > 0 {
		return wait, nil
	}
	if s.busy() && now.Before(st.pendingSince.Add(s.interval)) {
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
	if e := desired.PodGroupEvent(&group.Status, &after); e != nil {
		emit(s.recorder, Reference(written), e.Warning, e.Reason, "Scheduling", e.Note)
	}
	return 0, nil
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
