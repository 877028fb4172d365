// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"

	"github.com/muster-project/muster/pkg/placement"
)

// World is the cluster of package placement, from whose nodes running pods can be removed. Free and Restore are called
// only while no pod of a plan is placed.
type World interface {
	placement.World
	// Free removes running pods from their nodes, Restore puts them back.
	Free(pods []int)
	Restore(pods []int)
	// CountNodes returns the number of nodes, which are numbered from 0.
	CountNodes() int
	// NodeOf returns the node of a running pod.
	NodeOf(pod int) int
	// NodeName returns the name of a node.
	NodeName(node int) string
	// Slots returns an upper bound of the pods of a class of the Problem that fit on a node if, besides those that
	// Free removed, these running pods of it end, and if those come back, whatever is placed. It is called often.
	Slots(class, node int, ended, back []int) int
	// Amount returns what a pod of the class requests of the resources that Pod.Amount counts.
	Amount(class int) int64
}

// Input is what a Decision depends on, besides the World. It is not modified.
type Input struct {
	Problem   placement.Problem // of the preemptor
	Workloads []Workload        // of lower priority
	Allowed   []int             // by PodDisruptionBudget: evictions that it allows now
	MaxGrace  int64             // seconds; a pod that may take longer to end is no victim; 0: there is no such limit
}

// Budget limits the search.
type Budget struct {
	Plan  placement.Budget // of each plan; Expired is that of the whole search, Skip is ignored
	Plans int              // plans after which the first victims that were found are not improved any more; 0: 512
	// Again gives more time, to the World as well, if the time is over and the plan for victims that were found in
	// time has to be made once more. nil: there is no more.
	Again func()
}

const defaultPlans = 512

// Victim is what one workload loses.
type Victim struct {
	Workload int   // index
	Rung     Rung  // the greatest loss
	Pods     []int // Pod.ID, in the order of Workload.Pods
}

// Decision is the cheapest set of victims that was found, and the plan that it makes possible. The placements and the
// freed pods remain in the World.
type Decision struct {
	Victims []Victim // in the order of Input.Workloads; none: the gang fits without
	Plan    []placement.Placement
	Cost    Cost
}

// Result is the outcome of a search.
type Result int

const (
	Decided  Result = iota // there is a Decision
	Hopeless               // it is certain that there is no plan, whoever ends
	NotFound               // no set of victims was found with which there is a plan
	Cut                    // the time was over before victims were found
)

// FindVictims returns the cheapest set of victims that it finds with which the preemptor's minimum can be placed.
// Victims that were found in time are returned if the plan for them, which has to be made once more, is made in time,
// too. Without a Decision the World is left unchanged.
func FindVictims(in Input, w World, budget Budget) (*Decision, Result) {
	s := newSearch(in, w, budget)
	if !s.mayFitWithout(func(int32) bool { return true }) {
		return nil, Hopeless
	}
	if !(s.fits() && s.plan() && s.record()) {
		s.makeUnits()
		s.findBest()
	}
	s.selectUnits(s.best)
	switch {
	case s.found && s.planAgain():
		return &Decision{Victims: s.victims(), Plan: s.placements, Cost: s.bestCost}, Decided
	case s.found || s.late:
		s.leaveWorld()
		return nil, Cut
	}
	s.leaveWorld()
	if s.proven && !s.isSpent() {
		return nil, Hopeless
	}
	return nil, NotFound
}

// findBest looks for the cheapest set of victims: without violations of PodDisruptionBudgets first, of the lowest
// priorities that are sufficient, and surplus before anything else.
func (s *search) findBest() {
	var priorities []int32
	for i := range s.Workloads {
		priorities = append(priorities, s.Workloads[i].Priority)
	}
	slices.Sort(priorities)
	priorities = slices.Compact(priorities)
	for _, sparing := range []bool{true, false} {
		if s.sparing = sparing; !sparing && len(s.Allowed) == 0 {
			return
		}
		for _, p := range priorities {
			for _, rung := range []Rung{SurplusSubGroup, WholeGang} {
				if s.findAmong(p, rung); s.isSpent() || s.found && s.bestCost.Violations == 0 {
					return
				}
			}
		}
	}
}

// findAmong looks for the cheapest set of victims of at most the priority and the rung.
func (s *search) findAmong(highest int32, most Rung) {
	s.highest, s.mostRung, s.offers, s.proven = highest, most, map[market][]offer{}, true
	if !s.mayFitWithout(func(number int32) bool {
		u := s.inner[number]
		for ; u != none && s.outer[u] != none && s.units[s.outer[u]].rung <= most; u = s.outer[u] {
		}
		return u != none && s.units[u].rung <= most && s.priorityOf(u) <= highest
	}) {
		return
	}
	fromAll := func() bool { return s.choose(s.tops) }
	for _, start := range []func() bool{s.grow, s.grow, fromAll} { // once more: numbers may have promised too much
		if s.selectUnits(nil); start() && s.reduce() {
			s.record()
			break
		}
	}
	if s.found {
		s.exchange()
	}
}

// plan makes a plan with the selected units gone. It replaces the plan made before.
func (s *search) plan() bool {
	s.undoPlan()
	if s.isLate() {
		return false
	}
	s.updateWorld()
	s.plans++
	s.placements, s.short = placement.Minimum(s.Problem, s.world, s.budget.Plan)
	s.late = s.short != nil && s.short.Cut
	return s.short == nil
}

// fits reports whether there is a plan with the selected units gone. It makes none if the numbers suffice.
func (s *search) fits() bool {
	s.recount()
	return s.allows(s.fit) && (s.byNumbers || s.plan())
}

// isLate reports whether the time is over.
func (s *search) isLate() bool {
	expired := s.budget.Plan.Expired
	s.late = s.late || expired != nil && expired()
	return s.late
}

// planAgain makes the plan of the best selection, which was made in time before.
func (s *search) planAgain() bool {
	if s.late && s.budget.Again != nil {
		s.budget.Again()
		s.late = false
	}
	return s.plan()
}

func (s *search) undoPlan() {
	s.world.Undo(len(s.placements))
	s.placements = nil
}

// isSpent reports whether no further plan is to be made.
func (s *search) isSpent() bool { return s.late || s.plans >= s.budget.Plans }

// grow ends units, the cheapest first, until there is a plan.
func (s *search) grow() bool {
	g := growth{search: s, claims: map[string]*claim{}}
	switch {
	case !s.byNumbers:
	case len(s.needs) == 0:
		return s.cover(market{}, s.all, s.demand.Fewest())
	default:
		n := s.needs[0]
		l := placement.LevelShortfall{
			Level: n.Level, Class: n.Class, Need: n.Pods,
			Runs: n.Area != 0, Domains: []placement.DomainRoom{{Area: n.Area}},
		}
		g.claims[""] = &claim{level: n.Level, area: none}
		return g.claimDomain(l) && s.allows(s.fit)
	}
	for {
		if s.plan() {
			return true
		}
		if s.isSpent() || !g.makeRoom() {
			return false
		}
	}
}

// growth is what grow has done for the groups that lacked room.
type growth struct {
	*search
	more   int               // pods by which the room for a class is increased next, beyond what is missing
	claims map[string]*claim // by group with a required level
}

// claim is the domain whose room is increased for a group.
type claim struct {
	level  string
	area   int // index
	pods   int
	banned []int // areas that did not help
}

// makeRoom ends units for the group that lacked room in the plan that failed. It returns false if this is not possible.
func (g *growth) makeRoom() bool {
	for _, l := range g.short.Levels {
		if g.claims[l.Group] == nil && !l.Torn && !l.Gone {
			g.claims[l.Group] = &claim{level: l.Level, area: none}
			return g.claimDomain(l)
		}
	}
	for _, l := range slices.Backward(g.short.Levels) {
		if !l.Torn && !l.Gone {
			return g.claimDomain(l)
		}
	}
	for _, l := range g.short.Leaves {
		if l.Refusal == nil {
			continue
		}
		c := slices.Index(g.classes, l.Class)
		want := g.fit.sums[c] + max(1, l.Need-l.Placed) + g.more
		before := len(g.list)
		g.more = 2*g.more + 1
		return g.cover(market{class: c}, g.all, want) || len(g.list) > before
	}
	return false
}

// claimDomain makes room for a group in the cheapest domain of its level, or more room in that where it has some
// already.
func (g *growth) claimDomain(l placement.LevelShortfall) bool {
	c := g.claims[l.Group]
	m := market{slices.Index(g.classes, l.Class), l.Level}
	want := max(1, l.Need)
	if l.Need == 0 {
		want = l.Pods
	}
	if c.area != none {
		before := len(g.list)
		if c.pods++; g.cover(m, g.nodesIn(l.Level, c.area), g.claimed(c)) || len(g.list) > before {
			return true
		}
		c.banned = append(c.banned, c.area)
	}
	c.area, c.pods = none, want
	if c.area = g.cheapestArea(m, l, c); c.area == none {
		return false
	}
	g.cover(m, g.nodesIn(l.Level, c.area), g.claimed(c))
	return true
}

// claimed returns how many pods groups are to have in the domain of a claim.
func (g *growth) claimed(c *claim) int {
	pods := 0
	for _, other := range g.claims {
		if other.level == c.level && other.area == c.area {
			pods += other.pods
		}
	}
	return pods
}

// cheapestArea returns the domain in which the room for a claim costs the least, none if there is none.
func (g *growth) cheapestArea(m market, l placement.LevelShortfall, c *claim) int {
	type bounded struct {
		area, missing int
		from          offer
	}
	var list []bounded
	for i, area := range g.world.Areas(l.Level, 0) {
		if slices.Contains(c.banned, i) || l.Runs && l.Domains[0].Area != area {
			continue
		}
		nodes := g.nodesIn(l.Level, i)
		c.area = i
		b := bounded{area: i, missing: g.claimed(c) - g.roomOn(m.class, nodes)}
		if b.missing <= 0 {
			return i
		}
		for _, node := range nodes {
			if g.isLate() {
				return none
			}
			o := g.offerOn(m, node, 0)
			o.gain = min(o.gain, b.missing)
			if o.gain > 0 && (b.from.gain == 0 || g.compareRates(o.price, o.gain, b.from.price, b.from.gain) < 0) {
				b.from = o
			}
		}
		if b.from.gain > 0 {
			list = append(list, b)
		}
	}
	slices.SortStableFunc(list, func(a, b bounded) int {
		return g.compareRates(a.from.price, a.from.gain*b.missing, b.from.price, b.from.gain*a.missing)
	})
	best, before, ceiling := none, g.total, g.ceiling
	defer func() { g.ceiling = ceiling }()
	for _, b := range list {
		if best != none && g.compareRates(b.from.price, b.from.gain, g.ceiling.less(before), b.missing) >= 0 {
			break
		}
		c.area = b.area
		mark := len(g.journal)
		covered := g.cover(m, g.nodesIn(l.Level, b.area), g.claimed(c))
		if covered && (best == none || g.compareRates(g.total, 1, *g.ceiling, 1) < 0) {
			total := g.total
			best, g.ceiling = b.area, &total
		}
		g.rollBack(mark)
		g.recount()
	}
	return best
}

// choose selects some of the units, or parts of them, that may end together, so that there is a plan. None of them is
// selected. It begins with all of them and leaves out the most valuable ones where too many would end.
func (s *search) choose(units []int32) bool {
	mark := len(s.journal)
	s.takeUsable(units)
	tries, n := maxTries, len(s.journal)-mark
	if n > maxLeftOut && len(s.overfull(mark)) > 0 {
		tries = 0
	}
	if s.settle(mark, &tries) && !(s.sparing && s.total.violations > 0) {
		return true
	}
	s.proven = s.proven && tries > 0 && s.byNumbers
	s.rollBack(mark)
	return false
}

const (
	maxLeftOut = 256  // units up to which ways to leave some of them out are tried
	maxTries   = 1024 // of these ways
)

// takeUsable selects units that may end apart from their limits; in place of others their parts.
func (s *search) takeUsable(units []int32) {
	for _, u := range units {
		if s.isInQuestion(u) && !s.barred[u] {
			s.take(u)
		} else {
			s.takeUsable(s.partsOf(u))
		}
	}
}

// settle leaves units that were selected since the journal had a length out until no more are selected than may end
// together, and there is a plan.
func (s *search) settle(from int, tries *int) bool {
	if *tries--; *tries < 0 || !s.fits() || s.late {
		return false
	}
	units := s.overfull(from)
	if len(units) == 0 {
		return true
	}
	kept := 0
	for _, u := range units {
		if s.kept[u] {
			kept++
		}
	}
	allowed, settled := len(units)+s.spare[s.limit[units[0]]], false
	var tried []int32
	for _, u := range units {
		if settled || kept > allowed || s.kept[u] {
			continue
		}
		mark := len(s.journal)
		s.leave(u)
		s.takeUsable(s.partsOf(u))
		if settled = s.settle(from, tries); !settled {
			s.rollBack(mark)
			s.kept[u], tried = true, append(tried, u)
			kept++
		}
	}
	for _, u := range tried {
		s.kept[u] = false
	}
	return settled
}

// overfull returns the units of a limit if more of them were selected since the journal had a length than may end
// together, the most valuable first. nil: there is no such limit.
func (s *search) overfull(from int) []int32 {
	var units []int32
	for _, u := range s.journal[from:] {
		switch {
		case u < 0 || !s.selected[u] || s.limit[u] == none || s.spare[s.limit[u]] >= 0:
		case len(units) == 0 || s.limit[u] == s.limit[units[0]]:
			units = append(units, u)
		}
	}
	return s.byValue(units)
}

// reduce takes units back as long as there is a plan without them, the most valuable first. It returns false if there
// is no plan in the first place. If the time is over, the result is not minimal, but no unit is left on whose nodes
// the plan puts nothing.
func (s *search) reduce() bool {
	start := s.selection()
	if !s.byNumbers {
		if s.restoreApart(); !s.plan() && !s.late { // late: it is planned again at the end
			if s.selectUnits(start); !s.plan() && !s.late {
				return false
			}
		}
	}
	tried := map[int32]bool{}
	for again := true; again; {
		again = false
		for _, u := range s.byValue(s.list) {
			if !s.selected[u] || tried[u] || s.late && !s.byNumbers {
				continue
			}
			tried[u], again = true, true
			if s.leave(u); s.fits() {
				continue
			}
			if parts := s.partsOf(u); len(parts) == 0 || s.late || !s.choose(parts) {
				s.take(u)
			}
		}
	}
	if s.byNumbers && s.found && !s.isCheaper() {
		return true
	}
	if s.byNumbers && !s.plan() && !s.late { // a filter refuses what the numbers allow
		s.byNumbers, s.probes = false, true
		if s.selectUnits(start); s.plan() {
			return s.reduce()
		}
		return false
	}
	return true
}

// restoreApart takes the units back on whose nodes the plan made last puts nothing.
func (s *search) restoreApart() {
	planned := map[string]bool{}
	for _, p := range s.placements {
		planned[p.Node] = true
	}
	for _, u := range s.selection() {
		first := s.first[s.units[u].workload]
		if !slices.ContainsFunc(s.units[u].pods, func(pod int) bool {
			return planned[s.world.NodeName(int(s.node[first+pod]))]
		}) {
			s.leave(u)
		}
	}
}

const (
	maxExchanged = 16   // selected units, the most valuable, that are exchanged, and for pairs of them a quarter
	minBundles   = 2000 // sets of units that may be priced for exchanges, besides a quarter of those before
)

// exchange replaces one or two of the best units by others as long as this is cheaper.
func (s *search) exchange() {
	most := s.bundles + s.bundles/4 + minBundles
	for improved := true; improved; {
		improved = false
		best := s.byValue(s.best)
		best = best[:min(len(best), maxExchanged)]
		for i := range best {
			for k := i; k < len(best) && !improved && !s.isSpent() && s.bundles < most; k++ {
				if k == i || k < maxExchanged/4 || len(s.best) <= maxExchanged {
					improved = s.exchangeFor([]int32{best[i], best[k]})
				}
			}
		}
	}
}

// exchangeFor replaces the units by others if this is cheaper.
func (s *search) exchangeFor(out []int32) bool {
	s.selectUnits(slices.DeleteFunc(slices.Clone(s.best), func(u int32) bool { return slices.Contains(out, u) }))
	bar := func(barred bool, sign int) {
		for _, u := range out {
			s.barred[u] = barred
			s.bars[s.units[u].workload] += sign
		}
	}
	bar(true, 1)
	ceiling := s.bestPrice
	s.ceiling = &ceiling
	grown := s.grow()
	s.ceiling = nil
	bar(false, -1)
	return grown && s.reduce() && s.record()
}

// record keeps the selection if it is the cheapest one so far.
func (s *search) record() bool {
	if s.sparing && s.total.violations > 0 || s.found && !s.isCheaper() {
		return false
	}
	s.best, s.bestCost, s.found = s.selection(), s.cost(), true
	s.bestCost.Names, s.bestPrice = s.names(), s.total
	return true
}

// byValue returns the units with the most valuable first.
func (s *search) byValue(units []int32) []int32 {
	units = slices.Clone(units)
	slices.SortFunc(units, func(a, b int32) int { return -s.compareUnits(a, b) })
	return units
}
