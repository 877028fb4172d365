// SPDX-License-Identifier: Apache-2.0

package podcliquescalinggroup

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// decideUnits decides on the PodCliques of each replica of a group. The cached objects are sufficient to leave a replica
// alone; before a replica is replaced, or a PodClique is created in a group that had PodCliques before, decideUnits reads
// from the API server.
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
	own := workload.OwnershipOf(set, []*v1alpha1.PodCliqueScalingGroup{group}, cliques)
	for j := range plan.units {
		names, named := memberNames(group, set, i, j), replicaOf(group, cliques, j)
		if !replace[j].Requested() && workload.IsUnitComplete(workload.GroupAttempt(group, j), names, own.Cliques(named)) {
			plan.units[j] = lifecycle.UnitDecision{Attempt: workload.GroupAttempt(group, j)}
			continue
		}
		unit := workload.GroupUnitFacts(own, group, j, names, named, cliques, pods, r.children.Unreachable(ctx))
		unit.Replace = replace[j]
		plan.units[j] = lifecycle.DecideUnit(unit, now)
		if workload.IsFrozen(set, i) {
			plan.units[j] = plan.units[j].Frozen(unit.Attempt)
		}
	}
}

// confirmUnits makes the decisions of decideUnits on objects read from the API server.
func (r *Reconciler) confirmUnits(ctx context.Context, seen *observation, plan *groupPlan, i int, now time.Time) error {
	group, set := seen.group, seen.set
	// An attempt that was raised but is not in the cache yet has no PodCliques: without this check, those of the
	// previous attempt would be created once more.
	if err := r.children.EnsureUpToDate(ctx, group); err != nil {
		return err
	}
	cliques, pods, err := r.children.LiveSetReplica(ctx, group.Namespace, set.Name, i)
	if err != nil {
		return err
	}
	// What an attempt of the set explains is replaced by the set, which is about to tell the group.
	recorded, err := r.children.LiveSetAttempt(ctx, set, i)
	if err != nil {
		return err
	}
	if recorded.Set > workload.GroupAttempt(group, 0).Set {
		return apierrors.NewConflict(v1alpha1.Resource("podcliquescalinggroups"), group.Name,
			fmt.Errorf("replica %d of PodCliqueSet %s is replaced", i, set.Name))
	}
	asked := plan.replacements()
	if len(asked) > 0 {
		// The delay and the strategy must be current, too.
		if err := r.children.EnsureUpToDate(ctx, set); err != nil {
			return err
		}
		members := children.ControlledBy(group, cliques)
		if len(plan.termination.Replicas) > 0 {
			plan.termination = decideTermination(set, group, workload.WithReady(members, pods), now)
		}
		plan.rollout, plan.holds = r.decideUpdate(seen, workload.WithCounts(members, pods), now)
	}
	r.decideReplicas(ctx, seen, plan, i, cliques, pods, now)
	replace := plan.replacements()
	for j := range plan.units {
		if asked[j].Requested() && !replace[j].Requested() {
			plan.units[j] = plan.units[j].Recheck()
		}
	}
	return r.leaveToSet(ctx, group, set, i, cliques, pods, plan.units, now)
}

// leaveToSet changes the decisions on replicas whose PodCliques were deleted by a user if all other PodCliques of the
// set replica were deleted, too: one replacement is enough, and it is the set's. cliques and pods are all of the set
// replica, read from the API server.
func (r *Reconciler) leaveToSet(ctx context.Context, group *v1alpha1.PodCliqueScalingGroup, set *v1alpha1.PodCliqueSet, i int, cliques []*v1alpha1.PodClique, pods []*corev1.Pod, units units, now time.Time) error {
	deleted := func(d lifecycle.UnitDecision) bool { return d.Replacement.Reason == lifecycle.ReplacedDeleted }
	if !slices.ContainsFunc(units, deleted) {
		return nil
	}
	list := &v1alpha1.PodCliqueScalingGroupList{}
	if err := r.children.ListSetReplica(ctx, group, list); err != nil {
		return err
	}
	var groups []*v1alpha1.PodCliqueScalingGroup
	for k := range list.Items {
		if metav1.IsControlledBy(&list.Items[k], set) {
			groups = append(groups, &list.Items[k])
		}
	}
	groups, err := r.children.LiveGroups(ctx, groups)
	if err != nil {
		return err
	}
	standalone, members := workload.UnitNames(set, i, groups)
	whole := workload.SetUnitFacts(set, i, slices.Concat(standalone, members), cliques, pods, groups, nil, r.children.Unreachable(ctx))
	if !deleted(lifecycle.DecideUnit(whole, now)) {
		return nil
	}
	for j := range units {
		if deleted(units[j]) {
			units[j] = units[j].LeftToSet(workload.GroupAttempt(group, j))
		}
	}
	return nil
}

// memberNames returns the names of the PodCliques of replica j of a group.
func memberNames(group *v1alpha1.PodCliqueScalingGroup, set *v1alpha1.PodCliqueSet, i, j int) []string {
	var names []string
	for _, clique := range group.Spec.CliqueNames {
		names = append(names, naming.MemberPodClique(set.Name, i, group.Labels[v1alpha1.LabelTemplateName], j, clique))
	}
	return names
}

// replicaOf returns the PodCliques that belong to replica j of the group.
func replicaOf(group *v1alpha1.PodCliqueScalingGroup, cliques []*v1alpha1.PodClique, j int) []*v1alpha1.PodClique {
	var own []*v1alpha1.PodClique
	for _, c := range cliques {
		if c.Labels[v1alpha1.LabelPodCliqueScalingGroup] == group.Name && workload.GroupReplicaIndex(c) == j {
			own = append(own, c)
		}
	}
	return own
}
