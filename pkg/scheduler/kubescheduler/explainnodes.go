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
	pluginhelper "k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"

	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
)

// Explain implements placement.World. The results of plainFilters are known; only the nodes that they accept are
// filtered again.
func (w *Snapshot) Explain(index int, domain string) *placement.Refusal {
	c, area := w.classAt(index)
	w.findNodesOf(c)
	r := &placement.Refusal{Reasons: map[string]int{}}
	if len(c.unbound) > 0 {
		domain = "" // the domain is one node; the reasons of the other nodes are relevant too
	}
	positions := w.nodesIn(area, domain)
	if c.refuse != nil {
		if n := len(positions); n > 0 {
			r.Reasons[firstReason(c.refuse)] = n
		}
		return r
	}
	for _, n := range positions {
		i := int(n)
		why := w.whyBarred(c, i)
		switch {
		case why != "":
		case c.known.reasons[i] != 0:
			why = w.cache.reasons[c.known.reasons[i]].text
			if cause, _ := w.whyClosed(c, i); cause != "" {
				why = cause // the filter does not report which taint
			}
		case w.timeIsOver():
			continue
		case w.hasOnlyReserved(c, i):
			why = RoomReserved
		case c.limits != nil && w.isLimited(c, i):
			why = c.limits[i].why
		default:
			why = w.refusalReason(c, i, len(w.nodes.planned[i].pods) == 0)
			if why == "" && len(w.placed) == 0 { // too few pods fit in all
				why = w.volumeRoom(c, i).why
			}
		}
		if why != "" {
			r.Reasons[why]++
		}
	}
	return r
}

// ResourceCapacity returns the capacity of the nodes that match the class's constraints, without planned pods. A node
// matches if it is in the area of the class and passes plainFilters, or is refused only for lack of resources; a node
// that would match without a cordon or a taint is unavailable.
func (w *Snapshot) ResourceCapacity(index int) podgroup.ResourceCapacity {
	c, area := w.classAt(index)
	w.findNodesOf(c)
	requests := c.info.CalculateResource().Resource
	resources := []corev1.ResourceName{c.resource} // the main resource first
	for _, name := range resourcesOf(requests) {
		if name != c.resource {
			resources = append(resources, name)
		}
	}
	each := make([]podgroup.ResourceCapacity, len(resources))
	for k, name := range resources {
		each[k] = podgroup.ResourceCapacity{Resource: name, PerPod: amountOf(requests, name)}
		if c.refuse != nil {
			each[k].Refused, each[k].RefusedByClaims = firstReason(c.refuse), claimPlugins.Has(c.refuse.Plugin())
		}
	}
	matching, unavailable := w.countNodes(c, area, resources, each)
	slots, apart := w.sumSlots(c, matching, w.emptySlots)
	now, _ := w.sumSlots(c, matching, w.freeSlots)
	selection := selectionOf(c.info.Pod)
	for k, name := range resources {
		each[k].Slots, each[k].SlotsNow, each[k].Apart, each[k].Selection = slots, now, apart, selection
		each[k].Unavailable = w.unavailableNodes(c, name, unavailable)
	}
	for _, room := range each {
		if room.Nodes > 0 && room.PerPod > room.Largest {
			return room
		}
	}
	return each[0]
}

// countNodes adds the amounts of the nodes that match the class to each, which is by resource. It returns these nodes,
// and those that would match if they were not closed, by the cause.
func (w *Snapshot) countNodes(c *class, a placement.Area, resources []corev1.ResourceName, each []podgroup.ResourceCapacity) (matching []int32, unavailable map[closure][]int32) {
	unavailable = map[closure][]int32{}
	columns := make([]int, len(resources))
	for k, name := range resources {
		columns[k] = w.usage().columnOf(name)
	}
	offers := func(k int, total []int64) bool { return total[columns[k]] > 0 && total[columns[k]] >= each[k].PerPod }
	for k, n := range w.offering(c, len(each), offers) {
		each[k].Elsewhere = n
	}
	uses := w.usesOf(c)
	matching = make([]int32, 0, len(w.areas[a].nodes))
	for _, n := range w.areas[a].nodes {
		i := int(n)
		if !uses[i].matches {
			continue
		}
		total, used := w.amountsOn(i)
		for k := range each {
			if offers(k, total) {
				each[k].Elsewhere--
			}
		}
		if uses[i].closed {
			cause, advice := w.whyClosed(c, i)
			unavailable[closure{cause, advice}] = append(unavailable[closure{cause, advice}], n)
			continue
		}
		matching = append(matching, n)
		for k, name := range resources {
			total, free := total[columns[k]], max(0, total[columns[k]]-used[columns[k]]-w.keptFrom(c, i).Resources[name])
			each[k].Nodes++
			each[k].Total += total
			each[k].Free += free
			each[k].Largest = max(each[k].Largest, total)
			each[k].LargestFree = max(each[k].LargestFree, free)
			if total > 0 && total >= each[k].PerPod {
				each[k].Offering++
			}
		}
	}
	return matching, unavailable
}

// offering returns the number of nodes that offer enough for a pod of the class, for each of its resources. It is the
// same for all areas, so the nodes are counted once.
func (w *Snapshot) offering(c *class, resources int, offers func(resource int, total []int64) bool) []int {
	if c.offering == nil {
		c.offering = make([]int, resources)
		for i := range w.nodes.nodes {
			total, _ := w.amountsOn(i)
			for k := range c.offering {
				if c.refuse == nil && offers(k, total) {
					c.offering[k]++
				}
			}
		}
	}
	return c.offering
}

// unavailableNodes describes the closed nodes, by the cause, as far as a resource is concerned.
func (w *Snapshot) unavailableNodes(c *class, name corev1.ResourceName, unavailable map[closure][]int32) []podgroup.UnavailableNodes {
	var out []podgroup.UnavailableNodes
	for _, by := range slices.SortedFunc(maps.Keys(unavailable), func(a, b closure) int { return cmp.Compare(a.cause, b.cause) }) {
		nodes := unavailable[by]
		u := podgroup.UnavailableNodes{Cause: by.cause, Advice: by.advice, Nodes: len(nodes)}
		if u.Nodes == 1 {
			u.Advice = ofOneNode.Replace(u.Advice)
		}
		u.Slots, _ = w.sumSlots(c, nodes, w.emptySlots)
		u.SlotsNow, _ = w.sumSlots(c, nodes, w.freeSlots)
		u.Names = w.firstNames(c, nodes)
		column := w.usage().columnOf(name)
		for _, i := range nodes {
			total, used := w.amountsOn(int(i))
			u.Total += total[column]
			u.Free += max(0, total[column]-used[column]-w.keptFrom(c, int(i)).Resources[name])
			u.Largest = max(u.Largest, total[column])
		}
		out = append(out, u)
	}
	return out
}

// claimPlugins refuse pods in PreFilter for claims that do not exist or cannot be used.
var claimPlugins = sets.New(names.VolumeBinding, names.VolumeRestrictions, names.VolumeZone, names.NodeVolumeLimits, names.DynamicResources)

// nodeUse is whether a node would take the class if it was large, empty and open enough, whether it is closed, and
// whether a pod uses a host port of the class.
type nodeUse struct{ matches, closed, taken bool }

// usesOf returns the nodeUse of all nodes. It is called after the plan.
func (w *Snapshot) usesOf(c *class) []nodeUse {
	if c.nodeUses == nil {
		c.nodeUses = make([]nodeUse, len(w.nodes.nodes))
		for i := range c.nodeUses {
			c.nodeUses[i] = w.roomOn(c, i).use
			if c.refuse != nil || w.whyBarred(c, i) != "" {
				c.nodeUses[i].matches = false
			}
			c.nodeUses[i].taken = c.nodeUses[i].taken && c.refuse == nil
		}
	}
	return c.nodeUses
}

// useOf returns the nodeUse of a node for pods like those of the class, which may be barred from it.
func (w *Snapshot) useOf(c *class, i int) nodeUse {
	cause, _ := w.whyClosed(c, i)
	why := w.cache.reasons[c.known.reasons[i]].text
	use := nodeUse{closed: cause != "", taken: why == nodeports.ErrReason}
	if !use.closed && why != "" && !strings.HasPrefix(why, "Insufficient ") && why != "Too many pods" && !use.taken {
		return use
	}
	if name := c.info.Pod.Spec.NodeName; use.closed && name != "" && name != w.nodes.objects[i].Name {
		return use
	}
	// A node that is refused for resources may violate other constraints as well.
	if c.required == nil {
		required := nodeaffinity.GetRequiredNodeAffinity(c.info.Pod)
		c.required = &required
	}
	ok, err := c.required.Match(w.nodes.objects[i])
	use.matches = err == nil && ok
	return use
}

// closure is the reason why nodes are closed to a class, and the action that would open them.
type closure struct{ cause, advice string }

// whyClosed returns why a node that may otherwise match the class refuses it, and the action that would open it: the
// node is cordoned, not ready, or has a taint that the class does not tolerate. "": none of these applies.
func (w *Snapshot) whyClosed(c *class, i int) (cause, advice string) {
	if c.known.reasons[i] == 0 || !w.nodes.tainted[i] {
		return "", ""
	}
	spec, tolerations := &w.nodes.objects[i].Spec, c.info.Pod.Spec.Tolerations
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

// nodeRoom is what an explanation says about one state of a node, for one kind of pod.
type nodeRoom struct {
	generation  int64 // of the node; 0: nothing is known
	reason      uint16
	use         nodeUse
	empty, free int32 // how many pods fit if the node is empty, and as it is
}

// roomOn returns the nodeRoom of a node without planned and freed pods. As long as the node does not change it is not
// determined again.
func (w *Snapshot) roomOn(c *class, i int) *nodeRoom {
	known := c.known
	if known.rooms == nil {
		known.rooms = make([]nodeRoom, len(w.nodes.nodes))
	}
	r := &known.rooms[i]
	if r.generation == w.nodes.generations[i] && r.reason == known.reasons[i] {
		return r
	}
	total, used := w.usage().read(i)
	columns := w.columnsOf(c)
	empty, _ := known.demand.countSlots(func(k int) int64 { return total[columns[k]] })
	free, _ := known.demand.countSlots(func(k int) int64 { return total[columns[k]] - used[columns[k]] })
	*r = nodeRoom{w.nodes.generations[i], known.reasons[i], w.useOf(c, i), int32(empty), int32(free)}
	return r
}

// emptySlots returns how many pods of the class fit on the node if it is empty, freeSlots how many fit as it is.
func (w *Snapshot) emptySlots(c *class, i int32) int { return int(w.roomOn(c, int(i)).empty) }

func (w *Snapshot) freeSlots(c *class, i int32) int {
	switch {
	case w.roomOn(c, int(i)).use.taken && c.refuse == nil:
		return 0
	case w.reservedOn(int(i)) == nil && w.nodes.planned[i].gone == 0:
		return int(w.roomOn(c, int(i)).free)
	}
	columns, d, reserved := w.columnsOf(c), &c.known.demand, w.keptFrom(c, int(i))
	total, used := w.amountsOn(int(i))
	slots, _ := d.countSlots(func(k int) int64 { return total[columns[k]] - used[columns[k]] - d.reservedOf(reserved, k) })
	return slots
}

// sumSlots returns how many pods of the class fit on the nodes. It is an upper bound. apart is the topology key over
// which the pods exclude each other, if this bounds the number.
func (w *Snapshot) sumSlots(c *class, nodes []int32, slots func(*class, int32) int) (n int, apart string) {
	for _, i := range nodes {
		n = min(n+slots(c, i), math.MaxInt32)
	}
	for _, top := range w.exclusiveTopologies(c) {
		used, bound := map[int32]bool{}, 0
		for _, i := range nodes {
			switch v, room := top.value[i], slots(c, i); {
			case v < 0:
				bound += room
			case room > 0 && !used[v]:
				used[v] = true
				bound++
			}
		}
		if bound < n {
			n, apart = bound, top.key
		}
	}
	return n, apart
}

// firstNames returns the names of the first two nodes, those with room for a pod of the class first.
func (w *Snapshot) firstNames(c *class, nodes []int32) []string {
	var roomy, others []string
	for _, i := range nodes {
		switch name := w.nodes.objects[i].Name; {
		case len(roomy) == 2:
			return roomy
		case w.freeSlots(c, i) > 0:
			roomy = append(roomy, name)
		case len(others) < 2:
			others = append(others, name)
		}
	}
	roomy = append(roomy, others...)
	return roomy[:min(2, len(roomy))]
}

// FormerNode describes a node on which a pod like those of the class ran.
func (w *Snapshot) FormerNode(index int, name string) podgroup.FormerNode {
	c, _ := w.classAt(index)
	w.findNodesOf(c)
	i, found := w.nodes.position[name]
	if !found {
		return podgroup.FormerNode{Name: name, Gone: true}
	}
	n := podgroup.FormerNode{Name: name, HasRoom: w.freeSlots(c, int32(i)) > 0}
	if n.Cause, n.Advice = w.whyClosed(c, i); n.Cause != "" {
		n.Advice = ofOneNode.Replace(n.Advice)
	}
	return n
}

// ofOneNode turns the advice of closed into that for one node.
var ofOneNode = strings.NewReplacer("uncordon them", "uncordon it", "bring them back", "bring it back")

// HeldByOthers implements podgroup.Capacities.
func (w *Snapshot) HeldByOthers(classes []int, name corev1.ResourceName) (held podgroup.Held) {
	uses, areas := make([][]nodeUse, len(classes)), make([]placement.Area, len(classes))
	nodes := w.nodes.all
	for k, index := range classes {
		var c *class
		c, areas[k] = w.classAt(index)
		w.findNodesOf(c)
		uses[k] = w.usesOf(c)
	}
	if len(classes) == 1 {
		nodes = w.areas[areas[0]].nodes
	}
	for _, i := range nodes {
		serves := false
		for k := range classes {
			if use := uses[k][i]; use.matches && !use.closed && w.isIn(areas[k], i) {
				serves = true
				break
			}
		}
		if !serves {
			continue
		}
		for _, p := range w.nodes.currentNode(int(i)).GetPods() {
			switch priority := corev1helpers.PodPriority(p.GetPod()); {
			case priority < w.priority:
				held.Lower += amountOf(p.CalculateResource().Resource, name)
			case priority > w.priority:
				held.Higher += amountOf(p.CalculateResource().Resource, name)
			}
		}
	}
	return held
}

// LevelNodes implements podgroup.Capacities.
func (w *Snapshot) LevelNodes(index int, level string) (inside, outside int) {
	c, _ := w.classAt(index)
	w.findNodesOf(c)
	uses := w.usesOf(c)
	for i, value := range w.nodes.topologyOf(level).value {
		switch {
		case !uses[i].matches || w.emptySlots(c, int32(i)) == 0:
		case value < 0:
			outside++
		default:
			inside++
		}
	}
	return inside, outside
}

// maxSelection bounds the part of a message that a tenant has written.
const maxSelection = 100

// selectionOf describes what restricts a pod to some nodes. "": nothing.
func selectionOf(pod *corev1.Pod) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		parts = append(parts, key+"="+pod.Spec.NodeSelector[key])
	}
	text := ""
	if len(parts) > 0 {
		text = "nodeSelector " + strings.Join(parts, ",")
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		if text != "" {
			text += " and "
		}
		text += "required node affinity"
	}
	return message.Truncate(text, maxSelection)
}
