// SPDX-License-Identifier: Apache-2.0

// Package v2alpha2 contains the PodGroup of scheduling.run.ai/v2alpha2: a gang
// of pods, optionally a tree of sub-groups, that is scheduled as a whole or not
// at all.
//
// The annotation pod-group-name of a pod contains the name of its PodGroup, in
// the same namespace. The label kai.scheduler/subgroup-name contains the name
// of its leaf in the tree.
//
// Users write spec; only muster-scheduler writes status. Package validation
// defines which specs are valid, package gang what they mean.
//
// +kubebuilder:object:generate=true
// +groupName=scheduling.run.ai
package v2alpha2
