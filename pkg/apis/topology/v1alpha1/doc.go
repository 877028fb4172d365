// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the Topology of kai.scheduler/v1alpha1: the node
// labels that describe where nodes are, from the outermost level (a zone, a
// block) to the innermost (a rack, a host).
//
// Administrators write Topologies. A PodGroup names one in
// topologyConstraint.topology, and its levels by their node labels. Package
// topology answers questions about the order of levels.
//
// +kubebuilder:object:generate=true
// +groupName=kai.scheduler
package v1alpha1
