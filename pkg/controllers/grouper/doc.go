// SPDX-License-Identifier: Apache-2.0

// Package grouper contains the controllers that make PodGroups for workloads of other controllers, one for each kind
// that package grouping knows (docs/decisions, W13). Each pass compares the PodGroups that a workload needs with those
// that it owns. They never change a workload or a pod: the pods find their PodGroup by its name (package membership),
// and wait if they come first. The garbage collector deletes the PodGroups of workloads that are gone.
package grouper
