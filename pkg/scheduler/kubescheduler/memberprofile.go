// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/utils/clock"
)

// MemberHooks are what the cycles of members ask for; none may be nil.
type MemberHooks struct {
	// Member reports whether the pod is a member. All other pods have the cycles of the stock scheduler.
	Member func(*corev1.Pod) bool
	// Binding reports whether bindings are being posted.
	Binding func() bool
	// Slot returns when the devices of the member may be written, and what to call when they are. It returns an error
	// if they will not be.
	Slot func(context.Context, *corev1.Pod) (release func(), err error)
}

// WrapProfiles changes the cycles of members in two ways. It must be called before the scheduler runs.
//
// Their events "Scheduled" are late (lateRecorder): an event costs the API server as much work as a binding.
//
// Those of which only the devices of their claims have to be written before the binding (PreBind) are prepared with no
// node nominated (docs/decisions, G18). Kube-scheduler writes status.nominatedNodeName before it prepares a pod, which
// may take minutes, so that a cluster autoscaler expects the pod on that node. Devices are written in milliseconds, and
// a plan keeps the room of its members without the field. For a gang the write would only delay those of its claims,
// for all of which each of its bindings waits. And they are prepared only in a slot. Kube-scheduler prepares all pods
// at the same time, and the API server rejects the writes of a gang of hundreds: each is repeated after a second.
func WrapProfiles(sched *scheduler.Scheduler, hooks MemberHooks) {
	late := &lateEvents{busy: hooks.Binding, clock: clock.RealClock{}}
	for name, f := range sched.Profiles {
		var others []string
		for _, p := range f.ListPlugins().PreBind.Enabled {
			if p.Name != names.DynamicResources {
				others = append(others, p.Name)
			}
		}
		sched.Profiles[name] = memberFramework{f, hooks, late.recorderOf(f, hooks.Member), others, &sync.Map{}}
	}
}

// memberFramework is a profile whose cycles treat members as WrapProfiles says. Plugins have the profile itself.
type memberFramework struct {
	framework.Framework
	MemberHooks
	recorder  events.EventRecorderLogger
	others    []string  // plugins at PreBind that do not prepare devices
	nominated *sync.Map // nodes that the binding cycles of members, by UID, nominate; until these end
}

// EventRecorder returns the recorder of the cycles.
func (f memberFramework) EventRecorder() events.EventRecorderLogger { return f.recorder }

// RunPreBindPreFlights returns Skip for members with devices, so that the binding cycle nominates no node, and for
// members that wait at Permit: their plan is about to be aborted. If they are prepared, PreBind runs all the same: the
// inner framework has noted in the state which of its plugins have something to do.
func (f memberFramework) RunPreBindPreFlights(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	status := f.Framework.RunPreBindPreFlights(ctx, state, pod, node)
	if !status.IsSuccess() || !f.Member(pod) {
		return status
	}
	if f.preparesOnlyDevices(state, pod) || f.Framework.WillWaitOnPermit(ctx, pod) {
		return fwk.NewStatus(fwk.Skip)
	}
	f.nominated.Store(pod.UID, node)
	return status
}

// RunPostBindPlugins ends the binding cycle of a pod that was bound.
func (f memberFramework) RunPostBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) {
	f.nominated.Delete(pod.UID)
	f.Framework.RunPostBindPlugins(ctx, state, pod, node)
}

// forgetNomination returns the node that the binding cycle of a member has nominated, when the cycle has failed. "": it
// has nominated none.
func forgetNomination(f framework.Framework, uid types.UID) string {
	if profile, ok := f.(memberFramework); ok {
		if node, ok := profile.nominated.LoadAndDelete(uid); ok {
			return node.(string)
		}
	}
	return ""
}

// WillWaitOnPermit returns false for members, so that the binding cycle nominates no node for those that wait.
func (f memberFramework) WillWaitOnPermit(ctx context.Context, pod *corev1.Pod) bool {
	return !f.Member(pod) && f.Framework.WillWaitOnPermit(ctx, pod)
}

// RunPreBindPlugins makes the preparation of members cancellable. The binding cycle does so only if the PreFlights did
// not return Skip.
func (f memberFramework) RunPreBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if !f.Member(pod) || f.GetPodInPreBind(pod.UID) != nil {
		return f.Framework.RunPreBindPlugins(ctx, state, pod, node)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.AddPodInPreBind(pod.UID, cancel)
	defer f.RemovePodInPreBind(pod.UID)
	if f.preparesOnlyDevices(state, pod) {
		release, err := f.Slot(ctx, pod)
		if err != nil {
			return fwk.AsStatus(fmt.Errorf("writing the devices of pod %s: %w", klog.KObj(pod), err))
		}
		defer release()
	}
	if status := f.Framework.RunPreBindPlugins(ctx, state, pod, node); !status.IsSuccess() {
		return status
	}
	if prepared := f.GetPodInPreBind(pod.UID); prepared != nil && !prepared.MarkPrebound() {
		return fwk.AsStatus(context.Cause(ctx))
	}
	return nil
}

// preparesOnlyDevices reports whether nothing but the devices of its claims has to be written before the pod is bound:
// all of the claims have devices, or are about to be given some, none of which its driver prepares before. False for a
// pod without claims, also if it has extended resources of a DeviceClass: their claim does not exist yet. The state
// must be that of RunPreBindPreFlights.
func (f memberFramework) preparesOnlyDevices(state fwk.CycleState, pod *corev1.Pod) bool {
	if !state.GetSkipPreBindPlugins().HasAll(f.others...) {
		return false
	}
	claims := ResourceClaimsOf(pod)
	return len(claims) > 0 && !slices.ContainsFunc(claims, func(name string) bool {
		devices := f.devicesOf(types.NamespacedName{Namespace: pod.Namespace, Name: name})
		return devices == nil || slices.ContainsFunc(devices.Devices.Results, func(d resourcev1.DeviceRequestAllocationResult) bool {
			return len(d.BindingConditions) > 0
		})
	})
}

// devicesOf returns the devices of a claim, also those that are to be written; nil if it has none.
func (f memberFramework) devicesOf(name types.NamespacedName) *resourcev1.AllocationResult {
	claim := knownClaim(f, name)
	if claim == nil {
		return nil
	}
	if claim.Status.Allocation != nil {
		return claim.Status.Allocation
	}
	return f.SharedDRAManager().ResourceClaims().GetPendingAllocation(claim.UID)
}
