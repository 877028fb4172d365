// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// PostFilter implements fwk.PostFilterPlugin. A plan of which a member was refused by its node is not bound; a single
// pod of a gang never preempts (docs/decisions, G15). For other pods default preemption runs next, which preempts no
// part of a gang's minimum. A pod that passes between the members of a plan does not preempt: it is tried again when all of
// them are assumed.
func (pl *Admission) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if !isMember(pod) {
		if plan, _, _ := pl.registry.Committing(); plan != 0 {
			return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
		}
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	if data, err := state.Read(stateKey); err == nil {
		pl.recordRefusedMember(ctx, pod, string(data.(planned)), statuses)
	}
	return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
}

// recordRefusedMember records that the planned node of a member refused it in its scheduling cycle (docs/decisions, G18).
func (pl *Admission) recordRefusedMember(ctx context.Context, pod *corev1.Pod, node string, statuses fwk.NodeToStatusReader) {
	why := statuses.Get(node)
	klog.FromContext(ctx).V(2).Info("Planned node refused the pod", "pod", klog.KObj(pod), "node", node, "status", why)
	taught := false
	// Without a single status no node was asked: a plugin refused the pod itself.
	switch asked, ok := statuses.(interface{ Len() int }); {
	case ok && asked.Len() == 0:
	case kubescheduler.LacksDevices(why) && deallocateOwn(ctx, pl.profile, pod):
		taught = true // the node would take other pods of the class
	default:
		taught = pl.gangs.recordRefusal(pl.profile, pod, node, why)
	}
	if first := pl.registry.Refused(pod.UID, "node "+node+" refused a member: "+why.Message(), taught, pl.gangs.clock.Now()); !first {
		pl.gangs.explained.add(pod.UID)
	}
}
