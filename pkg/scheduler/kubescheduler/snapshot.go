// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/reservations"
)

// planningKey marks the CycleStates of a plan: the admission plugin skips itself in them.
const planningKey fwk.StateKey = "muster/planning"

type planningMark struct{}

func (planningMark) Clone() fwk.StateData { return planningMark{} }

// IsPlanning reports whether the state belongs to a plan, not to a pod's own cycle.
func IsPlanning(state fwk.CycleState) bool {
	_, err := state.Read(planningKey)
	return err == nil
}

// Snapshot is the cluster as the planner sees it: the scheduler's snapshot, with the pods planned so far on clones of
// their nodes, filtered by the profile's own filters and ordered by its own scores. It implements placement.World. It
// is created in PreFilter for one plan; the underlying snapshot must not change in the meantime.
//
// Nodes are filtered in two steps. Results of plainFilters, which depend only on the node and the kind of pod, are
// taken from the FilterCache. The other filters, if the class needs any, run when a node is about to be used. All
// filters run if pods are nominated on it, or if pods are planned on it and more than their requests matters. A node is
// cloned only if a filter or a plugin must see the pods that are planned on it.
type Snapshot struct {
	ctx       context.Context //nolint:containedctx // of the one call that the Snapshot is made in and for
	f         framework.Framework
	logger    klog.Logger
	cache     *FilterCache
	nodes     *nodeTable // of cache
	classes   []*class
	placed    []placed
	reached   []reachedScan // heights ascend
	expired   func() bool
	asked     int // nodes visited; the time is checked every 32 nodes
	outOfTime bool

	reserved      *reservedTable                         // of asker; nil: nothing is reserved
	reservedFreed map[int]*reservedOnNode                // in its place, on nodes with freed pods
	ownPlanned    map[int]map[string]reservations.Amount // by node with room for leaves of the gang, by leaf: what the pods use that are planned there
	reservedView  *reservations.View                     // Options.Reserved
	asker         reservations.Asker
	freed         *freedPods       // nil: nobody has asked for the running pods
	only          sets.Set[string] // see UseOnly; nil: all nodes

	areas          []area                       // by placement.Area; the first one contains all nodes
	areasOf        map[levelIn][]placement.Area // as far as asked
	requested      []corev1.ResourceName        // see resources
	usageRead      bool                         // usage has been called
	confined       []confinedClass              // by number of a class, after those of classes
	confinedNumber map[confinedClass]int

	claims     claims
	devices    *devices         // nil: no class needs any
	shared     sets.Set[string] // Options.SharedClaims
	priority   int32            // of the gang
	namespaces corelisters.NamespaceLister
	volumes    corelisters.PersistentVolumeClaimLister

	existing      existingVolumes
	sharedVolumes sets.Set[string] // Options.SharedVolumes
}

// placed is a planned pod: the class and the position of the node.
type placed struct {
	class *class
	node  int
}

// Options are the optional inputs of a Snapshot.
type Options struct {
	// Cache contains the results of earlier plans. It is used by this Snapshot until the next one is created with it.
	// nil: every node is evaluated anew.
	Cache *FilterCache
	// Refusals are what nodes refused in real cycles; nil: nothing is known. Unwinds reports whether a pod is assumed
	// on a node for a plan that was aborted; nil: none is.
	Refusals *Refusals
	Unwinds  func(types.UID) bool
	// Reserved is what is reserved on nodes; nil: nothing. Asker is the gang that is planned, Leaves are the leaves of
	// the classes. What is reserved for a leaf of the gang is available only to the classes of that leaf.
	Reserved *reservations.View
	Asker    reservations.Asker
	Leaves   []string
	// Pods is the number of pods by class. nil: unknown, treated as more than one.
	Pods []int
	// Members are pods by class. Without them, a class counts the volumes of its first pod alone.
	Members [][]*corev1.Pod
	// SharedClaims are the names of the ResourceClaims that more than one of the waiting pods uses, SharedVolumes those
	// of the PersistentVolumeClaims. nil: unknown, all pods of a class are treated as if they used the same
	// PersistentVolumeClaims.
	SharedClaims, SharedVolumes sets.Set[string]
	// Now is the current time. It must come from the same clock as that of Refusals.Record.
	Now time.Time
	// Expired reports whether the time for the plan is over: Place then finds no node, and Explain omits nodes that
	// it has not evaluated. nil: no limit except that of the context.
	Expired func() bool
}

// NewSnapshot prepares a plan for the given classes, each represented by one of its pods.
func NewSnapshot(ctx context.Context, f framework.Framework, nodes []fwk.NodeInfo, classes []*corev1.Pod, opts Options) (*Snapshot, error) {
	if opts.Cache == nil {
		opts.Cache = NewFilterCache()
	}
	w := &Snapshot{
		ctx: ctx, f: f, logger: klog.FromContext(ctx), cache: opts.Cache, nodes: &opts.Cache.nodes, expired: opts.Expired,
		shared: opts.SharedClaims, sharedVolumes: opts.SharedVolumes,
		claims:     claims{exclusive: map[string]int{}, unbound: map[string]onNode{}},
		namespaces: f.SharedInformerFactory().Core().V1().Namespaces().Lister(),
		volumes:    f.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister(),
	}
	w.priority = opts.Asker.Priority
	w.cache.bindProfile(f)
	w.existing = newExistingVolumes(w.cache.filters)
	w.nodes.beginPlan(nodes)
	w.areas = []area{{nodes: w.nodes.all}}
	if opts.Refusals == nil {
		opts.Refusals = NewRefusals()
	}
	if opts.Unwinds == nil {
		opts.Unwinds = func(types.UID) bool { return false }
	}
	devices := devicesOf(f)
	for i, pod := range classes {
		pods := 2
		if i < len(opts.Pods) {
			pods = opts.Pods[i]
		}
		members := []*corev1.Pod{pod}
		if i < len(opts.Members) && len(opts.Members[i]) > 0 {
			members = opts.Members[i]
		}
		c, err := w.newClass(pod, pods, members, &opts, devices)
		if err != nil {
			return nil, err
		}
		w.classes = append(w.classes, c)
	}
	w.relateClasses()
	w.readReservations(opts.Reserved, opts.Asker, opts.Leaves)
	return w, nil
}

// TakesMoreThanRoom reports whether other pods may keep a pod of a class from a node that has room for it: it needs
// devices, also of an extended resource that a DeviceClass offers, a volume for an unbound claim, a host port, or a
// place in a larger domain, by required affinity or hard spreading, also that of the profile.
func (w *Snapshot) TakesMoreThanRoom() bool {
	return w.devices != nil || slices.ContainsFunc(w.classes, func(c *class) bool {
		return c.awaitsVolumes || c.spread != nil || len(c.info.GetRequiredAffinityTerms())+len(c.info.GetRequiredAntiAffinityTerms()) > 0 ||
			len(c.info.Pod.Spec.ResourceClaims) > 0 || len(HostPorts(c.info.Pod)) > 0
	})
}

// timeIsOver reports whether the plan's time is over. It may be given more.
func (w *Snapshot) timeIsOver() bool {
	w.asked++
	if w.outOfTime || w.asked%32 == 0 {
		w.outOfTime = w.ctx.Err() != nil || w.expired != nil && w.expired()
	}
	return w.outOfTime
}

// Place implements placement.World.
func (w *Snapshot) Place(index int, domain string) (string, bool) {
	c, area := w.classAt(index)
	w.findNodesOf(c)
	s, ok := w.scanOf(c, area, domain)
	if !ok {
		return "", false
	}
	for k := s.startIndex(); k < len(s.order); k++ {
		i := int(s.order[k])
		if w.timeIsOver() {
			return "", false
		}
		if !w.takesAnother(c, i) {
			continue
		}
		if c.kind == independent {
			w.recordReach(s, k)
		}
		if err := w.addPlanned(c, i); err != nil {
			w.logger.Error(err, "Failed to plan a pod on a node", "node", w.nodes.objects[i].Name)
			continue
		}
		return w.nodes.objects[i].Name, true
	}
	if c.kind == independent {
		w.recordReach(s, len(s.order))
	}
	return "", false
}

// takesAnother reports whether a node that plainFilters accept for the class without planned pods takes another pod of
// the class now.
func (w *Snapshot) takesAnother(c *class, i int) bool {
	if len(w.nodes.planned[i].pods) == 0 && w.hasOnlyReserved(c, i) { // first: all of what is reserved may come first in the order
		return false
	}
	if w.whyBarred(c, i) != "" || !c.near.allowsNode(i) || c.spread.violatesSkew(i) || w.isLimited(c, i) {
		return false
	}
	planned := len(w.nodes.planned[i].pods)
	if planned > 0 && w.isFull(c, i) {
		return false
	}
	if planned > 0 && w.hasOnlyReserved(c, i) {
		return false
	}
	return w.refusalReason(c, i, planned == 0 || c.known.demand.complete) == ""
}

// isFull reports whether the node certainly has no room for another pod of the class beside those that are planned on
// it.
func (w *Snapshot) isFull(c *class, i int) bool {
	if p := &w.nodes.planned[i]; c.known.demand.complete && p.unlike == 0 && p.pods[0] == c.planned {
		return len(p.pods) >= int(c.known.slots[i])
	}
	return c.known.demand.slotsOnNode(w.nodes.nodeWithPlanned(i)) == 0
}

// refusalReason returns the reason why the node refuses a pod of the class now, "" if it does not. accepts:
// plainFilters certainly accept it, if no pod is nominated.
func (w *Snapshot) refusalReason(c *class, i int, accepts bool) string {
	if !accepts || len(w.nominatedOn(i)) > 0 { // nominated pods are not visible on the node itself
		return w.runFilters(c, i)
	}
	if !c.plain {
		skip := c.skipPlain
		if c.bindable[i] {
			skip = c.skipKnown
		}
		c.state.SetSkipFilterPlugins(skip)
		status := w.f.RunFilterPlugins(w.ctx, c.state, c.info.Pod, w.nodes.nodeWithPlanned(i))
		c.state.SetSkipFilterPlugins(c.skip)
		if !status.IsSuccess() {
			c.refusedBy.Insert(status.Plugin())
			return firstReason(status)
		}
		c.bindable[i] = true
	}
	return w.findConflict(c, i)
}

// nominatedOn returns the pods that are nominated for the node. It is asked once per plan.
func (w *Snapshot) nominatedOn(i int) []nominatedPod {
	p := &w.nodes.planned[i]
	if !p.asked {
		w.nodes.touched, p.asked = append(w.nodes.touched, i), true
		for _, x := range w.f.NominatedPodsForNode(w.nodes.objects[i].Name) {
			p.nominated = append(p.nominated, nominatedPod{x.GetPod(), AmountOf(x.GetPod())})
		}
	}
	return p.nominated
}

// runFilters returns the reason why the node refuses a pod of the class now, "" if it does not.
func (w *Snapshot) runFilters(c *class, i int) string {
	if c.refuse != nil {
		return firstReason(c.refuse)
	}
	node := w.nodes.nodeWithPlanned(i)
	if why := w.whyBarred(c, i); why != "" {
		return why
	}
	status := w.f.RunFilterPluginsWithNominatedPods(w.ctx, c.state, c.info.Pod, node)
	if !status.IsSuccess() {
		c.refusedBy.Insert(status.Plugin())
		return firstReason(status)
	}
	return w.findConflict(c, i)
}

// whyBarred returns the reason why the node is excluded for the class regardless of the filters, "" if it is not.
func (w *Snapshot) whyBarred(c *class, i int) string {
	if c.only != nil && !c.only.Has(w.nodes.objects[i].Name) || w.only != nil && !w.only.Has(w.nodes.objects[i].Name) {
		return "node(s) didn't match the pod's node name selection"
	}
	if l, ok := c.limits[i]; ok && l.accepted == 0 {
		return l.why
	}
	return ""
}

// findConflict checks constraints that a filter skipped at PreFilter does not evaluate: planned pods whose required
// anti-affinity excludes the class from the node, claims that only one pod, or only one node, may use, and the volumes
// and devices that the planned pods leave.
func (w *Snapshot) findConflict(c *class, i int) string {
	if why := w.claims.claimConflict(c, i); why != "" {
		return why
	}
	for _, b := range c.blocked {
		if v := b.topology.value[i]; v >= 0 && b.count[v] > 0 {
			return "node(s) didn't satisfy existing pods anti-affinity rules"
		}
	}
	if why := w.volumeConflict(c, i); why != "" {
		return why
	}
	if c.devices != nil {
		return w.allocateDevices(c, i).why
	}
	return ""
}

func (w *Snapshot) namespaceLabels(name string) labels.Set {
	ns, err := w.namespaces.Get(name)
	if err != nil {
		return nil
	}
	return ns.Labels
}

// firstReason returns the first reason of a status, by which the stock scheduler counts nodes.
func firstReason(status *fwk.Status) string {
	if r := status.Reasons(); len(r) > 0 {
		return r[0]
	}
	return status.Code().String()
}

// addPlanned puts a pod of the class on a clone of the node, and notifies every class whose filter results may change.
func (w *Snapshot) addPlanned(c *class, i int) error {
	if c.devices != nil {
		if err := w.takeDevices(c, i); err != nil {
			return err
		}
	}
	w.takeVolumes(c, i)
	w.nodes.pushPod(i, c.planned)
	w.placed = append(w.placed, placed{c, i})
	w.countPlanned(c, i, 1)
	for k, other := range w.classes {
		if err := w.notifyClass(other, c.planned, i, true); err != nil {
			for _, notified := range w.classes[:k] {
				if err := w.notifyClass(notified, c.planned, i, false); err != nil {
					w.logger.Error(err, "Failed to remove a planned pod from the state of a class", "node", w.nodes.objects[i].Name)
				}
			}
			w.popPlanned()
			return err
		}
	}
	return nil
}

// Undo implements placement.World.
func (w *Snapshot) Undo(n int) {
	for ; n > 0; n-- {
		p := w.popPlanned()
		for _, c := range w.classes {
			if err := w.notifyClass(c, p.class.planned, p.node, false); err != nil {
				w.logger.Error(err, "Failed to remove a planned pod from the state of a class", "node", w.nodes.objects[p.node].Name)
			}
		}
	}
	for n := len(w.reached); n > 0 && w.reached[n-1].height > len(w.placed); n-- {
		w.reached[n-1].scan.dropAbove(len(w.placed))
		w.reached = w.reached[:n-1]
	}
}

// popPlanned removes the last planned pod from its node.
func (w *Snapshot) popPlanned() placed {
	p := w.placed[len(w.placed)-1]
	w.placed = w.placed[:len(w.placed)-1]
	w.nodes.popPod(w.logger, p.node)
	w.countPlanned(p.class, p.node, -1)
	if p.class.devices != nil {
		w.giveBackDevices()
	}
	w.giveBackVolumes(p.class)
	return p
}

// countPlanned records a pod of the class that was added to (1) or removed from (-1) a node.
func (w *Snapshot) countPlanned(c *class, i, delta int) {
	w.claims.countPlanned(c, i, delta)
	for _, b := range c.blocks {
		if v := b.topology.value[i]; v >= 0 {
			b.count[v] += int32(delta)
		}
	}
	for _, near := range c.attracts {
		near.countPlanned(i, delta)
	}
	if w.reserved != nil {
		w.countReserved(c, i, delta)
	}
}

// notifyClass updates a class's PreFilter state for a pod that was added to or removed from a node.
func (w *Snapshot) notifyClass(c *class, info *framework.PodInfo, i int, came bool) error {
	if !c.listens {
		return nil
	}
	step := w.f.RunPreFilterExtensionAddPod
	if !came {
		step = w.f.RunPreFilterExtensionRemovePod
	}
	if status := step(w.ctx, c.state, c.info.Pod, info, w.nodes.nodeWithPlanned(i)); !status.IsSuccess() {
		return status.AsError()
	}
	if came {
		return w.repairSpread(c, info, i)
	}
	c.spread.readCounts(i)
	return nil
}

// scan is the progress of trying an order of nodes with the current placements.
type scan struct {
	order   []int32
	reached []reached // heights ascend
}

// reached: with this many pods planned, the nodes before index k of the order refused the class. For an Independent
// class they also refuse it with more pods planned.
type reached struct{ height, k int }

// startIndex returns the index in the order at which to begin.
func (s *scan) startIndex() int {
	if n := len(s.reached); n > 0 {
		return s.reached[n-1].k
	}
	return 0
}

// reachedScan is a scan with an entry for a number of planned pods, which Undo drops if there are fewer.
type reachedScan struct {
	height int
	scan   *scan
}

// recordReach records that, with the pods planned now, the nodes before index k of the order refused the class.
func (w *Snapshot) recordReach(s *scan, k int) {
	height := len(w.placed)
	if n := len(s.reached); n > 0 && s.reached[n-1].height == height {
		s.reached[n-1].k = k
		return
	}
	s.reached = append(s.reached, reached{height, k})
	if height > 0 {
		w.reached = append(w.reached, reachedScan{height, s})
	}
}

// dropAbove removes the entries for more planned pods than the given height.
func (s *scan) dropAbove(height int) {
	for n := len(s.reached); n > 0 && s.reached[n-1].height > height; n-- {
		s.reached = s.reached[:n-1]
	}
}

// findNodesOf determines once which nodes take the class without planned pods, and their order.
func (w *Snapshot) findNodesOf(c *class) {
	if c.known != nil {
		return
	}
	if c.refuse != nil {
		c.known = &filterResults{reasons: make([]uint16, len(w.nodes.nodes))}
		return
	}
	c.known = w.resultsOf(c)
	c.scan.order = w.rankingOf(c).order
}

// scanOf returns the nodes of the domain in the area that take the class, best first. It returns false if there are
// none.
func (w *Snapshot) scanOf(c *class, a placement.Area, domain string) (*scan, bool) {
	if domain == "" && c.near != nil && !c.near.allowsAnyDomain() {
		// Only domains with a matching pod are relevant; if there is only one, its nodes are sufficient.
		switch only := c.near.onlyDomain(); only {
		case none:
			return nil, false
		case several:
		default:
			domain = c.near.topology.key + "=" + c.near.topology.names[only]
		}
	}
	return w.scanIn(c, a, domain), true
}

// scanIn returns the nodes of the domain in the area that take the class without planned pods, best first.
func (w *Snapshot) scanIn(c *class, a placement.Area, domain string) *scan {
	if a == 0 && domain == "" {
		return &c.scan
	}
	at := place{a, domain}
	s := c.scans[at]
	if s != nil {
		return s
	}
	s = &scan{}
	if c.refuse == nil {
		s.order = w.orderIn(c, a, domain)
	}
	if c.scans == nil {
		c.scans = map[place]*scan{}
	}
	c.scans[at] = s
	return s
}

// orderIn returns the order of scanIn.
func (w *Snapshot) orderIn(c *class, a placement.Area, domain string) []int32 {
	nodes := w.nodesIn(a, domain)
	if domain == "" && len(nodes) > len(c.scan.order)/8 { // it is faster not to sort them
		return slices.DeleteFunc(slices.Clone(c.scan.order), func(i int32) bool { return !w.isIn(a, i) })
	}
	r, order := c.rankOfNodes(), make([]int32, 0, len(nodes))
	for _, i := range nodes {
		if c.known.reasons[i] == 0 {
			order = append(order, i)
		}
	}
	var lost map[int32]int
	if domain != "" {
		lost = w.lostSlots(c, order)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(lost[a], lost[b]), cmp.Compare(r[a], r[b])) })
	return order
}
