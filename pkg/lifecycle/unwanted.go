// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"maps"
	"slices"
)

// KindPodGroup is the Child.Kind of a PodGroup.
const KindPodGroup = "PodGroup"

// Child identifies an object that a PodCliqueSet owns.
type Child struct{ Kind, Name string }

// OwnedChild is an existing child.
type OwnedChild struct {
	Child
	// Replica is the index of the replica according to the child's label, -1 if it has none.
	Replica     int
	Terminating bool
}

// Unwanted returns the children of a set to delete: those that are not among the objects of its replicas (wanted, by
// replica). It returns a slice for each replica, the highest index first, with the PodGroup first in each slice. A
// PodGroup is deleted before the pods of its replica, so that no pod is deleted from a gang whose minimum is still in
// force. Terminating children are left out. Source: docs/decisions, W1.
func Unwanted(wanted [][]Child, owned []OwnedChild) [][]Child {
	keep := map[Child]bool{}
	for _, replica := range wanted {
		for _, c := range replica {
			keep[c] = true
		}
	}
	byReplica := map[int][]Child{}
	for _, c := range owned {
		if !keep[c.Child] && !c.Terminating {
			byReplica[c.Replica] = append(byReplica[c.Replica], c.Child)
		}
	}
	var unwanted [][]Child
	for _, i := range slices.SortedFunc(maps.Keys(byReplica), func(a, b int) int { return cmp.Compare(b, a) }) {
		slices.SortFunc(byReplica[i], func(a, b Child) int {
			if first := a.Kind == KindPodGroup; first != (b.Kind == KindPodGroup) {
				if first {
					return -1
				}
				return 1
			}
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
		})
		unwanted = append(unwanted, byReplica[i])
	}
	return unwanted
}
