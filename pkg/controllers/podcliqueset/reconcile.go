// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

const (
	// maxParallel is the maximum number of replicas of one set that are processed in parallel.
	maxParallel = 32
	// maxCreating is the maximum number of new replicas that are created in parallel. More would not become ready
	// sooner, but would wait longer for their pods to be created and bound, and each PodClique that waits for seconds
	// costs another write of its status.
	maxCreating = 8
)

// Reconcile creates, updates and deletes the objects of one PodCliqueSet and writes its status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	now := r.clock.Now()

	// 1. Read.
	if err := r.children.CleanUpFormerOwner(ctx, &v1alpha1.PodCliqueSet{}, v1alpha1.KindPodCliqueSet, request.NamespacedName, maxParallel,
		&v2alpha2.PodGroupList{}, &v1alpha1.PodCliqueScalingGroupList{}, &v1alpha1.PodCliqueList{},
		&autoscalingv2.HorizontalPodAutoscalerList{}, &corev1.ServiceList{}, &appsv1.ControllerRevisionList{}); err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}
	live := &v1alpha1.PodCliqueSet{}
	if err := r.client.Get(ctx, request.NamespacedName, live); err != nil {
		r.forgetSet(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if served, err := r.children.ServesSet(ctx, live); err != nil || !served {
		r.forgetSet(request.NamespacedName)
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}
	if live.DeletionTimestamp != nil {
		// The garbage collector deletes the objects of the set.
		return r.children.Result(ctx, request.NamespacedName, now, 0, r.children.Release(ctx, live, maxParallel, &v1alpha1.PodCliqueList{}, &v1alpha1.PodCliqueScalingGroupList{}, &v2alpha2.PodGroupList{}))
	}
	owned, err := r.ownedBy(ctx, live)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 2. Observe.
	seen, err := r.observeSet(ctx, live, owned, now)
	if seen == nil || err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}

	// 3. Decide.
	plan, err := r.decideSet(ctx, seen, now)
	if err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}

	// 4. Create missing objects, update those that differ.
	removals, createErr := r.createOrUpdateReplicas(ctx, request.NamespacedName, seen, plan)

	// 5. Record, before any object is deleted.
	r.replacing.Record(request.String(), lifecycle.UnderWay(plan.units)+len(plan.raised))
	recorded, delay, err := r.writeStatus(ctx, seen, plan, createErr, len(removals) > 0, now)
	if err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}

	// 6. Delete.
	removeErr := r.children.DeleteRecorded(ctx, recorded, len(removals), maxParallel, func(i int) error { return r.removeReplica(ctx, removals[i]) })
	if plan.training != nil && plan.training.Expired {
		removeErr = errors.Join(removeErr, r.children.DeleteVersion(ctx, recorded))
	}
	after := lifecycle.Sooner(delay, plan.requeueAfter(workload.SetProgressDiffers(&seen.live.Status, &recorded.Status), now))
	after = lifecycle.Sooner(after, r.reportAvailability(seen.live, recorded, now))
	klog.FromContext(ctx).V(4).Info("Reconciled PodCliqueSet", "replicas", seen.set.Spec.Replicas, "deleted", len(removals))
	return r.children.Result(ctx, request.NamespacedName, now, after, createErr, removeErr)
}

// forgetSet drops what is kept between passes about a set that is gone.
func (r *Reconciler) forgetSet(name types.NamespacedName) {
	r.replacing.Record(name.String(), 0)
	r.stories.Forget(name)
	r.trials.Forget(name)
	r.stops.Forget(name)
}

// createOrUpdateReplicas creates and updates the objects of the desired replicas, and returns those to be deleted: of
// replicas that are replaced, and those that are not desired.
func (r *Reconciler) createOrUpdateReplicas(ctx context.Context, name types.NamespacedName, seen *observation, plan *setPlan) ([]removal, error) {
	if seen.revision == nil {
		return nil, seen.invalid
	}
	set, owned, replicas := seen.set, seen.owned, len(plan.units)
	names, services := make([][]child, replicas), make([]*corev1.Service, replicas)
	raisedGroups := make([]bool, replicas) // whether the scaling groups of the replica have its attempt
	isFrozen := workload.FrozenReplicas(set)

	accessErr := r.createOrUpdateAccess(ctx, set) // before the pods that need it
	createOrUpdate := func(i int) error {
		if err := r.children.SpecUnchanged(ctx, seen.live); err != nil {
			return err
		}
		if plan.units[i].Attempt != workload.SetAttempt(set, i) || plan.awaitsRecord[i] || plan.training != nil && plan.training.Failure != "" {
			return nil // the replica is replaced, the update reaches it, or the workload fails, which must be recorded first
		}
		want := wantedReplica(set, seen.revision, i, owned, plan.current, plan.holds[i])
		names[i] = want.names()
		if isFrozen(i) {
			want = want.onlyExisting(owned)
		}
		var err error
		if want.groups, err = r.raiseGroups(ctx, want.groups, owned); err != nil {
			return err
		}
		raisedGroups[i] = true
		services[i], err = r.createOrUpdate(ctx, want, owned, plan.units[i])
		return err
	}
	// The rejection of one replica does not prevent scaling of existing ones; only new replicas wait.
	existing, missing := owned.replicas(set.Name, replicas)
	existingErr := children.ForEach(len(existing), maxParallel, func(k int) error { return createOrUpdate(existing[k]) })
	_, missingErr := r.children.SlowStart(r.clock, name, len(missing), maxCreating, func(k int) error { return createOrUpdate(missing[k]) })
	// Services are created after the PodCliques of all replicas of the pass. kube-controller-manager updates the
	// addresses of a Service each time a few pods start; with this order most pods have started by then.
	services = slices.DeleteFunc(services, func(s *corev1.Service) bool { return s == nil })
	_, serviceErr := r.children.SlowStart(r.clock, name, len(services), maxCreating, func(k int) error {
		return children.CreateOrUpdate(ctx, r.children, nil, services[k])
	})
	for i := range names {
		if names[i] == nil { // a decision must be recorded first, or the batches ended before it
			names[i] = wantedReplica(set, seen.revision, i, owned, plan.current, plan.holds[i]).names()
		}
	}
	removals := append(replacements(set, plan.units, raisedGroups, owned), unwantedObjects(names, owned)...)
	return removals, errors.Join(accessErr, existingErr, missingErr, serviceErr)
}

// createOrUpdate creates and updates the objects of one replica after raiseGroups: first its PodGroup, without which no
// other object is created. Of the missing PodCliques it creates those in the decision. A PodGroup of an earlier attempt
// is not updated: it is deleted, and its successor is created when it and all pods of that attempt are gone, and the
// decision does not pause: members of scaling groups wait for it, too. If the
// Service is missing, it is returned for the caller to create.
func (r *Reconciler) createOrUpdate(ctx context.Context, want replica, owned ownedObjects, d lifecycle.UnitDecision) (missing *corev1.Service, err error) {
	if want.podGroup != nil {
		existing := owned.podGroups[want.podGroup.Name]
		if isEarlier(existing, d.Attempt) || existing == nil && (d.Earlier || d.Paused != "") {
			return nil, r.updateGroups(ctx, want, owned)
		}
		if err := children.CreateOrUpdate(ctx, r.children, existing, want.podGroup); err != nil {
			return nil, err
		}
	}
	var errs []error
	if want.service != nil {
		if existing := owned.services[want.service.Name]; existing != nil {
			errs = append(errs, children.CreateOrUpdate(ctx, r.children, existing, want.service))
		} else {
			missing = want.service
		}
	}
	for _, c := range want.cliques {
		if existing := owned.cliques[c.Name]; existing != nil || slices.Contains(d.Create, c.Name) {
			errs = append(errs, children.CreateOrUpdate(ctx, r.children, existing, c))
		}
	}
	errs = append(errs, r.updateGroups(ctx, want, owned))
	for _, h := range want.hpas {
		errs = append(errs, children.CreateOrUpdate(ctx, r.children, owned.hpas[h.Name], h))
	}
	return missing, errors.Join(errs...)
}

// raiseGroups updates the existing scaling groups of one replica that have another attempt than desired, and returns
// the others. Until it has the attempt, a group recreates PodCliques that are deleted for the previous attempt, and
// their pods would count towards the new PodGroup.
func (r *Reconciler) raiseGroups(ctx context.Context, groups []*v1alpha1.PodCliqueScalingGroup, owned ownedObjects) (others []*v1alpha1.PodCliqueScalingGroup, err error) {
	var errs []error
	for _, g := range groups {
		existing := owned.groups[g.Name]
		if existing == nil || workload.Attempt(existing).Set == workload.Attempt(g).Set {
			others = append(others, g)
			continue
		}
		errs = append(errs, children.CreateOrUpdate(ctx, r.children, existing, g))
	}
	return others, errors.Join(errs...)
}

// updateGroups creates and updates the scaling groups of one replica.
func (r *Reconciler) updateGroups(ctx context.Context, want replica, owned ownedObjects) error {
	var errs []error
	for _, g := range want.groups {
		errs = append(errs, children.CreateOrUpdate(ctx, r.children, owned.groups[g.Name], g))
	}
	return errors.Join(errs...)
}

// createOrUpdateAccess allows the waiting containers of the set to read the objects they wait for. The cliques of a
// set and their order are immutable, so the Role and the RoleBinding are not deleted before the set is.
func (r *Reconciler) createOrUpdateAccess(ctx context.Context, set *v1alpha1.PodCliqueSet) error {
	role, binding := workload.StartAccess(set)
	if role == nil {
		return nil
	}
	err := children.CreateOrUpdateUncached(ctx, r.children, &rbacv1.Role{}, role)
	if err == nil {
		err = children.CreateOrUpdateUncached(ctx, r.children, &rbacv1.RoleBinding{}, binding)
	}
	if err != nil {
		return fmt.Errorf("granting access to pods that wait for other cliques: %w", err)
	}
	return nil
}

// removeReplica deletes the objects of one replica that are no longer desired: first its PodGroup, so that no pod is
// deleted from a gang whose minimum is still in force.
func (r *Reconciler) removeReplica(ctx context.Context, gone removal) error {
	if gone.podGroup != nil {
		if err := r.children.Delete(ctx, gone.podGroup); err != nil {
			return fmt.Errorf("deleting PodGroup %s: %w", gone.podGroup.Name, err)
		}
	}
	var errs []error
	for _, o := range gone.rest {
		if err := r.children.DeleteAt(ctx, o, r.clock.Now()); err != nil {
			errs = append(errs, fmt.Errorf("deleting %T %s: %w", o, o.GetName(), err))
		}
	}
	return errors.Join(errs...)
}
