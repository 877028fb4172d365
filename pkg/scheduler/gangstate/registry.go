package gangstate

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/podgroup"
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
}

func (e *Effects) add(o Effects) {
	e.Activate = append(e.Activate, o.Activate...)
	e.Dirty = append(e.Dirty, o.Dirty...)
}

// Options are the limits and the surroundings of a Registry.
type Options struct {
	// Resync is how long a gang that was refused sleeps, at the longest, after something changed in the cluster. It
	// repairs wake-ups that the scheduling queue dropped.
	Resync time.Duration
	// RepairTimeout is how long a gang that was never whole may stay bound in part (G11).
	RepairTimeout time.Duration
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
)

// Registry holds all gangs of one scheduler process. Safe for concurrent use.
type Registry struct {
	mu       sync.Mutex
	opts     Options
	profiles sets.Set[string]
	synced   bool

	gangs   map[Key]*gangState
	members map[types.UID]*member
	plans   map[types.UID]*Plan // by member, from Commit until the member is bound or released

	committing *Plan                   // the one plan whose members are being handed out; nil = none
	unwinding  int                     // members of aborted plans that are assumed still
	departing  map[types.UID]time.Time // bound pods that the scheduler's informer lost, since when
	freed      map[types.UID]freed     // waiting pods that left their gang and the queue may still hold
	planSeq    uint64                  // of the newest plan
	cluster    uint64                  // counts changes in the cluster that may help a refused gang
	attention  sets.Set[Key]
	partials   sets.Set[Key]             // gangs that may be partial, see partial.go
	keys       atomic.Pointer[mark.Keys] // of marks; nil = none
	unanswered Key                       // a gang of which a binding got no answer from the API server; zero = none

	ranks sync.Map // types.UID -> Rank, see rank.go
}

// New returns an empty Registry. It is to be configured before anything happens, and elects nobody before Synced.
func New() *Registry {
	return &Registry{
		profiles:  sets.New[string](),
		gangs:     map[Key]*gangState{},
		members:   map[types.UID]*member{},
		plans:     map[types.UID]*Plan{},
		departing: map[types.UID]time.Time{},
		freed:     map[types.UID]freed{},
		attention: sets.New[Key](),
		partials:  sets.New[Key](),
	}
}

// freed is a pod whose annotation was taken away. The queue held it, and asks again only when told.
type freed struct {
	pod   *corev1.Pod
	since time.Time
}

// memberState says how far a pod has come. "Assumed" is the scheduler's own belief, "posted" is a binding that the API
// server accepted, "bound" is what an informer has shown.
type memberState int

const (
	pending memberState = iota
	assumed
	posted
	bound
	succeeded
)

// member is one pod of a gang. Guarded by Registry.mu.
type member struct {
	pod   *corev1.Pod // newest version seen; never modified
	gang  *gangState
	leaf  string // "" for a PodGroup without sub-groups; meaningless if misplaced != ""
	class string // podgroup.ClassKey: equal for pods that the filters cannot tell apart
	state memberState
	node  string // planned, assumed or bound
	since time.Time

	misplaced string // why the pod counts nowhere: names an unknown, an inner or no sub-group; "" = it has a leaf
	leaving   bool   // bound, but released (partial.go): counts nowhere from that decision on

	mark     mark.Mark // verified, or that of the plan whose binding was posted; zero = none
	markText string    // the annotation that mark was read from
}

// gangState is one PodGroup with its pods. Guarded by Registry.mu.
type gangState struct {
	key     Key
	group   *v2alpha2.PodGroup // nil: does not exist (yet, or any more)
	tree    *gang.Tree         // nil if group is nil or treeErr is set
	treeErr error
	members map[types.UID]*member

	admitted       bool             // sticky: the minimum was bound once (G11)
	admittedGroups sets.Set[string] // names of sub-groups that were admitted once

	leader       types.UID        // "" = none elected
	leaderSeen   bool             // PreEnqueue has let the leader pass since it was elected; after a failed plan: its cycle has begun
	leaderWoken  time.Time        // when it was last activated
	task         Task             // what the leader is to plan
	completeAt   time.Time        // since when the pods can satisfy the tree; zero = they cannot
	plan         *Plan            // committed and not yet over; nil = none
	failures     int              // plans aborted or half bound in a row
	notBefore    time.Time        // back-off: no leader before this time
	keepUntil    time.Time        // others let it go first until then, or until its next attempt
	verdict      podgroup.Refusal // why the last attempt failed
	refusedAt    time.Time        // when; zero = the last attempt was not refused
	refusedAtGen uint64           // Registry.cluster then
	yieldedTo    Key              // the gang that this one let go first; zero = none
	yieldedAt    time.Time        // when it did so; of the first time since its last attempt

	changed       bool          // its own pods changed since the last attempt began
	incompleteFor time.Duration // how long the gang has held what it cannot use, see partial.go
	partial       partialState
}

// Task is what a leader's cycle has to plan.
type Task int

const (
	// Minimum: the smallest set of pods that makes the tree whole, all or nothing.
	Minimum Task = iota
	// Refill: a gang that was admitted lost pods, or got a newly required sub-group.
	Refill
	// Surplus: whole sub-groups above minSubGroup, then single pods above minMember.
	Surplus
)

// AddProfile makes pods with this schedulerName ours.
func (r *Registry) AddProfile(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.profiles.Insert(name)
}

// Synced tells that every pod and PodGroup that existed at start has been seen: elections begin.
func (r *Registry) Synced(now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced = true
	var e Effects
	for _, g := range r.gangs {
		r.resumeRelease(g)
		e.add(r.evaluate(g, now))
	}
	return e
}

// SetPod takes a pod as an informer shows it: added or updated. Pods without a PodGroup are ignored.
func (r *Registry) SetPod(pod *corev1.Pod, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.setPod(pod, now)
}

func (r *Registry) setPod(pod *corev1.Pod, now time.Time) Effects {
	m, key := r.members[pod.UID], keyOf(pod)
	if m == nil && key.Name == "" {
		return Effects{}
	}
	if m != nil && m.state == succeeded && pod.Status.Phase != corev1.PodSucceeded {
		return Effects{} // the other informer is behind
	}
	var e Effects
	if m != nil && m.gang.key != key && m.state == pending {
		// The annotation changed before the pod was bound: another gang's pod from now on. Afterwards a change is ignored (G12).
		e.add(r.remove(m, now))
		m = nil
		if key.Name == "" {
			r.freed[pod.UID] = freed{pod: pod, since: now}
			e.Activate = append(e.Activate, pod)
			return e
		}
	}
	if m == nil {
		g := r.gang(key)
		m = &member{gang: g, since: now}
		r.members[pod.UID] = m
		g.members[pod.UID] = m
	}
	old := m.pod
	m.pod = pod
	r.readMark(m)
	delete(r.departing, pod.UID)
	delete(r.freed, pod.UID)
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		m.state, m.node = succeeded, pod.Spec.NodeName
		r.over(m)
	case pod.Spec.NodeName != "":
		m.state, m.node = bound, pod.Spec.NodeName
		if m.isReleased() {
			m.release()
		}
		r.over(m)
	default:
		if class := podgroup.ClassKey(pod); class != m.class || usabilityChanged(old, pod) {
			m.class, m.gang.changed = class, true
		}
	}
	r.locate(m)
	if pod.DeletionTimestamp != nil {
		if p := r.plans[pod.UID]; p != nil {
			r.abort(p, AbortChanged, "pod "+pod.Name+" was deleted")
		}
	}
	e.add(r.evaluate(m.gang, now))
	return e
}

// RemovePod takes a pod that is gone. To the scheduler's own informer a pod that ended is gone as well; the informer of
// ended pods says what became of it, by SetPod (Succeeded) or RemoveFailedPod. As long as neither has spoken the pod counts
// as before, so that Admitted does not waver, and nothing is planned.
func (r *Registry) RemovePod(uid types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[uid]
	delete(r.freed, uid)
	if m == nil || m.state == succeeded {
		return Effects{}
	}
	if m.state == bound || m.state == posted {
		r.cluster++
		if m.pod.DeletionTimestamp == nil {
			r.departing[uid] = now
			return r.evaluate(m.gang, now)
		}
	}
	return r.remove(m, now)
}

// RemoveFailedPod takes a pod that Failed: it counts nowhere, whatever is left of its object.
func (r *Registry) RemoveFailedPod(uid types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[uid]
	if m == nil {
		return Effects{}
	}
	r.cluster++
	return r.remove(m, now)
}

// RemoveSucceededPod takes a succeeded pod whose object is gone.
func (r *Registry) RemoveSucceededPod(uid types.UID, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[uid]
	if m == nil {
		return Effects{}
	}
	return r.remove(m, now)
}

// SetGroup takes a PodGroup as an informer shows it.
func (r *Registry) SetGroup(group *v2alpha2.PodGroup, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gang(Key{Namespace: group.Namespace, Name: group.Name})
	old := g.group
	g.group = group
	if old != nil && old.UID == group.UID && old.Generation == group.Generation && g.known() {
		return Effects{} // our own status write, or metadata
	}
	if old == nil || old.UID != group.UID {
		g.adopt(group)
	}
	g.tree, g.treeErr = podgroup.Tree(&group.Spec)
	for _, m := range g.members {
		r.locate(m)
	}
	g.changed = true                                    // for an attempt that is being made
	g.refusedAt, g.notBefore = time.Time{}, time.Time{} // another tree may fit: try at once
	e := r.evaluate(g, now)
	if g.leader != "" && g.leaderSeen {
		r.again(g)
		e.Activate = append(e.Activate, r.wake(g, now)...)
	}
	return e
}

// RemoveGroup takes a PodGroup that is gone. Waiting pods are held, a burst under way ends by its old tree, running pods
// are untouched (G12).
func (r *Registry) RemoveGroup(key Key, now time.Time) Effects {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.gangs[key]
	if g == nil {
		return Effects{}
	}
	g.group, g.tree, g.treeErr = nil, nil, nil
	g.admitted, g.admittedGroups = false, nil
	return r.evaluate(g, now)
}

// ClusterChanged tells that something happened that may help a refused gang: a node came or grew, a pod went.
func (r *Registry) ClusterChanged() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cluster++
}

// gang returns the gang of the key, made if it is not known.
func (r *Registry) gang(key Key) *gangState {
	g := r.gangs[key]
	if g == nil {
		g = &gangState{key: key, members: map[types.UID]*member{}}
		r.gangs[key] = g
	}
	return g
}

// known reports whether the tree of the present group has been built or refused.
func (g *gangState) known() bool { return g.tree != nil || g.treeErr != nil }

// adopt takes from a PodGroup's status what has to survive a restart.
func (g *gangState) adopt(group *v2alpha2.PodGroup) {
	g.admitted, g.partial.known = false, false
	g.admittedGroups = sets.New[string]()
	for _, c := range group.Status.Conditions {
		if c.Type == v2alpha2.ConditionAdmitted && c.Status == "True" {
			g.admitted = true
		}
	}
	for _, s := range group.Status.SubGroups {
		if s.Admitted {
			g.admittedGroups.Insert(s.Name)
		}
	}
}

// remove forgets a member.
func (r *Registry) remove(m *member, now time.Time) Effects {
	g := m.gang
	if p := r.plans[m.pod.UID]; p != nil {
		r.abort(p, AbortChanged, "pod "+m.pod.Name+" is gone")
		if m.state != assumed {
			p.settle(m.pod.UID, false)
			r.finish(p)
		}
	}
	g.changed = true
	m.forgetMark()
	delete(g.members, m.pod.UID)
	delete(r.members, m.pod.UID)
	delete(r.departing, m.pod.UID)
	r.ranks.Delete(m.pod.UID)
	if g.leader == m.pod.UID {
		g.leader = ""
	}
	return r.evaluate(g, now)
}

// prune forgets a gang of which nothing is left.
func (r *Registry) prune(g *gangState) {
	if g.group == nil && len(g.members) == 0 && g.plan == nil {
		delete(r.gangs, g.key)
		r.attention.Delete(g.key)
		r.partials.Delete(g.key)
	}
}

// over ends a member's part in its plan: it needs no binding any more. A plan that has not opened is aborted: somebody
// else bound the member, or an earlier binding of it that seemed to fail was accepted.
func (r *Registry) over(m *member) {
	if p := r.plans[m.pod.UID]; p != nil {
		r.abort(p, AbortChanged, "pod "+m.pod.Name+" is bound already")
		p.settle(m.pod.UID, true)
		r.finish(p)
	}
}

// locate finds the leaf of a member, or says why it has none.
func (r *Registry) locate(m *member) {
	m.leaf, m.misplaced = "", ""
	if m.gang.tree != nil {
		m.leaf, m.misplaced = leafOf(m.gang.tree, m.pod)
	}
}

// leafOf returns the leaf that a pod counts towards, or why it counts nowhere.
func leafOf(tree *gang.Tree, pod *corev1.Pod) (leaf, misplaced string) {
	name := pod.Labels[v2alpha2.SubGroupLabel]
	if tree.Root().IsLeaf() {
		if name != "" && name != "default" {
			return "", "names sub-group " + strconv.Quote(name) + ", but the PodGroup has no sub-groups"
		}
		return "", ""
	}
	g := tree.Group(name)
	switch {
	case name == "":
		return "", "has no label " + v2alpha2.SubGroupLabel
	case g == nil:
		return "", "names sub-group " + strconv.Quote(name) + ", which the PodGroup does not have"
	case !g.IsLeaf():
		return "", "names sub-group " + strconv.Quote(name) + ", which has sub-groups of its own; name one of those"
	default:
		return name, ""
	}
}

// keyOf returns the gang that a pod names; its Name is "" if it names none.
func keyOf(pod *corev1.Pod) Key {
	return Key{Namespace: pod.Namespace, Name: pod.Annotations[v2alpha2.PodGroupAnnotation]}
}

// usabilityChanged reports whether what keeps a waiting pod from being usable has changed: gates lifted, deletion begun, another leaf.
func usabilityChanged(old, pod *corev1.Pod) bool {
	return old == nil || len(old.Spec.SchedulingGates) != len(pod.Spec.SchedulingGates) ||
		(old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		old.Labels[v2alpha2.SubGroupLabel] != pod.Labels[v2alpha2.SubGroupLabel]
}

// String returns the task's name in metrics and logs.
func (t Task) String() string {
	switch t {
	case Minimum:
		return "minimum"
	case Refill:
		return "refill"
	default:
		return "surplus"
	}
}

// Configure sets the options. To be called before anything else happens.
func (r *Registry) Configure(opts Options) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opts = opts
}
