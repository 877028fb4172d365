// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Cost is what a set of victims costs. Source: docs/decisions, G22.
type Cost struct {
	Violations int      // evictions beyond what PodDisruptionBudgets allow
	Priority   int32    // the highest of a victim; math.MinInt32: there is no victim
	Excess     int      // doublings of twice what the preemptor needs up to Amount, if workloads end
	Ended      int      // whole gangs and pods without a gang
	Amount     int64    // of the extended resources that the preemptor requests
	Pods       int      // evictions
	Grace      int      // step of the longest grace period: 0: up to 30 s, 1: up to 5 min, 2: longer
	Running    int64    // the time for which the victims have run, in all
	Names      []string // of the workloads that lose pods, ascending
}

// Compare returns a negative number if c is cheaper.
func (c Cost) Compare(other Cost) int {
	return cmp.Or(
		cmp.Compare(c.Violations, other.Violations),
		cmp.Compare(c.Priority, other.Priority),
		cmp.Compare(c.Excess, other.Excess),
		cmp.Compare(c.Ended, other.Ended),
		cmp.Compare(c.Amount, other.Amount),
		cmp.Compare(c.Pods, other.Pods),
		cmp.Compare(c.Grace, other.Grace),
		cmp.Compare(c.Running, other.Running),
		slices.Compare(c.Names, other.Names),
	)
}

// graceSteps is the number of steps that graceStep returns.
const graceSteps = 3

// graceStep returns the step of a grace period in seconds: see Cost.Grace.
func graceStep(seconds int64) int {
	switch {
	case seconds <= 30:
		return 0
	case seconds <= 300:
		return 1
	}
	return 2
}

// excess returns Cost.Excess for workloads that end with this amount.
func excess(amount, need int64) int {
	if need <= 0 || amount <= 2*need {
		return 0
	}
	return bits.Len64(uint64((amount - 1) / (2 * need)))
}

// atMost is the largest number of a Pod that counts: the sums of a million pods do not overflow.
const atMost = 1 << 42

// counted returns a number of a Pod as it counts: negative ones are 0.
func counted(n int64) int64 { return min(max(n, 0), atMost) }

// price is the part of a Cost that can be added up.
type price struct {
	violations, ended, pods int
	amount, running         int64
	grace                   [graceSteps]int // pods by step
}

// step returns Cost.Grace.
func (p *price) step() int {
	for k := graceSteps - 1; k > 0; k-- {
		if p.grace[k] > 0 {
			return k
		}
	}
	return 0
}

// less returns what is left of the price without a part of it.
func (p price) less(part price) price {
	p.violations -= part.violations
	p.ended -= part.ended
	p.amount -= part.amount
	p.pods -= part.pods
	p.running -= part.running
	for k := range p.grace {
		p.grace[k] -= part.grace[k]
	}
	return p
}

// compareRates compares prices for so many pods gained.
func (s *search) compareRates(a price, gainA int, b price, gainB int) int {
	x, y := float64(gainB), float64(gainA)
	rate := func(p, q int64) int { return cmp.Compare(float64(p)*x, float64(q)*y) }
	excessOf := func(p price) int {
		if p.ended == 0 {
			return 0
		}
		return excess(p.amount, s.need)
	}
	return cmp.Or(
		rate(int64(a.violations), int64(b.violations)),
		cmp.Compare(excessOf(a), excessOf(b)),
		rate(int64(a.ended), int64(b.ended)),
		rate(a.amount, b.amount),
		rate(int64(a.pods), int64(b.pods)),
		cmp.Compare(a.step(), b.step()),
		rate(a.running, b.running),
	)
}

// cost returns the cost of the selected units, without the names.
func (s *search) cost() Cost {
	t := &s.total
	c := Cost{
		Violations: t.violations, Priority: math.MinInt32, Ended: t.ended,
		Amount: t.amount, Pods: t.pods, Grace: t.step(), Running: t.running,
	}
	for _, u := range s.list {
		c.Priority = max(c.Priority, s.priorityOf(u))
	}
	if t.ended > 0 {
		c.Excess = excess(t.amount, s.need)
	}
	return c
}

// isCheaper reports whether the selected units cost less than the best ones. It lists their names only if nothing else
// decides.
func (s *search) isCheaper() bool {
	c := s.cost()
	c.Names = s.bestCost.Names
	if order := c.Compare(s.bestCost); order != 0 {
		return order < 0
	}
	return slices.Compare(s.names(), s.bestCost.Names) < 0
}

// names returns the names of the workloads that lose pods, ascending.
func (s *search) names() []string {
	var names []string
	for _, w := range s.workloadsOf() {
		names = append(names, s.Workloads[w].Name)
	}
	slices.Sort(names)
	return names
}

// compareUnits orders units by what is lost with each of them, the least first.
func (s *search) compareUnits(a, b int32) int {
	x, y := &s.losses[a], &s.losses[b]
	return cmp.Or(
		cmp.Compare(x.budgets, y.budgets), cmp.Compare(s.priorityOf(a), s.priorityOf(b)), cmp.Compare(x.ends, y.ends),
		cmp.Compare(x.amount, y.amount), cmp.Compare(len(s.units[a].pods), len(s.units[b].pods)),
		cmp.Compare(x.grace, y.grace), cmp.Compare(x.running, y.running),
		strings.Compare(s.Workloads[s.units[a].workload].Name, s.Workloads[s.units[b].workload].Name),
		cmp.Compare(a, b),
	)
}
