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

// recordFailedMember records that a member was refused when it was reserved on its node, or prepared for it. pod is the assumed
// pod.
func (g *Gangs) recordFailedMember(ctx context.Context, profile kubescheduler.Profile, pod *corev1.Pod, status *fwk.Status) {
	node := pod.Spec.NodeName
	why := kubescheduler.StatusOnNode(status, node)
	// A plan that is aborted cancels the preparation of its members. A plugin may refuse the pod nevertheless.
	refuses := node != "" && g.released.has(pod.UID) && why.IsRejected() && why.Plugin() != Name
	if !g.released.fails(pod.UID) && !refuses {
		return
	}
	klog.FromContext(ctx).V(2).Info("Planned node did not take the pod", "pod", klog.KObj(pod), "node", node, "status", status)
	taught := g.recordRefusal(profile, pod, node, why)
	g.apply(klog.FromContext(ctx), g.registry.RecordReason(pod.UID, taught, g.clock.Now()))
}

// recordRefusal stores a refusal. It reports whether the next plan will be a different one.
func (g *Gangs) recordRefusal(profile kubescheduler.Profile, pod *corev1.Pod, node string, why *fwk.Status) bool {
	members, beside, late := g.registry.Beside(pod.UID)
	return g.refusals.Record(profile, kubescheduler.Refusal{Pod: pod, Node: node, Beside: beside, Late: late, Status: why, Members: members}, g.clock.Now())
}

// isUnwinding reports whether the scheduler's snapshot of this cycle may contain the pod as assumed for a plan that was
// aborted. The scheduler releases it soon, or has done so since it took the snapshot.
func (g *Gangs) isUnwinding(uid types.UID) bool {
	return g.released.inSnapshot(uid) || g.registry.Unwinds(uid)
}

// needsNoReport reports whether a failure of a member's cycle needs no condition and no event of its own: the plan was
// aborted because of another member.
func (g *Gangs) needsNoReport(pod *corev1.Pod, err error) bool {
	return g.explained.take(pod.UID) || kubescheduler.RejectedBy(err, Name) || err != nil && strings.Contains(err.Error(), gangs.PlanAborted)
}
