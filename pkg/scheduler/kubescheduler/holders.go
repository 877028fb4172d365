// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"math"
	"slices"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
)

// Holders returns the holders of the running pods, and how many pods each has: none if it had some before. Both are
// read only for nodes that have changed since the last plan.
func (w *Snapshot) Holders() (holders []podgroup.Holder, pods []int) {
	t := w.usage()
	pods = t.countHolders(w.nodes.nodes)
	return t.holders, pods
}

// MayFitWithout reports whether the numbers allow a plan if all pods of some holders end, which are given by index in
// the result of Holders. It is a necessary condition of a plan without any of these pods, and compares only what nodes
// have with what the other pods use: of the pods themselves nothing is read, and no pod is freed. It must not be
// called after Free.
func (w *Snapshot) MayFitWithout(p placement.Problem, ends []bool) bool {
	room := w.roomWithout(ends)
	for _, need := range placement.DomainNeeds(p, w) {
		areas := w.Areas(need.Level, 0)
		if need.Area != 0 {
			areas = []placement.Area{need.Area}
		}
		c, _ := w.classAt(need.Class)
		if !slices.ContainsFunc(areas, func(a placement.Area) bool { return w.mostSlots(c, room, w.areas[a].nodes) >= need.Pods }) {
			return false
		}
	}
	return placement.MayFit(p, func(index int) int {
		if w.Kind(index) != placement.Independent {
			return math.MaxInt // as in the search for victims
		}
		c, _ := w.classAt(index)
		return w.mostSlots(c, room, w.nodes.all)
	})
}

// roomWithout returns what would be left on the nodes if all pods of some holders ended, by node and column of usage.
func (w *Snapshot) roomWithout(ends []bool) []int64 {
	t := w.usage()
	n, room := len(t.columns), slices.Clone(t.total)
	for k, used := range t.used {
		room[k] -= used
	}
	for i := range t.pods {
		u, left := &t.pods[i], room[i*n:(i+1)*n]
		for k, h := range u.holders {
			if !ends[h] {
				continue
			}
			for column, used := range t.usesOf(i, k) {
				left[column] += used
			}
		}
	}
	return room
}

// mostSlots returns an upper bound of how many pods of the class fit on nodes if this room is left, by node and column
// of usage, and it is not less than now. Nodes count that refuse the class only because of their pods.
func (w *Snapshot) mostSlots(c *class, room []int64, nodes []int32) int {
	if c.refuse != nil {
		return 0
	}
	sum := 0
	for _, i := range nodes {
		if w.mayTake(c, i) {
			slots, _ := c.known.demand.countSlots(w.columnsIn(c, room, i))
			sum += max(slots, int(c.known.slots[i]))
		}
	}
	return sum
}

// mayTake reports whether a node takes the class, or refuses it only because of its pods.
func (w *Snapshot) mayTake(c *class, i int32) bool {
	reason := c.known.reasons[i]
	return reason == 0 || w.cache.reasons[reason].resolvable
}

// columnsIn returns what is left on a node of what the class requests.
func (w *Snapshot) columnsIn(c *class, room []int64, i int32) func(k int) int64 {
	columns, left := w.columnsOf(c), room[int(i)*len(w.usage().columns):]
	return func(k int) int64 { return left[columns[k]] }
}
