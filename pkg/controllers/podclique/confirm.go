// SPDX-License-Identifier: Apache-2.0

package podclique

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/lifecycle"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// confirmDeletions returns nil if the API server has the state that the deletions of the plan were decided on: the
// clique, its minimum in the PodGroup, and every pod that was counted. With a cache that is behind, too many pods would
// be deleted. Deletions that do not depend on the number of pods need no check. clique has the status that was written.
func (r *Reconciler) confirmDeletions(ctx context.Context, clique *v1alpha1.PodClique, seen *observation, plan *cliquePlan, now time.Time) error {
	if !slices.ContainsFunc(plan.Delete, func(d lifecycle.Deletion) bool { return dependsOnCount(d.Reason) }) {
		return nil
	}
	if err := r.children.EnsureUpToDate(ctx, clique); err != nil {
		return err
	}
	if slices.ContainsFunc(plan.Delete, func(d lifecycle.Deletion) bool { return d.Reason == lifecycle.DeletedScaleIn }) {
		group, err := r.children.LivePodGroup(ctx, clique)
		if err != nil {
			return err
		}
		if needed, _ := workload.LeafOf(group, clique.Name); needed > seen.leafMinMember {
			return apierrors.NewConflict(v2alpha2.Resource("podgroups"), group.Name, errors.New("requires more pods than when it was read"))
		}
	}
	there, err := r.confirmReady(ctx, clique, plan, now)
	if err != nil {
		return err
	}
	selector := labels.SelectorFromSet(naming.OfPodClique(clique.Name))
	for _, p := range seen.pods {
		if p.DeletionTimestamp == nil && selector.Matches(labels.Set(p.Labels)) && !there[p.UID] {
			return apierrors.NewConflict(corev1.Resource("pods"), p.Name, errors.New("is gone or being deleted, but was counted"))
		}
	}
	return nil
}

// confirmReady makes the decision on an update on the pods in the API server if it deletes ready ones, which it must
// select again. It returns which pods with the clique's label are in the API server and not being deleted.
func (r *Reconciler) confirmReady(ctx context.Context, clique *v1alpha1.PodClique, plan *cliquePlan, now time.Time) (there map[types.UID]bool, err error) {
	there = map[types.UID]bool{}
	if !slices.ContainsFunc(plan.Delete, takesReady) {
		live, err := r.livePods(ctx, clique)
		if err != nil {
			return nil, fmt.Errorf("counting the pods before some are deleted: %w", err)
		}
		for i := range live {
			there[live[i].UID] = live[i].DeletionTimestamp == nil
		}
		return there, nil
	}
	live := &corev1.PodList{}
	if err := r.live.List(ctx, live, withLabelOf(clique)...); err != nil {
		return nil, fmt.Errorf("counting the pods before some are deleted: %w", err)
	}
	var own []*corev1.Pod
	for i := range live.Items {
		pod := &live.Items[i]
		there[pod.UID] = pod.DeletionTimestamp == nil
		if metav1.IsControlledBy(pod, clique) {
			own = append(own, pod)
		}
	}
	facts, _ := r.sightings.Of(clique, nil).Date(workload.CliquePodsFacts(clique, own, r.children.Unreachable(ctx)), workload.RecordedEnds(clique), now)
	again := r.decideUpdate(clique, facts, plan.minAvailable, plan.PodDecision, now)
	for _, deletion := range plan.Delete {
		if takesReady(deletion) && !slices.ContainsFunc(again.Delete, func(other lifecycle.Deletion) bool { return other.Pod.UID == deletion.Pod.UID }) {
			return nil, apierrors.NewConflict(v1alpha1.Resource("podcliques"), clique.Name, fmt.Errorf("no ready pod is deleted: %s", again.State.Message))
		}
	}
	return there, nil
}

// takesReady reports whether an update deletes a ready pod.
func takesReady(d lifecycle.Deletion) bool { return d.Reason == lifecycle.DeletedUpdate && d.Pod.Ready }

// livePods returns the metadata of the pods with the clique's label in the API server.
func (r *Reconciler) livePods(ctx context.Context, clique *v1alpha1.PodClique) ([]metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := r.live.List(ctx, live, withLabelOf(clique)...)
	return live.Items, err
}

// withLabelOf selects the pods that have the clique's label.
func withLabelOf(clique *v1alpha1.PodClique) []client.ListOption {
	return []client.ListOption{client.InNamespace(clique.Namespace), client.MatchingLabels(naming.OfPodClique(clique.Name))}
}

// dependsOnCount reports whether a pod is deleted because of the number of other pods. Otherwise it is deleted
// whatever the cache shows about other pods.
func dependsOnCount(reason lifecycle.DeletionReason) bool {
	switch reason {
	case lifecycle.DeletedEnded, lifecycle.DeletedCancelled, lifecycle.DeletedGivenUp, lifecycle.DeletedHalted:
		return false
	}
	return true
}
