// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
)

// Queue is the stock scheduling queue without the gated pods of gangs. These are stored separately, in a map. The
// stock queue would visit all of its unschedulable pods, including gated ones, under its lock for every event in the
// cluster, move refused pods according to hints that cannot know what a whole gang lacks, and retry them whenever it
// is idle.
//
// A pod of a gang enters the stock queue when it is activated or popped by name (its gang's leader, the members of a
// plan) and leaves it when its cycle fails. Pods without a gang are passed to the stock queue unchanged.
type Queue struct {
	queue.SchedulingQueue // the stock queue
	hooks                 QueueHooks

	mu      sync.Mutex
	waiting map[types.UID]*corev1.Pod // guarded by mu; gated pods
	// entered contains the pods of gangs that entered the stock queue and have not been gated again: they are queued,
	// in their cycle, or being bound. True: the pod was activated after its cycle began, so it enters again if the
	// cycle fails. Guarded by mu.
	entered map[types.UID]bool
	cycling map[types.UID]struct{} // pods of any kind between Pop and Done; guarded by mu
	untried untried                // guarded by mu
	// waitForRoom contains the pods without a gang, in the stock queue, that are activated when there is room. Guarded
	// by mu.
	waitForRoom map[types.UID]struct{}
}

// QueueHooks are the callbacks of a Queue, and its clock. None of the functions may block or call the queue.
type QueueHooks struct {
	// Clock tells how long pods take turns while a plan is handed out.
	Clock clock.PassiveClock
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
		SchedulingQueue: stock, hooks: hooks, waitForRoom: map[types.UID]struct{}{},
		waiting: map[types.UID]*corev1.Pod{}, entered: map[types.UID]bool{}, cycling: map[types.UID]struct{}{},
		untried: untried{pods: map[types.UID]untriedPod{}},
	}
}

// Add implements queue.SchedulingQueue.
func (q *Queue) Add(ctx context.Context, pod *corev1.Pod) {
	if !q.hooks.Gated(pod) {
		q.mu.Lock()
		q.untried.add(pod)
		q.mu.Unlock()
		q.SchedulingQueue.Add(ctx, pod)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, entered := q.entered[pod.UID]; !entered {
		q.waiting[pod.UID] = pod
	}
}

// Update implements queue.SchedulingQueue. The update may add a pod to a gang, remove it from one, or replace a pod
// of the same name.
func (q *Queue) Update(ctx context.Context, oldPod, newPod *corev1.Pod) {
	if oldPod != nil && oldPod.UID != newPod.UID {
		q.Delete(oldPod)
		q.Add(ctx, newPod)
		return
	}
	q.mu.Lock()
	_, waits := q.waiting[newPod.UID]
	_, entered := q.entered[newPod.UID]
	_, cycling := q.cycling[newPod.UID]
	gated := q.hooks.Gated(newPod)
	q.untried.update(newPod, gated)
	switch {
	case waits && gated:
		q.waiting[newPod.UID] = newPod
		q.mu.Unlock()
		return
	case waits:
		delete(q.waiting, newPod.UID)
		q.mu.Unlock()
		q.SchedulingQueue.Add(ctx, newPod)
		return
	case !gated:
		delete(q.entered, newPod.UID) // it left its gang while it was in the stock queue, and stays there
	case !entered && !cycling: // it joined a gang; a running cycle is not interrupted
		q.waiting[newPod.UID] = newPod
		q.mu.Unlock()
		q.SchedulingQueue.Delete(newPod)
		return
	}
	q.mu.Unlock()
	q.SchedulingQueue.Update(ctx, oldPod, newPod)
}

// Delete implements queue.SchedulingQueue.
func (q *Queue) Delete(pod *corev1.Pod) {
	q.mu.Lock()
	delete(q.waiting, pod.UID)
	delete(q.entered, pod.UID)
	q.untried.remove(pod.UID)
	q.mu.Unlock()
	q.leaveRoomless(pod.UID)
	q.SchedulingQueue.Delete(pod) // the stock queue may contain the nomination of a gated pod
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
	q.mu.Lock()
	newest, waits := q.waiting[pod.UID]
	if waits {
		delete(q.waiting, pod.UID)
		q.entered[pod.UID] = false
	} else if _, entered := q.entered[pod.UID]; entered {
		q.entered[pod.UID] = true
	}
	q.mu.Unlock()
	if waits {
		q.SchedulingQueue.Add(klog.NewContext(context.Background(), logger), newest)
	}
	return waits
}

// PopSpecificPod implements queue.SchedulingQueue.
func (q *Queue) PopSpecificPod(logger klog.Logger, pod *corev1.Pod) *framework.QueuedPodInfo {
	q.enterStockQueue(logger, pod)
	return q.recordPop(q.SchedulingQueue.PopSpecificPod(logger, pod))
}

// Pop implements queue.SchedulingQueue.
func (q *Queue) Pop(logger klog.Logger) (*framework.QueuedPodInfo, error) {
	info, err := q.SchedulingQueue.Pop(logger)
	return q.recordPop(info), err
}

// recordPop records that a pod's cycle begins: earlier activations have had their effect.
func (q *Queue) recordPop(info *framework.QueuedPodInfo) *framework.QueuedPodInfo {
	if info == nil || info.Pod == nil {
		return info
	}
	q.leaveRoomless(info.Pod.UID)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.untried.remove(info.Pod.UID)
	q.cycling[info.Pod.UID] = struct{}{}
	if _, entered := q.entered[info.Pod.UID]; entered {
		q.entered[info.Pod.UID] = false
	}
	return info
}

// Done implements queue.SchedulingQueue.
func (q *Queue) Done(uid types.UID) {
	q.SchedulingQueue.Done(uid)
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.cycling, uid)
}

// AddUnschedulableIfNotPresent implements queue.SchedulingQueue: a pod of a gang whose cycle has failed is gated
// again.
func (q *Queue) AddUnschedulableIfNotPresent(logger klog.Logger, info *framework.QueuedPodInfo, cycle int64) error {
	pod := info.Pod
	if !q.hooks.Gated(pod) {
		q.mu.Lock()
		delete(q.entered, pod.UID)
		delete(q.cycling, pod.UID)
		q.mu.Unlock()
		if onlyRoomLacks(info) && q.hooks.WaitsForRoom(pod) {
			q.mu.Lock()
			q.waitForRoom[pod.UID] = struct{}{}
			q.mu.Unlock()
		}
		return q.SchedulingQueue.AddUnschedulableIfNotPresent(logger, info, cycle)
	}
	q.gateAgain(logger, pod)
	return nil
}

// gateAgain ends the cycle of a gang's pod. If it was activated during the cycle, the pod enters the stock queue
// immediately.
func (q *Queue) gateAgain(logger klog.Logger, pod *corev1.Pod) {
	q.SchedulingQueue.Done(pod.UID)
	q.mu.Lock()
	again := q.entered[pod.UID]
	delete(q.cycling, pod.UID)
	delete(q.entered, pod.UID)
	q.waiting[pod.UID] = pod
	q.mu.Unlock()
	if again {
		q.enterStockQueue(logger, pod)
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
	return len(q.waiting)
}

// PendingPods implements queue.SchedulingQueue. For debugging.
func (q *Queue) PendingPods() ([]*corev1.Pod, string) {
	pods, summary := q.SchedulingQueue.PendingPods()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, pod := range q.waiting {
		pods = append(pods, pod)
	}
	return pods, fmt.Sprintf("%s; pods gated by their gangs: %d", summary, len(q.waiting))
}

// RepeatDeletion tells the pods that wait in the queue that this bound pod was deleted.
func (q *Queue) RepeatDeletion(logger klog.Logger, pod *corev1.Pod) {
	q.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, pod, nil, nil)
}
