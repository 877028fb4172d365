// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// blocked counts, by the value of a topology key, the planned pods whose required anti-affinity excludes a class. For
// classes that the filter processes it does this itself. PreFilter's Skip is final, so for classes that it skipped
// the planned pods are counted here.
type blocked struct {
	topology *topology
	count    []int32
}

// relateAntiAffinity finds the classes that are excluded by pods of others without the filter evaluating it.
func (w *Snapshot) relateAntiAffinity() {
	for _, other := range w.classes {
		for _, term := range other.info.GetRequiredAntiAffinityTerms() {
			for _, c := range w.classes {
				if !c.skip.Has(names.InterPodAffinity) || !term.Matches(c.info.Pod, w.namespaceLabels(c.info.Pod.Namespace)) {
					continue
				}
				k := slices.IndexFunc(c.blocked, func(b *blocked) bool { return b.topology.key == term.TopologyKey })
				if k < 0 {
					k = len(c.blocked)
					top := w.nodes.topologyOf(term.TopologyKey)
					c.blocked = append(c.blocked, &blocked{top, make([]int32, len(top.names))})
				}
				other.blocks = append(other.blocks, c.blocked[k])
			}
		}
	}
}
