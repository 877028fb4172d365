package placement

import (
	"cmp"
	"slices"

	"github.com/muster-project/muster/pkg/gang"
)

// maxOrders is how many orders are tried from one start.
const maxOrders = 6

// item is the pods of one class that one leaf needs. If they must share a domain, they are placed in one.
type item struct {
	leaf  *gang.Group
	class int
	pods  []slot
}

// packing is one choice of leaves under way: all of their missing pods are to be placed.
type packing struct {
	*planner
	items    []item
	spares   map[*gang.Group][]slot // per leaf: waiting pods that can stand in for those chosen
	furthest int                    // the item that failed after the most others had been placed
}

// ordering is an order of items: by block first if blocks is set, then by class, then as the leaves were chosen.
type ordering struct {
	blocks  []*gang.Group // parents of leaves
	classes []int
}

func (o ordering) sorted(items []item) []item {
	block, class := ranks(o.blocks), ranks(o.classes)
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(block[a.leaf.Parent()], block[b.leaf.Parent()]), cmp.Compare(class[a.class], class[b.class]))
	})
	return items
}

// ranks returns the place of each element in the list.
func ranks[E comparable](list []E) map[E]int {
	places := make(map[E]int, len(list))
	for i, e := range list {
		places[e] = i
	}
	return places
}

// moved returns the order with the item's class, and its block, moved to the front or the back.
func (o ordering) moved(it item, to end) ordering {
	o.classes = move(o.classes, it.class, to)
	if o.blocks != nil {
		o.blocks = move(o.blocks, it.leaf.Parent(), to)
	}
	return o
}

func (o ordering) equal(other ordering) bool {
	return slices.Equal(o.blocks, other.blocks) && slices.Equal(o.classes, other.classes)
}

// pack places the missing pods of all the leaves, or none. A leaf that has more waiting pods than it lacks offers those it
// prefers, and if that fails, those that are easiest to place. On failure the leaves that failed are returned.
//
// extra limits the calls of Place that finding domains may cost on top of one per pod and order.
func (pl *planner) pack(leaves []*gang.Group, extra int) (ok bool, failed []*gang.Group) {
	if ok, failed = pl.packPods(leaves, pl.live, extra); ok || !slices.ContainsFunc(leaves, pl.offersEasier) {
		return ok, failed
	}
	ok, again := pl.packPods(leaves, pl.easiestFirst, extra)
	for _, leaf := range again {
		if !slices.Contains(failed, leaf) {
			failed = append(failed, leaf)
		}
	}
	return ok, failed
}

// packPods places as many of each leaf's pods, as listed by the function, as the leaf lacks.
//
// Classes that are hard to place come first: of two free nodes, 8 and 1 GPUs, a pod with 1 GPU may take the one that the
// pod with 8 needs. If an order fails, the class that failed comes first, until an order returns. If some pods must share
// domains, it is most often with those of sibling leaves, and a wrong domain shows soonest if these are placed one after
// the other: orders by block come first then.
func (pl *planner) packPods(leaves []*gang.Group, podsOf func(*gang.Group) []slot, extra int) (ok bool, failed []*gang.Group) {
	k := &packing{planner: pl, spares: map[*gang.Group][]slot{}}
	needed := 0
	var items []item
	for _, leaf := range leaves {
		pods := podsOf(leaf)
		n := pl.missing(leaf)
		if len(pods) < n {
			return false, []*gang.Group{leaf}
		}
		needed += n
		k.spares[leaf] = pods[n:]
		items = append(items, pl.itemsOf(leaf, pods[:n])...)
	}

	byClass := ordering{classes: pl.hardestFirst(items)}
	starts := []ordering{byClass}
	if blocks := pl.blocks(items); blocks != nil {
		starts = []ordering{{blocks: blocks, classes: byClass.classes}, byClass}
	}
	for _, order := range starts {
		var tried []ordering
		for len(tried) < maxOrders && !slices.ContainsFunc(tried, order.equal) {
			tried = append(tried, order)
			k.items = order.sorted(items)
			k.furthest = 0
			mark, limit, most := len(pl.stack), pl.limit, pl.calls+needed+extra
			if limit < 0 || most < limit {
				pl.limit = most
			}
			ok := k.placeFrom(0)
			pl.limit = limit
			if ok {
				return true, nil
			}
			pl.undo(mark)
			extra = min(extra, most-pl.calls)

			culprit := k.items[k.furthest]
			if !slices.Contains(failed, culprit.leaf) {
				failed = append(failed, culprit.leaf)
			}
			order = order.moved(culprit, toFront)
			if slices.ContainsFunc(tried, order.equal) && !pl.independent(culprit.class) {
				order = order.moved(culprit, toBack) // it may need others to be placed before it
			}
		}
	}
	return false, failed
}

// offersEasier reports whether the leaf could do with pods that are easier to place than those it prefers.
func (pl *planner) offersEasier(leaf *gang.Group) bool {
	n := pl.missing(leaf)
	preferred, easiest := pl.live(leaf), pl.easiestFirst(leaf)
	if len(preferred) < n {
		return false
	}
	inPreferred := map[slot]bool{}
	for _, s := range preferred[:n] {
		inPreferred[s] = true
	}
	return slices.ContainsFunc(easiest[:n], func(s slot) bool { return !inPreferred[s] })
}

// easiestFirst returns the waiting pods that some node could take: those with the most feasible nodes first, then the
// lighter, then in order of preference.
func (pl *planner) easiestFirst(leaf *gang.Group) []slot {
	pods := pl.live(leaf)
	slices.SortStableFunc(pods, func(a, b slot) int { return pl.hardness(pl.class(b), pl.class(a)) })
	return pods
}

// hardness compares two classes: the one with fewer feasible nodes comes first, then the heavier.
func (pl *planner) hardness(a, b int) int {
	return cmp.Or(cmp.Compare(pl.capacityOf(a).Nodes, pl.capacityOf(b).Nodes), cmp.Compare(pl.weightOf(b), pl.weightOf(a)))
}

// live returns the waiting pods of a leaf without those that no node could ever take, in order of preference.
func (pl *planner) live(leaf *gang.Group) []slot {
	return slices.DeleteFunc(pl.waiting(leaf), func(s slot) bool {
		c := pl.class(s)
		return pl.independent(c) && pl.capacityOf(c).Nodes == 0
	})
}

// itemsOf splits a leaf's pods by class, in the order in which the classes appear.
func (pl *planner) itemsOf(leaf *gang.Group, pods []slot) []item {
	var items []item
	for _, s := range pods {
		c := pl.class(s)
		i := slices.IndexFunc(items, func(it item) bool { return it.class == c })
		if i < 0 {
			i = len(items)
			items = append(items, item{leaf: leaf, class: c})
		}
		items[i].pods = append(items[i].pods, s)
	}
	return items
}

// hardestFirst returns the items' classes: those with the fewest feasible nodes first, then the heavier, then as they
// appear.
func (pl *planner) hardestFirst(items []item) []int {
	var classes []int
	for _, it := range items {
		if !slices.Contains(classes, it.class) {
			classes = append(classes, it.class)
		}
	}
	slices.SortStableFunc(classes, pl.hardness)
	return classes
}

// blocks returns the parents of the items' leaves, those with the most pods first; nil unless some pods have domains and
// there is more than one parent.
func (pl *planner) blocks(items []item) []*gang.Group {
	var blocks []*gang.Group
	pods := map[*gang.Group]int{}
	dependent := false
	for _, it := range items {
		block := it.leaf.Parent()
		if pods[block] == 0 {
			blocks = append(blocks, block)
		}
		pods[block] += len(it.pods)
		dependent = dependent || !pl.independent(it.class)
	}
	if !dependent || len(blocks) == 1 {
		return nil
	}
	slices.SortStableFunc(blocks, func(a, b *gang.Group) int { return cmp.Compare(pods[b], pods[a]) })
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

// placeFrom places the items from the i-th on. Each domain of an item is a choice: if the items after it cannot be placed,
// the next one is tried.
func (k *packing) placeFrom(i int) bool {
	if i == len(k.items) {
		return true
	}
	it := k.items[i]
	for _, domain := range k.alternatives(it.class) {
		mark := len(k.stack)
		placed := k.placeItem(it, domain)
		if placed == len(it.pods) && k.placeFrom(i+1) {
			return true
		}
		k.undo(mark)
		if domain == "" && placed == 0 {
			break
		}
	}
	k.furthest = max(k.furthest, i)
	return false
}

// placeItem places the item's pods in a domain; spare pods of the leaf stand in for those that no node takes. It returns
// how many were placed.
func (k *packing) placeItem(it item, domain string) (placed int) {
	for _, s := range it.pods {
		if k.place(s, domain) {
			placed++
		}
	}
	for _, s := range k.spares[it.leaf] {
		if placed == len(it.pods) {
			break
		}
		if !k.taken[s] && k.place(s, k.domainFor(k.class(s), domain)) {
			placed++
		}
	}
	return placed
}
