// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// MixedReplica returns the lowest index of the replicas of a scaling group in which pods of the current template run
// beside pods of an earlier one, from which they differ; -1: there is none. Such a replica comes about under OnDelete,
// when single pods of it are deleted. members are the PodCliques of the group; replicas with one that is being deleted,
// or whose status is outdated, are left out. changed reports whether a clique has changed since the revision with the
// given hash.
func MixedReplica(members []*v1alpha1.PodClique, changed func(clique, since string) bool) int {
	replicas := map[int][]*v1alpha1.PodClique{}
	for _, c := range members {
		replicas[GroupReplicaIndex(c)] = append(replicas[GroupReplicaIndex(c)], c)
	}
	mixed := -1
	for j, members := range replicas {
		if (mixed < 0 || j < mixed) && isMixed(members, changed) {
			mixed = j
		}
	}
	return mixed
}

// isMixed is MixedReplica for the PodCliques of one replica.
func isMixed(members []*v1alpha1.PodClique, changed func(clique, since string) bool) bool {
	var since []string // the revisions that pods of earlier templates follow
	partly := false    // pods of one PodClique differ
	for _, c := range members {
		s := &c.Status
		if c.DeletionTimestamp != nil || s.ObservedGeneration != c.Generation || s.ObservedRevision != RevisionNumber(c) {
			return false
		}
		if s.UpdatedReplicas < s.Replicas {
			since = append(since, ptr.Deref(s.CurrentPodCliqueSetGenerationHash, ""))
			partly = partly || s.UpdatedReplicas > 0
		}
	}
	for _, c := range members {
		for _, hash := range since {
			if c.Status.UpdatedReplicas > 0 && hash != "" && changed(c.Labels[v1alpha1.LabelTemplateName], hash) {
				return true
			}
		}
	}
	return partly
}
