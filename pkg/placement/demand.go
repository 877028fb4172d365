// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"math"
	"slices"
)

// MayFit reports whether the number of pods that fit allows the tree's minimum to be met. It is a necessary
// condition: if it returns false, no plan exists. capacity returns an upper bound of the pods of a class that fit if
// nothing else is placed, as Capacity.Pods does; math.MaxInt means that no bound is known.
//
// If all waiting pods are of one class, the answer is exact with respect to numbers: the fewest pods that satisfy the
// tree do not exceed the capacity. If there are several classes, each is checked as if the others used no resources.
//
// It visits every group and every pod. To ask repeatedly about the same problem, use Demand.
func MayFit(p Problem, capacity func(class int) int) bool { return NewDemand(p).MayFit(capacity) }

// Demand is the number of waiting pods of a Problem by leaf and class, prepared for MayFit. It does not retain the
// pods. Not safe for concurrent use.
type Demand struct {
	groups  []asked
	uses    []use
	last    []int32 // per class: its use in the last leaf that has pods of this class; -1: none
	waiting []int   // per class: pods

	// Scratch space of one call of MayFit, kept to avoid allocations.
	capacity []int // per class
	values   []int
	open     []partial
}

// asked is one group. Groups have the same numbers as in the layout.
type asked struct {
	parent     int32
	first, end int32 // children
	use, uses  int32 // leaf: its uses are Demand.uses[use:uses]
	missing    int   // leaf: missing pods; other group: missing children; 0: satisfied

	// Of one call of MayFit.
	live  int   // leaf: waiting pods, limited by the capacity of their classes
	fit   int32 // children that are not satisfied but have enough pods to become satisfied
	fits  bool  // the group has enough pods
	total int   // the fewest pods that satisfy the group
}

// use is the number of waiting pods of one class in one leaf.
type use struct {
	leaf, class int32
	pods        int
	before      int32 // index of the class's use in the previous leaf; -1: none
}

// partial is a group that cannot be satisfied without pods of the class under consideration.
type partial struct {
	group int32
	pods  int
}

// NewDemand returns the Demand of a problem.
func NewDemand(p Problem) *Demand {
	l := newLayout(p)
	return demandOf(&l)
}

// demandOf returns the pods of the layout that wait and are not placed.
func demandOf(l *layout) *Demand {
	d := &Demand{groups: make([]asked, len(l.groups)), last: make([]int32, l.classes), waiting: make([]int, l.classes)}
	d.capacity = make([]int, l.classes)
	for c := range d.last {
		d.last[c] = -1
	}
	for i := range l.groups {
		g := &l.groups[i]
		a := &d.groups[i]
		*a = asked{parent: g.parent, first: g.first, end: g.end, missing: g.missing(), use: int32(len(d.uses))}
		for _, pod := range g.pods {
			at := d.last[pod.Class]
			if at < a.use { // a use of an earlier leaf, or -1
				d.uses = append(d.uses, use{leaf: int32(i), class: int32(pod.Class), before: at})
				at = int32(len(d.uses)) - 1
				d.last[pod.Class] = at
			}
			d.uses[at].pods++
			d.waiting[pod.Class]++
		}
		a.uses = int32(len(d.uses))
	}
	return d
}

// Classes returns the classes that have waiting pods.
func (d *Demand) Classes() []int {
	var classes []int
	for c, pods := range d.waiting {
		if pods > 0 {
			classes = append(classes, c)
		}
	}
	return classes
}

// Fewest returns the fewest pods that satisfy the tree, whatever their classes. 0: it is satisfied, or there are too
// few.
func (d *Demand) Fewest() int {
	if !d.MayFit(func(int) int { return unlimited }) {
		return 0
	}
	return d.groups[root].total
}

// MayFit is the function MayFit for this problem. It reuses the slices of earlier calls.
func (d *Demand) MayFit(capacity func(class int) int) bool {
	if d.groups[root].missing == 0 {
		return true
	}
	sum := 0
	for c, pods := range d.waiting {
		d.capacity[c] = 0
		if pods > 0 {
			d.capacity[c] = min(pods, max(0, capacity(c)))
		}
		sum += d.capacity[c]
	}
	d.countGroups()
	if top := &d.groups[root]; !top.fits || top.total > sum {
		return false
	}
	for c, pods := range d.waiting {
		if d.capacity[c] < pods && d.leastPodsOfClass(int32(c)) > d.capacity[c] {
			return false
		}
	}
	return true
}

// countGroups determines which groups have enough pods if no class uses more pods than its capacity.
func (d *Demand) countGroups() {
	for i := range d.groups {
		d.groups[i].fit = 0
	}
	for i := int32(len(d.groups)) - 1; i >= 0; i-- {
		g := &d.groups[i]
		switch {
		case g.missing == 0:
			g.fits, g.total = true, 0
			continue
		case g.first == g.end:
			g.live = 0
			for _, u := range d.uses[g.use:g.uses] {
				g.live += min(u.pods, d.capacity[u.class])
			}
			g.fits, g.total = g.live >= g.missing, g.missing
		default:
			g.fits, g.total = int(g.fit) >= g.missing, 0
			if !g.fits {
				break
			}
			d.values = d.values[:0]
			for k := g.first; k < g.end; k++ {
				if child := &d.groups[k]; child.missing > 0 && child.fits {
					d.values = append(d.values, child.total)
				}
			}
			g.total = sumOfSmallest(d.values, g.missing)
		}
		if g.fits && g.parent >= 0 {
			d.groups[g.parent].fit++
		}
	}
}

// leastPodsOfClass returns the fewest pods of the class with which the tree's minimum can be met.
//
// It proceeds from the leaves with such pods upwards and always continues with the group that has the highest number.
// Siblings that need pods of the class therefore follow each other. Of the other siblings only the number matters,
// because they need no pods of the class.
func (d *Demand) leastPodsOfClass(class int32) int {
	d.open = d.open[:0] // inner groups in descending order; the next one is at index head
	head := 0
	leaf, before := d.nextNeedyLeaf(class, d.last[class])
	for {
		parent := int32(-1)
		d.values = d.values[:0]
		for {
			next, inner := leaf, false
			if head < len(d.open) && d.open[head].group > leaf.group {
				next, inner = d.open[head], true
			}
			if next.group == root {
				return next.pods
			}
			if next.group < 0 || len(d.values) > 0 && d.groups[next.group].parent != parent {
				break
			}
			parent = d.groups[next.group].parent
			d.values = append(d.values, next.pods)
			if inner {
				head++
			} else {
				leaf, before = d.nextNeedyLeaf(class, before)
			}
		}
		if len(d.values) == 0 {
			return 0
		}
		g := &d.groups[parent]
		if needed := g.missing - (int(g.fit) - len(d.values)); g.missing > 0 && g.fits && needed > 0 {
			d.open = append(d.open, partial{parent, sumOfSmallest(d.values, needed)})
		}
	}
}

// nextNeedyLeaf returns the first leaf, starting at the given use of the class and going backwards, whose pods of other
// classes are not sufficient, and the use before that leaf. If there is no such leaf, the returned group is -1.
func (d *Demand) nextNeedyLeaf(class, at int32) (leaf partial, before int32) {
	for at >= 0 {
		u := &d.uses[at]
		at = u.before
		g := &d.groups[u.leaf]
		if others := g.live - min(u.pods, d.capacity[class]); g.missing > max(0, others) && g.fits {
			return partial{u.leaf, g.missing - others}, at
		}
	}
	return partial{group: -1}, -1
}

// sumOfSmallest returns the sum of the n smallest values. It may reorder values.
func sumOfSmallest(values []int, n int) int {
	if n < len(values) && slices.Min(values) != slices.Max(values) {
		slices.Sort(values)
	}
	sum := 0
	for _, v := range values[:n] {
		sum += v
	}
	return sum
}

// unlimited is the capacity of a class for which no bound is known.
const unlimited = math.MaxInt
