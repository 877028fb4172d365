// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/observed"
)

// liveTermination returns why replica i of a set is terminated according to the API server. cliques are all PodCliques
// of the replica, read from the API server, with their ready pods counted. The version of the set itself is checked
// when the attempt is recorded.
func (r *Reconciler) liveTermination(ctx context.Context, set *v1alpha1.PodCliqueSet, i int, owned ownedObjects, cliques []*v1alpha1.PodClique, now time.Time) (lifecycle.Replacement, error) {
	standalone := children.ControlledBy(set, cliques)
	var groups []*v1alpha1.PodCliqueScalingGroup
	for _, g := range owned.groups {
		if naming.Index(g.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex) != i {
			continue
		}
		live := &v1alpha1.PodCliqueScalingGroup{}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(g), live); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return lifecycle.Replacement{}, fmt.Errorf("reading PodCliqueScalingGroup %s from the API server: %w", g.Name, err)
		}
		if live.UID == g.UID {
			groups = append(groups, live)
		}
	}
	facts := observed.SetReplicas(set, 0, nil, standalone, groups)[i]
	for k := range facts.Groups {
		g := &facts.Groups[k]
		for _, live := range groups {
			if live.Name == g.Name {
				g.AvailableReplicas = availableAtMost(live, cliques)
			}
		}
	}
	return lifecycle.DecideSetTermination([]lifecycle.SetReplica{facts}, now).Replicas[i], nil
}

// availableAtMost returns the maximum number of replicas of a group that may be available.
func availableAtMost(group *v1alpha1.PodCliqueScalingGroup, cliques []*v1alpha1.PodClique) int32 {
	var members []*v1alpha1.PodClique
	for _, c := range children.ControlledBy(group, cliques) {
		if observed.GroupReplicaIndex(c) < int(group.Spec.Replicas) {
			members = append(members, c)
		}
	}
	available, unknown := lifecycle.CountAvailable(observed.GroupReplicas(group, nil, members))
	return available + unknown
}
