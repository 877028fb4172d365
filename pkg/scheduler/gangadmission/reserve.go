// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/backlog"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// Reserve implements fwk.ReservePlugin.
func (pl *Admission) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if !isMember(pod) {
		if kept := pod.Status.NominatedNodeName; kept != "" && kept != node {
			pl.gangs.backlog.NominationGone()
		}
		if podgroup.MaxRuntime(pod, nil) > 0 {
			pl.registry.RecordPlainPodAssumed(pod, node, backlog.AskerOf(pod, pl.gangs.clock.Now()))
		}
		return nil
	}
	if err := pl.registry.AssumeMember(pod.UID, node, pl.gangs.clock.Now()); err != nil {
		return fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	pl.gangs.claims.begin(pl.profile, pod)
	return nil
}

// Unreserve implements fwk.ReservePlugin. It is also called for pods whose Reserve failed, and in binding goroutines.
func (pl *Admission) Unreserve(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	if !isMember(pod) {
		return
	}
	pl.gangs.released.add(pod.UID, false) // until memberSource.Requeued
	effects, fails, explained := pl.registry.ReleaseUnexplained(pod.UID, pl.gangs.clock.Now())
	if fails {
		pl.gangs.released.add(pod.UID, true)
	}
	if explained {
		pl.gangs.explained.Store(pod.UID, nil)
	}
	pl.gangs.apply(klog.FromContext(ctx), effects)
}

// Permit implements fwk.PermitPlugin: a member passes only if its plan is in force. If the plan is doomed, a member
// that would be prepared waits until the plan is aborted; one that would not waits at the barrier.
func (pl *Admission) Permit(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (*fwk.Status, time.Duration) {
	if !isMember(pod) {
		return nil, 0
	}
	if err := pl.registry.PermitMember(pod.UID); err != nil {
		return fwk.NewStatus(fwk.Unschedulable, err.Error()), 0
	}
	if pl.registry.IsDoomed(pod.UID) && !kubescheduler.SkipsPreBind(ctx, pl.profile, state, pod, node) && pl.registry.HoldOnNode(pod.UID) {
		return fwk.NewStatus(fwk.Wait), pl.args.BarrierTimeout.Duration
	}
	return nil, 0
}

// released contains the members whose reservation the plugins have released, but the scheduler possibly has not put
// back into the queue. It calls Unreserve first, then its cache releases the room: a plan made in between would be
// refused, or lack a member, although the room is about to become free.
type released struct {
	mu   sync.Mutex
	pods map[types.UID]bool  // true: the member itself failed, on its node
	late sets.Set[types.UID] // removed since the current cycle began: its snapshot may contain them
}

func (r *released) add(uid types.UID, fails bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pods == nil {
		r.pods = map[types.UID]bool{}
	}
	r.pods[uid] = fails
}

func (r *released) remove(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pods, uid)
	r.late.Insert(uid)
}

// beginCycle forgets the pods that were removed before, which the next snapshot cannot contain.
func (r *released) beginCycle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = sets.New[types.UID]()
}

// inSnapshot reports whether the snapshot of the current cycle may contain the pod.
func (r *released) inSnapshot(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.pods[uid]
	return ok || r.late.Has(uid)
}

// has reports whether the pod was released, and whether this was because it failed itself, on its node.
func (r *released) has(uid types.UID) (isReleased, fails bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fails, isReleased = r.pods[uid]
	return isReleased, fails
}

// hasAny reports whether any of the pods was released.
func (r *released) hasAny(pods []*corev1.Pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pods) > 0 && slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		_, isReleased := r.pods[pod.UID]
		return isReleased
	})
}

func (r *released) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pods) > 0
}

// toCancel contains assumed members of aborted plans whose preparation, or wait for it, must be cancelled.
type toCancel struct {
	mu   sync.Mutex
	pods []types.UID
}

// cancelPreparation cancels the preparation (PreBind) of assumed members of aborted plans, which occupy their room
// until it ends. A member whose preparation has not begun yet is cancelled by a later call; each call also processes
// the members left by earlier ones.
func (g *Gangs) cancelPreparation(uids []types.UID) {
	g.toCancel.mu.Lock()
	defer g.toCancel.mu.Unlock()
	g.toCancel.pods = append(g.toCancel.pods, uids...)
	g.toCancel.pods = slices.DeleteFunc(g.toCancel.pods, func(uid types.UID) bool {
		if !g.registry.IsUnwindingPod(uid) {
			return true
		}
		found := false
		for _, profile := range g.profiles {
			if pod := profile.GetPodInPreBind(uid); pod != nil {
				found = true
				pod.CancelPod(gangs.PlanAborted)
			}
			if pod := profile.GetWaitingPod(uid); pod != nil {
				found = true
				pod.Reject(Name, gangs.PlanAborted)
			}
		}
		return found
	})
}
