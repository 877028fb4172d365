// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/utils/clock"
)

// Queue is the stock scheduling queue without the gated pods of gangs. These are stored separately, in a map. The
// stock queue would visit all of its unschedulable pods, including gated ones, under its lock for every event in the
// cluster, move refused pods according to hints that cannot know what a whole gang lacks, and retry them whenever it
// is idle.
//
// A pod of a gang enters the stock queue when it is activated, as the leader of its gang. The members of a plan, and
// pods without a gang that pass one, are taken: they have their cycles without the stock queue, which takes no part in
// what happens to them until they are bound or come back. Other pods are passed to the stock queue unchanged.
type Queue struct {
	queue.SchedulingQueue // the stock queue
	hooks                 QueueHooks

	// moving is held while the place of a pod changes, here and in the stock queue. It comes before the locks of the
	// stock queue, which come before mu. Pop, which waits for a pod, does not hold it.
	moving  sync.Mutex
	mu      sync.Mutex
	pods    map[types.UID]*queued // the pods of gangs, and all that are in a cycle; guarded by mu
	untried untried               // guarded by mu
	// waitForRoom contains the pods without a gang, in the stock queue, that are activated when there is room. Guarded
	// by mu.
	waitForRoom map[types.UID]struct{}
}

// queued is what a Queue knows of a pod.
type queued struct {
	place queuePlace
	pod   *corev1.Pod // of a gang: the newest version
	gang  bool        // of a gang, and not deleted
	// cycling: between Pop or take and Done.
	cycling bool
	// again: it was activated after its cycle began, so it enters the stock queue if the cycle or the binding fails.
	again bool
	// attempts is how many cycles have failed, first when the pod entered the stock queue, or its first cycle began
	// without it; nil: neither has happened.
	attempts int
	first    *time.Time
}

// queuePlace is where a pod of a gang, or one in its cycle, is.
type queuePlace int

const (
	gated   queuePlace = iota // outside of the stock queue, until it is activated or taken
	inStock                   // in the stock queue, or popped from it
	taken                     // in its cycle or being bound, without the stock queue
)

// QueueHooks are the callbacks of a Queue, its clock and the pods. None of the functions may block, and none but
// Observe may call the queue.
type QueueHooks struct {
	// Clock tells how long pods take turns while a plan is handed out, and when pods enter.
	Clock clock.PassiveClock
	// Pods reads the store of the informer whose handlers call the queue. It is updated before they are called.
	Pods corelisters.PodLister
	// Gated reports whether a pod belongs to a gang and therefore waits outside of the stock queue until it is
	// activated.
	Gated func(*corev1.Pod) bool
	// Observe is called for every event that may make pods schedulable, after the scheduler's cache has processed it.
	Observe func(event fwk.ClusterEvent, oldObj, newObj any)
	// WaitsForRoom is called for a pod without a gang for which no node had room, and that was refused for no other
	// reason. It reports whether the pod will be activated as soon as there is room for it; events then do not move
	// the pod.
	WaitsForRoom func(*corev1.Pod) bool
	// Gone is called for such a pod when it is deleted, bound or tried again.
	Gone func(types.UID)
}

// NewQueue returns a Queue in front of the stock queue.
func NewQueue(stock queue.SchedulingQueue, hooks QueueHooks) *Queue {
	return &Queue{
		SchedulingQueue: stock, hooks: hooks, pods: map[types.UID]*queued{}, untried: untried{pods: map[types.UID]untriedPod{}},
		waitForRoom: map[types.UID]struct{}{},
	}
}

// Add implements queue.SchedulingQueue.
func (q *Queue) Add(ctx context.Context, pod *corev1.Pod) {
	q.moving.Lock()
	defer q.moving.Unlock()
	if !q.hooks.Gated(pod) {
		q.mu.Lock()
		q.untried.add(pod, q.hooks.Clock.Now())
		q.mu.Unlock()
		q.SchedulingQueue.Add(ctx, pod)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.pods[pod.UID]; p == nil {
		q.pods[pod.UID] = &queued{pod: pod, gang: true}
	} else if p.place == gated {
		p.pod = pod
	}
}

// Update implements queue.SchedulingQueue. The update may add a pod to a gang, remove it from one, or replace a pod
// of the same name.
func (q *Queue) Update(ctx context.Context, oldPod, newPod *corev1.Pod) {
	if oldPod != nil && oldPod.UID != newPod.UID {
		q.Delete(klog.FromContext(ctx), oldPod)
		q.Add(ctx, newPod)
		return
	}
	q.moving.Lock()
	defer q.moving.Unlock()
	switch q.recordUpdate(newPod) {
	case add:
		q.SchedulingQueue.Add(ctx, newPod)
	case update:
		q.SchedulingQueue.Update(ctx, oldPod, newPod)
	case remove:
		q.leaveRoomless(newPod.UID)
		q.SchedulingQueue.Delete(klog.FromContext(ctx), newPod)
	case nothing:
	}
}

// todo is what is to be done in the stock queue.
type todo int

const (
	nothing todo = iota
	add
	update
	remove
)

// recordUpdate records the new version of a pod.
func (q *Queue) recordUpdate(pod *corev1.Pod) todo {
	ofGang := q.hooks.Gated(pod)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.untried.update(pod, ofGang, q.hooks.Clock.Now())
	p := q.pods[pod.UID]
	switch {
	case p == nil && ofGang: // it joined a gang
		q.pods[pod.UID] = &queued{pod: pod, gang: true}
		return remove
	case p == nil:
		return update
	}
	p.pod = pod
	switch {
	case p.place == gated && ofGang, p.place == taken:
		p.gang = ofGang
		return nothing
	case p.place == gated: // it left its gang
		delete(q.pods, pod.UID)
		q.untried.add(pod, q.hooks.Clock.Now())
		return add
	case ofGang && !p.gang && !p.cycling: // it joined a gang; a running cycle is not interrupted
		p.place, p.gang = gated, true
		return remove
	case !ofGang && p.gang: // it left its gang while it was in the stock queue, and stays there
		p.gang = false
		if !p.cycling {
			delete(q.pods, pod.UID)
		}
	}
	return update
}

// Delete implements queue.SchedulingQueue.
func (q *Queue) Delete(logger klog.Logger, pod *corev1.Pod) {
	q.moving.Lock()
	defer q.moving.Unlock()
	q.mu.Lock()
	if p := q.pods[pod.UID]; p != nil && p.cycling {
		p.gang, p.again = false, false // its cycle ends with Done
	} else {
		delete(q.pods, pod.UID)
	}
	q.untried.remove(pod.UID)
	q.mu.Unlock()
	q.leaveRoomless(pod.UID)
	q.SchedulingQueue.Delete(logger, pod)
}

// Activate implements queue.SchedulingQueue: gated pods enter the stock queue. A pod whose cycle is running enters
// again when the cycle has failed.
func (q *Queue) Activate(logger klog.Logger, pods map[string]*corev1.Pod) {
	q.ActivateInOrder(logger, slices.Collect(maps.Values(pods)))
}

// ActivateInOrder is Activate for pods in the order of the queue. The scheduling loop may pop the first of them before
// the others have entered.
func (q *Queue) ActivateInOrder(logger klog.Logger, pods []*corev1.Pod) {
	others := map[string]*corev1.Pod{}
	for _, pod := range pods {
		if !q.enterStockQueue(logger, pod) {
			others[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	if len(others) > 0 {
		q.SchedulingQueue.Activate(logger, others)
	}
}

// enterStockQueue adds the latest version of a gated pod to the stock queue. It reports whether the pod was gated.
func (q *Queue) enterStockQueue(logger klog.Logger, pod *corev1.Pod) bool {
	q.moving.Lock()
	defer q.moving.Unlock()
	q.mu.Lock()
	p := q.pods[pod.UID]
	enters := p != nil && p.place == gated
	switch {
	case enters:
		p.place, pod, p.first = inStock, p.pod, cmp.Or(p.first, new(q.hooks.Clock.Now()))
	case p != nil && p.gang:
		p.again = true
	}
	q.mu.Unlock()
	if enters {
		q.SchedulingQueue.Add(klog.NewContext(context.Background(), logger), pod)
	}
	return enters
}

// take returns a pod for its cycle without the stock queue: a pod of a gang, or one without that had no cycle yet. nil:
// the queue does not have it, or it is in its cycle or being bound. The plugins at PreEnqueue are not asked.
func (q *Queue) take(logger klog.Logger, pod *corev1.Pod) *framework.QueuedPodInfo {
	q.moving.Lock()
	defer q.moving.Unlock()
	q.mu.Lock()
	p := q.pods[pod.UID]
	u, isUntried := q.untried.pods[pod.UID]
	switch {
	case p == nil && isUntried:
		p = &queued{place: inStock, pod: u.pod, first: &u.since}
		q.pods[pod.UID] = p
		q.untried.remove(pod.UID)
	case p == nil || !p.gang || p.cycling || p.place == taken:
		q.mu.Unlock()
		return nil
	}
	wasIn, now := p.place, q.hooks.Clock.Now()
	p.place, p.cycling, p.again = taken, true, false
	podInfo, _ := framework.NewPodInfo(p.pod) // affinity that cannot be parsed has no effect, as in the stock queue
	info := &framework.QueuedPodInfo{
		PodInfo: podInfo,
		QueueingParams: framework.QueueingParams{
			Timestamp: now, Attempts: p.attempts + 1, InitialAttemptTimestamp: cmp.Or(p.first, &now), UnschedulablePlugins: sets.New[string](),
		},
	}
	q.mu.Unlock()
	if wasIn == inStock {
		q.SchedulingQueue.Delete(logger, podInfo.Pod)
	} else {
		countActive(info)
	}
	return info
}

// countActive counts a pod that was taken as one that became active, as the stock queue does.
func countActive(info *framework.QueuedPodInfo) {
	event := framework.EventUnscheduledPodAdd.Label()
	metrics.SchedulerQueueIncomingPods.WithLabelValues("active", event).Inc()
	if label, ok := metrics.EntityToLabel(info); ok {
		metrics.SchedulerQueueIncomingEntities.WithLabelValues("active", event, label).Inc()
	}
}

// Pop implements queue.SchedulingQueue.
func (q *Queue) Pop(logger klog.Logger) (framework.QueuedEntityInfo, error) {
	entity, err := q.SchedulingQueue.Pop(logger)
	if info, ok := entity.(*framework.QueuedPodInfo); ok && info.Pod != nil {
		q.recordPop(info)
	}
	return entity, err
}

// recordPop records that a pod's cycle begins: earlier activations have had their effect.
func (q *Queue) recordPop(info *framework.QueuedPodInfo) {
	q.leaveRoomless(info.Pod.UID)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.untried.remove(info.Pod.UID)
	p := q.pods[info.Pod.UID]
	if p == nil {
		p = &queued{place: inStock, pod: info.Pod}
		q.pods[info.Pod.UID] = p
	}
	// A pod that has joined a gang since it was popped has its cycle all the same.
	p.place, p.cycling, p.again = inStock, true, false
	info.Attempts += p.attempts // the stock queue knows of those since the pod entered
	if p.first != nil {
		info.InitialAttemptTimestamp = p.first
	}
}

// Done implements queue.SchedulingQueue.
func (q *Queue) Done(uid types.UID) {
	q.moving.Lock()
	defer q.moving.Unlock()
	q.done(uid)
}

// done is Done while moving is held.
func (q *Queue) done(uid types.UID) {
	q.SchedulingQueue.Done(uid)
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.pods[uid]; p != nil {
		p.place, p.cycling = taken, false // being bound
		if !p.gang {
			delete(q.pods, uid)
		}
	}
}

// AddUnschedulablePodIfNotPresent implements queue.SchedulingQueue: a pod of a gang whose cycle has failed is gated
// again. One without a gang that was taken enters the stock queue as a new one. What has happened to the pod while its
// cycle ended, which may have been told before, is in its newest version: one that was deleted or bound is not kept.
func (q *Queue) AddUnschedulablePodIfNotPresent(logger klog.Logger, info *framework.QueuedPodInfo, cycle int64) error {
	q.moving.Lock()
	defer q.moving.Unlock()
	pod := newestVersion(q.hooks.Pods, info.Pod)
	switch {
	case pod == nil || pod.Spec.NodeName != "":
		q.done(info.Pod.UID)
		return nil
	case q.hooks.Gated(pod):
		q.gateAgain(logger, pod, info)
		return nil
	}
	info.PodInfo, _ = framework.NewPodInfo(pod) // as in take
	if q.recordFailedPlain(info) {
		q.SchedulingQueue.Add(klog.NewContext(context.Background(), logger), pod)
		return nil
	}
	if onlyRoomLacks(info) && q.hooks.WaitsForRoom(pod) {
		q.mu.Lock()
		q.waitForRoom[pod.UID] = struct{}{}
		q.mu.Unlock()
	}
	return q.SchedulingQueue.AddUnschedulablePodIfNotPresent(logger, info, cycle)
}

// recordFailedPlain records that the cycle of a pod without a gang has failed. It reports whether the stock queue does
// not know the pod, because it was taken.
func (q *Queue) recordFailedPlain(info *framework.QueuedPodInfo) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.pods[info.Pod.UID]
	delete(q.pods, info.Pod.UID)
	if p == nil || p.place != taken {
		return false
	}
	q.pods[info.Pod.UID] = &queued{place: inStock, pod: info.Pod, attempts: info.Attempts, first: info.InitialAttemptTimestamp}
	return true
}

// gateAgain ends the cycle of a gang's pod, of which info is; pod is the newest version. If it was activated during the
// cycle, it enters the stock queue immediately. Called while moving is held.
func (q *Queue) gateAgain(logger klog.Logger, pod *corev1.Pod, info *framework.QueuedPodInfo) {
	q.SchedulingQueue.Done(pod.UID)
	p := &queued{pod: pod, gang: true, attempts: info.Attempts, first: info.InitialAttemptTimestamp}
	q.mu.Lock()
	again := q.pods[pod.UID] != nil && q.pods[pod.UID].again
	if again {
		p.place = inStock
	}
	q.pods[pod.UID] = p
	q.mu.Unlock()
	if again {
		q.SchedulingQueue.Add(klog.NewContext(context.Background(), logger), pod)
	}
}

// MoveAllToActiveOrBackoffQueue implements queue.SchedulingQueue.
func (q *Queue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, oldObj, newObj any, preCheck queue.PreEnqueueCheck) {
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, oldObj, newObj, q.withoutRoomless(event, preCheck))
	q.hooks.Observe(event, oldObj, newObj)
}

// withoutRoomless excludes pods that are activated as soon as there is room for them from the check. The stock queue
// would try each of them after the removal of any pod, regardless of its node and size; with thousands of such pods
// it would do nothing else. Events that concern all pods are not affected.
func (q *Queue) withoutRoomless(event fwk.ClusterEvent, preCheck queue.PreEnqueueCheck) queue.PreEnqueueCheck {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waitForRoom) == 0 || framework.ClusterEventIsWildCard(event) {
		return preCheck
	}
	return func(pod *corev1.Pod) bool {
		q.mu.Lock()
		_, waits := q.waitForRoom[pod.UID]
		q.mu.Unlock()
		return !waits && (preCheck == nil || preCheck(pod))
	}
}

// leaveRoomless ends a pod's wait for room, if it waits.
func (q *Queue) leaveRoomless(uid types.UID) {
	q.mu.Lock()
	_, waits := q.waitForRoom[uid]
	delete(q.waitForRoom, uid)
	q.mu.Unlock()
	if waits {
		q.hooks.Gone(uid)
	}
}

// onlyRoomLacks reports whether a pod was refused only by filters that Shapes takes into account.
func onlyRoomLacks(info *framework.QueuedPodInfo) bool {
	return len(info.UnschedulablePlugins) > 0 && len(info.PendingPlugins) == 0 && roomPlugins.IsSuperset(info.UnschedulablePlugins) &&
		info.Pod.Status.NominatedNodeName == ""
}

// Gated returns the number of pods that wait outside of the stock queue.
func (q *Queue) Gated() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, p := range q.pods {
		if p.place == gated {
			n++
		}
	}
	return n
}

// PendingPods implements queue.SchedulingQueue. For debugging.
func (q *Queue) PendingPods() ([]*corev1.Pod, string) {
	pods, summary := q.SchedulingQueue.PendingPods()
	q.mu.Lock()
	defer q.mu.Unlock()
	known := len(pods)
	for _, p := range q.pods {
		if p.place == gated {
			pods = append(pods, p.pod)
		}
	}
	return pods, fmt.Sprintf("%s; pods gated by their gangs: %d", summary, len(pods)-known)
}

// RepeatDeletion tells the pods that wait in the queue that this bound pod was deleted.
func (q *Queue) RepeatDeletion(logger klog.Logger, pod *corev1.Pod) {
	q.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, pod, nil, nil)
}
