package kubescheduler

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
)

// Explain implements placement.World. What plainFilters said of the nodes is known; only the nodes that they let pass
// are asked about again.
func (w *Snapshot) Explain(index int, domain string) *placement.Refusal {
	c := w.classes[index]
	w.judge(c)
	r := &placement.Refusal{Reasons: map[string]int{}}
	if len(c.unbound) > 0 {
		domain = "" // the domain is a node: what is to be said is why the others cannot help out
	}
	positions := w.positions(domain)
	if c.refuse != nil {
		if n := len(positions); n > 0 {
			r.Reasons[reason(c.refuse)] = n
		}
		return r
	}
	for _, n := range positions {
		i := int(n)
		why := w.barred(c, w.nodes.objects[i].Name)
		switch {
		case why != "":
		case c.known.reasons[i] != 0:
			why = w.cache.reasons[c.known.reasons[i]]
		case w.stop():
			continue
		case w.reserved != nil && w.keeps(c, i):
			why = RoomKept
		case c.limits != nil && w.limited(c, i):
			why = "node(s) took no more such pods a moment ago"
		case c.plain && w.nodes.clones[i] == nil && len(w.f.NominatedPodsForNode(w.nodes.objects[i].Name)) == 0:
			why = w.conflict(c, i)
		default:
			why = w.filter(c, i)
		}
		if why != "" {
			r.Reasons[why]++
		}
	}
	return r
}

// positions returns the nodes of a domain; "" is all of them.
func (w *Snapshot) positions(domain string) []int32 {
	if domain == "" {
		return w.nodes.all
	}
	key, value := domainOf(domain)
	top := w.nodes.topology(key)
	if k, ok := top.number[value]; ok {
		return top.nodes[k]
	}
	return nil
}

// ResourceCapacity returns what the nodes that match the class's constraints have, with nothing planned. A node matches if
// it passes plainFilters or is refused for want of resources only.
func (w *Snapshot) ResourceCapacity(index int) podgroup.ResourceCapacity {
	c := w.classes[index]
	w.judge(c)
	requests := c.info.CalculateResource().Resource
	resources := []corev1.ResourceName{c.resource} // those looked at, the main one first
	for _, name := range resourcesOf(requests) {
		if name != c.resource {
			resources = append(resources, name)
		}
	}
	each := make([]podgroup.ResourceCapacity, len(resources))
	for k, name := range resources {
		each[k] = podgroup.ResourceCapacity{Resource: name, PerPod: amount(requests, name)}
	}
	required := nodeaffinity.GetRequiredNodeAffinity(c.info.Pod)
	for i, node := range w.nodes.nodes {
		if why := w.cache.reasons[c.known.reasons[i]]; why != "" && !strings.HasPrefix(why, "Insufficient ") && why != "Too many pods" {
			continue
		}
		if c.refuse != nil || w.barred(c, w.nodes.objects[i].Name) != "" {
			continue
		}
		// NodeResourcesFit runs late, but a node may be refused for resources and be wrong otherwise as well.
		if ok, err := required.Match(w.nodes.objects[i]); err != nil || !ok {
			continue
		}
		var kept room
		if on := w.reserved[i]; on != nil {
			kept = on.against(c.leaf)
		}
		for k, name := range resources {
			total := amount(node.GetAllocatable(), name)
			each[k].Nodes++
			each[k].Total += total
			each[k].Free += max(0, total-amount(node.GetRequested(), name)-kept.amounts[name])
			each[k].Largest = max(each[k].Largest, total)
		}
	}
	for _, room := range each {
		if room.Nodes > 0 && room.PerPod > room.Largest {
			return room
		}
	}
	return each[0]
}
