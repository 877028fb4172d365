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
	violations, ended, pods int32
	grace                   [graceSteps]int32 // pods by step
	amount, running         int64
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

// plus returns the price with another one added (1) or taken off (-1).
func (p price) plus(other *price, sign int32) price {
	p.violations += sign * other.violations
	p.ended += sign * other.ended
	p.amount += int64(sign) * other.amount
	p.pods += sign * other.pods
	p.running += int64(sign) * other.running
	for k := range p.grace {
		p.grace[k] += sign * other.grace[k]
	}
	return p
}

// excess returns the part of Cost.Excess that a price causes.
func (s *search) excess(p *price) int {
	if p.ended == 0 {
		return 0
	}
	return excess(p.amount, s.need)
}

// compareRates compares prices for so many pods gained.
func (s *search) compareRates(a *price, gainA int, b *price, gainB int) int {
	x, y := float64(gainB), float64(gainA)
	rate := func(p, q int64) int { return cmp.Compare(float64(p)*x, float64(q)*y) }
	if order := cmp.Or(
		rate(int64(a.violations), int64(b.violations)),
		cmp.Compare(s.excess(a), s.excess(b)),
		rate(int64(a.ended), int64(b.ended)),
		rate(a.amount, b.amount),
	); order != 0 {
		return order
	}
	return cmp.Or(
		rate(int64(a.pods), int64(b.pods)),
		cmp.Compare(a.step(), b.step()),
		rate(a.running, b.running),
	)
}

// cost returns the cost of the selected units, without the names.
func (s *search) cost() Cost {
	t := &s.total
	c := Cost{
		Violations: int(t.violations), Priority: math.MinInt32, Ended: int(t.ended), Excess: s.excess(t),
		Amount: t.amount, Pods: int(t.pods), Grace: t.step(), Running: t.running,
	}
	for _, u := range s.list {
		c.Priority = max(c.Priority, s.priorityOf(u))
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
	if order := cmp.Or(
		cmp.Compare(x.violations, y.violations),
		cmp.Compare(s.priorityOf(a), s.priorityOf(b)),
		s.compareRates(x, 1, y, 1),
	); order != 0 {
		return order
	}
	return cmp.Or(
		strings.Compare(s.Workloads[s.units[a].workload].Name, s.Workloads[s.units[b].workload].Name),
		cmp.Compare(a, b),
	)
}
