// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/topology"
)

// topologyConstraints returns the constraint of each node of a tree, nil for none: that of the PodGroup, then those of its
// sub-groups.
func topologyConstraints(spec *v2alpha2.PodGroupSpec) []*v2alpha2.TopologyConstraint {
	constraints := []*v2alpha2.TopologyConstraint{spec.TopologyConstraint}
	for i := range spec.SubGroups {
		constraints = append(constraints, spec.SubGroups[i].TopologyConstraint)
	}
	return constraints
}

// constraintPath returns the path of a constraint by its index in topologyConstraints.
func constraintPath(i int) *field.Path {
	path := field.NewPath("spec")
	if i > 0 {
		path = path.Child("subGroups").Index(i - 1)
	}
	return path.Child("topologyConstraint")
}

// Topologies returns the names of the Topologies that the constraints of a PodGroup refer to, sorted.
func Topologies(spec *v2alpha2.PodGroupSpec) []string {
	var names []string
	for _, tc := range topologyConstraints(spec) {
		if tc != nil && tc.Topology != "" {
			names = append(names, tc.Topology)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// validateLevels rejects required levels that cannot be node labels. Preferred ones delay nothing.
func validateLevels(spec *v2alpha2.PodGroupSpec) field.ErrorList {
	var errs field.ErrorList
	for i, tc := range topologyConstraints(spec) {
		if tc == nil || tc.RequiredTopologyLevel == "" {
			continue
		}
		for _, problem := range validation.IsQualifiedName(tc.RequiredTopologyLevel) {
			errs = append(errs, field.Invalid(constraintPath(i).Child("requiredTopologyLevel"), tc.RequiredTopologyLevel, "must be the key of a node label: "+problem))
		}
	}
	return errs
}

// levelsWithoutEffect warns about constraints that name a Topology and no level, and about preferred levels that cannot be node
// labels.
func levelsWithoutEffect(spec *v2alpha2.PodGroupSpec) []string {
	var warnings []string
	for i, tc := range topologyConstraints(spec) {
		switch {
		case tc == nil:
		case tc.PreferredTopologyLevel != "":
			if problems := validation.IsQualifiedName(tc.PreferredTopologyLevel); len(problems) > 0 {
				warnings = append(warnings, fmt.Sprintf("%s: has no effect: %q is not the key of a node label", constraintPath(i).Child("preferredTopologyLevel"), tc.PreferredTopologyLevel))
			}
		case tc.Topology != "" && tc.RequiredTopologyLevel == "":
			warnings = append(warnings, fmt.Sprintf("%s: has no effect: neither requiredTopologyLevel nor preferredTopologyLevel is set", constraintPath(i)))
		}
	}
	return warnings
}

// ValidateTopologyLevels returns the errors of a spec whose tree is valid (ValidatePodGroup) that depend on the levels of
// the Topologies, and warnings. levelsOf returns the node labels of a Topology, outermost first; nil: it does not exist, and
// nothing that depends on it is an error.
func ValidateTopologyLevels(spec *v2alpha2.PodGroupSpec, levelsOf func(topology string) topology.Levels) (field.ErrorList, []string) {
	var errs field.ErrorList
	var warnings []string
	for i, tc := range topologyConstraints(spec) {
		if tc == nil || tc.Topology == "" || levelsOf(tc.Topology) == nil {
			continue
		}
		levels, path := levelsOf(tc.Topology), constraintPath(i)
		notOne := fmt.Sprintf("is not a level of Topology %q: %s", tc.Topology, strings.Join(levels, ", "))
		if level := tc.RequiredTopologyLevel; level != "" && !slices.Contains(levels, level) {
			errs = append(errs, field.Invalid(path.Child("requiredTopologyLevel"), level, notOne))
		}
		if level := tc.PreferredTopologyLevel; level != "" && !slices.Contains(levels, level) {
			warnings = append(warnings, fmt.Sprintf("%s: has no effect: %q %s", path.Child("preferredTopologyLevel"), level, notOne))
		}
	}
	nodes := treeNodes(spec)
	for _, c := range topology.Conflicts(nodes, levelsOf) {
		path, required := constraintPath(c.Node), nodes[c.Ancestor].Required
		ancestor := "the PodGroup"
		if c.Ancestor > 0 {
			ancestor = fmt.Sprintf("sub-group %q above it", spec.SubGroups[c.Ancestor-1].Name)
		}
		switch {
		case c.Ancestor == c.Node:
			warnings = append(warnings, fmt.Sprintf("%s: has no effect: %q is wider than the required level %q", path.Child("preferredTopologyLevel"), nodes[c.Node].Preferred, required))
		case c.Preferred:
			warnings = append(warnings, fmt.Sprintf("%s: has no effect: %q is wider than %q, which %s requires", path.Child("preferredTopologyLevel"), nodes[c.Node].Preferred, required, ancestor))
		default:
			errs = append(errs, field.Invalid(path.Child("requiredTopologyLevel"), nodes[c.Node].Required, fmt.Sprintf(
				"is wider than %q, which %s requires: use the same level or a narrower one", required, ancestor)))
		}
	}
	return errs, warnings
}

// unorderedLevels warns about the first node of a valid tree on whose path, from the root, more than two different levels are
// requested without a Topology. Which of two labels is the wider one can be seen from the nodes, but not the order of more.
func unorderedLevels(spec *v2alpha2.PodGroupSpec) []string {
	nodes := treeNodes(spec)
	for i := range nodes {
		var levels []string
		for up := i; up >= 0; up = nodes[up].Parent {
			for _, level := range []string{nodes[up].Preferred, nodes[up].Required} {
				if nodes[up].Topology == "" && level != "" && !slices.Contains(levels, level) {
					levels = append(levels, level)
				}
			}
		}
		if len(levels) > 2 {
			slices.Reverse(levels) // from the root
			return []string{fmt.Sprintf("%s: the levels %s are not ordered without a Topology: name one that has them all", constraintPath(i).Child("topology"), strings.Join(levels, ", "))}
		}
	}
	return nil
}

// treeNodes returns the tree of a valid spec, in the order of topologyConstraints.
func treeNodes(spec *v2alpha2.PodGroupSpec) []topology.Node {
	index := make(map[string]int, len(spec.SubGroups))
	for i := range spec.SubGroups {
		index[spec.SubGroups[i].Name] = i + 1
	}
	nodes := make([]topology.Node, 1+len(spec.SubGroups))
	for i, tc := range topologyConstraints(spec) {
		switch {
		case i == 0:
			nodes[i].Parent = -1
		case spec.SubGroups[i-1].Parent != nil:
			nodes[i].Parent = index[*spec.SubGroups[i-1].Parent]
		}
		if tc != nil {
			nodes[i].Topology, nodes[i].Required, nodes[i].Preferred = tc.Topology, tc.RequiredTopologyLevel, tc.PreferredTopologyLevel
		}
	}
	return nodes
}
