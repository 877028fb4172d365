// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// planner is the state of planning one problem: the current placements, as a stack parallel to the World's, and what
// is known about the classes and groups.
type planner struct {
	layout
	world World

	derived  map[derivation]int32 // classes that World.Within returned
	bases    map[int32]int32      // the same the other way round
	rooms    map[roomsKey][]int   // of World.Rooms, as far as asked
	domains  []int32              // groups whose domain was chosen, the latest last
	possible []bool               // by group: see possibilities
	taken    []bool               // by number of a waiting pod: the pod is on the stack
	stack    []step
	kinds    []class  // by number of a class
	chosen   []string // domains of placed pods: of each pod that seeks one, and of each class that shares one; the most recent last
	refused  []int32  // Independent classes with a valid refusal, the most recent one last
	cramped  []int32  // Independent classes whose room is known, the most recent one last

	need        []int // by class: all pods that the current choice places; see World.Domains
	needVersion int   // incremented with every change of need

	// counting: the World is not asked, and a class has room for as many pods as Capacity returns. Used only to
	// explain.
	counting bool

	version   int  // of the stack: incremented with every change
	calls     int  // number of calls of World.Place
	limit     int  // of calls; negative: none
	spent     bool // a limit has ended part of the search
	expired   func() bool
	late      bool // the time is over
	cut       bool // the time was over before the search had ended
	explains  bool // reasons of a Shortfall are wanted
	searched  bool // the search has ended; the remaining work only explains
	nested    int  // calls of planGroup for units, and for groups in one of their domains, that are under way
	thrifty   bool // the cheapest choice, and the pods that are easiest to place, come first, whatever is preferred
	attempts  int
	tried     int
	exhausted bool

	blamed blame // the last refusal
	best   try
}

// class is what is known about a class of pods.
type class struct {
	present  bool // there are waiting pods of the class
	weighed  bool
	kind     Kind
	capacity Capacity
	bound    int // upper bound of the pods that fit; unlimited: not known
	weight   int64

	placed int    // pods on the stack
	domain string // SharesDomain: the domain of the pods on the stack

	// Independent: the height of the stack at which the class was refused. The refusal is valid at this height and
	// above. -1: there is no valid refusal.
	refusedAt int
	// Independent: from the height roomAt of the stack on, at most room pods fit. -1: not known.
	roomAt, room int
	// Other kinds: the version of the stack at which the class was refused in the domain refusedIn.
	refusedIn      string
	refusedVersion int

	domains        []string // World.Domains for need
	domainsVersion int
}

// step is one placement.
type step struct {
	leaf, pod int32 // pod is an index into the leaf's waiting pods
	class     int32
	node      string
}

func newPlanner(p Problem, w World, expired func() bool) *planner {
	pl := &planner{layout: newLayout(p), world: w, expired: expired, limit: -1, needVersion: 1, blamed: blame{leaf: -1}}
	pl.kinds = make([]class, pl.classes)
	pl.taken = make([]bool, pl.pods)
	if pl.levels {
		pl.pinGroups(p.Nodes)
	}
	pl.possible = pl.possibilities()
	for i := range pl.groups {
		for k := range pl.groups[i].pods {
			number := pl.groups[i].pods[k].Class
			if c := &pl.kinds[number]; !c.present {
				pl.initClass(number, c)
			}
			if !pl.groups[i].mixed {
				break
			}
		}
	}
	return pl
}

// initClass initializes a class with the answers of the World.
func (pl *planner) initClass(number int, c *class) {
	*c = class{present: true, kind: pl.world.Kind(number), capacity: pl.world.Capacity(number), bound: unlimited,
		refusedAt: -1, roomAt: -1, refusedVersion: -1}
	if c.kind == Independent {
		c.bound = c.capacity.Pods
		if c.capacity.Nodes == 0 {
			c.bound = 0
		}
	}
}

func (pl *planner) satisfied(g int32) bool { return pl.groups[g].satisfied() }

// visitUnsatisfied calls visit for a group and all below it that are neither satisfied nor impossible, each before
// those below it.
func (pl *planner) visitUnsatisfied(g int32, visit func(g int32)) {
	at := &pl.groups[g]
	if at.satisfied() || !pl.possible[g] {
		return
	}
	visit(g)
	for k := at.first; k < at.end; k++ {
		pl.visitUnsatisfied(k, visit)
	}
}

// mayFit reports whether the numbers of pods allow a plan if nothing is placed yet.
func (pl *planner) mayFit() bool {
	demand := demandOf(&pl.layout)
	if !demand.MayFit(func(c int) int { return pl.kinds[c].bound }) {
		return false
	}
	pl.stack = make([]step, 0, demand.groups[root].total)
	return true
}

// timeIsOver reports whether the time is over.
func (pl *planner) timeIsOver() bool {
	if !pl.late && pl.expired != nil && pl.expired() {
		pl.late, pl.spent, pl.cut = true, true, !pl.searched
	}
	return pl.late
}

// isStopped reports whether no more pods can be placed because the time is over or the limit of calls is reached.
func (pl *planner) isStopped() bool { return pl.late || pl.limit >= 0 && pl.calls >= pl.limit }

// classOf returns the class of a waiting pod of a leaf, within the leaf's area.
func (pl *planner) classOf(leaf, pod int32) int32 {
	g := &pl.groups[leaf]
	if !g.mixed {
		return g.class
	}
	return pl.classWithin(int32(g.pods[pod].Class), g.area)
}

// isTaken reports whether a waiting pod of a leaf is on the stack.
func (pl *planner) isTaken(leaf, pod int32) bool { return pl.taken[pl.groups[leaf].start+pod] }

// placePod puts one waiting pod on a node. It does not ask the World if the answer is already known. It returns false
// if no node takes the pod or a limit is reached.
func (pl *planner) placePod(leaf, pod int32, domain string) bool {
	number := pl.classOf(leaf, pod)
	c := &pl.kinds[number]
	switch {
	case c.kind == Independent:
		if c.refusedAt >= 0 {
			return false
		}
		domain = ""
	case c.refusedVersion == pl.version && c.refusedIn == domain:
		return false
	}
	node := ""
	if pl.counting {
		if base := pl.baseOf(number); pl.placedLike(base) >= pl.kinds[base].bound {
			return false
		}
	} else {
		if pl.limit >= 0 && pl.calls >= pl.limit {
			pl.spent = true
			return false
		}
		if pl.timeIsOver() {
			pl.recordTimeout(blame{leaf, number, domain})
			return false
		}
		pl.calls++
		var ok bool
		if node, ok = pl.world.Place(int(number), domain); !ok {
			pl.blamed = blame{leaf, number, domain}
			if c.kind == Independent {
				c.refusedAt = len(pl.stack)
				pl.refused = append(pl.refused, number)
			} else {
				c.refusedVersion, c.refusedIn = pl.version, domain
			}
			return false
		}
	}
	pl.pushPlacement(leaf, pod, domain, node)
	return true
}

// placePodOnNode puts one waiting pod in a domain of one node, whatever its kind. It returns false if the node does not
// take the pod or a limit is reached.
func (pl *planner) placePodOnNode(leaf, pod int32, domain string) bool {
	if pl.isStopped() || pl.timeIsOver() {
		pl.spent = true
		return false
	}
	number := pl.classOf(leaf, pod)
	pl.calls++
	node, ok := pl.world.Place(int(number), domain)
	if !ok {
		pl.blamed = blame{leaf, number, ""}
		return false
	}
	pl.pushPlacement(leaf, pod, domain, node)
	return true
}

// pushPlacement puts a placement on the stack.
func (pl *planner) pushPlacement(leaf, pod int32, domain, node string) {
	number := pl.classOf(leaf, pod)
	c := &pl.kinds[number]
	pl.stack = append(pl.stack, step{leaf, pod, number, node})
	pl.version++
	g := &pl.groups[leaf]
	pl.taken[g.start+pod] = true
	g.taken++
	pl.addPods(leaf, 1)
	if c.kind == SeeksDomain || c.placed == 0 && c.kind == SharesDomain {
		c.domain = domain
		pl.chosen = append(pl.chosen, domain)
	}
	c.placed++
}

// undoAbove removes all placements above the given height of the stack, and drops the refusals that depended on them.
func (pl *planner) undoAbove(height int) {
	if len(pl.stack) == height {
		return
	}
	if !pl.counting {
		pl.world.Undo(len(pl.stack) - height)
	}
	for i := len(pl.stack) - 1; i >= height; i-- {
		s := &pl.stack[i]
		g := &pl.groups[s.leaf]
		pl.taken[g.start+s.pod] = false
		g.taken--
		pl.addPods(s.leaf, -1)
		c := &pl.kinds[s.class]
		c.placed--
		if c.kind == SeeksDomain || c.placed == 0 && c.kind == SharesDomain {
			pl.chosen = pl.chosen[:len(pl.chosen)-1]
		}
	}
	pl.stack = pl.stack[:height]
	pl.version++
	for n := len(pl.refused) - 1; n >= 0 && pl.kinds[pl.refused[n]].refusedAt > height; n-- {
		pl.kinds[pl.refused[n]].refusedAt = -1
		pl.refused = pl.refused[:n]
	}
	for n := len(pl.cramped) - 1; n >= 0; n-- {
		c := &pl.kinds[pl.cramped[n]]
		if c.roomAt >= 0 && c.roomAt <= height {
			break
		}
		c.roomAt = -1
		pl.cramped = pl.cramped[:n]
	}
}

// recordRoom records that from the given height of the stack on at most room pods of an Independent class fit.
func (pl *planner) recordRoom(number int32, height, room int) {
	c := &pl.kinds[number]
	if c.roomAt >= 0 && c.room <= room {
		return
	}
	c.roomAt, c.room = height, room
	pl.cramped = append(pl.cramped, number)
}

// placements returns the stack as a plan, or nil if it is empty.
func (pl *planner) placements() []Placement {
	if len(pl.stack) == 0 {
		return nil
	}
	plan := make([]Placement, len(pl.stack))
	for i, s := range pl.stack {
		g := &pl.groups[s.leaf]
		plan[i] = Placement{Pod: g.pods[s.pod], Leaf: g.of.Name(), Node: s.node}
	}
	return plan
}

// placedByClass returns how many pods of each class are on the stack.
func (pl *planner) placedByClass() []int {
	placed := make([]int, len(pl.kinds))
	for c := range pl.kinds {
		placed[c] = pl.kinds[c].placed
	}
	return placed
}

// setNeed sets the number of pods, by class, that the current choice places in all.
func (pl *planner) setNeed(need []int) {
	if pl.need != nil && slices.Equal(pl.need, need) {
		return
	}
	pl.need = need
	pl.needVersion++
}

// domainsOf returns the domains to try for a class that has them, best first.
func (pl *planner) domainsOf(number int32) []string {
	c := &pl.kinds[number]
	if c.domainsVersion != pl.needVersion {
		c.domains, c.domainsVersion = pl.world.Domains(int(number), pl.need), pl.needVersion
	}
	return c.domains
}

// alternatives returns the domains to try now for pods of a class that has domains. If the class shares a domain and
// pods of it are on the stack, this is only their domain. Otherwise the domain that was chosen last comes first,
// because it is most often the domain of the siblings that the class must follow.
func (pl *planner) alternatives(number int32) []string {
	c := &pl.kinds[number]
	if c.kind == SharesDomain && c.placed > 0 {
		return []string{c.domain}
	}
	all := pl.domainsOf(number)
	last := ""
	if n := len(pl.chosen); n > 0 {
		last = pl.chosen[n-1]
	}
	open := make([]string, 0, len(all))
	for _, domain := range all {
		switch {
		case !pl.world.Open(int(number), domain):
		case domain == last && domain != "":
			open = slices.Insert(open, 0, domain)
		default:
			open = append(open, domain)
		}
	}
	return open
}

// domainFor returns the domain for a pod of the class if the pods placed together with it go to the given domain.
// This is the same domain if the class allows it, or "" if any domain will do.
func (pl *planner) domainFor(number int32, domain string) string {
	c := &pl.kinds[number]
	switch {
	case !c.kind.hasDomains():
		return ""
	case c.kind == SharesDomain && c.placed > 0:
		return c.domain
	case domain != "" && slices.Contains(pl.domainsOf(number), domain):
		return domain
	}
	return ""
}

// hardness compares two classes: the one with fewer feasible nodes comes first, then the heavier one.
func (pl *planner) hardness(a, b int32) int {
	if d := pl.kinds[a].capacity.Nodes - pl.kinds[b].capacity.Nodes; d != 0 {
		return d
	}
	return cmp.Compare(pl.weightOf(b), pl.weightOf(a))
}

func (pl *planner) weightOf(number int32) int64 {
	c := &pl.kinds[number]
	if !c.weighed {
		c.weight, c.weighed = pl.world.Weight(int(number)), true
	}
	return c.weight
}
