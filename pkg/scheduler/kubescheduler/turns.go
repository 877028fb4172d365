// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
)

const (
	// membersTurn is how long the members of a plan are handed out before other pods may pass. Most plans are handed
	// out in less.
	membersTurn = 50 * time.Millisecond
	// othersTurn is how long other pods may pass then. The members' next turn is twice as long as that took, if the
	// cycle of the last of them took longer: a plan takes at most half as long again, however many pods without a gang
	// there are.
	othersTurn = 25 * time.Millisecond
)

// turns lets pods without a gang pass between the members of a large plan, which take seconds: those that have not been
// tried yet, and whose priority is not lower than that of the plan. They leave the members their room, which their
// filter knows (docs/decisions, G16). A plan whose members need more than room is not passed. Those that do not fit
// beside it come back to the queue, and are tried again when it has ended: it may have been aborted, and they could not
// preempt. Used only by the scheduling loop.
type turns struct {
	clock   clock.PassiveClock
	queue   *Queue
	members MemberSource
	held    func(*corev1.Pod) bool // whether a plugin at PreEnqueue keeps the pod out of the queue

	plan    uint64        // the plan that is being committed; 0: none
	since   time.Time     // begin of the turn of other pods
	ends    time.Time     // end of the current turn
	passing []*corev1.Pod // the turn of other pods: those that are left, in the order of the queue; nil: the members' turn
}

// nextBetween returns the pod to be scheduled before the next member of the plan, nil if there is none now.
func (t *turns) nextBetween(logger klog.Logger) *framework.QueuedPodInfo {
	now := t.clock.Now()
	plan, priority, passable := t.members.Committing()
	switch {
	case plan != t.plan:
		t.plan, t.passing, t.ends = plan, nil, now.Add(membersTurn)
		return nil
	case plan == 0 || !passable || t.passing == nil && now.Before(t.ends):
		return nil
	case t.passing == nil:
		t.passing, t.since, t.ends = t.queue.untriedFrom(priority), now, now.Add(othersTurn)
	}
	for len(t.passing) > 0 && now.Before(t.ends) {
		pod := t.passing[0]
		t.passing = t.passing[1:]
		if t.held(pod) {
			continue
		}
		if info := t.queue.take(logger, pod); info != nil { // nil: deleted in the meantime
			return info
		}
	}
	t.passing, t.ends = nil, now.Add(max(membersTurn, 2*now.Sub(t.since)))
	return nil
}

// untried are the pods without a gang that entered the queue and have had no cycle.
type untried struct {
	seq  int
	pods map[types.UID]untriedPod
}

type untriedPod struct {
	pod   *corev1.Pod
	seq   int       // order in which they came
	since time.Time // when it came, or lost its last scheduling gate
}

func (u *untried) add(pod *corev1.Pod, now time.Time) {
	u.seq++
	u.pods[pod.UID] = untriedPod{pod, u.seq, now}
}

// update stores a new version of a pod. gated: it belongs to a gang by now.
func (u *untried) update(pod *corev1.Pod, gated bool, now time.Time) {
	old, ok := u.pods[pod.UID]
	switch {
	case !ok:
	case gated:
		delete(u.pods, pod.UID)
	case len(old.pod.Spec.SchedulingGates) > 0 && len(pod.Spec.SchedulingGates) == 0:
		u.pods[pod.UID] = untriedPod{pod, old.seq, now}
	default:
		u.pods[pod.UID] = untriedPod{pod, old.seq, old.since}
	}
}

func (u *untried) remove(uid types.UID) { delete(u.pods, uid) }

// untriedFrom returns the pods that may pass a plan of this priority, in the order of the queue. Not nil.
func (q *Queue) untriedFrom(priority int32) []*corev1.Pod {
	q.mu.Lock()
	list := slices.Collect(maps.Values(q.untried.pods))
	q.mu.Unlock()
	list = slices.DeleteFunc(list, func(u untriedPod) bool {
		return corev1helpers.PodPriority(u.pod) < priority || len(u.pod.Spec.SchedulingGates) > 0 || disturbsPlan(u.pod)
	})
	slices.SortFunc(list, func(a, b untriedPod) int {
		return cmp.Or(cmp.Compare(corev1helpers.PodPriority(b.pod), corev1helpers.PodPriority(a.pod)), cmp.Compare(a.seq, b.seq))
	})
	pods := make([]*corev1.Pod, 0, len(list))
	for _, u := range list {
		pods = append(pods, u.pod)
	}
	return pods
}

// disturbsPlan reports whether a pod could take from a plan what RoomOfMembers does not count: whole domains, by
// required anti-affinity, or the last volume that a node can attach.
func disturbsPlan(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil
		})
}
