// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// plainScores depend only on the node, the kind of pod and its images, provided that no feasible node has a taint of
// effect PreferNoSchedule; with such taints a node's score depends on the other nodes. (ImageLocality also uses the
// number of nodes that have an image, which may be stale.) DynamicResources scores claims; a pod without claims has
// the score 0.
var plainScores = sets.New(names.TaintToleration, names.NodeResourcesFit, names.NodeResourcesBalancedAllocation,
	names.ImageLocality, names.DynamicResources, GPUPackingName)

// keptRankings is the number of node orders that are cached per kind of pod: they differ by the images that are
// present on nodes. An order uses about 30 bytes per node.
const keptRankings = 8

// ranking contains the nodes that take a kind of pod, best first: by the profile's scores, then by the fewest free
// units of the main resource, so that partially used nodes are filled first (docs/decisions, G17).
type ranking struct {
	used        int64
	generations []int64 // of the filter result that was ranked; 0 = never
	scores      []int64
	free        []int64
	ranked      []bool // the node is contained in order
	order       []int32
}

func (r *ranking) compare(a, b int32) int {
	return cmp.Or(cmp.Compare(r.scores[b], r.scores[a]), cmp.Compare(r.free[a], r.free[b]), cmp.Compare(a, b))
}

func newRanking(nodes int) *ranking {
	return &ranking{generations: make([]int64, nodes), scores: make([]int64, nodes), free: make([]int64, nodes), ranked: make([]bool, nodes)}
}

// moveEntries moves the entries to the current positions of the nodes; at is the previous position by generation.
func (r *ranking) moveEntries(t *nodeTable, at map[int64]int) {
	old := *r
	*r = *newRanking(len(t.nodes))
	r.used = old.used
	for i, generation := range t.generations {
		if k, ok := at[generation]; ok && old.generations[k] == generation {
			r.generations[i], r.scores[i], r.free[i], r.ranked[i] = generation, old.scores[k], old.free[k], old.ranked[k]
			if r.ranked[i] {
				r.order = append(r.order, int32(i))
			}
		}
	}
	slices.SortFunc(r.order, r.compare)
}

// rankingOf returns the order of the nodes that take the class.
func (w *Snapshot) rankingOf(c *class) *ranking {
	known, t := c.known, &w.cache.nodes
	if known.feasible == 0 {
		return &ranking{}
	}
	// PreScore determines which plugins take part. For plugins that depend on more than one node it runs again,
	// below.
	sample := []fwk.NodeInfo{t.nodes[slices.Index(known.reasons, 0)]}
	status := w.f.RunPreScorePlugins(w.ctx, c.state, c.info.Pod, sample)
	if !status.IsSuccess() || !w.plainlyScored(c) {
		return w.rankForPlan(c)
	}
	images := t.imagesKeyOf(c.info.Pod)
	r := known.rankings[images]
	if r == nil {
		r = newRanking(len(t.nodes))
		if len(known.rankings) == keptRankings {
			deleteLeastUsed(known.rankings, func(r *ranking) int64 { return r.used })
		}
		known.rankings[images] = r
	}
	w.cache.uses++
	r.used = w.cache.uses

	changed := changedSince(r.generations, known.generations)
	if len(changed) > 0 {
		w.updateRanking(c, r, changed)
	}
	return r
}

// updateRanking evaluates the changed nodes of a ranking anew.
func (w *Snapshot) updateRanking(c *class, r *ranking, changed []int) {
	known := c.known
	var ask []int
	for _, i := range changed {
		if known.reasons[i] == 0 {
			ask = append(ask, i)
		}
	}
	scores, scored := w.scoreNodes(c, ask)
	if len(changed) <= fewNodes {
		for _, i := range changed {
			if r.ranked[i] {
				if k, found := slices.BinarySearchFunc(r.order, int32(i), r.compare); found {
					r.order = slices.Delete(r.order, k, k+1)
				}
			}
		}
	}
	for k, i := range ask {
		r.scores[i] = scores[k]
	}
	for _, i := range changed {
		r.generations[i], r.free[i], r.ranked[i] = known.generations[i], known.free[i], known.reasons[i] == 0
		if !scored {
			r.generations[i] = unsettled
		}
		if len(changed) <= fewNodes && r.ranked[i] {
			k, _ := slices.BinarySearchFunc(r.order, int32(i), r.compare)
			r.order = slices.Insert(r.order, k, int32(i))
		}
	}
	if len(changed) > fewNodes {
		r.order = r.order[:0]
		for i := range r.ranked {
			if r.ranked[i] {
				r.order = append(r.order, int32(i))
			}
		}
		slices.SortFunc(r.order, r.compare)
	}
}

// rankForPlan orders the nodes for this plan only, because a score depends on other nodes or other pods.
func (w *Snapshot) rankForPlan(c *class) *ranking {
	known, t := c.known, &w.cache.nodes
	r := newRanking(len(t.nodes))
	var pass []fwk.NodeInfo
	var ask []int
	for i, why := range known.reasons {
		if why == 0 {
			ask, pass, r.order = append(ask, i), append(pass, t.nodes[i]), append(r.order, int32(i))
		}
	}
	copy(r.free, known.free)
	if w.f.RunPreScorePlugins(w.ctx, c.state, c.info.Pod, pass).IsSuccess() {
		scores, _ := w.scoreNodes(c, ask)
		for k, score := range scores {
			r.scores[ask[k]] = score
		}
	}
	slices.SortFunc(r.order, r.compare)
	return r
}

// scoreNodes returns the profile's scores of the nodes, after PreScore. If the plugins fail, it returns zeros and
// false: every feasible node is then equally good.
func (w *Snapshot) scoreNodes(c *class, positions []int) (scores []int64, ok bool) {
	scores = make([]int64, len(positions))
	if len(positions) == 0 {
		return scores, true
	}
	nodes := make([]fwk.NodeInfo, 0, len(positions))
	for _, i := range positions {
		nodes = append(nodes, w.cache.nodes.nodes[i])
	}
	list, status := w.f.RunScorePlugins(w.ctx, c.state, c.info.Pod, nodes)
	if !status.IsSuccess() {
		return scores, false
	}
	for k, s := range list {
		scores[k] = s.TotalScore
	}
	return scores, true
}

// plainlyScored reports whether the score of each node depends only on the node, the kind of pod and its images. It
// must be called after PreScore.
func (w *Snapshot) plainlyScored(c *class) bool {
	skip := c.state.GetSkipScorePlugins()
	for _, name := range w.cache.scores {
		if name == names.VolumeBinding && c.skip.Has(name) {
			continue // it scores pods without claims since 1.37, all nodes with 0
		}
		if !plainScores.Has(name) && !skip.Has(name) {
			return false
		}
	}
	if !c.skip.Has(names.DynamicResources) && w.cache.enabledPlugins(names.DynamicResources) {
		return false
	}
	if w.cache.nodes.soft == 0 {
		return true
	}
	for i, node := range w.cache.nodes.objects {
		if c.known.reasons[i] == 0 && hasSoftTaint(node) {
			return false
		}
	}
	return true
}

func hasSoftTaint(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })
}
