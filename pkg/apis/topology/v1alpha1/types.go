// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Topology is an ordered list of node labels, each of which divides the nodes
// into domains inside those of the labels before it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=topologies,singular=topology,scope=Cluster
// +kubebuilder:printcolumn:name="Outermost",type=string,JSONPath=`.spec.levels[0].nodeLabel`,description="Node label of the first level"
// +kubebuilder:printcolumn:name="Innermost",type=string,JSONPath=`.spec.levels[-1:].nodeLabel`,description="Node label of the last level"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Topology struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the topology.
	// +required
	Spec TopologySpec `json:"spec"`
}

// TopologyList is a list of Topologies.
//
// +kubebuilder:object:root=true
type TopologyList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the Topologies.
	Items []Topology `json:"items"`
}

// TopologySpec is an ordered list of levels.
type TopologySpec struct {
	// levels are the levels, outermost first. A domain of a level is the set of
	// nodes with one value of its label and of the labels of all levels before
	// it. Immutable, because running pods were placed by them.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule=`self.all(level, self.exists_one(other, other.nodeLabel == level.nodeLabel))`,reason=FieldValueInvalid,message="the node labels of the levels must be different"
	// +kubebuilder:validation:XValidation:rule=`self.all(level, level.nodeLabel != "kubernetes.io/hostname" || level == self[size(self) - 1])`,reason=FieldValueInvalid,message="kubernetes.io/hostname must be the last level: no domain is smaller than a node"
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,reason=FieldValueForbidden,message="is immutable: running pods were placed by these levels; create a new Topology"
	Levels []TopologyLevel `json:"levels"`
}

// NodeLabels returns the node labels of the levels, outermost first.
func (s *TopologySpec) NodeLabels() []string {
	labels := make([]string, len(s.Levels))
	for i, level := range s.Levels {
		labels[i] = level.NodeLabel
	}
	return labels
}

// TopologyLevel is one level of a Topology.
type TopologyLevel struct {
	// nodeLabel is the key of the node label whose values are the domains of the
	// level, for example topology.kubernetes.io/zone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`!format.qualifiedName().validate(self).hasValue()`,reason=FieldValueInvalid,message="must be the key of a label: a name of at most 63 letters, digits, -, _ and ., after an optional DNS subdomain and /"
	NodeLabel string `json:"nodeLabel"`
}
