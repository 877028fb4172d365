// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// DynamicResources judges one pod with the devices that are allocated now. A plan also needs the devices of the pods
// that it has placed before, so it allocates them itself, with the allocator of that plugin: in the order in which the
// pods are placed, which is also that of their cycles, so that the plugin finds the same devices again.

// allocationTimeout bounds the allocation of the devices of one pod on one node. (The plugin allows 10 seconds in the
// cycle of the pod.) A search for devices with constraints can take exponential time.
const allocationTimeout = 500 * time.Millisecond

// deviceDemand is what the pods of a class need from drivers of devices.
type deviceDemand struct {
	own      []*resourcev1.ResourceClaim // each pod has such claims of its own, without devices yet
	shared   []*resourcev1.ResourceClaim // claims without devices yet that several pods use
	extended []extendedRequest
	perPod   int // how many devices the own claims take at least
}

// extendedRequest is a request of an extended resource that a DeviceClass offers on nodes without a device plugin.
type extendedRequest struct {
	resource corev1.ResourceName
	class    string
	count    int64
}

// devices are the devices of the cluster as a plan sees them.
type devices struct {
	features  structured.Features
	lister    structured.DeviceClassLister
	cel       *cel.Cache
	allocated *structured.AllocatedState    // including those of planned pods
	taken     sets.Set[structured.DeviceID] // those of planned pods, but for devices that may be allocated more than once
	shares    map[structured.DeviceID][]structured.SharedDeviceID
	local     map[string][]*resourcev1.ResourceSlice // by node: pools whose devices belong to this node
	spread    []*resourcev1.ResourceSlice            // all other pools
	onNode    map[int]*nodeDevices                   // by node: as far as asked
	claims    map[types.UID]plannedClaim             // shared claims with planned devices
	changes   int64                                  // number of allocations and their ends so far
	planned   []plannedDevices                       // a stack
}

// plannedDevices are the devices of a planned pod.
type plannedDevices struct {
	allocation
	class *class
	node  int
}

// nodeDevices are the devices that may be available on a node.
type nodeDevices struct {
	slices  []*resourcev1.ResourceSlice
	ids     []structured.DeviceID
	shares  bool  // a device may be allocated more than once
	changed int64 // devices.changes at the last allocation for a pod on the node
	// results of allocate since then
	results map[*class]allocation
}

// plannedClaim is what a shared claim will have.
type plannedClaim struct {
	devices *resourcev1.AllocationResult
	nodes   *nodeaffinity.LazyErrorNodeSelector // where they are available; nil: everywhere
}

// isOn reports whether a node can use the devices.
func (p plannedClaim) isOn(node *corev1.Node) bool {
	if p.nodes == nil {
		return true
	}
	ok, err := p.nodes.Match(node)
	return ok && err == nil
}

// allocation is the result of an attempt to allocate the devices of a pod.
type allocation struct {
	devices []resourcev1.AllocationResult
	claims  []types.UID // shared claims to which the last of these devices belong
	why     string      // the reason if it failed
}

// readDevices returns the devices of the cluster with all allocations that the scheduler knows, including those that
// are being written.
func (w *Snapshot) readDevices() (*devices, error) {
	dra := w.f.SharedDRAManager()
	d := &devices{
		features: dynamicresources.AllocatorFeatures(feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)),
		lister:   dra.DeviceClasses(),
		local:    map[string][]*resourcev1.ResourceSlice{}, onNode: map[int]*nodeDevices{},
		taken: sets.New[structured.DeviceID](), shares: map[structured.DeviceID][]structured.SharedDeviceID{}, claims: map[types.UID]plannedClaim{},
	}
	if w.cache.cel == nil {
		w.cache.cel = cel.NewCache(keptExpressions, cel.Features{EnableConsumableCapacity: d.features.ConsumableCapacity, EnableListTypeAttributes: d.features.ListTypeAttributes})
	}
	d.cel = w.cache.cel
	// The tracker fails if a claim changes in the meantime.
	err := wait.PollUntilContextTimeout(w.ctx, time.Microsecond, time.Second, true, func(context.Context) (bool, error) {
		var err error
		d.allocated, err = dra.ResourceClaims().GatherAllocatedState()
		return err == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading which devices are allocated: %w", err)
	}
	for id := range d.allocated.AllocatedSharedDeviceIDs {
		d.shares[id.GetDeviceID()] = append(d.shares[id.GetDeviceID()], id)
	}
	all, err := dra.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return nil, fmt.Errorf("reading ResourceSlices: %w", err)
	}
	type pool struct{ driver, name string }
	pools, nodes := map[pool][]*resourcev1.ResourceSlice{}, map[pool]sets.Set[string]{}
	for _, s := range all {
		p := pool{s.Spec.Driver, s.Spec.Pool.Name}
		pools[p] = append(pools[p], s)
		if nodes[p] == nil {
			nodes[p] = sets.New[string]()
		}
		switch {
		case s.Spec.NodeName != nil:
			nodes[p].Insert(*s.Spec.NodeName)
		case len(s.Spec.Devices) > 0:
			nodes[p].Insert("") // no node, or several
		}
	}
	for p, s := range pools {
		if len(nodes[p]) == 0 {
			continue // no devices
		}
		if node, ok := nodes[p].PopAny(); ok && node != "" && nodes[p].Len() == 0 {
			d.local[node] = append(d.local[node], s...)
		} else {
			d.spread = append(d.spread, s...)
		}
	}
	return d, nil
}

// keptExpressions is the number of compiled CEL expressions that are kept between plans.
const keptExpressions = 100

// readDeviceDemand determines what devices the pods of the class need. It is called after PreFilter.
func (w *Snapshot) readDeviceDemand(c *class) error {
	dra := w.f.SharedDRAManager()
	if c.refuse != nil || dra == nil || c.skip.Has(names.DynamicResources) || !w.cache.enabledPlugins(names.DynamicResources) {
		return nil
	}
	d, pod := &deviceDemand{}, c.info.Pod
	// The plugin need not judge again what the plan does, which it would do with all slices of the cluster for each
	// node.
	replaced := !utilfeature.DefaultFeatureGate.Enabled(features.DRANodeAllocatableResources)
	for _, name := range ResourceClaimsOf(pod) {
		claim, err := dra.ResourceClaims().Get(pod.Namespace, name)
		switch {
		case err != nil: // DynamicResources has refused the pod
		case claim.Status.Allocation != nil:
			replaced = false
		case w.shared.Has(name):
			d.shared = append(d.shared, claim)
		default:
			d.own = append(d.own, claim)
			d.perPod += leastDevices(claim)
		}
		// It scores nodes by which alternative they offer, and remembers that in Filter.
		replaced = replaced && err == nil && !slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool { return len(r.FirstAvailable) > 0 })
	}
	requests := c.info.CalculateResource().Resource
	for _, name := range resourcesOf(requests) {
		if class := deviceClassOf(w.f, name); class != nil {
			d.extended = append(d.extended, extendedRequest{name, class.Name, amountOf(requests, name)})
		}
	}
	if len(d.own)+len(d.shared)+len(d.extended) == 0 {
		return nil
	}
	if w.devices == nil {
		var err error
		if w.devices, err = w.readDevices(); err != nil {
			return err
		}
	}
	c.devices = d
	if len(w.devices.spread) == 0 {
		for _, claim := range d.shared {
			if len(claim.Spec.Devices.Requests) == 0 {
				continue // available everywhere
			}
			// Its devices will belong to one node.
			c.unbound = append(c.unbound, deviceClaim+claim.Namespace+"/"+claim.Name)
		}
	}
	if replaced && len(d.extended) == 0 {
		c.skip = c.skip.Clone().Insert(names.DynamicResources)
		c.state.SetSkipFilterPlugins(c.skip)
	}
	return nil
}

// deviceClassOf returns the DeviceClass that offers an extended resource on nodes without a device plugin. nil: none
// does.
func deviceClassOf(f fwk.Handle, name corev1.ResourceName) *resourcev1.DeviceClass {
	dra := f.SharedDRAManager()
	if dra == nil || !schedutil.IsDRAExtendedResourceName(name) {
		return nil
	}
	return dra.DeviceClassResolver().GetDeviceClass(name)
}

// leastDevices returns how many devices a claim takes at least.
func leastDevices(claim *resourcev1.ResourceClaim) int {
	n := 0
	exactly := func(mode resourcev1.DeviceAllocationMode, count int64) int {
		if mode == resourcev1.DeviceAllocationModeAll {
			return 1
		}
		return int(max(1, min(count, math.MaxInt32)))
	}
	for _, r := range claim.Spec.Devices.Requests {
		switch {
		case r.Exactly != nil && (r.Exactly.AdminAccess == nil || !*r.Exactly.AdminAccess):
			n += exactly(r.Exactly.AllocationMode, r.Exactly.Count)
		case len(r.FirstAvailable) > 0:
			least := math.MaxInt32
			for _, sub := range r.FirstAvailable {
				least = min(least, exactly(sub.AllocationMode, sub.Count))
			}
			n += least
		}
	}
	return n
}

// devicesOnNode returns the devices that may be available on a node.
func (d *devices) devicesOnNode(i int, node string) *nodeDevices {
	if n := d.onNode[i]; n != nil {
		return n
	}
	n := &nodeDevices{slices: slices.Concat(d.local[node], d.spread), results: map[*class]allocation{}}
	for _, s := range n.slices {
		for k := range s.Spec.Devices {
			n.ids = append(n.ids, structured.MakeDeviceID(s.Spec.Driver, s.Spec.Pool.Name, s.Spec.Devices[k].Name))
			n.shares = n.shares || s.Spec.Devices[k].AllowMultipleAllocations != nil
		}
	}
	d.onNode[i] = n
	return n
}

// countFree returns the number of devices of the node that are not allocated, some of which may be of no use. planned:
// those of planned pods count as free.
func (d *devices) countFree(n *nodeDevices, planned bool) int {
	free := 0
	for _, id := range n.ids {
		if !d.allocated.AllocatedDevices.Has(id) || planned && d.taken.Has(id) {
			free++
		}
	}
	return free
}

// deviceSlots returns for how many pods of the class the node has devices, without planned pods. It is an upper bound.
func (w *Snapshot) deviceSlots(c *class, i int) int {
	if c.devices == nil || c.devices.perPod == 0 {
		return math.MaxInt32
	}
	n := w.devices.devicesOnNode(i, w.nodes.objects[i].Name)
	if n.shares {
		return math.MaxInt32
	}
	return w.devices.countFree(n, true) / c.devices.perPod
}

// noDevices is the reason of DynamicResources for a node without the devices for a pod.
const noDevices = "cannot allocate all claims"

// allocateDevices returns the devices that the next pod of the class would have on the node.
func (w *Snapshot) allocateDevices(c *class, i int) allocation {
	d, node := w.devices, w.nodes.objects[i]
	n := d.devicesOnNode(i, node.Name)
	changed := n.changed
	if len(d.spread) > 0 || len(c.devices.shared) > 0 {
		changed = d.changes // the devices may have been allocated on any node
	}
	if changed != n.changed {
		n.changed, n.results = changed, map[*class]allocation{}
	}
	if a, ok := n.results[c]; ok {
		return a
	}
	a := w.tryAllocate(c, n, w.nodes.currentNode(i))
	n.results[c] = a
	return a
}

func (w *Snapshot) tryAllocate(c *class, n *nodeDevices, node fwk.NodeInfo) allocation {
	d := w.devices
	claims := slices.Clone(c.devices.own)
	if extended := c.devices.extendedClaim(node); extended != nil {
		claims = append(claims, extended)
	}
	var a allocation
	for _, claim := range c.devices.shared {
		planned, ok := d.claims[claim.UID]
		switch {
		case !ok:
			claims, a.claims = append(claims, claim), append(a.claims, claim.UID)
		case !planned.isOn(node.Node()):
			return allocation{why: "resourceclaim not available on the node"}
		}
	}
	if len(claims) == 0 {
		return a
	}
	if !n.shares && d.countFree(n, false) < c.devices.perPod {
		return allocation{why: noDevices}
	}
	ctx, cancel := context.WithTimeout(w.ctx, allocationTimeout)
	defer cancel()
	allocator, err := structured.NewAllocator(ctx, d.features, d.allocatedOn(n), d.lister, n.slices, d.cel)
	if err == nil {
		a.devices, err = allocator.Allocate(ctx, node.Node(), claims)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		w.outOfTime = w.ctx.Err() != nil || w.expired != nil && w.expired() // such nodes must not take the time of the loop one by one
		return allocation{why: "node(s) timed out trying to allocate devices"}
	case err != nil:
		return allocation{why: err.Error()}
	case len(a.devices) != len(claims):
		return allocation{why: noDevices}
	}
	return a
}

// allocatedOn returns the part of the allocated devices that concerns a node.
func (d *devices) allocatedOn(n *nodeDevices) structured.AllocatedState {
	out := structured.AllocatedState{
		AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	for _, id := range n.ids {
		if d.allocated.AllocatedDevices.Has(id) {
			out.AllocatedDevices.Insert(id)
		}
		out.AllocatedSharedDeviceIDs.Insert(d.shares[id]...)
		if consumed, ok := d.allocated.AggregatedCapacity[id]; ok {
			out.AggregatedCapacity[id] = consumed.Clone()
		}
	}
	return out
}

// extendedClaim returns the claim that DynamicResources would make for a pod on the node, nil if it would make none.
func (d *deviceDemand) extendedClaim(node fwk.NodeInfo) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{}
	claim.UID = "extended-resources"
	for k, r := range d.extended {
		if amountOf(node.GetAllocatable(), r.resource) == 0 {
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourcev1.DeviceRequest{
				Name:    fmt.Sprintf("request-%d", k),
				Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: r.class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: r.count},
			})
		}
	}
	if len(claim.Spec.Devices.Requests) == 0 {
		return nil
	}
	return claim
}

// takeDevices records that the next planned pod of the class has its devices.
func (w *Snapshot) takeDevices(c *class, i int) error {
	d, a := w.devices, w.allocateDevices(c, i)
	if a.why != "" {
		return errors.New(a.why)
	}
	d.planned = append(d.planned, plannedDevices{a, c, i})
	d.changeExclusive(a, i, func(id structured.DeviceID, r *resourcev1.DeviceRequestAllocationResult) {
		if r.ShareID == nil {
			d.allocated.AllocatedDevices.Insert(id)
			d.taken.Insert(id)
			return
		}
		d.shares[id] = append(d.shares[id], structured.MakeSharedDeviceID(id, r.ShareID))
		if r.ConsumedCapacity != nil {
			d.allocated.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
		}
	})
	for k, uid := range a.claims {
		planned := plannedClaim{devices: &a.devices[len(a.devices)-len(a.claims)+k]}
		if selector := planned.devices.NodeSelector; selector != nil {
			planned.nodes = nodeaffinity.NewLazyErrorNodeSelector(selector)
		}
		d.claims[uid] = planned
	}
	return nil
}

// giveBackDevices reverses the last takeDevices.
func (w *Snapshot) giveBackDevices() {
	d := w.devices
	last := d.planned[len(d.planned)-1]
	d.planned = d.planned[:len(d.planned)-1]
	d.changeExclusive(last.allocation, last.node, func(id structured.DeviceID, r *resourcev1.DeviceRequestAllocationResult) {
		if r.ShareID == nil {
			d.allocated.AllocatedDevices.Delete(id)
			d.taken.Delete(id)
			return
		}
		d.shares[id] = d.shares[id][:len(d.shares[id])-1]
		if r.ConsumedCapacity != nil {
			d.allocated.AggregatedCapacity.Remove(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
		}
	})
	for _, uid := range last.claims {
		delete(d.claims, uid)
	}
}

// changeExclusive calls the function for each device of an allocation that other pods cannot have as well.
func (d *devices) changeExclusive(a allocation, i int, each func(structured.DeviceID, *resourcev1.DeviceRequestAllocationResult)) {
	d.changes++
	n := d.onNode[i]
	n.changed, n.results = d.changes, map[*class]allocation{}
	for k := range a.devices {
		for r := range a.devices[k].Devices.Results {
			result := &a.devices[k].Devices.Results[r]
			if result.AdminAccess == nil || !*result.AdminAccess {
				each(structured.MakeDeviceID(result.Driver, result.Pool, result.Device), result)
			}
		}
	}
}
