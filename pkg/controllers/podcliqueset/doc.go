// SPDX-License-Identifier: Apache-2.0

// Package podcliqueset contains the controller of PodCliqueSets, which maintains for each replica a PodGroup, the
// standalone PodCliques and the PodCliqueScalingGroups, a headless Service, and the autoscalers of the template.
//
// The PodGroup is written first: an object may be created when the PodGroup lists it, and deleted when the PodGroup no
// longer lists it. Pods therefore never wait for a tree that does not include them, and a gang never falls below a
// minimum that is still in force.
package podcliqueset
