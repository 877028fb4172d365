// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/grove/validation"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/controllers/metrics"
	"github.com/muster-project/muster/pkg/desired"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/observed"
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
		metrics.UnderWay(v1alpha1.KindPodCliqueSet, request.String(), 0)
		r.stories.Forget(request.NamespacedName)
		r.trials.Forget(request.NamespacedName)
		r.stops.Forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if live.DeletionTimestamp != nil {
		// The garbage collector deletes the objects of the set.
		return r.children.Result(ctx, request.NamespacedName, now, 0, r.children.Release(ctx, live, maxParallel, &v1alpha1.PodCliqueList{}, &v1alpha1.PodCliqueScalingGroupList{}, &v2alpha2.PodGroupList{}))
	}
	owned, err := r.ownedBy(ctx, live)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 2. Observe, 3. decide. A new template is recorded first: children follow the revision in the status.
	live, revision, createErr, err := r.prepare(ctx, live, owned, now)
	if err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}
	cliques, groups := owned.listed()
	set, facts := r.observe(live, revision, cliques, groups)
	newest, err := r.liveIfMissing(ctx, live, facts)
	if newest == nil || err != nil {
		return ctrl.Result{}, err
	}
	if newest != live {
		if live, revision, createErr, err = r.prepare(ctx, newest, owned, now); err != nil {
			return r.children.Result(ctx, request.NamespacedName, now, 0, err)
		}
		set, facts = r.observe(live, revision, cliques, groups)
	}
	recordedReplicas := live.Status.RecordedReplicas
	var decisions []lifecycle.UnitDecision
	var termination lifecycle.Termination
	var training *lifecycle.TrainingOutcome
	var update *lifecycle.SetUpdateDecision
	var removals []removal
	if revision != nil {
		current, replicas := owned.children(), int(max(set.Spec.Replicas, 0))
		current.PodGroups = owned.presentPodGroups(set)
		termination = lifecycle.DecideSetTermination(facts, now)
		if training, err = r.decideTraining(ctx, set, owned, now); err != nil {
			return r.children.Result(ctx, request.NamespacedName, now, 0, err)
		}
		if training != nil {
			termination.Replicas, termination.Next = training.Restart, training.NextRestart
		}
		if decisions, err = r.decideUnits(ctx, set, owned, termination.Replicas, now); err != nil {
			return r.children.Result(ctx, request.NamespacedName, now, 0, err)
		}
		for i := range decisions {
			facts[i].Waits = decisions[i].Note()
		}
		rejected, err := r.tryTemplate(ctx, set, revision, owned, now)
		if err != nil {
			return r.children.Result(ctx, request.NamespacedName, now, 0, err)
		}
		update = r.decideUpdate(set, facts, cliques, groups, rejected, now) // an update does not end while a replica waits for pods of an earlier attempt
		if rejected != "" {
			// No child gets a turn, and none is told the revision, also not of the replica that was being updated.
			set.Status.UpdateProgress.CurrentlyUpdating, set.Status.UpdateProgress.ReachedIndices = nil, ""
		}
		recordedReplicas = desired.RecordedReplicas(set, current)
		holds, err := r.holds(ctx, set, facts, owned)
		if err != nil {
			return r.children.Result(ctx, request.NamespacedName, now, 0, err)
		}

		// 4. Create missing objects, update those that differ.
		names, services := make([][]lifecycle.Child, replicas), make([]*corev1.Service, replicas)
		raisedGroups := make([]bool, replicas) // whether the scaling groups of the replica have its attempt

		accessErr := r.createOrUpdateAccess(ctx, set) // before the pods that need it
		createOrUpdate := func(i int) error {
			if err := r.children.SpecUnchanged(ctx, live); err != nil {
				return err
			}
			if decisions[i].Attempt != observed.SetAttempt(set, i) || training != nil && training.Failure != "" {
				return nil // the replica is replaced, or the workload fails, which must be recorded first
			}
			want := wanted(set, revision, i, owned, current, holds[i])
			names[i] = want.names()
			if observed.IsFrozen(set, i) {
				want = want.existing(owned)
			}
			var err error
			if want.groups, err = r.raiseGroups(ctx, want.groups, owned); err != nil {
				return err
			}
			raisedGroups[i] = true
			services[i], err = r.createOrUpdate(ctx, want, owned, decisions[i])
			return err
		}
		// The rejection of one replica does not prevent scaling of existing ones; only new replicas wait.
		existing, missing := owned.replicas(set.Name, replicas)
		existingErr := children.ForEach(len(existing), maxParallel, func(k int) error { return createOrUpdate(existing[k]) })
		_, missingErr := r.children.SlowStart(r.clock, request.NamespacedName, len(missing), maxCreating, func(k int) error { return createOrUpdate(missing[k]) })
		// Services are created after the PodCliques of all replicas of the pass. kube-controller-manager updates the
		// addresses of a Service each time a few pods start; with this order most pods have started by then.
		services = slices.DeleteFunc(services, func(s *corev1.Service) bool { return s == nil })
		_, serviceErr := r.children.SlowStart(r.clock, request.NamespacedName, len(services), maxCreating, func(k int) error {
			return children.CreateOrUpdate(ctx, r.children, nil, services[k])
		})
		createErr = errors.Join(accessErr, existingErr, missingErr, serviceErr)
		for i := range names {
			if names[i] == nil { // the replica is replaced, or the batches ended before it
				names[i] = wanted(set, revision, i, owned, current, holds[i]).names()
			}
		}
		removals = append(replacements(set, decisions, raisedGroups, owned), unwanted(names, owned)...)
	}

	// 5. Record, before any object is deleted.
	running, err := r.anyRunning(ctx, owned)
	if err != nil {
		return ctrl.Result{}, err
	}
	raisedAttempts := raised(set, decisions)
	metrics.UnderWay(v1alpha1.KindPodCliqueSet, request.String(), lifecycle.UnderWay(decisions)+len(raisedAttempts))
	recorded, delay, err := r.writeStatus(ctx, live, desired.SetFacts{
		Replicas: facts, Running: running, Recorded: recordedReplicas, Reported: r.storyOf(live).Recorded(), Raised: raisedAttempts, Training: training, NextTermination: termination.Next,
		Update: update, SchedulerName: r.schedulerName, Problems: r.children.Problems(live, createErr, now)}, len(removals) > 0, now)
	if err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}

	// 6. Delete.
	var removeErr error
	if len(removals) > 0 {
		if removeErr = r.children.EnsureUpToDate(ctx, recorded); removeErr == nil {
			removeErr = children.ForEach(len(removals), maxParallel, func(i int) error { return r.remove(ctx, removals[i]) })
		}
	}
	if update != nil {
		if desired.SetProgressDiffers(&live.Status, &recorded.Status) {
			update.RequeueAfter = time.Millisecond // the next pass sets the annotations of the children
		}
	}
	after := lifecycle.Sooner(lifecycle.RequeueAfter(decisions, len(raisedAttempts) > 0), termination.RequeueAfter(now))
	after = lifecycle.Sooner(after, delay)
	after = lifecycle.Sooner(after, r.tell(live, recorded, now))
	if update != nil {
		after = lifecycle.Sooner(after, update.RequeueAfter)
	}
	if training != nil {
		if training.Again || training.Failure != "" {
			after = time.Millisecond
		}
		after = lifecycle.Sooner(after, training.RequeueAfter)
		if training.Expired {
			removeErr = errors.Join(removeErr, r.children.DeleteVersion(ctx, recorded))
		}
	}
	klog.FromContext(ctx).V(4).Info("Reconciled PodCliqueSet", "replicas", set.Spec.Replicas, "deleted", len(removals))
	return r.children.Result(ctx, request.NamespacedName, now, after, createErr, removeErr)
}

// prepare returns the set to reconcile, with the revision of its template recorded. revision is nil if the set is
// invalid although it passed admission, or if its revision cannot be stored; invalid then contains the reason, and
// existing objects are left alone.
func (r *Reconciler) prepare(ctx context.Context, set *v1alpha1.PodCliqueSet, owned ownedObjects, now time.Time) (recorded *v1alpha1.PodCliqueSet, revision *desired.Revision, invalid, err error) {
	if errs, _ := validation.ValidatePodCliqueSet(set); len(errs) > 0 {
		return set, nil, &children.InvalidError{Err: fmt.Errorf("invalid, and nothing is made or removed until it is repaired: %w", errs.ToAggregate())}, nil
	}
	recorded, revision, err = r.withRevision(ctx, set, owned, now)
	if err != nil && !apierrors.IsConflict(err) { // reported in the status
		return set, nil, err, nil
	}
	return recorded, revision, nil, err
}

// observe returns a copy of the set with defaults, and the facts about its replicas. revision is the current one, nil
// if the set is invalid.
func (r *Reconciler) observe(live *v1alpha1.PodCliqueSet, revision *desired.Revision, cliques []*v1alpha1.PodClique, groups []*v1alpha1.PodCliqueScalingGroup) (*v1alpha1.PodCliqueSet, []lifecycle.SetReplica) {
	set := live.DeepCopy()
	v1alpha1.SetDefaults(set, r.schedulerName)
	if revision == nil {
		return set, observed.SetReplicas(set, 0, nil, cliques, groups)
	}
	return set, observed.SetReplicas(set, revision.Number, revision.Templates(), cliques, groups)
}

// liveIfMissing returns the set as it was read, or, if an object of a set that was complete before is missing, as it
// is in the API server: a recreated object gets the replicas that the status records, which may not be in the cache
// yet. nil: the set is gone or being deleted.
func (r *Reconciler) liveIfMissing(ctx context.Context, set *v1alpha1.PodCliqueSet, facts []lifecycle.SetReplica) (*v1alpha1.PodCliqueSet, error) {
	if set.Status.ObservedGeneration == 0 ||
		!slices.ContainsFunc(facts, func(r lifecycle.SetReplica) bool { return len(r.Missing) > 0 }) {
		return set, nil
	}
	live := &v1alpha1.PodCliqueSet{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(set), live); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading the set from the API server: %w", err)
	}
	if live.UID != set.UID || live.DeletionTimestamp != nil {
		return nil, nil
	}
	return live, nil
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

// raiseGroups updates the existing scaling groups of one replica that have another attempt than desired, and returns the
// others. Until it has the attempt, a group recreates PodCliques that are deleted for the previous attempt, and their
// pods would count towards the new PodGroup.
func (r *Reconciler) raiseGroups(ctx context.Context, groups []*v1alpha1.PodCliqueScalingGroup, owned ownedObjects) (others []*v1alpha1.PodCliqueScalingGroup, err error) {
	var errs []error
	for _, g := range groups {
		existing := owned.groups[g.Name]
		if existing == nil || observed.Attempt(existing).Set == observed.Attempt(g).Set {
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
	role, binding := desired.StartAccess(set)
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

// remove deletes the objects of one replica that are no longer desired: first its PodGroup, so that no pod is deleted
// from a gang whose minimum is still in force.
func (r *Reconciler) remove(ctx context.Context, gone removal) error {
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
