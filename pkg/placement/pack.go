// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// maxOrders is how many orders are tried from each initial order.
const maxOrders = 6

// item is the pods of one class that one leaf needs. If they must share a domain, they are placed together in one.
type item struct {
	leaf, class int32
	pods        []int32 // indexes into the leaf's waiting pods
}

// packing is the placement of one choice of leaves: all of their missing pods must be placed.
type packing struct {
	*planner
	items    []item
	spares   map[int32][]int32 // per leaf: waiting pods that can replace the chosen ones
	furthest int               // highest index of an item that failed
	culprit  item              // the item that failed there
}

// ordering is an order of items: by block if blocks is set, then by class, then in the order in which the leaves were
// chosen.
type ordering struct {
	sharing bool    // takes precedence: items that have domains come before the others
	blocks  []int32 // parents of leaves
	classes []int32 // nil: the order of the leaves alone
}

// sortItems returns the items in the given order.
func (pl *planner) sortItems(o ordering, items []item) []item {
	class := make([]int32, len(pl.kinds))
	for i, c := range o.classes {
		class[c] = int32(i)
	}
	var block []int32
	if o.blocks != nil {
		block = make([]int32, len(pl.groups))
		for i, b := range o.blocks {
			block[b] = int32(i)
		}
	}
	sharing := func(it item) bool { return pl.kinds[it.class].kind.hasDomains() }
	compare := func(a, b item) int {
		if o.sharing && sharing(a) != sharing(b) {
			return trueFirst(sharing(a), sharing(b))
		}
		if block != nil && pl.blockOf(a) != pl.blockOf(b) {
			return cmp.Compare(block[pl.blockOf(a)], block[pl.blockOf(b)])
		}
		return cmp.Compare(class[a.class], class[b.class])
	}
	items = slices.Clone(items)
	if !slices.IsSortedFunc(items, compare) {
		slices.SortStableFunc(items, compare)
	}
	return items
}

// blockOf returns the parent of an item's leaf, or the root if the leaf is the root.
func (pl *planner) blockOf(it item) int32 { return max(root, pl.groups[it.leaf].parent) }

// moveToFront returns the order with the item's class, and its block, moved to the front.
func (pl *planner) moveToFront(o ordering, it item) ordering {
	o.classes = withFirst(o.classes, it.class)
	o.sharing = o.sharing && pl.kinds[it.class].kind.hasDomains()
	if o.blocks != nil {
		o.blocks = withFirst(o.blocks, pl.blockOf(it))
	}
	return o
}

func (o ordering) equal(other ordering) bool {
	return o.sharing == other.sharing && slices.Equal(o.blocks, other.blocks) && slices.Equal(o.classes, other.classes)
}

// packAlike places the missing pods of the leaves. All of them are of one Independent class.
func (pl *planner) packAlike(leaves []int32) bool {
	for _, leaf := range leaves {
		if pl.fillLeafIn(leaf, "", pl.groups[leaf].missing(), nil); !pl.satisfied(leaf) {
			return false
		}
	}
	return true
}

// packLeaves places the missing pods of all the leaves: as many of each leaf's pods as it lacks, the preferred ones or,
// if the planner is thrifty, those that are easiest to place. On failure some pods may remain on the stack.
//
// extra bounds the calls of Place that finding domains may cost, in addition to one per pod and order.
//
// Classes that are hard to place come first: with two free nodes of 8 GPUs and 1 GPU, a pod with 1 GPU may occupy the
// node that the pod with 8 GPUs needs. If an order fails, the class that failed is moved to the front, until an order
// repeats. Pods that must share domains mostly share them with pods of sibling leaves, and a wrong domain is detected
// earliest if the pods of these leaves are placed one after another. If there are such pods, orders by block are
// therefore tried first.
func (pl *planner) packLeaves(leaves []int32, extra int) bool {
	k := &packing{planner: pl}
	items, ok := k.itemsOf(leaves, func(leaf int32) []int32 { return pl.offeredPods(leaf, pl.thrifty) })
	if !ok {
		return false
	}
	needed := 0
	for _, it := range items {
		needed += len(it.pods)
	}
	byClass := ordering{classes: pl.hardestFirst(items)}
	starts := []ordering{byClass}
	if blocks := pl.blocksOf(items); blocks != nil {
		starts = []ordering{{sharing: true, blocks: blocks, classes: byClass.classes}, byClass}
	} else if slices.ContainsFunc(items, func(it item) bool { return pl.kinds[it.class].kind == SeeksDomain }) {
		starts = []ordering{{sharing: true}, byClass}
	}
	mark := len(pl.stack)
	for _, order := range starts {
		var tried []ordering
		for len(tried) < maxOrders && !slices.ContainsFunc(tried, order.equal) {
			tried = append(tried, order)
			pl.undoAbove(mark)
			k.items = pl.sortItems(order, items)
			before := pl.calls
			if k.place(needed + extra) {
				return true
			}
			if pl.isStopped() {
				return false
			}
			extra = max(0, min(extra, extra+needed-(pl.calls-before)))
			if order.classes == nil {
				break
			}
			order = pl.moveToFront(order, k.culprit)
		}
	}
	return false
}

// packShuffled places the leaves' pods in a pseudo-random order derived from the seed: leaf by leaf, or pod by pod.
func (pl *planner) packShuffled(leaves []int32, seed uint64, extra int) bool {
	random := shuffler(seed)
	k := &packing{planner: pl}
	items, ok := k.itemsOf(leaves, func(leaf int32) []int32 {
		pods := pl.offeredPods(leaf, seed%4 == 3)
		if pl.groups[leaf].mixed && seed%4 != 3 {
			shuffle(&random, pods)
		}
		return pods
	})
	if !ok {
		return false
	}
	needed := 0
	for _, it := range items {
		needed += len(it.pods)
		if seed%2 == 0 {
			for i := range it.pods {
				k.items = append(k.items, item{it.leaf, it.class, it.pods[i : i+1]})
			}
		} else {
			k.items = append(k.items, it)
		}
	}
	shuffle(&random, k.items)
	return k.place(needed + extra)
}

// shuffler generates pseudo-random numbers, the same sequence for the same seed.
type shuffler uint64

// number returns the next number.
func (s *shuffler) number() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// next returns a number below n. n must be far below 2^64. Source: splitmix64.
func (s *shuffler) next(n int) int { return int(s.number() % uint64(n)) }

func shuffle[E any](random *shuffler, list []E) {
	for i := len(list) - 1; i > 0; i-- {
		j := random.next(i + 1)
		list[i], list[j] = list[j], list[i]
	}
}

// place places the items in order, with at most the given number of calls of Place.
func (k *packing) place(calls int) bool {
	need := k.placedByClass()
	for _, it := range k.items {
		need[it.class] += len(it.pods)
	}
	k.setNeed(need)
	k.furthest, k.culprit = 0, k.items[0]
	limit := k.limit
	if most := k.calls + calls; limit < 0 || most < limit {
		k.limit = most
	}
	ok := k.placeFrom(0)
	k.limit = limit
	return ok
}

// placeFrom places the items from index i on. Each domain of an item is a choice: if the items after it cannot be
// placed, the next domain is tried. On failure some pods may remain on the stack.
func (k *packing) placeFrom(i int) bool {
	for ; i < len(k.items); i++ {
		k.bringForward(i)
		it := k.items[i]
		switch c := &k.kinds[it.class]; {
		case c.kind == SharesDomain && c.placed == 0:
			return k.placeInSome(i, it)
		case c.kind == SeeksDomain:
			return k.placeApart(i, it, nil)
		}
		if k.placeItem(it, k.domainFor(it.class, "")) < len(it.pods) {
			k.recordFailed(i)
			return false
		}
	}
	return true
}

// bringForward moves an item to index i if the one there has to wait for pods that it must follow: the first item that
// need not wait. Of replicas whose workers each follow their own leader no order by class has every leader first, and a
// random one hardly ever.
func (k *packing) bringForward(i int) {
	for j := i; j < len(k.items); j++ {
		it := k.items[j]
		if c := &k.kinds[it.class]; !c.kind.hasDomains() || k.world.Open(int(it.class), "") {
			copy(k.items[i+1:j+1], k.items[i:j])
			k.items[i] = it
			return
		}
	}
}

// recordFailed records that item i could not be placed.
func (k *packing) recordFailed(i int) {
	if i >= k.furthest {
		k.furthest, k.culprit = i, k.items[i]
	}
}

// placeInSome tries the domains of item i one after another, each together with all the items after it.
func (k *packing) placeInSome(i int, it item) bool {
	mark := len(k.stack)
	for _, domain := range k.alternatives(it.class) {
		k.undoAbove(mark)
		if k.placeItem(it, domain) == len(it.pods) && k.placeFrom(i+1) {
			return true
		}
		if k.isStopped() {
			break
		}
	}
	k.recordFailed(i)
	return false
}

// placeApart places pods of item i that need not share a domain: as many as fit in one domain, the others in domains
// that come after it. done contains the domains not to be tried again.
func (k *packing) placeApart(i int, it item, done []string) bool {
	mark := len(k.stack)
	for _, domain := range k.alternatives(it.class) {
		if slices.Contains(done, domain) {
			continue
		}
		done = append(done, domain)
		n := 0
		for n < len(it.pods) && k.planner.placePod(it.leaf, it.pods[n], domain) {
			n++
		}
		switch {
		case n == len(it.pods) && k.placeFrom(i+1):
			return true
		case 0 < n && n < len(it.pods) && k.placeApart(i, item{it.leaf, it.class, it.pods[n:]}, done):
			return true
		}
		if k.isStopped() {
			break
		}
		k.undoAbove(mark)
	}
	if len(k.spares[it.leaf]) > 0 && !k.isStopped() && k.placeItem(it, "") == len(it.pods) && k.placeFrom(i+1) {
		return true
	}
	k.recordFailed(i)
	return false
}

// placeItem places the item's pods in a domain. Spare pods of the leaf replace those that no node takes. It returns
// how many pods were placed.
func (k *packing) placeItem(it item, domain string) (placed int) {
	for _, pod := range it.pods {
		if k.planner.placePod(it.leaf, pod, domain) {
			placed++
		} else if len(k.spares[it.leaf]) == 0 {
			return placed
		}
	}
	for _, pod := range k.spares[it.leaf] {
		if placed == len(it.pods) {
			break
		}
		if !k.isTaken(it.leaf, pod) && k.planner.placePod(it.leaf, pod, k.domainFor(k.classOf(it.leaf, pod), domain)) {
			placed++
		}
	}
	return placed
}

// itemsOf groups the pods that the leaves lack by leaf and class, classes in order of first appearance, and stores
// the remaining offered pods as spares. It returns false if a leaf offers too few pods.
func (k *packing) itemsOf(leaves []int32, offer func(leaf int32) []int32) ([]item, bool) {
	items := make([]item, 0, len(leaves))
	for _, leaf := range leaves {
		pods := offer(leaf)
		n := k.groups[leaf].missing()
		if len(pods) < n {
			return nil, false
		}
		if n < len(pods) {
			if k.spares == nil {
				k.spares = map[int32][]int32{}
			}
			k.spares[leaf] = pods[n:]
		}
		if !k.groups[leaf].mixed {
			items = append(items, item{leaf, k.classOf(leaf, pods[0]), pods[:n:n]})
			continue
		}
		first := len(items)
		for _, pod := range pods[:n] {
			c := k.classOf(leaf, pod)
			i := slices.IndexFunc(items[first:], func(it item) bool { return it.class == c })
			if i < 0 {
				i = len(items) - first
				items = append(items, item{leaf: leaf, class: c})
			}
			items[first+i].pods = append(items[first+i].pods, pod)
		}
	}
	return items, true
}

// fitsNowhere reports whether no node could take a pod of the class, even with nothing placed.
func (pl *planner) fitsNowhere(number int32) bool { return pl.kinds[number].bound == 0 }

// offeredPods returns the waiting pods of a leaf, without those that no node could ever take. They are sorted by
// preference or, if easiest is set, by ease of placement: the most feasible nodes first, then the lighter pod, then by
// preference.
func (pl *planner) offeredPods(leaf int32, easiest bool) []int32 {
	g := &pl.groups[leaf]
	pods := make([]int32, 0, g.waiting())
	for i := range int32(len(g.pods)) {
		if !pl.isTaken(leaf, i) && !pl.fitsNowhere(pl.classOf(leaf, i)) {
			pods = append(pods, i)
		}
	}
	if easiest && g.mixed {
		slices.SortStableFunc(pods, func(a, b int32) int { return pl.hardness(pl.classOf(leaf, b), pl.classOf(leaf, a)) })
	}
	return pods
}

// hardestFirst returns the items' classes. Classes that have domains come first, the one with the most to place at
// the front. The others follow: those with the fewest feasible nodes first, then the heavier, then in order of first
// appearance.
func (pl *planner) hardestFirst(items []item) []int32 {
	var classes []int32
	size := make([]int64, len(pl.kinds))
	for _, it := range items {
		if size[it.class] == 0 {
			classes = append(classes, it.class)
		}
		size[it.class] += int64(len(it.pods)) * (1 + pl.weightOf(it.class))
	}
	slices.SortStableFunc(classes, func(a, b int32) int {
		switch sharesA, sharesB := pl.kinds[a].kind.hasDomains(), pl.kinds[b].kind.hasDomains(); {
		case sharesA != sharesB:
			return trueFirst(sharesA, sharesB)
		case sharesA:
			return cmp.Compare(size[b], size[a])
		}
		return pl.hardness(a, b)
	})
	return classes
}

// blocksOf returns the parents of the items' leaves: first those whose pods share a domain, then those with the most to
// place. It returns nil if no pod depends on others or there is only one parent.
func (pl *planner) blocksOf(items []item) []int32 {
	var blocks []int32
	size := make([]int64, len(pl.groups))
	shares := make([]bool, len(pl.groups))
	dependent := false
	for _, it := range items {
		block := pl.blockOf(it)
		if size[block] == 0 {
			blocks = append(blocks, block)
		}
		size[block] += int64(len(it.pods)) * (1 + pl.weightOf(it.class))
		shares[block] = shares[block] || pl.kinds[it.class].kind.hasDomains()
		dependent = dependent || pl.kinds[it.class].kind != Independent
	}
	if !dependent || len(blocks) == 1 {
		return nil
	}
	slices.SortStableFunc(blocks, func(a, b int32) int {
		return cmp.Or(trueFirst(shares[a], shares[b]), cmp.Compare(size[b], size[a]))
	})
	return blocks
}

// trueFirst compares two values so that true comes before false.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// withFirst returns the list with one of its elements moved to the front.
func withFirst[E comparable](list []E, element E) []E {
	return append([]E{element}, slices.DeleteFunc(slices.Clone(list), func(e E) bool { return e == element })...)
}
