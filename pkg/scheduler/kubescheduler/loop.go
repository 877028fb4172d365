package kubescheduler

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Burst is where the scheduling loop gets the members of a plan from.
type Burst interface {
	// Next returns the member to be scheduled now, nil if no plan is being committed.
	Next() *corev1.Pod
	// Lost tells that the queue does not have the member that Next returned.
	Lost(uid types.UID)
	// Popped tells that the queue handed the pod out, member or not.
	Popped(uid types.UID)
	// Failed tells that the pod's cycle or binding has failed, and that nothing of it is left in the scheduler's cache.
	Failed(uid types.UID)
	// Unwinding reports whether the reservations of an aborted plan have not all been given back yet.
	Unwinding() bool
}

const (
	// unwindLimit is how long the loop pauses, once per abort, for reservations to be given back: a plan made before
	// would see them. It takes about a millisecond, unless a member is busy with volumes.
	unwindLimit = 200 * time.Millisecond
	unwindPoll  = time.Millisecond
	// lateLimit is how long the loop waits for the queue to learn of a member: its informer handler may run a moment
	// after ours.
	lateLimit = 20 * time.Millisecond
)

// Attach makes the scheduling loop take the members of a committed plan back to back, so that no other pod comes between
// them. To be called once, before the scheduler runs. Without it members come through the queue like other pods, and
// plans may turn out stale; they are never bound in part either way.
func Attach(sched *scheduler.Scheduler, burst Burst) {
	failed := sched.FailureHandler
	sched.FailureHandler = func(ctx context.Context, f framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		burst.Failed(info.Pod.UID)
		failed(ctx, f, info, status, nominating, start)
	}
	pop := sched.NextPod
	wasUnwinding := false
	sched.NextPod = func(logger klog.Logger) (*framework.QueuedPodInfo, error) {
		for {
			member := burst.Next()
			if member == nil {
				break
			}
			info := sched.SchedulingQueue.PopSpecificPod(logger, member)
			for deadline := time.Now().Add(lateLimit); info == nil && time.Now().Before(deadline); {
				time.Sleep(unwindPoll)
				info = sched.SchedulingQueue.PopSpecificPod(logger, member)
			}
			if info == nil {
				logger.V(2).Info("Planned pod is not in the scheduling queue", "pod", klog.KObj(member))
				burst.Lost(member.UID)
				continue
			}
			// The queue looks up by name: a pod recreated under the same name goes its own way.
			if info.Pod.UID != member.UID {
				burst.Lost(member.UID)
			}
			burst.Popped(info.Pod.UID)
			return info, nil
		}
		unwinding := burst.Unwinding()
		if unwinding && !wasUnwinding {
			for deadline := time.Now().Add(unwindLimit); unwinding && time.Now().Before(deadline); unwinding = burst.Unwinding() {
				time.Sleep(unwindPoll)
			}
		}
		wasUnwinding = unwinding
		info, err := pop(logger)
		if err == nil && info != nil && info.Pod != nil {
			burst.Popped(info.Pod.UID)
		}
		return info, err
	}
}
