// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"iter"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// View is the reservations that count at one moment. It is not changed, and may be read by several goroutines. nil is
// empty.
type View struct {
	byNode [parts]map[string][]*Reservation // in parts, so that the next View shares those in which nothing has changed
	n      int
	terms  []terms // of the reservations, each once
}

// terms are what decides who may use a reservation (Reservation.Restricts).
type terms struct {
	gang     types.NamespacedName
	priority int32
	promised bool
	starts   int64 // nanoseconds; 0: not known
}

func termsOf(x *Reservation) terms {
	t := terms{gang: x.Owner.Gang, priority: x.Priority, promised: x.Promised}
	if !x.Starts.IsZero() {
		t.starts = x.Starts.UnixNano()
	}
	return t
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

// Equivalent returns an asker that may use the same rooms: the same one for all that may, so that what holds for one of
// them is looked up for the others.
func (v *View) Equivalent(a Asker) Asker {
	like := Asker{Surplus: a.Surplus}
	highest, above, starts := int32(math.MinInt32), int32(math.MaxInt32), int64(math.MaxInt64)
	isAbove := false
	for i := range v.terms {
		t := &v.terms[i]
		if t.gang == a.Gang {
			like.Gang = a.Gang
		}
		if highest = max(highest, t.priority); t.priority >= a.Priority {
			above, isAbove = min(above, t.priority), true
		}
		like.Refill = like.Refill || a.Refill && t.promised
		if t.starts != 0 && !a.Ends.IsZero() && t.starts >= a.Ends.UnixNano() {
			starts = min(starts, t.starts)
		}
	}
	if like.Priority = above; !isAbove && len(v.terms) > 0 {
		like.Priority = highest + 1
	}
	if starts != math.MaxInt64 {
		like.Ends = time.Unix(0, starts)
	}
	return like
}
