// SPDX-License-Identifier: Apache-2.0

// Package topology compares the levels of a topology: which of two is narrower, and what is wrong with the levels that
// the nodes of a tree ask for. Levels are node labels (of a Topology) or domains (of a ClusterTopologyBinding). Pure.
package topology

import "slices"

// Levels are the names of the levels of one topology, outermost first, without duplicates. nil: it has none.
type Levels []string

// IsNarrower reports whether level a is inside level b. False if they are the same, or one of them is not a level.
func (l Levels) IsNarrower(a, b string) bool {
	outer := slices.Index(l, b)
	return outer >= 0 && slices.Index(l, a) > outer
}

// ContainsInOrder reports whether all of the other levels are levels of l, in the same order.
func (l Levels) ContainsInOrder(other Levels) bool {
	rest := l
	for _, level := range other {
		at := slices.Index(rest, level)
		if at < 0 {
			return false
		}
		rest = rest[at+1:]
	}
	return true
}

// A Node is one node of a tree, with what it requests. "" means that it does not request the level.
type Node struct {
	// Parent is the index of the parent; negative: the node is a root.
	Parent int
	// Topology is the name of the topology that the levels are of; "" if it is not known.
	Topology            string
	Required, Preferred string
}

// A Conflict is a request that contradicts another.
type Conflict struct {
	// Node is the index of the node with the request.
	Node int
	// Ancestor is the index of the node that it contradicts, which is Node itself or one above it: it requires a
	// narrower level than Node does.
	Ancestor int
	// Preferred: the request is for a preferred level, which has no effect.
	Preferred bool
}

// Conflicts returns the contradictions in a tree, in the order of the nodes: of each node, those of its required and of
// its preferred level with the nearest node that requires a narrower one. A preferred level may contradict the node
// itself. Only levels of the same topology are compared; levelsOf returns those of a topology, nil if it is not known.
// The parents have no cycles.
func Conflicts(nodes []Node, levelsOf func(topology string) Levels) []Conflict {
	var conflicts []Conflict
	for i, n := range nodes {
		if n.Topology == "" {
			continue
		}
		levels := levelsOf(n.Topology)
		nearest := func(from int, level string) int {
			for ; from >= 0; from = nodes[from].Parent {
				if nodes[from].Topology == n.Topology && levels.IsNarrower(nodes[from].Required, level) {
					break
				}
			}
			return from
		}
		if up := nearest(n.Parent, n.Required); up >= 0 {
			conflicts = append(conflicts, Conflict{Node: i, Ancestor: up})
		}
		if up := nearest(i, n.Preferred); up >= 0 {
			conflicts = append(conflicts, Conflict{Node: i, Ancestor: up, Preferred: true})
		}
	}
	return conflicts
}
