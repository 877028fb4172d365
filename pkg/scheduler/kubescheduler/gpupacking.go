// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/pkg/podgroup"
)

// GPUPackingName is the name of the plugin GPUPacking.
const GPUPackingName = "GPUPacking"

// GPUPacking is a Score plugin that takes the place of NodeResourcesFit, whose one strategy is for all pods: pods that
// request GPUs go where most of the GPUs are in use, so that nodes stay whole for large gangs, and all other pods where
// least CPU and memory are requested, with the scores of NodeResourcesFit's LeastAllocated. GPUs are the extended
// resources that podgroup.GPUs counts. On a node that has none of them to allocate, because a DRA driver offers them,
// every pod is scored by CPU and memory, as a pod with ResourceClaims is.
type GPUPacking struct{}

var (
	_ fwk.PreScorePlugin = GPUPacking{}
	_ fwk.ScorePlugin    = GPUPacking{}
	_ fwk.SignPlugin     = GPUPacking{}
)

// NewGPUPacking is the factory of GPUPacking.
func NewGPUPacking(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return GPUPacking{}, nil
}

// Name implements fwk.Plugin.
func (GPUPacking) Name() string { return GPUPackingName }

// SignPod implements fwk.SignPlugin. NodeResourcesFit has signed all that counts: the requests.
func (GPUPacking) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}

// packedRequest is what a pod requests, as far as it is scored.
type packedRequest struct {
	milliCPU, memory int64
	gpus             map[corev1.ResourceName]int64
}

const packedRequestKey = "PreScore" + GPUPackingName

// Clone implements fwk.StateData. It is not changed.
func (r *packedRequest) Clone() fwk.StateData { return r }

func newPackedRequest(pod *corev1.Pod) (*packedRequest, error) {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fmt.Errorf("reading what the pod requests: %w", err)
	}
	requests := info.CalculateResource()
	r := &packedRequest{milliCPU: requests.Non0CPU, memory: requests.Non0Mem, gpus: map[corev1.ResourceName]int64{}}
	for name, amount := range requests.Resource.GetScalarResources() {
		if amount > 0 && podgroup.IsGPU(name) {
			r.gpus[name] = amount
		}
	}
	return r, nil
}

// PreScore implements fwk.PreScorePlugin.
func (GPUPacking) PreScore(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	r, err := newPackedRequest(pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	state.Write(packedRequestKey, r)
	return nil
}

// Score implements fwk.ScorePlugin.
func (GPUPacking) Score(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	var r *packedRequest
	if data, err := state.Read(packedRequestKey); err == nil {
		r = data.(*packedRequest)
	} else if r, err = newPackedRequest(pod); err != nil { // a profile may enable it at score alone
		return 0, fwk.AsStatus(err)
	}
	if score, ok := r.usedGPUs(node); ok {
		return score, nil
	}
	return r.unusedRest(node), nil
}

// ScoreExtensions implements fwk.ScorePlugin.
func (GPUPacking) ScoreExtensions() fwk.ScoreExtensions { return nil }

// usedGPUs returns which part of the node's GPUs is in use with the pod, from 0 to 100; if the pod requests several
// kinds, the mean of those that the node has. False: the node has none of them.
func (r *packedRequest) usedGPUs(node fwk.NodeInfo) (int64, bool) {
	sum, kinds := int64(0), int64(0)
	for name, amount := range r.gpus {
		if all := node.GetAllocatable().GetScalarResources()[name]; all > 0 {
			used := min(all, node.GetRequested().GetScalarResources()[name]+amount)
			sum, kinds = sum+used*fwk.MaxScore/all, kinds+1
		}
	}
	if kinds == 0 {
		return 0, false
	}
	return sum / kinds, true
}

// unusedRest returns which part of the node's CPU and memory is not requested with the pod, from 0 to 100: their mean.
// 0: the node has neither.
func (r *packedRequest) unusedRest(node fwk.NodeInfo) int64 {
	sum, kinds := int64(0), int64(0)
	for _, x := range []struct{ requested, all int64 }{
		{node.GetNonZeroRequested().GetMilliCPU() + r.milliCPU, node.GetAllocatable().GetMilliCPU()},
		{node.GetNonZeroRequested().GetMemory() + r.memory, node.GetAllocatable().GetMemory()},
	} {
		if x.all > 0 {
			sum, kinds = sum+max(0, x.all-x.requested)*fwk.MaxScore/x.all, kinds+1
		}
	}
	if kinds == 0 {
		return 0
	}
	return sum / kinds
}
