// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
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
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
)

const (
	// membersTurn is how long the members of a plan are handed out before other pods may pass. Most plans are handed
	// out in less.
	membersTurn = 50 * time.Millisecond
	// othersTurn is how long other pods may pass then. The members' next turn is twice as long as that took, if the
	// cycle of the last of them took longer: a plan takes at most half as long again, however many pods without a gang
	// there are. A gang that passes takes as long as its own plan.
	othersTurn = 25 * time.Millisecond
)

// turns lets others pass between the members of a large plan, which take seconds: pods without a gang whose priority is
// not lower than that of the plan, and gangs of a higher priority, whose members are then handed out first. They leave
// the plan its room, ports and hostname domains: the members that have not had their cycle count as nominated to their
// nodes (Queue.NominatedPodsForNode). A plan with members that need more than that, devices, unbound volumes or larger
// domains, is not passed. Used only by the scheduling loop.
type turns struct {
	clock   clock.PassiveClock
	queue   *Queue
	members MemberSource
	less    fwk.LessFunc // the order of the queue

	plan    uint64                    // the plan that is being committed; 0: none
	passes  bool                      // it passes another plan
	since   time.Time                 // begin of the turn of other pods
	ends    time.Time                 // end of the current turn
	passing []*corev1.Pod             // the turn of other pods: those that are left, in the order of the queue, leaders for their gangs; nil: the members' turn
	tried   map[types.UID]*corev1.Pod // pods without a gang that had a cycle since the plan was made, or that which it passes
}

// nextBetween returns the pod to be scheduled before the next member of the plan, nil if there is none now.
func (t *turns) nextBetween(logger klog.Logger) *framework.QueuedPodInfo {
	now := t.clock.Now()
	plan, priority, passable, passes := t.members.Committing()
	t.queue.promises.kept.Store(passes)
	continued := plan != 0 && (passes || t.passes) // the plan before passes, or is passed by, this one
	t.passes = passes
	switch {
	case plan != t.plan:
		if !continued {
			t.retryPassed(logger)
		}
		t.queue.promises.forgetAll()
		t.plan, t.passing, t.ends = plan, nil, now.Add(membersTurn)
		return nil
	case plan == 0 || !passable || t.passing == nil && now.Before(t.ends):
		return nil
	case t.passing == nil:
		t.passing, t.since, t.ends = t.activePassers(priority), now, now.Add(othersTurn)
	}
	for len(t.passing) > 0 && now.Before(t.ends) {
		pod := t.passing[0]
		t.passing = t.passing[1:]
		if t.queue.hooks.Gated(pod) && !t.members.MayPass(pod.UID) { // the plan may be doomed by now: it stays in the queue
			continue
		}
		if info := t.queue.PopSpecificPod(logger, pod); info != nil { // nil: deleted in the meantime
			if t.tried == nil {
				t.tried = map[types.UID]*corev1.Pod{}
			}
			if !t.queue.hooks.Gated(pod) { // for gangs the registry knows it
				t.tried[pod.UID] = pod
			}
			t.queue.promises.kept.Store(true)
			return info
		}
	}
	t.passing, t.ends = nil, now.Add(max(membersTurn, 2*now.Sub(t.since)))
	return nil
}

// retryPassed activates the pods without a gang that had a cycle between members of a plan and still wait: the plan may
// have been aborted, and they could not preempt.
func (t *turns) retryPassed(logger klog.Logger) {
	if len(t.tried) > 0 {
		t.queue.ActivateInOrder(logger, slices.Collect(maps.Values(t.tried)))
		t.tried = nil
	}
}

// activePassers returns the active pods that may pass a plan of this priority, in the order of the queue. Pods without
// a gang are left out that may take from a plan what is not promised to it: devices, and by required anti-affinity
// whole domains.
func (t *turns) activePassers(priority int32) []*corev1.Pod {
	var infos []*framework.QueuedPodInfo
	for _, pod := range t.queue.PodsInActiveQ() {
		if t.tried[pod.UID] != nil {
			continue
		}
		passes := corev1helpers.PodPriority(pod) >= priority && len(pod.Spec.ResourceClaims) == 0 && !excludesPods(pod)
		if t.queue.hooks.Gated(pod) {
			passes = t.members.MayPass(pod.UID)
		}
		if !passes {
			continue
		}
		if info, ok := t.queue.GetPod(pod.Name, pod.Namespace); ok {
			infos = append(infos, info)
		}
	}
	sort.Slice(infos, func(i, j int) bool { return t.less(infos[i], infos[j]) })
	pods := make([]*corev1.Pod, len(infos))
	for i, info := range infos {
		pods[i] = info.Pod
	}
	return pods
}

// excludesPods reports whether a pod has required anti-affinity.
func excludesPods(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// promises are what the members of a plan that wait for their cycles will occupy. The filters of a passing pod ask for
// it on hundreds of nodes, so what follows from the spec of a member is computed once per class and plan.
type promises struct {
	of   func(node string) (pods []*corev1.Pod, classes []string) // MemberSource.Promised
	kept atomic.Bool                                              // a pod is in its cycle that leaves members their room

	mu    sync.Mutex
	infos map[string]*framework.PodInfo // by class: that of one member, with its resources; guarded by mu
}

// forgetAll is called when another plan begins.
func (p *promises) forgetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.infos = nil
}

// nominateMember returns a member as one that is nominated at the highest priority.
func (p *promises) nominateMember(member *corev1.Pod, class string) *framework.PodInfo {
	pod := *member
	pod.Spec.Priority = &highest
	p.mu.Lock()
	defer p.mu.Unlock()
	first, ok := p.infos[class]
	if !ok {
		var err error
		if first, err = framework.NewPodInfo(&pod); err != nil { // its affinity cannot be parsed; it has no effect then
			first = &framework.PodInfo{Pod: &pod}
		}
		first.CalculateResource() // which the copies contain too
		if p.infos == nil {
			p.infos = map[string]*framework.PodInfo{}
		}
		p.infos[class] = first
	}
	info := *first
	info.Pod = &pod
	return &info
}

// highest is the priority of promised members, whatever theirs is: the filters then see them for pods of any priority.
var highest int32 = math.MaxInt32

// isPromised reports whether a pod that is nominated for a node is a promised member.
func isPromised(pod *corev1.Pod) bool { return corev1helpers.PodPriority(pod) == highest }

// NominatedPodsForNode implements fwk.PodNominator. While others pass between the members of a plan, the members that
// wait for their cycles are nominated to their planned nodes: the filters then see what they will occupy on the node.
func (q *Queue) NominatedPodsForNode(node string) []fwk.PodInfo {
	nominated := q.SchedulingQueue.NominatedPodsForNode(node)
	if !q.promises.kept.Load() {
		return nominated
	}
	pods, classes := q.promises.of(node)
	for i, member := range pods {
		nominated = append(nominated, q.promises.nominateMember(member, classes[i]))
	}
	return nominated
}
