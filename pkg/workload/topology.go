// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/topology"
)

// Topology is what the topology constraints of a set refer to. The zero value is a ClusterTopologyBinding that does not
// exist.
type Topology struct {
	// Binding is the ClusterTopologyBinding; nil: it does not exist.
	Binding *v1alpha1.ClusterTopologyBinding
	// Name is the name of the Topology that PodGroups refer to; "": the one that the binding refers to does not exist,
	// or does not have the levels of the binding. The binding is enough to define the domains.
	Name string
	// Unused is the name of a Topology that the binding refers to, or that has its name, and that does not have its
	// levels; "": there is none.
	Unused string
}

// TopologyReference returns the name of the Topology that a binding refers to for the pods of a scheduler.
func TopologyReference(binding *v1alpha1.ClusterTopologyBinding, scheduler string) string {
	for _, b := range binding.Spec.SchedulerTopologyBindings {
		if b.SchedulerName == scheduler {
			return b.TopologyReference
		}
	}
	return binding.Name
}

// NewTopology returns the Topology of a binding, given the node labels of the Topology that TopologyReference names;
// nil: it does not exist. A Topology without the levels of the binding in the same order is not referred to.
func NewTopology(binding *v1alpha1.ClusterTopologyBinding, reference string, nodeLabels []string) Topology {
	switch {
	case topology.Levels(nodeLabels).ContainsInOrder(binding.Spec.Keys()):
		return Topology{Binding: binding, Name: reference}
	case len(nodeLabels) == 0 && reference == binding.Name:
		return Topology{Binding: binding}
	}
	return Topology{Binding: binding, Unused: reference}
}

// list returns the node labels of all levels of the binding as the value of TopologyLevelsAnnotation.
func (t Topology) list() string { return strings.Join(t.Binding.Spec.Keys(), ",") }

// nodeLabel returns the node label of a domain, and whether the domain is known. "" has none.
func (t Topology) nodeLabel(domain string) (key string, known bool) {
	if domain == "" {
		return "", true
	}
	if t.Binding != nil {
		for _, level := range t.Binding.Spec.Levels {
			if level.Domain == domain {
				return level.Key, true
			}
		}
	}
	return "", false
}

// constraint returns the constraint of a node of a PodGroup, nil for none. tc is the constraint in the template, nil
// for none. If the PodGroup lists the node already, existing is its constraint, which it keeps when a domain is not
// known any more; a Topology that does not exist any more is kept as well. Not known: a new node requires a domain that
// is not known, and must wait. Source: docs/decisions, W11.
func (t Topology) constraint(tc *v1alpha1.TopologyConstraint, listed bool, existing *v2alpha2.TopologyConstraint) (c *v2alpha2.TopologyConstraint, known bool) {
	if tc == nil {
		return nil, true
	}
	required, requiredKnown := t.nodeLabel(tc.Required())
	preferred, preferredKnown := t.nodeLabel(tc.Preferred())
	switch {
	case listed && (!requiredKnown || !preferredKnown):
		return existing, true
	case !requiredKnown:
		return nil, false
	case required == "" && preferred == "":
		return nil, true
	}
	c = &v2alpha2.TopologyConstraint{Topology: t.Name, RequiredTopologyLevel: required, PreferredTopologyLevel: preferred}
	if existing != nil && existing.RequiredTopologyLevel == required && existing.PreferredTopologyLevel == preferred {
		c.Topology = cmp.Or(c.Topology, existing.Topology)
	}
	return c, true
}

// unknownDomains returns the domains of the constraints of a template that are no levels of the binding, sorted;
// required: only the required ones.
func (t Topology) unknownDomains(template *v1alpha1.PodCliqueSetTemplateSpec, required bool) []string {
	var unknown []string
	add := func(domain string) {
		if _, known := t.nodeLabel(domain); !known {
			unknown = append(unknown, domain)
		}
	}
	for _, tc := range template.TopologyConstraints() {
		if add(tc.Required()); !required {
			add(tc.Preferred())
		}
	}
	slices.Sort(unknown)
	return slices.Compact(unknown)
}

// TopologyWait describes why the PodGroup of a replica cannot be created, "" if it can: a required domain is not known.
// A replica whose PodGroup exists does not wait.
func TopologyWait(set *v1alpha1.PodCliqueSet, i int, live Children) string {
	if live.PodGroups[naming.PodGroupName(set.Name, i)] != nil || len(live.Topology.unknownDomains(&set.Spec.Template, true)) == 0 {
		return ""
	}
	condition := topologyCondition(&set.Spec.Template, live.Topology)
	return "waits for its required topology: " + condition.Message
}

// topologyCondition returns the condition TopologyLevelsUnavailable, nil for a template without topology constraints.
func topologyCondition(template *v1alpha1.PodCliqueSetTemplateSpec, t Topology) *metav1.Condition {
	if len(template.TopologyConstraints()) == 0 {
		return nil
	}
	condition := func(status metav1.ConditionStatus, reason, format string, args ...any) *metav1.Condition {
		return &metav1.Condition{Type: v1alpha1.ConditionTopologyLevelsUnavailable, Status: status, Reason: reason,
			Message: message.Truncate(fmt.Sprintf(format, args...), maxDescription)}
	}
	name, unknown := template.TopologyName(), t.unknownDomains(template, false)
	switch {
	case name == "":
		return condition(metav1.ConditionUnknown, v1alpha1.ReasonTopologyNameMissing, "no topologyConstraint has a topologyName")
	case t.Binding == nil:
		return condition(metav1.ConditionUnknown, v1alpha1.ReasonClusterTopologyNotFound, "ClusterTopologyBinding %s does not exist", name)
	case len(unknown) > 0:
		return condition(metav1.ConditionTrue, v1alpha1.ReasonClusterTopologyLevelsUnavailable, "ClusterTopologyBinding %s has no level %s, only %s",
			name, message.ListNames(unknown, 3, len(unknown), ", "), strings.Join(t.Binding.Spec.Domains(), ", "))
	}
	unused := ""
	if t.Unused != "" {
		unused = fmt.Sprintf("; new PodGroups use these, since Topology %s does not exist or has others", t.Unused)
	}
	return condition(metav1.ConditionFalse, v1alpha1.ReasonAllClusterTopologyLevelsAvailable, "ClusterTopologyBinding %s has all levels%s", name, unused)
}
