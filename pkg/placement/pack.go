package placement

import (
	"cmp"
	"slices"
)

// maxOrders is how many orders are tried from one start.
const maxOrders = 6

// item is the pods of one class that one leaf needs. If they must share a domain, they are placed in one.
type item struct {
	leaf, class int32
	pods        []int32 // places among the leaf's waiting pods
}

// packing is one choice of leaves under way: all of their missing pods are to be placed.
type packing struct {
	*planner
	items    []item
	spares   map[int32][]int32 // per leaf: waiting pods that can stand in for those chosen
	furthest int               // the item that failed after the most others had been placed
}

// ordering is an order of items: by block first if blocks is set, then by class, then as the leaves were chosen.
type ordering struct {
	sharing bool    // before all that, items that share a domain come before the others
	blocks  []int32 // parents of leaves
	classes []int32
}

// sorted returns the items in that order.
func (pl *planner) sorted(o ordering, items []item) []item {
	class := make([]int32, pl.classes)
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
	sharing := func(it item) bool { return pl.kinds[it.class].kind == SharesDomain }
	compare := func(a, b item) int {
		if o.sharing && sharing(a) != sharing(b) {
			if sharing(a) {
				return -1
			}
			return 1
		}
		if block != nil {
			if d := cmp.Compare(block[pl.blockOf(a)], block[pl.blockOf(b)]); d != 0 {
				return d
			}
		}
		return cmp.Compare(class[a.class], class[b.class])
	}
	items = slices.Clone(items)
	if !slices.IsSortedFunc(items, compare) {
		slices.SortStableFunc(items, compare)
	}
	return items
}

// blockOf returns the parent of an item's leaf; the root if that is the leaf.
func (pl *planner) blockOf(it item) int32 { return max(root, pl.groups[it.leaf].parent) }

// moved returns the order with the item's class, and its block, moved to the front or the back.
func (pl *planner) moved(o ordering, it item, to end) ordering {
	o.classes = move(o.classes, it.class, to)
	o.sharing = o.sharing && pl.kinds[it.class].kind == SharesDomain
	if o.blocks != nil {
		o.blocks = move(o.blocks, pl.blockOf(it), to)
	}
	return o
}

func (o ordering) equal(other ordering) bool {
	return o.sharing == other.sharing && slices.Equal(o.blocks, other.blocks) && slices.Equal(o.classes, other.classes)
}

// packAlike places the missing pods of the leaves, which are all of one Independent class.
func (pl *planner) packAlike(leaves []int32) bool {
	for _, leaf := range leaves {
		if pl.fillLeafIn(leaf, "", pl.groups[leaf].missing(), nil); !pl.satisfied(leaf) {
			return false
		}
	}
	return true
}

// packLeaves places the missing pods of all the leaves. A leaf that has more waiting pods than it lacks offers those it
// prefers, and if that fails, those that are easiest to place. On failure some pods may be left on the stack.
//
// extra limits the calls of Place that finding domains may cost on top of one per pod and order.
func (pl *planner) packLeaves(leaves []int32, extra int) bool {
	base := len(pl.stack)
	if pl.packPods(leaves, false, extra) {
		return true
	}
	if pl.stopped() || !slices.ContainsFunc(leaves, pl.offersEasier) {
		return false
	}
	pl.undo(base)
	return pl.packPods(leaves, true, extra)
}

// packPods places as many of each leaf's pods as the leaf lacks: those it prefers, or those that are easiest to place.
//
// Classes that are hard to place come first: of two free nodes, 8 and 1 GPUs, a pod with 1 GPU may take the one that the
// pod with 8 needs. If an order fails, the class that failed comes first, until an order returns. If some pods must share
// domains, it is most often with those of sibling leaves, and a wrong domain shows soonest if these are placed one after
// the other: orders by block come first then.
func (pl *planner) packPods(leaves []int32, easiest bool, extra int) bool {
	k := &packing{planner: pl}
	items, ok := k.itemsOf(leaves, func(leaf int32) []int32 { return pl.offer(leaf, easiest) })
	if !ok {
		return false
	}
	needed := 0
	for _, it := range items {
		needed += len(it.pods)
	}
	byClass := ordering{classes: pl.hardestFirst(items)}
	starts := []ordering{byClass}
	if blocks := pl.blocks(items); blocks != nil {
		starts = []ordering{{sharing: true, blocks: blocks, classes: byClass.classes}, byClass}
	}
	mark := len(pl.stack)
	for _, order := range starts {
		var tried []ordering
		for len(tried) < maxOrders && !slices.ContainsFunc(tried, order.equal) {
			tried = append(tried, order)
			pl.undo(mark)
			k.items = pl.sorted(order, items)
			before := pl.calls
			if k.place(needed + extra) {
				return true
			}
			if pl.stopped() {
				return false
			}
			extra = max(0, min(extra, extra+needed-(pl.calls-before)))
			culprit := k.items[k.furthest]
			order = pl.moved(order, culprit, toFront)
			if slices.ContainsFunc(tried, order.equal) && pl.kinds[culprit.class].kind != Independent {
				order = pl.moved(order, culprit, toBack) // it may need others to be placed before it
			}
		}
	}
	return false
}

// packShuffled places the leaves' pods in an order that the seed makes up: leaf by leaf, or pod by pod.
func (pl *planner) packShuffled(leaves []int32, seed uint64, extra int) bool {
	random := shuffler(seed)
	k := &packing{planner: pl}
	items, ok := k.itemsOf(leaves, func(leaf int32) []int32 {
		pods := pl.offer(leaf, seed%4 == 3)
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

// shuffler makes up numbers: the same for the same seed.
type shuffler uint64

// next returns a number below n, which is far below 2^64. Source: splitmix64.
func (s *shuffler) next(n int) int {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(n))
}

func shuffle[E any](random *shuffler, list []E) {
	for i := len(list) - 1; i > 0; i-- {
		j := random.next(i + 1)
		list[i], list[j] = list[j], list[i]
	}
}

// place places the items in their order, with no more calls of Place than given.
func (k *packing) place(calls int) bool {
	need := make([]int, k.classes)
	for c := range k.kinds {
		need[c] = k.kinds[c].placed
	}
	for _, it := range k.items {
		need[it.class] += len(it.pods)
	}
	k.setNeed(need)
	k.furthest = 0
	limit := k.limit
	if most := k.calls + calls; limit < 0 || most < limit {
		k.limit = most
	}
	ok := k.placeFrom(0)
	k.limit = limit
	return ok
}

// placeFrom places the items from the i-th on. Each domain of an item is a choice: if the items after it cannot be placed,
// the next one is tried. On failure some pods may be left on the stack.
func (k *packing) placeFrom(i int) bool {
	for ; i < len(k.items); i++ {
		it := k.items[i]
		if c := &k.kinds[it.class]; c.kind == SharesDomain && c.placed == 0 {
			return k.placeInSome(i, it)
		}
		if k.placeItem(it, k.domainFor(it.class, "")) < len(it.pods) {
			k.furthest = max(k.furthest, i)
			return false
		}
	}
	return true
}

// placeInSome places the i-th item in one domain after the other, each with all the items after it.
func (k *packing) placeInSome(i int, it item) bool {
	mark := len(k.stack)
	for _, domain := range k.alternatives(it.class) {
		k.undo(mark)
		if k.placeItem(it, domain) == len(it.pods) && k.placeFrom(i+1) {
			return true
		}
		if k.stopped() {
			break
		}
	}
	k.furthest = max(k.furthest, i)
	return false
}

// placeItem places the item's pods in a domain; spare pods of the leaf stand in for those that no node takes. It returns
// how many were placed.
func (k *packing) placeItem(it item, domain string) (placed int) {
	for _, pod := range it.pods {
		if k.planner.place(it.leaf, pod, domain) {
			placed++
		} else if len(k.spares[it.leaf]) == 0 {
			return placed
		}
	}
	for _, pod := range k.spares[it.leaf] {
		if placed == len(it.pods) {
			break
		}
		if !k.isTaken(it.leaf, pod) && k.planner.place(it.leaf, pod, k.domainFor(k.classOf(it.leaf, pod), domain)) {
			placed++
		}
	}
	return placed
}

// itemsOf splits what the leaves lack by leaf and class, the classes as they appear, and keeps the pods on offer beyond
// that as spares. false: a leaf offers too few.
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

// dead reports whether no node could ever take a pod of the class.
func (pl *planner) dead(number int32) bool { return pl.kinds[number].bound == 0 }

// offer returns the waiting pods of a leaf without those that no node could ever take, in order of preference, or those
// that are easiest to place first: with the most feasible nodes, then the lighter, then in order of preference.
func (pl *planner) offer(leaf int32, easiest bool) []int32 {
	g := &pl.groups[leaf]
	pods := make([]int32, 0, g.waiting())
	for i := range int32(len(g.pods)) {
		if !pl.isTaken(leaf, i) && !pl.dead(pl.classOf(leaf, i)) {
			pods = append(pods, i)
		}
	}
	if easiest && g.mixed {
		slices.SortStableFunc(pods, func(a, b int32) int { return pl.hardness(pl.classOf(leaf, b), pl.classOf(leaf, a)) })
	}
	return pods
}

// offersEasier reports whether the leaf could do with pods that are easier to place than those it prefers.
func (pl *planner) offersEasier(leaf int32) bool {
	g := &pl.groups[leaf]
	n := g.missing()
	if !g.mixed || g.waiting() <= n {
		return false
	}
	preferred, easiest := pl.offer(leaf, false), pl.offer(leaf, true)
	if len(preferred) < n {
		return false
	}
	return slices.ContainsFunc(easiest[:n], func(i int32) bool { return !slices.Contains(preferred[:n], i) })
}

// hardestFirst returns the items' classes: those that share a domain first, the one with the most to place at the front, then
// those with the fewest feasible nodes, then the heavier, then as they appear.
func (pl *planner) hardestFirst(items []item) []int32 {
	var classes []int32
	size := make([]int64, pl.classes)
	for _, it := range items {
		if size[it.class] == 0 {
			classes = append(classes, it.class)
		}
		size[it.class] += int64(len(it.pods)) * (1 + pl.weightOf(it.class))
	}
	slices.SortStableFunc(classes, func(a, b int32) int {
		switch sharesA, sharesB := pl.kinds[a].kind == SharesDomain, pl.kinds[b].kind == SharesDomain; {
		case sharesA && sharesB:
			return cmp.Compare(size[b], size[a])
		case sharesA:
			return -1
		case sharesB:
			return 1
		}
		return pl.hardness(a, b)
	})
	return classes
}

// blocks returns the parents of the items' leaves: those whose pods share a domain first, then those with the most to
// place. nil unless some pods depend on others and there is more than one parent.
func (pl *planner) blocks(items []item) []int32 {
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
		shares[block] = shares[block] || pl.kinds[it.class].kind == SharesDomain
		dependent = dependent || pl.kinds[it.class].kind != Independent
	}
	if !dependent || len(blocks) == 1 {
		return nil
	}
	slices.SortStableFunc(blocks, func(a, b int32) int {
		if shares[a] != shares[b] {
			if shares[a] {
				return -1
			}
			return 1
		}
		return cmp.Compare(size[b], size[a])
	})
	return blocks
}

// end is one of the two ends of a list.
type end bool

const (
	toFront end = true
	toBack  end = false
)

// move returns the list with one element moved to an end.
func move[E comparable](list []E, element E, to end) []E {
	rest := slices.DeleteFunc(slices.Clone(list), func(e E) bool { return e == element })
	if to == toFront {
		return append([]E{element}, rest...)
	}
	return append(rest, element)
}
