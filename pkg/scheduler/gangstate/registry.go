package gangstate

import (
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/scheduler/mark"
)

// Key names a gang: namespace and name of its PodGroup.
type Key = types.NamespacedName

// Effects is what has to be done after a change, by the caller, with no lock of this package held.
type Effects struct {
	// Activate: pods to move to the active queue (leaders).
	Activate []*corev1.Pod
	// Dirty: gangs whose PodGroup status may have changed.
	Dirty []Key
	// Cancel: assumed members of plans that were aborted before their barrier opened. What is being prepared for them
	// (PreBind) is to be cancelled: until it ends they keep their room.
	Cancel []types.UID
	// Vacated: pods that are gone and whose room is not kept any more (Rooms). For others it is as if they went now.
	Vacated []*corev1.Pod
}

func (e *Effects) add(o Effects) {
	e.Activate = append(e.Activate, o.Activate...)
	e.Dirty = append(e.Dirty, o.Dirty...)
	e.Cancel = append(e.Cancel, o.Cancel...)
	e.Vacated = append(e.Vacated, o.Vacated...)
}

// Options are the limits and the surroundings of a Registry.
type Options struct {
	// Resync is how long a gang that was refused sleeps, at the longest, after something changed in the cluster. It
	// repairs wake-ups that the scheduling queue dropped.
	Resync time.Duration
	// RepairTimeout is how long a gang that was never whole may stay bound in part (docs/decisions, G11).
	RepairTimeout time.Duration
	// SingleSurplusAfter is how long room must not have grown before single surplus pods are placed while a surplus
	// sub-group of the same priority waits: nodes that come one by one make up room for the sub-group first. Zero: no wait.
	SingleSurplusAfter time.Duration
	// ReplacementTimeout is how long the room of a deleted pod is kept for its replacement, from when the pod began to
	// terminate. Zero: no room is kept.
	ReplacementTimeout time.Duration
	// Clock is that of Arrive; nil: the real one.
	Clock clock.Clock
	// Priority resolves a PriorityClass; false if there is none of that name.
	Priority func(name string) (int32, bool)
	// Aborted is told of every plan that is given up before anything was bound; nil: nobody wants to know. It must not call
	// the Registry.
	Aborted func(cause AbortCause)
	// UnknownKey is called when a pod's mark names a key that is not known; nil: it is not. It must not call the Registry.
	UnknownKey func()
}

// AbortCause is why a plan was given up, coarse enough to be counted.
type AbortCause string

const (
	// AbortRefused: the real cycle refused a member the node that the plan had found for it.
	AbortRefused AbortCause = "refused"
	// AbortUnprepared: a volume, a claim or another plugin's reservation of a member failed on its node.
	AbortUnprepared AbortCause = "unprepared"
	// AbortLate: a member did not come out of the queue, or was not ready to be bound in time.
	AbortLate AbortCause = "late"
	// AbortChanged: a member, or a bound pod that the plan counted on, is gone or bound by somebody else.
	AbortChanged AbortCause = "changed"
	// AbortOvertaken: it was a plan for surplus, and the gang's minimum lost pods.
	AbortOvertaken AbortCause = "overtaken"
)

// Registry holds all gangs of one scheduler process. Safe for concurrent use.
type Registry struct {
	clock clock.Clock // of waits; what happens is told with its time

	mu       sync.Mutex
	opts     Options
	profiles sets.Set[string]
	synced   bool
	leading  bool      // this process schedules: its own memory holds, not what another one wrote
	now      time.Time // the latest time that a caller gave

	gangs   map[Key]*gangState
	members map[types.UID]*member
	plans   map[types.UID]*Plan // by member, from Commit until the member is bound or released

	committing      *Plan                      // the one plan whose members are being handed out; nil = none
	unwinding       int                        // members of aborted plans that are assumed still
	vanished        map[types.UID]time.Time    // bound pods that the scheduler's informer lost, since when
	vanishedInOrder []vanishedPod              // the same in order of time; some are settled already
	leftGang        map[types.UID]formerMember // waiting pods that left their gang and the queue may still hold
	planSeq         uint64                     // of the newest plan
	unanswered      Key                        // a gang of which a binding got no answer from the API server; zero = none
	cancelled       []types.UID                // for the next Effects
	vacated         []*corev1.Pod              // likewise

	rooms     *rooms      // kept for pods that are to come
	haveRooms atomic.Bool // rooms has any

	index indices

	keys atomic.Pointer[mark.Keys] // of marks; nil = none

	ranks sync.Map // types.UID -> Rank, see rank.go
}

// New returns an empty Registry. It is to be configured before anything happens, and elects nobody before Synced.
func New() *Registry {
	return &Registry{
		clock:    clock.RealClock{},
		profiles: sets.New[string](),
		gangs:    map[Key]*gangState{},
		members:  map[types.UID]*member{},
		plans:    map[types.UID]*Plan{},
		vanished: map[types.UID]time.Time{},
		leftGang: map[types.UID]formerMember{},
		rooms:    newRooms(),
		index:    newIndices(),
	}
}

// enter begins a call at a time of the caller's.
func (r *Registry) enter(now time.Time) {
	if now.After(r.now) {
		r.now = now
	}
}

// leave ends a call: what plans that were aborted meanwhile left to be cancelled goes with its effects.
func (r *Registry) leave(e Effects) Effects {
	if len(r.cancelled) > 0 {
		e.Cancel = append(e.Cancel, r.cancelled...)
		r.cancelled = nil
	}
	if len(r.vacated) > 0 {
		e.Vacated = append(e.Vacated, r.vacated...)
		r.vacated = nil
	}
	return e
}

// vanishedPod is a bound pod that the informer lost, and when.
type vanishedPod struct {
	uid   types.UID
	since time.Time
}

// formerMember is a pod whose annotation was taken away. The queue held it, and asks again only when told.
type formerMember struct {
	pod   *corev1.Pod
	since time.Time
}

// AddProfile makes pods with this schedulerName ours.
func (r *Registry) AddProfile(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.profiles.Insert(name)
}

// Synced records that every pod and PodGroup that existed at start has been seen: elections begin.
func (r *Registry) Synced(now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enter(now)
	r.synced = true
	var e Effects
	for _, g := range r.gangs {
		r.resumeRelease(g)
		g.markAll()
		e.add(r.evaluate(g, now))
	}
	return r.leave(e)
}

// SetLeading records that this process schedules from now on: what it remembers holds. Before, it follows what another
// process writes into the status of PodGroups. An attempt to plan records the same.
func (r *Registry) SetLeading() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leading = true
}

// gang returns the gang of the key, made if it is not known.
func (r *Registry) gang(key Key) *gangState {
	g := r.gangs[key]
	if g == nil {
		g = &gangState{
			key: key, members: map[types.UID]*member{}, numbers: newNumbers(anyTree),
			why: "held by PodGroup " + message.Truncate(key.String(), message.MaxName) + " until it is its turn",
		}
		r.gangs[key] = g
	}
	return g
}

// Configure sets the options. To be called before anything else happens.
func (r *Registry) Configure(opts Options) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opts = opts
	if opts.Clock != nil {
		r.clock = opts.Clock
	}
}
