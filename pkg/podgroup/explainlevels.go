// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/placement"
)

// hasLevels reports whether a group of the problem requires a topology level.
func hasLevels(p placement.Problem) bool {
	for _, level := range p.Required {
		if level != "" {
			return true
		}
	}
	return false
}

// LevelName returns the name of a topology level in messages: what follows the last slash of the key of its innermost
// label, "rack" for topology.example.com/rack. A domain of kubernetes.io/hostname is a "node".
func LevelName(level string) string {
	if isNode(level) {
		return "node"
	}
	return labelName(level[strings.LastIndex(level, ",")+1:])
}

// labelName returns what follows the last slash of the key of a label.
func labelName(key string) string { return key[strings.LastIndex(key, "/")+1:] }

// domainName returns the name of a domain, in quotes if it is empty.
func (k *knownCapacities) domainName(a placement.Area) string {
	_, value := k.AreaName(a)
	if value == "" {
		return `""`
	}
	return value
}

// hasNoDomain reports whether no room would help the group: no node that can run its pods is in a domain of the level,
// or pods of the group do not run in one.
func (k *knownCapacities) hasNoDomain(l placement.LevelShortfall) bool {
	return l.Torn || l.Gone || k.isUnlabeled(l)
}

// isUnlabeled reports whether all nodes that can run pods of the class lack a label of the level.
func (k *knownCapacities) isUnlabeled(l placement.LevelShortfall) bool {
	inside, outside := k.LevelNodes(l.Class, l.Level)
	return inside == 0 && outside > 0
}

// withUnlabeled returns the groups that miss a topology level, and before them those of whose level no node has the
// label, if the other groups would not do on empty nodes. The search need not have got to them: where nothing is free
// it ends before it asks for domains.
func (k *knownCapacities) withUnlabeled(p placement.Problem, levels []placement.LevelShortfall) []placement.LevelShortfall {
	if !hasLevels(p) || slices.ContainsFunc(levels, k.hasNoDomain) {
		return levels
	}
	others := p
	others.Pods = maps.Clone(p.Pods)
	unlabeled := k.unlabeledGroups(p.Tree.Root(), p, others.Pods)
	if unlabeled == nil || placement.MayFit(others, k.slotsWhenEmpty) {
		return levels
	}
	return append(unlabeled, levels...)
}

// slotsWhenEmpty returns how many pods of the class the nodes could take if they were empty and available.
func (k *knownCapacities) slotsWhenEmpty(class int) int {
	return k.ResourceCapacity(class).withUnavailable().Slots
}

// unlabeledGroups returns the groups from the given one down that are not satisfied and require a level of which no
// node that can run their pods has the label, and removes their pods from others. A group below such a group is left
// out.
func (k *knownCapacities) unlabeledGroups(g *gang.Group, p placement.Problem, others map[string][]placement.Pod) []placement.LevelShortfall {
	if level := p.Required[g.Name()]; level != "" && !g.Satisfied(p.Have) {
		l := placement.LevelShortfall{Group: g.Name(), Level: level, Pods: g.MissingPods(p.Have)}
		leaves, pods := leavesBelow(g), 0
		for _, leaf := range leaves {
			pods += len(p.Pods[leaf])
		}
		isUnlabeled := pods > 0 && !slices.ContainsFunc(leaves, func(leaf string) bool {
			return slices.ContainsFunc(countByClass(p.Pods[leaf]), func(n need) bool {
				l.Class = n.class
				return !k.isUnlabeled(l)
			})
		})
		if isUnlabeled {
			for _, leaf := range leaves {
				delete(others, leaf)
			}
			return []placement.LevelShortfall{l}
		}
	}
	var list []placement.LevelShortfall
	for _, child := range g.Children() {
		list = append(list, k.unlabeledGroups(child, p, others)...)
	}
	return list
}

// isNeeded reports whether the group above, or the same group, cannot do without the group.
func isNeeded(g *gang.Group, above string) bool {
	for ; g.Name() != above; g = g.Parent() {
		if int(g.Parent().Min()) < len(g.Parent().Children()) {
			return false
		}
	}
	return true
}

// leavesBelow returns the names of the leaves of a group, its own if it is one.
func leavesBelow(g *gang.Group) []string {
	if g.IsLeaf() {
		return []string{g.Name()}
	}
	var leaves []string
	for _, child := range g.Children() {
		leaves = append(leaves, leavesBelow(child)...)
	}
	return leaves
}

// describeLevels describes the groups that have no domain of the topology level that they require, each with the
// domains with the most room. A group is left out if one below it tells more.
func describeLevels(tree *gang.Tree, levels []placement.LevelShortfall, known *knownCapacities) []string {
	var parts []string
	for _, l := range levels {
		if len(parts) == maxLeaves || isToldByAnother(tree, l, levels) {
			continue
		}
		parts = append(parts, known.describeLevel(tree, l))
	}
	for _, l := range levels {
		if known.hasNoDomain(l) {
			continue
		}
		_, outside := known.LevelNodes(l.Class, l.Level)
		text := fmt.Sprintf("%s without %s %s outside", message.Count(outside, "node"), labelsOf(l.Level), message.Plural(outside, "is", "are"))
		if outside > 0 && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return parts
}

// isToldByAnother reports whether the group lacks nothing but what a group below it lacks, or cannot be completed
// because one above it cannot.
func isToldByAnother(tree *gang.Tree, l placement.LevelShortfall, levels []placement.LevelShortfall) bool {
	return slices.ContainsFunc(levels, func(other placement.LevelShortfall) bool {
		if l.Torn {
			return other.Torn && isBelow(tree, l.Group, other.Group)
		}
		return roomSuffices(l) && isBelow(tree, other.Group, l.Group)
	})
}

// isBelow reports whether a group is below another one.
func isBelow(tree *gang.Tree, group, other string) bool {
	for g := tree.Group(group).Parent(); g != nil; g = g.Parent() {
		if g.Name() == other {
			return true
		}
	}
	return false
}

// roomSuffices reports whether a domain has room for the pods of the class that the group needs: something else refuses
// them.
func roomSuffices(l placement.LevelShortfall) bool {
	return len(l.Domains) > 0 && l.Domains[0].Pods >= l.Need
}

// describeLevel describes why no domain takes what the group lacks: "no rack has room for decode (8 pods of 8
// nvidia.com/gpu): rack r7 has room for 6, r3 for 4, and 41 others for no more".
func (k *knownCapacities) describeLevel(tree *gang.Tree, l placement.LevelShortfall) string {
	where, name := pathOf(tree, l.Group), LevelName(l.Level)
	if l.Torn {
		return fmt.Sprintf("the pods of %s do not run in one %s, which it requires: no pod is added until they are deleted and start together", where, name)
	}
	if l.Gone {
		return fmt.Sprintf("the pods of %s that run are on nodes that are gone: until they are deleted, it is not known in which %s it may have more", where, name)
	}
	if k.isUnlabeled(l) {
		_, outside := k.LevelNodes(l.Class, l.Level)
		return fmt.Sprintf("no node for %s has %s: label the nodes (%d without), since it requires one %s", where, labelsOf(l.Level), outside, name)
	}
	amounts := ""
	if roomSuffices(l) {
		amounts = "by amounts alone, "
	}
	if l.Runs && len(l.Domains) > 0 {
		pods, in := k.podsText(l, "more pod"), k.describePin(l)
		if r := k.ResourceCapacity(l.Confined); r.PerPod*int64(l.Need) > r.Free {
			return fmt.Sprintf("%s needs %s more %s %s, for %s: there is room for %d", where, message.Quantity(r.Resource, r.PerPod*int64(l.Need)-r.Free),
				r.Resource, in, pods, l.Domains[0].Pods)
		}
		return fmt.Sprintf("%s needs room for %s %s: %sthere is room for %d", where, pods, in, amounts, l.Domains[0].Pods)
	}
	text := fmt.Sprintf("no %s has room for %s (%s)", name, where, k.podsText(l, "pod"))
	if roomSuffices(l) {
		text = fmt.Sprintf("no %s takes %s (%s)", name, where, k.podsText(l, "pod"))
	}
	var rooms []string
	for i, d := range l.Domains {
		switch {
		case d.Pods == 0:
		case i == 0:
			rooms = append(rooms, fmt.Sprintf("%s%s %s has room for %d", amounts, name, k.domainName(d.Area), d.Pods))
		default:
			rooms = append(rooms, fmt.Sprintf("%s for %d", k.domainName(d.Area), d.Pods))
		}
	}
	switch others := len(l.Domains) + l.Others - len(rooms); {
	case len(rooms) == 0 && others > 0:
		return fmt.Sprintf("%s: none of %d has room for one", text, others)
	case len(rooms) == 0:
		return text
	case others > 0:
		rooms = append(rooms, fmt.Sprintf("and %s for no more", message.Count(others, "other")))
	}
	return text + ": " + strings.Join(rooms, ", ")
}

// describeDomain describes where the pods of a group must be: "in rack r7, where it runs" if this follows from a pin,
// otherwise by the innermost topology level that it, or a group above it, requires: "in one rack", or "in the rack of
// decode". "": anywhere.
func (k *knownCapacities) describeDomain(p placement.Problem, group string, pin placement.LevelShortfall) string {
	for g := p.Tree.Group(group); g != nil; g = g.Parent() {
		switch level := p.Required[g.Name()]; {
		case level == "":
		case pin.Runs && pin.Group == g.Name():
			return k.describePin(pin)
		case g.Name() == group:
			return "in one " + LevelName(level)
		default:
			return fmt.Sprintf("in the %s of %s", LevelName(level), pathOf(p.Tree, g.Name()))
		}
	}
	return ""
}

// describePin describes the only domain of a group of which pods run: "in rack r7, where it runs".
func (k *knownCapacities) describePin(l placement.LevelShortfall) string {
	return fmt.Sprintf("in %s %s, where it runs", LevelName(l.Level), k.domainName(l.Domains[0].Area))
}

// podsText describes how many pods a group lacks, and how large the heaviest are: "8 pods of 8 nvidia.com/gpu", or
// "8 pods, 4 of them of 8 nvidia.com/gpu".
func (k *knownCapacities) podsText(l placement.LevelShortfall, noun string) string {
	r, pods := k.ResourceCapacity(l.Class), message.Count(l.Pods, noun)
	size := fmt.Sprintf(" of %s %s", message.Quantity(r.Resource, r.PerPod), r.Resource)
	switch {
	case r.PerPod == 0:
		return pods
	case l.Need == l.Pods:
		return pods + size
	case l.Need == 0:
		return pods + ", some of them" + size
	}
	return fmt.Sprintf("%s, %d of them%s", pods, l.Need, size)
}

// labelsOf names the labels of a level: "label topology.example.com/rack", or "all of the labels a, b".
func labelsOf(level string) string {
	if keys := strings.Split(level, ","); len(keys) > 1 {
		return "all of the labels " + strings.Join(keys, ", ")
	}
	return "label " + level
}

// smallDomainsText says which domain would hold the most pods of a group that none would hold even if it was empty. "":
// the gang requires no topology level.
func (t *together) smallDomainsText(everything Imagined) string {
	if !hasLevels(t.Problem) {
		return ""
	}
	for _, g := range t.groupsToStart(t.Tree.Root()) {
		level := t.Required[g.Name()]
		for _, class := range t.classes {
			least := leastAsked(g, t.Have, t.waiting, func(other int) int64 {
				if other == class {
					return 1
				}
				return 0
			})
			most, largest := 0, placement.Area(0)
			areas := everything.Areas(level, 0)
			for k, pods := range everything.Rooms(class, level, 0) {
				if pods > most {
					most, largest = pods, areas[k]
				}
			}
			if most > 0 && most < least.pods {
				lacking := placement.LevelShortfall{Pods: g.MissingPods(t.Have), Class: class, Need: least.pods}
				return fmt.Sprintf("the largest %s, %s, would hold only %d of the %s that %s needs in one %s if it was empty",
					LevelName(level), t.known.domainName(largest), most, t.known.podsText(lacking, "pod"), t.path(g.Name()), LevelName(level))
			}
		}
	}
	return fmt.Sprintf("the %s that %s needs would not fit in the domains of the topology levels that it requires if the nodes were empty", t.pods, t.who)
}

// groupsToStart returns the groups from the given one down that require a level, are not satisfied, and have no pods
// that run.
func (t *together) groupsToStart(g *gang.Group) []*gang.Group {
	var list []*gang.Group
	if t.Required[g.Name()] != "" && !g.Satisfied(t.Have) && !t.runs(g) {
		list = append(list, g)
	}
	for _, child := range g.Children() {
		list = append(list, t.groupsToStart(child)...)
	}
	return list
}

// runs reports whether pods below the group run.
func (t *together) runs(g *gang.Group) bool {
	return slices.ContainsFunc(t.Nodes[g.Name()], t.world(true, true).HasNode) || slices.ContainsFunc(g.Children(), t.runs)
}
