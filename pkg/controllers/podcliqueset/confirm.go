// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"slices"
	"time"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// liveTermination returns why replica i of a set is terminated according to the API server. groups are its scaling
// groups and cliques all of its PodCliques, read from the API server, with their ready pods counted. The version of the
// set itself is checked when the attempt is recorded.
func liveTermination(set *v1alpha1.PodCliqueSet, i int, groups []*v1alpha1.PodCliqueScalingGroup, cliques []*v1alpha1.PodClique, now time.Time) lifecycle.Replacement {
	standalone := children.ControlledBy(set, cliques)
	facts := workload.SetReplicasFacts(set, 0, nil, standalone, groups)[i]
	for k := range facts.Groups {
		g := &facts.Groups[k]
		for _, live := range groups {
			if live.Name == g.Name {
				g.AvailableReplicas = availableAtMost(live, cliques)
			}
		}
	}
	return lifecycle.DecideSetTermination([]lifecycle.SetReplica{facts}, now).Replicas[i]
}

// availableAtMost returns the maximum number of replicas of a group that may be available.
func availableAtMost(group *v1alpha1.PodCliqueScalingGroup, cliques []*v1alpha1.PodClique) int32 {
	members := slices.DeleteFunc(children.ControlledBy(group, cliques), func(c *v1alpha1.PodClique) bool {
		return workload.GroupReplicaIndex(c) >= int(group.Spec.Replicas)
	})
	available, unknown := lifecycle.CountAvailable(workload.GroupReplicasFacts(group, nil, members))
	return available + unknown
}
