// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// maxExplained is how many refusals of one Shortfall the World is asked to explain. Users rarely read more than a
// few.
const maxExplained = 8

// blame is a refusal: no node of the domain took a pod of the class. leaf is -1 if there was no refusal.
type blame struct {
	leaf, class int32
	domain      string
}

// explanation collects the groups and leaves that a walk could not satisfy.
type explanation struct {
	*planner
	can    []int           // by group: number of satisfied children if there are too few; else -1
	leaves []LeafShortfall // by group; Need is 0 if the leaf lacks nothing
	levels map[int32]LevelShortfall
	asked  []answered
}

type answered struct {
	blame
	refusal *Refusal
}

func (pl *planner) newExplanation() *explanation {
	with := &explanation{planner: pl, can: make([]int, len(pl.groups)), leaves: make([]LeafShortfall, len(pl.groups))}
	for i := range with.can {
		with.can[i] = -1
	}
	return with
}

// recordLeaf records what a leaf lacks. If the leaf has enough pods, it also records why nodes refuse them.
func (e *explanation) recordLeaf(leaf int32, lacking LeafShortfall, refused blame) {
	if lacking.Available >= lacking.Need {
		lacking.Refusal = &Refusal{}
		if refused.leaf >= 0 {
			lacking.Class, lacking.Refusal = e.baseOf(refused.class), e.askRefusal(refused)
		}
	}
	e.leaves[leaf] = lacking
}

// maxDomains is how many domains a LevelShortfall lists.
const maxDomains = 3

// recordLevel records the room in the domains of the level that a group requires.
func (e *explanation) recordLevel(g int32) {
	at := &e.groups[g]
	short := LevelShortfall{Group: at.of.Name(), Level: at.required, Torn: at.torn && !at.gone, Gone: at.gone}
	switch {
	case at.torn:
	case !e.possible[g]:
		return // too few pods
	default:
		r := e.requirementOf(g)
		short.Pods, short.Class, short.Need, short.Runs = r.pods, int(r.needs[0].class), r.needs[0].pods, !at.open
		if short.Runs {
			short.Confined = int(e.deriveClass(r.needs[0].class, at.area))
		}
		within := e.areaAbove(g)
		areas := e.world.Areas(at.required, within)
		for i, room := range e.roomsLeft(r.needs[0].class, at.required, within) {
			if at.open || areas[i] == at.area {
				short.Domains = append(short.Domains, DomainRoom{areas[i], room})
			}
		}
		slices.SortStableFunc(short.Domains, func(a, b DomainRoom) int { return cmp.Compare(b.Pods, a.Pods) })
		short.Others = max(0, len(short.Domains)-maxDomains)
		short.Domains = short.Domains[:len(short.Domains)-short.Others]
	}
	if e.levels == nil {
		e.levels = map[int32]LevelShortfall{}
	}
	e.levels[g] = short
}

// recordUntried records the leaves below a group for whose pods there is no domain to try.
func (e *explanation) recordUntried(g int32) {
	for k := range e.groups {
		if !e.isBelow(int32(k), g) {
			continue
		}
		at := &e.groups[k]
		if at.satisfied() {
			continue
		}
		if !at.isLeaf() {
			e.can[k] = int(at.count)
			continue
		}
		if lacking := at.missing(); lacking > 0 {
			e.leaves[k] = LeafShortfall{Leaf: at.of.Name(), Need: lacking, Available: at.waiting()}
			if at.waiting() >= lacking {
				e.leaves[k].Class, e.leaves[k].Refusal = at.pods[0].Class, &Refusal{}
			}
		}
	}
}

// isBelow reports whether a group is another one, or below it.
func (pl *planner) isBelow(g, other int32) bool {
	for ; g >= 0; g = pl.groups[g].parent {
		if g == other {
			return true
		}
	}
	return false
}

// askRefusal asks the World for an explanation, once per class and domain.
func (e *explanation) askRefusal(b blame) *Refusal {
	for _, a := range e.asked {
		if a.class == b.class && a.domain == b.domain {
			return a.refusal
		}
	}
	if !e.explains || len(e.asked) == maxExplained || e.late && len(e.asked) > 0 {
		return &Refusal{}
	}
	e.asked = append(e.asked, answered{b, e.world.Explain(int(b.class), b.domain)})
	return e.asked[len(e.asked)-1].refusal
}

// explainByWalk walks the tree once more in order of preference, without stopping early, and returns what was lacking.
// If the time is over, the facts known about the best attempt are used instead. The World is left unchanged. It returns
// nil if the walk satisfied the root; the stack is then the plan.
func (pl *planner) explainByWalk() *Shortfall {
	pl.searched = true
	if pl.timeIsOver() {
		return pl.explainBest()
	}
	with := pl.newExplanation()
	pl.limit = -1
	for _, c := range pl.cramped {
		pl.kinds[c].roomAt = -1 // the walk places the same pods again, so that the refusal accounts for them
	}
	pl.cramped = pl.cramped[:0]
	if pl.fillGroup(root, with) {
		return nil
	}
	pl.undoAbove(0)
	if pl.late {
		return pl.explainBest()
	}
	return with.shortfall()
}

// explainByNumbers does the same without placing pods, for the case that the numbers alone show what is lacking.
func (pl *planner) explainByNumbers() *Shortfall {
	with := pl.newExplanation()
	pl.counting = true
	pl.fillGroup(root, with)
	pl.undoAbove(0)
	pl.counting = false
	return with.shortfall()
}

// shortfall returns the collected facts, except those of groups below a group that other children have satisfied.
func (e *explanation) shortfall() *Shortfall {
	short := &Shortfall{Attempts: e.attempts, Tried: e.tried, Exhausted: e.exhausted && !e.cut, Cut: e.cut}
	for _, g := range e.inSpecOrder() {
		if !e.isBlamed(e.groups[g].parent) {
			continue // a group above was satisfied by other children
		}
		of := e.groups[g].of
		if e.can[g] >= 0 {
			short.Groups = append(short.Groups, GroupShortfall{Group: of.Name(), Need: of.Min(), Can: e.can[g]})
		}
		if e.leaves[g].Need > 0 {
			short.Leaves = append(short.Leaves, e.leaves[g])
		}
		if level, ok := e.levels[g]; ok {
			short.Levels = append(short.Levels, level)
		}
	}
	return short
}

// isBlamed reports whether neither the group nor any group above it was satisfied. -1 is above the root.
func (e *explanation) isBlamed(g int32) bool {
	for ; g >= 0; g = e.groups[g].parent {
		if e.can[g] < 0 {
			return false
		}
	}
	return true
}

// try is the attempt that placed the most pods. It is reported by a Shortfall when the time is over.
type try struct {
	height  int
	counts  []int32 // by group, as group.count; nil: no attempt was made
	blamed  blame
	refusal *Refusal // of the class that was refused last before the time was over
}

// rememberBestAttempt records the current attempt if it placed more pods than all earlier ones.
func (pl *planner) rememberBestAttempt() {
	if pl.explains && pl.expired != nil && (pl.best.counts == nil || len(pl.stack) > pl.best.height) {
		pl.best.height, pl.best.blamed = len(pl.stack), pl.blamed
		pl.best.counts = pl.best.counts[:0]
		for i := range pl.groups {
			pl.best.counts = append(pl.best.counts, pl.groups[i].count)
		}
	}
}

// recordTimeout records that the time was over before the World was asked.
func (pl *planner) recordTimeout(b blame) {
	if !pl.explains || pl.best.refusal != nil {
		return
	}
	if pl.blamed.leaf < 0 {
		pl.blamed = b
	}
	pl.rememberBestAttempt()
	pl.best.blamed = pl.blamed
	pl.best.refusal = pl.world.Explain(int(pl.blamed.class), pl.blamed.domain)
}

// explainBest returns what the best attempt lacked. It does not call World.Place.
func (pl *planner) explainBest() *Shortfall {
	if b := pl.best.blamed; pl.best.counts != nil && b.leaf >= 0 && pl.best.refusal == nil {
		pl.best.refusal = pl.world.Explain(int(b.class), b.domain)
	}
	with := pl.newExplanation()
	counts := pl.best.counts
	first := int32(-1) // the first leaf that has enough pods but not its minimum
	for i := range pl.groups {
		g := &pl.groups[i]
		count := g.count
		if counts != nil {
			count = counts[i]
		}
		if count >= g.min {
			continue
		}
		if !g.isLeaf() {
			with.can[i] = int(count)
			continue
		}
		lacking := LeafShortfall{Leaf: g.of.Name(), Need: g.missing(), Available: len(g.pods)}
		blamed := pl.best.blamed.leaf == int32(i) && pl.best.refusal != nil
		switch placed := int(count - g.count); {
		case lacking.Available < lacking.Need:
		case blamed:
			lacking.Placed, lacking.Class, lacking.Refusal = placed, pl.baseOf(pl.best.blamed.class), pl.best.refusal
		case placed > 0:
			lacking.Placed, lacking.Class, lacking.Refusal = placed, g.pods[0].Class, &Refusal{}
		default: // not tried
			if first < 0 {
				first = int32(i)
			}
			continue
		}
		with.leaves[i] = lacking
	}
	short := with.shortfall()
	if len(short.Leaves) == 0 && first >= 0 { // the time was over before any pod was tried
		g := &pl.groups[first]
		short.Leaves = append(short.Leaves, LeafShortfall{Leaf: g.of.Name(), Need: g.missing(), Available: len(g.pods),
			Class: g.pods[0].Class, Refusal: &Refusal{}})
	}
	return short
}
