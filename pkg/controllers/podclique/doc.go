// SPDX-License-Identifier: Apache-2.0

// Package podclique contains the controller of PodCliques, which creates and deletes their pods.
//
// Which pods are created and deleted is decided by lifecycle.DecidePods, for a Training workload by
// lifecycle.DecideTrainingPods, and for an update by lifecycle.DecideCliqueUpdate; workload.Pod builds a pod. The name
// of a pod is determined by its PodClique and its index, so that one index cannot get two pods, however old the cache
// is. Pods are created once the PodGroup lists the clique, and scaling in deletes pods once the PodGroup has been
// lowered.
package podclique
