// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/topology"
)

// Levels returns the topology levels that a PodGroup and its sub-groups require and prefer, by name ("" is the
// PodGroup), as placement.Problem has them: the node label of the level after those of all levels above it in its
// Topology, separated by commas; nil: none names one. levelsOf returns the levels of a Topology, nil if it is not
// known, and for "" those of WithListed; unread is why Topologies cannot be read and what to do, "" if they can. A
// level that names no Topology is a node label by itself if none are listed. If a required level is not known, the pods
// cannot be placed: the refusal says why. A preferred one that is not known has no effect (docs/decisions, G26).
func Levels(tree *gang.Tree, spec *v2alpha2.PodGroupSpec, levelsOf func(name string) topology.Levels, unread string) (required, preferred map[string]string, why *Refusal) {
	for group, c := range constraints(spec) {
		if c.RequiredTopologyLevel != "" {
			level, problem := levelKey(c, c.RequiredTopologyLevel, levelsOf, unread)
			if problem != "" {
				return nil, nil, &Refusal{Reason: v2alpha2.ReasonTopologyUnavailable, Message: pathOf(tree, group) + ": " + problem}
			}
			required = withLevel(required, group, level)
		}
		if c.PreferredTopologyLevel != "" {
			if level, problem := levelKey(c, c.PreferredTopologyLevel, levelsOf, unread); problem == "" {
				preferred = withLevel(preferred, group, level)
			}
		}
	}
	return required, preferred, nil
}

// RequiresLevel reports whether the PodGroup or one of its sub-groups requires a topology level.
func RequiresLevel(spec *v2alpha2.PodGroupSpec) bool {
	for _, c := range constraints(spec) {
		if c.RequiredTopologyLevel != "" {
			return true
		}
	}
	return false
}

// WithListed returns levelsOf with the levels that a PodGroup itself lists (TopologyLevelsAnnotation) under the name
// "": those of its constraints that name no Topology. nil: it lists none. The result is not safe for concurrent use.
func WithListed(group *v2alpha2.PodGroup, levelsOf func(name string) topology.Levels) func(name string) topology.Levels {
	var listed topology.Levels
	isRead := false
	return func(name string) topology.Levels {
		if name != "" {
			return levelsOf(name)
		}
		if !isRead {
			listed, isRead = listedLevels(group), true
		}
		return listed
	}
}

// maxListed is how many levels a PodGroup may list: as many as a ClusterTopologyBinding has. The scheduler keeps, for
// each level, the values of its label and of those before it.
const maxListed = 16

// listedLevels returns the levels that a PodGroup lists; nil: none. A list that is too long, or in which a text cannot
// be the key of a label, has none of them: it is empty.
func listedLevels(group *v2alpha2.PodGroup) topology.Levels {
	list := group.Annotations[v2alpha2.TopologyLevelsAnnotation]
	if list == "" {
		return nil
	}
	if len(list) > maxListed*(content.DNS1123SubdomainMaxLength+1+content.LabelValueMaxLength+1) || strings.Count(list, ",") >= maxListed {
		return topology.Levels{}
	}
	levels := topology.Levels(strings.Split(list, ","))
	if slices.ContainsFunc(levels, func(key string) bool { return len(content.IsLabelKey(key)) > 0 }) {
		return topology.Levels{}
	}
	return levels
}

// ListSameLevels reports whether two PodGroups list the same levels.
func ListSameLevels(a, b *v2alpha2.PodGroup) bool {
	return slices.Equal(listedLevels(a), listedLevels(b))
}

func withLevel(levels map[string]string, group, level string) map[string]string {
	if levels == nil {
		levels = map[string]string{}
	}
	levels[group] = level
	return levels
}

// constraints yields the topology constraints of a PodGroup ("") and of its sub-groups, in spec order. A group without
// one is left out.
func constraints(spec *v2alpha2.PodGroupSpec) func(yield func(group string, c *v2alpha2.TopologyConstraint) bool) {
	return func(yield func(string, *v2alpha2.TopologyConstraint) bool) {
		if spec.TopologyConstraint != nil && !yield("", spec.TopologyConstraint) {
			return
		}
		for i := range spec.SubGroups {
			if c := spec.SubGroups[i].TopologyConstraint; c != nil && !yield(spec.SubGroups[i].Name, c) {
				return
			}
		}
	}
}

// LevelLabels returns the node labels by which the pods of each leaf are ordered, by name of the leaf: first the levels
// that the groups from the root down to the leaf require or prefer, each after those above it in its Topology; then the
// narrower levels of these Topologies; then those of other groups, in the same order. nil: no group names a level that
// is known. levelsOf is that of Levels. Source: docs/decisions, G26, "Rank order".
func LevelLabels(tree *gang.Tree, spec *v2alpha2.PodGroupSpec, levelsOf func(name string) topology.Levels) map[string][]string {
	type labels struct{ named, all []string }
	of, everywhere := map[string]labels{}, labels{} // by group
	for group, c := range constraints(spec) {
		l := labels{}
		for _, level := range []string{c.RequiredTopologyLevel, c.PreferredTopologyLevel} {
			levels := levelsOf(c.Topology)
			if levels == nil && c.Topology == "" {
				levels = topology.Levels{level}
			}
			if at := slices.Index(levels, level); level != "" && at >= 0 {
				l.named, l.all = appendMissing(l.named, levels[:at+1]), appendMissing(l.all, levels)
			}
		}
		of[group] = l
		everywhere.named, everywhere.all = appendMissing(everywhere.named, l.named), appendMissing(everywhere.all, l.all)
	}
	if len(everywhere.named) == 0 {
		return nil
	}
	rest := appendMissing(slices.Clone(everywhere.named), everywhere.all)
	byLeaf := make(map[string][]string, len(tree.Leaves()))
	for _, leaf := range tree.Leaves() {
		path := labels{}
		for g := leaf; g != nil; g = g.Parent() {
			l := of[g.Name()]
			path.named, path.all = appendMissing(slices.Clone(l.named), path.named), appendMissing(slices.Clone(l.all), path.all)
		}
		labels := appendMissing(path.named, path.all)
		own := sets.New(labels...)
		for _, label := range rest { // thousands, if each leaf has its own
			if !own.Has(label) {
				labels = append(labels, label)
			}
		}
		byLeaf[leaf.Name()] = labels
	}
	return byLeaf
}

// appendMissing appends the labels that are not in the list.
func appendMissing(list, labels []string) []string {
	for _, label := range labels {
		if !slices.Contains(list, label) {
			list = append(list, label)
		}
	}
	return list
}

// SameConstraints reports whether two specs of a PodGroup have the same topology constraints of these groups.
func SameConstraints(a, b *v2alpha2.PodGroupSpec, of func(group string) bool) bool {
	values := func(spec *v2alpha2.PodGroupSpec) map[string]v2alpha2.TopologyConstraint {
		out := map[string]v2alpha2.TopologyConstraint{}
		for group, c := range constraints(spec) {
			if of(group) {
				out[group] = *c
			}
		}
		return out
	}
	return maps.Equal(values(a), values(b))
}

// SameLevels reports whether Levels would still return these required levels of certain groups of a spec. levels of
// other groups are ignored.
func SameLevels(spec *v2alpha2.PodGroupSpec, levels map[string]string, levelsOf func(name string) topology.Levels, of func(group string) bool) bool {
	for group, c := range constraints(spec) {
		if c.RequiredTopologyLevel == "" || !of(group) {
			continue
		}
		if level, problem := levelKey(c, c.RequiredTopologyLevel, levelsOf, ""); problem != "" || level != levels[group] {
			return false
		}
	}
	return true
}

// NamesTopology reports whether a PodGroup or a sub-group of it has a topology constraint with the levels of a
// Topology, which need not exist. "": of any.
func NamesTopology(spec *v2alpha2.PodGroupSpec, name string) bool {
	for _, c := range constraints(spec) {
		if c.Topology != "" && (name == "" || c.Topology == name) {
			return true
		}
	}
	return false
}

// levelKey returns a level as placement.Problem has it, or what is wrong with it if it is required.
func levelKey(c *v2alpha2.TopologyConstraint, level string, levelsOf func(name string) topology.Levels, unread string) (key, problem string) {
	levels := levelsOf(c.Topology)
	if levels == nil && c.Topology == "" {
		return level, ""
	}
	if levels == nil && unread != "" {
		return "", fmt.Sprintf("Topology %q, whose level %q is required, cannot be read: %s", c.Topology, level, unread)
	}
	if levels == nil {
		return "", fmt.Sprintf("Topology %q, whose level %q is required, is not known: create it, or change topologyConstraint.topology", c.Topology, level)
	}
	at := slices.Index(levels, level)
	if len(levels) == 0 && c.Topology == "" {
		return "", fmt.Sprintf("level %q is required, and annotation %s of the PodGroup is not a list of at most %d node labels: correct it", level,
			v2alpha2.TopologyLevelsAnnotation, maxListed)
	}
	if at < 0 && c.Topology == "" {
		return "", fmt.Sprintf("level %q is required and is none of %s, which the PodGroup lists: correct topologyConstraint.requiredTopologyLevel", level, strings.Join(levels, ", "))
	}
	if at < 0 {
		return "", fmt.Sprintf("level %q is required and is no level of Topology %q, which has %s: correct topologyConstraint.requiredTopologyLevel", level, c.Topology, strings.Join(levels, ", "))
	}
	return strings.Join(levels[:at+1], ","), ""
}
