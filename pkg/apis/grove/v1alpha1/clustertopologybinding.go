// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterTopologyBinding gives names to the levels of a topology. PodCliqueSets
// refer to it by topologyName, and to its levels by their domains, so that they
// need not know the node labels of a cluster. Administrators write it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustertopologybindings,singular=clustertopologybinding,shortName=ct,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Outermost",type=string,JSONPath=`.spec.levels[0].domain`,description="Name of the first level"
// +kubebuilder:printcolumn:name="Innermost",type=string,JSONPath=`.spec.levels[-1:].domain`,description="Name of the last level"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterTopologyBinding struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the topology.
	// +required
	Spec ClusterTopologyBindingSpec `json:"spec"`

	// status is written by other products that use this API. Muster does not
	// write it.
	// +optional
	Status ClusterTopologyBindingStatus `json:"status,omitempty"`
}

// ClusterTopologyBindingList is a list of ClusterTopologyBindings.
//
// +kubebuilder:object:root=true
type ClusterTopologyBindingList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ClusterTopologyBindings.
	Items []ClusterTopologyBinding `json:"items"`
}

// ClusterTopologyBindingSpec is an ordered list of named levels.
type ClusterTopologyBindingSpec struct {
	// levels are the levels, outermost first.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule=`self.all(level, self.exists_one(other, other.domain == level.domain))`,reason=FieldValueInvalid,message="the domains of the levels must be different"
	// +kubebuilder:validation:XValidation:rule=`self.all(level, self.exists_one(other, other.key == level.key))`,reason=FieldValueInvalid,message="the keys of the levels must be different"
	Levels []ClusterTopologyLevel `json:"levels"`

	// schedulerTopologyBindings name the Topology with the same levels that
	// PodGroups refer to, by the scheduler of their pods. For schedulers that
	// are not listed, it is the Topology with the name of this object.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule=`self.all(entry, self.exists_one(other, other.schedulerName == entry.schedulerName))`,reason=FieldValueInvalid,message="the schedulerNames must be different"
	SchedulerTopologyBindings []SchedulerTopologyBinding `json:"schedulerTopologyBindings,omitempty"`
}

// Domains returns the names of the levels, outermost first.
func (s *ClusterTopologyBindingSpec) Domains() []string {
	domains := make([]string, len(s.Levels))
	for i, level := range s.Levels {
		domains[i] = level.Domain
	}
	return domains
}

// Keys returns the node labels of the levels, outermost first.
func (s *ClusterTopologyBindingSpec) Keys() []string {
	keys := make([]string, len(s.Levels))
	for i, level := range s.Levels {
		keys[i] = level.Key
	}
	return keys
}

// ClusterTopologyLevel is one level of a topology, with its name.
type ClusterTopologyLevel struct {
	// domain is the name of the level, for example rack.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9-]*$`
	Domain string `json:"domain"`

	// key is the key of the node label whose values are the domains of the
	// level, for example topology.kubernetes.io/zone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`!format.qualifiedName().validate(self).hasValue()`,reason=FieldValueInvalid,message="must be the key of a label: a name of at most 63 letters, digits, -, _ and ., after an optional DNS subdomain and /"
	Key string `json:"key"`
}

// SchedulerTopologyBinding names the Topology of a scheduler.
type SchedulerTopologyBinding struct {
	// schedulerName is the schedulerName of the pods.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName"`

	// topologyReference is the name of the Topology.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	TopologyReference string `json:"topologyReference"`
}

// ClusterTopologyBindingStatus tells whether the Topologies of schedulers have
// the levels of the ClusterTopologyBinding.
type ClusterTopologyBindingStatus struct {
	// observedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the conditions.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// schedulerTopologyStatuses contain an entry for each scheduler.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	SchedulerTopologyStatuses []SchedulerTopologyStatus `json:"schedulerTopologyStatuses,omitempty"`
}

// SchedulerTopologyStatus tells whether the Topology of one scheduler has the
// levels of the ClusterTopologyBinding.
type SchedulerTopologyStatus struct {
	SchedulerTopologyBinding `json:",inline"`

	// inSync is true if the levels are the same.
	// +required
	InSync bool `json:"inSync"`

	// schedulerBackendTopologyObservedGeneration is the generation of the
	// Topology that was compared.
	// +optional
	SchedulerBackendTopologyObservedGeneration int64 `json:"schedulerBackendTopologyObservedGeneration,omitempty"`

	// message says what differs.
	// +optional
	Message string `json:"message,omitempty"`
}
