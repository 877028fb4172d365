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

// findBest looks for the cheapest set of victims, of the lowest priorities that are sufficient without violations of
// PodDisruptionBudgets.
func (s *search) findBest() {
	var priorities []int32
	for i := range s.Workloads {
		priorities = append(priorities, s.Workloads[i].Priority)
	}
	slices.Sort(priorities)
	for _, p := range slices.Compact(priorities) {
		if s.findUpTo(p); s.isSpent() || s.found && s.bestCost.Violations == 0 {
			return
		}
	}
}

// findUpTo looks for the cheapest set of victims of at most the priority.
func (s *search) findUpTo(highest int32) {
	s.highest, s.offers, s.proven = highest, map[market][]offer{}, true
	if !s.mayFitWithout(func(number int32) bool {
		return s.inner[number] != none && s.Workloads[s.owner[number]].Priority <= highest
	}) {
		return
	}
	for _, start := range []func() bool{s.grow, s.takeAll} {
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

// grow ends units, the cheapest first, until there is a plan. The domain of all pods is chosen first.
func (s *search) grow() bool {
	g := growth{search: s, claims: map[string]*claim{}}
	whole := slices.IndexFunc(s.needs, func(n placement.DomainNeed) bool {
		return n.Pods > 0 && n.Level == s.Problem.Required[""]
	})
	switch {
	case whole >= 0:
		n := s.needs[whole]
		if !g.claimDomain(placement.LevelShortfall{
			Level: n.Level, Class: n.Class, Need: n.Pods, Runs: n.Area != 0, Domains: []placement.DomainRoom{{Area: n.Area}},
		}) {
			return false
		}
	case s.byNumbers:
		return s.cover(market{}, s.demand.Fewest())
	}
	if s.byNumbers {
		return s.fits()
	}
	for !s.plan() {
		if s.isSpent() || !g.makeRoom() {
			return false
		}
	}
	return true
}

// growth is what grow has done for the groups that lacked room.
type growth struct {
	*search
	more   int               // pods by which the room for a class is increased next, beyond what is missing
	claims map[string]*claim // by group with a required level
}

// claim is the domain whose room is increased for a group.
type claim struct {
	market // domain: none: it is to be chosen
	pods   int
	banned []int // domains that did not help
}

// makeRoom ends units for a group that lacked room in the plan that failed. It returns false if this is not possible.
func (g *growth) makeRoom() bool {
	levels := slices.DeleteFunc(slices.Clone(g.short.Levels), func(l placement.LevelShortfall) bool {
		return l.Torn || l.Gone
	})
	for _, l := range levels {
		if g.claims[l.Group] == nil {
			return g.claimDomain(l)
		}
	}
	for _, l := range slices.Backward(levels) {
		if g.claimDomain(l) {
			return true
		}
	}
	for _, l := range g.short.Leaves {
		if l.Refusal == nil {
			continue
		}
		m := market{class: slices.Index(g.classes, l.Class)}
		want := g.fit.at(m) + max(1, l.Need-l.Placed) + g.more
		before := len(g.list)
		if g.more = 2*g.more + 1; g.cover(m, want) || len(g.list) > before {
			return true
		}
	}
	return false
}

// claimDomain makes room for a group in the cheapest domain of its level, or more room in that where it has some
// already.
func (g *growth) claimDomain(l placement.LevelShortfall) bool {
	c := g.claims[l.Group]
	if c == nil {
		c = &claim{market: market{slices.Index(g.classes, l.Class), g.levelOf(l.Level), none}}
		g.claims[l.Group] = c
	}
	if c.domain != none {
		before := len(g.list)
		if c.pods++; g.cover(c.market, g.claimed(c)) || len(g.list) > before {
			return true
		}
		c.banned = append(c.banned, c.domain)
	}
	c.pods = max(1, l.Need)
	if l.Need == 0 {
		c.pods = l.Pods
	}
	if c.domain = g.cheapestDomain(l, c); c.domain == none {
		return false
	}
	g.cover(c.market, g.claimed(c))
	return true
}

// claimed returns how many pods groups are to have in the domain of a claim.
func (g *growth) claimed(c *claim) int {
	pods := 0
	for _, other := range g.claims {
		if other.level == c.level && other.domain == c.domain {
			pods += other.pods
		}
	}
	return pods
}

// claimAround returns the claim of the nearest group above one, nil: there is none.
func (g *growth) claimAround(group string) *claim {
	for p := g.Problem.Tree.Group(group).Parent(); p != nil; p = p.Parent() {
		if c := g.claims[p.Name()]; c != nil && c.domain != none {
			return c
		}
	}
	return nil
}

// overlap reports whether two domains have a node in common.
func (s *search) overlap(a, b market) bool {
	return slices.ContainsFunc(s.levels[a.level].nodes[a.domain], func(node int32) bool {
		return int(s.levels[b.level].of[node]) == b.domain
	})
}

// cheapestDomain returns the domain in which the room for a claim costs the least, inside of that of the group around;
// none: there is none.
func (g *growth) cheapestDomain(l placement.LevelShortfall, c *claim) int {
	type bounded struct {
		domain, missing int
		from            *offer
	}
	var list []bounded
	outer, around := g.claimAround(l.Group), placement.Area(0)
	if l.Runs {
		around, _ = g.world.AreaAround(l.Level, 0, l.Domains[0].Area)
	}
	for i, area := range g.levels[c.level].areas {
		c.domain = i
		if slices.Contains(c.banned, i) || l.Runs && around != area || outer != nil && !g.overlap(c.market, outer.market) {
			continue
		}
		missing := g.claimed(c) - g.fit.at(c.market)
		if missing <= 0 {
			return i
		}
		if offers := g.listed(c.market); len(offers) > 0 {
			list = append(list, bounded{i, missing, &offers[0]})
		}
	}
	slices.SortStableFunc(list, func(a, b bounded) int {
		return g.compareRates(&a.from.price, a.from.gain*b.missing, &b.from.price, b.from.gain*a.missing)
	})
	best, ceiling := none, g.ceiling
	defer func() { g.ceiling = ceiling }()
	for _, b := range list {
		if g.ceiling != nil {
			most := g.ceiling.plus(&g.total, -1)
			if g.compareRates(&b.from.price, b.from.gain, &most, b.missing) >= 0 {
				break
			}
		}
		c.domain = b.domain
		mark := len(g.journal)
		if g.cover(c.market, g.claimed(c)) && (best == none || g.compareRates(&g.total, 1, g.ceiling, 1) < 0) {
			total := g.total
			best, g.ceiling = b.domain, &total
		}
		g.rollBack(mark)
		g.recount()
	}
	return best
}

// takeAll selects all units that may end, and leaves out the most valuable ones where too many would end.
func (s *search) takeAll() bool {
	var tops []int32
	for u, outer := range s.outer {
		if outer == none {
			tops = append(tops, int32(u))
		}
	}
	return s.choose(tops)
}

// choose selects some of the units, or parts of them, that may end together, so that there is a plan. None of them is
// selected. It begins with all of them and leaves out the most valuable ones where too many would end.
func (s *search) choose(units []int32) bool {
	mark := len(s.journal)
	if s.takeUsable(units); len(s.journal) == mark {
		return false
	}
	tries := maxTries
	if len(s.journal)-mark > maxLeftOut && len(s.overfull(mark)) > 0 {
		tries = 0
	}
	if s.fits() && s.settle(mark, &tries) {
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
		if s.priorityOf(u) <= s.highest && !slices.Contains(s.barred, u) {
			s.take(u)
		} else {
			s.takeUsable(s.partsOf(u))
		}
	}
}

// settle leaves units that were selected since the journal had a length out until no more are selected than may end
// together, and there is still a plan.
func (s *search) settle(from int, tries *int) bool {
	units := s.overfull(from)
	if len(units) == 0 {
		return true
	}
	excess := -s.spare[s.limit[units[0]]]
	units = slices.DeleteFunc(units, func(u int32) bool { return s.kept[u] })
	if *tries--; *tries < 0 || s.isLate() || len(units) < excess {
		return false
	}
	u, mark := units[0], len(s.journal)
	s.leave(u)
	s.takeUsable(s.partsOf(u))
	if s.fits() && s.settle(from, tries) {
		return true
	}
	s.rollBack(mark)
	s.kept[u] = true
	settled := s.settle(from, tries)
	s.kept[u] = false
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
// is no plan in the first place. If the time is over, the result is not minimal.
func (s *search) reduce() bool {
	start := s.selection()
	for units := s.byValue(s.list); len(units) > 0; {
		var parts []int32
		for _, u := range units {
			if s.late && !s.byNumbers {
				break
			}
			if s.leave(u); s.fits() {
				continue
			}
			if mark := len(s.journal); s.late || !s.choose(s.partsOf(u)) {
				s.take(u)
			} else {
				parts = append(parts, s.journal[mark:]...)
			}
		}
		units = s.byValue(slices.DeleteFunc(parts, func(u int32) bool { return u < 0 || !s.selected[u] }))
	}
	if !s.byNumbers || s.found && !s.isCheaper() || s.plan() || s.late {
		return true
	}
	s.byNumbers, s.probes = false, true // a filter refuses what the numbers allow
	s.selectUnits(start)
	return s.plan() && s.reduce()
}

const (
	maxExchanged = 8    // selected units, the most valuable, that are exchanged, also in pairs
	minPriced    = 2000 // offers that may be priced for exchanges, besides a quarter of those before
)

// exchange replaces one or two of the best units by others as long as this is cheaper.
func (s *search) exchange() {
	most := s.priced + s.priced/4 + minPriced
	for improved := true; improved; {
		improved = false
		best := s.byValue(s.best)
		best = best[:min(len(best), maxExchanged)]
		for i := range best {
			for k := i; k < len(best) && !improved && !s.isSpent() && s.priced < most; k++ {
				improved = s.exchangeFor(best[i], best[k])
			}
		}
	}
}

// exchangeFor replaces the units by others if this is cheaper.
func (s *search) exchangeFor(out ...int32) bool {
	s.selectUnits(slices.DeleteFunc(slices.Clone(s.best), func(u int32) bool { return slices.Contains(out, u) }))
	ceiling := s.bestPrice
	s.barred, s.ceiling = out, &ceiling
	grown := s.grow()
	s.barred, s.ceiling = nil, nil
	return grown && s.reduce() && s.record()
}

// record keeps the selection if it is the cheapest one so far.
func (s *search) record() bool {
	if s.found && !s.isCheaper() {
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
