// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
)

// Explain converts a shortfall to one dominant reason and one sentence: which groups of the tree lack how much, and
// the reasons of the nodes, by number of nodes.
func Explain(p placement.Problem, world World, short *placement.Shortfall) Refusal {
	known := newKnownCapacities(world)
	blocked, levels := blockingLeaves(short.Leaves), known.withUnlabeled(p, short.Levels)
	j := judgeMinimum(p, levels, blocked, known)
	var parts []string
	if j.text != "" {
		parts = append(parts, j.text)
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
		if said == "" || said == j.nodes {
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
		parts = append(parts, fmt.Sprintf("no placement was found in %s", message.Count(short.Attempts, "attempt")))
	}
	return Refusal{
		Reason: j.reason, Message: message.Shorten(strings.Join(parts, "; "), message.MaxCondition),
		NoNodeHelps: !newAddedNodes(p, world).mayHelp(p.Tree.Root(), j.reason),
	}
}

// judgeMinimum returns the dominant reason and the text about it. levels are those that miss their minimum.
func judgeMinimum(p placement.Problem, levels []placement.LevelShortfall, blocked []placement.LeafShortfall,
	known *knownCapacities) judgement {
	if !slices.ContainsFunc(blocked, func(l placement.LeafShortfall) bool { return l.Refusal != nil }) {
		return judgement{reason: v2alpha2.ReasonWaitingForPods}
	}
	if !slices.ContainsFunc(levels, known.hasNoDomain) {
		return newTogether(p, known, blocked, levels).judge()
	}
	p.Required, p.Nodes = nil, nil // no room would help
	j := newTogether(p, known, blocked, nil).judge()
	if severity(j.reason) > severity(v2alpha2.ReasonTooLarge) {
		return judgement{reason: v2alpha2.ReasonTopologyUnavailable}
	}
	return j
}

// asked is the amount of one resource that a number of pods request.
type asked struct {
	amount  int64
	pods    int
	missing int // further required pods that do not exist yet
}

// leastAsked returns the minimum amount of a resource that a group still requests until it is satisfied: that of the
// children that lack no pods and request the least. waiting are its pods, and request is the amount that a pod of a
// class requests.
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

// listFilterReasons lists the filter reasons, the most frequent one first. "": no node was filtered, or none refused;
// the numbers are then sufficient.
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
