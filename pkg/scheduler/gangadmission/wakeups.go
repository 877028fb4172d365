package gangadmission

import (
	"context"
	"maps"
	"math"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// wakeups tells when a refused gang is to be tried again. Events reach it after the scheduler's cache has taken them, are
// noted in constant time, and are looked at together a moment later, or when a leader's cycle begins.
type wakeups struct {
	queue *kubescheduler.Queue
	list  *waitlist

	// events are the causes that have not been looked at; roomSeq and otherSeq count the events that may give room and the
	// others. An attempt that was made while they moved has perhaps not seen what happened.
	events            atomic.Uint32
	roomSeq, otherSeq atomic.Uint64
	signal            chan struct{} // holds one element if events came and nobody has looked

	// began are the counts when the cycle that runs now began. Only used by the scheduling loop.
	beganRoom, beganOther uint64

	clock clock.Clock
	// vacated: room is not kept any more that was when its pods went. Any shape may fit more often.
	vacated atomic.Bool
	// reserved returns the room that is kept now; nil: none ever is.
	reserved func() *kubescheduler.Reserved
	// lowest is the lowest priority that a bound pod was seen with.
	lowest atomic.Int32

	mu       sync.Mutex
	shapes   *kubescheduler.Shapes // guarded by mu
	raised   map[room]struct{}     // shapes of which more fit than at the last look; guarded by mu
	roomless *roomless             // guarded by mu
	looked   int32                 // lowest when the pods without a gang were compared with it; guarded by mu
}

// settle is how long events are collected before they are looked at.
const settle = 2 * time.Millisecond

// newWakeups returns wakeups for a scheduler's cache; byRank sorts gangs as the queue would.
func newWakeups(c clock.Clock, shapes *kubescheduler.Shapes, byRank func([]gangstate.Key)) *wakeups {
	w := &wakeups{
		clock: c, list: newWaitlist(c, byRank), shapes: shapes, signal: make(chan struct{}, 1),
		raised: map[room]struct{}{}, roomless: newRoomless(),
	}
	w.list.kept, w.roomless.kept = w.kept, w.kept
	w.lowest.Store(math.MaxInt32)
	return w
}

// observe notes an event. Called under no lock of the queue, by informers and binding goroutines.
func (w *wakeups) observe(event fwk.ClusterEvent, oldObj, newObj any) {
	c := causesOf(event, oldObj, newObj)
	if c == 0 {
		return
	}
	if c&(moreRoom|nominationGone) != 0 {
		w.roomSeq.Add(1)
	}
	if c&^moreRoom != 0 {
		w.otherSeq.Add(1)
	}
	if pod, ok := newObj.(*corev1.Pod); ok && oldObj == nil && pod.Spec.NodeName != "" {
		priority := corev1helpers.PodPriority(pod)
		for seen := w.lowest.Load(); priority < seen && !w.lowest.CompareAndSwap(seen, priority); {
			seen = w.lowest.Load()
		}
	}
	w.note(c)
}

// note has causes looked at soon.
func (w *wakeups) note(c causes) {
	w.events.Or(uint32(c))
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// attemptBegins is called when a pod is popped, before its cycle takes its snapshot.
func (w *wakeups) attemptBegins() {
	w.beganRoom, w.beganOther = w.roomSeq.Load(), w.otherSeq.Load()
}

// ready is what is to be tried again.
type ready struct {
	gangs []gangstate.Key
	pods  []*corev1.Pod // without a gang
}

// look returns what the events since the last look may help.
func (w *wakeups) look(logger klog.Logger) ready {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lookLocked(logger)
}

func (w *wakeups) lookLocked(logger klog.Logger) ready {
	if w.list.len() == 0 && len(w.roomless.pods) == 0 {
		return ready{} // what happened is looked at when a gang has been refused
	}
	events := causes(w.events.Swap(0))
	if events&(moreRoom|nominationGone) != 0 { // of a deletion that was missed it is not known which it was
		w.count(logger)
	}
	if w.vacated.Swap(false) {
		for _, at := range slices.Concat(w.list.rooms(), w.roomless.rooms()) {
			w.raised[at] = struct{}{}
		}
	}
	raised := slices.Collect(maps.Keys(w.raised))
	clear(w.raised)
	return ready{gangs: w.list.changed(raised, events), pods: w.roomless.wake(raised, w.list.clock.Now())}
}

// count brings the counts of what fits up to date, and remembers of which shapes more fit.
func (w *wakeups) count(logger klog.Logger) {
	shapes, err := w.shapes.Update()
	if err != nil {
		logger.Error(err, "Counting free room failed, refused gangs are tried later")
		w.events.Or(uint32(moreRoom))
	}
	for _, s := range shapes {
		w.raised[s] = struct{}{}
	}
}

// lookAgain wakes pods without a gang for which there seems to be room, also those that were woken a while ago and not tried
// since, and those that could take the room of another by now. It makes gangs eligible again that may fit and sleep.
func (w *wakeups) lookAgain(logger klog.Logger) []*corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.list.len() == 0 && len(w.roomless.pods) == 0 {
		return nil
	}
	w.count(logger)
	w.list.forgetful(time.Second)
	now := w.list.clock.Now()
	w.roomless.forgetful(now, time.Second)
	pods := w.roomless.wake(w.roomless.rooms(), now)
	if lowest := w.lowest.Load(); lowest != w.looked {
		w.looked = lowest
		pods = append(pods, w.roomless.wakeIf(w.mayPreempt, now)...)
	}
	return pods
}

// waitsForRoom takes a pod without a gang that was refused because no node has room for it. false: the stock queue is to
// decide when it is tried again.
func (w *wakeups) waitsForRoom(pod *corev1.Pod) bool {
	logger := klog.Background()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count(logger)
	shape, err := w.shapes.Track(context.Background(), pod)
	if err != nil {
		logger.Error(err, "Counting free room failed", "pod", klog.KObj(pod))
		return false
	}
	if w.mayPreempt(pod) || shape.Fits()-w.kept(shape, gangstate.Key{}, corev1helpers.PodPriority(pod)) > 0 {
		w.shapes.Release(shape)
		return false
	}
	w.roomless.add(pod, shape, w.list.clock.Now(), func() { w.shapes.Release(shape) })
	return true
}

// mayPreempt reports whether a pod could take the room of another. Then every pod that goes may matter to it.
func (w *wakeups) mayPreempt(pod *corev1.Pod) bool {
	never := pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	return !never && corev1helpers.PodPriority(pod) > w.lowest.Load()
}

// gone forgets a pod without a gang.
func (w *wakeups) gone(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roomless.remove(uid)
}

// attempt is a refused attempt, as far as it matters for the next.
type attempt struct {
	key     gangstate.Key
	problem placement.Problem
	classes []*corev1.Pod // by class index: a pod of the class
	// roomDecides reports whether what the nodes have free is all that a class is judged by beside the nodes' own
	// properties. For a class of which it does not decide, room is not counted where counted is false. nil: the attempt was
	// not refused for want of room.
	roomDecides func(class int) (decides, counted bool)
	// nodes are those of the attempt's snapshot.
	nodes []fwk.NodeInfo
	// task is what was to be planned. For any but Minimum room for any pod of the classes may help.
	task gangstate.Task
	// priority is the gang's.
	priority int32
	took     time.Duration
	cut      bool
}

// maxShapes bounds the shapes that one gang is watched by. What is left out can only make the gang be tried in vain.
const maxShapes = 32

// park records what a gang waits for that was refused in the cycle that runs now. It returns what is to be
// woken because of what has happened since the last look.
func (w *wakeups) park(logger klog.Logger, a attempt) ready {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count(logger)
	r := refused{took: a.took, cut: a.cut, priority: a.priority, causes: moreRoom, unit: a.task == gangstate.SurplusUnit, single: a.task == gangstate.SurplusSingle}
	if a.roomDecides == nil {
		r.causes = anything
	}
	var shapes []*kubescheduler.Shape
	rooms := make([]room, len(a.classes)) // by class; nil: not known
	for class, pod := range a.classes {
		decides, counted := a.roomDecides(class)
		if !decides {
			r.causes = anything
		}
		if !counted || len(shapes) == maxShapes {
			r.causes = anything // nothing tells when more fit
			continue
		}
		shape, err := w.shapes.Track(context.Background(), pod)
		if err != nil {
			logger.Error(err, "Counting free room failed", "pod", klog.KObj(pod))
			r.causes = anything
			continue
		}
		shapes = append(shapes, shape)
		rooms[class] = shape
	}
	fits := func(class int) int {
		if rooms[class] == nil {
			return unlimited
		}
		return rooms[class].Fits() - w.kept(rooms[class], a.key, a.priority)
	}
	switch {
	case a.roomDecides == nil:
	case a.task != gangstate.Minimum: // any pod is welcome
		r.mayFit = func() bool { return anyFits(len(a.classes), fits) }
		for _, at := range rooms {
			if at != nil {
				r.needs = append(r.needs, need{room: at}) // no number of it, but any of it may help
			}
		}
	default:
		demand := placement.NewDemand(a.problem)
		r.mayFit = func() bool { return demand.MayFit(fits) }
		for class := range rooms {
			if rooms[class] != nil {
				r.needs = append(r.needs, need{room: rooms[class], pods: leastOf(demand, class)})
			}
		}
	}
	r.release = func() {
		for _, s := range shapes {
			w.shapes.Release(s)
		}
	}
	// The cache may have taken an event that the attempt has not seen, and that is not observed yet.
	r.recheck = w.shapes.RaisedSince(a.nodes, shapes) || w.roomSeq.Load() != w.beganRoom || r.causes&^moreRoom != 0 && w.otherSeq.Load() != w.beganOther
	w.list.park(a.key, r)
	return w.lookLocked(logger)
}

// unlimited stands for room that is not known.
const unlimited = math.MaxInt

// leastOf returns the fewest pods of the class that must fit for the gang to be placed, however many fit of the others.
func leastOf(demand *placement.Demand, class int) int {
	enough := func(n int) bool {
		return demand.MayFit(func(c int) int {
			if c == class {
				return n
			}
			return unlimited
		})
	}
	if enough(0) {
		return 0
	}
	low, high := 0, 1 // low is not enough
	for ; high < 1<<30 && !enough(high); high *= 2 {
		low = high
	}
	return low + 1 + sort.Search(high-low-1, func(i int) bool { return enough(low + 1 + i) })
}

// anyFits reports whether a pod of any class fits.
func anyFits(classes int, fits func(class int) int) bool {
	for class := range classes {
		if fits(class) > 0 {
			return true
		}
	}
	return false
}

// leave ends the wait of a gang that was placed or does not wait any more.
func (w *wakeups) leave(key gangstate.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list.leave(key)
	w.note(0) // others may have waited for what this one claimed
}

// leaveIdle ends the wait of those of the gangs that idle returns: they have nothing to plan any more, and room that is free
// must not be kept for them.
func (w *wakeups) leaveIdle(keys []gangstate.Key, idle func([]gangstate.Key) []gangstate.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.list.leaveIdle(keys, idle) {
		w.note(0)
	}
}

// placed ends the wait of a gang for which a plan was found. single: for single surplus pods; a sub-group waits on.
func (w *wakeups) placed(key gangstate.Key, single bool) {
	if !single {
		w.leave(key)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list.leaveSingle(key)
	w.note(0)
}

// run wakes gangs soon after events that may help them.
func (w *wakeups) run(ctx context.Context, wake func(ready)) {
	logger := klog.FromContext(ctx)
	timer := w.clock.NewTimer(settle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.signal:
		}
		timer.Reset(settle)
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		wake(w.look(logger))
	}
}
