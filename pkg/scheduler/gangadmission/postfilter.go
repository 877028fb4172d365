// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// PostFilter implements fwk.PostFilterPlugin. A plan of which a member was refused by its node is not bound; a single
// pod of a gang never preempts (docs/decisions, G15). A pod that passes between the members of a plan does not preempt:
// it is tried again when all of them are assumed.
func (pl *Admission) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if !isMember(pod) {
		if plan, _, _ := pl.registry.CommittingPlan(); plan != 0 {
			return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
		}
		return pl.preemptForPod(ctx, pod, statuses)
	}
	if data, err := state.Read(stateKey); err == nil {
		pl.recordRefusedMember(ctx, pod, string(data.(planned)), statuses)
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
}

// recordRefusedMember records that the planned node of a member refused it in its scheduling cycle (docs/decisions,
// G18).
func (pl *Admission) recordRefusedMember(ctx context.Context, pod *corev1.Pod, node string, statuses fwk.NodeToStatusReader) {
	why := statuses.Get(node)
	klog.FromContext(ctx).V(2).Info("Planned node refused the pod", "pod", klog.KObj(pod), "node", node, "status", why)
	taught := false
	// Without a single status no node was asked: a plugin refused the pod itself.
	switch asked, ok := statuses.(interface{ Len() int }); {
	case ok && asked.Len() == 0:
	case why.Plugin() == Name:
		taught = true // the next plan is made with the labels that the node has now
	case kubescheduler.LacksDevices(why) && deallocateOwn(ctx, pl.profile, pod):
		taught = true // the node would take other pods of the class
	default:
		taught = pl.gangs.recordRefusal(pl.profile, pod, node, why)
	}
	if first := pl.registry.RecordMemberRefused(pod.UID, "node "+node+" refused a member: "+why.Message(), taught, pl.gangs.clock.Now()); !first {
		pl.gangs.explained.Store(pod.UID, nil)
	}
}

// recordFailedMember records that a member was refused when it was reserved on its node, or prepared for it, or that
// its cycle ended with an error before. pod is the assumed pod, if it was assumed.
func (g *Gangs) recordFailedMember(ctx context.Context, profile kubescheduler.Profile, pod *corev1.Pod, status *fwk.Status) {
	node := pod.Spec.NodeName
	why := kubescheduler.StatusOnNode(status, node)
	// A plan that is aborted cancels the preparation of its members. A plugin may refuse the pod nevertheless.
	isReleased, fails := g.released.has(pod.UID)
	if !isReleased {
		g.apply(klog.FromContext(ctx), g.registry.AbortUnplaced(pod.UID, status.Message()+kubescheduler.ExtenderAdvice(profile, pod), g.clock.Now()))
	}
	if !fails && !(isReleased && node != "" && why.IsRejected() && why.Plugin() != Name) {
		return
	}
	klog.FromContext(ctx).V(2).Info("Planned node did not take the pod", "pod", klog.KObj(pod), "node", node, "status", status)
	taught := g.recordRefusal(profile, pod, node, why)
	g.apply(klog.FromContext(ctx), g.registry.RecordReason(pod.UID, "node "+node+" did not take a member: "+why.Message(), taught, g.clock.Now()))
}

// recordRefusal stores a refusal. It reports whether the next plan will be a different one.
func (g *Gangs) recordRefusal(profile kubescheduler.Profile, pod *corev1.Pod, node string, why *fwk.Status) bool {
	isMember, beside, late := g.registry.PodsBeside(pod.UID)
	return g.refusals.Record(profile, kubescheduler.Refusal{Pod: pod, Node: node, Beside: beside, Late: late, Status: why, IsMember: isMember}, g.clock.Now())
}

// isUnwinding reports whether the scheduler's snapshot of this cycle may contain the pod as assumed for a plan that was
// aborted. The scheduler releases it soon, or has done so since it took the snapshot.
func (g *Gangs) isUnwinding(uid types.UID) bool {
	return g.released.inSnapshot(uid) || g.registry.IsUnwindingPod(uid)
}

// needsNoReport reports whether a failure of a member's cycle needs no condition and no event of its own: the plan was
// aborted because of another member.
func (g *Gangs) needsNoReport(pod *corev1.Pod, err error) bool {
	_, explained := g.explained.LoadAndDelete(pod.UID)
	return explained || kubescheduler.RejectedBy(err, Name) || err != nil && strings.Contains(err.Error(), gangs.PlanAborted)
}
