// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"slices"
	"strings"

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
	known := newKnownCapacities(world)
	pinOf := func(string) (none placement.LevelShortfall) { return none }
	if hasLevels(p) {
		pinOf = placement.Pins(p, world)
	}
	units := surplusUnits(singles)
	single := len(units)
	for _, u := range surplusUnits(p) {
		if !slices.ContainsFunc(units[:single], func(other unit) bool { return other.group == u.group }) {
			units = append(units, u)
		}
	}
	refusal := Refusal{Reason: v2alpha2.ReasonWaitingForPods, NoNodeHelps: len(units) > 0}
	nodes := newAddedNodes(p, world)
	easiest, more := -1, 0
	var parts []string
	reasons := map[string]v2alpha2.Reason{} // by shape, with where the pods must be
	for _, u := range units {
		pin := pinOf(u.group)
		shape, in := u.shape(p), known.describeDomain(p, u.group, pin)
		reason, judged := reasons[shape+in]
		text := ""
		if u.isTold = len(parts) < maxLeaves; u.isTold || !judged && len(reasons) < maxUnits {
			reason, text = known.judgeUnit(u, p, shape, in, pin)
			reasons[shape+in], judged = reason, true
		}
		switch {
		case slices.Contains(parts, text): // a group of which several units are part
		case len(parts) < maxLeaves:
			parts = append(parts, text)
		default:
			more++
		}
		if !judged {
			continue
		}
		if s := severity(reason); s > easiest {
			easiest, refusal.Reason = s, reason
		}
		refusal.NoNodeHelps = refusal.NoNodeHelps && !nodes.mayHelp(p.Tree.Group(u.group), reason)
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	refusal.Message = message.Shorten(strings.Join(parts, clauses), message.MaxCondition)
	return refusal
}

// unit contains pods that are placed above the minimum as a whole.
type unit struct {
	group string
	// alone is a problem of which they are the minimum. Its root is the group, and no level is required.
	alone placement.Problem
	more  int // further pods of the leaf and class that would be placed singly
	// isTold: the text about the unit is needed.
	isTold bool
}

// maxUnits is how many units of different shapes are judged: each visits all nodes.
const maxUnits = 64

// shape is equal for units of a gang that would be refused for the same reason if their pods could be anywhere.
func (u unit) shape(p placement.Problem) string {
	text := ""
	for _, g := range append([]*gang.Group{u.alone.Tree.Root()}, u.alone.Tree.Groups()...) {
		text += fmt.Sprint(";", len(g.Children()), g.Min(), u.alone.Have[g.Name()], countByClass(u.alone.Pods[g.Name()]), p.Required[g.Name()])
	}
	return text
}

// need is a number of pods of one leaf and one class.
type need struct{ pods, class int }

// surplusUnits returns the waiting units, in spec order.
func surplusUnits(p placement.Problem) []unit {
	if p.Tree == nil {
		return nil
	}
	var units []unit
	var visit func(g *gang.Group)
	visit = func(g *gang.Group) {
		switch {
		case !g.Satisfied(p.Have):
			if u := (unit{group: g.Name(), alone: subproblem(p, g)}); len(u.alone.Pods) > 0 {
				units = append(units, u)
			}
		case g.IsLeaf():
			for _, n := range countByClass(p.Pods[g.Name()]) {
				one := placement.Problem{Tree: singlePod, Pods: map[string][]placement.Pod{"": {{Class: n.class}}}}
				units = append(units, unit{group: g.Name(), alone: one, more: n.pods - 1})
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

// singlePod is the tree of a gang of one pod.
var singlePod, _ = gang.Build(gang.Node{}, nil)

// subproblem returns the problem of a group by itself: its pods, wherever they are.
func subproblem(p placement.Problem, g *gang.Group) placement.Problem {
	sub := placement.Problem{Tree: g.Subtree(), Have: gang.Counts{}, Pods: map[string][]placement.Pod{}}
	for _, leaf := range leavesBelow(g) {
		name := leaf
		if leaf == g.Name() {
			name = ""
		}
		sub.Have[name] = p.Have[leaf]
		if pods := p.Pods[leaf]; len(pods) > 0 {
			sub.Pods[name] = pods
		}
	}
	return sub
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

// judgeUnit returns the reason why the unit cannot be placed, and a text about it that begins with the name of its
// group. p is the problem of the gang, and pin what is known about the domain of the group, in a text about it.
func (k *knownCapacities) judgeUnit(u unit, p placement.Problem, shape, in string, pin placement.LevelShortfall) (v2alpha2.Reason, string) {
	who := pathOf(p.Tree, u.group)
	created := gang.Counts{}
	for leaf, pods := range u.alone.Pods {
		created[leaf] = len(pods)
	}
	for leaf, pods := range u.alone.Have {
		created[leaf] += pods
	}
	if missing := u.alone.Tree.MissingPods(created); missing > 0 {
		return v2alpha2.ReasonWaitingForPods, fmt.Sprintf("%s lacks %s that must be created first", who, message.Count(missing, "pod"))
	}
	if hasLevels(p) {
		for _, l := range k.unlabeledGroups(p.Tree.Group(u.group), p, nil) {
			if isNeeded(p.Tree.Group(l.Group), u.group) {
				pin = l
			}
		}
	}
	j := judgement{reason: v2alpha2.ReasonFragmented}
	if !pin.Runs || !k.fragmented[shape] {
		j = k.judgeAlone(u, p.Tree)
		k.fragmented[shape] = j.reason == v2alpha2.ReasonFragmented
	}
	switch {
	case pin.Level != "" && k.hasNoDomain(pin) && severity(j.reason) > severity(v2alpha2.ReasonTooLarge): // no room would help
		return v2alpha2.ReasonTopologyUnavailable, k.describeLevel(p.Tree, pin)
	case j.reason != v2alpha2.ReasonFragmented || in == "":
		return j.reason, j.text
	}
	reason := v2alpha2.ReasonTopologyUnavailable
	if pin.Runs {
		inside := u.confine(k, pin.Domains[0].Area)
		if !u.isTold && !k.meetsClosed(inside) {
			return reason, ""
		}
		j, in = k.judgeAlone(inside, p.Tree), k.describePin(pin)
		if j.reason == v2alpha2.ReasonNodesUnavailable {
			reason = j.reason
		}
	}
	return reason, j.text + " " + in
}

// confine returns the unit with classes that may use an area only.
func (u unit) confine(world placement.World, area placement.Area) unit {
	all := u.alone.Pods
	u.alone.Pods = make(map[string][]placement.Pod, len(all))
	for leaf, pods := range all {
		for _, pod := range pods {
			pod.Class = world.Within(pod.Class, area)
			u.alone.Pods[leaf] = append(u.alone.Pods[leaf], pod)
		}
	}
	return u
}

// meetsClosed reports whether closed nodes could take pods of the unit.
func (k *knownCapacities) meetsClosed(u unit) bool {
	for class := range podsPerClass(u.alone) {
		if len(k.ResourceCapacity(class).Unavailable) > 0 {
			return true
		}
	}
	return false
}

// judgeAlone returns why the unit cannot be placed as if no level were required.
func (k *knownCapacities) judgeAlone(u unit, tree *gang.Tree) judgement {
	var blocked []placement.LeafShortfall
	if classes := podsPerClass(u.alone); len(classes) == 1 {
		for class := range classes {
			blocked = []placement.LeafShortfall{{Class: class, Need: u.alone.Tree.MissingPods(u.alone.Have) + u.more, Refusal: &placement.Refusal{}}}
		}
	}
	t := newTogether(u.alone, k, blocked, nil)
	t.who, t.whole, t.more = pathOf(tree, u.group), tree, u.more
	j := t.judge()
	switch {
	case j.text == "":
		j.text = fmt.Sprintf("%s needs %s, and the room there is does not fit them", t.who, message.Count(t.leastPods+u.more, "pod"))
	case !strings.HasPrefix(j.text, t.who+" needs "):
		j.text = t.who + " cannot be placed: " + j.text
	}
	return j
}
