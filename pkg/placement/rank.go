// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// OrderByRank exchanges the pods of a plan so that pods of neighbouring ranks are in the same domains: it sorts the
// pods of a leaf and class by compare, their nodes by their domains, and assigns them to each other in this order. The
// placements keep their order, nodes and leaves. Pods that are equal for compare keep their order.
//
// domains returns the values of a node's topology levels for the pods of a leaf, the outermost first. Of two nodes with
// the same domains, the one with the smaller name comes first. Domains are in the order of their names; a plan for pods
// that were lost or added therefore has the same direction as the one before it.
func OrderByRank(plan []Placement, compare func(a, b Pod) int, domains func(leaf, node string) []string) {
	type group struct {
		leaf  string
		class int
	}
	groups := map[group][]int{} // indexes of placements
	for i := range plan {
		g := group{plan[i].Leaf, plan[i].Pod.Class}
		groups[g] = append(groups[g], i)
	}
	paths := make([][]string, len(plan))
	for i := range plan {
		paths[i] = domains(plan[i].Leaf, plan[i].Node)
	}
	for _, places := range groups {
		pods := make([]Pod, len(places))
		for k, i := range places {
			pods[k] = plan[i].Pod
		}
		slices.SortStableFunc(pods, compare)
		slices.SortStableFunc(places, func(a, b int) int {
			return cmp.Or(slices.Compare(paths[a], paths[b]), cmp.Compare(plan[a].Node, plan[b].Node))
		})
		for k, i := range places {
			plan[i].Pod = pods[k]
		}
	}
}
