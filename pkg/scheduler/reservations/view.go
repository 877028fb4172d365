// SPDX-License-Identifier: Apache-2.0

package reservations

import "iter"

// View is the reservations that count at one moment. It is not changed, and may be read by several goroutines. nil is
// empty.
type View struct {
	byNode [parts]map[string][]*Reservation // in parts, so that the next View shares those in which nothing has changed
	n      int
}

const parts = 128

// partOf returns the part of a node: a hash (FNV-1a) of its name.
func partOf(node string) int {
	h := uint32(2166136261)
	for i := range len(node) {
		h = (h ^ uint32(node[i])) * 16777619
	}
	return int(h % parts)
}

// Len returns the number of reservations.
func (v *View) Len() int {
	if v == nil {
		return 0
	}
	return v.n
}

// On returns the reservations on a node. The caller must not change them.
func (v *View) On(node string) []*Reservation {
	if v == nil {
		return nil
	}
	return v.byNode[partOf(node)][node]
}

// ByNode returns the reservations on each node that has any.
func (v *View) ByNode() iter.Seq2[string, []*Reservation] {
	return func(yield func(string, []*Reservation) bool) {
		if v == nil {
			return
		}
		for _, part := range v.byNode {
			for node, list := range part {
				if !yield(node, list) {
					return
				}
			}
		}
	}
}
