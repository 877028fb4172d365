// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// maxParallel is the maximum number of parallel requests for one clique.
const maxParallel = 32

// Reconcile creates and deletes pods of one PodClique and writes its status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	now := r.clock.Now()

	// 1. Read.
	if err := r.children.CleanUpFormerOwner(ctx, &v1alpha1.PodClique{}, v1alpha1.KindPodClique, request.NamespacedName, maxParallel, &corev1.PodList{}); err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}
	releaseErr := r.releaseAbandoned(ctx, request.NamespacedName)
	clique := &v1alpha1.PodClique{}
	if err := r.client.Get(ctx, request.NamespacedName, clique); err != nil {
		r.latest.Forget(request.NamespacedName)
		r.sightings.Forget(request.NamespacedName)
		r.silent.Record(request.String(), 0)
		return r.children.Result(ctx, request.NamespacedName, now, 0, client.IgnoreNotFound(err), releaseErr)
	}
	if served, err := r.children.Serves(ctx, clique); err != nil || !served {
		return r.children.Result(ctx, request.NamespacedName, now, 0, releaseErr, err)
	}
	if clique.DeletionTimestamp != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, releaseErr, r.children.DeleteOwned(ctx, clique, maxParallel, &corev1.PodList{}))
	}

	// 2. Observe.
	seen, err := r.observeClique(ctx, clique, now)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 3. Decide.
	plan := r.decideClique(seen, now)
	silent := 0
	if plan.breach.Reason == lifecycle.SchedulerDoesNotAnswer {
		silent = 1
	}
	r.silent.Record(request.String(), silent)

	// 4. Create what is missing. No later step waits for the pods: indices are disjoint.
	if stays, err := r.prepareCreation(ctx, seen, plan); err != nil || !stays {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}
	restoreErr := r.restoreLabels(ctx, seen.clique, seen.pods, seen.facts)
	created, createErr := r.createPods(ctx, request.NamespacedName, seen, plan)

	// 5. Record, before any pod is deleted.
	recorded, after, err := r.recordClique(ctx, seen, plan, created, createErr, now)
	if err != nil {
		return r.children.Result(ctx, request.NamespacedName, now, 0, err)
	}

	// 6. Delete pods, and remove the finalizers of pods whose end was recorded.
	if plan.training != nil {
		releaseErr = errors.Join(releaseErr, r.releaseRecorded(ctx, seen.pods, plan.training.Release))
	}
	deleteErr := r.confirmDeletions(ctx, recorded, seen, plan, now)
	if deleteErr == nil {
		deleteErr = r.deletePods(ctx, recorded, seen.pods, plan.Delete)
	}
	if len(plan.Lost) > 0 && createErr == nil {
		r.recorder.Eventf(recorded, nil, corev1.EventTypeWarning, v1alpha1.EventPodLost, v1alpha1.ActionReplacePod,
			"%s on nodes that do not answer replaced after the grace period", describePods(plan.Lost))
	}
	klog.FromContext(ctx).V(4).Info("Reconciled PodClique", "pods", len(seen.pods), "created", created, "deleted", len(plan.Delete), "deferred", plan.Deferred)
	return r.children.Result(ctx, request.NamespacedName, now, after, releaseErr, restoreErr, createErr, deleteErr)
}

// createPods creates the pods of the plan, and returns their number.
func (r *Reconciler) createPods(ctx context.Context, name types.NamespacedName, seen *observation, plan *cliquePlan) (int, error) {
	created, err := r.children.SlowStart(r.clock, name, len(plan.Create), maxParallel, func(i int) error {
		if err := r.children.SpecUnchanged(ctx, seen.clique); err != nil {
			return err
		}
		if plan.update != nil && plan.update.Previous.Has(plan.Create[i].Index) {
			return r.createPod(ctx, plan.previous, plan.Create[i])
		}
		return r.createPod(ctx, seen.clique, plan.Create[i])
	})
	return created, errors.Join(blockedErr(seen.clique, seen.others, plan.Blocked), err)
}

// recordClique writes the status of a PodClique, unless it can wait. It returns the clique with the status that is
// written, and the time until the next pass, 0: an event will tell.
func (r *Reconciler) recordClique(ctx context.Context, seen *observation, plan *cliquePlan, created int, createErr error, now time.Time) (*v1alpha1.PodClique, time.Duration, error) {
	clique, recorded := seen.clique, seen.clique.DeepCopy()
	set, err := r.setOf(ctx, clique)
	if err != nil {
		return nil, 0, err
	}
	recorded.Status = workload.PodCliqueStatus(clique, workload.CliqueStatusFacts{
		Pods: seen.facts, Leaf: seen.leafMinMember, Breach: plan.breach, Ends: plan.Ends, Training: plan.training, Update: plan.update, Behind: workload.IsBehind(set, clique),
		Problems: r.children.Problems(clique, createErr, now)}, metav1.NewTime(now))
	after := lifecycle.Sooner(plan.RequeueAfter, lifecycle.NextAvailable(seen.facts, workload.MinReady(clique), now))
	if after > 0 {
		after = max(time.Millisecond, after-r.clock.Since(now)) // the creation of pods may have taken some time
	}
	change, differs := workload.PodCliqueStatusChange(&clique.Status, &recorded.Status, seen.facts)
	change.Settling = change.Settling || created > 0 || plan.unlisted
	delay := r.unwritten.StatusDelay(string(clique.UID), change, differs, now, r.clock.Now())
	reaches := plan.update != nil && plan.update.Progress.Open() // the next pass does not know what this one has reached
	if delay == 0 && created > 0 && !reaches && !errors.Is(createErr, children.ErrUnfinished) && recorded.Status.ObservedGeneration != clique.Status.ObservedGeneration {
		delay = children.PromptBatchPeriod // the next pass observes the pods of this one
	}
	if delay > 0 && len(plan.Delete) == 0 && (plan.training == nil || len(plan.training.Release) == 0) {
		return clique, lifecycle.Sooner(after, delay), nil
	}
	if err := r.writeStatus(ctx, clique, recorded); err != nil {
		return nil, 0, err
	}
	r.unwritten.Observe(string(clique.UID), now)
	return recorded, after, nil
}
