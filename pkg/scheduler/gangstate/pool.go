package gangstate

import (
	"cmp"

	"github.com/muster-project/muster/pkg/gang"
)

// pool is the pods of a gang that wait with one schedulerName. One of ours stays with the gang when none waits any more: to
// make it anew with each pod that is replaced would take the time of the tree. So a gang has at most one a profile.
type pool struct {
	ours bool // a profile of this scheduler; of others only pods is kept
	pods int  // that a plan may place

	usable *gang.Tally                // those, by leaf, and what is placed already
	units  units                      // the surplus sub-groups that they could make
	byAge  [2]*orderedHeap[*member]   // the oldest first: [0] those that a plan may place, [1] those that are held
	leaves map[*gang.Group]*leafQueue // those that a plan may place
	order  *orderedHeap[*leafQueue]   // by whose first pod is to be planned first
}

// leafQueue is the pods of one leaf that a plan may place.
type leafQueue struct {
	leaf    *gang.Group
	below   bool // the leaf has fewer bound pods than its minimum
	members *orderedHeap[*member]
	place   int // in pool.order
}

func newPool(ours bool, n *numbers) *pool {
	p := &pool{ours: ours}
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

// queue moves a member to where its share says that it waits; the empty share is nowhere.
func (r *Registry) queue(m *member, s share) {
	n := m.gang.numbers
	if m.inPool != nil {
		m.inPool.leave(m, n)
		if !m.inPool.ours && m.inPool.pods == 0 {
			delete(n.pools, m.poolName)
		}
		m.inPool, m.poolName = nil, ""
	}
	if s.scheduler == "" {
		return
	}
	p := n.pools[s.scheduler]
	if p == nil {
		if p = newPool(r.profiles.Has(s.scheduler), n); !p.ours && !s.has(isUsable) {
			return
		}
		n.pools[s.scheduler] = p
	}
	m.inPool, m.poolName, m.pooled = p, s.scheduler, s
	p.enter(m, n)
}

// enter adds a member as m.pooled says.
func (p *pool) enter(m *member, n *numbers) {
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

// leave takes the member out.
func (p *pool) leave(m *member, n *numbers) {
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

// elect returns the pod that speaks for the gang: the first waiting pod of a leaf below its minimum, else the first. nil: none
// waits.
func (p *pool) elect() *member {
	q, ok := p.order.first()
	if !ok {
		return nil
	}
	m, _ := q.members.first()
	return m
}

// profile returns the schedulerName that the gang's waiting pods are planned with: that of its first waiting pod that
// names a profile of ours, of those that a plan could use if there are any. "" if none does.
func (g *gangState) profile() string {
	best, name, bestHeld := (*member)(nil), "", 0
	for scheduler, p := range g.numbers.pools {
		if !p.ours {
			continue
		}
		for held := range p.byAge {
			m, ok := p.byAge[held].first()
			if !ok {
				continue
			}
			if best == nil || cmp.Or(held-bestHeld, m.key.age(&best.key), cmp.Compare(scheduler, name)) < 0 {
				best, name, bestHeld = m, scheduler, held
			}
			break
		}
	}
	return name
}

// units knows which surplus sub-groups a pool could make: groups that are not satisfied, whose parent is, and that would be
// with what waits. Each is welcome by itself, and worth nothing in part.
type units struct {
	is       []bool                 // by index of the group: it is not bound, and could be
	children []int                  // by index of the group: how many of its children are so
	open     []bool                 // by index of the group: it is satisfied, and children is not 0
	levels   [gang.MaxDepth + 1]int // by depth of the parent: how many are open
	all      int                    // how many are open
}

func newUnits(tree *gang.Tree) units {
	n := len(tree.Groups()) + 1
	return units{is: make([]bool, n), children: make([]int, n), open: make([]bool, n)}
}

// refresh looks at the groups above a leaf whose pods have changed.
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

// level returns the highest level on which a unit could be made, 0 for direct children of the root.
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

// spares counts the sub-groups that a gang has beyond its minimums.
type spares struct {
	tree *gang.Tree
	of   []int // by index of the group
	all  int
}

func newSpares(tree *gang.Tree) spares {
	return spares{tree: tree, of: make([]int, len(tree.Groups())+1)}
}

// refresh looks at the groups above a leaf whose bound pods have changed.
func (s *spares) refresh(bound *gang.Tally, leaf *gang.Group) {
	for g := leaf.Parent(); g != nil; g = g.Parent() {
		n := max(0, bound.Have(g)-g.Min())
		s.all += n - s.of[g.Index()]
		s.of[g.Index()] = n
	}
}
