// SPDX-License-Identifier: Apache-2.0

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
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// wakeups determines when a refused gang is tried again. Events arrive after the scheduler's cache has processed
// them, are recorded in constant time, and are evaluated together a moment later, or when a leader's cycle begins.
type wakeups struct {
	queue    *kubescheduler.Queue
	registry *gangs.Registry

	// events contains the causes that have not been evaluated; during those of events since the current cycle began,
	// which its attempt may not have seen.
	events, during atomic.Uint32
	signal         chan struct{} // contains one element if events occurred that have not been evaluated

	clock clock.Clock
	// vacated: room that was reserved when its pods were removed is not reserved any longer. More pods of any shape may fit.
	vacated atomic.Bool
	// lowest is the lowest priority of any bound pod observed so far.
	lowest atomic.Int32

	// Pods of events that have not been evaluated, and of those since the current cycle began.
	podMu                  sync.Mutex
	podEvents, podsInCycle podEvents

	mu       sync.Mutex               // acquired before the registry's lock
	shapes   *kubescheduler.Shapes    // guarded by mu
	reserved *reservations.View       // for the calls of this moment; guarded by mu
	raised   map[gangs.Shape]struct{} // shapes of which more pods fit than at the last look; guarded by mu
	roomless *roomless                // guarded by mu
	labels   *labelTopics             // guarded by mu
	looked   int32                    // value of lowest when the pods without a gang were last compared with it; guarded by mu
}

// settle is how long events are collected before they are evaluated.
const settle = 2 * time.Millisecond

// newWakeups returns wakeups for a scheduler's cache.
func newWakeups(c clock.Clock, shapes *kubescheduler.Shapes, registry *gangs.Registry) *wakeups {
	w := &wakeups{
		clock: c, registry: registry, shapes: shapes, signal: make(chan struct{}, 1),
		raised: map[gangs.Shape]struct{}{}, roomless: newRoomless(), labels: newLabelTopics(),
	}
	w.roomless.fits = w.fits
	w.lowest.Store(math.MaxInt32)
	return w
}

// observe records an event. It is called by informers and binding goroutines, without any lock of the queue.
func (w *wakeups) observe(event fwk.ClusterEvent, oldObj, newObj any) {
	c := causesOf(event, oldObj, newObj)
	if c == 0 {
		return
	}
	w.podMu.Lock()
	w.podEvents.add(oldObj, newObj)
	w.podsInCycle.add(oldObj, newObj)
	w.podMu.Unlock()
	w.during.Or(uint32(c))
	if pod, ok := newObj.(*corev1.Pod); ok && oldObj == nil && pod.Spec.NodeName != "" {
		priority := corev1helpers.PodPriority(pod)
		for seen := w.lowest.Load(); priority < seen && !w.lowest.CompareAndSwap(seen, priority); {
			seen = w.lowest.Load()
		}
	}
	w.note(c)
}

// note schedules an evaluation of the causes.
func (w *wakeups) note(c causes) {
	w.events.Or(uint32(c))
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// extenderAnswered records that a plan need not wait for an HTTP extender any longer.
func (w *wakeups) extenderAnswered() {
	w.during.Or(uint32(extenderAnswers))
	w.note(extenderAnswers)
}

// attemptBegins is called when a pod is popped, before its cycle takes its snapshot.
func (w *wakeups) attemptBegins() {
	w.podMu.Lock()
	defer w.podMu.Unlock()
	w.during.Store(0)
	w.podsInCycle = podEvents{}
}

// ready contains the gangs and pods to be tried again.
type ready struct {
	effects gangs.Effects
	pods    []*corev1.Pod // without a gang
}

// look returns the gangs and pods that the events since the last look may help. before is a gang that is about to be
// planned: see Registry.Changed. Zero: none.
func (w *wakeups) look(logger klog.Logger, before gangs.Key) ready {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.noneWaits() {
		return ready{} // the events are evaluated when a gang has been refused
	}
	w.reserved = w.registry.Reservations()
	w.podMu.Lock()
	pods := w.podEvents
	w.podEvents = podEvents{}
	w.podMu.Unlock()
	events := causes(w.events.Swap(0))
	if events&(moreRoom|nominationGone) != 0 { // a nominated pod may have been assumed
		w.count(logger)
	}
	if w.vacated.Swap(false) {
		for _, at := range slices.Concat(w.registry.Shapes(), w.roomless.shapes()) {
			w.raised[at] = struct{}{}
		}
	}
	raised := slices.Collect(maps.Keys(w.raised))
	clear(w.raised)
	now := w.clock.Now()
	topics := append(events.topics(), w.labels.topics(pods)...)
	return ready{effects: w.registry.Changed(raised, topics, before, now), pods: w.roomless.wake(raised, now)}
}

// noneWaits reports whether neither a gang nor a pod waits.
func (w *wakeups) noneWaits() bool { return len(w.roomless.pods) == 0 && w.registry.Waiting() == 0 }

// count updates the numbers of fitting pods, and records the shapes of which more pods fit.
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

// lookAgain wakes pods without a gang for which there seems to be room, including pods that were woken some time ago
// and not tried since, and pods that could preempt another one by now.
func (w *wakeups) lookAgain(logger klog.Logger) []*corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.noneWaits() {
		return nil
	}
	w.reserved = w.registry.Reservations()
	w.count(logger)
	now := w.clock.Now()
	w.roomless.forgetful(now, time.Second)
	pods := w.roomless.wake(w.roomless.shapes(), now)
	if lowest := w.lowest.Load(); lowest != w.looked {
		w.looked = lowest
		pods = append(pods, w.roomless.wakeIf(w.mayPreempt, now)...)
	}
	return pods
}

// waitsForRoom records a pod without a gang that was refused because no node has room for it. It returns false if the
// stock queue should decide when the pod is tried again.
func (w *wakeups) waitsForRoom(pod *corev1.Pod) bool {
	logger := klog.Background()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reserved = w.registry.Reservations()
	w.count(logger)
	shape, err := w.shapes.Track(context.Background(), pod)
	if err != nil {
		logger.Error(err, "Counting free room failed", "pod", klog.KObj(pod))
		return false
	}
	if w.mayPreempt(pod) || w.fits(shape, gangs.Key{}, corev1helpers.PodPriority(pod)) > 0 {
		w.shapes.Release(shape)
		return false
	}
	w.roomless.add(pod, shape, w.clock.Now(), func() { w.shapes.Release(shape) })
	return true
}

// mayPreempt reports whether a pod could preempt another one. If so, every removed pod may matter to it.
func (w *wakeups) mayPreempt(pod *corev1.Pod) bool {
	never := pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	return !never && corev1helpers.PodPriority(pod) > w.lowest.Load()
}

// gone removes a pod without a gang.
func (w *wakeups) gone(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roomless.remove(uid)
}

// attempt contains the data of a refused attempt that are relevant for the next one.
type attempt struct {
	key     gangs.Key
	problem placement.Problem
	classes []*corev1.Pod // by class index: a pod of the class
	// roomDecides reports whether a class is filtered only by the free resources and the properties of the nodes
	// themselves. If not, the room of the class is ignored where counted is false. nil: the attempt was not refused
	// for lack of room.
	roomDecides func(class int) (decides, counted bool)
	// labelsDecide reports whether a class is filtered beside that only by the labels of other pods. nil: none is.
	labelsDecide func(class int) bool
	// nodes are the nodes of the attempt's snapshot.
	nodes []fwk.NodeInfo
	// task is the task that was planned. For tasks other than Minimum, room for any pod of the classes may help.
	task gangs.Task
	// priority is the gang's priority.
	priority int32
	took     time.Duration
	cut      bool      // the attempt ended for lack of time and will be continued
	tried    int       // choices that it tried, if it was cut
	until    time.Time // when something that the attempt took into account is no longer known; zero: never
	// extender: it was refused for lack of the answer of an HTTP extender, and no other event than that helps; nil: it
	// was not.
	extender *kubescheduler.ExtenderFailure
}

const (
	// sliceShare determines the pause after an attempt that was cut short and will be continued, as a multiple of its
	// duration, at least minPause.
	sliceShare = 4
	minPause   = 100 * time.Millisecond
)

// maxShapes bounds the shapes that are tracked for one gang. Omitting a shape can only cause unnecessary attempts.
const maxShapes = 32

// refuse records that a gang was refused in the current cycle, and what it waits for.
func (w *wakeups) refuse(logger klog.Logger, a attempt, why podgroup.Refusal) gangs.Effects {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reserved = w.registry.Reservations()
	w.count(logger)
	now := w.clock.Now()
	return w.registry.Refuse(a.key, why, w.waitAfter(logger, a, now), now)
}

// waitAfter returns what a gang waits for after a refused attempt.
func (w *wakeups) waitAfter(logger klog.Logger, a attempt, now time.Time) gangs.Wait {
	what, helps := gangs.Wait{Took: a.took, Tried: a.tried, Until: a.until}, moreRoom
	if a.cut {
		what.Again = now.Add(max(minPause, sliceShare*a.took))
	}
	if a.roomDecides == nil {
		helps = anything
	}
	var shapes []*kubescheduler.Shape
	var byLabels []*labelTopic
	rooms := make([]gangs.Shape, len(a.classes)) // by class; nil: unknown
	for class, pod := range a.classes {
		decides, counted := a.roomDecides(class)
		if !decides && (a.labelsDecide == nil || !a.labelsDecide(class)) {
			helps = anything
		} else if !decides {
			topics, err := w.labels.track(pod)
			if err != nil {
				helps = anything
			}
			byLabels = append(byLabels, topics...)
		}
		if !counted || len(shapes) == maxShapes {
			helps = anything // an increase of the room would not be noticed
			continue
		}
		shape, err := w.shapes.Track(context.Background(), pod)
		if err != nil {
			logger.Error(err, "Counting free room failed", "pod", klog.KObj(pod))
			helps = anything
			continue
		}
		shapes = append(shapes, shape)
		rooms[class] = shape
	}
	what.Fits = func(at gangs.Shape) int { return w.fits(at, a.key, a.priority) }
	fits := func(class int) int {
		if rooms[class] == nil {
			return unlimited
		}
		return what.Fits(rooms[class])
	}
	switch {
	case a.roomDecides == nil:
	case a.task != gangs.Minimum: // any pod may be placed by itself
		what.MayFit = func() bool { return anyFits(len(a.classes), fits) }
		for _, at := range rooms {
			if at != nil {
				what.Needs = append(what.Needs, gangs.Need{Shape: at}) // no particular number of pods is needed: any additional room may help
			}
		}
	default:
		demand := placement.NewDemand(a.problem)
		what.MayFit = func() bool { return demand.MayFit(fits) }
		for class := range rooms {
			if rooms[class] != nil {
				what.Needs = append(what.Needs, gangs.Need{Shape: rooms[class], Pods: leastOf(demand, class)})
			}
		}
	}
	if !slices.ContainsFunc(a.classes, dependsOnBound) {
		helps &^= boundPod
	}
	switch {
	case a.extender != nil:
		helps, what.Again = extenderAnswers, a.extender.Until
		what.Topics = helps.topics()
	case helps != moreRoom:
		what.Topics = helps.topics()
	case len(byLabels) > 0:
		helps = moreRoom | otherNodes
		what.Topics = append(otherNodes.topics(), anyPod)
	}
	for _, topic := range byLabels {
		if a.extender == nil {
			what.Topics = append(what.Topics, topic)
		}
	}
	what.Release = func() {
		w.labels.release(byLabels)
		for _, s := range shapes {
			w.shapes.Release(s)
		}
	}
	// The cache may contain the effect of an event that the attempt has not seen and that has not been observed yet.
	w.podMu.Lock()
	pods := w.podsInCycle
	w.podMu.Unlock()
	what.Missed = w.shapes.RaisedSince(a.nodes, shapes) || causes(w.during.Load())&(helps|nominationGone) != 0 ||
		len(byLabels) > 0 && slices.ContainsFunc(w.labels.topics(pods), func(t gangs.Topic) bool { return slices.Contains(what.Topics, t) })
	return what
}

// unlimited represents unknown room.
const unlimited = math.MaxInt

// leastOf returns the minimum number of pods of the class that must fit for the gang to be placed, assuming unlimited
// room for the other classes.
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
	low, high := 0, 1 // low is not sufficient
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

// run wakes gangs shortly after events that may help them.
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
		wake(w.look(logger, gangs.Key{}))
	}
}
