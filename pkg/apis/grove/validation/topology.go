// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/topology"
)

// topologyNode is a part of a template that can have a topology constraint: the set, a scaling group or a clique.
type topologyNode struct {
	*v1alpha1.TopologyConstraint        // nil: none
	path                         string // of the constraint
	what                         string // for messages
	parent                       int    // index; -1: the set has none
}

// topologyNodes returns the set, its scaling groups and its cliques, parents first.
func topologyNodes(template *v1alpha1.PodCliqueSetTemplateSpec) []topologyNode {
	nodes := []topologyNode{{template.TopologyConstraint, templatePath.Child("topologyConstraint").String(), "the PodCliqueSet", -1}}
	groups := map[string]int{}
	for i, group := range template.PodCliqueScalingGroupConfigs {
		groups[group.Name] = len(nodes)
		nodes = append(nodes, topologyNode{group.TopologyConstraint, groupsPath.Index(i).Child("topologyConstraint").String(), fmt.Sprintf("scaling group %q", group.Name), 0})
	}
	groupOf := scalingGroupsOfCliques(template)
	for i, clique := range template.Cliques {
		if clique != nil {
			nodes = append(nodes, topologyNode{clique.TopologyConstraint, cliquesPath.Index(i).Child("topologyConstraint").String(), fmt.Sprintf("clique %q", clique.Name), groups[groupOf[clique.Name]]})
		}
	}
	return nodes
}

// ValidateNewTopology returns the errors of the topology constraints of a new PodCliqueSet, and warnings. Later, when they
// are immutable, the ClusterTopologyBinding may have changed, which is reported in the status. bindingOf returns the
// ClusterTopologyBinding with a name, nil if it does not exist, and an error if that is not known, which is returned.
func ValidateNewTopology(pcs *v1alpha1.PodCliqueSet, bindingOf func(name string) (*v1alpha1.ClusterTopologyBinding, error)) (field.ErrorList, []string, error) {
	template := &pcs.Spec.Template
	nodes := topologyNodes(template)
	var errs field.ErrorList
	var named *field.Path // the first topologyName
	for _, n := range nodes {
		if n.TopologyConstraint == nil {
			continue
		}
		path := field.NewPath(n.path)
		if n.PackDomain != "" {
			errs = append(errs, field.Forbidden(path.Child("packDomain"), "is deprecated; use pack.required"))
		}
		if n.Required() == "" && n.Preferred() == "" {
			errs = append(errs, field.Required(path.Child("pack"), "a required or a preferred domain is needed"))
		}
		switch name := path.Child("topologyName"); {
		case n.TopologyName == "" && !inheritsName(nodes, n):
			errs = append(errs, field.Required(name, "the name of the ClusterTopologyBinding whose levels the domains are"))
		case n.TopologyName != "" && named == nil:
			named = name
		case n.TopologyName != "" && n.TopologyName != template.TopologyName():
			errs = append(errs, field.Invalid(name, n.TopologyName, fmt.Sprintf("must be %q, as in %s: a PodCliqueSet refers to one ClusterTopologyBinding", template.TopologyName(), named)))
		}
	}
	if len(errs) > 0 || named == nil {
		return errs, nil, nil
	}
	binding, err := bindingOf(template.TopologyName())
	switch {
	case err != nil:
		return nil, nil, err
	case binding == nil:
		return field.ErrorList{&field.Error{Type: field.ErrorTypeNotFound, Field: named.String(), BadValue: template.TopologyName(), Detail: "no ClusterTopologyBinding has this name"}}, nil, nil
	}
	errs, warnings := validateDomains(nodes, binding)
	return errs, warnings, nil
}

// inheritsName reports whether a part of the template above n has a topologyName.
func inheritsName(nodes []topologyNode, n topologyNode) bool {
	for up := n.parent; up >= 0; up = nodes[up].parent {
		if tc := nodes[up].TopologyConstraint; tc != nil && tc.TopologyName != "" {
			return true
		}
	}
	return false
}

// validateDomains validates the domains of constraints against the levels of their ClusterTopologyBinding.
func validateDomains(nodes []topologyNode, binding *v1alpha1.ClusterTopologyBinding) (errs field.ErrorList, warnings []string) {
	domains := topology.Levels(binding.Spec.Domains())
	tree := make([]topology.Node, len(nodes))
	for i, n := range nodes {
		tree[i].Parent = n.parent
		if n.TopologyConstraint == nil {
			continue
		}
		tree[i] = topology.Node{Parent: n.parent, Topology: binding.Name, Required: n.Required(), Preferred: n.Preferred()}
		pack := field.NewPath(n.path).Child("pack")
		if n.Required() != "" {
			errs = append(errs, oneOf(pack.Child("required"), n.Required(), domains...)...)
		}
		if n.Preferred() != "" {
			errs = append(errs, oneOf(pack.Child("preferred"), n.Preferred(), domains...)...)
		}
	}
	for _, c := range topology.Conflicts(tree, func(string) topology.Levels { return domains }) {
		pack, required := field.NewPath(nodes[c.Node].path).Child("pack"), tree[c.Ancestor].Required
		switch {
		case c.Ancestor == c.Node:
			warnings = append(warnings, fmt.Sprintf("%s: has no effect: %q is wider than the required domain %q", pack.Child("preferred"), tree[c.Node].Preferred, required))
		case c.Preferred:
			warnings = append(warnings, fmt.Sprintf("%s: has no effect: %q is wider than %q, which %s requires", pack.Child("preferred"), tree[c.Node].Preferred, required, nodes[c.Ancestor].what))
		default:
			errs = append(errs, field.Invalid(pack.Child("required"), tree[c.Node].Required, fmt.Sprintf(
				"is wider than %q, which %s requires: use the same domain or a narrower one", required, nodes[c.Ancestor].what)))
		}
	}
	return errs, warnings
}
