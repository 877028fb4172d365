// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "slices"

// Clique returns the clique with the given name, nil if there is none or the name is empty.
func (t *PodCliqueSetTemplateSpec) Clique(name string) *PodCliqueTemplateSpec {
	if name == "" {
		return nil
	}
	for _, clique := range t.Cliques {
		if clique != nil && clique.Name == name {
			return clique
		}
	}
	return nil
}

// CliquesInOrder returns the cliques in the order of the list, without the nil entries that a Go client can leave in it.
func (t *PodCliqueSetTemplateSpec) CliquesInOrder() []*PodCliqueTemplateSpec {
	cliques := make([]*PodCliqueTemplateSpec, 0, len(t.Cliques))
	for _, clique := range t.Cliques {
		if clique != nil {
			cliques = append(cliques, clique)
		}
	}
	return cliques
}

// StandaloneCliques returns those of CliquesInOrder that belong to no scaling group.
func (t *PodCliqueSetTemplateSpec) StandaloneCliques() []*PodCliqueTemplateSpec {
	return slices.DeleteFunc(t.CliquesInOrder(), func(clique *PodCliqueTemplateSpec) bool { return t.ScalingGroupOf(clique.Name) != nil })
}

// PodCliqueSpec returns the spec that PodCliques of the clique are created with: the spec of the clique, with the
// priority class of the set, with the name of the clique as the role if the clique has no role name, and in a scaling
// group with the larger minReadySeconds of the two.
func (t *PodCliqueSetTemplateSpec) PodCliqueSpec(clique *PodCliqueTemplateSpec) *PodCliqueSpec {
	spec := clique.Spec.DeepCopy()
	if spec.RoleName == "" {
		spec.RoleName = clique.Name
	}
	if t.PriorityClassName != "" {
		spec.PodSpec.PriorityClassName = t.PriorityClassName
	}
	if group := t.ScalingGroupOf(clique.Name); group != nil {
		spec.MinReadySeconds = max(spec.MinReadySeconds, group.MinReadySeconds)
	}
	return spec
}

// ScalingGroup returns the scaling group with the given name, nil if there is none or the name is empty.
func (t *PodCliqueSetTemplateSpec) ScalingGroup(name string) *PodCliqueScalingGroupConfig {
	if name == "" {
		return nil
	}
	for i := range t.PodCliqueScalingGroupConfigs {
		if group := &t.PodCliqueScalingGroupConfigs[i]; group.Name == name {
			return group
		}
	}
	return nil
}

// ScalingGroupOf returns the first scaling group that lists a clique, nil if the clique is standalone.
func (t *PodCliqueSetTemplateSpec) ScalingGroupOf(clique string) *PodCliqueScalingGroupConfig {
	for i := range t.PodCliqueScalingGroupConfigs {
		if group := &t.PodCliqueScalingGroupConfigs[i]; slices.Contains(group.CliqueNames, clique) {
			return group
		}
	}
	return nil
}

// TopLevelNames returns the names of the direct components of a replica of the set: its standalone cliques and its
// scaling groups, sorted. Validation ensures that no name occurs twice.
func (t *PodCliqueSetTemplateSpec) TopLevelNames() []string {
	var names []string
	for _, clique := range t.StandaloneCliques() {
		names = append(names, clique.Name)
	}
	for i := range t.PodCliqueScalingGroupConfigs {
		names = append(names, t.PodCliqueScalingGroupConfigs[i].Name)
	}
	slices.Sort(names)
	return names
}

// TopologyConstraints returns the topology constraints of the set, of its scaling groups and of its cliques, in this order.
func (t *PodCliqueSetTemplateSpec) TopologyConstraints() []*TopologyConstraint {
	var constraints []*TopologyConstraint
	add := func(tc *TopologyConstraint) {
		if tc != nil {
			constraints = append(constraints, tc)
		}
	}
	add(t.TopologyConstraint)
	for i := range t.PodCliqueScalingGroupConfigs {
		add(t.PodCliqueScalingGroupConfigs[i].TopologyConstraint)
	}
	for _, clique := range t.CliquesInOrder() {
		add(clique.TopologyConstraint)
	}
	return constraints
}

// TopologyName returns the name of the ClusterTopologyBinding that the constraints of the set refer to, "" if none of them
// has a name. Validation ensures that there is no other.
func (t *PodCliqueSetTemplateSpec) TopologyName() string {
	for _, tc := range t.TopologyConstraints() {
		if tc.TopologyName != "" {
			return tc.TopologyName
		}
	}
	return ""
}

// Required returns the required domain, also in the older form, "" if there is none.
func (c *TopologyConstraint) Required() string {
	if c.Pack != nil && c.Pack.Required != "" {
		return c.Pack.Required
	}
	return c.PackDomain
}

// Preferred returns the preferred domain, "" if there is none.
func (c *TopologyConstraint) Preferred() string {
	if c.Pack == nil {
		return ""
	}
	return c.Pack.Preferred
}
