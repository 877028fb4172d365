// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the workload API of grove.io/v1alpha1.
//
// A PodCliqueSet describes a service or a job as replicas of one template. Each
// replica has standalone PodCliques (pods of one role) and
// PodCliqueScalingGroups (cliques that scale together, replica by replica).
// muster-controller creates the PodCliqueScalingGroups, the PodCliques, their
// pods, and one PodGroup for each replica. muster-scheduler binds the minimum
// of each PodGroup together. A ClusterTopologyBinding has the node labels of
// the topology domains that PodCliqueSets name.
//
// The names of fields, labels and child objects are those of NVIDIA Grove, so
// that manifests and tools written for Grove work unchanged. Users write the
// PodCliqueSet. They may also set spec.replicas of PodCliques and
// PodCliqueScalingGroups through the scale subresource; muster-controller
// writes everything else of these objects. Package validation defines which
// specs are valid. SetDefaults and the comment of each field define what an
// unset field means.
//
// +kubebuilder:object:generate=true
// +groupName=grove.io
package v1alpha1
