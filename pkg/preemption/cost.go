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
	workloads := s.workloadsOf()
	c := s.costWithoutNames(workloads)
	c.Names = s.namesOf(workloads)
	return c
}

// isCheaper reports whether the selected units cost less than the best ones. It lists their names only if nothing else decides.
func (s *search) isCheaper() bool {
	workloads := s.workloadsOf()
	c := s.costWithoutNames(workloads)
	c.Names = s.bestCost.Names
	if order := c.Compare(s.bestCost); order != 0 {
		return order < 0
	}
	return slices.Compare(s.namesOf(workloads), s.bestCost.Names) < 0
}

// costWithoutNames returns the cost of the selected units, which are of these workloads.
func (s *search) costWithoutNames(workloads []int) Cost {
	c := Cost{Priority: math.MinInt32}
	evictions := make([]int, len(s.Allowed))
	for _, i := range workloads {
		w, freed := &s.Workloads[i], s.freedOf(i)
		lost := 0
		for k := range w.Pods {
			if freed[k] == 0 {
				continue
			}
			p := &w.Pods[k]
			lost++
			c.Pods++
			c.Amount += p.Amount
			c.Running += p.Running
			for _, b := range p.Budgets {
				evictions[b]++
			}
		}
		c.Priority = max(c.Priority, w.Priority)
		if lost == len(w.Pods) {
			c.Ended++
		}
	}
	for b, n := range evictions {
		c.Violations += max(0, n-s.Allowed[b])
	}
	return c
}

// namesOf returns the names of workloads, ascending.
func (s *search) namesOf(workloads []int) []string {
	var names []string
	for _, i := range workloads {
		names = append(names, s.Workloads[i].Name)
	}
	slices.Sort(names)
	return names
}
