package kubescheduler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
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

// Snapshot is the cluster as the planner sees it: the scheduler's snapshot, with the pods planned so far on clones of the
// nodes they would go to, judged by the profile's own filters and ordered by its own scores. It implements
// placement.World. Made in a PreFilter for one plan; the snapshot must not change meanwhile.
type Snapshot struct {
	ctx     context.Context //nolint:containedctx // of the one call that the Snapshot is made in and for
	f       framework.Framework
	logger  klog.Logger
	nodes   []fwk.NodeInfo
	clones  []fwk.NodeInfo // by node; nil where nothing is planned
	classes []*class
	placed  []placed
	version int             // of placed: grows with every change
	avoid   map[string]bool // nodes that refused a member in its own cycle a moment ago
	memory  *FilterCache    // nil: every node is judged anew

	// terms are the required anti-affinity terms of any class: every class is then judged anew after each placement.
	antiAffinity bool
	namespaces   corelisters.NamespaceLister
	claims       corelisters.PersistentVolumeClaimLister
}

// class is a set of pods that the filters cannot tell apart.
type class struct {
	info    *framework.PodInfo
	planned *framework.PodInfo // what is put on nodes for a pod of the class
	state   fwk.CycleState
	refuse  *fwk.Status // PreFilter's own refusal: no node will do
	only    map[string]bool
	// local: placing a pod changes the verdict on the node it goes to, and on no other.
	local bool
	// nominated: its first pod has a nomination of its own, which does not count against it.
	nominated bool
	// listens: its PreFilter state has to be told of every placement.
	listens bool
	// spread: PodTopologySpread takes part; its counts have to be refreshed after each placement.
	spread []int // one node of each domain, of every key
	// exclusive are claims that one pod of the cluster may use (ReadWriteOncePod).
	exclusive []string
	// unbound are claims without a volume: pods that share one have to be on one node until it is bound.
	unbound []string

	judged   bool
	known    *verdicts // what plans before this one found out about such pods; nil: nothing may be kept
	reasons  []string  // by node, "" = passes with nothing planned
	order    []int     // nodes to be tried, best first: those that pass with nothing planned, then, if not local, the others
	feasible int       // of order, those that pass with nothing planned
	capacity int       // upper bound of the pods that fit with nothing planned, over all nodes
	scan     *scan     // local only
	resource corev1.ResourceName
	request  int64
}

// scan is how far the order of a class, or of several that look alike, has been tried with what is planned now.
type scan struct {
	cursor  int                // nodes of order before it refuse
	refusal *placement.Refusal // what Explain said last; nil: not known
	version int                // Snapshot.version then
}

type placed struct {
	class, node int
	info        *framework.PodInfo
}

// NewSnapshot prepares a plan for these classes, each given by one pod of it. avoid names nodes that are not to be used.
func NewSnapshot(ctx context.Context, f framework.Framework, nodes []fwk.NodeInfo, classes []*corev1.Pod, avoid map[string]bool) (*Snapshot, error) {
	w := &Snapshot{
		ctx: ctx, f: f, logger: klog.FromContext(ctx), nodes: nodes, clones: make([]fwk.NodeInfo, len(nodes)), avoid: avoid,
		namespaces: f.SharedInformerFactory().Core().V1().Namespaces().Lister(),
		claims:     f.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister(),
	}
	for _, pod := range classes {
		c, err := w.newClass(pod)
		if err != nil {
			return nil, err
		}
		w.classes = append(w.classes, c)
		w.antiAffinity = w.antiAffinity || len(c.info.GetRequiredAntiAffinityTerms()) > 0
	}
	for _, c := range w.classes {
		if w.antiAffinity || len(c.exclusive) > 0 || len(c.unbound) > 0 {
			c.local = false
		}
		if !c.local {
			w.judge(c) // later its state would know of what is planned
		}
	}
	return w, nil
}

// newClass runs the profile's PreFilter plugins for a class, in a CycleState of its own.
func (w *Snapshot) newClass(pod *corev1.Pod) (*class, error) {
	// A nomination of its own would make the pod compete with itself.
	nominated := pod.Status.NominatedNodeName != ""
	if nominated {
		pod = pod.DeepCopy()
		pod.Status.NominatedNodeName = ""
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fmt.Errorf("reading affinity of pod %s: %w", klog.KObj(pod), err)
	}
	c := &class{info: info, planned: info.DeepCopy(), state: framework.NewCycleState(), nominated: nominated, scan: &scan{}}
	c.planned.Pod.UID += "/planned" // a class stands for many pods: none of them is the one that is judged
	c.state.Write(planningKey, planningMark{})
	result, status, _ := w.f.RunPreFilterPlugins(w.ctx, c.state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, fmt.Errorf("running PreFilter plugins for pod %s: %w", klog.KObj(pod), status.AsError())
		}
		c.refuse = status
	}
	if !result.AllNodes() {
		c.only = make(map[string]bool, len(result.NodeNames))
		for n := range result.NodeNames {
			c.only[n] = true
		}
	}
	skip := c.state.GetSkipFilterPlugins()
	c.listens = c.refuse == nil && !skip.HasAll(names.InterPodAffinity, names.PodTopologySpread, names.VolumeRestrictions)
	c.local = skip.HasAll(names.InterPodAffinity, names.PodTopologySpread, names.VolumeBinding, names.DynamicResources)
	if !skip.Has(names.PodTopologySpread) {
		c.spread = w.oneNodePerDomain(pod)
	}
	for i := range pod.Spec.Volumes {
		if v := pod.Spec.Volumes[i].PersistentVolumeClaim; v != nil {
			claim, err := w.claims.PersistentVolumeClaims(pod.Namespace).Get(v.ClaimName)
			if err != nil {
				continue // VolumeBinding refuses the pod and says so
			}
			key := pod.Namespace + "/" + v.ClaimName
			if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
				c.exclusive = append(c.exclusive, key)
			}
			if claim.Spec.VolumeName == "" {
				c.unbound = append(c.unbound, key)
			}
		}
	}
	c.resource, c.request = mainResource(info)
	return c, nil
}

// mainResource returns the resource that a pod is about: the extended resource it asks most of, else CPU in millicores.
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

// amount is in millicores for CPU, in bytes for memory and ephemeral storage.
func amount(r fwk.Resource, name corev1.ResourceName) int64 {
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

// oneNodePerDomain returns, for every key of the pod's hard spread constraints, one node of each domain.
func (w *Snapshot) oneNodePerDomain(pod *corev1.Pod) []int {
	var out []int
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		seen := map[string]bool{}
		for i, n := range w.nodes {
			v, ok := n.Node().Labels[constraint.TopologyKey]
			if ok && !seen[v] {
				seen[v] = true
				out = append(out, i)
			}
		}
	}
	if len(pod.Spec.TopologySpreadConstraints) == 0 { // constraints from the profile's defaults
		for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
			seen := map[string]bool{}
			for i, n := range w.nodes {
				if v, ok := n.Node().Labels[key]; ok && !seen[v] {
					seen[v] = true
					out = append(out, i)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// node returns a node with what is planned on it.
func (w *Snapshot) node(i int) fwk.NodeInfo {
	if w.clones[i] != nil {
		return w.clones[i]
	}
	return w.nodes[i]
}

// judge filters every node for a class with nothing planned, and orders those that pass: by the profile's scores, then
// by the fewest free units of the class's main resource, so that what is broken into already is filled first (G17).
func (w *Snapshot) judge(c *class) {
	if c.judged {
		return
	}
	c.judged = true
	if c.refuse != nil {
		c.reasons = make([]string, len(w.nodes))
		for i := range c.reasons {
			c.reasons[i] = reason(c.refuse)
		}
		return
	}
	c.reasons = w.judgeNodes(c)
	var pass []fwk.NodeInfo
	for i, r := range c.reasons {
		if r == "" {
			c.order = append(c.order, i)
			pass = append(pass, w.nodes[i])
		}
	}
	c.feasible = len(pass)
	w.rank(c, pass)
	for _, other := range w.classes {
		if other != c && other.judged && c.looksLike(other) {
			c.scan = other.scan
			break
		}
	}
	if !c.local {
		for i, r := range c.reasons {
			if r != "" {
				c.order = append(c.order, i)
			}
		}
	}
}

// looksLike reports whether no filter tells pods of the two classes apart, whatever is planned, and no score orders their
// nodes otherwise. (Which nominated pods count depends on the pod and its priority.) The label of its sub-group alone makes
// the pods of every leaf a class: without this a full node would be asked once per leaf.
func (c *class) looksLike(other *class) bool {
	return c.local && other.local && c.known != nil && c.known == other.known &&
		!c.nominated && !other.nominated && corev1helpers.PodPriority(c.info.Pod) == corev1helpers.PodPriority(other.info.Pod) &&
		maps.Equal(c.only, other.only) && slices.Equal(c.order, other.order)
}

// rank orders a class's feasible nodes, best first.
func (w *Snapshot) rank(c *class, pass []fwk.NodeInfo) {
	if len(pass) < 2 {
		return
	}
	scores := w.scoreNodes(c, pass)
	free := make([]int64, len(w.nodes))
	for _, i := range c.order {
		free[i] = amount(w.nodes[i].GetAllocatable(), c.resource) - amount(w.nodes[i].GetRequested(), c.resource)
	}
	slices.SortStableFunc(c.order, func(a, b int) int {
		if d := cmp.Compare(scores[b], scores[a]); d != 0 {
			return d
		}
		return cmp.Compare(free[a], free[b])
	})
}

// filter returns why the node refuses a pod of the class, "" if it does not.
func (w *Snapshot) filter(c *class, i int, node fwk.NodeInfo) string {
	if why := w.barred(c, node.Node().Name); why != "" {
		return why
	}
	status := w.f.RunFilterPluginsWithNominatedPods(w.ctx, c.state, c.info.Pod, node)
	if !status.IsSuccess() {
		return reason(status)
	}
	return w.conflict(c, i)
}

// barred returns why the node is out of the question for the class whatever the filters say, "" if it is not.
func (w *Snapshot) barred(c *class, node string) string {
	if c.only != nil && !c.only[node] {
		return "node(s) didn't match the pod's node name selection"
	}
	if w.avoid[node] {
		return "node(s) refused a pod of the gang a moment ago"
	}
	return ""
}

// conflict checks what a filter that skipped at PreFilter does not see: pods planned so far whose required anti-affinity
// forbids the class on the node, and claims that one pod alone may use.
func (w *Snapshot) conflict(c *class, i int) string {
	if !w.antiAffinity && len(c.exclusive) == 0 && len(c.unbound) == 0 {
		return ""
	}
	skipped := c.state.GetSkipFilterPlugins().Has(names.InterPodAffinity)
	for _, p := range w.placed {
		other := w.classes[p.class]
		for _, claim := range c.exclusive {
			if slices.Contains(other.exclusive, claim) {
				return "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
			}
		}
		for _, claim := range c.unbound {
			if p.node != i && slices.Contains(other.unbound, claim) {
				return fmt.Sprintf("pods of the gang share the unbound PersistentVolumeClaim %s and do not fit on one node: bind it first", claim)
			}
		}
		if !skipped {
			continue
		}
		for _, term := range p.info.GetRequiredAntiAffinityTerms() {
			key := term.TopologyKey
			mine, ok := w.nodes[i].Node().Labels[key]
			theirs, ok2 := w.nodes[p.node].Node().Labels[key]
			if ok && ok2 && mine == theirs && term.Matches(c.info.Pod, w.namespaceLabels(c.info.Pod.Namespace)) {
				return "node(s) didn't satisfy existing pods anti-affinity rules"
			}
		}
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

// reason returns a status's first reason: what the stock scheduler counts nodes by.
func reason(status *fwk.Status) string {
	if r := status.Reasons(); len(r) > 0 {
		return r[0]
	}
	return status.Code().String()
}

// Place implements placement.World.
func (w *Snapshot) Place(index int, domain string) (string, bool) {
	c := w.classes[index]
	w.judge(c)
	start := 0
	if c.local && domain == "" {
		start = c.scan.cursor
	}
	for k := start; k < len(c.order); k++ {
		i := c.order[k]
		if !inDomain(w.nodes[i].Node(), domain) {
			continue
		}
		// What was judged with nothing planned holds on a node where nothing is planned, if planning elsewhere does not matter.
		if (!c.local || w.clones[i] != nil) && w.filter(c, i, w.node(i)) != "" {
			continue
		}
		if c.local && domain == "" {
			c.scan.cursor = k
		}
		if err := w.add(index, i); err != nil {
			w.logger.Error(err, "Planning a pod on a node failed", "node", w.nodes[i].Node().Name)
			continue
		}
		return w.nodes[i].Node().Name, true
	}
	if c.local && domain == "" {
		c.scan.cursor = len(c.order)
	}
	return "", false
}

// Explain implements placement.World.
func (w *Snapshot) Explain(index int, domain string) *placement.Refusal {
	c := w.classes[index]
	w.judge(c)
	if !c.local || domain != "" {
		return w.refusal(c, domain)
	}
	if c.scan.refusal == nil || c.scan.version != w.version {
		c.scan.refusal, c.scan.version = w.refusal(c, domain), w.version
	}
	return c.scan.refusal
}

// refusal counts the nodes by the reason for which they refuse the class now.
func (w *Snapshot) refusal(c *class, domain string) *placement.Refusal {
	r := &placement.Refusal{Reasons: map[string]int{}}
	if len(c.unbound) > 0 {
		domain = "" // the domain is a node: what is to be said is why the others cannot help out
	}
	for i, why := range c.reasons {
		if !inDomain(w.nodes[i].Node(), domain) {
			continue
		}
		if why == "" || !c.local && c.refuse == nil {
			why = w.filter(c, i, w.node(i))
		}
		if why != "" {
			r.Reasons[why]++
		}
	}
	return r
}

// add puts a pod of the class on a clone of the node, and tells every class whose verdicts it may change.
func (w *Snapshot) add(index, i int) error {
	if w.clones[i] == nil {
		w.clones[i] = w.nodes[i].Snapshot()
	}
	info := w.classes[index].planned
	w.clones[i].AddPodInfo(info)
	w.placed = append(w.placed, placed{class: index, node: i, info: info})
	w.version++
	for _, c := range w.classes {
		if err := w.tell(c, info, i, true); err != nil {
			w.undoLast()
			return err
		}
	}
	return nil
}

// Undo implements placement.World.
func (w *Snapshot) Undo(n int) {
	for ; n > 0; n-- {
		w.undoLast()
	}
	for _, c := range w.classes {
		c.scan.cursor = 0
	}
}

func (w *Snapshot) undoLast() {
	p := w.placed[len(w.placed)-1]
	w.placed = w.placed[:len(w.placed)-1]
	w.version++
	if err := w.clones[p.node].RemovePod(w.logger, p.info.Pod); err != nil {
		w.logger.Error(err, "Taking a planned pod off a cloned node failed", "node", w.nodes[p.node].Node().Name)
	}
	for _, c := range w.classes {
		if err := w.tell(c, p.info, p.node, false); err != nil {
			w.logger.Error(err, "Taking a planned pod out of a class's state failed", "node", w.nodes[p.node].Node().Name)
		}
	}
}

// tell updates a class's PreFilter state for a pod that came to or left a node.
func (w *Snapshot) tell(c *class, info *framework.PodInfo, i int, came bool) error {
	if !c.listens {
		return nil
	}
	step := w.f.RunPreFilterExtensionAddPod
	if !came {
		step = w.f.RunPreFilterExtensionRemovePod
	}
	if status := step(w.ctx, c.state, c.info.Pod, info, w.node(i)); !status.IsSuccess() {
		return status.AsError()
	}
	// PodTopologySpread keeps only the two smallest domains and drifts; taking the pod off and putting it on a node of
	// every domain makes it look again.
	for _, d := range c.spread {
		if status := w.f.RunPreFilterExtensionRemovePod(w.ctx, c.state, c.info.Pod, info, w.node(d)); !status.IsSuccess() {
			return status.AsError()
		}
		if status := w.f.RunPreFilterExtensionAddPod(w.ctx, c.state, c.info.Pod, info, w.node(d)); !status.IsSuccess() {
			return status.AsError()
		}
	}
	return nil
}

// Capacity implements placement.World. The bound on the pods is that of the main resource; a class without domains whose
// pods could go to a node that refuses the class now has none.
func (w *Snapshot) Capacity(index int) placement.Capacity {
	c := w.classes[index]
	w.judge(c)
	pods := math.MaxInt
	if c.local && c.request > 0 {
		pods = 0
		for _, i := range c.order {
			free := amount(w.nodes[i].GetAllocatable(), c.resource) - amount(w.nodes[i].GetRequested(), c.resource)
			pods += max(1, int(free/c.request)) // the node takes one pod: its resource may be counted elsewhere
		}
	}
	return placement.Capacity{Nodes: c.feasible, Pods: pods}
}

// Weight implements placement.World: units of the main resource, extended resources above CPU.
func (w *Snapshot) Weight(index int) int64 {
	c := w.classes[index]
	if c.resource == corev1.ResourceCPU {
		return c.request
	}
	return c.request * 1_000_000
}

// Kind implements placement.World.
func (w *Snapshot) Kind(index int) placement.Kind {
	switch domains := w.domains(w.classes[index]); {
	case domains == nil:
		return placement.Independent
	case len(domains) == 1 && domains[0] == "":
		return placement.Dependent
	}
	return placement.SharesDomain
}

// Domains implements placement.World.
func (w *Snapshot) Domains(index int, _ []int) []string { return w.domains(w.classes[index]) }

// domains returns, for a class with required pod affinity to pods like itself or like another class of the gang, the
// domains of the first such term, the one with the most nodes that pass first; [""] for a class with a hard spread
// constraint.
func (w *Snapshot) domains(c *class) []string {
	w.judge(c)
	for _, term := range c.info.GetRequiredAffinityTerms() {
		if !slices.ContainsFunc(w.classes, func(o *class) bool {
			return term.Matches(o.info.Pod, w.namespaceLabels(o.info.Pod.Namespace))
		}) {
			continue
		}
		// A node may refuse the class now and take it once the pod that it wants to be near is planned there.
		nodes := map[string]int{}
		for k, i := range c.order {
			if v, ok := w.nodes[i].Node().Labels[term.TopologyKey]; ok {
				nodes[v]++
				if k < c.feasible {
					nodes[v] += len(w.nodes)
				}
			}
		}
		if len(nodes) == 0 {
			return []string{""}
		}
		values := slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
			if d := cmp.Compare(nodes[b], nodes[a]); d != 0 {
				return d
			}
			return cmp.Compare(a, b)
		})
		for k, v := range values {
			values[k] = term.TopologyKey + "=" + v
		}
		return values
	}
	if len(c.unbound) > 0 {
		// All pods that share the claim go to one node.
		var nodes []string
		for _, i := range c.order[:c.feasible] {
			if host, ok := w.nodes[i].Node().Labels[corev1.LabelHostname]; ok {
				nodes = append(nodes, corev1.LabelHostname+"="+host)
			}
		}
		if len(nodes) > 0 {
			return nodes
		}
	}
	if len(c.spread) > 0 {
		return []string{""} // a pod placed elsewhere may make room here
	}
	return nil
}

// inDomain reports whether a node carries the label "key=value"; every node does for "".
func inDomain(node *corev1.Node, domain string) bool {
	if domain == "" {
		return true
	}
	key, value, _ := strings.Cut(domain, "=")
	v, ok := node.Labels[key]
	return ok && v == value
}

// ResourceCapacity returns what the nodes that match the class's constraints have, with nothing planned. A node matches if it passes
// all filters or is refused for want of resources only.
func (w *Snapshot) ResourceCapacity(index int) podgroup.ResourceCapacity {
	c := w.classes[index]
	w.judge(c)
	requests := c.info.CalculateResource().Resource
	resources := []corev1.ResourceName{c.resource} // those looked at, the main one first
	for _, name := range append([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage},
		slices.Sorted(maps.Keys(requests.GetScalarResources()))...) {
		if name != c.resource && amount(requests, name) > 0 {
			resources = append(resources, name)
		}
	}
	each := make([]podgroup.ResourceCapacity, len(resources))
	for k, name := range resources {
		each[k] = podgroup.ResourceCapacity{Resource: name, PerPod: amount(requests, name)}
	}
	required := nodeaffinity.GetRequiredNodeAffinity(c.info.Pod)
	for i, why := range c.reasons {
		if why != "" && !strings.HasPrefix(why, "Insufficient ") && why != "Too many pods" {
			continue
		}
		// NodeResourcesFit runs late, but a node may be refused for resources and be wrong otherwise as well.
		if ok, err := required.Match(w.nodes[i].Node()); err != nil || !ok {
			continue
		}
		for k, name := range resources {
			total := amount(w.nodes[i].GetAllocatable(), name)
			each[k].Nodes++
			each[k].Total += total
			each[k].Free += max(0, total-amount(w.nodes[i].GetRequested(), name))
			each[k].Largest = max(each[k].Largest, total)
		}
	}
	for _, room := range each {
		if room.Nodes > 0 && room.PerPod > room.Largest {
			return room
		}
	}
	return each[0]
}
