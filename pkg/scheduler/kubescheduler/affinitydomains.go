// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/placement"
)

// domainRoom is the room for the linked classes in one domain, without planned pods.
type domainRoom struct {
	value   int
	fits    bool  // according to the counts, all of them have room
	surplus int64 // amount of the main resource that remains free
}

// Domains implements placement.World. For a class with required pod affinity, and for classes that it follows, it
// returns the domains of its topology keys, for a class whose pods share an unbound claim the nodes. Domains that can
// hold all linked pods come first, the tightest first (docs/decisions, G17), then those with the most room. If the pods
// must share one domain, domains that certainly cannot hold them are omitted.
func (w *Snapshot) Domains(index int, need []int) []string {
	c, area := w.classAt(index)
	w.findNodesOf(c)
	if c.linked == nil {
		return nil
	}
	need = w.needIn(area, need)
	top, linked := w.nodes.topologyOf(c.domainKey), c.linked
	needs := w.needsOf(linked, need)
	total := totalRequests(linked, needs)
	var bound []*class // must be in the same domain
	others := false    // pods of such other classes are needed
	for k, o := range linked {
		if c.anchor != nil && o.anchor == c.anchor {
			bound = append(bound, o)
			others = others || o != c && needs[k] > 0
		}
	}
	boundNeeds := w.needsOf(bound, need)
	boundTotal := totalRequests(bound, boundNeeds)
	var rooms []domainRoom
	for v, nodes := range w.nodesByValue(top, area) {
		if c.near != nil && len(c.follows) == 0 && !c.near.founds && !c.near.allowedByRunning(int(nodes[0])) ||
			!slices.ContainsFunc(nodes, func(i int32) bool { return c.known.reasons[i] == 0 }) {
			continue
		}
		room := w.countRoomIn(c.resource, nodes, linked, needs, total)
		room.value = v
		if room.fits || c.anchor == nil || len(bound) < len(linked) && w.countRoomIn(c.resource, nodes, bound, boundNeeds, boundTotal).fits {
			rooms = append(rooms, room)
		}
	}
	slices.SortStableFunc(rooms, func(a, b domainRoom) int {
		switch {
		case a.fits && !b.fits:
			return -1
		case b.fits && !a.fits:
			return 1
		case !a.fits:
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(a.surplus, b.surplus), cmp.Compare(top.names[a.value], top.names[b.value]))
	})
	out := make([]string, 0, len(rooms)+1)
	for _, room := range rooms {
		out = append(out, c.domainKey+"="+top.names[room.value])
	}
	if !others && w.maybeOutside(c, area, top) {
		out = append(out, "")
	}
	return out
}

// maybeOutside reports whether nodes of the area outside of all domains, because they lack a label, may take the class.
func (w *Snapshot) maybeOutside(c *class, a placement.Area, top *topology) bool {
	if len(c.unbound) > 0 || c.near != nil && c.near.topology.key == top.key {
		return false
	}
	return slices.ContainsFunc(c.scan.order, func(i int32) bool { return top.value[i] < 0 && w.isIn(a, i) })
}

// needsOf returns the number of pods needed of each class, and judges the classes. need is by index of a class.
func (w *Snapshot) needsOf(classes []*class, need []int) []int {
	var needs []int
	for _, o := range classes {
		needs = append(needs, need[slices.Index(w.classes, o)])
		w.findNodesOf(o)
	}
	return needs
}

// totalRequests returns the total of each resource that the linked classes need.
func totalRequests(linked []*class, needs []int) []request {
	var total []request
	for k, o := range linked {
		for _, r := range o.known.demand.requests {
			at := slices.IndexFunc(total, func(t request) bool { return t.name == r.name })
			if at < 0 {
				at = len(total)
				total = append(total, request{name: r.name})
			}
			total[at].amount += r.amount * int64(needs[k])
		}
	}
	return total
}

// countRoomIn counts the room on the nodes: for each class by itself, and for all together by the sum of their
// requests.
func (w *Snapshot) countRoomIn(main corev1.ResourceName, nodes []int32, linked []*class, needs []int, total []request) domainRoom {
	slots, free := make([]int, len(linked)), make([]int64, len(total))
	room := domainRoom{fits: true}
	for _, i := range nodes {
		takesAny := false
		for k, o := range linked {
			if o.known.reasons[i] == 0 && w.whyBarred(o, int(i)) == "" {
				slots[k] += w.slotsOn(o, int(i))
				takesAny = true
			}
		}
		if !takesAny {
			continue
		}
		node := w.nodes.currentNode(int(i))
		for k, r := range total {
			free[k] += max(0, freeOn(node, r.name))
		}
	}
	for k := range linked {
		room.fits = room.fits && slots[k] >= needs[k]
	}
	for k, r := range total {
		room.fits = room.fits && free[k] >= r.amount
		if r.name == main {
			room.surplus = free[k] - r.amount
		}
	}
	return room
}

// Nodes implements placement.World.
func (w *Snapshot) Nodes(index, most int) []string {
	c, area := w.classAt(index)
	w.findNodesOf(c)
	order := w.scanIn(c, area, "").order
	if len(order) > most {
		return nil
	}
	var nodes []string
	for _, i := range order {
		nodes = append(nodes, "="+w.nodes.objects[i].Name)
	}
	return nodes
}

// lostSlots returns, by node, for how many fewer pods of the classes that follow the class there is room if a pod of
// the class is placed there. Its pods must be placed first, so this order of the nodes leaves room for the others. nil:
// no class follows it.
func (w *Snapshot) lostSlots(c *class, nodes []int32) map[int32]int {
	var lost map[int32]int
	for _, o := range c.linked {
		if o == c || !slices.Contains(o.follows, c) {
			continue
		}
		w.findNodesOf(o)
		if lost == nil {
			lost = make(map[int32]int, len(nodes))
		}
		for _, i := range nodes {
			if o.known.reasons[i] == 0 {
				lost[i] += o.known.demand.lostSlots(w.nodes.currentNode(int(i)), &c.known.demand)
			}
		}
	}
	return lost
}
