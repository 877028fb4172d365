// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
	"github.com/muster-project/muster/pkg/scheduler/marks"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
	"github.com/muster-project/muster/pkg/topology"
)

// Key identifies a gang: namespace and name of its PodGroup.
type Key = types.NamespacedName

// Effects are the actions that the caller must perform after a change, without holding any lock of this package.
type Effects struct {
	// Activate: pods to move to the active queue (leaders), in its order.
	Activate []*corev1.Pod
	// Dirty: gangs whose PodGroup status may have changed.
	Dirty []Key
	// Cancel: assumed members of plans that were aborted before their barrier opened. The preparation of these
	// members (PreBind) must be cancelled; until it ends they occupy their reservations.
	Cancel []types.UID
	// Mark: preemptions whose victims must be marked, and RecordMarked called.
	Mark []*evictions.Eviction
	// Unmark: preemptions without an eviction. Victims that have the mark must lose it, unless they have that of
	// another plan by now.
	Unmark []*evictions.Eviction
	// Evict: preemptions whose victims must be deleted, and RecordEvicted called.
	Evict []*evictions.Eviction
	// Vacated: deleted pods whose reservations have ended. For other pods this is equivalent to their deletion now.
	Vacated []*corev1.Pod
}

func (e *Effects) add(o Effects) {
	e.Activate = append(e.Activate, o.Activate...)
	e.Dirty = append(e.Dirty, o.Dirty...)
	e.Cancel = append(e.Cancel, o.Cancel...)
	e.Mark = append(e.Mark, o.Mark...)
	e.Unmark = append(e.Unmark, o.Unmark...)
	e.Evict = append(e.Evict, o.Evict...)
	e.Vacated = append(e.Vacated, o.Vacated...)
}

// Options are the limits and the dependencies of a Registry.
type Options struct {
	// RepairTimeout is how long a gang, or a sub-group above its minimum, that never had its minimum may stay partially
	// bound (docs/decisions, G11, G20).
	RepairTimeout time.Duration
	// SingleSurplusAfter is how long the free room must not have grown before surplus is placed while a minimum of the
	// same or a higher priority was refused, or a sub-group that its gang lost, and before single surplus pods are
	// placed while a surplus sub-group of the same priority waits. Nodes that are added one by one can thus make up
	// room for these first. Surplus waits 10 s at most. Zero: no wait.
	SingleSurplusAfter time.Duration
	// ReplacementTimeout is how long the room of a deleted pod is reserved for its replacement, counted from the time
	// at which the pod began to terminate. Zero: no room is reserved.
	ReplacementTimeout time.Duration
	// Amount returns what a pod uses on its node, for its reservation; nil: nothing. It must not call the Registry.
	Amount func(*corev1.Pod) reservations.Amount
	// PreemptionTimeout is how long a preemptor waits for the pods that it preempts beyond their grace periods. It also
	// bounds for how long the room of other terminating pods is expected.
	PreemptionTimeout time.Duration
	// MaxVictimGrace is the longest grace period of a victim, and how far away the end of another terminating pod may
	// be whose room is expected. Zero: there is no such limit.
	MaxVictimGrace time.Duration
	// ReservationAfter is how long a gang must have waited until it is promised room (docs/decisions, G25). Zero: none
	// is.
	ReservationAfter time.Duration
	// ReservationTimeout is how long a promise is kept of which no part becomes free.
	ReservationTimeout time.Duration
	// MaxReservations bounds the gangs that are promised room at a time.
	MaxReservations MaxReservations
	// PreemptionEnded is called when a preemption has ended; nil: no callback. It must not call the Registry.
	PreemptionEnded func(*evictions.Eviction, evictions.Outcome)
	// Admitted is called when the minimum of a gang has been bound, with the time since its pods were complete; Ready
	// when its minimum is ready for the first time since, with the time since it was admitted. nil: no callback. They
	// must not call the Registry.
	Admitted, Ready func(Start)
	// Promised is called for what happens to the room that a gang is promised; nil: no callback. It must not call the
	// Registry.
	Promised func(gang Key, event PromiseEvent)
	// Clock is used by Arrive; nil: the real clock.
	Clock clock.Clock
	// Priority resolves a PriorityClass. It returns false if there is none of that name.
	Priority func(name string) (int32, bool)
	// NeverPreempts reports whether a PriorityClass has preemptionPolicy Never; nil: none has.
	NeverPreempts func(class string) bool
	// Aborted is called for every plan that is aborted before any member was bound; nil: no callback. It must not
	// call the Registry.
	Aborted func(gang Key, cause AbortCause, reason string)
	// NodeLabels returns the labels of a node, nil if it does not exist; nil: plans rely on none. It must not call the
	// Registry.
	NodeLabels func(node string) map[string]string
	// LevelsOf returns the levels of a Topology, nil if it is not known; nil: none is. It must not call the Registry.
	LevelsOf func(topology string) topology.Levels
	// UnknownKey is called when a pod's mark names an unknown key; nil: no callback. It must not call the Registry.
	UnknownKey func()
	// Unverified is called when there are keys and the mark of a pod does not verify; nil: no callback. It must not
	// call the Registry.
	Unverified func(*corev1.Pod)
}

// MaxReservations bounds the gangs that are promised room at a time: those of a priority, those of a namespace, and all
// together.
type MaxReservations struct{ OfPriority, OfNamespace, InAll int }

// AbortCause is the cause for which a plan was aborted, with few distinct values, so that it can label a metric.
type AbortCause string

const (
	// AbortRefused: in its real cycle a member was refused by the node that the plan had assigned to it.
	AbortRefused AbortCause = "refused"
	// AbortUnprepared: a volume, a claim or another plugin's reservation for a member failed on its node.
	AbortUnprepared AbortCause = "unprepared"
	// AbortLate: a member did not leave the queue, or was not ready to be bound in time.
	AbortLate AbortCause = "late"
	// AbortChanged: a member, or a bound pod on which the plan was based, is gone or was bound by another scheduler.
	AbortChanged AbortCause = "changed"
	// AbortOvertaken: the plan was for surplus, and the gang's minimum lost pods.
	AbortOvertaken AbortCause = "overtaken"
	// AbortPreempted: a gang of higher priority needs the room.
	AbortPreempted AbortCause = "preempted"
)

// Registry contains all gangs of one scheduler process. Safe for concurrent use.
type Registry struct {
	clock clock.Clock // used only by WaitAtBarrier; other calls pass the current time

	mu       sync.Mutex
	opts     Options
	profiles sets.Set[string]
	synced   bool
	leading  bool      // this process schedules: its own memory is authoritative, not the status written by another process
	now      time.Time // the latest time passed by a caller

	gangs   map[Key]*gangState
	members map[types.UID]*member
	left    map[types.UID]*Plan // plans of pods that left their gang and have not been released

	committing      *Plan                    // the one plan whose members are being handed out; nil = none
	doomed          []*Plan                  // plans that will be aborted; some may have been aborted (doomed.go)
	unexplained     map[types.UID]*Plan      // members that failed for a reason that is not known yet, and their plans
	cycles          uint64                   // of leaders that have begun
	unwinding       int                      // members of aborted plans that are still assumed
	vanished        map[types.UID]time.Time  // bound pods that vanished from the scheduler's informer, and when
	vanishedInOrder []vanishedPod            // the same in chronological order; some may be resolved already
	leftGang        map[types.UID]pendingPod // waiting pods that left their gang and may still be gated in the queue
	planSeq         uint64                   // ID of the newest plan
	unanswered      Key                      // a gang with a binding that the API server did not answer; zero = none
	cancelled       []types.UID              // for the next Effects
	vacated         []*corev1.Pod            // likewise
	resume          bool                     // likewise: a gang that others let go first was tried

	reserved     *reservations.Set // room for replacement pods, preemptors and gangs that are promised it
	haveReserved atomic.Bool       // false: reserved is empty, as Reservations has returned

	promised   []*gangState // gangs that are promised room, the one that was first
	promisesAt time.Time    // when the next one was looked for last

	resumed      bool                    // what an earlier process had begun to evict is known
	searches     budget                  // of searches for victims that did not help
	mayHelp      uint64                  // 1 + changes after which preemption may help gangs that it would not have helped before
	helped       []helped                // the last of these changes, by the priorities that they may help: descending
	retried      uint64                  // mayHelp when Tick last retried such gangs
	departed     map[types.UID]int32     // see recordDeparted
	lowest       int32                   // no pod on a node has a lower priority, nor has a gang with such pods
	recent       [2]int32                // the lowest priority that was observed within this period, and within the one before
	recentSince  time.Time               // when the period began
	toSearch     map[*gangState]struct{} // see retryFirstHopeless
	lastSearch   time.Duration           // what the last attempt took after which preemption would not help
	nextSearch   time.Time               // when the next gang for which it would not help may be tried again
	unmark       []*evictions.Eviction   // for the next Effects
	plainVictims evictions.Pods          // pods that are to be preempted as those without a gang, and, of those that end, the ones that are no members
	renamed      map[*member]Key         // bound members whose pods name another PodGroup by now, or none
	preemptors   map[types.UID]*podPreemptor
	beneath      beneathPods
	searching    types.UID // the pod without a gang for which victims are searched for; "": there is none, or it is gone

	index   indices
	waiting waitList
	line    line

	entered      func(from, to Phase)           // called by enterPhase; nil except in tests
	enteredStage func(from, to evictions.Stage) // likewise by enterStage

	keys atomic.Pointer[marks.Keys] // signing keys of marks; nil = none

	ranks sync.Map // types.UID -> Rank, see queueorder.go
}

// New returns an empty Registry. It must be configured before any other call, and elects no leader before SetSynced.
func New() *Registry {
	return &Registry{
		clock:       clock.RealClock{},
		profiles:    sets.New[string](),
		gangs:       map[Key]*gangState{},
		members:     map[types.UID]*member{},
		left:        map[types.UID]*Plan{},
		unexplained: map[types.UID]*Plan{},
		vanished:    map[types.UID]time.Time{},
		leftGang:    map[types.UID]pendingPod{},
		reserved:    reservations.NewSet(),

		searches:     budget{share: searchShare},
		mayHelp:      1,
		lowest:       math.MaxInt32,
		recent:       [2]int32{math.MaxInt32, math.MaxInt32},
		toSearch:     map[*gangState]struct{}{},
		plainVictims: evictions.Pods{},
		renamed:      map[*member]Key{},
		preemptors:   map[types.UID]*podPreemptor{},
		beneath:      beneathPods{pods: map[types.UID]pendingPod{}, lowest: math.MaxInt32},
		departed:     map[types.UID]int32{},

		index:   newIndices(),
		waiting: newWaitList(),
	}
}

// beginCall begins a call at the time that the caller passed.
func (r *Registry) beginCall(now time.Time) {
	if now.After(r.now) {
		r.now = now
	}
}

// endCall ends a call: it adds the cancellations of plans that were aborted during the call, the vacated pods, and the
// leaders of gangs that no longer yield, to the effects, and sorts the pods to activate. Without the order the
// scheduling loop could pop any of them first.
func (r *Registry) endCall(e Effects) Effects {
	if r.resume {
		r.resume = false
		for g := range r.index.yielding {
			if r.firstPreceding(g) == nil {
				r.enterPhase(g, Elected)
				e.Activate = append(e.Activate, g.wakeLeader(r.now)...)
				r.reindex(g)
			}
		}
	}
	if len(e.Activate) > 1 {
		sortByRank(e.Activate, func(pod *corev1.Pod) Rank {
			if m := r.members[pod.UID]; m != nil {
				return m.gang.leaderRank()
			}
			return Rank{Priority: count.PodPriority(pod), Tier: TierNormal, Time: r.now}
		}, func(pod *corev1.Pod) Key { return Key{Namespace: pod.Namespace, Name: pod.Name} })
	}
	if len(r.cancelled) > 0 {
		e.Cancel = append(e.Cancel, r.cancelled...)
		r.cancelled = nil
	}
	e.Unmark, r.unmark = append(e.Unmark, r.unmark...), nil
	if len(r.vacated) > 0 {
		e.Vacated = append(e.Vacated, r.vacated...)
		r.vacated = nil
	}
	return e
}

// vanishedPod is a bound pod that vanished from the informer, and when.
type vanishedPod struct {
	uid   types.UID
	since time.Time
}

// pendingPod is a pod that the queue checks again only if it is activated: the queue gated it, and its PodGroup
// annotation was removed, or it could not preempt.
type pendingPod struct {
	pod   *corev1.Pod
	since time.Time
}

// AddProfile registers a schedulerName as one of this scheduler's profiles.
func (r *Registry) AddProfile(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.profiles.Insert(name)
}

// SetSynced records that every pod and PodGroup that existed at start has been seen. Elections begin now.
func (r *Registry) SetSynced(now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	r.synced = true
	var e Effects
	for _, g := range r.gangs {
		g.resumeRelease()
		g.admitAllGroups()
		e.add(r.evaluate(g, now))
	}
	return r.endCall(e)
}

// SetLeading records that this process schedules from now on and that its own memory is authoritative. Before, the
// Registry follows the status of PodGroups that another process writes. An attempt to plan has the same effect.
func (r *Registry) SetLeading() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leading = true
}

// findOrAddGang returns the gang of the key, and creates it if it is unknown.
func (r *Registry) findOrAddGang(key Key) *gangState {
	g := r.gangs[key]
	if g == nil {
		g = &gangState{
			key: key, members: map[types.UID]*member{}, numbers: count.NewNumbers(anyTree), opts: &r.opts, profiles: r.profiles,
			why: "gated by PodGroup " + message.Truncate(key.String(), message.MaxName) + " until its gang can be planned",
		}
		r.gangs[key] = g
	}
	return g
}

// Configure sets the options. It must be called before any other method.
func (r *Registry) Configure(opts Options) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opts = opts
	if opts.Clock != nil {
		r.clock = opts.Clock
	}
}
