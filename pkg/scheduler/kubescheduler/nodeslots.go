// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
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
	// offered are requests that a DeviceClass offers: only nodes that provide the resource themselves count them.
	offered []request
	// complete: as far as plainFilters are concerned, only these requests can make a node that takes one such pod
	// refuse the next.
	complete bool
}

// countSlots returns for how many such pods the free amounts suffice: free(k) is that of requests[k],
// free(len(requests)) that of pods. It is an upper bound: other filters may refuse. If there is no room, lacking is the
// index of the first request that leaves none, -1: the number of pods does.
func (d *demand) countSlots(free func(k int) int64) (slots, lacking int) {
	n := int64(math.MaxInt32)
	lacking = -1
	if d.pods {
		n = free(len(d.requests))
	}
	for k, r := range d.requests {
		if fit := free(k) / r.amount; fit < n {
			if fit <= 0 && n > 0 {
				lacking = k
			}
			n = fit
		}
	}
	if d.alone {
		n = min(n, 1)
	}
	return int(max(0, n)), lacking
}

// freeOn returns what the node has free of requests[k], or of pods.
func (d *demand) freeOn(node fwk.NodeInfo, k int) int64 {
	if k == len(d.requests) {
		return freeOn(node, corev1.ResourcePods)
	}
	return freeOn(node, d.requests[k].name)
}

// slotsOnNode returns how many such pods the node has room for.
func (d *demand) slotsOnNode(node fwk.NodeInfo) int {
	slots, _ := d.countSlots(func(k int) int64 { return d.freeOn(node, k) })
	return slots
}

// slotsBeside returns how many such pods the node has room for beside what is reserved.
func (d *demand) slotsBeside(node fwk.NodeInfo, reserved reservations.Amount) int {
	slots, _ := d.countSlots(func(k int) int64 { return d.freeOn(node, k) - d.reservedOf(reserved, k) })
	return slots
}

// reservedOf returns the amount of requests[k], or of pods, that is reserved.
func (d *demand) reservedOf(reserved reservations.Amount, k int) int64 {
	if k == len(d.requests) {
		return reserved.Pods
	}
	return reserved.Resources[d.requests[k].name]
}

// lostSlots returns how many fewer such pods the node has room for after a pod with other requests was placed on it.
func (d *demand) lostSlots(node fwk.NodeInfo, other *demand) int {
	left, _ := d.countSlots(func(k int) int64 {
		if k == len(d.requests) {
			return d.freeOn(node, k) - 1
		}
		free := d.freeOn(node, k)
		for _, o := range other.requests {
			if o.name == d.requests[k].name {
				free -= o.amount
			}
		}
		return free
	})
	return d.slotsOnNode(node) - left
}

// demandOf determines which of a pod's requests the profile's NodeResourcesFit counts, because its arguments may name
// resources to be ignored. It runs the filter for artificial nodes that have nothing left of one resource each. filters
// are those of the profile; state is that of the pod after PreFilter.
func demandOf(ctx context.Context, f framework.Framework, filters []string, info *framework.PodInfo, state fwk.CycleState) demand {
	skip := state.GetSkipFilterPlugins()
	counts := func(name string) bool { return slices.Contains(filters, name) && !skip.Has(name) }
	d := demand{alone: len(util.GetHostPorts(info.Pod)) > 0 && slices.Contains(filters, names.NodePorts)}
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
		node := framework.NewNodeInfo()
		if lacking == corev1.ResourcePods {
			list[lacking] = resource.Quantity{}
		} else { // all of it is in use: on a node that does not provide it, it is left to DynamicResources if a DeviceClass offers it
			node.Requested.Add(corev1.ResourceList{lacking: list[lacking]})
		}
		node.SetNode(&corev1.Node{Status: corev1.NodeStatus{Allocatable: list}})
		return !f.RunFilterPlugins(ctx, state, info.Pod, node).IsSuccess()
	}
	d.pods = refuses(corev1.ResourcePods)
	for _, name := range resourcesOf(requests) {
		if refuses(name) {
			d.requests = append(d.requests, request{name, amountOf(requests, name)})
		}
	}
	d.updateOffered(f)
	return d
}

// updateOffered determines which requests DeviceClasses offer now, and reports whether that has changed.
func (d *demand) updateOffered(f fwk.Handle) bool {
	all, before := slices.Concat(d.requests, d.offered), d.offered
	d.requests, d.offered = nil, nil
	for _, r := range all {
		if deviceClassOf(f, r.name) == nil {
			d.requests = append(d.requests, r)
		} else {
			d.offered = append(d.offered, r)
		}
	}
	d.complete = !d.alone && len(d.offered) == 0
	return !slices.Equal(before, d.offered)
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
		if v := requests.GetScalarResources()[r]; v > scalar && podgroup.IsExtended(r) {
			name, n, scalar = r, v, v
		}
	}
	return name, n
}

// amountsOf returns how much of a resource, or how many pods, a node has and uses.
func amountsOf(node fwk.NodeInfo, name corev1.ResourceName) (total, used int64) {
	if name == corev1.ResourcePods {
		return int64(node.GetAllocatable().GetAllowedPodNumber()), int64(len(node.GetPods()))
	}
	return amountOf(node.GetAllocatable(), name), amountOf(node.GetRequested(), name)
}

// freeOn returns how much of a resource, or how many pods, a node has left; negative if it uses more than it has.
func freeOn(node fwk.NodeInfo, name corev1.ResourceName) int64 {
	total, used := amountsOf(node, name)
	return total - used
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
