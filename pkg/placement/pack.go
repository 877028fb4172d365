package placement

import (
	"cmp"
	"slices"

	"github.com/muster-project/muster/pkg/gang"
)

// maxOrders is how many orders of classes are tried for one choice of leaves.
const maxOrders = 6

// item is the pods of one class that one leaf needs. If they must share a domain, they are placed in one.
type item struct {
	leaf  *gang.Group
	class int
	pods  []slot
}

// packing is one choice of leaves under way: all of their missing pods are to be placed, hardest first.
type packing struct {
	*planner
	items  []item
	spares map[*gang.Group][]slot // per leaf: waiting pods that can stand in for those chosen
	furthest,
	failed int // items: how many were placed in the best order of domains, and which one failed there
}

// pack places the missing pods of all the leaves, or none. Classes that are hard to place come first; if that fails, the
// class that failed comes first, until an order returns. extra limits the calls of Place that finding domains may cost
// in each order. On failure the leaves that failed are returned.
//
// Why the order matters: of two free nodes, 8 and 1 GPUs, a pod with 1 GPU may take the one that the pod with 8 needs.
func (pl *planner) pack(leaves []*gang.Group, extra int) (ok bool, failed []*gang.Group) {
	k := &packing{planner: pl, spares: map[*gang.Group][]slot{}}
	needed := 0
	for _, leaf := range leaves {
		pods := pl.live(leaf)
		n := pl.missing(leaf)
		if len(pods) < n {
			return false, []*gang.Group{leaf}
		}
		needed += n
		k.spares[leaf] = pods[n:]
		k.items = append(k.items, pl.itemsOf(leaf, pods[:n])...)
	}

	classes := pl.hardestFirst(k.items)
	var tried [][]int
	for range maxOrders {
		tried = append(tried, classes)
		slices.SortStableFunc(k.items, func(a, b item) int {
			return cmp.Compare(slices.Index(classes, a.class), slices.Index(classes, b.class))
		})
		k.furthest, k.failed = -1, 0
		mark, limit := len(pl.stack), pl.limit
		if most := pl.calls + needed + extra; limit < 0 || most < limit {
			pl.limit = most
		}
		ok := k.placeFrom(0)
		pl.limit = limit
		if ok {
			return true, nil
		}
		pl.undo(mark)

		culprit := k.items[k.failed]
		if !slices.Contains(failed, culprit.leaf) {
			failed = append(failed, culprit.leaf)
		}
		classes = promote(classes, culprit.class)
		if slices.ContainsFunc(tried, func(t []int) bool { return slices.Equal(t, classes) }) {
			break
		}
	}
	return false, failed
}

// live returns the waiting pods of a leaf without those that no node could ever take, in order of preference.
func (pl *planner) live(leaf *gang.Group) []slot {
	return slices.DeleteFunc(pl.waiting(leaf), func(s slot) bool {
		c := pl.class(s)
		return pl.independent(c) && pl.feasibleOf(c) == 0
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
	slices.SortStableFunc(classes, func(a, b int) int {
		return cmp.Or(cmp.Compare(pl.feasibleOf(a), pl.feasibleOf(b)), cmp.Compare(pl.weightOf(b), pl.weightOf(a)))
	})
	return classes
}

// promote returns the classes with the given one first.
func promote(classes []int, class int) []int {
	rest := slices.DeleteFunc(slices.Clone(classes), func(c int) bool { return c == class })
	return append([]int{class}, rest...)
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
		if k.placeItem(it, domain) && k.placeFrom(i+1) {
			return true
		}
		k.undo(mark)
	}
	if i > k.furthest {
		k.furthest, k.failed = i, i
	}
	return false
}

// placeItem places the item's pods in a domain; spare pods of the leaf stand in for those that no node takes.
func (k *packing) placeItem(it item, domain string) bool {
	lacking := len(it.pods)
	for _, s := range it.pods {
		if k.place(s, domain) == nil {
			lacking--
		}
	}
	for _, s := range k.spares[it.leaf] {
		if lacking == 0 {
			break
		}
		if !k.taken[s] && k.place(s, k.domainFor(k.class(s), domain)) == nil {
			lacking--
		}
	}
	return lacking == 0
}
