// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// refused records that the planned node of a member refused it in its scheduling cycle (docs/decisions, G18).
func (pl *Admission) refused(ctx context.Context, pod *corev1.Pod, node string, statuses fwk.NodeToStatusReader) {
	why := statuses.Get(node)
	klog.FromContext(ctx).V(2).Info("Planned node refused the pod", "pod", klog.KObj(pod), "node", node, "status", why)
	taught := false
	// Without a single status no node was asked: a plugin refused the pod itself.
	switch asked, ok := statuses.(interface{ Len() int }); {
	case ok && asked.Len() == 0:
	case kubescheduler.LacksDevices(why) && freeOwn(ctx, pl.profile, pod):
		taught = true // the node would take other pods of the class
	default:
		taught = pl.gangs.record(pl.profile, pod, node, why)
	}
	if first := pl.registry.Refused(pod.UID, "node "+node+" refused a member: "+why.Message(), taught, pl.gangs.clock.Now()); !first {
		pl.gangs.explained.add(pod.UID)
	}
}

// failed records that a member was refused when it was reserved on its node, or prepared for it. pod is the assumed
// pod.
func (g *Gangs) failed(ctx context.Context, profile kubescheduler.Profile, pod *corev1.Pod, status *fwk.Status) {
	node := pod.Spec.NodeName
	why := kubescheduler.StatusOnNode(status, node)
	// A plan that is aborted cancels the preparation of its members. A plugin may refuse the pod nevertheless.
	refuses := node != "" && g.released.has(pod.UID) && why.IsRejected() && why.Plugin() != Name
	if !g.released.fails(pod.UID) && !refuses {
		return
	}
	klog.FromContext(ctx).V(2).Info("Planned node did not take the pod", "pod", klog.KObj(pod), "node", node, "status", status)
	taught := g.record(profile, pod, node, why)
	g.apply(klog.FromContext(ctx), g.registry.RecordReason(pod.UID, taught, g.clock.Now()))
}

// record stores a refusal. It reports whether the next plan will be a different one.
func (g *Gangs) record(profile kubescheduler.Profile, pod *corev1.Pod, node string, why *fwk.Status) bool {
	members, beside, late := g.registry.Beside(pod.UID)
	return g.refusals.Record(profile, kubescheduler.Refusal{Pod: pod, Node: node, Beside: beside, Late: late, Status: why, Members: members}, g.clock.Now())
}

// isUnwinding reports whether the scheduler's snapshot of this cycle may contain the pod as assumed for a plan that was
// aborted. The scheduler releases it soon, or has done so since it took the snapshot.
func (g *Gangs) isUnwinding(uid types.UID) bool {
	return g.released.inSnapshot(uid) || g.registry.Unwinds(uid)
}

// explains reports whether a failure of a member's cycle needs no condition and no event of its own: the plan was
// aborted because of another member.
func (g *Gangs) explains(pod *corev1.Pod, err error) bool {
	return g.explained.take(pod.UID) || kubescheduler.RejectedBy(err, Name) || err != nil && strings.Contains(err.Error(), gangs.PlanAborted)
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

// fails reports whether the pod was released because it failed itself, on its node.
func (r *released) fails(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[uid]
}

func (r *released) has(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.pods[uid]
	return ok
}

func (r *released) any() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pods) > 0
}

// explained contains members whose current cycle fails for a reason that was reported for another member.
type explained struct {
	mu   sync.Mutex
	pods map[types.UID]struct{}
}

func (e *explained) add(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pods == nil {
		e.pods = map[types.UID]struct{}{}
	}
	e.pods[uid] = struct{}{}
}

// take reports whether the pod was added, and removes it.
func (e *explained) take(uid types.UID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.pods[uid]
	delete(e.pods, uid)
	return ok
}
