package placement

import (
	"maps"
	"slices"

	"github.com/muster-project/muster/pkg/gang"
)

// planner is one problem under way: the placements made so far, as a stack beside the World's, and what is known of it.
type planner struct {
	problem Problem
	world   World

	stack    []step
	counts   gang.Counts   // problem.Have and the stack
	taken    map[slot]bool // pods on the stack
	possible gang.Counts   // problem.Have and all waiting pods: a group that these do not satisfy need not be tried

	dependents int                  // pods on the stack whose class has domains
	domainOf   map[int]domainUse    // class with domains -> the domain its pods on the stack share
	refusals   map[refusalKey]known // refusals that still hold
	expired    func() bool          // the time is over; nil: there is no limit
	cut        bool                 // the time is over

	domains  map[int][]string // World.Domains, asked once per class
	kind     map[int]Kind     // World.Kind
	capacity map[int]Capacity // World.Capacity
	weight   map[int]int64    // World.Weight

	version   int  // of the stack: grows with every change
	calls     int  // of World.Place
	limit     int  // of calls; negative: none
	spent     bool // the limit has stopped something
	attempts  int
	exhausted bool
}

// slot is one waiting pod: its leaf and its place in the leaf's list.
type slot struct {
	leaf string
	i    int
}

type step struct {
	slot   slot
	class  int
	domain string
	node   string
}

type domainUse struct {
	domain string
	pods   int
}

type refusalKey struct {
	class  int
	domain string
}

type known struct {
	depth   int // of the stack at that time
	version int
}

func newPlanner(p Problem, w World, expired func() bool) *planner {
	pl := &planner{
		problem:  p,
		world:    w,
		counts:   gang.Counts{},
		taken:    map[slot]bool{},
		possible: gang.Counts{},
		domainOf: map[int]domainUse{},
		refusals: map[refusalKey]known{},
		domains:  map[int][]string{},
		kind:     map[int]Kind{},
		capacity: map[int]Capacity{},
		weight:   map[int]int64{},
		limit:    -1,
		expired:  expired,
	}
	maps.Copy(pl.counts, p.Have)
	for _, leaf := range p.Tree.Leaves() {
		pl.possible[leaf.Name()] = p.Have[leaf.Name()] + len(p.Pods[leaf.Name()])
	}
	return pl
}

// over reports whether the time is over.
func (pl *planner) over() bool {
	if !pl.cut && pl.expired != nil && pl.expired() {
		pl.cut, pl.spent = true, true
	}
	return pl.cut
}

// place puts one waiting pod on a node. The World is not asked again where its answer is known. false: no node takes it,
// or a limit is reached.
func (pl *planner) place(s slot, domain string) bool {
	class := pl.problem.Pods[s.leaf][s.i].Class
	key := refusalKey{class, domain}
	if k, ok := pl.refusals[key]; ok && (pl.independent(class) || k.version == pl.version) {
		return false
	}
	if pl.limit >= 0 && pl.calls >= pl.limit {
		pl.spent = true
		return false
	}
	if pl.over() {
		return false
	}
	pl.calls++
	node, ok := pl.world.Place(class, domain)
	if !ok {
		pl.refusals[key] = known{len(pl.stack), pl.version}
		return false
	}
	pl.stack = append(pl.stack, step{s, class, domain, node})
	pl.version++
	pl.counts[s.leaf]++
	pl.taken[s] = true
	if !pl.independent(class) {
		pl.dependents++
	}
	if domain != "" {
		pl.domainOf[class] = domainUse{domain, pl.domainOf[class].pods + 1}
	}
	return true
}

// undo takes back all placements above the given height of the stack, and forgets the refusals they caused.
func (pl *planner) undo(height int) {
	if len(pl.stack) == height {
		return
	}
	pl.world.Undo(len(pl.stack) - height)
	for _, s := range pl.stack[height:] {
		pl.counts[s.slot.leaf]--
		delete(pl.taken, s.slot)
		if !pl.independent(s.class) {
			pl.dependents--
		}
		if s.domain != "" {
			use := pl.domainOf[s.class]
			use.pods--
			pl.domainOf[s.class] = use
			if use.pods == 0 {
				delete(pl.domainOf, s.class)
			}
		}
	}
	pl.stack = pl.stack[:height]
	pl.version++
	maps.DeleteFunc(pl.refusals, func(_ refusalKey, k known) bool { return k.depth > height })
}

// placements returns the stack as a plan.
func (pl *planner) placements() []Placement {
	plan := make([]Placement, len(pl.stack))
	for i, s := range pl.stack {
		plan[i] = Placement{Pod: pl.problem.Pods[s.slot.leaf][s.slot.i], Leaf: s.slot.leaf, Node: s.node}
	}
	return plan
}

// waiting returns the pods of a leaf that are not on the stack, in order of preference.
func (pl *planner) waiting(leaf *gang.Group) []slot {
	pods := pl.problem.Pods[leaf.Name()]
	free := make([]slot, 0, len(pods))
	for i := range pods {
		if s := (slot{leaf.Name(), i}); !pl.taken[s] {
			free = append(free, s)
		}
	}
	return free
}

func (pl *planner) class(s slot) int { return pl.problem.Pods[s.leaf][s.i].Class }

// missing returns the pods that a leaf lacks, the children that any other group lacks.
func (pl *planner) missing(g *gang.Group) int {
	if g.IsLeaf() {
		return max(0, g.Min()-pl.counts[g.Name()])
	}
	return max(0, g.Min()-g.SatisfiedChildren(pl.counts))
}

// preferred returns the children that are not satisfied: those with held pods first, then spec order.
func (pl *planner) preferred(g *gang.Group) []*gang.Group {
	var held, others []*gang.Group
	for _, child := range g.Children() {
		switch {
		case child.Satisfied(pl.counts):
		case pl.holds(child):
			held = append(held, child)
		default:
			others = append(others, child)
		}
	}
	return append(held, others...)
}

// holds reports whether a pod below the group is bound already.
func (pl *planner) holds(g *gang.Group) bool {
	if g.IsLeaf() {
		return pl.problem.Held[g.Name()] > 0
	}
	return slices.ContainsFunc(g.Children(), pl.holds)
}

// independent reports whether pods of the class do not care where the gang's others are.
func (pl *planner) independent(class int) bool { return pl.kindOf(class) == Independent }

func (pl *planner) kindOf(class int) Kind {
	kind, ok := pl.kind[class]
	if !ok {
		kind = pl.world.Kind(class)
		pl.kind[class] = kind
	}
	return kind
}

// domainsOf returns the class's domains to try, at least one.
func (pl *planner) domainsOf(class int) []string {
	domains, ok := pl.domains[class]
	if !ok {
		domains = []string{""}
		if pl.kindOf(class) == SharesDomain {
			if some := pl.world.Domains(class, nil); len(some) > 0 {
				domains = some
			}
		}
		pl.domains[class] = domains
	}
	return domains
}

// alternatives returns where to try pods of the class now, as World.Place takes it. Once the class has a domain, only
// there. While other pods of the plan have domains, first anywhere: most often they leave it no choice, and if not even
// one pod of the class is taken anywhere, no domain will take it either.
func (pl *planner) alternatives(class int) []string {
	if pl.independent(class) {
		return []string{""}
	}
	if use, ok := pl.domainOf[class]; ok {
		return []string{use.domain}
	}
	domains := pl.domainsOf(class)
	if pl.dependents > 0 && domains[0] != "" {
		return append([]string{""}, domains...)
	}
	return domains
}

// domainFor returns where a pod of the class goes if the pods it is placed with go to the given domain: there too, if
// the class may.
func (pl *planner) domainFor(class int, domain string) string {
	if use, ok := pl.domainOf[class]; ok {
		return use.domain
	}
	if slices.Contains(pl.domainsOf(class), domain) {
		return domain
	}
	return ""
}

func (pl *planner) capacityOf(class int) Capacity {
	c, ok := pl.capacity[class]
	if !ok {
		c = pl.world.Capacity(class)
		pl.capacity[class] = c
	}
	return c
}

func (pl *planner) weightOf(class int) int64 {
	n, ok := pl.weight[class]
	if !ok {
		n = pl.world.Weight(class)
		pl.weight[class] = n
	}
	return n
}
