// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"encoding/json"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// plainFilters read only the node (its object, and the pods on it) and the part of the pod that requirements
// contains. Their results are cached; all other filters, in-tree or not, run for each node that is about to be used.
var plainFilters = sets.New(names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity,
	names.NodePorts, names.NodeResourcesFit)

// keptRequirements is the number of different kinds of pods for which results are cached. A kind uses about 25 bytes
// per node.
const keptRequirements = 64

// FilterCache stores between the plans of one profile which nodes take which pods, their scores and how many pods
// they have room for, so that a plan evaluates only the nodes that changed since the last one. It contains only
// results of plainFilters on nodes without planned and nominated pods, and scores of plainScores. Like Snapshot it is
// used by one goroutine; at any time it is used by one Snapshot, the one created last.
type FilterCache struct {
	nodes   nodeTable
	usage   usageTable
	filters []string // enabled in the profile; nil until first used
	scores  []string // likewise

	cel   *cel.Cache           // expressions that select devices; nil until first used
	specs map[types.UID]string // by ResourceClaim: see specOf. A claim is immutable

	kinds    map[string]*filterResults
	uses     int64 // counts lookups: the least recently used entry is dropped first
	reasons  []plainReason
	reasonOf map[plainReason]uint16 // index into reasons
	// hardSpread: the profile's PodTopologySpread has hard default constraints. This is detected at the first pod to
	// which they apply, because the arguments of a plugin cannot be read.
	hardSpread bool
}

// NewFilterCache returns an empty cache for one profile.
func NewFilterCache() *FilterCache {
	return &FilterCache{kinds: map[string]*filterResults{}, reasons: []plainReason{{}}, reasonOf: map[plainReason]uint16{{}: 0}}
}

// plainReason is why plainFilters refuse a node. The zero value: they do not.
type plainReason struct {
	text       string
	resolvable bool   // it may be different without some of the pods on the node
	plugin     string // that refuses it; "": an extender does, or it was not looked at
}

// filterResults are the results for one kind of pod, by the node's position.
type filterResults struct {
	kind        int64 // a number
	used        int64
	layout      int        // value of nodeTable.layout to which the positions belong
	generations []int64    // of the node state that was evaluated; 0 = never
	reasons     []uint16   // index into FilterCache.reasons; 0 = takes the pod
	slots       []int32    // how many such pods the node has room for; 0 if it refuses the pod
	free        []int64    // of the main resource
	rooms       []nodeRoom // nil: not asked

	demand   demand
	feasible int // nodes that take the pod
	pods     int // sum of slots
	rankings map[string]*ranking
}

// bindProfile reads the profile's plugins. They are complete only after all factories have run, so this is done at the
// first use.
func (v *FilterCache) bindProfile(f framework.Framework) {
	if v.filters != nil {
		return
	}
	v.filters, v.scores = namesOf(f.ListPlugins().Filter), namesOf(f.ListPlugins().Score)
}

// namesOf returns the names of the enabled plugins, never nil.
func namesOf(plugins config.PluginSet) []string {
	names := []string{}
	for _, plugin := range plugins.Enabled {
		names = append(names, plugin.Name)
	}
	return names
}

// otherReason stands for the reasons that are too many.
const otherReason = "node(s) refused the pod"

// internReason returns the index of a reason.
func (v *FilterCache) internReason(reason plainReason) uint16 {
	n, ok := v.reasonOf[reason]
	if !ok {
		if len(v.reasons) >= 1<<16-2 && reason.text != otherReason { // stock filters do not name pods or nodes in reasons, but other filters may
			return v.internReason(plainReason{text: otherReason, resolvable: reason.resolvable})
		}
		n = uint16(len(v.reasons))
		v.reasons = append(v.reasons, reason)
		v.reasonOf[reason] = n
	}
	return n
}

// resultsOf returns the results of plainFilters for pods like the class's, updated for the plan's nodes.
func (w *Snapshot) resultsOf(c *class) *filterResults {
	v := w.cache
	key, kept := requirements(c.info.Pod)
	// A resource may be backed by DRA: NodeResourcesFit then leaves it to DynamicResources, which reads claims.
	kept = kept && (c.skip.Has(names.DynamicResources) || !v.enabledPlugins(names.DynamicResources))
	known := v.kinds[key]
	if !kept || known == nil || known.demand.updateOffered(w.f) {
		v.uses++
		known = &filterResults{kind: v.uses, demand: demandOf(w.ctx, w.f, v.filters, c.info, c.state), rankings: map[string]*ranking{}}
		if kept {
			v.kinds[key] = known
		}
	}
	v.uses++
	known.used = v.uses
	if len(v.kinds) > keptRequirements {
		deleteLeastUsed(v.kinds, func(known *filterResults) int64 { return known.used })
	}
	if known.layout != v.nodes.layout {
		known.moveResults(&v.nodes)
	}
	w.refreshResults(c, known)
	return known
}

func (v *FilterCache) enabledPlugins(name string) bool { return slices.Contains(v.filters, name) }

// deleteLeastUsed deletes the entry that was used least recently.
func deleteLeastUsed[T any](entries map[string]T, usedAt func(T) int64) {
	oldest, used := "", int64(math.MaxInt64)
	for key, entry := range entries {
		if at := usedAt(entry); at < used {
			oldest, used = key, at
		}
	}
	delete(entries, oldest)
}

// moveResults moves the results to the current positions of the nodes. A generation identifies one state of one node.
func (known *filterResults) moveResults(t *nodeTable) {
	old := *known
	n := len(t.nodes)
	known.layout = t.layout
	known.generations, known.reasons = make([]int64, n), make([]uint16, n)
	known.slots, known.free, known.rooms = make([]int32, n), make([]int64, n), nil
	known.feasible, known.pods = 0, 0
	at := make(map[int64]int, len(old.generations))
	for i, generation := range old.generations {
		if generation != 0 {
			at[generation] = i
		}
	}
	for i, generation := range t.generations {
		if k, ok := at[generation]; ok {
			known.setResult(i, generation, old.reasons[k], old.slots[k], old.free[k])
		}
	}
	for _, r := range known.rankings {
		r.moveEntries(t, at)
	}
}

// setResult records the result for a node.
func (known *filterResults) setResult(i int, generation int64, reason uint16, slots int32, free int64) {
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

// fewNodes is the number of nodes up to which no additional goroutines are used.
const fewNodes = 64

// refreshResults evaluates the nodes that changed.
func (w *Snapshot) refreshResults(c *class, known *filterResults) {
	t := &w.cache.nodes
	changed := changedSince(known.generations, t.generations)
	if len(changed) == 0 {
		return
	}
	c.state.SetSkipFilterPlugins(w.withoutPlainFilters(c))
	statuses := make([]*fwk.Status, len(changed))
	runFilters := func(k int) { statuses[k] = w.f.RunFilterPlugins(w.ctx, c.state, c.info.Pod, t.nodes[changed[k]]) }
	if len(changed) <= fewNodes {
		for k := range changed {
			runFilters(k)
		}
	} else {
		w.f.Parallelizer().Until(w.ctx, len(changed), runFilters, "GangPlan")
	}
	c.state.SetSkipFilterPlugins(c.skip)
	cut := w.ctx.Err() != nil
	for k, i := range changed {
		status, why, slots, generation := statuses[k], uint16(0), int32(0), t.generations[i]
		switch {
		case cut && status == nil: // a nil status means success, or that the node was not reached
			why, generation = w.cache.internReason(plainReason{text: "node(s) were not looked at: the time was over"}), unsettled
		case status.IsSuccess():
			slots = int32(max(1, known.demand.slotsOnNode(t.nodes[i])))
		default:
			why = w.cache.internReason(plainReason{firstReason(status), status.Code() == fwk.Unschedulable, status.Plugin()})
			if !status.IsRejected() {
				generation = unsettled
			}
		}
		known.setResult(i, generation, why, slots, freeOn(t.nodes[i], c.resource))
	}
}

// withoutPlainFilters returns the filters that do not belong to plainFilters of the class.
func (w *Snapshot) withoutPlainFilters(c *class) sets.Set[string] {
	others := c.skip.Clone()
	for _, name := range w.cache.filters {
		if !plainFilters.Has(name) && !(name == names.DynamicResources && !c.skip.Has(name)) {
			others.Insert(name)
		}
	}
	return others
}

// unsettled replaces the generation of a node for which a filter failed or did not run: the next plan evaluates it
// again.
const unsettled = -1

// changedSince returns the positions at which the generations differ.
func changedSince(generations, now []int64) []int {
	var out []int
	for i, generation := range generations {
		if generation != now[i] {
			out = append(out, i)
		}
	}
	return out
}

// requirements returns a key that is equal for pods that plainFilters do not distinguish, and that plainScores
// distinguish at most by their images.
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
