// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// MemberSource provides the members of a plan to the scheduling loop.
type MemberSource interface {
	// Next returns the member to be scheduled now, nil if no plan is being committed.
	Next() *corev1.Pod
	// Committing returns the number and the priority of the plan that is being committed; 0: none. passable: pods
	// without a gang may pass between its members.
	Committing() (plan uint64, priority int32, passable bool)
	// Lost is called if the queue does not contain the member that Next returned.
	Lost(uid types.UID)
	// Pace is called when a pod of a gang that is not in a plan is popped from the queue, before its cycle. It may
	// block for a short time.
	Pace()
	// Popped is called when the queue has handed out a pod, member or not.
	Popped(uid types.UID)
	// Failed is called when the pod's cycle or binding has failed and the scheduler's cache contains nothing of it
	// any longer. A pod that was assumed has its node.
	Failed(ctx context.Context, f framework.Framework, pod *corev1.Pod, status *fwk.Status)
	// Requeued is called after Failed, when the queue contains the pod again.
	Requeued(uid types.UID)
	// Explained reports whether the status of its PodGroup explains why the cycle of a gang's pod failed. If so, the
	// stock scheduler writes neither an event nor a condition.
	Explained(ctx context.Context, pod *corev1.Pod, err error) bool
	// Unwinding reports whether members of an aborted plan have their reservations still, for as long as a plugin
	// prepares them, and whether members have released them that the scheduler has not put back into the queue.
	Unwinding() (held, released bool)
}

const (
	// unwindLimit is how long the loop pauses, once while there are some of either kind, until reservations are
	// released and their members are back in the queue, because a plan made earlier would see them. This takes about a
	// millisecond, unless a member is waiting for volumes.
	unwindLimit = 200 * time.Millisecond
	unwindPoll  = time.Millisecond
	// lateLimit is how long the loop waits for the queue to receive a member: its informer handler may run a moment
	// later than Muster's.
	lateLimit = 20 * time.Millisecond
)

// Attach installs a Queue in front of the scheduler's own queue and makes the scheduling loop take the members of a
// committed plan consecutively. Between them no other pods are scheduled but those that may pass (turns). It must be
// called once, before the scheduler runs.
//
// hooks are those of the Queue.
func Attach(sched *scheduler.Scheduler, members MemberSource, hooks QueueHooks) *Queue {
	countClaims(sched)
	queue := NewQueue(sched.SchedulingQueue, hooks)
	sched.SchedulingQueue = queue
	failed := sched.FailureHandler
	sched.FailureHandler = func(ctx context.Context, f framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		pod := info.Pod // the stock queue may change info later
		members.Failed(ctx, f, pod, status)
		node := forgetNomination(f, pod.UID)
		if hooks.Gated(pod) && members.Explained(ctx, pod, status.AsError()) {
			countRefusal(f, status, start)
			if nominating.Mode() == fwk.ModeOverride {
				clearNomination(ctx, f, pod, node)
			}
			// As the stock failure handler, but without its event and its write to the API server in the loop.
			if err := queue.AddUnschedulablePodIfNotPresent(klog.FromContext(ctx), info, queue.SchedulingCycle()); err != nil {
				klog.FromContext(ctx).Error(err, "Failed to return a pod to the queue", "pod", klog.KObj(pod))
			}
		} else {
			failed(ctx, f, info, status, nominating, start)
			if node != "" { // the stock handler removes what the informer tells, which may be late
				clearNomination(ctx, f, pod, node)
			}
		}
		queue.endNomination(pod)
		members.Requeued(pod.UID)
	}
	held := func(pod *corev1.Pod) bool {
		profile := sched.Profiles[pod.Spec.SchedulerName]
		return profile == nil || GateOfOthers(context.Background(), profile, pod, "") != ""
	}
	l := &loop{queue: queue, members: members, turns: &turns{clock: hooks.Clock, queue: queue, members: members, held: held}}
	sched.NextEntity = l.nextEntity
	return queue
}

// loop selects the pod of the next scheduling cycle.
type loop struct {
	queue                *Queue
	members              MemberSource
	turns                *turns
	wasHeld, wasReleased bool // see MemberSource.Unwinding
}

// nextEntity returns the next member of the plan that is being committed, or else what the queue has next: a pod, since
// the groups of kube-scheduler are off (RefuseGates). nil: the queue is closed.
func (l *loop) nextEntity(logger klog.Logger) (framework.QueuedEntityInfo, error) {
	if info := l.turns.nextBetween(logger); info != nil {
		l.beginCycle(info.Pod)
		return info, nil
	}
	if info := l.nextMember(logger); info != nil {
		return info, nil
	}
	l.turns.nextBetween(logger) // the plan has ended
	l.waitForUnwinding()
	entity, err := l.queue.Pop(logger)
	if info, ok := entity.(*framework.QueuedPodInfo); ok && err == nil && info.Pod != nil {
		l.beginCycle(info.Pod)
	}
	return entity, err
}

// beginCycle begins the cycle of a pod that is in no plan.
func (l *loop) beginCycle(pod *corev1.Pod) {
	if l.queue.hooks.Gated(pod) {
		l.waitForUnwinding() // a plan may have been aborted while the queue was empty
		l.members.Pace()
	}
	l.members.Popped(pod.UID)
}

// nextMember returns the next member of the plan that is being committed, nil if there is none.
func (l *loop) nextMember(logger klog.Logger) *framework.QueuedPodInfo {
	for {
		member := l.members.Next()
		if member == nil {
			return nil
		}
		info := l.queue.take(logger, member)
		for deadline := time.Now().Add(lateLimit); info == nil && time.Now().Before(deadline); {
			time.Sleep(unwindPoll)
			info = l.queue.take(logger, member)
		}
		if info == nil {
			logger.V(2).Info("Planned pod is not in the scheduling queue", "pod", klog.KObj(member))
			l.members.Lost(member.UID)
			continue
		}
		l.members.Popped(member.UID)
		return info
	}
}

// waitForUnwinding waits, for a limited time, until no pod is assumed for a plan that was aborted.
func (l *loop) waitForUnwinding() {
	held, released := l.members.Unwinding()
	for deadline := time.Now().Add(unwindLimit); (held && !l.wasHeld || released && !l.wasReleased) && time.Now().Before(deadline); held, released = l.members.Unwinding() {
		time.Sleep(unwindPoll)
	}
	l.wasHeld, l.wasReleased = held, released
}

// countRefusal counts a failed cycle as the stock failure handler does.
func countRefusal(f framework.Framework, status *fwk.Status, start time.Time) {
	if status.IsRejected() {
		metrics.PodUnschedulable(f.ProfileName(), metrics.SinceInSeconds(start))
	} else {
		metrics.PodScheduleError(f.ProfileName(), metrics.SinceInSeconds(start))
	}
}

// newestVersion returns the pod as the informer's store has it, nil if it does not exist any more.
func newestVersion(pods corelisters.PodLister, pod *corev1.Pod) *corev1.Pod {
	newest, err := pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || newest.UID != pod.UID {
		return nil
	}
	return newest
}

// clearNomination removes the node that the binding cycle announced for a pod (status.nominatedNodeName), as the stock
// failure handler does: node, which the informer may not have seen yet, or, if that is empty, what the pod has.
func clearNomination(ctx context.Context, f framework.Framework, pod *corev1.Pod, node string) {
	newest := newestVersion(f.SharedInformerFactory().Core().V1().Pods().Lister(), pod)
	if newest == nil || newest.Status.NominatedNodeName == "" && node == "" {
		return
	}
	announced := newest.DeepCopy()
	announced.Status.NominatedNodeName = cmp.Or(newest.Status.NominatedNodeName, node)
	if err := patchNomination(ctx, f, announced); err != nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "Failed to remove the nominated node of a pod; its next attempt will", "pod", klog.KObj(newest))
	}
}

// patchNomination removes the nominated node of a pod, after the calls for it that are queued, if calls are
// (SchedulerAsyncAPICalls): among them may be the nomination.
func patchNomination(ctx context.Context, f framework.Framework, pod *corev1.Pod) error {
	if cacher := f.APICacher(); cacher != nil {
		_, err := cacher.PatchPodStatus(pod, nil, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride})
		return err
	}
	cleared := pod.Status.DeepCopy()
	cleared.NominatedNodeName = ""
	return util.PatchPodStatus(ctx, f.ClientSet(), pod.Name, pod.Namespace, &pod.Status, cleared)
}

// endNomination is called when a failed cycle has ended. A pod that is gated nominates no node, since the stock queue
// is not told of its changes.
func (q *Queue) endNomination(pod *corev1.Pod) {
	q.moving.Lock()
	defer q.moving.Unlock()
	q.mu.Lock()
	p := q.pods[pod.UID]
	isGated := p != nil && p.place == gated
	q.mu.Unlock()
	if isGated {
		q.DeleteNominatedPodIfExists(pod)
	}
}

// StatusOnNode returns the status of a plugin that the scheduler has wrapped as the result of a cycle on this node, and
// any other status as it is.
func StatusOnNode(status *fwk.Status, node string) *fwk.Status {
	if fit, ok := status.AsError().(*framework.FitError); ok && fit.Diagnosis.NodeToStatus != nil { //nolint:errorlint // the scheduler makes it and does not wrap it
		return fit.Diagnosis.NodeToStatus.Get(node)
	}
	return status
}

// RejectedBy reports whether a scheduling cycle failed because this plugin, and no other, rejected the pod.
func RejectedBy(err error, plugin string) bool {
	fit, ok := err.(*framework.FitError) //nolint:errorlint // the scheduler makes it and does not wrap it
	return ok && len(fit.Diagnosis.UnschedulablePlugins) == 1 && fit.Diagnosis.UnschedulablePlugins.Has(plugin) && len(fit.Diagnosis.PendingPlugins) == 0
}

// HasNoNodes reports whether a scheduling cycle failed because the cluster has no nodes; in this case no plugin ran.
func HasNoNodes(err error) bool { return errors.Is(err, scheduler.ErrNoNodesAvailable) }
