// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// domainRoom is the room for the linked classes in one domain, without planned pods.
type domainRoom struct {
	value   int
	fits    bool  // according to the counts, all of them have room
	surplus int64 // amount of the main resource that remains free
}

// Domains implements placement.World. For a class with required pod affinity it returns the domains of its topology
// key, for a class whose pods share an unbound claim the nodes. Domains that can hold all linked pods come first, the
// tightest first (docs/decisions, G17). If the pods must share one domain, domains that certainly cannot hold them
// are omitted.
func (w *Snapshot) Domains(index int, need []int) []string {
	c := w.classes[index]
	w.judge(c)
	if c.kind != sharesDomain {
		return nil
	}
	key := c.domainKey
	top := w.nodes.topology(key)
	linked, needs := w.linkedTo(c, need)
	total := totalOf(linked, needs)
	var rooms []domainRoom
	for v := range top.names {
		room := w.roomIn(c.resource, top.nodes[v], linked, needs, total)
		room.value = v
		if c.near != nil && !c.near.founds && len(c.links) == 0 && !c.near.running[v] {
			continue
		}
		if room.fits || !w.mustShare(c, need) {
			rooms = append(rooms, room)
		}
	}
	slices.SortStableFunc(rooms, func(a, b domainRoom) int {
		if a.fits != b.fits {
			if a.fits {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.surplus, b.surplus), cmp.Compare(top.names[a.value], top.names[b.value]))
	})
	out := make([]string, 0, len(rooms)+1)
	for _, room := range rooms {
		out = append(out, key+"="+top.names[room.value])
	}
	if len(out) > 0 && !w.mustShare(c, need) {
		out = append(out, "") // the class's own pods need not be together
	}
	return out
}

// mustShare reports whether all pods of the class must be in one domain. This is not the case for a class of more
// than one pod that is only followed by others.
func (w *Snapshot) mustShare(c *class, need []int) bool {
	if len(c.unbound) > 0 || len(c.info.GetRequiredAffinityTerms()) > 0 {
		return true
	}
	index := slices.Index(w.classes, c)
	return index < len(need) && need[index] <= 1
}

// linkedTo returns the class and those that must be in its domain, with the number of pods needed of each.
func (w *Snapshot) linkedTo(c *class, need []int) (linked []*class, needs []int) {
	linked = []*class{c}
	for k := 0; k < len(linked); k++ {
		for _, o := range linked[k].links {
			if !slices.Contains(linked, o) && o.domainKey == c.domainKey {
				linked = append(linked, o)
			}
		}
	}
	for _, o := range linked {
		n := 0
		if i := slices.Index(w.classes, o); i < len(need) {
			n = need[i]
		}
		needs = append(needs, n)
		w.judge(o)
	}
	return linked, needs
}

// totalOf returns the total of each resource that the linked classes need.
func totalOf(linked []*class, needs []int) []request {
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

// roomIn counts the room on the nodes: for each class by itself, and for all together by the sum of their requests.
func (w *Snapshot) roomIn(main corev1.ResourceName, nodes []int32, linked []*class, needs []int, total []request) domainRoom {
	slots, free := make([]int, len(linked)), make([]int64, len(total))
	room := domainRoom{fits: true}
	for _, i := range nodes {
		takesAny := false
		for k, o := range linked {
			if o.known.reasons[i] == 0 && w.barred(o, int(i)) == "" {
				slots[k] += int(o.known.slots[i])
				takesAny = true
			}
		}
		if !takesAny {
			continue
		}
		allocatable, requested := w.nodes.nodes[i].GetAllocatable(), w.nodes.nodes[i].GetRequested()
		for k, r := range total {
			free[k] += max(0, amount(allocatable, r.name)-amount(requested, r.name))
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
