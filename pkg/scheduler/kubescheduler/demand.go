// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// request is an amount of a resource: millicores of CPU, bytes of memory and ephemeral storage.
type request struct {
	name   corev1.ResourceName
	amount int64
}

// demand is the part of a pod's requests that NodeResourcesFit counts.
type demand struct {
	requests []request
	pods     bool // the number of pods is limited
	alone    bool // host ports: only one such pod fits on a node
	// complete: as far as plainFilters are concerned, only these requests can make a node that takes one such pod
	// refuse the next.
	complete bool
}

// slotsOnNode returns how many such pods the node has room for. It is an upper bound: other filters may refuse.
func (d *demand) slotsOnNode(node fwk.NodeInfo) int {
	allocatable, requested := node.GetAllocatable(), node.GetRequested()
	n := int64(math.MaxInt32)
	if d.pods {
		n = int64(allocatable.GetAllowedPodNumber() - len(node.GetPods()))
	}
	for _, r := range d.requests {
		n = min(n, (amountOf(allocatable, r.name)-amountOf(requested, r.name))/r.amount)
	}
	if d.alone {
		n = min(n, 1)
	}
	return int(max(0, n))
}

// lostSlots returns how many fewer such pods the node has room for after a pod with other requests was placed on it.
func (d *demand) lostSlots(node fwk.NodeInfo, other *demand) int {
	allocatable := node.GetAllocatable()
	requested := node.GetRequested()
	n := int64(math.MaxInt32)
	if d.pods {
		n = int64(allocatable.GetAllowedPodNumber() - len(node.GetPods()) - 1)
	}
	for _, r := range d.requests {
		free := amountOf(allocatable, r.name) - amountOf(requested, r.name)
		for _, o := range other.requests {
			if o.name == r.name {
				free -= o.amount
			}
		}
		n = min(n, free/r.amount)
	}
	return d.slotsOnNode(node) - int(max(0, n))
}

// demandOf determines which of a pod's requests the profile's NodeResourcesFit counts, because its arguments may name
// resources to be ignored. It runs the filter for artificial nodes that lack one resource each. filters are those of
// the profile; state is that of the pod after PreFilter.
func demandOf(ctx context.Context, f framework.Framework, filters []string, info *framework.PodInfo, state fwk.CycleState) demand {
	skip := state.GetSkipFilterPlugins()
	counts := func(name string) bool { return slices.Contains(filters, name) && !skip.Has(name) }
	d := demand{}
	for _, container := range slices.Concat(info.Pod.Spec.InitContainers, info.Pod.Spec.Containers) {
		d.alone = d.alone || slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.HostPort > 0 })
	}
	d.alone = d.alone && slices.Contains(filters, names.NodePorts)
	if !counts(names.NodeResourcesFit) {
		return d
	}
	state.SetSkipFilterPlugins(sets.New(filters...).Delete(names.NodeResourcesFit))
	defer state.SetSkipFilterPlugins(skip)
	requests := info.CalculateResource().Resource
	refuses := func(lacking corev1.ResourceName) bool {
		list := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
		for _, name := range resourcesOf(requests) {
			list[name] = *resource.NewQuantity(math.MaxInt32*int64(math.MaxInt16), resource.DecimalSI)
		}
		list[lacking] = resource.Quantity{}
		node := framework.NewNodeInfo()
		node.SetNode(&corev1.Node{Status: corev1.NodeStatus{Allocatable: list}})
		return !f.RunFilterPlugins(ctx, state, info.Pod, node).IsSuccess()
	}
	d.pods = refuses(corev1.ResourcePods)
	d.complete = !d.alone
	for _, name := range resourcesOf(requests) {
		if refuses(name) {
			d.requests = append(d.requests, request{name, amountOf(requests, name)})
		}
	}
	return d
}

// resourcesOf returns the resources with non-zero requests.
func resourcesOf(requests fwk.Resource) []corev1.ResourceName {
	var out []corev1.ResourceName
	for _, name := range append([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage},
		slices.Sorted(maps.Keys(requests.GetScalarResources()))...) {
		if amountOf(requests, name) > 0 {
			out = append(out, name)
		}
	}
	return out
}

// mainResource returns the most important resource of a pod: the extended resource of which it requests the most, or
// CPU in millicores if it requests none.
func mainResource(info *framework.PodInfo) (corev1.ResourceName, int64) {
	requests := info.CalculateResource().Resource
	name, n := corev1.ResourceCPU, requests.GetMilliCPU()
	scalar := int64(0)
	for _, r := range slices.Sorted(maps.Keys(requests.GetScalarResources())) {
		if v := requests.GetScalarResources()[r]; v > scalar && strings.Contains(string(r), "/") {
			name, n, scalar = r, v, v
		}
	}
	return name, n
}

// amountOf returns millicores for CPU, and bytes for memory and ephemeral storage.
func amountOf(r fwk.Resource, name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return r.GetMilliCPU()
	case corev1.ResourceMemory:
		return r.GetMemory()
	case corev1.ResourceEphemeralStorage:
		return r.GetEphemeralStorage()
	}
	return r.GetScalarResources()[name]
}
