// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"math"
	"slices"
)

// Cost is what a set of victims costs. Source: docs/decisions, G22.
type Cost struct {
	Violations int      // evictions beyond what PodDisruptionBudgets allow
	Priority   int32    // the highest of a victim; math.MinInt32: there is no victim
	Ended      int      // whole gangs and pods without a gang
	Amount     int64    // of the extended resources that the preemptor requests
	Pods       int      // evictions
	Running    int64    // the time for which the victims have run, in all
	Names      []string // of the workloads that lose pods, ascending
}

// Compare returns a negative number if c is cheaper.
func (c Cost) Compare(other Cost) int {
	return cmp.Or(
		cmp.Compare(c.Violations, other.Violations),
		cmp.Compare(c.Priority, other.Priority),
		cmp.Compare(c.Ended, other.Ended),
		cmp.Compare(c.Amount, other.Amount),
		cmp.Compare(c.Pods, other.Pods),
		cmp.Compare(c.Running, other.Running),
		slices.Compare(c.Names, other.Names),
	)
}

// cost returns the cost of the selected units.
func (s *search) cost() Cost {
	c := Cost{Priority: math.MinInt32}
	evictions := make([]int, len(s.Allowed))
	for _, i := range s.workloadsOf() {
		w := &s.Workloads[i]
		lost := 0
		for k, p := range w.Pods {
			if s.freedOf(i)[k] == 0 {
				continue
			}
			lost++
			c.Pods++
			c.Amount += p.Amount
			c.Running += p.Running
			for _, b := range p.Budgets {
				evictions[b]++
			}
		}
		c.Names = append(c.Names, w.Name)
		c.Priority = max(c.Priority, w.Priority)
		if lost == len(w.Pods) {
			c.Ended++
		}
	}
	for b, n := range evictions {
		c.Violations += max(0, n-s.Allowed[b])
	}
	slices.Sort(c.Names)
	return c
}
