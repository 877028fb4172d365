// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// Backlog determines when refused gangs and pods without a gang are tried again. Events arrive after the scheduler's
// cache has processed them, are recorded in constant time, and are evaluated together a moment later, or when a
// leader's cycle begins.
type Backlog struct {
	registry *gangs.Registry
	clock    clock.Clock
	signal   chan struct{} // contains one element if events occurred that have not been evaluated

	eventMu sync.Mutex
	pending eventBatch // events that have not been evaluated; guarded by eventMu
	inCycle eventBatch // those since the current cycle began, which its attempt may not have seen; guarded by eventMu
	ended   podEvents  // pods on nodes that ended or request less; many: or there was an event of another kind that makes room; guarded by eventMu
	// sources are the pods of events that have not been evaluated and may help gangs whose plans failed; "": not of a
	// pod, or more than maxPodEvents. Guarded by eventMu.
	sources sets.Set[types.UID]

	vacated atomic.Bool  // see ReservationsEnded
	offered atomic.Bool  // DeviceClasses may offer other extended resources than when the shapes were counted
	lowest  atomic.Int32 // the lowest priority of any bound pod observed so far

	mu       sync.Mutex // acquired before the registry's lock; guards the fields below
	shapes   *kubescheduler.Shapes
	reserved *reservations.View    // for the calls of this moment
	raised   sets.Set[gangs.Shape] // shapes of which more pods fit than at the last evaluation
	gpus     kubescheduler.GPUTable
	plain    *plainPods
	labels   *labelTopics
	compared int32 // value of lowest when the pods without a gang were last compared with it
}

// eventBatch is what events have told since some time.
type eventBatch struct {
	causes    causes
	pods      podEvents
	relabeled sets.Set[string] // nodes whose labels changed; nil: none
}

// settle is how long events are collected before they are evaluated.
const settle = 2 * time.Millisecond

// New returns an empty backlog.
func New(c clock.Clock, shapes *kubescheduler.Shapes, registry *gangs.Registry) *Backlog {
	b := &Backlog{
		clock: c, registry: registry, shapes: shapes, signal: make(chan struct{}, 1),
		raised: sets.New[gangs.Shape](), labels: newLabelTopics(), sources: sets.New[types.UID](),
	}
	b.plain = newPlainPods(b.fits)
	b.lowest.Store(math.MaxInt32)
	return b
}

// Observe records an event. It is called by informers and binding goroutines, without any lock of the queue.
func (b *Backlog) Observe(event fwk.ClusterEvent, oldObj, newObj any) {
	c := causesOf(event, oldObj, newObj)
	if c == 0 {
		return
	}
	topics, relabeled := objectTopics(event, oldObj, newObj), relabeledNode(oldObj, newObj)
	b.eventMu.Lock()
	for _, batch := range []*eventBatch{&b.pending, &b.inCycle} {
		batch.pods.add(topics, oldObj, newObj)
		if relabeled != "" && batch.relabeled == nil {
			batch.relabeled = sets.New(relabeled)
		} else if relabeled != "" {
			batch.relabeled.Insert(relabeled)
		}
	}
	if old, isPod := oldObj.(*corev1.Pod); c&moreRoom != 0 && isPod {
		b.ended.add(nil, old)
	} else if c&moreRoom != 0 {
		b.ended.many = true
	}
	b.eventMu.Unlock()
	if event.Resource == fwk.DeviceClass {
		b.offered.Store(true)
	}
	if pod, ok := newObj.(*corev1.Pod); ok && oldObj == nil && pod.Spec.NodeName != "" {
		priority := corev1helpers.PodPriority(pod)
		for seen := b.lowest.Load(); priority < seen && !b.lowest.CompareAndSwap(seen, priority); {
			seen = b.lowest.Load()
		}
	}
	b.recordCauses(c, podOf(oldObj, newObj))
}

// podOf returns the pod of an event, "" if it is of another object.
func podOf(objects ...any) types.UID {
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok && pod != nil {
			return pod.UID
		}
	}
	return ""
}

// relabeledNode returns the name of a node that was added or removed, or whose labels changed, "" for other events.
// Pods may run on a node that is added: it existed before.
func relabeledNode(oldObj, newObj any) string {
	old, _ := oldObj.(*corev1.Node)
	updated, _ := newObj.(*corev1.Node)
	switch {
	case updated == nil && old == nil:
		return ""
	case updated == nil:
		return old.Name
	case old != nil && maps.Equal(old.Labels, updated.Labels):
		return ""
	}
	return updated.Name
}

// recordCauses records causes and schedules their evaluation. source is the pod of the event; "": it is not of a pod.
func (b *Backlog) recordCauses(c causes, source types.UID) {
	b.eventMu.Lock()
	b.pending.causes |= c
	b.inCycle.causes |= c
	if c&^(boundPod|otherPods) != 0 { // these help no gang that had a plan
		if len(b.sources) > maxPodEvents {
			source = ""
		}
		b.sources.Insert(source)
	}
	b.eventMu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// NominationGone records that a node on which room was kept for a nominated pod is free: no event reports it if the pod
// is assumed on another node.
func (b *Backlog) NominationGone() { b.recordCauses(nominationGone, "") }

// RoomClaimed records that a plan is in force: other gangs may have waited for the room that its gang claimed.
func (b *Backlog) RoomClaimed() { b.recordCauses(0, "") }

// ReservationsEnded records that room that was reserved when its pods were removed is free for all: more pods of any
// shape may fit.
func (b *Backlog) ReservationsEnded() { b.vacated.Store(true) }

// AttemptBegins is called when a pod is popped, before its cycle takes its snapshot.
func (b *Backlog) AttemptBegins() {
	b.eventMu.Lock()
	defer b.eventMu.Unlock()
	b.inCycle = eventBatch{}
}

// Ready contains the gangs and pods to be tried again.
type Ready struct {
	Gangs gangs.Effects
	Pods  []*corev1.Pod // without a gang
}

// Evaluate returns the gangs and pods that the events since the last call may help. It must also be called before a
// gang is planned.
func (b *Backlog) Evaluate(logger klog.Logger) Ready {
	b.mu.Lock()
	defer b.mu.Unlock()
	var topics []gangs.Topic
	for source := range b.takeSources() {
		topics = append(topics, gangs.EventOf(source))
	}
	if b.noneWaits() { // the other events are evaluated when a gang has been refused
		return Ready{Gangs: b.registry.RetryWaiting(nil, topics, b.clock.Now())}
	}
	b.reserved = b.registry.Reservations()
	b.eventMu.Lock()
	events, ended := b.pending, b.ended
	b.pending, b.ended = eventBatch{}, podEvents{}
	b.eventMu.Unlock()
	now := b.clock.Now()
	if ended.many {
		b.registry.RecordPreemptionMayHelp()
	} else if len(ended.pods) > 0 {
		b.registry.RecordPodsEnded(ended.pods, now)
	}
	if events.causes&(moreRoom|boundPod|nominationGone) != 0 {
		b.registry.RecordRoomChanged(now)
	}
	if b.offered.Swap(false) {
		b.shapes.UpdateOffered()
		b.vacated.Store(true) // also for shapes that were counted with the DeviceClass before its event
	}
	if events.causes&(moreRoom|nominationGone) != 0 { // a nominated pod may have been assumed
		b.updateShapes(logger)
	}
	if b.vacated.Swap(false) {
		b.raised.Insert(b.registry.AwaitedShapes()...)
		b.raised.Insert(b.plain.shapes()...)
	}
	raised := b.raised.UnsortedList()
	clear(b.raised)
	b.registry.RecordRelabeled(events.relabeled, now)
	topics = slices.Concat(topics, events.causes.topics(), b.labels.topics(events.pods))
	return Ready{Gangs: b.registry.RetryWaiting(raised, topics, now), Pods: b.plain.wake(raised, now)}
}

// takeSources returns the sources of events since the last call.
func (b *Backlog) takeSources() sets.Set[types.UID] {
	b.eventMu.Lock()
	defer b.eventMu.Unlock()
	sources := b.sources
	b.sources = sets.New[types.UID]()
	return sources
}

// noneWaits reports whether neither a gang nor a pod waits.
func (b *Backlog) noneWaits() bool { return len(b.plain.pods) == 0 && b.registry.WaitingGangs() == 0 }

// updateShapes updates the numbers of fitting pods, and records the shapes of which more pods fit.
func (b *Backlog) updateShapes(logger klog.Logger) {
	raised, err := b.shapes.UpdateNodes()
	if err != nil {
		logger.Error(err, "Failed to count free room; refused gangs are tried later")
		b.eventMu.Lock()
		b.pending.causes |= moreRoom
		b.eventMu.Unlock()
	}
	for shape := range raised.Shapes {
		b.raised.Insert(shape)
	}
	for domain := range raised.Domains {
		b.raised.Insert(domain)
	}
}

// Lacking returns which node of a plan, whose members are assumed, lacks room now, "" if none does.
func (b *Backlog) Lacking(logger klog.Logger, room kubescheduler.PlannedRoom) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.updateShapes(logger)
	return b.shapes.Lacking(room)
}

// fits returns how many pods of a shape fit into room that is not reserved from the asker. The caller holds mu.
func (b *Backlog) fits(at gangs.Shape, a reservations.Asker) int {
	n := at.FittingPods()
	switch shape := at.(type) {
	case *kubescheduler.Shape:
		n -= b.shapes.Reserved(shape, b.reserved, a)
	case *kubescheduler.DomainShape:
		n -= b.shapes.ReservedIn(shape, b.reserved, a)
	}
	return n
}

// EvaluatePods returns the pods without a gang for which there seems to be room, including pods that were woken some
// time ago and not tried since, and pods that could preempt another one by now. It is called periodically.
func (b *Backlog) EvaluatePods(logger klog.Logger) []*corev1.Pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.noneWaits() {
		return nil
	}
	b.reserved = b.registry.Reservations()
	b.updateShapes(logger)
	now := b.clock.Now()
	b.plain.forgetWoken(now, time.Second)
	pods := b.plain.wake(b.plain.shapes(), now)
	if lowest := b.lowest.Load(); lowest != b.compared {
		b.compared = lowest
		pods = append(pods, b.plain.wakeIf(b.mayPreempt, now)...)
	}
	return pods
}

// GPUs returns what the nodes have of GPUs now. The caller must not change it.
func (b *Backlog) GPUs(logger klog.Logger) []kubescheduler.NodeGPUs {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.updateShapes(logger)
	return b.shapes.ReadGPUs(&b.gpus, b.registry.Reservations())
}

// Run calls wake shortly after events that may help gangs or pods.
func (b *Backlog) Run(ctx context.Context, wake func(Ready)) {
	logger := klog.FromContext(ctx)
	timer := b.clock.NewTimer(settle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.signal:
		}
		timer.Reset(settle)
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		wake(b.Evaluate(logger))
	}
}
