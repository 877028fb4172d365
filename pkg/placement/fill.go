package placement

import "github.com/muster-project/muster/pkg/gang"

// fill satisfies the group in one walk, placing pods as it goes: the children in order of preference, one that cannot be
// satisfied is taken back and the next is tried. On failure some pods may be left on the stack; the caller undoes them.
//
// with is nil, or collects what was lacking; then the walk does not stop early where it cannot succeed any more.
func (pl *planner) fill(g *gang.Group, with *explanation) bool {
	if g.IsLeaf() {
		return pl.fillLeaf(g, with)
	}
	missing := pl.missing(g)
	var children []*gang.Group
	for _, child := range pl.preferred(g) {
		if with != nil || child.Satisfied(pl.possible) {
			children = append(children, child)
		}
	}
	for i, child := range children {
		if missing == 0 || with == nil && missing > len(children)-i {
			break
		}
		mark := len(pl.stack)
		if pl.fill(child, with) {
			missing--
		} else {
			pl.undo(mark)
		}
	}
	if missing > 0 && with != nil {
		with.groups[g] = GroupShortfall{Group: g.Name(), Need: g.Min(), Can: g.Min() - missing}
	}
	return missing == 0
}

// fillLeaf places as many waiting pods as the leaf lacks, in order; a pod that no node takes is passed over. If pods of
// the leaf must share a topology domain, one domain after the other is tried.
func (pl *planner) fillLeaf(leaf *gang.Group, with *explanation) bool {
	lacking := LeafShortfall{Leaf: leaf.Name(), Need: pl.missing(leaf)}
	pods := pl.waiting(leaf)
	lacking.Available = len(pods)
	if lacking.Available >= lacking.Need {
		for _, domain := range pl.leafDomains(pods) {
			mark := len(pl.stack)
			placed, class, refusedIn := pl.fillLeafIn(domain, pods, lacking.Need)
			if placed == lacking.Need {
				return true
			}
			if with != nil && (lacking.Refusal == nil || placed > lacking.Placed) {
				lacking.Placed, lacking.Class, lacking.Refusal = placed, class, pl.world.Explain(class, refusedIn)
			}
			pl.undo(mark)
			if domain == "" && placed == 0 {
				break
			}
		}
	}
	if with != nil {
		with.leaves[leaf] = lacking
	}
	return false
}

// fillLeafIn places up to need of the pods, those that must share a domain in the given one. It returns how many, and
// the class and the domain of the first pod that was refused.
func (pl *planner) fillLeafIn(domain string, pods []slot, need int) (placed, class int, refusedIn string) {
	refused := false
	for _, s := range pods {
		if placed == need {
			break
		}
		c := pl.class(s)
		if d := pl.domainFor(c, domain); pl.place(s, d) {
			placed++
		} else if !refused {
			refused, class, refusedIn = true, c, d
		}
	}
	return placed, class, refusedIn
}

// leafDomains returns the domains to try for the pods: those of the first class that has any.
func (pl *planner) leafDomains(pods []slot) []string {
	for _, s := range pods {
		if c := pl.class(s); !pl.independent(c) {
			return pl.alternatives(c)
		}
	}
	return []string{""}
}

// explanation collects what a walk could not satisfy.
type explanation struct {
	groups map[*gang.Group]GroupShortfall
	leaves map[*gang.Group]LeafShortfall
}

// explain walks once more in order of preference, to its end, and returns what was lacking. The World is as before.
func (pl *planner) explain(root *gang.Group) *Shortfall {
	with := &explanation{groups: map[*gang.Group]GroupShortfall{}, leaves: map[*gang.Group]LeafShortfall{}}
	pl.limit = -1
	pl.fill(root, with)
	pl.undo(0)

	short := &Shortfall{Attempts: pl.attempts, Tried: pl.attempts, Exhausted: pl.exhausted && !pl.cut, Cut: pl.cut}
	for _, g := range append([]*gang.Group{root}, pl.problem.Tree.Groups()...) {
		if !with.blames(g.Parent()) {
			continue // a group above was satisfied by other children
		}
		if s, ok := with.groups[g]; ok {
			short.Groups = append(short.Groups, s)
		}
		if s, ok := with.leaves[g]; ok {
			short.Leaves = append(short.Leaves, s)
		}
	}
	return short
}

// blames reports whether the group and all groups above it were not satisfied. nil is above the root.
func (e *explanation) blames(g *gang.Group) bool {
	for ; g != nil; g = g.Parent() {
		if _, ok := e.groups[g]; !ok {
			return false
		}
	}
	return true
}
