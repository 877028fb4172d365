// SPDX-License-Identifier: Apache-2.0

package podcliquescalinggroup

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// decideUnits decides on the PodCliques of each replica of a group. The cached objects are sufficient to leave a
// replica alone; before a replica is replaced, or a PodClique is created in a group that had PodCliques before,
// decideUnits reads from the API server.
func (r *Reconciler) decideUnits(ctx context.Context, seen *observation, plan *groupPlan, now time.Time) error {
	group, set := seen.group, seen.set
	plan.units, plan.termination = make(units, max(group.Spec.Replicas, 0)), decideTermination(set, group, seen.members, now)
	i := naming.LabelIndex(group.Labels, v1alpha1.LabelPodCliqueSetReplicaIndex)
	if i < 0 {
		return nil
	}
	cliques, pods, err := r.children.SetReplica(ctx, group.Namespace, set.Name, i)
	if err != nil {
		return err
	}
	members := seen.members
	if workload.IsGroupUpdating(group) { // statuses are some seconds behind
		members = workload.WithScheduled(members, pods)
	}
	plan.rollout, plan.holds = r.decideUpdate(seen, members, now)
	r.decideReplicas(ctx, seen, plan, i, cliques, pods, now)
	askServer, isNew := false, group.Status.ObservedGeneration == 0
	for j, d := range plan.units {
		askServer = askServer || d.Attempt != workload.GroupAttempt(group, j) || len(d.Create) > 0 && !isNew
	}
	if !askServer {
		return nil
	}
	return r.confirmUnits(ctx, seen, plan, i, now)
}

// decideReplicas decides on each replica of the group, whose set replica is i. cliques and pods are all of that.
func (r *Reconciler) decideReplicas(ctx context.Context, seen *observation, plan *groupPlan, i int, cliques []*v1alpha1.PodClique, pods []*corev1.Pod, now time.Time) {
	group, set, replace := seen.group, seen.set, plan.replacements()
	isFrozen := workload.FrozenReplicas(set)(i)
	own := workload.OwnershipOf(set, []*v1alpha1.PodCliqueScalingGroup{group}, cliques)
	for j := range plan.units {
		names, named := workload.MemberNames(group, set, i, j), replicaOf(group, cliques, j)
		if !replace[j].Requested() && workload.IsUnitComplete(workload.GroupAttempt(group, j), names, own.Cliques(named)) {
			plan.units[j] = lifecycle.UnitDecision{Attempt: workload.GroupAttempt(group, j)}
			continue
		}
		unit := workload.GroupUnitFacts(own, group, j, names, named, cliques, pods, r.children.Unreachable(ctx))
		unit.Replace = replace[j]
		plan.units[j] = lifecycle.DecideUnit(unit, now)
		if isFrozen {
			plan.units[j] = plan.units[j].Frozen(unit.Attempt)
		}
	}
}

// replicaOf returns the PodCliques that belong to replica j of the group.
func replicaOf(group *v1alpha1.PodCliqueScalingGroup, cliques []*v1alpha1.PodClique, j int) []*v1alpha1.PodClique {
	return slices.DeleteFunc(slices.Clone(cliques), func(c *v1alpha1.PodClique) bool {
		return c.Labels[v1alpha1.LabelPodCliqueScalingGroup] != group.Name || workload.GroupReplicaIndex(c) != j
	})
}
