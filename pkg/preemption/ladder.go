// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"

	"github.com/muster-project/muster/pkg/gang"
)

// Unit is what the owner of a gang loses at once, seen from some of its pods.
type Unit struct {
	Rung Rung
	Pods []int // all pods that end, as indexes into Workload.Pods; not to be modified
	// With are those of the given pods for which this is the smallest loss: a smaller unit does not contain them.
	With []int
}

// Ladder contains the units of one gang, for a preemptor that looks at a few of its pods at a time, such as those on
// one node. It is safe for concurrent use.
type Ladder struct {
	units  []unit
	limits []int   // by unit: its limit; noLimit: it has none
	spare  []int   // by limit: how many of its units may end together
	ofPod  [][]int // by pod: the units that contain it: single, sub-groups from the outermost to the innermost, the whole
}

const noLimit = -1

// NewLadder returns the units of a gang. Its tree is not nil.
func NewLadder(w *Workload) *Ladder {
	counts := gang.Counts{}
	w.count(counts)
	l := &Ladder{units: appendUnits(nil, 0, w, counts, numbersTo(len(w.Pods))), ofPod: make([][]int, len(w.Pods))}
	limitOf := map[*gang.Group]int{}
	for i, u := range l.units {
		l.limits = append(l.limits, noLimit)
		if group := u.limit(counts); group != nil {
			if _, known := limitOf[group]; !known {
				limitOf[group] = len(l.spare)
				l.spare = append(l.spare, spareOf(group, counts))
			}
			l.limits[i] = limitOf[group]
		}
		for _, pod := range u.pods {
			l.ofPod[pod] = append(l.ofPod[pod], i)
		}
	}
	return l
}

// UnitsWith returns units that contain any of the pods, which are indexes into Workload.Pods: single pods, then
// sub-groups, the inner ones before those around them, then the whole. All of these units may end, or any of them
// while the others stay. Of those that may not end together, the ones that are last in order are returned. mayEnd
// excludes units by their pods; nil: none.
func (l *Ladder) UnitsWith(pods []int, mayEnd func(pods []int) bool) []Unit {
	c := choice{ladder: l, mayEnd: mayEnd, used: make([]int, len(l.spare)), chosen: make([]int, 0, len(pods))}
	c.choose(pods, SurplusPod)
	units := make([]Unit, 0, len(pods))
	for _, i := range c.chosen {
		units = append(units, Unit{Rung: SurplusPod, Pods: l.units[i].pods, With: l.units[i].pods})
	}
	// A sub-group is of no use if its pods among these end singly.
	rest := pods
	if len(c.chosen) > 0 {
		rest = slices.DeleteFunc(slices.Clone(pods), func(pod int) bool {
			return len(l.ofPod[pod]) > 0 && slices.Contains(c.chosen, l.ofPod[pod][0])
		})
	}
	if len(rest) == 0 {
		return units
	}
	c.chosen = c.chosen[:0]
	c.choose(rest, SurplusSubGroup)
	slices.Reverse(c.chosen) // the inner ones first
	c.choose(rest, WholeGang)
	with := make([][]int, len(c.chosen))
	for _, pod := range rest {
		if k := slices.IndexFunc(c.chosen, func(i int) bool { return slices.Contains(l.ofPod[pod], i) }); k >= 0 {
			if with[k] == nil {
				with[k] = make([]int, 0, len(rest))
			}
			with[k] = append(with[k], pod)
		}
	}
	for k, i := range c.chosen {
		if len(with[k]) > 0 {
			units = append(units, Unit{Rung: l.units[i].rung, Pods: l.units[i].pods, With: with[k]})
		}
	}
	return units
}

// choice chooses units that may end, together or not.
type choice struct {
	ladder *Ladder
	mayEnd func(pods []int) bool
	used   []int // by limit: chosen units
	chosen []int
}

// choose adds units of the rung that contain any of the pods, as far as the limits allow.
func (c *choice) choose(pods []int, rung Rung) {
	l := c.ladder
	units := make([]int, 0, len(pods))
	for _, pod := range pods {
		for _, i := range l.ofPod[pod] {
			if l.units[i].rung == rung && (len(units) == 0 || units[len(units)-1] != i) { // neighbours share a unit
				units = append(units, i)
			}
		}
	}
	slices.Sort(units) // the last in order first
	for _, i := range slices.Compact(units) {
		limit := l.limits[i]
		if limit != noLimit && c.used[limit] >= l.spare[limit] || c.mayEnd != nil && !c.mayEnd(l.units[i].pods) {
			continue
		}
		if limit != noLimit {
			c.used[limit]++
		}
		c.chosen = append(c.chosen, i)
	}
}
