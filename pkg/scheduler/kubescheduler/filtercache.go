package kubescheduler

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// plainFilters read nothing but the node (its object, and the pods on it) and what requirements holds of the pod. Their
// verdicts are kept; all other filters, of whatever origin, are asked for each node that is about to be used.
var plainFilters = sets.New(names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity,
	names.NodePorts, names.NodeResourcesFit)

// keptRequirements is how many different kinds of pods verdicts are kept for. A kind takes about 25 bytes per node.
const keptRequirements = 64

// FilterCache remembers between the plans of one profile which nodes take which pods, how good they are and how many pods
// they have room for, so that a plan judges the nodes that changed since the last one instead of all. Only verdicts of
// plainFilters on a node with nothing planned and no nominated pods are kept, and scores of plainScores. Used by one
// goroutine, like Snapshot; at any time one Snapshot uses it, that made last.
type FilterCache struct {
	nodes   nodeTable
	filters []string // enabled in the profile; nil until first asked
	scores  []string // likewise

	kinds    map[string]*verdicts
	uses     int64 // counts lookups: what was used longest ago is forgotten first
	reasons  []string
	reasonOf map[string]uint16 // index into reasons
	limits   map[string]*limit // by node
	// hardSpread: the profile's PodTopologySpread has hard default constraints. Learnt from the first pod that they apply to:
	// the arguments of a plugin cannot be read.
	hardSpread bool
}

// NewFilterCache returns an empty memory for one profile.
func NewFilterCache() *FilterCache {
	return &FilterCache{kinds: map[string]*verdicts{}, reasons: []string{""}, reasonOf: map[string]uint16{"": 0}, limits: map[string]*limit{}}
}

// verdicts are those about one kind of pod, by the node's position.
type verdicts struct {
	used        int64
	layout      int      // nodeTable.layout that the positions belong to
	generations []int64  // of the node's state that was judged; 0 = never
	reasons     []uint16 // index into FilterCache.reasons; 0 = takes the pod
	slots       []int32  // how many such pods the node has room for; 0 if it refuses the pod
	free        []int64  // of the main resource

	demand   demand
	feasible int // nodes that take the pod
	pods     int // sum of slots
	rankings map[string]*ranking
}

// bind takes the profile's plugins. They are complete only when all factories have run, so the cache asks late.
func (v *FilterCache) bind(f framework.Framework) {
	if v.filters != nil {
		return
	}
	v.filters, v.scores = []string{}, []string{}
	for _, plugin := range f.ListPlugins().Filter.Enabled {
		v.filters = append(v.filters, plugin.Name)
	}
	for _, plugin := range f.ListPlugins().Score.Enabled {
		v.scores = append(v.scores, plugin.Name)
	}
}

// intern returns the number of a reason.
func (v *FilterCache) intern(reason string) uint16 {
	n, ok := v.reasonOf[reason]
	if !ok {
		if len(v.reasons) == 1<<16-1 { // reasons do not name pods or nodes in the stock filters; a foreign one may
			return v.intern("node(s) refused the pod")
		}
		n = uint16(len(v.reasons))
		v.reasons = append(v.reasons, reason)
		v.reasonOf[reason] = n
	}
	return n
}

// verdictsOf returns what plainFilters say about pods like the class's, up to date with the plan's nodes.
func (w *Snapshot) verdictsOf(c *class) *verdicts {
	v := w.cache
	key, kept := requirements(c.info.Pod)
	// A resource may be backed by DRA: NodeResourcesFit then leaves it to DynamicResources, which sees claims.
	kept = kept && (c.skip.Has(names.DynamicResources) || !v.enabled(names.DynamicResources))
	known := v.kinds[key]
	if !kept || known == nil {
		known = &verdicts{demand: demandOf(w.ctx, w.f, v.filters, c.info, c.state), rankings: map[string]*ranking{}}
		if kept {
			v.kinds[key] = known
		}
	}
	v.uses++
	known.used = v.uses
	if len(v.kinds) > keptRequirements {
		v.forgetOldest()
	}
	if known.layout != v.nodes.layout {
		known.relayout(&v.nodes)
	}
	w.refresh(c, known)
	return known
}

func (v *FilterCache) enabled(filter string) bool {
	for _, name := range v.filters {
		if name == filter {
			return true
		}
	}
	return false
}

func (v *FilterCache) forgetOldest() {
	oldest, used := "", int64(0)
	for key, known := range v.kinds {
		if oldest == "" || known.used < used {
			oldest, used = key, known.used
		}
	}
	delete(v.kinds, oldest)
}

// relayout puts what is known where the nodes are now. A generation tells which node, and in which state, it was.
func (known *verdicts) relayout(t *nodeTable) {
	old := *known
	n := len(t.nodes)
	known.layout = t.layout
	known.generations, known.reasons = make([]int64, n), make([]uint16, n)
	known.slots, known.free = make([]int32, n), make([]int64, n)
	known.feasible, known.pods = 0, 0
	at := make(map[int64]int, len(old.generations))
	for i, generation := range old.generations {
		if generation != 0 {
			at[generation] = i
		}
	}
	for i, generation := range t.generations {
		if k, ok := at[generation]; ok {
			known.set(i, generation, old.reasons[k], old.slots[k], old.free[k])
		}
	}
	for _, r := range known.rankings {
		r.relayout(t, at)
	}
}

// set records a verdict.
func (known *verdicts) set(i int, generation int64, reason uint16, slots int32, free int64) {
	if known.generations[i] != 0 && known.reasons[i] == 0 {
		known.feasible--
		known.pods -= int(known.slots[i])
	}
	known.generations[i], known.reasons[i], known.slots[i], known.free[i] = generation, reason, slots, free
	if reason == 0 {
		known.feasible++
		known.pods += int(slots)
	}
}

// fewNodes are judged without other goroutines.
const fewNodes = 64

// refresh judges the nodes that changed.
func (w *Snapshot) refresh(c *class, known *verdicts) {
	t := &w.cache.nodes
	changed := changedSince(known.generations, t.generations)
	if len(changed) == 0 {
		return
	}
	others := c.skip.Clone()
	for _, name := range w.cache.filters {
		if !plainFilters.Has(name) && !(name == names.DynamicResources && !c.skip.Has(name)) {
			others.Insert(name)
		}
	}
	c.state.SetSkipFilterPlugins(others)
	statuses := make([]*fwk.Status, len(changed))
	judge := func(k int) { statuses[k] = w.f.RunFilterPlugins(w.ctx, c.state, c.info.Pod, t.nodes[changed[k]]) }
	if len(changed) <= fewNodes {
		for k := range changed {
			judge(k)
		}
	} else {
		w.f.Parallelizer().Until(w.ctx, len(changed), judge, "GangPlan")
	}
	c.state.SetSkipFilterPlugins(c.skip)
	cut := w.ctx.Err() != nil
	for k, i := range changed {
		status, why, slots, generation := statuses[k], uint16(0), int32(0), t.generations[i]
		switch {
		case cut && status == nil: // a nil status means success, or that the node's turn did not come
			why, generation = w.cache.intern("node(s) were not looked at: the time was over"), unsettled
		case status.IsSuccess():
			slots = int32(max(1, known.demand.slots(t.nodes[i])))
		default:
			why = w.cache.intern(reason(status))
			if !status.IsRejected() {
				generation = unsettled
			}
		}
		free := amount(t.nodes[i].GetAllocatable(), c.resource) - amount(t.nodes[i].GetRequested(), c.resource)
		known.set(i, generation, why, slots, free)
	}
}

// unsettled stands for the generation where a filter failed or was not asked: the next plan asks again.
const unsettled = -1

// changedSince returns the positions at which the generations are not those of now.
func changedSince(generations, now []int64) []int {
	var out []int
	for i, generation := range generations {
		if generation != now[i] {
			out = append(out, i)
		}
	}
	return out
}

// requirements returns a key that is equal for pods that plainFilters cannot tell apart, nor plainScores but for the
// images.
func requirements(pod *corev1.Pod) (string, bool) {
	spec := &pod.Spec
	type container struct {
		Resources corev1.ResourceRequirements
		Ports     []corev1.ContainerPort         `json:",omitempty"`
		Restart   *corev1.ContainerRestartPolicy `json:",omitempty"`
	}
	reduce := func(in []corev1.Container) []container {
		out := make([]container, 0, len(in))
		for i := range in {
			out = append(out, container{in[i].Resources, in[i].Ports, in[i].RestartPolicy})
		}
		return out
	}
	var affinity *corev1.NodeAffinity
	if spec.Affinity != nil {
		affinity = spec.Affinity.NodeAffinity
	}
	key, err := json.Marshal(struct {
		Init, Containers []container
		Resources        *corev1.ResourceRequirements
		Overhead         corev1.ResourceList
		NodeName         string
		NodeSelector     map[string]string
		Affinity         *corev1.NodeAffinity
		Tolerations      []corev1.Toleration
		HostNetwork      bool
	}{
		reduce(spec.InitContainers), reduce(spec.Containers), spec.Resources, spec.Overhead,
		spec.NodeName, spec.NodeSelector, affinity, spec.Tolerations, spec.HostNetwork,
	})
	return string(key), err == nil
}
