// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/workload"
)

// observation is what one pass knows about a PodClique.
type observation struct {
	clique            *v1alpha1.PodClique // with the annotation for its workload type
	pods, others      []*corev1.Pod       // those that it owns, and others labelled with its name
	facts, otherFacts []lifecycle.Pod     // about them
	silenceEnds       time.Duration       // until what is not known about the pods changes without an event, 0: it does not
	leafMinMember     int32               // of its leaf in the PodGroup
	listed            bool                // the PodGroup has that leaf
}

// observeClique returns what a pass knows about a PodClique.
func (r *Reconciler) observeClique(ctx context.Context, clique *v1alpha1.PodClique, now time.Time) (*observation, error) {
	clique, err := r.withWorkloadType(ctx, clique)
	if err != nil {
		return nil, err
	}
	pods, others, err := r.podsOf(ctx, clique)
	if err != nil {
		return nil, err
	}
	group, err := r.children.PodGroup(ctx, clique)
	if err != nil {
		return nil, err
	}
	unreachable := r.children.Unreachable(ctx)
	sightings := r.sightings.Of(clique, nil)
	seen := &observation{clique: clique, pods: pods, others: others, otherFacts: workload.CliquePodsFacts(clique, others, unreachable)}
	seen.facts, *sightings = sightings.Date(workload.CliquePodsFacts(clique, pods, unreachable), workload.RecordedEnds(clique), now)
	set, err := r.setOf(ctx, clique)
	if err != nil {
		return nil, err
	}
	seen.facts, seen.silenceEnds = r.children.MarkSilent(ctx, workload.UnreachableGrace(set), seen.facts, now)
	seen.leafMinMember, seen.listed = workload.LeafOf(group, clique.Name)
	if m := workload.Minimum(clique); m.Effective(0, seen.leafMinMember) > m.Enforced() {
		// A new PodGroup raises the minimum, but not one that is lower in the API server than in the cache.
		if group, err = r.children.LivePodGroup(ctx, clique); err != nil {
			return nil, err
		}
		seen.leafMinMember, seen.listed = workload.LeafOf(group, clique.Name)
	}
	return seen, nil
}

// cliquePlan is what one pass decides about a PodClique.
type cliquePlan struct {
	lifecycle.PodDecision
	minAvailable int32
	breach       lifecycle.Breach
	training     *lifecycle.TrainingDecision     // nil: an Inference workload
	update       *lifecycle.CliqueUpdateDecision // nil: a Training workload
	previous     *v1alpha1.PodClique             // with the template of pods that the update has not reached
	unlisted     bool                            // no pod is created, because the PodGroup does not list the clique yet
}

// decideClique decides what to do about a PodClique.
func (r *Reconciler) decideClique(seen *observation, now time.Time) *cliquePlan {
	clique := seen.clique
	plan := &cliquePlan{previous: clique, minAvailable: workload.Minimum(clique).Effective(lifecycle.Count(seen.facts).Ready, seen.leafMinMember)}
	if workload.IsTraining(clique) {
		decision := lifecycle.DecideTrainingPods(workload.TrainingPodsFacts(clique, seen.facts, seen.otherFacts), now)
		plan.PodDecision, plan.training, plan.breach = decision.PodDecision, &decision, decision.Breach
	} else {
		plan.PodDecision = lifecycle.DecidePods(lifecycle.CliquePods{
			Replicas: clique.Spec.Replicas, LeafMinMember: seen.leafMinMember, MinAvailable: plan.minAvailable, OnDelete: workload.FollowsOnDelete(clique),
			Pods: seen.facts, Others: seen.otherFacts, Ends: workload.RecordedEnds(clique)}, now)
		plan.update = r.decideUpdate(clique, seen.facts, plan.minAvailable, plan.PodDecision, now)
		plan.Delete = append(plan.Delete, plan.update.Delete...)
		plan.RequeueAfter = lifecycle.Sooner(plan.RequeueAfter, plan.update.RequeueAfter)
		plan.breach = lifecycle.JudgePods(workload.CliqueAvailabilityFacts(clique, seen.facts, plan.minAvailable, plan.update), now)
	}
	plan.RequeueAfter = lifecycle.Sooner(plan.RequeueAfter, seen.silenceEnds)
	plan.unlisted = !seen.listed && len(plan.Create)+len(plan.Blocked) > 0
	if plan.unlisted {
		plan.Create, plan.Lost, plan.Blocked = nil, nil, nil
	}
	return plan
}

// decideUpdate returns the decision on an update of a PodClique. d are the pods that this pass creates, and deletes for
// other reasons.
func (r *Reconciler) decideUpdate(clique *v1alpha1.PodClique, pods []lifecycle.Pod, minAvailable int32, d lifecycle.PodDecision, now time.Time) *lifecycle.CliqueUpdateDecision {
	u := workload.CliqueUpdateFacts(clique, pods, minAvailable, d)
	u.StalledAfter = r.options.StalledUpdateAfter
	decision := lifecycle.DecideCliqueUpdate(u, now)
	return &decision
}

// prepareCreation confirms with the API server that the pods of the plan may be created, and reads the template of
// those that the update has not reached. It reports whether the clique still exists.
func (r *Reconciler) prepareCreation(ctx context.Context, seen *observation, plan *cliquePlan) (stays bool, err error) {
	if len(plan.Create) == 0 {
		return true, nil
	}
	clique := seen.clique
	if plan.training != nil { // the status says which indices have succeeded, and are not created again
		if err := r.children.EnsureUpToDate(ctx, clique); err != nil {
			return false, err
		}
	} else if clique.Status.ObservedGeneration > 0 {
		// The garbage collector deletes pods of a PodClique that is gone as fast as they are created, as long as the
		// cache shows it.
		if stays, err := r.children.Stays(ctx, clique); err != nil || !stays {
			return false, err
		}
	}
	if err := r.awaitRevision(ctx, clique, plan); err != nil {
		return false, err
	}
	if err := r.ensureNoneHidden(ctx, clique, seen.pods, plan); err != nil {
		return false, err
	}
	latest := r.latest.Of(clique, nil)
	latest.template, latest.reused = ptr.To(clique.Labels[v1alpha1.LabelPodTemplateHash]), latest.reused || len(plan.Lost) > 0
	if plan.update != nil && plan.update.Previous.Len() > 0 {
		if plan.previous, err = r.withPreviousTemplate(ctx, clique); err != nil {
			return false, err
		}
	}
	return true, nil
}

// awaitRevision takes pods that are scaled out from the plan until the clique is told the revision that they are
// created from.
func (r *Reconciler) awaitRevision(ctx context.Context, clique *v1alpha1.PodClique, plan *cliquePlan) error {
	if plan.update == nil || plan.update.ScaledOut.Len() == 0 {
		return nil
	}
	set, err := r.setOf(ctx, clique)
	if err != nil || !workload.AwaitsNewest(set, clique, true) {
		return err
	}
	plan.Create = slices.DeleteFunc(plan.Create, func(n lifecycle.NewPod) bool { return plan.update.ScaledOut.Has(n.Index) })
	plan.RequeueAfter = lifecycle.Sooner(plan.RequeueAfter, children.RevisionPeriod)
	return nil
}

// withWorkloadType returns the clique with the annotation for the workload type if its set is a Training workload. If
// the clique was created by a version that did not write the annotation, the set's controller will add it soon. Until
// then the clique must not be treated as Inference: pods that have succeeded would be recreated.
func (r *Reconciler) withWorkloadType(ctx context.Context, clique *v1alpha1.PodClique) (*v1alpha1.PodClique, error) {
	if workload.IsTraining(clique) {
		return clique, nil
	}
	set, err := r.setOf(ctx, clique)
	if err != nil || set == nil || !set.Spec.IsTraining() {
		return clique, err
	}
	clique = clique.DeepCopy()
	metav1.SetMetaDataAnnotation(&clique.ObjectMeta, v1alpha1.AnnotationWorkloadType, string(v1alpha1.WorkloadTypeTraining))
	return clique, nil
}

// setOf returns the PodCliqueSet that a PodClique belongs to, nil if it is gone, also if another one has its name.
// Read-only.
func (r *Reconciler) setOf(ctx context.Context, clique *v1alpha1.PodClique) (*v1alpha1.PodCliqueSet, error) {
	set, uid := &v1alpha1.PodCliqueSet{}, workload.PodCliqueSetUID(clique)
	name := client.ObjectKey{Namespace: clique.Namespace, Name: clique.Labels[v1alpha1.LabelPartOf]}
	if err := r.client.Get(ctx, name, set, client.UnsafeDisableDeepCopy); err != nil || uid != "" && uid != set.UID {
		return nil, client.IgnoreNotFound(err)
	}
	return set, nil
}

// podsOf returns the pods that the clique owns, and other pods labelled with its name. Read-only.
func (r *Reconciler) podsOf(ctx context.Context, clique *v1alpha1.PodClique) (pods, others []*corev1.Pod, err error) {
	owned, named := &corev1.PodList{}, &corev1.PodList{}
	if err := r.children.ListOwned(ctx, clique, owned); err != nil {
		return nil, nil, err
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
	return children.Pointers(owned.Items), others, nil
}
