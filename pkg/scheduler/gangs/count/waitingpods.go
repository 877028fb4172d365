// SPDX-License-Identifier: Apache-2.0

package count

import (
	"cmp"

	"github.com/muster-project/muster/pkg/gang"
)

// pool contains the pods of a gang that wait with one schedulerName. The pool of one of our profiles is kept when its
// last pod leaves: creating a new one for each replaced pod would cost time proportional to the tree. A gang therefore
// has at most one such pool per profile.
type pool struct {
	scheduler string
	ours      bool // belongs to a profile of this scheduler; for other schedulers only pods is maintained
	pods      int  // number of pods that a plan may place

	usable *gang.Tally                // those pods by leaf, plus the pods that are already placed
	units  units                      // the surplus sub-groups that these pods could form
	byAge  [2]*Heap[*Entry]           // oldest first: [0] pods that a plan may place, [1] blocked pods
	leaves map[*gang.Group]*leafQueue // pods that a plan may place, by leaf
	queues *Heap[*leafQueue]          // by the planning order of their first pods
}

// leafQueue contains the pods of one leaf that a plan may place.
type leafQueue struct {
	leaf    *gang.Group
	below   bool // the leaf has fewer bound pods than its minimum
	entries *Heap[*Entry]
	place   int // in pool.queues
}

func newPool(scheduler string, ours bool, n *Numbers) *pool {
	p := &pool{scheduler: scheduler, ours: ours}
	if !ours {
		return p
	}
	p.usable = n.Placed.Clone()
	p.units = newUnits(n.spare.tree)
	for _, leaf := range n.spare.tree.Leaves() {
		p.units.refresh(n.Bound, p.usable, leaf)
	}
	for i := range p.byAge {
		p.byAge[i] = NewHeap(func(a, b *Entry) bool { return a.order.CompareAge(&b.order) < 0 }, func(e *Entry) *int { return &e.inAge })
	}
	p.leaves = map[*gang.Group]*leafQueue{}
	p.queues = NewHeap(func(a, b *leafQueue) bool {
		if a.below != b.below {
			return a.below
		}
		return a.first().order.Compare(&b.first().order) < 0
	}, func(q *leafQueue) *int { return &q.place })
	return p
}

func newLeafQueue(leaf *gang.Group, bound *gang.Tally) *leafQueue {
	return &leafQueue{leaf: leaf, below: bound.Have(leaf) < leaf.Min(), entries: NewHeap(
		func(a, b *Entry) bool { return a.order.Compare(&b.order) < 0 }, func(e *Entry) *int { return &e.inLeaf })}
}

// first returns the pod that is planned first. The queue is not empty.
func (q *leafQueue) first() *Entry {
	e, _ := q.entries.First()
	return e
}

// joinPool adds an entry to the pool that its share determines, if it waits. Of pods that wait for other schedulers
// only the usable ones are counted.
func (n *Numbers) joinPool(e *Entry) {
	s := &e.share
	if s.Scheduler == "" || !s.has(IsOurs|IsUsable) {
		return
	}
	p := n.pools[s.Scheduler]
	if p == nil {
		p = newPool(s.Scheduler, s.has(IsOurs), n)
		n.pools[s.Scheduler] = p
	}
	e.pool = p
	p.addEntry(e, n)
}

// leavePool removes an entry from its pool, if it is in one.
func (n *Numbers) leavePool(e *Entry) {
	p := e.pool
	if p == nil {
		return
	}
	p.removeEntry(e, n)
	if !p.ours && p.pods == 0 {
		delete(n.pools, p.scheduler)
	}
	e.pool = nil
}

func (p *pool) addEntry(e *Entry, n *Numbers) {
	usable := e.share.has(IsUsable)
	if usable {
		p.pods++
	}
	if !p.ours {
		return
	}
	if !usable {
		p.byAge[1].Set(e)
		return
	}
	p.byAge[0].Set(e)
	leaf := e.share.Leaf
	p.addUsable(n.Bound, leaf, 1)
	q := p.leaves[leaf]
	if q == nil {
		q = newLeafQueue(leaf, n.Bound)
		p.leaves[leaf] = q
	}
	q.entries.Set(e)
	p.queues.Set(q)
}

func (p *pool) removeEntry(e *Entry, n *Numbers) {
	usable := e.share.has(IsUsable)
	if usable {
		p.pods--
	}
	if !p.ours {
		return
	}
	if !usable {
		p.byAge[1].Remove(e)
		return
	}
	p.byAge[0].Remove(e)
	leaf := e.share.Leaf
	p.addUsable(n.Bound, leaf, -1)
	q := p.leaves[leaf]
	if len(q.entries.Items()) == 1 {
		p.queues.Remove(q)
		q.entries.Remove(e)
		delete(p.leaves, leaf)
		return
	}
	q.entries.Remove(e)
	p.queues.Set(q)
}

func (p *pool) addUsable(bound *gang.Tally, leaf *gang.Group, k int) {
	if p.ours {
		p.usable.Add(leaf, k)
		p.units.refresh(bound, p.usable, leaf)
	}
}

func (p *pool) refreshBound(bound *gang.Tally, leaf *gang.Group) {
	if !p.ours {
		return
	}
	p.units.refresh(bound, p.usable, leaf)
	if q := p.leaves[leaf]; q != nil {
		if below := bound.Have(leaf) < leaf.Min(); below != q.below {
			q.below = below
			p.queues.Set(q)
		}
	}
}

// ourPool returns the pool of one of our profiles, nil if there is none.
func (n *Numbers) ourPool(profile string) *pool {
	if p := n.pools[profile]; p != nil && p.ours {
		return p
	}
	return nil
}

// Usable returns the pods that count if the gang is planned with this profile: placed pods, and those that a plan may
// place. It must not be modified.
func (n *Numbers) Usable(profile string) *gang.Tally {
	if p := n.ourPool(profile); p != nil {
		return p.usable
	}
	return n.Placed
}

// Waiting returns how many pods a plan with this profile may place.
func (n *Numbers) Waiting(profile string) int {
	if p := n.ourPool(profile); p != nil {
		return p.pods
	}
	return 0
}

// GroupsWithUnits returns how many groups could have another surplus sub-group if planned with this profile.
func (n *Numbers) GroupsWithUnits(profile string) int {
	if p := n.ourPool(profile); p != nil {
		return p.units.all
	}
	return 0
}

// Units returns how many surplus sub-groups could be formed if planned with this profile, each by itself.
func (n *Numbers) Units(profile string) int {
	if p := n.ourPool(profile); p != nil {
		return p.units.units
	}
	return 0
}

// IsUnit reports whether a sub-group is one of Units.
func (n *Numbers) IsUnit(profile string, group *gang.Group) bool {
	p := n.ourPool(profile)
	return p != nil && p.units.is[group.Index()] && n.Bound.Satisfied(group.Parent())
}

// UnitLevel returns the highest level at which a plan with this profile could form a surplus sub-group, 0 for direct
// children of the root or if there is none.
func (n *Numbers) UnitLevel(profile string) int {
	if p := n.ourPool(profile); p != nil {
		return p.units.highestLevel()
	}
	return 0
}

// HasSingles reports whether single pods wait with this profile in sub-groups that are satisfied at all levels.
func (n *Numbers) HasSingles(profile string) bool {
	if p := n.ourPool(profile); p != nil {
		for leaf := range p.leaves {
			if IsWhole(n.Bound, leaf) {
				return true
			}
		}
	}
	return false
}

// FirstWaiting returns the pod with this profile that is planned first: the first waiting pod of a leaf below its
// minimum, otherwise the first waiting pod. nil: no pod waits.
func (n *Numbers) FirstWaiting(profile string) *Entry {
	p := n.ourPool(profile)
	if p == nil {
		return nil
	}
	if q, ok := p.queues.First(); ok {
		return q.first()
	}
	return nil
}

// FirstSingle is FirstWaiting among the pods of sub-groups that are satisfied at all levels. If there is none, it
// returns FirstWaiting.
func (n *Numbers) FirstSingle(profile string) *Entry {
	first := n.FirstWaiting(profile)
	if first == nil || IsWhole(n.Bound, first.share.Leaf) {
		return first
	}
	best := first
	for leaf, q := range n.pools[profile].leaves {
		if e := q.first(); IsWhole(n.Bound, leaf) && (best == first || e.order.Compare(&best.order) < 0) {
			best = e
		}
	}
	return best
}

// Profile returns the schedulerName with which the waiting pods are planned: that of the first waiting pod with one of
// our profiles, preferring pods that a plan could use. "" if there is no such pod.
func (n *Numbers) Profile() string {
	best, name, bestBlocked := (*Entry)(nil), "", 0
	for scheduler, p := range n.pools {
		if !p.ours {
			continue
		}
		for blocked := range p.byAge {
			e, ok := p.byAge[blocked].First()
			if !ok {
				continue
			}
			if best == nil || cmp.Or(blocked-bestBlocked, e.order.CompareAge(&best.order), cmp.Compare(scheduler, name)) < 0 {
				best, name, bestBlocked = e, scheduler, blocked
			}
			break
		}
	}
	return name
}
