// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// SkipNominations makes the scheduler not write status.nominatedNodeName of the pods selected by member of which only the
// devices have to be written before they are bound (docs/decisions, G18). Kube-scheduler writes the field before it prepares a pod (PreBind),
// which may take minutes, so that a cluster autoscaler expects the pod on that node. The devices of claims are written in
// milliseconds, and a plan keeps the room of its members without the field. For a gang the write would only delay those of
// its claims, for all of which each of its bindings waits. It must be called before the scheduler runs.
func SkipNominations(sched *scheduler.Scheduler, member func(*corev1.Pod) bool) {
	for name, f := range sched.Profiles {
		var others []string
		for _, p := range f.ListPlugins().PreBind.Enabled {
			if p.Name != names.DynamicResources {
				others = append(others, p.Name)
			}
		}
		sched.Profiles[name] = unnominatedFramework{f, member, others}
	}
}

// unnominatedFramework is a profile whose binding cycles nominate no node for members with devices.
type unnominatedFramework struct {
	framework.Framework
	member func(*corev1.Pod) bool
	others []string // plugins at PreBind that do not prepare devices
}

// RunPreBindPreFlights returns Skip for members with devices, so that the binding cycle nominates no node, and for
// members that wait at Permit: their plan is about to be aborted. If they are prepared, PreBind runs all the same: the
// inner framework has noted in the state which of its plugins have something to do.
func (f unnominatedFramework) RunPreBindPreFlights(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	status := f.Framework.RunPreBindPreFlights(ctx, state, pod, node)
	if !status.IsSuccess() || !f.member(pod) {
		return status
	}
	onlyDevices := state.GetSkipPreBindPlugins().HasAll(f.others...) && f.isPreparedAtOnce(pod)
	if onlyDevices || f.Framework.WillWaitOnPermit(ctx, pod) {
		return fwk.NewStatus(fwk.Skip)
	}
	return status
}

// WillWaitOnPermit returns false for members, so that the binding cycle nominates no node for those that wait.
func (f unnominatedFramework) WillWaitOnPermit(ctx context.Context, pod *corev1.Pod) bool {
	return !f.member(pod) && f.Framework.WillWaitOnPermit(ctx, pod)
}

// RunPreBindPlugins makes the preparation of members cancellable. The binding cycle does so only if the PreFlights did
// not return Skip.
func (f unnominatedFramework) RunPreBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if !f.member(pod) || f.GetPodInPreBind(pod.UID) != nil {
		return f.Framework.RunPreBindPlugins(ctx, state, pod, node)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.AddPodInPreBind(pod.UID, cancel)
	defer f.RemovePodInPreBind(pod.UID)
	if status := f.Framework.RunPreBindPlugins(ctx, state, pod, node); !status.IsSuccess() {
		return status
	}
	if prepared := f.GetPodInPreBind(pod.UID); prepared != nil && !prepared.MarkPrebound() {
		return fwk.AsStatus(context.Cause(ctx))
	}
	return nil
}

// isPreparedAtOnce reports whether all claims of the pod have devices, or are about to be given some, none of which its
// driver prepares before the pod is bound. False for a pod without claims, also if it has extended resources of a
// DeviceClass: their claim does not exist yet.
func (f unnominatedFramework) isPreparedAtOnce(pod *corev1.Pod) bool {
	claims := ResourceClaimsOf(pod)
	return len(claims) > 0 && !slices.ContainsFunc(claims, func(name string) bool {
		devices := f.devicesOf(types.NamespacedName{Namespace: pod.Namespace, Name: name})
		return devices == nil || slices.ContainsFunc(devices.Devices.Results, func(d resourcev1.DeviceRequestAllocationResult) bool {
			return len(d.BindingConditions) > 0
		})
	})
}

// devicesOf returns the devices of a claim, also those that are to be written; nil if it has none.
func (f unnominatedFramework) devicesOf(name types.NamespacedName) *resourcev1.AllocationResult {
	claim := knownClaim(f, name)
	if claim == nil {
		return nil
	}
	if claim.Status.Allocation != nil {
		return claim.Status.Allocation
	}
	return f.SharedDRAManager().ResourceClaims().GetPendingAllocation(claim.UID)
}
