// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"

	"github.com/muster-project/muster/pkg/gang"
)

// pool contains the pods of a gang that wait with one schedulerName. The pool of one of our profiles is kept when its last
// pod leaves: creating a new one for each replaced pod would cost time proportional to the tree. A gang therefore has at
// most one such pool per profile.
type pool struct {
	scheduler string
	ours      bool // belongs to a profile of this scheduler; for other schedulers only pods is maintained
	pods      int  // number of pods that a plan may place

	usable *gang.Tally                // those pods by leaf, plus the pods that are already placed
	units  units                      // the surplus sub-groups that these pods could form
	byAge  [2]*orderedHeap[*member]   // oldest first: [0] pods that a plan may place, [1] blocked pods
	leaves map[*gang.Group]*leafQueue // pods that a plan may place, by leaf
	order  *orderedHeap[*leafQueue]   // by the planning order of their first pods
}

// leafQueue contains the pods of one leaf that a plan may place.
type leafQueue struct {
	leaf    *gang.Group
	below   bool // the leaf has fewer bound pods than its minimum
	members *orderedHeap[*member]
	place   int // in pool.order
}

func newPool(scheduler string, ours bool, n *numbers) *pool {
	p := &pool{scheduler: scheduler, ours: ours}
	if !ours {
		return p
	}
	p.usable = n.placed.Clone()
	p.units = newUnits(n.spare.tree)
	for _, leaf := range n.spare.tree.Leaves() {
		p.units.refresh(n.bound, p.usable, leaf)
	}
	for i := range p.byAge {
		p.byAge[i] = &orderedHeap[*member]{
			less:  func(a, b *member) bool { return a.key.age(&b.key) < 0 },
			place: func(m *member) *int { return &m.inAge },
		}
	}
	p.leaves = map[*gang.Group]*leafQueue{}
	p.order = &orderedHeap[*leafQueue]{
		less: func(a, b *leafQueue) bool {
			if a.below != b.below {
				return a.below
			}
			x, _ := a.members.first()
			y, _ := b.members.first()
			return preferred(x, y) < 0
		},
		place: func(q *leafQueue) *int { return &q.place },
	}
	return p
}

// queue moves a member to the pool that its share determines. The empty share belongs to no pool.
func (r *Registry) queue(m *member, s share) {
	n := m.gang.numbers
	if m.inPool != nil {
		m.inPool.removeMember(m, n)
		if !m.inPool.ours && m.inPool.pods == 0 {
			delete(n.pools, m.inPool.scheduler)
		}
		m.inPool = nil
	}
	if s.scheduler == "" {
		return
	}
	p := n.pools[s.scheduler]
	if p == nil {
		if p = newPool(s.scheduler, r.profiles.Has(s.scheduler), n); !p.ours && !s.has(isUsable) {
			return
		}
		n.pools[s.scheduler] = p
	}
	m.inPool, m.pooled = p, s
	p.addMember(m, n)
}

// addMember adds a member according to m.pooled.
func (p *pool) addMember(m *member, n *numbers) {
	usable := m.pooled.has(isUsable)
	if usable {
		p.pods++
	}
	if !p.ours {
		return
	}
	if !usable {
		p.byAge[1].set(m)
		return
	}
	p.byAge[0].set(m)
	leaf := m.pooled.leaf
	p.addUsable(n.bound, leaf, 1)
	q := p.leaves[leaf]
	if q == nil {
		q = &leafQueue{leaf: leaf, below: n.bound.Have(leaf) < leaf.Min(), members: &orderedHeap[*member]{
			less:  func(a, b *member) bool { return preferred(a, b) < 0 },
			place: func(m *member) *int { return &m.inLeaf },
		}}
		p.leaves[leaf] = q
	}
	q.members.set(m)
	p.order.set(q)
}

// removeMember removes the member.
func (p *pool) removeMember(m *member, n *numbers) {
	usable := m.pooled.has(isUsable)
	if usable {
		p.pods--
	}
	if !p.ours {
		return
	}
	if !usable {
		p.byAge[1].remove(m)
		return
	}
	p.byAge[0].remove(m)
	leaf := m.pooled.leaf
	p.addUsable(n.bound, leaf, -1)
	q := p.leaves[leaf]
	if len(q.members.items) == 1 {
		p.order.remove(q)
		q.members.remove(m)
		delete(p.leaves, leaf)
		return
	}
	q.members.remove(m)
	p.order.set(q)
}

func (p *pool) addUsable(bound *gang.Tally, leaf *gang.Group, k int) {
	if p.ours {
		p.usable.Add(leaf, k)
		p.units.refresh(bound, p.usable, leaf)
	}
}

func (p *pool) boundChanged(bound *gang.Tally, leaf *gang.Group) {
	if !p.ours {
		return
	}
	p.units.refresh(bound, p.usable, leaf)
	if q := p.leaves[leaf]; q != nil {
		if below := bound.Have(leaf) < leaf.Min(); below != q.below {
			q.below = below
			p.order.set(q)
		}
	}
}

// elect returns the pod to be elected leader: the first waiting pod of a leaf below its minimum, otherwise the first
// waiting pod. nil: no pod waits.
func (p *pool) elect() *member {
	q, ok := p.order.first()
	if !ok {
		return nil
	}
	m, _ := q.members.first()
	return m
}

// profile returns the schedulerName with which the gang's waiting pods are planned: that of its first waiting pod
// with one of our profiles, preferring pods that a plan could use. "" if there is no such pod.
func (g *gangState) profile() string {
	best, name, bestBlocked := (*member)(nil), "", 0
	for scheduler, p := range g.numbers.pools {
		if !p.ours {
			continue
		}
		for blocked := range p.byAge {
			m, ok := p.byAge[blocked].first()
			if !ok {
				continue
			}
			if best == nil || cmp.Or(blocked-bestBlocked, m.key.age(&best.key), cmp.Compare(scheduler, name)) < 0 {
				best, name, bestBlocked = m, scheduler, blocked
			}
			break
		}
	}
	return name
}

// units determines which surplus sub-groups a pool could form: sub-groups that are not satisfied, whose parent is
// satisfied, and that the waiting pods would satisfy. Each such sub-group is useful by itself, but only as a whole.
type units struct {
	is       []bool                 // by index of the group: it is not bound, but could be satisfied
	children []int                  // by index of the group: number of its children for which `is` is true
	open     []bool                 // by index of the group: it is satisfied, and children is not 0
	levels   [gang.MaxDepth + 1]int // by depth of the parent: number of open groups
	all      int                    // number of open groups
}

func newUnits(tree *gang.Tree) units {
	n := len(tree.Groups()) + 1
	return units{is: make([]bool, n), children: make([]int, n), open: make([]bool, n)}
}

// refresh updates the groups above a leaf whose pods have changed.
func (u *units) refresh(bound, usable *gang.Tally, leaf *gang.Group) {
	for g := leaf; g != nil; g = g.Parent() {
		i := g.Index()
		if parent := g.Parent(); parent != nil {
			if is := !bound.Satisfied(g) && usable.Satisfied(g); is != u.is[i] {
				u.is[i] = is
				if is {
					u.children[parent.Index()]++
				} else {
					u.children[parent.Index()]--
				}
			}
		}
		if open := u.children[i] > 0 && bound.Satisfied(g); open != u.open[i] {
			u.open[i] = open
			d := depth(g)
			if open {
				u.levels[d]++
				u.all++
			} else {
				u.levels[d]--
				u.all--
			}
		}
	}
}

// level returns the highest level at which a unit could be formed, 0 for direct children of the root.
func (u *units) level() int {
	for level, n := range u.levels {
		if n > 0 {
			return level
		}
	}
	return 0
}

func depth(g *gang.Group) int {
	d := 0
	for p := g.Parent(); p != nil; p = p.Parent() {
		d++
	}
	return d
}

// spares counts the sub-groups of a gang beyond its minimums.
type spares struct {
	tree *gang.Tree
	of   []int // by index of the group
	all  int
}

func newSpares(tree *gang.Tree) spares {
	return spares{tree: tree, of: make([]int, len(tree.Groups())+1)}
}

// refresh updates the groups above a leaf whose bound pods have changed.
func (s *spares) refresh(bound *gang.Tally, leaf *gang.Group) {
	for g := leaf.Parent(); g != nil; g = g.Parent() {
		n := max(0, bound.Have(g)-g.Min())
		s.all += n - s.of[g.Index()]
		s.of[g.Index()] = n
	}
}
