// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/muster-project/muster/pkg/placement"
)

const (
	independent  = placement.Independent
	dependent    = placement.Dependent
	sharesDomain = placement.SharesDomain
	seeksDomain  = placement.SeeksDomain
)

// class is an equivalence class: pods that no filter distinguishes.
type class struct {
	pods      int // number of its pods; 2: unknown
	info      *framework.PodInfo
	planned   *framework.PodInfo // the pod that is added to nodes to represent a planned pod of the class
	state     fwk.CycleState
	skip      sets.Set[string] // filters that PreFilter skipped
	skipPlain sets.Set[string] // these, and plainFilters; set if plain is false
	skipKnown sets.Set[string] // these, and VolumeBinding, which reads no pods of the node: for the nodes of bindable
	bindable  map[int]bool     // by node: VolumeBinding has accepted it in this plan
	refuse    *fwk.Status      // a rejection by PreFilter: no node is feasible
	refusedBy sets.Set[string] // filters that refused a node in this plan; without plainFilters whose results are kept
	only      sets.Set[string] // names of allowed nodes; nil: all
	// plain: no filters except plainFilters are relevant. The cached results are complete for nodes without planned
	// pods.
	plain bool
	// listens: its PreFilter state must be updated after every placement.
	listens bool
	// awaitsVolumes: its pods have claims that are not bound.
	awaitsVolumes bool
	// limited is a CSI driver that makes volumes for its pods and tells how much storage is left (CSIStorageCapacity);
	// "": none does.
	limited string
	kind    placement.Kind

	blocked     []*blocked          // counts of planned pods of other classes that exclude this class
	blocks      []*blocked          // counts of other classes to which its pods contribute
	spread      spreadCounts        // nil: no hard spread constraint
	near        *nearness           // nil: no required affinity
	attracts    []*nearness         // of the classes that its pods attract
	follows     []*class            // other classes that match its required affinity
	links       []*class            // classes that it follows or shares a claim with, and those that do so with it
	linked      []*class            // if it has domains: all classes that are linked to it, also through others, and itself
	domainKey   string              // if it has domains: the topology keys, common to all linked classes
	anchor      *class              // classes with the same anchor must all be in one domain; nil: its pods need not share one
	exclusive   []string            // claims that only one pod of the cluster may use (ReadWriteOncePod)
	unbound     []string            // shared claims without a volume, or without the devices of a node: their pods must be on one node
	volumes     *volumeDemand       // nil: any node has those that a pod needs
	devices     *deviceDemand       // nil: no devices need to be allocated
	limits      map[int]limit       // by node: how many more pods the real cycles accept; nil: no limit is known
	limitsUntil time.Time           // when the first of the limits expires
	known       *filterResults      // nil: not judged yet
	scan        scan                // over all nodes
	scans       map[place]*scan     // over the nodes of domains and areas
	rank        []int32             // by node: index in scan.order; nil: not computed
	unfreed     *unfreedResults     // nil: no running pod was ever freed
	resource    corev1.ResourceName // the main resource
	request     int64

	required *nodeaffinity.RequiredNodeAffinity // nil: not asked
	nodeUses []nodeUse                          // by node; nil: not asked
	offering []int                              // see Snapshot.offering; nil: not asked
	columns  []int                              // see columnsOf; nil: not asked

	leaf string // of its pods
}

// place is a domain in an area. "" means all of the area.
type place struct {
	area   placement.Area
	domain string
}

// newClass runs the profile's PreFilter plugins for a class, in its own CycleState.
func (w *Snapshot) newClass(pod *corev1.Pod, pods int, members []*corev1.Pod, opts *Options, devices func(string) uint64) (*class, error) {
	// If the pod kept its nomination, it would compete with itself.
	if pod.Status.NominatedNodeName != "" {
		pod = pod.DeepCopy()
		pod.Status.NominatedNodeName = ""
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fmt.Errorf("reading affinity of pod %s: %w", klog.KObj(pod), err)
	}
	c := &class{pods: pods, info: info, state: framework.NewCycleState(), refusedBy: sets.New[string]()}
	c.resource, c.request = mainResource(info) // info caches its resources here, for the copy as well
	c.planned = info.DeepCopy()
	c.planned.Pod.UID += "/planned" // a class represents many pods: the planned pod is none of those that are filtered
	c.state.Write(planningKey, planningMark{})
	result, status, _ := w.f.RunPreFilterPlugins(w.ctx, c.state, pod)
	if without := w.withoutClaim(members); status.IsSuccess() && without != nil {
		// The claim of the first pod was created after the pods were classified.
		state := framework.NewCycleState()
		state.Write(planningKey, planningMark{})
		_, status, _ = w.f.RunPreFilterPlugins(w.ctx, state, without)
	}
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, fmt.Errorf("running PreFilter plugins for pod %s: %w", klog.KObj(pod), status.AsError())
		}
		c.refuse = status
	}
	if !result.AllNodes() {
		c.only = result.NodeNames
	}
	c.skip = c.state.GetSkipFilterPlugins()
	if err := w.readDeviceDemand(c); err != nil {
		return nil, fmt.Errorf("planning devices for pod %s: %w", klog.KObj(pod), err)
	}
	c.listens = c.refuse == nil && !c.skip.HasAll(names.InterPodAffinity, names.PodTopologySpread, names.VolumeRestrictions)
	c.plain = !slices.ContainsFunc(w.cache.filters, func(name string) bool { return !plainFilters.Has(name) && !c.skip.Has(name) })
	if !c.plain {
		c.skipPlain = c.skip.Union(plainFilters)
		c.skipKnown, c.bindable = c.skipPlain.Clone().Insert(names.VolumeBinding), map[int]bool{}
	}
	w.readVolumeDemand(c, members)
	c.limits, c.limitsUntil = opts.Refusals.limitsByNode(w.f, w.nodes, pod, opts.Unwinds, opts.Now, devices)
	return c, nil
}

// relateClasses determines how placing pods of each class affects the others.
func (w *Snapshot) relateClasses() {
	w.relateAntiAffinity()
	for _, c := range w.classes {
		c.kind = independent
		if c.refuse != nil {
			continue
		}
		if !c.skip.Has(names.PodTopologySpread) && w.cache.enabledPlugins(names.PodTopologySpread) {
			c.spread, c.kind = readSpread(c.state, w.nodes, c.info.Pod.Labels), dependent
			w.cache.hardSpread = w.cache.hardSpread || len(c.info.Pod.Spec.TopologySpreadConstraints) == 0
		}
		w.relateAffinity(c)
	}
	for _, c := range w.classes {
		w.relateClaims(c)
	}
	w.linkClasses()
}

// Kind implements placement.World.
func (w *Snapshot) Kind(index int) placement.Kind {
	c, _ := w.classAt(index)
	return c.kind
}

// Weight implements placement.World. It is in units of the main resource; extended resources outweigh CPU.
func (w *Snapshot) Weight(index int) int64 {
	c, _ := w.classAt(index)
	if c.resource == corev1.ResourceCPU {
		return c.request
	}
	return c.request * 1_000_000
}

// Capacity implements placement.World. Both values are upper bounds: filters other than plainFilters may refuse.
func (w *Snapshot) Capacity(index int) placement.Capacity {
	c, area := w.classAt(index)
	w.findNodesOf(c)
	exclusions := w.exclusionsOf(c)
	if area != 0 {
		return w.capacityOn(c, w.areas[area].nodes, exclusions)
	}
	out := placement.Capacity{Nodes: c.known.feasible, Pods: c.known.pods}
	lose := func(i int) {
		if c.refuse != nil || c.known.reasons[i] != 0 {
			return
		}
		slots := w.slotsOn(c, i)
		if out.Pods -= int(c.known.slots[i]) - slots; slots == 0 {
			out.Nodes--
		}
	}
	if c.devices != nil || c.volumes != nil {
		for _, i := range c.scan.order {
			lose(int(i))
		}
	} else {
		for i := range c.limits {
			lose(i)
		}
		switch {
		case w.reserved == nil || c.refuse != nil:
		case w.freed == nil && w.reserved.owns == 0 && len(c.limits) == 0: // mostly
			sum := w.reservedSlots(c)
			out.Nodes, out.Pods = out.Nodes-sum.nodes, out.Pods-sum.slots
		default:
			for _, x := range w.reserved.lists {
				if _, limited := c.limits[x.node]; !limited {
					lose(x.node)
				}
			}
		}
	}
	for _, e := range exclusions {
		out.Pods = min(out.Pods, e.onePerDomain(c, c.scan.order))
	}
	return out
}

// capacityOn returns Capacity for some of the nodes. exclusions are those of the class.
func (w *Snapshot) capacityOn(c *class, nodes []int32, exclusions []*exclusion) placement.Capacity {
	out := placement.Capacity{}
	if c.refuse != nil {
		return out
	}
	for _, i := range nodes {
		if c.known.reasons[i] != 0 || w.whyBarred(c, int(i)) != "" {
			continue
		}
		if slots := w.slotsOn(c, int(i)); slots > 0 {
			out.Nodes++
			out.Pods += slots
		}
	}
	for _, e := range exclusions {
		out.Pods = min(out.Pods, e.onePerDomain(c, nodes))
	}
	return out
}

// slotsOn returns for how many pods of the class a node that takes it has room, without planned pods. It is an upper
// bound.
func (w *Snapshot) slotsOn(c *class, i int) int {
	slots := min(w.deviceSlots(c, i), w.volumeRoom(c, i).pods, w.slotsBeside(c, i))
	if l, ok := c.limits[i]; ok {
		slots = min(slots, l.accepted)
	}
	return slots
}

// exclusion is a topology of which each domain holds at most one pod of a class.
type exclusion struct {
	topology *topology
	used     []int32 // by value: the last count in which a node of the domain takes the class
	counts   int32
}

// exclusiveTopologies returns the topologies over which the pods of the class exclude each other by anti-affinity.
func (w *Snapshot) exclusiveTopologies(c *class) []*topology {
	var out []*topology
	for _, term := range c.info.GetRequiredAntiAffinityTerms() {
		if term.Matches(c.info.Pod, w.namespaceLabels(c.info.Pod.Namespace)) {
			out = append(out, w.nodes.topologyOf(term.TopologyKey))
		}
	}
	return out
}

// exclusionsOf returns an exclusion for each of the exclusiveTopologies.
func (w *Snapshot) exclusionsOf(c *class) []*exclusion {
	var out []*exclusion
	for _, top := range w.exclusiveTopologies(c) {
		out = append(out, &exclusion{topology: top, used: make([]int32, len(top.names))})
	}
	return out
}

// onePerDomain returns how many pods of the class fit on the nodes if each requires its own domain. Nodes without the
// label are in no domain.
func (e *exclusion) onePerDomain(c *class, nodes []int32) int {
	e.counts++
	n := 0
	for _, i := range nodes {
		switch v := e.topology.value[i]; {
		case c.known.reasons[i] != 0:
		case v < 0:
			n += int(c.known.slots[i])
		case e.used[v] < e.counts:
			e.used[v] = e.counts
			n++
		}
	}
	return n
}

// rankOfNodes returns the index of every node in the class's order.
func (c *class) rankOfNodes() []int32 {
	if c.rank == nil {
		c.rank = make([]int32, len(c.known.reasons))
		for k, i := range c.scan.order {
			c.rank[i] = int32(k)
		}
	}
	return c.rank
}
