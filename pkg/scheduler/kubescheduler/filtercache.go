package kubescheduler

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// plainFilters read nothing but the node (its object, and the pods on it) and what requirements holds of the pod. All
// other filters, of whatever origin, have to skip for a verdict to be kept.
var plainFilters = sets.New(names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity,
	names.NodePorts, names.NodeResourcesFit)

// plainScores are as plain, with the pod's images besides, as long as no node has a taint of effect PreferNoSchedule: then
// a node's score depends on the other nodes. (How many nodes have an image enters ImageLocality; that may be stale.)
// DynamicResources scores claims, and where verdicts are kept there are none.
var plainScores = sets.New(names.TaintToleration, names.NodeResourcesFit, names.NodeResourcesBalancedAllocation,
	names.ImageLocality, names.DynamicResources)

// keptRequirements is how many different kinds of pods verdicts are kept for.
const keptRequirements = 64

// FilterCache remembers between the plans of one profile which nodes take which pods, so that a plan judges the nodes that
// changed since the last one instead of all. Only verdicts of plainFilters on a node with nothing planned and nobody
// nominated are kept, and scores of plainScores. Used by one goroutine, like Snapshot.
type FilterCache struct {
	filters []string // enabled in the profile; nil until first asked
	scores  []string // likewise
	known   map[string]*verdicts
	recent  []string // keys of known, the one used last at the end
}

// verdicts are those about one kind of pod, by the node's position in the snapshot.
type verdicts struct {
	generations []int64  // of the node's state that was judged; 0 = never. A generation belongs to one state of one node.
	reasons     []string // "" = takes the pod
	scored      []int64  // generation whose score is known; 0 = none
	scores      []int64
}

// NewFilterCache returns an empty memory for one profile.
func NewFilterCache() *FilterCache { return &FilterCache{known: map[string]*verdicts{}} }

// Remember makes the plan use the memory, and add to it. To be called before planning begins.
func (w *Snapshot) UseCache(v *FilterCache) { w.memory = v }

// of returns what is known about pods like the class's, with room for every node; nil if nothing may be kept.
func (v *FilterCache) of(f framework.Framework, c *class, nodes int) *verdicts {
	if v == nil {
		return nil
	}
	if v.filters == nil {
		for _, plugin := range f.ListPlugins().Filter.Enabled {
			v.filters = append(v.filters, plugin.Name)
		}
		for _, plugin := range f.ListPlugins().Score.Enabled {
			v.scores = append(v.scores, plugin.Name)
		}
	}
	skip := c.state.GetSkipFilterPlugins()
	for _, name := range v.filters {
		if !plainFilters.Has(name) && !skip.Has(name) {
			return nil
		}
	}
	key, ok := requirements(c.info.Pod)
	if !ok {
		return nil
	}
	known := v.known[key]
	if known == nil {
		known = &verdicts{}
		v.known[key] = known
	}
	if i := slices.Index(v.recent, key); i >= 0 {
		v.recent = slices.Delete(v.recent, i, i+1)
	}
	v.recent = append(v.recent, key)
	if len(v.recent) > keptRequirements {
		delete(v.known, v.recent[0])
		v.recent = v.recent[1:]
	}
	if len(known.generations) != nodes {
		// Positions mean something else now. Generations would tell, but there may be too few of them.
		known.generations, known.reasons = make([]int64, nodes), make([]string, nodes)
		known.scored, known.scores = make([]int64, nodes), make([]int64, nodes)
	}
	return known
}

// judgeNodes returns for every node why it refuses a pod of the class with nothing planned, "" if it does not.
func (w *Snapshot) judgeNodes(c *class) []string {
	reasons := make([]string, len(w.nodes))
	if c.local {
		c.known = w.memory.of(w.f, c, len(w.nodes))
	}
	known := c.known
	var ask, keep []int
	for i, n := range w.nodes {
		why := w.barred(c, n.Node().Name)
		switch {
		case why != "":
			reasons[i] = why
		case known == nil || len(w.f.NominatedPodsForNode(n.Node().Name)) > 0: // nominations leave no trace on the node
			ask = append(ask, i)
		case known.generations[i] == n.GetGeneration():
			reasons[i] = known.reasons[i]
		default:
			keep = append(keep, i)
		}
	}
	w.f.Parallelizer().Until(w.ctx, len(ask), func(k int) {
		reasons[ask[k]] = w.filter(c, ask[k], w.nodes[ask[k]])
	}, "GangPlan")
	w.f.Parallelizer().Until(w.ctx, len(keep), func(k int) {
		i := keep[k]
		status := w.f.RunFilterPlugins(w.ctx, c.state, c.info.Pod, w.nodes[i])
		if !status.IsSuccess() {
			reasons[i] = reason(status)
		}
		if status.IsSuccess() || status.IsRejected() {
			known.generations[i], known.reasons[i] = w.nodes[i].GetGeneration(), reasons[i]
		}
	}, "GangPlan")
	return reasons
}

// scoreNodes returns the profile's scores by node; of interest are those of the nodes that pass, which are c.order. All 0
// if the plugins fail: any node that passes will do.
func (w *Snapshot) scoreNodes(c *class, pass []fwk.NodeInfo) []int64 {
	scores := make([]int64, len(w.nodes))
	if status := w.f.RunPreScorePlugins(w.ctx, c.state, c.info.Pod, pass); !status.IsSuccess() {
		return scores
	}
	keep := w.plainlyScored(c, pass)
	var ask []int // of c.order
	var nodes []fwk.NodeInfo
	for k, i := range c.order {
		if keep && c.known.scored[i] == pass[k].GetGeneration() {
			scores[i] = c.known.scores[i]
			continue
		}
		ask = append(ask, i)
		nodes = append(nodes, pass[k])
	}
	if len(ask) == 0 {
		return scores
	}
	list, status := w.f.RunScorePlugins(w.ctx, c.state, c.info.Pod, nodes)
	if !status.IsSuccess() {
		return make([]int64, len(w.nodes))
	}
	for k, s := range list {
		scores[ask[k]] = s.TotalScore
		if keep {
			c.known.scored[ask[k]], c.known.scores[ask[k]] = nodes[k].GetGeneration(), s.TotalScore
		}
	}
	return scores
}

// plainlyScored reports whether the score of each of the nodes depends on nothing but the node and the kind of pod. To be
// asked after PreScore.
func (w *Snapshot) plainlyScored(c *class, nodes []fwk.NodeInfo) bool {
	if c.known == nil {
		return false
	}
	skip := c.state.GetSkipScorePlugins()
	for _, name := range w.memory.scores {
		if !plainScores.Has(name) && !skip.Has(name) {
			return false
		}
	}
	for _, n := range nodes {
		for i := range n.Node().Spec.Taints {
			if n.Node().Spec.Taints[i].Effect == corev1.TaintEffectPreferNoSchedule {
				return false
			}
		}
	}
	return true
}

// requirements returns a key that is equal for pods that neither plainFilters nor plainScores can tell apart.
func requirements(pod *corev1.Pod) (string, bool) {
	spec := &pod.Spec
	type container struct {
		Image     string
		Resources corev1.ResourceRequirements
		Ports     []corev1.ContainerPort         `json:",omitempty"`
		Restart   *corev1.ContainerRestartPolicy `json:",omitempty"`
	}
	reduce := func(in []corev1.Container) []container {
		out := make([]container, 0, len(in))
		for i := range in {
			out = append(out, container{in[i].Image, in[i].Resources, in[i].Ports, in[i].RestartPolicy})
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
