// SPDX-License-Identifier: Apache-2.0

// Package grouping says which PodGroups the workloads of other controllers need: of a Job, StatefulSet, Deployment,
// LeaderWorkerSet, JobSet or RayCluster as it is stored, the PodGroups of its gangs, with the numbers of pods that its
// controller will create, and these pods (Kind.Pods). The pods find it by package membership. Rules in CEL (ParseRules)
// add further kinds.
//
// A workload is read as an unstructured object, so that no kind needs a dependency. The package is pure.
package grouping
