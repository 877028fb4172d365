// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/topology"
)

// maxDomains is the maximum number of domains of a level that are named, maxPlacement the longest text about a
// sub-group, in characters. A status has up to 1,024 of them, in one object.
const (
	maxDomains   = 3
	maxPlacement = 128
)

// DomainSeparator is between the values of the labels of a domain where that of the last one alone would not identify
// it: b0/r0.
const DomainSeparator = "/"

// NamedLevel is a level that a constraint names: its Topology, "" for none, and its node label.
type NamedLevel struct{ Topology, Label string }

// OuterLabels returns the node labels of the levels above those that a PodGroup names, outermost first. Levels above
// which there is none, or that are not known, are left out. levelsOf is that of Levels.
func OuterLabels(spec *v2alpha2.PodGroupSpec, levelsOf func(name string) topology.Levels) map[NamedLevel][]string {
	outer := map[NamedLevel][]string{}
	for _, tc := range constraints(spec) {
		levels := levelsOf(tc.Topology)
		for _, key := range namedLabels(tc) {
			if at := slices.Index(levels, key); at > 0 {
				outer[NamedLevel{tc.Topology, key}] = levels[:at]
			}
		}
	}
	return outer
}

// HasTopologyLevel reports whether the PodGroup or one of its sub-groups names a topology level. Only then does its
// status contain where its pods run.
func HasTopologyLevel(spec *v2alpha2.PodGroupSpec) bool {
	for _, tc := range constraints(spec) {
		if len(namedLabels(tc)) > 0 {
			return true
		}
	}
	return false
}

// NamedLabels returns the node labels that the topology constraints of a PodGroup and of its sub-groups name, in spec
// order; one that several name is there as often. nil: they name none.
func NamedLabels(spec *v2alpha2.PodGroupSpec) []string {
	var keys []string
	for _, tc := range constraints(spec) {
		keys = append(keys, namedLabels(tc)...)
	}
	return keys
}

// namedLabels returns the node labels that a constraint names, the required one first. Text that cannot be the key of a
// label is left out: no node has it, and it must not get into texts that are read again. nil: the constraint names
// none.
func namedLabels(tc *v2alpha2.TopologyConstraint) []string {
	var keys []string
	for _, key := range []string{tc.RequiredTopologyLevel, tc.PreferredTopologyLevel} {
		if key != "" && !slices.Contains(keys, key) && len(content.IsLabelKey(key)) == 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// usedLevel is what the bound pods of a group use of a topology level.
type usedLevel struct {
	key       string
	preferred bool
	outer     []string         // labels whose values are part of the name of a domain
	domains   sets.Set[string] // their names
	outside   sets.Set[string] // nodes without the label, and nodes that do not exist
	exists    bool             // one of them exists
}

// describePlacement returns where the bound pods of a gang run, in terms of the levels that it and its sub-groups name:
// the text about the gang, and by name those about its sub-groups. A group that names no level, or of which no pod is
// bound, has none. "" and nil if that is so for all groups, or if the spec is invalid. unmet describes preferred levels
// of which none of the nodes has the label; "": there are none.
func describePlacement(f Facts) (ofGang string, ofSubGroups map[string]string, unmet string) {
	if f.Tree == nil || len(f.Nodes) == 0 {
		return "", nil, ""
	}
	levels := map[string][]usedLevel{} // by name of the group, "" for the root
	for group, tc := range constraints(&f.Group.Spec) {
		for _, key := range namedLabels(tc) {
			levels[group] = append(levels[group], usedLevel{key: key, preferred: key != tc.RequiredTopologyLevel, outer: f.OuterLabels[NamedLevel{tc.Topology, key}],
				domains: sets.New[string](), outside: sets.New[string]()})
		}
	}
	for _, leaf := range f.Tree.Leaves() {
		nodes := sets.New(f.Nodes[leaf.Name()]...)
		for g := leaf; g != nil; g = g.Parent() {
			for i := range levels[g.Name()] {
				levels[g.Name()][i].addNodes(nodes, f.NodeLabels)
			}
		}
	}
	ofSubGroups = map[string]string{}
	var parts []string
	if text := describeUsedLevels(levels[""]); text != "" {
		parts = append(parts, text)
	}
	for _, g := range f.Tree.Groups() {
		if text := message.Truncate(describeUsedLevels(levels[g.Name()]), maxPlacement); text != "" {
			ofSubGroups[g.Name()] = text
			parts = append(parts, g.Name()+": "+text)
		}
	}
	return message.Shorten(message.ListNames(parts, maxNamed, len(parts), clauses), message.MaxSummary), ofSubGroups, describeUnmet(f.Tree, levels)
}

// describeUnmet describes the preferred levels of which none of the nodes of a group has the label, each once.
func describeUnmet(tree *gang.Tree, levels map[string][]usedLevel) string {
	var keys, parts []string
	for _, g := range append([]*gang.Group{tree.Root()}, tree.Groups()...) {
		for _, l := range levels[g.Name()] {
			if l.preferred && l.exists && len(l.domains) == 0 && !slices.Contains(keys, l.key) {
				keys = append(keys, l.key)
				parts = append(parts, fmt.Sprintf("no node of %s has label %s, which it prefers: correct the level, or label the nodes", pathOf(tree, g.Name()), l.key))
			}
		}
	}
	return message.ListNames(parts, maxLeaves, len(parts), clauses)
}

// addNodes adds nodes on which pods are bound. labels contains the labels of the nodes that exist.
func (l *usedLevel) addNodes(nodes sets.Set[string], labels map[string]map[string]string) {
	for node := range nodes {
		value, ok := labels[node][l.key]
		if !ok {
			l.outside.Insert(node)
			_, exists := labels[node]
			l.exists = l.exists || exists
			continue
		}
		for _, key := range slices.Backward(l.outer) {
			value = labels[node][key] + DomainSeparator + value
		}
		l.domains.Insert(value)
	}
}

// describeUsedLevels returns the domains of the levels: "block b1, 2 racks (r1, r2)". "" if no pod is bound.
func describeUsedLevels(levels []usedLevel) string {
	var parts []string
	for i := range levels {
		if text := levels[i].describe(); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

// describe returns the domains of the level: "rack r7", "3 racks (r1, r2, r7)", "rack r7, 1 node without rack". "": no
// pod is bound. Names in a list are in parentheses, because SubGroupStatus must not end with one of them.
func (l *usedLevel) describe() string {
	noun := LevelName(l.key)
	names, longest := sets.List(l.domains), content.LabelValueMaxLength
	if l.outer != nil {
		longest = maxPlacement
	}
	for i, name := range names[:min(len(names), maxDomains)] {
		if names[i] = message.Truncate(name, longest); name == "" {
			names[i] = strconv.Quote(name) // a domain like any other
		}
	}
	var parts []string
	switch n := len(names); n {
	case 0:
	case 1:
		parts = append(parts, noun+" "+names[0])
	default:
		parts = append(parts, fmt.Sprintf("%d %s (%s)", n, pluralOfLevel(noun), message.ListNames(names, maxDomains, n, ", ")))
	}
	if n := len(l.outside); n > 0 {
		parts = append(parts, message.Count(n, "node")+" without "+labelName(l.key))
	}
	return strings.Join(parts, ", ")
}

// pluralOfLevel returns the plural of the name of a level: racks, switches.
func pluralOfLevel(noun string) string {
	for _, ending := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(noun, ending) {
			return noun + "es"
		}
	}
	return noun + "s"
}
