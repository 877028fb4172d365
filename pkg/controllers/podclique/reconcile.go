// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/desired"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/observed"
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
	err := r.client.Get(ctx, request.NamespacedName, clique)
	if err != nil {
		r.templates.Forget(request.NamespacedName)
		r.sightings.Forget(request.NamespacedName)
		return r.children.Result(ctx, request.NamespacedName, now, 0, client.IgnoreNotFound(err), releaseErr)
	}
	if clique.DeletionTimestamp != nil { // the garbage collector deletes its pods
		return r.children.Result(ctx, request.NamespacedName, now, 0, releaseErr)
	}
	if clique, err = r.withWorkloadType(ctx, clique); err != nil {
		return ctrl.Result{}, err
	}
	pods, others, err := r.podsOf(ctx, clique)
	if err != nil {
		return ctrl.Result{}, err
	}
	group, err := r.children.PodGroup(ctx, clique)
	if err != nil {
		return ctrl.Result{}, err
	}

	// 2. Observe.
	unreachable := r.children.Unreachable(ctx)
	seen := r.sightings.Of(clique, nil)
	facts, sightings := seen.Date(observed.CliquePods(clique, pods, unreachable), observed.Ends(clique), now)
	*seen = sightings
	leafMinMember, listed := observed.Leaf(group, clique.Name)
	if m := observed.Minimum(clique); m.Effective(0, leafMinMember) > m.Enforced() {
		// A new PodGroup raises the minimum, but not one that is lower in the API server than in the cache.
		if group, err = r.children.LivePodGroup(ctx, clique); err != nil {
			return ctrl.Result{}, err
		}
		leafMinMember, listed = observed.Leaf(group, clique.Name)
	}

	// 3. Decide.
	var d lifecycle.PodDecision
	var training *lifecycle.TrainingDecision
	var update *lifecycle.CliqueUpdateDecision
	minAvailable := observed.Minimum(clique).Effective(lifecycle.Count(facts).Ready, leafMinMember)
	if otherFacts := observed.CliquePods(clique, others, unreachable); observed.IsTraining(clique) {
		decision := lifecycle.DecideTrainingPods(observed.TrainingPods(clique, facts, otherFacts), now)
		d, training = decision.PodDecision, &decision
	} else {
		d = lifecycle.DecidePods(lifecycle.CliquePods{
			Replicas: clique.Spec.Replicas, LeafMinMember: leafMinMember, MinAvailable: minAvailable, OnDelete: observed.FollowsOnDelete(clique),
			Pods: facts, Others: otherFacts, Ends: observed.Ends(clique)}, now)
		update = r.decideUpdate(clique, facts, minAvailable, d, now)
		d.Delete = append(d.Delete, update.Delete...)
		d.RequeueAfter = lifecycle.Sooner(d.RequeueAfter, update.RequeueAfter)
	}
	waiting := !listed && len(d.Create)+len(d.Blocked) > 0 // the PodGroup must list the clique first
	if waiting {
		d.Create, d.Lost, d.Blocked = nil, nil, nil
	}

	if len(d.Create) > 0 && clique.Status.ObservedGeneration > 0 {
		// The garbage collector deletes pods of a PodClique that is gone as fast as they are created, as long as the
		// cache shows it.
		if stays, err := r.children.Stays(ctx, clique); err != nil || !stays {
			return r.children.Result(ctx, request.NamespacedName, now, 0, err)
		}
	}
	previous := clique // with the template of pods that the update has not reached
	if len(d.Create) > 0 {
		if err := r.ensureNoneHidden(ctx, clique, pods, update); err != nil {
			return r.children.Result(ctx, request.NamespacedName, now, 0, err)
		}
		*r.templates.Of(clique, nil) = ptr.To(clique.Labels[v1alpha1.LabelPodTemplateHash])
		if update != nil && update.Previous.Len() > 0 {
			if previous, err = r.withPreviousTemplate(ctx, clique); err != nil {
				return r.children.Result(ctx, request.NamespacedName, now, 0, err)
			}
		}
	}

	// 4. Create what is missing. No later step waits for the pods: indices are disjoint.
	restoreErr := r.restoreLabels(ctx, clique, pods, facts)
	created, createErr := r.children.SlowStart(r.clock, request.NamespacedName, len(d.Create), maxParallel, func(i int) error {
		if err := r.children.SpecUnchanged(ctx, clique); err != nil {
			return err
		}
		if update != nil && update.Previous.Has(d.Create[i].Index) {
			return r.createPod(ctx, previous, d.Create[i])
		}
		return r.createPod(ctx, clique, d.Create[i])
	})
	createErr = errors.Join(blockedErr(clique, others, d.Blocked), createErr)

	// 5. Record, before any pod is deleted.
	recorded := clique.DeepCopy()
	recorded.Status = desired.PodCliqueStatus(clique, desired.CliqueFacts{
		Pods: facts, Leaf: leafMinMember, Ends: d.Ends, Training: training, Update: update, Problems: r.children.Problems(clique, createErr, now)}, metav1.NewTime(now))
	after := lifecycle.Sooner(d.RequeueAfter, lifecycle.NextAvailable(facts, observed.MinReady(clique), now))
	if after > 0 {
		after = max(time.Millisecond, after-r.clock.Since(now)) // the creation of pods may have taken some time
	}
	change, differs := desired.PodCliqueStatusChange(&clique.Status, &recorded.Status, facts)
	change.Settling = change.Settling || created > 0 || waiting
	delay := r.unwritten.StatusDelay(string(clique.UID), change, differs, now, r.clock.Now())
	if delay == 0 && created > 0 && !errors.Is(createErr, children.ErrUnfinished) && recorded.Status.ObservedGeneration != clique.Status.ObservedGeneration {
		delay = children.PromptBatchPeriod // the next pass observes the pods of this one
	}
	if delay > 0 && len(d.Delete) == 0 && (training == nil || len(training.Release) == 0) {
		after = lifecycle.Sooner(after, delay)
	} else {
		if err := r.writeStatus(ctx, clique, recorded); err != nil {
			return r.children.Result(ctx, request.NamespacedName, now, 0, err)
		}
		r.unwritten.Observe(string(clique.UID), now)
		clique = recorded
	}

	// 6. Delete pods, and remove the finalizers of pods whose end was recorded.
	if training != nil {
		releaseErr = errors.Join(releaseErr, r.release(ctx, pods, training.Release))
	}
	deleteErr := r.ensureUpToDate(ctx, clique, pods, leafMinMember, minAvailable, d, now)
	if deleteErr == nil {
		deleteErr = r.deletePods(ctx, clique, pods, d.Delete)
	}
	if len(d.Lost) > 0 && createErr == nil {
		r.recorder.Eventf(clique, nil, corev1.EventTypeWarning, v1alpha1.EventPodLost, v1alpha1.ActionReplacePod,
			"%s on nodes that do not answer replaced after the grace period", describe(d.Lost))
	}
	klog.FromContext(ctx).V(4).Info("Reconciled PodClique", "pods", len(pods), "created", created, "deleted", len(d.Delete), "deferred", d.Deferred)
	return r.children.Result(ctx, request.NamespacedName, now, after, releaseErr, restoreErr, createErr, deleteErr)
}

// decideUpdate returns the decision on an update of a PodClique. d are the pods that this pass creates, and deletes for
// other reasons.
func (r *Reconciler) decideUpdate(clique *v1alpha1.PodClique, pods []lifecycle.Pod, minAvailable int32, d lifecycle.PodDecision, now time.Time) *lifecycle.CliqueUpdateDecision {
	u := lifecycle.CliqueUpdate{
		Target:   lifecycle.Target{Generation: observed.GenerationHash(clique), Template: clique.Labels[v1alpha1.LabelPodTemplateHash]},
		OnDelete: observed.FollowsOnDelete(clique), Turn: observed.HasTurn(clique), Paused: observed.IsPaused(clique),
		Member:   clique.Labels[v1alpha1.LabelPodCliqueScalingGroup] != "",
		Progress: observed.CliqueProgress(clique), Followed: ptr.Deref(clique.Status.CurrentPodCliqueSetGenerationHash, ""),
		Replicas: clique.Spec.Replicas, MinAvailable: minAvailable, MinReady: observed.MinReady(clique),
		Pods: pods, Deleted: map[string]bool{}, StalledAfter: r.options.StalledUpdateAfter,
	}
	for _, deletion := range d.Delete {
		if deletion.Reason != lifecycle.DeletedUpdate {
			u.Deleted[deletion.Pod.UID] = true
		}
	}
	for _, n := range d.Create {
		u.Created = append(u.Created, n.Index)
	}
	decision := lifecycle.DecideCliqueUpdate(u, now)
	return &decision
}

// withWorkloadType returns the clique with the annotation for the workload type if its set is a Training workload. If
// the clique was created by a version that did not write the annotation, the set's controller will add it soon. Until
// then the clique must not be treated as Inference: pods that have succeeded would be recreated.
func (r *Reconciler) withWorkloadType(ctx context.Context, clique *v1alpha1.PodClique) (*v1alpha1.PodClique, error) {
	if observed.IsTraining(clique) {
		return clique, nil
	}
	set := &v1alpha1.PodCliqueSet{}
	name := client.ObjectKey{Namespace: clique.Namespace, Name: clique.Labels[v1alpha1.LabelPartOf]}
	if err := r.client.Get(ctx, name, set, client.UnsafeDisableDeepCopy); err != nil {
		return clique, client.IgnoreNotFound(err)
	}
	if set.Spec.WorkloadType != v1alpha1.WorkloadTypeTraining || !belongsTo(clique, set) {
		return clique, nil
	}
	clique = clique.DeepCopy()
	metav1.SetMetaDataAnnotation(&clique.ObjectMeta, v1alpha1.AnnotationWorkloadType, string(v1alpha1.WorkloadTypeTraining))
	return clique, nil
}

// belongsTo reports whether a PodClique belongs to the set in its label, and not to a deleted one of the same name.
func belongsTo(clique *v1alpha1.PodClique, set *v1alpha1.PodCliqueSet) bool {
	uid := observed.PodCliqueSetUID(clique)
	return uid == "" || uid == set.UID
}

// podsOf returns the pods that the clique owns, and other pods labelled with its name. Read-only.
func (r *Reconciler) podsOf(ctx context.Context, clique *v1alpha1.PodClique) (pods, others []*corev1.Pod, err error) {
	owned, named := &corev1.PodList{}, &corev1.PodList{}
	if err := r.children.ListOwned(ctx, clique, owned); err != nil {
		return nil, nil, err
	}
	for i := range owned.Items {
		pods = append(pods, &owned.Items[i])
	}
	if err := r.client.List(ctx, named, client.InNamespace(clique.Namespace), client.MatchingFields{byName: clique.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing pods labelled with the name: %w", err)
	}
	for i := range named.Items {
		pod := &named.Items[i]
		if owner := metav1.GetControllerOfNoCopy(pod); owner == nil || owner.UID != clique.UID {
			others = append(others, pod)
		}
	}
	return pods, others, nil
}
