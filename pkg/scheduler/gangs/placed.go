// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/scheduler/gangs/count"
)

// podPlace is where a bound pod runs and counts.
type podPlace struct{ leaf, node string }

// placedPods contains the bound pods of a gang that count, so that its nodes are known without visiting every member.
type placedPods struct {
	of     map[*member]podPlace
	number map[podPlace]int // of the pods in the place; not 0
}

// newPlacedPods returns placedPods without pods. nil if the gang names no topology level: its nodes are not needed.
func newPlacedPods(g *gangState) *placedPods {
	if g.group == nil || !podgroup.HasTopologyLevel(&g.group.Spec) {
		return nil
	}
	return &placedPods{of: map[*member]podPlace{}, number: map[podPlace]int{}}
}

// update records where a member runs after it has changed. It reports whether the member no longer runs where it did:
// then the gang may not be bound to a domain any more.
func (p *placedPods) update(m *member) (left bool) {
	if p == nil {
		return false
	}
	old, known := p.of[m]
	now, placed := m.place()
	if known == placed && old == now {
		return false
	}
	if known {
		delete(p.of, m)
		if p.number[old]--; p.number[old] == 0 {
			delete(p.number, old)
		}
	}
	if placed {
		p.of[m] = now
		p.number[now]++
	}
	return known
}

// RecordRelabeled records that labels of nodes have changed: refused gangs of which pods run there may belong to
// another domain by now, and are tried again, with a pause. What the attempt sees of the nodes must have changed
// before.
func (r *Registry) RecordRelabeled(nodes sets.Set[string], now time.Time) {
	if len(nodes) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginCall(now)
	for g := range r.waiting.all {
		if g.placed.runsOn(nodes) {
			g.recordOwnChange()
			r.reindex(g)
		}
	}
}

// runsOn reports whether a pod runs on one of the nodes. False for nil.
func (p *placedPods) runsOn(nodes sets.Set[string]) bool {
	if p == nil {
		return false
	}
	for at := range p.number {
		if nodes.Has(at.node) {
			return true
		}
	}
	return false
}

// place returns where a member runs. False if it is not bound, or does not count.
func (m *member) place() (podPlace, bool) {
	share := m.entry.Share()
	if share.Leaf == nil || share.Flags&count.IsStanding == 0 {
		return podPlace{}, false
	}
	return podPlace{share.Leaf.Name(), m.node}, true
}

// nodes returns the nodes of the pods by leaf, each once, in no order. nil for nil.
func (p *placedPods) nodes() map[string][]string {
	if p == nil {
		return nil
	}
	nodes := map[string][]string{}
	for at := range p.number {
		nodes[at.leaf] = append(nodes[at.leaf], at.node)
	}
	return nodes
}
