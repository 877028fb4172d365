// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "slices"

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
