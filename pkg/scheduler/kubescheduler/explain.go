// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	pluginhelper "k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
)

// Explain implements placement.World. The results of plainFilters are known; only the nodes that they accept are filtered
// again.
func (w *Snapshot) Explain(index int, domain string) *placement.Refusal {
	c := w.classes[index]
	w.judge(c)
	r := &placement.Refusal{Reasons: map[string]int{}}
	if len(c.unbound) > 0 {
		domain = "" // the domain is one node; the reasons of the other nodes are relevant too
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
		why := w.barred(c, i)
		switch {
		case why != "":
		case c.known.reasons[i] != 0:
			why = w.cache.reasons[c.known.reasons[i]]
			if cause, _ := w.closed(c, i); cause != "" {
				why = cause // the filter does not report which taint
			}
		case w.stop():
			continue
		case w.reserved != nil && w.keeps(c, i):
			why = RoomKept
		case c.limits != nil && w.limited(c, i):
			why = c.limits[i].why
		default:
			why = w.refusal(c, i, len(w.nodes.planned[i].pods) == 0)
		}
		if why != "" {
			r.Reasons[why]++
		}
	}
	return r
}

// positions returns the nodes of a domain; "" means all nodes.
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

// ResourceCapacity returns the capacity of the nodes that match the class's constraints, without planned pods. A node
// matches if it passes plainFilters or is refused only for lack of resources; a node that would match without a cordon
// or a taint is unavailable.
func (w *Snapshot) ResourceCapacity(index int) podgroup.ResourceCapacity {
	c := w.classes[index]
	w.judge(c)
	requests := c.info.CalculateResource().Resource
	resources := []corev1.ResourceName{c.resource} // the main resource first
	for _, name := range resourcesOf(requests) {
		if name != c.resource {
			resources = append(resources, name)
		}
	}
	each := make([]podgroup.ResourceCapacity, len(resources))
	for k, name := range resources {
		each[k] = podgroup.ResourceCapacity{Resource: name, PerPod: amount(requests, name)}
		if c.refuse != nil {
			each[k].Refused, each[k].RefusedByClaims = reason(c.refuse), claimPlugins.Has(c.refuse.Plugin())
		}
	}
	required := nodeaffinity.GetRequiredNodeAffinity(c.info.Pod)
	var matching []int32
	unavailable := map[closure][]int32{}
	for i, node := range w.nodes.nodes {
		cause, advice := w.closed(c, i)
		if !w.matches(c, i, &required, cause != "") {
			for k, name := range resources {
				if total := amount(node.GetAllocatable(), name); c.refuse == nil && total > 0 && total >= each[k].PerPod {
					each[k].Elsewhere++
				}
			}
			continue
		}
		if cause != "" {
			unavailable[closure{cause, advice}] = append(unavailable[closure{cause, advice}], int32(i))
			continue
		}
		matching = append(matching, int32(i))
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
	slots := w.emptySlots(c, matching)
	for k, name := range resources {
		each[k].Slots = slots
		for _, by := range slices.SortedFunc(maps.Keys(unavailable), closure.compare) {
			nodes := unavailable[by]
			u := podgroup.UnavailableNodes{Cause: by.cause, Advice: by.advice, Nodes: len(nodes), Slots: w.emptySlots(c, nodes)}
			for _, i := range nodes {
				total := amount(w.nodes.nodes[i].GetAllocatable(), name)
				u.Total += total
				u.Largest = max(u.Largest, total)
			}
			each[k].Unavailable = append(each[k].Unavailable, u)
		}
	}
	for _, room := range each {
		if room.Nodes > 0 && room.PerPod > room.Largest {
			return room
		}
	}
	return each[0]
}

// claimPlugins refuse pods in PreFilter for claims that do not exist or cannot be used.
var claimPlugins = sets.New(names.VolumeBinding, names.VolumeRestrictions, names.VolumeZone, names.NodeVolumeLimits, names.DynamicResources)

// matches reports whether a node takes the class or is refused only for lack of resources. For a closed node it reports
// whether this would be the case if the node were open.
func (w *Snapshot) matches(c *class, i int, required *nodeaffinity.RequiredNodeAffinity, closed bool) bool {
	if c.refuse != nil || w.barred(c, i) != "" {
		return false
	}
	why := w.cache.reasons[c.known.reasons[i]]
	if !closed && why != "" && !strings.HasPrefix(why, "Insufficient ") && why != "Too many pods" {
		return false
	}
	if name := c.info.Pod.Spec.NodeName; closed && name != "" && name != w.nodes.objects[i].Name {
		return false
	}
	// A node that is refused for resources may violate other constraints as well.
	ok, err := required.Match(w.nodes.objects[i])
	return err == nil && ok
}

// closure is the reason why nodes are closed to a class, and the action that would open them.
type closure struct{ cause, advice string }

func (a closure) compare(b closure) int { return cmp.Compare(a.cause, b.cause) }

// closed returns why a node that may otherwise match the class refuses it, and the action that would open it: the node is
// cordoned, not ready, or has a taint that the class does not tolerate. "": none of these applies.
func (w *Snapshot) closed(c *class, i int) (cause, advice string) {
	spec, tolerations := &w.nodes.objects[i].Spec, c.info.Pod.Spec.Tolerations
	if c.known.reasons[i] == 0 || !spec.Unschedulable && len(spec.Taints) == 0 {
		return "", ""
	}
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	taints := spec.Taints
	if spec.Unschedulable {
		taints = append([]corev1.Taint{cordon}, taints...)
	}
	taint, found := corev1helpers.FindMatchingUntoleratedTaint(w.logger, taints, tolerations, pluginhelper.DoNotScheduleTaintsFilterFunc(), true)
	switch {
	case !found:
		return "", ""
	case taint.Key == corev1.TaintNodeUnschedulable:
		return "cordoned", "uncordon them"
	case taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable:
		return "not ready", "bring them back"
	}
	return "with taint " + taint.ToString(), "tolerate or remove it"
}

// emptySlots returns how many pods of the class fit on the nodes if these are empty. It is an upper bound.
func (w *Snapshot) emptySlots(c *class, nodes []int32) int {
	empty := &framework.Resource{}
	slots := func(i int32) int { return c.known.demand.slotsOf(w.nodes.nodes[i].GetAllocatable(), empty, 0) }
	n := 0
	for _, i := range nodes {
		n = min(n+slots(i), math.MaxInt32)
	}
	for _, term := range c.info.GetRequiredAntiAffinityTerms() {
		if !term.Matches(c.info.Pod, w.namespaceLabels(c.info.Pod.Namespace)) {
			continue
		}
		top := w.nodes.topology(term.TopologyKey)
		used, apart := map[int32]bool{}, 0
		for _, i := range nodes {
			switch v, room := top.value[i], slots(i); {
			case v < 0:
				apart += room
			case room > 0 && !used[v]:
				used[v] = true
				apart++
			}
		}
		n = min(n, apart)
	}
	return n
}
