// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
)

// World is a cluster of which the capacities are known.
type World interface {
	Capacities
	placement.World
}

// ExplainSurplus returns the reason why nothing above the minimum was placed. Every unit above it (a sub-group with the
// pods that it lacks, or a single pod of a satisfied sub-group) is independent of the others, so the dominant reason is
// the reason of the unit that is easiest to help. The methods of placement.World are not used if no group requires a
// topology level.
func ExplainSurplus(p, singles placement.Problem, world World) Refusal {
	known := &knownCapacities{Capacities: world, seen: map[int]ResourceCapacity{}}
	pinOf := func(string) (none placement.LevelShortfall) { return none }
	if hasLevels(p) {
		pinOf = placement.Pins(p, world)
	}
	single := surplusUnits(singles, known)
	units := slices.Clone(single)
	for _, u := range surplusUnits(p, known) {
		if !slices.ContainsFunc(single, func(other unit) bool { return other.group == u.group }) {
			units = append(units, u)
		}
	}
	refusal := Refusal{Reason: v2alpha2.ReasonWaitingForPods, NoNodeHelps: len(units) > 0}
	nodes := newAddedNodes(p, world)
	easiest := -1
	var parts []string
	for _, u := range units {
		reason, text := u.judgeUnit(known)
		pin := pinOf(u.group)
		if hasLevels(p) {
			for _, l := range known.unlabeledGroups(p.Tree.Group(u.group), p, nil) {
				if isNeeded(p.Tree.Group(l.Group), u.group) {
					pin = l
				}
			}
		}
		if in := known.describeDomain(p, u.group, pin); reason == v2alpha2.ReasonFragmented && in != "" {
			reason = v2alpha2.ReasonTopologyUnavailable
			if pin.Runs {
				switch inside, what := u.confine(world, pin.Domains[0].Area).judgeUnitRoom(known); inside {
				case "":
				case v2alpha2.ReasonNodesUnavailable:
					reason, text, in = inside, what, ""
				default:
					text, in = what, known.describePin(pin)
				}
			}
			text = strings.TrimSpace(text + " " + in)
		}
		text = pathOf(p.Tree, u.group) + " " + text
		if pin.Level != "" && known.hasNoDomain(pin) && severity(reason) > severity(v2alpha2.ReasonTooLarge) { // no room would help
			reason, text = v2alpha2.ReasonTopologyUnavailable, known.describeLevel(p.Tree, pin)
		}
		if s := severity(reason); s > easiest {
			easiest, refusal.Reason = s, reason
		}
		refusal.NoNodeHelps = refusal.NoNodeHelps && !nodes.mayHelp(p.Tree.Group(u.group), reason)
		if !slices.Contains(parts, text) { // a group of which several units are part
			parts = append(parts, text)
		}
	}
	if more := len(parts) - maxLeaves; more > 0 {
		parts = append(parts[:maxLeaves], fmt.Sprintf("and %d more", more))
	}
	refusal.Message = message.Shorten(strings.Join(parts, "; "), message.MaxCondition)
	return refusal
}

// unit contains pods that are placed above the minimum as a whole, in one or several leaves.
type unit struct {
	group string
	needs []need
	more  int // further pods of the leaf and class that would be placed singly
}

// need is a number of pods of one leaf and one class. Pods that do not exist yet are counted in missing, and their
// class is unknown.
type need struct {
	pods, missing, class int
}

// surplusUnits returns the waiting units, in spec order. If a unit could be completed in several ways, the one with
// the fewest pods is used.
func surplusUnits(p placement.Problem, world Capacities) []unit {
	if p.Tree == nil {
		return nil
	}
	var units []unit
	var visit func(g *gang.Group)
	visit = func(g *gang.Group) {
		switch {
		case !g.Satisfied(p.Have):
			if u := (unit{group: g.Name(), needs: needsOf(g, p, world)}); u.hasPods() {
				units = append(units, u)
			}
		case g.IsLeaf():
			for _, n := range countByClass(p.Pods[g.Name()]) {
				units = append(units, unit{group: g.Name(), needs: []need{{pods: 1, class: n.class}}, more: n.pods - 1})
			}
		default:
			for _, child := range g.Children() {
				visit(child)
			}
		}
	}
	visit(p.Tree.Root())
	return units
}

// needsOf returns the pods that a group still needs. For a leaf with more pods than needed these are the pods with
// the smallest requests.
func needsOf(g *gang.Group, p placement.Problem, world Capacities) []need {
	if g.IsLeaf() {
		lacks := max(0, g.Min()-p.Have[g.Name()])
		waiting := slices.Clone(p.Pods[g.Name()])
		slices.SortStableFunc(waiting, func(a, b placement.Pod) int {
			return cmp.Compare(world.ResourceCapacity(a.Class).PerPod, world.ResourceCapacity(b.Class).PerPod)
		})
		needs := countByClass(waiting[:min(lacks, len(waiting))])
		if missing := lacks - len(waiting); missing > 0 {
			needs = append(needs, need{pods: missing, missing: missing})
		}
		return needs
	}
	children := slices.Clone(g.Children())
	slices.SortStableFunc(children, func(a, b *gang.Group) int { return cmp.Compare(a.MissingPods(p.Have), b.MissingPods(p.Have)) })
	var all []need
	for _, child := range children[:g.Min()] {
		all = append(all, needsOf(child, p, world)...)
	}
	return all
}

// countByClass counts pods by class, in order of first appearance.
func countByClass(pods []placement.Pod) []need {
	var needs []need
	for _, pod := range pods {
		i := slices.IndexFunc(needs, func(n need) bool { return n.class == pod.Class })
		if i < 0 {
			i = len(needs)
			needs = append(needs, need{class: pod.Class})
		}
		needs[i].pods++
	}
	return needs
}

// hasPods reports whether any pod of the unit exists.
func (u unit) hasPods() bool {
	return slices.ContainsFunc(u.needs, func(n need) bool { return n.missing == 0 })
}

// judgeUnit returns the reason why the unit cannot be placed, and its numbers as text.
func (u unit) judgeUnit(world Capacities) (v2alpha2.Reason, string) {
	pods, missing, homeless := 0, 0, 0
	for _, n := range u.needs {
		pods, missing = pods+n.pods, missing+n.missing
		if n.missing == 0 && world.ResourceCapacity(n.class).Nodes == 0 {
			homeless += n.pods
		}
	}
	if missing > 0 {
		return v2alpha2.ReasonWaitingForPods, fmt.Sprintf("lacks %s that must be created first", message.Count(missing, "pod"))
	}
	for _, n := range u.needs {
		room := world.ResourceCapacity(n.class)
		reason := room.reasonFor(n.pods)
		if reason == v2alpha2.ReasonClaimsNotReady || reason == v2alpha2.ReasonNodesUnavailable || room.Refused != "" || room.offersNone() {
			return reason, "cannot be placed: " + room.explainHopeless(reason, "its pods")
		}
	}
	if homeless > 0 {
		text := fmt.Sprintf("needs %s, and no node matches", message.Count(pods+u.more, "pod"))
		if homeless < pods {
			text += fmt.Sprintf(" %d of them", homeless)
		}
		return v2alpha2.ReasonNoNodeMatches, text
	}
	if reason, text := u.judgeUnitRoom(world); reason != "" {
		return reason, text
	}
	return v2alpha2.ReasonFragmented, fmt.Sprintf("needs %s, and the room there is does not fit them", message.Count(pods+u.more, "pod"))
}

// judgeUnitRoom does the same for a unit whose pods exist and match nodes. "": the numbers alone do not say why.
func (u unit) judgeUnitRoom(world Capacities) (v2alpha2.Reason, string) {
	if text := u.closedRoom(world); text != "" {
		return v2alpha2.ReasonNodesUnavailable, "cannot be placed: " + text
	}
	if reason, text := u.judgeAmounts(world); reason != "" {
		return reason, text
	}
	if len(u.needs) == 1 {
		if text := world.ResourceCapacity(u.needs[0].class).piecesText(u.needs[0].pods + u.more); text != "" {
			return v2alpha2.ReasonFragmented, text
		}
	}
	return "", ""
}

// confine returns the unit with classes that may use an area only.
func (u unit) confine(world placement.World, area placement.Area) unit {
	u.needs = slices.Clone(u.needs)
	for i := range u.needs {
		u.needs[i].class = world.Within(u.needs[i].class, area)
	}
	return u
}

// requested is what the pods of a unit request of one resource, and what the nodes that they may use have of it.
type requested struct {
	asked, free, total int64
	pods, slots        int   // slots: on empty nodes
	oversized, largest int64 // request of a pod that fits no node, and the amount on the largest node; 0: all pods fit
	class              int   // that may use most of the free amount, and its capacity
	room               ResourceCapacity
}

// judgeAmounts returns why the amount of a resource is not sufficient for the pods of the unit; "": all amounts are.
func (u unit) judgeAmounts(world Capacities) (v2alpha2.Reason, string) {
	sums := map[corev1.ResourceName]*requested{}
	var order []corev1.ResourceName
	for _, n := range u.needs {
		if n.missing > 0 {
			continue
		}
		room := world.ResourceCapacity(n.class)
		if sums[room.Resource] == nil {
			sums[room.Resource] = &requested{}
			order = append(order, room.Resource)
		}
		s := sums[room.Resource]
		s.pods += n.pods
		if room.PerPod > room.Largest {
			s.oversized, s.largest = room.PerPod, room.Largest
		}
		if s.room.Nodes == 0 || room.Free > s.free {
			s.class, s.room = n.class, room
		}
		s.asked += room.PerPod * int64(n.pods)
		s.slots += room.Slots
		s.free, s.total = max(s.free, room.Free), max(s.total, room.Total)
	}
	for _, name := range order {
		s := sums[name]
		what := fmt.Sprintf("needs %s %s for %s", message.Quantity(name, s.asked), name, message.Count(s.pods, "pod"))
		if u.more > 0 {
			what = fmt.Sprintf("needs %s %s for each of %d pods", message.Quantity(name, s.asked), name, u.more+1)
		}
		switch {
		case s.oversized > 0:
			return v2alpha2.ReasonTooLarge, fmt.Sprintf("has pods that need %s %s each, the largest node they could use has %s",
				message.Quantity(name, s.oversized), name, message.Quantity(name, s.largest))
		case s.asked > s.total:
			return v2alpha2.ReasonTooLarge, fmt.Sprintf("%s, there are %s in all", what, message.Quantity(name, s.total))
		case s.pods > s.slots:
			return v2alpha2.ReasonTooLarge, fmt.Sprintf("%s, and the nodes it could use would hold only %d of them if they were empty", what, s.slots)
		case s.asked > s.free:
			return insufficientReason(name), what + ", " + s.room.freeText(s.free, world.HeldByOthers([]int{s.class}, name))
		}
	}
	return "", ""
}

// closedRoom describes the unavailable nodes with whose free room the unit would fit, as far as the numbers of each
// class tell. "": it would not, or there is room without them.
func (u unit) closedRoom(world Capacities) string {
	text := ""
	for _, n := range u.needs {
		r := world.ResourceCapacity(n.class)
		switch {
		case r.withUnavailable().SlotsNow < n.pods:
			return ""
		case r.SlotsNow < n.pods && text == "":
			text = r.unavailable()
		}
	}
	return text
}
