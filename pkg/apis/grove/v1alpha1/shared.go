package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoScalingConfig makes muster-controller keep a HorizontalPodAutoscaler for
// a clique or a scaling group.
type AutoScalingConfig struct {
	// minReplicas is the fewest replicas that the autoscaler scales in to.
	// Unset means the replicas of the template.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the most replicas that the autoscaler scales out to.
	// +required
	// +kubebuilder:validation:Minimum=1
	MaxReplicas int32 `json:"maxReplicas"`

	// metrics are what the autoscaler decides by, in the form of
	// autoscaling/v2. Unset means its default, 80 % of the requested CPU.
	// +optional
	// +listType=atomic
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`
}

// TopologyConstraint asks for pods to be placed close together. Not acted on: a
// required domain is refused, a preferred one is kept.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.packDomain) || self.packDomain == ""`,fieldPath=".packDomain",reason=FieldValueForbidden,message="a required topology is not supported, and placing the pods without it would break what needs it: use pack.preferred, or pod affinity with the node label of this domain"
type TopologyConstraint struct {
	// topologyName names the topology that the domains below are levels of.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TopologyName string `json:"topologyName,omitempty"`

	// pack says which domain should hold all the pods.
	// +optional
	Pack *TopologyPackConstraint `json:"pack,omitempty"`

	// packDomain is the older form of pack.required. Refused like it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PackDomain string `json:"packDomain,omitempty"`
}

// TopologyPackConstraint says which domain should hold all the pods.
//
// +kubebuilder:validation:XValidation:rule=`!has(self.required) || self.required == ""`,fieldPath=".required",reason=FieldValueForbidden,message="a required topology is not supported, and placing the pods without it would break what needs it: use pack.preferred, or pod affinity with the node label of this domain"
type TopologyPackConstraint struct {
	// required is the domain that must hold all the pods. Refused, because a
	// workload that needs it must not be placed without it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Required string `json:"required,omitempty"`

	// preferred is the domain that should hold all the pods if possible. Kept,
	// not acted on.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Preferred string `json:"preferred,omitempty"`
}

// ResourceClaimTemplateConfig is a template that resourceSharing can refer to by
// its name. Kept, not acted on.
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

// ResourceSharingScope says how many ResourceClaims are made from a template.
//
// +kubebuilder:validation:Enum=AllReplicas;PerReplica
type ResourceSharingScope string

const (
	// ResourceSharingScopeAllReplicas is one claim shared by all replicas.
	ResourceSharingScopeAllReplicas ResourceSharingScope = "AllReplicas"
	// ResourceSharingScopePerReplica is one claim for each replica.
	ResourceSharingScopePerReplica ResourceSharingScope = "PerReplica"
)

// ResourceSharing lets pods share a ResourceClaim. Kept, not acted on.
type ResourceSharing struct {
	// name of an entry of resourceClaimTemplates, or of a ResourceClaimTemplate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace of the ResourceClaimTemplate. Unset means that of the
	// PodCliqueSet.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// scope says how many claims there are.
	// +required
	Scope ResourceSharingScope `json:"scope"`
}

// PodCliqueScalingGroupResourceSharing lets pods of a scaling group share a
// ResourceClaim. Kept, not acted on.
type PodCliqueScalingGroupResourceSharing struct {
	ResourceSharing `json:",inline"`

	// filter restricts the sharing to some of the group's cliques. Unset means
	// all.
	// +optional
	Filter *PodCliqueScalingGroupResourceSharingFilter `json:"filter,omitempty"`
}

// PodCliqueScalingGroupResourceSharingFilter picks cliques of a scaling group.
type PodCliqueScalingGroupResourceSharingFilter struct {
	// childCliqueNames are names of the group's cliques.
	// +optional
	// +listType=atomic
	ChildCliqueNames []string `json:"childCliqueNames,omitempty"`
}

// PodCliqueSetResourceSharing lets pods of a PodCliqueSet share a
// ResourceClaim. Kept, not acted on.
type PodCliqueSetResourceSharing struct {
	ResourceSharing `json:",inline"`

	// filter restricts the sharing to some cliques and scaling groups. Unset
	// means all.
	// +optional
	Filter *PodCliqueSetResourceSharingFilter `json:"filter,omitempty"`
}

// PodCliqueSetResourceSharingFilter picks cliques and scaling groups.
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

// LastError is something that went wrong in the latest attempt to bring the
// object to what its spec wants. Gone as soon as an attempt succeeds.
type LastError struct {
	// code is one word for programs.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code"`

	// description is for users: what was tried, and what the answer was.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description"`

	// observedAt is when this error was first seen. Not moved while it persists.
	// +required
	ObservedAt metav1.Time `json:"observedAt"`
}
