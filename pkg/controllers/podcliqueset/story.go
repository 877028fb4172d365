package podcliqueset

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/desired"
	"github.com/muster-project/muster/pkg/message"
)

// settleTime is how long after a change of availability its event comes: a set may go through several states in a moment,
// and the event is about the last of them.
const settleTime = 2 * time.Second

// stories remembers what events have said about the availability of sets. It is lost when the program ends: then the status
// stands for it.
type stories struct {
	mu   sync.Mutex
	sets map[types.NamespacedName]*story // guarded by mu; an entry belongs to the worker that has the name
}

type story struct {
	uid  types.UID
	told desired.SetOutline
	at   time.Time // when the event about what has changed since is due; zero: nothing has
}

// of returns the story of a set, whose status is that before this pass.
func (s *stories) of(set *v1alpha1.PodCliqueSet) *story {
	name := types.NamespacedName{Namespace: set.Namespace, Name: set.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.sets[name]; t != nil && t.uid == set.UID {
		return t
	}
	if s.sets == nil {
		s.sets = map[types.NamespacedName]*story{}
	}
	t := &story{uid: set.UID, told: desired.OutlineOf(set)}
	s.sets[name] = t
	return t
}

func (s *stories) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sets, name)
}

// tell emits the events about the availability of a set that are due, and returns in how long the next ones are, 0: there is
// nothing to tell. before and after are the set before and after this pass. An update has events of its own: what it takes down
// is told only if it stays down.
func (r *Reconciler) tell(before, after *v1alpha1.PodCliqueSet, now time.Time) time.Duration {
	t := r.stories.of(before)
	if p := after.Status.UpdateProgress; p != nil && p.UpdateEndedAt == nil {
		t.at = time.Time{}
		return 0
	}
	if after.Status.Phase == v1alpha1.PodCliqueSetPhaseSucceeded || after.Status.Phase == v1alpha1.PodCliqueSetPhaseFailed {
		return 0
	}
	news, told := desired.SetEvents(t.told, desired.OutlineOf(after), after.Spec.WorkloadType == v1alpha1.WorkloadTypeTraining)
	if len(news) == 0 {
		if t.at.IsZero() {
			t.told = told
			return 0
		}
	} else if t.at.IsZero() {
		t.at = now.Add(settleTime)
	}
	if wait := t.at.Sub(now); wait > 0 {
		return wait
	}
	for _, e := range news {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(after, nil, kind, e.Reason, v1alpha1.ActionWatchMinimum, "%s", message.Truncate(e.Note, message.MaxCondition))
	}
	t.told, t.at = told, time.Time{}
	return 0
}
