// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoScalingConfig configures the HorizontalPodAutoscaler that
// muster-controller creates for a clique or a scaling group.
type AutoScalingConfig struct {
	// minReplicas is the lower limit for the number of replicas to which the
	// autoscaler can scale in. Unset means the replicas of the template.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the upper limit for the number of replicas to which the
	// autoscaler can scale out.
	// +required
	// +kubebuilder:validation:Minimum=1
	MaxReplicas int32 `json:"maxReplicas"`

	// metrics are the metrics that the autoscaler scales by, as in
	// autoscaling/v2. Unset means the default of the autoscaler, 80 % of the
	// requested CPU.
	// +optional
	// +listType=atomic
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
}

// TopologyConstraint requests that pods are placed close together: in one
// domain of a level of a ClusterTopologyBinding. It becomes the
// topologyConstraint of a node in the PodGroups of the PodCliqueSet. Immutable.
//
// +kubebuilder:validation:XValidation:rule=`has(self.pack) || has(self.packDomain) && self.packDomain != ""`,fieldPath=".pack",reason=FieldValueRequired,message="a required or a preferred domain is needed"
// +kubebuilder:validation:XValidation:rule=`!has(self.packDomain) || self.packDomain == "" || !has(self.pack) || !has(self.pack.required) || self.pack.required == ""`,fieldPath=".packDomain",reason=FieldValueForbidden,message="is the older form of pack.required: use pack.required alone"
type TopologyConstraint struct {
	// topologyName is the name of the ClusterTopologyBinding whose levels the
	// domains below are. Unset means that of the scaling group or of the
	// PodCliqueSet that contains the clique. It is the same in the whole
	// PodCliqueSet.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TopologyName string `json:"topologyName,omitempty"`

	// pack defines the domains.
	// +optional
	Pack *TopologyPackConstraint `json:"pack,omitempty"`

	// packDomain is the older form of pack.required. Rejected in a new
	// PodCliqueSet.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PackDomain string `json:"packDomain,omitempty"`
}

// TopologyPackConstraint defines the levels of which all the pods are placed in
// one domain.
//
// +kubebuilder:validation:XValidation:rule=`has(self.required) && self.required != "" || has(self.preferred) && self.preferred != ""`,reason=FieldValueRequired,message="required or preferred is needed"
type TopologyPackConstraint struct {
	// required is the domain, for example rack, that all the pods must share. It
	// must not be wider than one that the scaling group or the PodCliqueSet
	// requires.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Required string `json:"required,omitempty"`

	// preferred is the domain that all the pods should share if possible; they
	// start without it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Preferred string `json:"preferred,omitempty"`
}

// ResourceClaimTemplateConfig is a template that resourceSharing can refer to
// by its name. Not implemented: stored without effect.
type ResourceClaimTemplateConfig struct {
	// name of the template, unique in the PodCliqueSet.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// templateSpec is the spec of the ResourceClaims.
	// +required
	TemplateSpec resourcev1.ResourceClaimTemplateSpec `json:"templateSpec"`
}

// ResourceSharingScope defines how many ResourceClaims are created from a
// template.
//
// +kubebuilder:validation:Enum=AllReplicas;PerReplica
type ResourceSharingScope string

const (
	// ResourceSharingScopeAllReplicas is one claim shared by all replicas.
	ResourceSharingScopeAllReplicas ResourceSharingScope = "AllReplicas"
	// ResourceSharingScopePerReplica is one claim for each replica.
	ResourceSharingScopePerReplica ResourceSharingScope = "PerReplica"
)

// ResourceSharing lets pods share a ResourceClaim. Not implemented: stored without effect.
type ResourceSharing struct {
	// name of an entry of resourceClaimTemplates or of a ResourceClaimTemplate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace of the ResourceClaimTemplate. Unset means that of the
	// PodCliqueSet.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// scope defines how many claims are created.
	// +required
	Scope ResourceSharingScope `json:"scope"`
}

// PodCliqueScalingGroupResourceSharing lets pods of a scaling group share a
// ResourceClaim. Not implemented: stored without effect.
type PodCliqueScalingGroupResourceSharing struct {
	ResourceSharing `json:",inline"`

	// filter restricts the sharing to some of the group's cliques. Unset means
	// all.
	// +optional
	Filter *PodCliqueScalingGroupResourceSharingFilter `json:"filter,omitempty"`
}

// PodCliqueScalingGroupResourceSharingFilter selects cliques of a scaling group.
type PodCliqueScalingGroupResourceSharingFilter struct {
	// childCliqueNames are names of the group's cliques.
	// +optional
	// +listType=atomic
	ChildCliqueNames []string `json:"childCliqueNames,omitempty"`
}

// PodCliqueSetResourceSharing lets pods of a PodCliqueSet share a
// ResourceClaim. Not implemented: stored without effect.
type PodCliqueSetResourceSharing struct {
	ResourceSharing `json:",inline"`

	// filter restricts the sharing to some cliques and scaling groups. Unset
	// means all.
	// +optional
	Filter *PodCliqueSetResourceSharingFilter `json:"filter,omitempty"`
}

// PodCliqueSetResourceSharingFilter selects cliques and scaling groups.
type PodCliqueSetResourceSharingFilter struct {
	// childCliqueNames are names of standalone cliques.
	// +optional
	// +listType=atomic
	ChildCliqueNames []string `json:"childCliqueNames,omitempty"`

	// childScalingGroupNames are names of scaling groups.
	// +optional
	// +listType=atomic
	ChildScalingGroupNames []string `json:"childScalingGroupNames,omitempty"`
}

// LastError is an error of the latest reconciliation. It is removed when a
// reconciliation succeeds.
type LastError struct {
	// code is a machine-readable word for the error.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code"`

	// description is a message for users: the operation that failed, and the
	// error.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description"`

	// observedAt is when this error was first observed. It does not change while the error persists.
	// +required
	ObservedAt metav1.Time `json:"observedAt"`
}
