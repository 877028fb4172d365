// SPDX-License-Identifier: Apache-2.0

package podcliquescalinggroup

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
)

// maxParallel is the maximum number of parallel requests for one scaling group.
const maxParallel = 16

// Reconcile creates and deletes PodCliques of one scaling group and writes its status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	now := r.clock.Now()

	// 1. Read.
	if err := r.children.CleanUpFormerOwner(ctx, &v1alpha1.PodCliqueScalingGroup{}, v1alpha1.KindPodCliqueScalingGroup, request.NamespacedName, maxParallel,
		&v1alpha1.PodCliqueList{}); err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}
	group := &v1alpha1.PodCliqueScalingGroup{}
	if err := r.client.Get(ctx, request.NamespacedName, group); err != nil {
		r.replacing.Record(request.String(), 0)
		r.mixed.Forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if served, err := r.children.Serves(ctx, group); err != nil || !served {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}
	if group.DeletionTimestamp != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, r.children.Release(ctx, group, maxParallel, &v1alpha1.PodCliqueList{}),
			r.children.DeleteOwned(ctx, group, maxParallel, &v1alpha1.PodCliqueList{}))
	}

	// 2. Observe.
	seen, err := r.observeGroup(ctx, group)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 3. Decide.
	plan, err := r.decideGroup(ctx, seen, now)
	if err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}

	// 4. Update and create PodCliques.
	r.replacing.Record(request.String(), lifecycle.UnderWay(plan.units)+len(plan.raised))
	createErr := r.createOrUpdateMembers(ctx, request.NamespacedName, seen, plan)

	// 5. Record, before any PodClique is deleted.
	recorded, err := r.writeStatus(ctx, seen, plan, createErr, now)
	if err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}
	r.reportMixed(ctx, recorded, seen)

	// 6. Delete.
	removeErr := r.children.DeleteRecorded(ctx, recorded, len(plan.remove), maxParallel, func(i int) error { return r.children.DeleteAt(ctx, plan.remove[i], now) })
	if removeErr != nil {
		removeErr = fmt.Errorf("deleting PodCliques: %w", removeErr)
	}
	klog.FromContext(ctx).V(4).Info("Reconciled PodCliqueScalingGroup", "podCliques", len(seen.members), "deleted", len(plan.remove))
	return r.children.Result(ctx, request.NamespacedName, now, plan.requeueAfter(seen, now), createErr, removeErr)
}

// createOrUpdateMembers updates and creates the PodCliques of the plan. The rejection of one PodClique does not prevent
// the update of others.
func (r *Reconciler) createOrUpdateMembers(ctx context.Context, name types.NamespacedName, seen *observation, plan *groupPlan) error {
	createOrUpdate := func(m member) error {
		if err := r.children.SpecUnchanged(ctx, seen.group); err != nil {
			return err
		}
		return children.CreateOrUpdate(ctx, r.children, m.existing, m.want)
	}
	updateErr := children.ForEach(len(plan.update), maxParallel, func(i int) error { return createOrUpdate(plan.update[i]) })
	_, createErr := r.children.SlowStart(r.clock, name, len(plan.create), maxParallel, func(i int) error { return createOrUpdate(plan.create[i]) })
	return errors.Join(updateErr, createErr)
}
