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
	"github.com/muster-project/muster/pkg/workload"
)

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
			plan.termination = decideTermination(set, group, workload.WithReady(members, pods, r.children.StillUnreachable(ctx), r.children.SilentMarker(ctx, set, now)), now)
		}
		plan.rollout, plan.holds = r.decideUpdate(seen, workload.WithCounts(members, pods, r.children.LiveUnreachable(ctx), r.children.SilentMarker(ctx, set, now)), now)
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
