// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeschedulerconfigv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/muster-project/muster/pkg/podgroup"
)

// GPUPackingName is the name of the plugin GPUPacking.
const GPUPackingName = "GPUPacking"

// GPUPacking is a Score plugin that takes the place of NodeResourcesFit, whose one strategy is for all pods: pods that
// request GPUs go where most of the GPUs are in use, so that nodes stay whole for large gangs, and all other pods where
// least CPU and memory are requested: NodeResourcesFit scores them, with its default arguments. GPUs are the extended
// resources that podgroup.GPUs counts. On a node that has none of them to allocate, because a DRA driver offers them,
// every pod is scored by CPU and memory, as a pod with ResourceClaims is.
type GPUPacking struct{ rest leastAllocated }

// leastAllocated is what NodeResourcesFit scores with.
type leastAllocated interface {
	fwk.PreScorePlugin
	fwk.ScorePlugin
	fwk.SignPlugin
}

var (
	_ fwk.PreScorePlugin = GPUPacking{}
	_ fwk.ScorePlugin    = GPUPacking{}
	_ fwk.SignPlugin     = GPUPacking{}
)

// NewGPUPacking is the factory of GPUPacking.
func NewGPUPacking(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	defaults := &kubeschedulerconfigv1.NodeResourcesFitArgs{}
	scheme.Scheme.Default(defaults)
	args := &config.NodeResourcesFitArgs{}
	if err := scheme.Scheme.Convert(defaults, args, nil); err != nil {
		return nil, fmt.Errorf("reading the default arguments of NodeResourcesFit: %w", err)
	}
	fit, err := plugins.NewInTreeRegistry()[names.NodeResourcesFit](ctx, args, handle)
	if err != nil {
		return nil, fmt.Errorf("making NodeResourcesFit, which scores CPU and memory: %w", err)
	}
	return GPUPacking{fit.(leastAllocated)}, nil
}

// Name implements fwk.Plugin.
func (GPUPacking) Name() string { return GPUPackingName }

// SignPod implements fwk.SignPlugin: what counts are the requests, which NodeResourcesFit signs. A profile may do
// without that plugin.
func (p GPUPacking) SignPod(ctx context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return p.rest.SignPod(ctx, pod)
}

// packedRequest is what a pod requests, as far as it is scored.
type packedRequest struct {
	gpus map[corev1.ResourceName]int64
	// rest is of NodeResourcesFit. The state of the cycle has that of the profile's one, whose arguments may name other
	// resources.
	rest fwk.CycleState
}

const packedRequestKey = "PreScore" + GPUPackingName

// Clone implements fwk.StateData. It is not changed.
func (r *packedRequest) Clone() fwk.StateData { return r }

func (p GPUPacking) newPackedRequest(ctx context.Context, pod *corev1.Pod, nodes []fwk.NodeInfo) (*packedRequest, *fwk.Status) {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("reading what the pod requests: %w", err))
	}
	r := &packedRequest{gpus: map[corev1.ResourceName]int64{}, rest: framework.NewCycleState()}
	for name, amount := range info.CalculateResource().Resource.GetScalarResources() {
		if amount > 0 && podgroup.IsGPU(name) {
			r.gpus[name] = amount
		}
	}
	return r, p.rest.PreScore(ctx, r.rest, pod, nodes)
}

// PreScore implements fwk.PreScorePlugin.
func (p GPUPacking) PreScore(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	r, status := p.newPackedRequest(ctx, pod, nodes)
	if status.IsSuccess() {
		state.Write(packedRequestKey, r)
	}
	return status
}

// Score implements fwk.ScorePlugin.
func (p GPUPacking) Score(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	var r *packedRequest
	if data, err := state.Read(packedRequestKey); err == nil {
		r = data.(*packedRequest)
	} else { // a profile may enable it at score alone
		var status *fwk.Status
		if r, status = p.newPackedRequest(ctx, pod, []fwk.NodeInfo{node}); !status.IsSuccess() {
			return 0, status
		}
	}
	if score, ok := r.usedGPUs(node); ok {
		return score, nil
	}
	return p.rest.Score(ctx, r.rest, pod, node)
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
