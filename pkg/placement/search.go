// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// planGroup satisfies the group, or leaves everything unchanged. The package documentation describes the steps.
func (pl *planner) planGroup(g int32, budget Budget) bool {
	if !pl.possible[g] {
		pl.exhausted = true // too few pods: no choice can satisfy the group
		return false
	}
	if pl.levels && pl.groups[g].open {
		return pl.planInSomeArea(g, g, budget, func() bool { return pl.planGroup(g, Budget{Attempts: budget.Attempts, Placements: budget.Placements}) })
	}
	limit, spent := pl.limit, pl.spent && pl.nested > 0
	defer func() { pl.limit, pl.spent = limit, pl.spent || spent }()
	s := newSearch(pl, g, budget)
	switch {
	case pl.levels && pl.hasLevelsBelow(g):
		return s.tryUnits()
	case s.mixed:
		return s.tryChoices()
	}
	return s.runAlike()
}

// search looks for a choice of children of a group whose pods can be placed together. The order of the choices
// depends on the facts alone, not on the results of placing them. A search that was cut short can therefore be
// continued where it ended.
type search struct {
	*planner
	choices  *chooser
	group    int32
	base     int             // height of the stack at the start
	begun    int             // choices begun, including those to skip
	skip     int             // choices to skip
	most     int             // maximum number of choices to begin
	extra    int             // calls of Place that finding domains may cost per choice
	seen     map[string]bool // keys of the choices and limits seen so far
	packed   [][]int32       // the first choices, kept to be tried in other orders
	unproven int             // choices that failed although other orders, or other nodes, may succeed

	outerLimit int // planner.limit before the search

	first    int32 // class of the first waiting pod; -1: no pod waits
	mixed    bool  // the waiting pods are not all of one Independent class
	shares   bool  // some of them have domains
	standIns bool  // some leaves have more waiting pods than needed, of several classes
}

const (
	// firstChoices is how often each waiting pod may be tried in addition to the budget: in the first walk, and in the
	// preferred and the cheapest choice, which may try a pod again in another order.
	firstChoices = 4
	// maxConsidered bounds the choices that are considered. Most of them look the same to the World as one that was
	// already tried.
	maxConsidered = 1024
	// maxShuffled is how many choices are tried in other orders.
	maxShuffled = 8
)

func newSearch(pl *planner, g int32, budget Budget) *search {
	placements := cmp.Or(budget.Placements, defaultPlacements)
	s := &search{planner: pl, group: g, base: len(pl.stack), skip: budget.Skip, most: cmp.Or(budget.Attempts, defaultAttempts),
		extra: max(64, placements/8), first: -1, outerLimit: pl.limit}
	pl.spent = false
	pl.limit = pl.calls + firstChoices*s.surveyWaitingPods(g) + placements
	if s.outerLimit >= 0 {
		pl.limit = min(pl.limit, s.outerLimit)
	}
	return s
}

// surveyWaitingPods returns the number of waiting pods below a group that may be needed, and records of which kinds
// they are.
func (s *search) surveyWaitingPods(g int32) int {
	waiting := 0
	s.visitUnsatisfied(g, func(g int32) {
		at := &s.groups[g]
		if !at.isLeaf() {
			return
		}
		waiting += at.waiting()
		s.standIns = s.standIns || at.mixed && at.waiting() > at.missing()
		for i := range int32(len(at.pods)) {
			c := s.classOf(g, i)
			if s.first < 0 {
				s.first = c
			}
			s.mixed = s.mixed || c != s.first || s.kinds[c].kind != Independent
			s.shares = s.shares || s.kinds[c].kind.hasDomains()
			if !at.mixed {
				break
			}
		}
	})
	return waiting
}

// runAlike plans pods of one Independent class. For these only the number matters: if the cheapest choice does not
// fit, no choice does. The cheapest choice is tried regardless of all limits except the time.
func (s *search) runAlike() bool {
	pl := s.planner
	pl.limit = s.outerLimit
	s.most = s.skip + 2
	c := &pl.kinds[s.first]
	if pl.fewestPods(s.group) > c.bound-c.placed {
		pl.exhausted = true
		return false
	}
	if !pl.thrifty && s.attemptChoice(s.walkInOrder) {
		return true
	}
	if pl.thrifty && s.groups[s.group].isLeaf() {
		return s.attemptChoice(s.walkInOrder)
	}
	if !s.late && !s.groups[s.group].isLeaf() {
		s.choices = newChooser(pl, s.group, func(int32) feasibility { return fits }, false)
		if cheapest, ok := s.choices.chooseLeaves(nil, cheapestFirst); ok && s.attemptChoice(func() bool { return pl.packAlike(cheapest) }) {
			return true
		}
	}
	pl.exhausted = !s.cut
	return false
}

// fewestPods returns the fewest pods that satisfy a group whose waiting pods are sufficient.
func (pl *planner) fewestPods(g int32) int {
	return pl.leastSum(g, func(leaf int32) int { return pl.groups[leaf].missing() })
}

// leastSum returns the least sum over leaves that satisfy a group whose waiting pods are sufficient. ofLeaf returns
// what a leaf that lacks pods contributes.
func (pl *planner) leastSum(g int32, ofLeaf func(leaf int32) int) int {
	at := &pl.groups[g]
	missing := at.missing()
	switch {
	case missing == 0:
		return 0
	case at.isLeaf():
		return ofLeaf(g)
	}
	var values []int
	for k := at.first; k < at.end; k++ {
		if !pl.satisfied(k) && pl.possible[k] {
			values = append(values, pl.leastSum(k, ofLeaf))
		}
	}
	return sumOfSmallest(values, missing)
}

// tryChoices tries, in this order: the walk in order of preference, the preferred choice, the cheapest choice, other
// choices, the first of these choices in other orders, and all nodes for their pods. If pods have domains, there is no
// walk, because it takes the domain that is best for a single leaf.
func (s *search) tryChoices() bool {
	pl := s.planner
	if !s.shares && !pl.thrifty && s.attemptChoice(s.walkInOrder) {
		return true
	}
	if s.timeIsOver() {
		return false
	}
	s.choices = newChooser(pl, s.group, s.judgeLeaf, false)
	s.seen = map[string]bool{}
	preferred, ok := s.choices.chooseLeaves(nil, preferredFirst)
	if s.late {
		return false
	}
	if !ok {
		pl.exhausted = true
		return false
	}
	if !pl.thrifty && s.packChoice(preferred) {
		return true
	}
	if s.exploreChoices() {
		return true
	}
	spent := pl.spent
	if s.shuffleChoices() || s.enumerateNodes() {
		return true
	}
	pl.exhausted = !spent && s.unproven == 0
	return false
}

func (s *search) walkInOrder() bool { return s.fillGroup(s.group, nil) }

// attemptChoice counts a choice and tries it, unless it is to be skipped. If the choice fails, its placements are
// undone.
func (s *search) attemptChoice(place func() bool) bool {
	pl := s.planner
	if s.begun >= s.most || s.timeIsOver() {
		pl.spent = true
		return false
	}
	s.begun++
	if s.begun <= s.skip {
		pl.tried = s.begun
		return false
	}
	if pl.nested == 0 {
		pl.attempts++
	}
	pl.blamed = blame{leaf: -1}
	ok := place()
	if pl.nested == 0 && (ok || !s.late) {
		pl.tried = s.begun
	}
	if !ok {
		pl.rememberBestAttempt()
		pl.undoAbove(s.base)
	}
	return ok
}

// packChoice tries a choice, unless one that looks the same to the World was tried before, or the numbers of pods show
// that it cannot fit.
func (s *search) packChoice(leaves []int32) bool {
	if s.markTried(s.keyOf(leaves)) || s.tooMany(s.needOf(leaves)) {
		return false
	}
	if len(s.packed) < maxShuffled {
		s.packed = append(s.packed, leaves)
	}
	if s.hasDependentPods(leaves) {
		s.unproven++
	}
	return s.attemptChoice(func() bool { return s.packLeaves(leaves, s.extra) })
}

// markTried reports whether the key was seen before, and records it.
func (s *search) markTried(key string) bool {
	if s.seen[key] {
		return true
	}
	s.seen[key] = true
	return false
}

// exploreChoices tries the cheapest choice, then the choices derived from it with fewer children of one kind, then
// those derived from these.
func (s *search) exploreChoices() bool {
	most := s.most
	s.most = max(most/2, min(most, 4)) // the remaining choices are for other orders
	defer func() { s.most = most }()
	open := [][]limit{nil} // FIFO queue
	for considered := 0; len(open) > 0; considered++ {
		if considered == maxConsidered || s.begun >= s.most || s.timeIsOver() || s.isStopped() {
			s.planner.spent = true
			return false
		}
		limits := open[0]
		open = open[1:]
		leaves, ok := s.choices.chooseLeaves(limits, cheapestFirst)
		if !ok {
			continue
		}
		if s.packChoice(leaves) {
			return true
		}
		open = append(open, s.deriveLimits(leaves, limits)...)
	}
	return false
}

// deriveLimits returns the limits that lead from a choice to choices with fewer children of one kind and that were not
// seen before.
func (s *search) deriveLimits(leaves []int32, limits []limit) [][]limit {
	var next [][]limit
	kinds := s.choices.replaceable(leaves)
	if len(kinds) == maxKinds {
		s.planner.spent = true // there may be more
	}
	for _, l := range kinds {
		for _, most := range []int{l.most - 1, l.most / 2, 0} {
			if most >= l.most {
				continue
			}
			fewer := slices.DeleteFunc(slices.Clone(limits), func(o limit) bool { return o.kind == l.kind })
			fewer = append(fewer, limit{l.kind, most})
			if !s.markTried(keyOfLimits(fewer)) {
				next = append(next, fewer)
			}
		}
	}
	return next
}

// hasDependentPods reports whether the choice contains pods that depend on others.
func (s *search) hasDependentPods(leaves []int32) bool {
	return slices.ContainsFunc(leaves, func(leaf int32) bool { return s.choices.like.dependent[s.choices.like.numberOf(leaf)] })
}

// enumerateNodes tries all nodes for the pods of the first choices that contain pods that depend on others and are
// small.
func (s *search) enumerateNodes() bool {
	for _, leaves := range s.packed {
		if !s.hasDependentPods(leaves) {
			continue
		}
		e := s.newEnumeration(leaves)
		if e == nil {
			continue
		}
		if s.attemptChoice(e.placeAllPods) {
			return true
		}
		if e.complete && !s.standIns && !s.timeIsOver() { // the World refuses every pod once the time is over
			s.unproven--
		}
	}
	return false
}

// shuffleChoices tries the first choices in other orders until the budget is spent, except for what enumerate needs.
func (s *search) shuffleChoices() bool {
	most := s.most
	s.most -= min(maxShuffled, most/2)
	defer func() { s.most = most }()
	choices := slices.DeleteFunc(slices.Clone(s.packed), s.isAlike) // for pods of one class all orders are equal
	for n := 0; len(choices) > 0 && s.begun < s.most && !s.timeIsOver() && !s.isStopped(); n++ {
		leaves := choices[n%len(choices)]
		if s.attemptChoice(func() bool { return s.packShuffled(leaves, uint64(n), s.extra) }) {
			return true
		}
	}
	return false
}

// isAlike reports whether all waiting pods of the leaves are of one class.
func (s *search) isAlike(leaves []int32) bool {
	first := s.classOf(leaves[0], 0)
	return !slices.ContainsFunc(leaves, func(leaf int32) bool { return s.groups[leaf].mixed || s.classOf(leaf, 0) != first })
}

// needOf returns, by class, the number of pods on the stack plus those that a choice places if each leaf uses its
// preferred pods.
func (pl *planner) needOf(leaves []int32) []int {
	need := pl.placedByClass()
	for _, leaf := range leaves {
		g := &pl.groups[leaf]
		n := g.missing()
		if !g.mixed {
			need[g.class] += n
			continue
		}
		for i := range int32(len(g.pods)) {
			if n > 0 && !pl.isTaken(leaf, i) && !pl.fitsNowhere(pl.classOf(leaf, i)) {
				need[pl.classOf(leaf, i)]++
				n--
			}
		}
	}
	return need
}

// tooMany reports whether a choice needs more pods of a class than fit, in all or in one domain, and no other pods
// can replace them.
func (s *search) tooMany(need []int) bool {
	if s.standIns {
		return false
	}
	for c := range s.kinds {
		if s.kinds[c].present && need[c] > s.kinds[c].bound {
			return true
		}
	}
	if !s.shares {
		return false
	}
	s.setNeed(need)
	for c := range s.kinds {
		if k := &s.kinds[c]; k.kind == SharesDomain && k.placed == 0 && need[c] > 0 && len(s.domainsOf(int32(c))) == 0 {
			return true
		}
	}
	return false
}

// judgeLeaf estimates by numbers whether a leaf can be placed alone.
func (s *search) judgeLeaf(leaf int32) feasibility {
	if s.timeIsOver() {
		return fits
	}
	g := &s.groups[leaf]
	n := g.missing()
	if len(s.offeredPods(leaf, false)) < n {
		return impossible
	}
	if !g.mixed {
		c := &s.kinds[g.class]
		if c.bound < unlimited && c.placed+n > c.bound {
			return impossible
		}
		if c.kind == SharesDomain && c.placed == 0 && len(s.world.Domains(int(g.class), s.needOf([]int32{leaf}))) == 0 {
			return impossible
		}
	}
	return fits
}

// keyOf returns equal strings for choices that look the same to the World.
func (s *search) keyOf(leaves []int32) string {
	numbers := make([]int32, len(leaves))
	for i, leaf := range leaves {
		numbers[i] = s.choices.like.numberOf(leaf)
	}
	slices.Sort(numbers)
	key := []byte{'c'}
	for i := 0; i < len(numbers); {
		n := i
		for n < len(numbers) && numbers[n] == numbers[i] {
			n++
		}
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(numbers[i])), uint64(n-i))
		i = n
	}
	return string(key)
}

// keyOfLimits returns equal strings for equal limits.
func keyOfLimits(limits []limit) string {
	limits = slices.Clone(limits)
	slices.SortFunc(limits, func(a, b limit) int {
		return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.likeness, b.likeness))
	})
	key := []byte{'l'}
	for _, l := range limits {
		key = binary.AppendUvarint(key, uint64(l.parent))
		key = binary.AppendUvarint(key, uint64(l.likeness))
		key = binary.AppendUvarint(key, uint64(l.most))
	}
	return string(key)
}
