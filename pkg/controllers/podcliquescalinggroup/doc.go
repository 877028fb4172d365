// SPDX-License-Identifier: Apache-2.0

// Package podcliquescalinggroup contains the controller of PodCliqueScalingGroups, which creates, updates and deletes
// the PodCliques of their replicas.
//
// The template of the PodCliqueSet, which owns the group, defines the PodCliques of a replica. A replica is created
// when the PodGroup lists it, and deleted when the PodGroup no longer lists it; the PodCliqueSet's controller
// maintains the PodGroup.
package podcliquescalinggroup
