// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// Shapes counts how many pods of a few shapes fit on the nodes of the scheduler's cache, node by node, outside of the
// scheduling loop. It follows the cache by generations: an update compares every node's generation, and does further
// work only for the nodes that changed.
//
// The counts are upper bounds: they consider only requests, taints, node selection and the number of pods. "Fewer
// pods fit than the gang needs" therefore proves that a plan would fail, but "enough pods fit" does not prove that it
// would succeed. Not safe for concurrent use.
type Shapes struct {
	refresh  func(*cache.Snapshot) error
	profile  func(*corev1.Pod) framework.Framework // nil: none
	snapshot *cache.Snapshot
	first    *fwk.NodeInfo // of the snapshot's list: a different backing array means different positions
	nodes    []fwk.NodeInfo
	// generations are those on which the counts are based, by position. A generation identifies one state of one
	// node.
	generations []int64
	objects     []*corev1.Node // likewise
	position    map[string]int // by name of the node
	changed     int64          // incremented when a node changes
	shapes      map[string]*Shape
	tracked     int64                 // shapes, also those that are not any more
	levels      map[string]*nodeLevel // by topology level, as far as tracked
	reserved    reservedTables
}

// Shape contains the requests of a pod and the constraints on its nodes. Pods of one shape fit on the same nodes in
// the same number.
type Shape struct {
	number   int64
	key      string
	users    int
	pod      *corev1.Pod
	profile  framework.Framework
	affinity nodeaffinity.RequiredNodeAffinity
	demand   demand
	slots    []int64 // by position of the node: how many pods of the shape fit, never negative
	fits     int64
	levels   map[string]*levelSlots // by topology level, as far as tracked
}

// NewShapes returns an empty Shapes over the scheduler's cache.
func NewShapes(sched *scheduler.Scheduler) *Shapes {
	return newShapes(
		func(s *cache.Snapshot) error { return sched.Cache.UpdateSnapshot(klog.Background(), s) },
		func(pod *corev1.Pod) framework.Framework { return sched.Profiles[pod.Spec.SchedulerName] })
}

func newShapes(refresh func(*cache.Snapshot) error, profile func(*corev1.Pod) framework.Framework) *Shapes {
	return &Shapes{refresh: refresh, profile: profile, snapshot: cache.NewEmptySnapshot(), shapes: map[string]*Shape{}, levels: map[string]*nodeLevel{}}
}

// FittingPods returns how many pods of the shape fit on all nodes according to the last Update. It is an upper bound.
func (s *Shape) FittingPods() int { return int(s.fits) }

// TrackShape returns the shape of a pod, counted with the nodes of the last Update. Each Track needs a Release. It must
// be called from the scheduling loop, because it runs plugins of the pod's profile.
func (s *Shapes) TrackShape(ctx context.Context, pod *corev1.Pod) (*Shape, error) {
	requirements, ok := requirements(pod)
	f := s.profile(pod)
	if !ok || f == nil {
		return nil, fmt.Errorf("counting nodes for pod %s: no profile %s, or its requests cannot be read", klog.KObj(pod), pod.Spec.SchedulerName)
	}
	key := pod.Spec.SchedulerName + " " + requirements
	shape := s.shapes[key]
	if shape == nil {
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			return nil, fmt.Errorf("reading affinity of pod %s: %w", klog.KObj(pod), err)
		}
		state := framework.NewCycleState()
		state.Write(planningKey, planningMark{})
		if _, status, _ := f.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() && !status.IsRejected() {
			return nil, fmt.Errorf("running PreFilter plugins for pod %s: %w", klog.KObj(pod), status.AsError())
		}
		s.tracked++
		shape = &Shape{
			number: s.tracked, key: key, pod: pod, profile: f, affinity: nodeaffinity.GetRequiredNodeAffinity(pod), slots: make([]int64, len(s.nodes)),
			demand: demandOf(ctx, f, namesOf(f.ListPlugins().Filter), info, state),
		}
		for i, n := range s.nodes {
			shape.setSlots(i, shape.slotsOn(n))
		}
		s.shapes[key] = shape
	}
	shape.users++
	return shape, nil
}

// ReleaseShape ends the use of a shape. Counting ends with the last user.
func (s *Shapes) ReleaseShape(shape *Shape) {
	if shape.users--; shape.users == 0 {
		delete(s.shapes, shape.key)
		s.reserved.forget(shape)
	}
}

// UpdateOffered processes that DeviceClasses offer other extended resources than before. The next UpdateNodes counts
// with them.
func (s *Shapes) UpdateOffered() {
	for _, shape := range s.shapes {
		if shape.demand.updateOffered(shape.profile) {
			for i := range s.generations {
				s.generations[i] = unsettled
			}
		}
	}
}

// UpdateNodes reads the current state of the scheduler's cache, and returns of which shapes there is more room.
func (s *Shapes) UpdateNodes() (RaisedShapes, error) {
	raised := RaisedShapes{Shapes: sets.New[*Shape](), Domains: sets.New[*DomainShape]()}
	if err := s.refresh(s.snapshot); err != nil {
		return raised, fmt.Errorf("taking over the nodes of the scheduler's cache: %w", err)
	}
	list, err := s.snapshot.NodeInfos().List()
	if err != nil {
		return raised, fmt.Errorf("listing the nodes of the scheduler's cache: %w", err)
	}
	if !s.positionsHold(list) {
		s.moveNodes(list, &raised)
	}
	for i, n := range list {
		generation := n.GetGeneration()
		if s.generations[i] == generation {
			continue
		}
		if s.generations[i] == unsettled { // pods are counted otherwise than before
			s.reserved = nil
		}
		s.generations[i] = generation
		s.changed++
		s.setNode(i, n, &raised)
	}
	return raised, nil
}

// RaisedShapes are the shapes of which more pods fit on some node than before, even if the total has decreased, and
// those of which more pods fit on some node of the domain.
type RaisedShapes struct {
	Shapes  sets.Set[*Shape]
	Domains sets.Set[*DomainShape]
}

// RaisedSince reports whether, as of the last Update, more pods of one of the shapes fit on some node than in the
// state of that node in an older snapshot, or some fit on a node that was not in one of the domains then.
func (s *Shapes) RaisedSince(nodes []fwk.NodeInfo, shapes []*Shape, domains []*DomainShape) bool {
	if len(shapes) == 0 {
		return false
	}
	var before map[string]fwk.NodeInfo // created when the first changed node is found
	for i, n := range s.nodes {
		if i < len(nodes) && nodes[i].GetGeneration() == s.generations[i] {
			continue
		}
		if before == nil {
			before = make(map[string]fwk.NodeInfo, len(nodes))
			for _, old := range nodes {
				before[old.Node().Name] = old
			}
		}
		old, known := before[n.Node().Name]
		if known && old.GetGeneration() == s.generations[i] {
			continue
		}
		for _, shape := range shapes {
			if shape.slots[i] > 0 && (!known || shape.slots[i] > shape.slotsOn(old)) {
				return true
			}
		}
		if slices.ContainsFunc(domains, func(d *DomainShape) bool { return d.base.slots[i] > 0 && d.gained(i, old.Node()) }) {
			return true
		}
	}
	return false
}

// positionsHold reports whether the nodes have the same positions. The snapshot creates a new list when a node is
// added or removed.
func (s *Shapes) positionsHold(list []fwk.NodeInfo) bool {
	if len(list) != len(s.nodes) {
		return false
	}
	return len(list) == 0 || &list[0] == s.first
}

// moveNodes processes a different list of nodes, and keeps the counts of nodes in both lists.
func (s *Shapes) moveNodes(list []fwk.NodeInfo, raised *RaisedShapes) {
	before := make(map[fwk.NodeInfo]int, len(s.nodes))
	for i, n := range s.nodes {
		before[n] = i
	}
	generations := make([]int64, len(list))
	from := make([]int, len(list))
	for i, n := range list {
		from[i] = -1
		if k, ok := before[n]; ok { // the snapshot keeps a node's NodeInfo as long as the node exists
			from[i], generations[i] = k, s.generations[k]
		}
	}
	s.moveLevels(from)
	for _, shape := range s.shapes {
		slots := make([]int64, len(list))
		shape.fits = 0
		for i, k := range from {
			if k >= 0 {
				slots[i] = shape.slots[k]
				shape.fits += slots[i]
			}
		}
		shape.slots = slots
	}
	for i, n := range list {
		if from[i] < 0 {
			s.setNode(i, n, raised)
			generations[i] = n.GetGeneration()
		}
	}
	s.nodes, s.generations, s.first = list, generations, nil
	s.reserved, s.position, s.changed = nil, make(map[string]int, len(list)), s.changed+1
	for i, n := range list {
		if n.Node() != nil {
			s.position[n.Node().Name] = i
		}
	}
	if len(list) > 0 {
		s.first = &list[0]
	}
}

// setNode records the slots and the domains of a node that changed.
func (s *Shapes) setNode(i int, n fwk.NodeInfo, raised *RaisedShapes) {
	s.setLevels(i, n.Node())
	for _, shape := range s.shapes {
		shape.setNode(i, n, raised)
	}
	s.endLevels(i)
}

// setNode records the slots on a node that changed.
func (s *Shape) setNode(i int, n fwk.NodeInfo, raised *RaisedShapes) {
	before := s.slots[i]
	if s.setSlots(i, s.slotsOn(n)) {
		raised.Shapes.Insert(s)
	}
	for _, l := range s.levels {
		l.setNode(l.level.before, l.level.of[i], before, s.slots[i], func(d *DomainShape) { raised.Domains.Insert(d) })
	}
}

// setSlots records the slots on a node, and reports whether they have increased.
func (s *Shape) setSlots(i int, slots int64) bool {
	more := slots > s.slots[i]
	s.fits += slots - s.slots[i]
	s.slots[i] = slots
	return more
}

// slotsOn returns how many more pods of the shape the node takes.
func (s *Shape) slotsOn(n fwk.NodeInfo) int64 {
	node := n.Node()
	if node == nil || !s.mayUseNode(node) {
		return 0
	}
	return int64(s.demand.slotsOnNode(n))
}

// mayUseNode reports whether the pods may use the node if it has room.
func (s *Shape) mayUseNode(node *corev1.Node) bool {
	if name := s.pod.Spec.NodeName; name != "" && name != node.Name {
		return false
	}
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append(slices.Clip(taints), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), taints, s.pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, true)
	if untolerated {
		return false
	}
	ok, err := s.affinity.Match(node)
	return ok || err != nil // an affinity that cannot be parsed is left to the filter
}

// Reserved returns how many of FittingPods use room that is reserved from the asker. What is reserved for any leaf of
// the asker's own gang counts as free. Repeated calls for the same nodes cost one map lookup.
func (s *Shapes) Reserved(shape *Shape, view *reservations.View, a reservations.Asker) int {
	return s.countReserved(shape, shape, 0, view, a, func(on map[int]int) int {
		n := 0
		for _, slots := range on {
			n += slots
		}
		return n
	})
}

// ReservedIn does the same for a DomainShape. If any domain counts, another one may have the most room beside what is
// reserved.
func (s *Shapes) ReservedIn(shape *DomainShape, view *reservations.View, a reservations.Asker) int {
	return s.countReserved(shape, shape.base, s.changed, view, a, func(on map[int]int) int {
		in := map[int32]int64{} // by domain
		for i, slots := range on {
			in[shape.slots.level.of[i]] += int64(slots)
		}
		if shape.domain != noDomain {
			return int(in[shape.domain])
		}
		most := int64(0)
		fits := shape.slots.fits
		for d, n := range fits[len(fits)/2:] {
			if n > most {
				most = max(most, n-in[int32(d)])
			}
		}
		return shape.FittingPods() - int(most)
	})
}

// countReserved returns what sum returns for the number of slots that are reserved from the asker, by position of the
// node. The result is kept until that, or changed, is different.
func (s *Shapes) countReserved(of any, shape *Shape, changed int64, view *reservations.View, a reservations.Asker, sum func(on map[int]int) int) int {
	table := s.reserved.tableOf(view, a, nodeStates{s.nodes, s.generations, s.position})
	if table == nil {
		return 0
	}
	if known, ok := table.sums[of]; ok && known.reads == table.reads && known.changed == changed {
		return known.slots
	}
	on := map[int]int{}
	for i, x := range table.on {
		if slots := int(shape.slots[i]); slots > 0 && !x.others.IsEmpty() {
			on[i] = slots - min(slots, x.slotsFor(shape.number, &shape.demand, s.nodes[i]).slots)
		}
	}
	n := sum(on)
	table.keepSum(of, reservedSum{reads: table.reads, changed: changed, slots: n})
	return n
}

// roomPlugins are the filters that the counts of Shapes take into account.
var roomPlugins = sets.New(names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodeResourcesFit)

// Inputs are what filters read beside what Shapes counts.
type Inputs struct {
	Labels  bool // of other pods: required affinity, and hard spreading constraints of the pod's own
	Ports   bool // host ports of other pods
	Volumes bool // claims of the pod, and their volumes, classes and nodes
	Disks   bool // volumes that other pods use
	// Attachments: how many volumes a node can attach.
	Attachments bool
	Devices     bool // ResourceClaims, and devices
	// Others: anything else, for example filters that are not known here.
	Others bool
}

// InputsOf returns what a filter reads. Filters that are not known read Others.
func InputsOf(filter string) Inputs {
	switch filter {
	case names.InterPodAffinity, names.PodTopologySpread:
		return Inputs{Labels: true}
	case names.NodePorts:
		return Inputs{Ports: true}
	case names.VolumeBinding, names.VolumeZone:
		return Inputs{Volumes: true}
	case names.VolumeRestrictions:
		return Inputs{Volumes: true, Disks: true}
	case names.NodeVolumeLimits:
		return Inputs{Volumes: true, Attachments: true}
	case names.DynamicResources:
		return Inputs{Devices: true}
	}
	return Inputs{Others: !roomPlugins.Has(filter)}
}

// Add adds the other inputs.
func (in *Inputs) Add(other Inputs) {
	in.Labels = in.Labels || other.Labels
	in.Ports = in.Ports || other.Ports
	in.Volumes = in.Volumes || other.Volumes
	in.Disks = in.Disks || other.Disks
	in.Attachments = in.Attachments || other.Attachments
	in.Devices = in.Devices || other.Devices
	in.Others = in.Others || other.Others
}

// RefusedBy returns the inputs by which a class may have been refused in this plan, beside what Shapes counts. Those of
// filters of volumes matter only if one has refused a node. What nodes refused in real cycles belongs to Others.
// counted is false if not even the counts apply to the class, because its resources may not come from the nodes.
func (w *Snapshot) RefusedBy(index int) (in Inputs, counted bool) {
	c := w.classes[index]
	counted = c.devices == nil && c.skip.Has(names.DynamicResources) || !w.cache.enabledPlugins(names.DynamicResources)
	in = Inputs{Devices: c.devices != nil, Others: c.limits != nil}
	if c.refuse != nil {
		other := InputsOf(c.refuse.Plugin())
		other.Others = other == Inputs{}
		in.Add(other)
		return in, counted
	}
	volumes := c.only != nil || c.awaitsVolumes || len(c.exclusive) > 0
	for _, name := range w.cache.filters {
		other := InputsOf(name)
		if c.skip.Has(name) || other.Volumes && !volumes && !c.refusedBy.Has(name) {
			continue
		}
		if name == names.PodTopologySpread && !slices.ContainsFunc(c.info.Pod.Spec.TopologySpreadConstraints, isHard) {
			other = Inputs{Others: true} // default constraints, whose selectors are not known here
		}
		in.Add(other)
	}
	return in, counted
}

func isHard(c corev1.TopologySpreadConstraint) bool {
	return c.WhenUnsatisfiable == corev1.DoNotSchedule
}

// HostPort is a port of a node that a pod uses. IP is never "".
type HostPort struct {
	IP, Protocol string
	Port         int32
}

// HostPorts returns the host ports that NodePorts compares.
func HostPorts(pod *corev1.Pod) []HostPort {
	var out []HostPort
	for _, p := range util.GetHostPorts(pod) {
		out = append(out, HostPort{cmp.Or(p.HostIP, fwk.DefaultBindAllHostIP), cmp.Or(string(p.Protocol), string(corev1.ProtocolTCP)), p.HostPort})
	}
	return out
}
