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

// Members contains the facts about the PodCliques of a scaling group.
type Members struct {
	// Wanted are the names of the PodCliques that the replicas consist of, by replica.
	Wanted [][]string
	// Existing are the PodCliques that the group owns.
	Existing []Member
	// Listed are the names of the PodCliques that are leaves of the PodGroup.
	Listed map[string]bool
	// Units are the decisions on the replicas, by index.
	Units []UnitDecision
}

// Member is a PodClique that a scaling group owns.
type Member struct {
	Name string
	// Replica is the index of the group's replica according to the PodClique's label, -1 if it has none.
	Replica int
}

// MembersDecision contains the names of the PodCliques of a scaling group to update and to create, lowest replica
// first, and of those to delete, sorted.
type MembersDecision struct{ Update, Create, Delete []string }

// DecideMembers returns which PodCliques of a scaling group to update, create and delete. A PodClique is created once
// the PodGroup lists it and the decision on its replica includes it. A PodClique whose replica is above spec.replicas
// is deleted once the PodGroup no longer lists it; any other is deleted if the decision on its replica says so.
// Source: docs/decisions, W1, W7, W10.
func DecideMembers(m Members) MembersDecision {
	var d MembersDecision
	exists := map[string]bool{}
	for _, c := range m.Existing {
		exists[c.Name] = true
	}
	for j, names := range m.Wanted {
		for _, name := range names {
			if exists[name] {
				d.Update = append(d.Update, name)
			} else if m.Listed[name] && slices.Contains(m.Units[j].Create, name) {
				d.Create = append(d.Create, name)
			}
		}
	}
	for _, c := range m.Existing {
		switch {
		case c.Replica < 0: // its replica is unknown
		case c.Replica >= len(m.Wanted) && !m.Listed[c.Name],
			c.Replica < len(m.Wanted) && slices.Contains(m.Units[c.Replica].Delete, c.Name):
			d.Delete = append(d.Delete, c.Name)
		}
	}
	slices.Sort(d.Delete)
	return d
}
