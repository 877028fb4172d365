// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
)

// Explain converts a shortfall to one dominant reason and one sentence: which groups of the tree lack how much, and
// the reasons of the nodes, by number of nodes.
func Explain(p placement.Problem, world World, short *placement.Shortfall) Refusal {
	known := &knownCapacities{Capacities: world, seen: map[int]ResourceCapacity{}}
	blocked, levels := blockingLeaves(short.Leaves), known.withUnlabeled(p, short.Levels)
	reason, text, reported := judgeMinimum(p, levels, blocked, known)
	var parts []string
	if text != "" {
		parts = append(parts, text)
	}
	parts = append(parts, describeLevels(p.Tree, levels, known)...)
	for i, g := range short.Groups {
		if i == 0 {
			parts = append(parts, fmt.Sprintf("%s: %d of the %d sub-groups it needs can be placed", pathOf(p.Tree, g.Group), g.Can, g.Need))
		} else if !isToldByLeaf(p.Tree, g, blocked) {
			parts = append(parts, fmt.Sprintf("%s: %d of %d", pathOf(p.Tree, g.Group), g.Can, g.Need))
		}
	}
	for i, l := range blocked {
		if l.Leaf != "" || l.Placed > 0 || len(parts) == 0 { // that nothing of the whole gang fits follows from what was said
			parts = append(parts, describeLeaf(p.Tree, l))
		}
		// Adjacent leaves often have the same reasons of the nodes: these are written once, after the last such leaf.
		said := listFilterReasons(l.Refusal)
		if said == "" || said == reported {
			continue
		}
		if i == len(blocked)-1 || listFilterReasons(blocked[i+1].Refusal) != said {
			parts = append(parts, said)
		}
	}
	switch {
	case short.Cut:
		parts = append(parts, fmt.Sprintf("the search was cut short after %s and goes on", message.Count(short.Attempts, "attempt")))
	case !short.Exhausted:
		parts = append(parts, fmt.Sprintf("the search ended after %s", message.Count(short.Attempts, "attempt")))
	}
	return Refusal{
		Reason: reason, Message: message.Shorten(strings.Join(parts, "; "), message.MaxCondition),
		NoNodeHelps: !newAddedNodes(p, world).mayHelp(p.Tree.Root(), reason),
	}
}

// judgeMinimum returns the dominant reason, and the text about it that comes first; reported is the part of the text that
// contains the reasons of the nodes. levels are those that miss their minimum.
func judgeMinimum(p placement.Problem, levels []placement.LevelShortfall, blocked []placement.LeafShortfall, known *knownCapacities) (reason v2alpha2.Reason, text, reported string) {
	if reason = dominantReason(blocked, known); reason == v2alpha2.ReasonWaitingForPods {
		return reason, "", ""
	}
	if !slices.ContainsFunc(levels, known.hasNoDomain) {
		return judgeRoom(reason, p, levels, blocked, known)
	}
	p.Required, p.Nodes = nil, nil // no room would help
	reason, text, reported = judgeRoom(reason, p, nil, blocked, known)
	if severity(reason) > severity(v2alpha2.ReasonTooLarge) {
		return v2alpha2.ReasonTopologyUnavailable, "", ""
	}
	return reason, text, reported
}

// judgeRoom does the same for a gang that has enough pods, and whose groups with a required topology level have domains. reason is
// the dominant one of its leaves. levels are those that miss their minimum.
func judgeRoom(reason v2alpha2.Reason, p placement.Problem, levels []placement.LevelShortfall, blocked []placement.LeafShortfall, known *knownCapacities) (_ v2alpha2.Reason, text, reported string) {
	ofLeaf, text, reported := describeHopelessLeaf(p.Tree, blocked, known)
	if t := newTogether(p, known); t != nil {
		t.levels = levels
		exact, whole := t.judgeTogether(blocked)
		if text != "" && exact == ofLeaf {
			return exact, text, reported
		}
		return exact, whole, ""
	}
	if text != "" {
		return reason, text, reported
	}
	// Each leaf alone may have enough room while all of them together do not.
	// And a leaf that is too large may be one that the gang can do without.
	if whole, text := judgeWhole(p, known); whole != "" {
		if severity(whole) < severity(reason) || reason == v2alpha2.ReasonTooLarge && placement.MayFit(p, known.slotsWhenEmpty) {
			reason = whole
		}
		return reason, text, ""
	}
	text = describeFragmentation(p.Tree, blocked, known)
	if reason == v2alpha2.ReasonFragmented && text == "" && len(levels) > 0 {
		reason = v2alpha2.ReasonTopologyUnavailable
	}
	return reason, text, ""
}

// describeHopelessLeaf describes a leaf whose pods would not fit even if more of the existing nodes were free: they are refused
// regardless of the nodes, no node matches them, or one pod requests more than the largest node has. This comes
// first, with the action that would help, because the list of groups may be long. reported is the part of the text that
// contains the reasons of the nodes, and reason that of the leaf. "": there is no such leaf.
func describeHopelessLeaf(tree *gang.Tree, leaves []placement.LeafShortfall, world Capacities) (reason v2alpha2.Reason, text, reported string) {
	worst := len(reasonsBySeverity)
	for _, l := range leaves {
		if l.Refusal == nil {
			continue
		}
		where, r := pathOf(tree, l.Leaf), world.ResourceCapacity(l.Class)
		of := r.reasonFor(1)
		if severity(of) >= worst {
			continue
		}
		said := listFilterReasons(l.Refusal)
		switch t := r.explainHopeless(of, "the pods of "+where); {
		case t != "":
			text, reported = t, ""
			if r.Refused != "" {
				reported = said
			}
		case of == v2alpha2.ReasonNoNodeMatches:
			text, reported = "no node matches a pod of "+where, said
			if r.Selection != "" {
				text += " (" + r.Selection + ")"
			}
			if said != "" {
				text += ": " + said
			}
		case r.PerPod > r.Largest:
			text, reported = fmt.Sprintf("a pod of %s needs %s %s, the largest node it could use has %s",
				where, message.Quantity(r.Resource, r.PerPod), r.Resource, message.Quantity(r.Resource, r.Largest)), ""
		default:
			continue
		}
		worst, reason = severity(of), of
	}
	return reason, text, reported
}

// judgeWhole checks whether the pods that the minimum lacks request more of a resource than is free, for any choice
// of children, or more than the nodes could take. "": they do not.
func judgeWhole(p placement.Problem, known *knownCapacities) (v2alpha2.Reason, string) {
	room := known.ResourceCapacity
	var order []corev1.ResourceName
	for _, leaf := range p.Tree.Leaves() {
		for _, pod := range p.Pods[leaf.Name()] {
			if name := room(pod.Class).Resource; !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
	}
	reason, text := v2alpha2.Reason(""), ""
	waiting := waitingByClass(p)
	now := func(class int) int { return room(class).SlotsNow }
	whenOpen := func(class int) int { return room(class).withUnavailable().SlotsNow }
	wouldFit := placement.MayFit(p, whenOpen) && !placement.MayFit(p, now)
	for _, name := range order {
		free, total := int64(0), int64(0)
		widest := -1 // the class that may use most of the free amount
		for _, class := range slices.Sorted(maps.Keys(known.seen)) {
			if r := known.seen[class]; r.Resource == name { // some classes may use more nodes than others
				if widest < 0 || r.Free > free {
					widest = class
				}
				free, total = max(free, r.Free), max(total, r.Total)
			}
		}
		asked := leastAsked(p.Tree.Root(), p.Have, waiting, func(class int) int64 {
			if r := room(class); r.Resource == name {
				return r.PerPod
			}
			return 0
		})
		what := fmt.Sprintf("the gang needs %s %s for %s", message.Quantity(name, asked.amount), name, message.Count(asked.pods, "pod"))
		closed := known.mostUnavailable(name)
		opened := closed.withUnavailable()
		helps := wouldFit && asked.amount <= opened.Free // opening nodes; as far as this resource is concerned
		switch {
		case asked.amount > total && asked.amount <= opened.Total:
			return v2alpha2.ReasonNodesUnavailable, fmt.Sprintf("%s; %s, the other nodes it could use have %s in all", closed.unavailable(), what, message.Quantity(name, total))
		case asked.amount > total:
			return v2alpha2.ReasonTooLarge, fmt.Sprintf("%s, the nodes it could use have %s in all", what, message.Quantity(name, total))
		case helps && opened.Free > closed.Free && reason == "":
			reason, text = v2alpha2.ReasonNodesUnavailable, fmt.Sprintf("%s; %s, the other nodes it could use have %s free%s", closed.unavailable(), what, message.Quantity(name, free), known.seen[widest].largestText())
		case asked.amount > free && !helps && (reason == "" || reason == v2alpha2.ReasonNodesUnavailable):
			reason, text = insufficientReason(name), what+", "+known.seen[widest].freeText(free, known.HeldByOthers([]int{widest}, name))
		}
	}
	if whole, why := judgeEmpty(p, known); whole != "" {
		return whole, why
	}
	return reason, text
}

// describeFragmentation describes the first leaf for whose pods the free room is enough, but not in pieces of their size. "": there is
// none.
func describeFragmentation(tree *gang.Tree, blocked []placement.LeafShortfall, known *knownCapacities) string {
	for _, l := range blocked {
		if l.Refusal == nil {
			continue
		}
		if text := known.ResourceCapacity(l.Class).piecesText(l.Need); text != "" {
			return pathOf(tree, l.Leaf) + " " + text
		}
	}
	return ""
}

// judgeEmpty checks whether the nodes could not take the minimum even if they were empty: the total is sufficient,
// but not in pieces of the size of a pod. "": they could.
func judgeEmpty(p placement.Problem, known *knownCapacities) (v2alpha2.Reason, string) {
	slots := func(class int) int { return known.ResourceCapacity(class).Slots }
	if placement.MayFit(p, slots) || !placement.MayFit(p, func(int) int { return math.MaxInt }) {
		return "", ""
	}
	waiting := podsPerClass(p)
	opened := func(class int) int { return known.ResourceCapacity(class).withUnavailable().Slots }
	reason, nodes := v2alpha2.ReasonTooLarge, "the nodes"
	if placement.MayFit(p, opened) {
		reason, nodes = v2alpha2.ReasonNodesUnavailable, "the other nodes"
	}
	var rooms, parts []string
	for _, class := range slices.Sorted(maps.Keys(waiting)) {
		r := known.ResourceCapacity(class)
		if r.Slots >= waiting[class] || len(rooms) == maxLeaves {
			continue
		}
		rooms = append(rooms, fmt.Sprintf("%s of %s %s", message.Count(r.Slots, "pod"), message.Quantity(r.Resource, r.PerPod), r.Resource))
		if r.Apart != "" {
			rooms[len(rooms)-1] += fmt.Sprintf(" (their podAntiAffinity over %s excludes more)", r.Apart)
		}
		if closed := r.unavailable(); closed != "" && reason == v2alpha2.ReasonNodesUnavailable && !slices.Contains(parts, closed) {
			parts = append(parts, closed)
		}
	}
	parts = append(parts, fmt.Sprintf("the gang needs %s, and %s it could use would hold only %s if they were empty",
		message.Count(p.Tree.MissingPods(p.Have), "pod"), nodes, strings.Join(rooms, ", ")))
	return reason, strings.Join(parts, "; ")
}

// asked is the amount of one resource that a number of pods request.
type asked struct {
	amount  int64
	pods    int
	missing int // further required pods that do not exist yet
}

// leastAsked returns the minimum amount of a resource that a group still requests until it is satisfied: that of the
// children that lack no pods and request the least. waiting are its pods, and request is the amount that a pod of a class
// requests.
func leastAsked(g *gang.Group, have gang.Counts, waiting map[string][]need, request func(class int) int64) asked {
	sum := asked{}
	if g.IsLeaf() {
		take := max(0, g.Min()-have[g.Name()])
		pods := slices.Clone(waiting[g.Name()])
		slices.SortStableFunc(pods, func(a, b need) int { return cmp.Compare(request(a.class), request(b.class)) })
		for _, n := range pods {
			taken := min(n.pods, take)
			if amount := request(n.class); amount > 0 {
				sum.amount, sum.pods = sum.amount+amount*int64(taken), sum.pods+taken
			}
			take -= taken
		}
		sum.missing = take
		return sum
	}
	each := make([]asked, 0, len(g.Children()))
	for _, child := range g.Children() {
		each = append(each, leastAsked(child, have, waiting, request))
	}
	slices.SortStableFunc(each, func(a, b asked) int {
		return cmp.Or(cmp.Compare(a.missing, b.missing), cmp.Compare(a.amount, b.amount))
	})
	for _, a := range each[:g.Min()] {
		sum.amount, sum.pods, sum.missing = sum.amount+a.amount, sum.pods+a.pods, sum.missing+a.missing
	}
	return sum
}

// podsPerClass returns the number of waiting pods of each class.
func podsPerClass(p placement.Problem) map[int]int {
	pods := map[int]int{}
	for _, leaf := range p.Tree.Leaves() {
		for _, pod := range p.Pods[leaf.Name()] {
			pods[pod.Class]++
		}
	}
	return pods
}

// waitingByClass returns the waiting pods of each leaf.
func waitingByClass(p placement.Problem) map[string][]need {
	waiting := make(map[string][]need, len(p.Pods))
	for leaf, pods := range p.Pods {
		waiting[leaf] = countByClass(pods)
	}
	return waiting
}

// maxLeaves is the maximum number of leaves that a message names.
const maxLeaves = 3

// blockingLeaves returns the leaves that a message names: leaves refused by nodes first, in spec order.
func blockingLeaves(leaves []placement.LeafShortfall) []placement.LeafShortfall {
	refused := slices.DeleteFunc(slices.Clone(leaves), func(l placement.LeafShortfall) bool { return l.Refusal == nil })
	lacking := slices.DeleteFunc(slices.Clone(leaves), func(l placement.LeafShortfall) bool { return l.Refusal != nil })
	out := append(refused, lacking...)
	return out[:min(len(out), maxLeaves)]
}

// isToldByLeaf reports whether nothing of the group can be placed because of a leaf below it that is named.
func isToldByLeaf(tree *gang.Tree, g placement.GroupShortfall, named []placement.LeafShortfall) bool {
	return g.Can == 0 && slices.ContainsFunc(named, func(l placement.LeafShortfall) bool { return isBelow(tree, l.Leaf, g.Group) })
}

func describeLeaf(tree *gang.Tree, l placement.LeafShortfall) string {
	where := pathOf(tree, l.Leaf)
	if l.Refusal == nil {
		return fmt.Sprintf("%s has %d of the %d pods it still needs", where, l.Available, l.Need)
	}
	return fmt.Sprintf("%s: %d of %d pods can be placed", where, l.Placed, l.Need)
}

// maxReasons is the maximum number of filter reasons per leaf.
const maxReasons = 3

// listFilterReasons lists the filter reasons, the most frequent one first. "": no node was filtered, or none refused; the
// numbers are then sufficient.
func listFilterReasons(r *placement.Refusal) string {
	if r == nil || len(r.Reasons) == 0 {
		return ""
	}
	reasons := slices.SortedFunc(maps.Keys(r.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Reasons[b], r.Reasons[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, why := range reasons[:min(len(reasons), maxReasons)] {
		parts = append(parts, fmt.Sprintf("%s: %s", message.Count(r.Reasons[why], "node"), why))
	}
	return strings.Join(parts, ", ")
}

// pathOf returns the name of a group of the tree for messages: the names from below the root down to the group,
// "decode/workers", without those with which the next name begins anyway. The groups of a PodCliqueSet have the full
// names of its objects, so "chat-0-decode-1-workers" is sufficient.
func pathOf(tree *gang.Tree, name string) string {
	g := tree.Group(name)
	if g == nil || name == "" {
		return "the gang"
	}
	path := name
	for p := g.Parent(); p.Parent() != nil; p = p.Parent() {
		if !strings.HasPrefix(path, p.Name()+"-") {
			path = p.Name() + "/" + path
		}
	}
	return path
}

// dominantReason returns the most severe reason among the leaves that block the gang.
func dominantReason(blocked []placement.LeafShortfall, world Capacities) v2alpha2.Reason {
	worst := v2alpha2.Reason("")
	for _, l := range blocked {
		if l.Refusal == nil {
			continue
		}
		r := world.ResourceCapacity(l.Class).reasonFor(l.Need)
		if worst == "" || severity(r) < severity(worst) {
			worst = r
		}
	}
	if worst == "" {
		return v2alpha2.ReasonWaitingForPods
	}
	return worst
}
