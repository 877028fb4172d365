// Package v1alpha1 holds the workload API of grove.io/v1alpha1.
//
// A PodCliqueSet describes a service as replicas of one template. Each replica
// has standalone PodCliques (pods of one role) and PodCliqueScalingGroups
// (cliques that scale together, replica by replica). muster-controller makes
// the PodCliqueScalingGroups, the PodCliques, their pods and one PodGroup per
// replica; what it needs to start, muster-scheduler starts together.
//
// The field names, labels and names of children are those of NVIDIA Grove, so
// that what was written for it runs unchanged. Users write the PodCliqueSet,
// and spec.replicas of the others through their scale subresource; the rest of
// the others is muster-controller's. What a valid spec is stands in package
// validation, what an unset field means in SetDefaults and in the field's
// comment.
//
// +kubebuilder:object:generate=true
// +groupName=grove.io
package v1alpha1
