// SPDX-License-Identifier: Apache-2.0

package count

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/scheduler/marks"
)

// State is the progress of a pod towards its node.
type State int

const (
	// Pending: the pod has no node.
	Pending State = iota
	// Assumed: the scheduler has assigned a node.
	Assumed
	// Posted: the API server accepted the binding.
	Posted
	// Bound: an informer has shown the binding.
	Bound
	// Succeeded: the pod has succeeded.
	Succeeded
)

// Pod is a pod with all that decides how it is counted.
type Pod struct {
	*corev1.Pod
	State      State
	Leaf       *gang.Group  // nil: the pod counts towards none
	Mark       marks.PlanID // the plan that bound it; zero: none is known
	GPUs       int64        // number of GPUs that it requests
	IsReleased bool         // it is bound, and does not count any longer
	IsGated    bool         // a plugin keeps it from the scheduling queue
	IsOurs     bool         // it names a profile of this scheduler
	IsOwn      bool         // it was bound by a plan for its current PodGroup
	IsFormer   bool         // it belongs to a former run, and has no Leaf
	IsSlow     bool         // it takes longer to end than a victim may
}

// IsBound reports whether a pod is bound: nodeName is set (or the binding was accepted), and the pod is neither
// terminating, nor released, nor Failed (docs/decisions, G11).
func IsBound(pod *corev1.Pod, state State, isReleased bool) bool {
	return (state == Bound || state == Posted) && pod.DeletionTimestamp == nil && !isReleased && pod.Status.Phase != corev1.PodFailed
}

// NeedsDeletion reports whether a pod ends only if its deletion is requested. The API server deletes a pod without a
// grace period in two writes. If the client that requested it, or the API server, dies between them, the pod is
// terminating, but only another request, or its kubelet, completes the deletion: see BeforeDelete in
// k8s.io/apiserver/pkg/registry/rest. That of a pod with finalizers is completed when the last of them is removed.
func NeedsDeletion(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0 && len(pod.Finalizers) == 0
}

// Controller returns the UID of a pod's controlling owner, "" for a bare pod.
func Controller(pod *corev1.Pod) types.UID {
	for i := range pod.OwnerReferences {
		if o := &pod.OwnerReferences[i]; o.Controller != nil && *o.Controller {
			return o.UID
		}
	}
	return ""
}

// isReady reports whether the pod has the condition Ready.
func isReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Entry is the place of one pod in the Numbers of its gang, which alone changes it. It refers to neither the pod nor
// the gang: its owner finds the pod by UID.
type Entry struct {
	UID    types.UID
	order  Order
	share  Share
	pool   *pool // in which it waits; nil: it does not wait
	inLeaf int   // position in its leafQueue
	inAge  int   // position in one of pool.byAge
}

// Order returns the pod's sort key, as of the last call of Numbers.Set.
func (e *Entry) Order() *Order { return &e.order }

// Share returns what the pod contributes. It must not be modified.
func (e *Entry) Share() *Share { return &e.share }

// IsUsable reports whether a plan with this profile may place the pod now.
func (e *Entry) IsUsable(profile string) bool {
	return e.share.Flags&IsUsable != 0 && e.pool != nil && e.pool.scheduler == profile
}

// Share is the contribution of one pod to the numbers of its gang. It depends only on the pod. A change of a pod
// therefore costs the difference of two shares, regardless of the size of the gang. It is comparable; the zero Share
// contributes nothing.
type Share struct {
	Leaf       *gang.Group // nil: the pod does not count
	Flags      Flags
	Scheduler  string // schedulerName of a pod that may wait for a plan, else ""
	stage      stage
	other      string // schedulerName of a bound pod that names none of our profiles, else ""
	controller types.UID
	mark       marks.PlanID
	gpus, held int64 // GPUs that the pod requests, and those that it uses as a bound pod
	priority   int32
	ready      bool // it is bound, and its containers are ready
}

// stage determines the counts to which a pod with a leaf contributes.
type stage int8

const (
	uncounted stage = iota // terminating, released or failed
	waits                  // has no node
	isAssumed              // was assigned a node by the scheduler
	isPlaced               // is bound
	isDone                 // has succeeded
)

// Flags are boolean properties of a pod; the pods with each property are counted.
type Flags uint32

const (
	hasPriority   Flags = 1 << iota // has not succeeded
	HasEnded                        // has succeeded
	IsLive                          // has not finished and is not being deleted: the run of its controller continues
	isMarked                        // is bound, with a mark
	IsOwn                           // is bound by a plan for this PodGroup
	IsReleased                      // is released, and needs to be deleted
	IsStanding                      // is bound, in any sub-group
	IsUsable                        // waits, and has no property that excludes it from a plan
	IsTerminating                   // waits, and is being deleted
	IsMisplaced                     // waits, and does not count
	IsGated                         // waits, with scheduling gates or gated by another plugin
	IsStray                         // is bound, and does not count
	IsLeaving                       // is bound, and is being deleted
	IsWaiting                       // waits for one of our profiles, in a plan or not
	IsOurs                          // names one of our profiles, in any state
	IsFormer                        // is bound, and belongs to a former run
	IsSlow                          // is bound, counts, and is no victim, nor is what would end with it
	nFlags        = iota
)

// has reports whether the pod has one of the properties.
func (s *Share) has(f Flags) bool { return s.Flags&f != 0 }

// ShareOf returns the contribution of a pod.
func ShareOf(p *Pod) Share {
	failed, done, standing := p.Status.Phase == corev1.PodFailed, p.State == Succeeded, IsBound(p.Pod, p.State, p.IsReleased)
	deleted := p.DeletionTimestamp != nil || p.IsFormer && !standing && !done
	s := Share{Leaf: p.Leaf, controller: Controller(p.Pod), mark: p.Mark}
	set := func(f Flags, is bool) {
		if is {
			s.Flags |= f
		}
	}
	switch {
	case done:
		s.stage = isDone
	case deleted || p.IsReleased || failed:
	case standing:
		s.stage, s.ready = isPlaced, isReady(p.Pod)
	case p.State == Assumed:
		s.stage = isAssumed
	default:
		s.stage = waits
	}
	switch {
	case failed || done:
	case p.State == Bound:
		s.gpus, s.held = p.GPUs, p.GPUs // including while it is being deleted
	case !deleted && !p.IsReleased:
		s.gpus = p.GPUs
	}
	if standing && !p.IsOurs {
		s.other = p.Spec.SchedulerName
	}
	if !done {
		s.priority = PodPriority(p.Pod)
	}
	set(hasPriority, !done)
	set(HasEnded, done)
	set(IsLive, !done && !deleted && !p.IsFormer)
	set(isMarked, standing && p.Mark.GroupUID != "")
	set(IsOwn, p.IsOwn)
	set(IsStanding, standing)
	set(IsOurs, p.IsOurs)
	set(IsFormer, standing && p.IsFormer)
	set(IsSlow, standing && s.Leaf != nil && p.IsSlow)
	switch p.State {
	case Bound:
		set(IsReleased, p.IsReleased && NeedsDeletion(p.Pod) && !failed)
		set(IsStray, s.Leaf == nil && !deleted && !failed)
		set(IsLeaving, s.Leaf != nil && deleted && !failed)
	case Pending:
		if deleted {
			set(IsTerminating, true)
			break
		}
		gated := len(p.Spec.SchedulingGates) > 0 || p.IsGated
		s.Scheduler = p.Spec.SchedulerName
		set(IsWaiting, p.IsOurs)
		set(IsMisplaced, s.Leaf == nil)
		set(IsGated, s.Leaf != nil && gated)
		set(IsUsable, s.Leaf != nil && !gated)
	}
	return s
}
