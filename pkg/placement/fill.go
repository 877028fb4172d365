// SPDX-License-Identifier: Apache-2.0

package placement

// fillGroup satisfies the group in one walk, and places pods on the way. It takes the children in order of preference;
// if one cannot be satisfied, its placements are undone and the next child is tried. On failure some pods may remain on
// the stack; the caller undoes them.
//
// If with is not nil, it collects what was lacking. The walk then continues even where it can no longer succeed.
func (pl *planner) fillGroup(g int32, with *explanation) bool {
	at := &pl.groups[g]
	if at.required != "" && !at.satisfied() && !pl.counting {
		return pl.fillDomain(g, with)
	}
	return pl.fillBelow(g, with)
}

// fillBelow is fillGroup for a group whose area is known.
func (pl *planner) fillBelow(g int32, with *explanation) bool {
	at := &pl.groups[g]
	if at.isLeaf() {
		return pl.fillLeaf(g, with)
	}
	missing, left := at.missing(), 0
	for k := at.first; k < at.end; k++ {
		if !pl.satisfied(k) && pl.possible[k] {
			left++
		}
	}
	for _, bound := range []bool{true, false} { // children with bound pods come first
		for k := at.first; k < at.end && missing > 0; k++ {
			if pl.groups[k].bound != bound || pl.satisfied(k) {
				continue
			}
			if !pl.counting && pl.timeIsOver() {
				return false
			}
			if with == nil {
				if missing > left {
					return false
				}
				if !pl.possible[k] {
					continue
				}
				left--
			}
			mark := len(pl.stack)
			if pl.fillGroup(k, with) {
				missing--
			} else {
				pl.undoAbove(mark)
			}
		}
	}
	if missing > 0 && with != nil {
		with.can[g] = int(at.min) - missing
	}
	return missing == 0
}

// fillLeaf places as many waiting pods as the leaf lacks, in order, and skips a pod that no node takes. If pods of
// the leaf must share a topology domain, the domains are tried one after another.
func (pl *planner) fillLeaf(leaf int32, with *explanation) bool {
	g := &pl.groups[leaf]
	lacking := LeafShortfall{Leaf: g.of.Name(), Need: g.missing(), Available: g.waiting()}
	if lacking.Need == 0 {
		return true
	}
	refused := blame{leaf: -1}
	if lacking.Available >= lacking.Need {
		mark := len(pl.stack)
		number, shares := pl.classWithDomains(leaf)
		shares = shares && !pl.counting
		if c := pl.singleClassOf(leaf); c >= 0 && pl.kinds[c].roomAt >= 0 && pl.kinds[c].room < lacking.Need {
			lacking.Placed, refused = pl.kinds[c].room, blame{leaf, c, ""}
			shares = false
		} else if !shares {
			lacking.Placed, refused = pl.fillLeafIn(leaf, "", lacking.Need, with)
		}
		for _, domain := range pl.leafDomains(leaf, number, shares, with) {
			placed, refusedHere := pl.fillLeafIn(leaf, domain, lacking.Need, with)
			if refused.leaf < 0 || placed > lacking.Placed {
				lacking.Placed, refused = placed, refusedHere
			}
			if placed == lacking.Need || pl.isStopped() || with != nil {
				break
			}
			pl.undoAbove(mark)
		}
		if g.satisfied() {
			return true
		}
		if c := pl.singleClassOf(leaf); c >= 0 && !pl.isStopped() {
			pl.recordRoom(c, mark, lacking.Placed)
		}
	}
	if with != nil {
		with.recordLeaf(leaf, lacking, refused)
	}
	return false
}

// singleClassOf returns the class of a leaf's waiting pods if they are all of one Independent class, else -1.
func (pl *planner) singleClassOf(leaf int32) int32 {
	g := &pl.groups[leaf]
	if g.mixed || len(g.pods) == 0 || pl.kinds[g.class].kind != Independent {
		return -1
	}
	return g.class
}

// fillLeafIn places up to need of the leaf's pods. Pods that must share a domain are placed in the given one. It
// returns the number of placed pods and the first refusal.
func (pl *planner) fillLeafIn(leaf int32, domain string, need int, with *explanation) (placed int, refused blame) {
	g := &pl.groups[leaf]
	refused.leaf = -1
	spare := g.waiting() - need
	for i := range int32(len(g.pods)) {
		if placed == need || pl.late {
			break
		}
		if pl.isTaken(leaf, i) {
			continue
		}
		c := pl.classOf(leaf, i)
		if d := pl.domainFor(c, domain); pl.placePod(leaf, i, d) {
			placed++
			continue
		} else if refused.leaf < 0 {
			refused = blame{leaf, c, d}
		}
		if !g.mixed && pl.kinds[c].kind == Independent {
			break // the other pods are refused, too
		}
		spare--
		if spare < 0 && (with == nil || !g.mixed) {
			break
		}
	}
	return placed, refused
}

// classWithDomains returns the class of the first waiting pod of the leaf that has domains.
func (pl *planner) classWithDomains(leaf int32) (number int32, ok bool) {
	g := &pl.groups[leaf]
	for i := range int32(len(g.pods)) {
		if c := pl.classOf(leaf, i); pl.kinds[c].kind.hasDomains() && !pl.isTaken(leaf, i) {
			return c, true
		}
		if !g.mixed {
			break
		}
	}
	return 0, false
}

// leafDomains returns the domains to try for the pods of a leaf, best first. These are the domains that can hold all
// pods of the current choice or, if there are none, those that can hold the pods of this leaf alone. To explain a
// failure one domain is sufficient: the one that can hold the most pods.
func (pl *planner) leafDomains(leaf, number int32, shares bool, with *explanation) []string {
	if !shares {
		return nil
	}
	var domains []string
	if pl.need != nil || pl.kinds[number].placed > 0 {
		domains = pl.alternatives(number)
	}
	if len(domains) == 0 {
		alone := pl.needOf([]int32{leaf})
		domains = pl.world.Domains(int(number), alone)
		if with != nil && len(domains) == 0 {
			domains = pl.roomiestDomain(number, alone)
		}
	}
	if with != nil {
		return domains[:1]
	}
	return domains
}

// roomiestDomain returns the domain that can hold the most pods of the class, for the case that no domain can hold as
// many as needed.
func (pl *planner) roomiestDomain(number int32, need []int) []string {
	found := []string{""}
	low, high := 0, need[number] // some domain can hold low pods, none can hold high
	for high-low > 1 {
		need[number] = (low + high) / 2
		if domains := pl.world.Domains(int(number), need); len(domains) > 0 {
			low, found = need[number], domains
		} else {
			high = need[number]
		}
	}
	return found
}
