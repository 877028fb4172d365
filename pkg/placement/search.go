package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-project/muster/pkg/gang"
)

// plan satisfies the group, or leaves everything as it was. The steps are told in the package's comment.
func (pl *planner) plan(g *gang.Group, budget Budget) bool {
	if !g.Satisfied(pl.possible) {
		pl.exhausted = true // too few pods: no choice can help
		return false
	}
	base := len(pl.stack)
	pl.attempts++
	if pl.fill(g, nil) {
		return true
	}
	pl.undo(base)
	return newSearch(pl, g, budget).run()
}

// search looks for a choice of children of a group whose pods can be placed together.
type search struct {
	*planner
	group      *gang.Group
	attempts   int // left
	placements int
	signatures map[*gang.Group]string
	verdicts   map[string]verdict // of leaves, by signature
	tried      map[string]bool    // choices packed, by the signatures of their leaves
}

// firstChoices is how often each waiting pod may be asked for on top of the budget: once to judge its leaf, once each in
// the preferred and in the cheapest choice, and once to spare. What Minimum promises for one class rests on it.
const firstChoices = 4

// maxConsidered bounds the choices looked at, most of which look like one that was packed already.
const maxConsidered = 1024

// verdict says whether a leaf can have its minimum if nothing else is placed.
type verdict int

const (
	fits       verdict = iota
	doubtful           // was not placed, but that does not prove that it cannot be
	impossible         // cannot be placed, beside others still less
)

// choice is a set of leaves that satisfies the group.
type choice struct {
	leaves []*gang.Group            // those that lack pods
	doubts int                      // doubtful leaves among them
	pods   int                      // missing to all of them
	picked map[kind]int             // children chosen
	spare  map[*gang.Group][]string // per group: the signatures of children that could have been chosen too
}

// kind is the children of one group that have one signature. They can stand in for each other, so that only their
// number matters.
type kind struct {
	parent    *gang.Group
	signature string
}

// limits is how many children of a kind may be chosen; any number if it is not named.
type limits map[kind]int

func newSearch(pl *planner, g *gang.Group, budget Budget) *search {
	return &search{
		planner:    pl,
		group:      g,
		attempts:   cmp.Or(budget.Attempts, defaultAttempts),
		placements: cmp.Or(budget.Placements, defaultPlacements),
		signatures: map[*gang.Group]string{},
		verdicts:   map[string]verdict{},
		tried:      map[string]bool{},
	}
}

// run packs the preferred choice, then the cheapest, then others: from each choice that failed it goes on to those with
// one child less of some kind, beginning with the kinds of the leaves that failed. It ends with the first success, with
// nothing else to try, or with the budget.
func (s *search) run() bool {
	pl := s.planner
	pl.spent = false
	defer func(limit int) { pl.limit = limit }(pl.limit)
	pl.limit = pl.calls + firstChoices*pl.waitingBelow(s.group) + s.placements
	if c, ok := s.choose(s.group, nil, preferredFirst); ok {
		if ok, _ := s.pack(c); ok {
			return true
		}
	}
	c, ok := s.choose(s.group, nil, cheapestFirst)
	if !ok {
		pl.exhausted = true
		return false
	}
	ok, failed := s.pack(c)
	if ok {
		return true
	}

	seen := map[string]bool{}
	open := s.others(c, nil, failed) // a stack: the last is tried next
	for considered := 0; len(open) > 0; considered++ {
		l := open[len(open)-1]
		open = open[:len(open)-1]
		if s.attempts <= 0 || considered == maxConsidered || pl.calls >= pl.limit {
			pl.spent = true
			break
		}
		if key := s.keyOf(l); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		c, ok := s.choose(s.group, l, cheapestFirst)
		if !ok {
			continue
		}
		ok, failed := s.pack(c)
		if ok {
			return true
		}
		open = append(open, s.others(c, l, failed)...)
	}
	pl.exhausted = !pl.spent
	return false
}

// pack tries a choice, unless one that looks the same to the World was tried before.
func (s *search) pack(c choice) (ok bool, failed []*gang.Group) {
	keys := make([]string, len(c.leaves))
	for i, leaf := range c.leaves {
		keys[i] = s.signatureOf(leaf)
	}
	slices.Sort(keys)
	key := strings.Join(keys, "|")
	if s.tried[key] {
		return false, nil
	}
	s.tried[key] = true
	s.attempts--
	s.planner.attempts++
	return s.planner.pack(c.leaves, s.extra())
}

// waitingBelow returns the number of waiting pods in the leaves of the group.
func (pl *planner) waitingBelow(g *gang.Group) int {
	if g.IsLeaf() {
		return len(pl.problem.Pods[g.Name()])
	}
	n := 0
	for _, child := range g.Children() {
		n += pl.waitingBelow(child)
	}
	return n
}

// extra is the part of the budget that finding domains for one choice may take.
func (s *search) extra() int { return max(64, s.placements/8) }

// others returns the limits that lead from a choice to those with one child less of some kind, the most promising last:
// kinds of the failed leaves, then of the groups above them, after those that had no part in the failure.
func (s *search) others(c choice, l limits, failed []*gang.Group) []limits {
	var kinds []kind // most promising first
	add := func(g *gang.Group) {
		for ; g != s.group; g = g.Parent() {
			k := kind{g.Parent(), s.signatureOf(g)}
			replaceable := slices.ContainsFunc(c.spare[k.parent], func(signature string) bool { return signature != k.signature })
			if c.picked[k] > 0 && replaceable && !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		}
	}
	for _, leaf := range append(slices.Clone(failed), c.leaves...) {
		add(leaf)
	}
	next := make([]limits, 0, len(kinds))
	for _, k := range slices.Backward(kinds) {
		less := maps.Clone(l)
		if less == nil {
			less = limits{}
		}
		less[k] = c.picked[k] - 1
		next = append(next, less)
	}
	return next
}

// option is a child that could be chosen, with the choice below it.
type option struct {
	choice
	child     *gang.Group
	signature string
}

func preferredFirst(a, b option) int { return cmp.Compare(a.doubts, b.doubts) }

func cheapestFirst(a, b option) int {
	return cmp.Or(cmp.Compare(a.doubts, b.doubts), cmp.Compare(a.pods, b.pods))
}

// choose returns the leaves to be filled so that the group is satisfied: of each group as many children as it lacks, the
// first in the given order, those with held pods and then spec order among equals. false: the limits, or leaves that
// are impossible, leave too few.
func (s *search) choose(g *gang.Group, l limits, order func(a, b option) int) (choice, bool) {
	c := choice{picked: map[kind]int{}, spare: map[*gang.Group][]string{}}
	missing := s.missing(g)
	if missing == 0 {
		return c, true
	}
	if g.IsLeaf() {
		v := s.verdictOf(g)
		c.leaves, c.pods = []*gang.Group{g}, missing
		if v == doubtful {
			c.doubts = 1
		}
		return c, v != impossible
	}
	var options []option
	for _, child := range s.preferred(g) {
		if below, ok := s.choose(child, l, order); ok {
			options = append(options, option{below, child, s.signatureOf(child)})
		}
	}
	slices.SortStableFunc(options, order)
	for _, o := range options {
		k := kind{g, o.signature}
		if most, limited := l[k]; limited && c.picked[k] >= most {
			continue
		}
		if missing == 0 {
			c.spare[g] = append(c.spare[g], o.signature)
			continue
		}
		missing--
		c.leaves = append(c.leaves, o.leaves...)
		c.doubts += o.doubts
		c.pods += o.pods
		c.picked[k]++
		maps.Copy(c.picked, o.picked)
		maps.Copy(c.spare, o.spare)
	}
	return c, missing == 0
}

// verdictOf tries the leaf alone, once per signature.
func (s *search) verdictOf(leaf *gang.Group) verdict {
	signature := s.signatureOf(leaf)
	if v, ok := s.verdicts[signature]; ok {
		return v
	}
	v := s.judge(leaf)
	s.verdicts[signature] = v
	return v
}

func (s *search) judge(leaf *gang.Group) verdict {
	live := s.live(leaf)
	if len(live) < s.missing(leaf) {
		return impossible
	}
	mark := len(s.stack)
	if ok, _ := s.planner.pack([]*gang.Group{leaf}, s.extra()); ok {
		s.undo(mark)
		return fits
	}
	// Only for pods that do not differ and do not depend on others does the order of placing them prove nothing.
	first := s.class(live[0])
	if s.independent(first) && !slices.ContainsFunc(live, func(p slot) bool { return s.class(p) != first }) {
		return impossible
	}
	return doubtful
}

func (s *search) signatureOf(g *gang.Group) string {
	signature, ok := s.signatures[g]
	if !ok {
		signature, _ = s.signature(g)
		s.signatures[g] = signature
	}
	return signature
}

// keyOf returns the same string for the same limits.
func (s *search) keyOf(l limits) string {
	parts := make([]string, 0, len(l))
	for k, most := range l {
		parts = append(parts, fmt.Sprintf("%s %s %d", k.parent.Name(), k.signature, most))
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// signature describes the group as the World sees it: groups of one signature can stand in for each other. independent:
// no pod below the group has a class with domains.
func (pl *planner) signature(g *gang.Group) (signature string, independent bool) {
	var b strings.Builder
	independent = true
	var write func(g *gang.Group)
	write = func(g *gang.Group) {
		fmt.Fprintf(&b, "%d", pl.missing(g))
		if g.IsLeaf() {
			for _, s := range pl.waiting(g) {
				c := pl.class(s)
				independent = independent && pl.independent(c)
				fmt.Fprintf(&b, ",%d", c)
			}
			return
		}
		b.WriteByte('(')
		for _, child := range g.Children() {
			write(child)
			b.WriteByte(';')
		}
		b.WriteByte(')')
	}
	write(g)
	return b.String(), independent
}
