// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// confirmUnit makes the decision of decideUnit on replica i on objects read from the API server. groups are its scaling
// groups.
func (r *Reconciler) confirmUnit(ctx context.Context, set *v1alpha1.PodCliqueSet, i int, groups []*v1alpha1.PodCliqueScalingGroup, replace lifecycle.Replacement,
	decide func([]*v1alpha1.PodCliqueScalingGroup, []*v1alpha1.PodClique, []*corev1.Pod, lifecycle.Replacement) lifecycle.UnitDecision, now time.Time) (lifecycle.UnitDecision, error) {
	cliques, pods, err := r.children.LiveSetReplica(ctx, set.Namespace, set.Name, i)
	if err != nil {
		return lifecycle.UnitDecision{}, err
	}
	// The groups are read after the PodCliques that they may have deleted.
	if groups, err = r.children.LiveGroups(ctx, groups); err != nil {
		return lifecycle.UnitDecision{}, err
	}
	if replace.Reason == lifecycle.ReplacedTermination { // a restart was decided on live objects
		replace = liveTermination(set, i, groups, workload.WithReady(cliques, pods, r.children.StillUnreachable(ctx), r.children.SilentMarker(ctx, set, now)), now)
		if !replace.Requested() {
			return decide(groups, cliques, pods, replace).Recheck(), nil
		}
	}
	return decide(groups, cliques, pods, replace), nil
}

// confirmTraining makes the decision cached, of decideTraining, on objects read from the API server.
func (r *Reconciler) confirmTraining(ctx context.Context, set *v1alpha1.PodCliqueSet, owned ownedObjects, cached lifecycle.TrainingOutcome, now time.Time) (*lifecycle.TrainingOutcome, error) {
	read := func(ctx context.Context, namespace, name string, i int) ([]*v1alpha1.PodClique, []*corev1.Pod, error) {
		cliques, pods, err := r.children.LiveSetReplica(ctx, namespace, name, i)
		return workload.WithoutRecovered(cliques, pods, r.children.StillUnreachable(ctx), r.children.SilentMarker(ctx, set, now), now), pods, err
	}
	outcome, err := r.trainingOutcome(ctx, set, owned, read, r.children.LiveUnreachable, now)
	if err != nil {
		return nil, err
	}
	if len(outcome.Restart) < len(cached.Restart) || outcome.Failure != cached.Failure {
		outcome = outcome.Recheck()
	}
	return &outcome, nil
}

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
