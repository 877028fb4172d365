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

// ensureUpToDate returns nil if the API server has the state that the deletions were decided on: the clique, its
// minimum in the PodGroup, and every pod that was counted. With a cache that is behind, too many pods would be
// deleted. The deletion of ended pods needs no check. minAvailable is the number of pods that must be available besides a
// ready pod that is deleted in an update.
func (r *Reconciler) ensureUpToDate(ctx context.Context, clique *v1alpha1.PodClique, pods []*corev1.Pod, leaf, minAvailable int32, d lifecycle.PodDecision, now time.Time) error {
	deletions := d.Delete
	if !slices.ContainsFunc(deletions, func(d lifecycle.Deletion) bool { return dependsOnCount(d.Reason) }) {
		return nil
	}
	if err := r.children.EnsureUpToDate(ctx, clique); err != nil {
		return err
	}
	if slices.ContainsFunc(deletions, func(d lifecycle.Deletion) bool { return d.Reason == lifecycle.DeletedScaleIn }) {
		group, err := r.children.LivePodGroup(ctx, clique)
		if err != nil {
			return err
		}
		if needed, _ := workload.LeafOf(group, clique.Name); needed > leaf {
			return apierrors.NewConflict(v2alpha2.Resource("podgroups"), group.Name, errors.New("requires more pods than when it was read"))
		}
	}
	there := map[types.UID]bool{}
	if slices.ContainsFunc(deletions, takesReady) {
		live := &corev1.PodList{}
		if err := r.live.List(ctx, live, withLabelOf(clique)...); err != nil {
			return fmt.Errorf("counting the pods before some are deleted: %w", err)
		}
		var own []*corev1.Pod
		for i := range live.Items {
			pod := &live.Items[i]
			there[pod.UID] = pod.DeletionTimestamp == nil
			if metav1.IsControlledBy(pod, clique) {
				own = append(own, pod)
			}
		}
		// The update must come to the same decision on these pods.
		facts, _ := r.sightings.Of(clique, nil).Date(workload.CliquePodsFacts(clique, own, r.children.Unreachable(ctx)), workload.RecordedEnds(clique), now)
		again := r.decideUpdate(clique, facts, minAvailable, d, now)
		for _, deletion := range deletions {
			if takesReady(deletion) && !slices.ContainsFunc(again.Delete, func(other lifecycle.Deletion) bool { return other.Pod.UID == deletion.Pod.UID }) {
				return apierrors.NewConflict(v1alpha1.Resource("podcliques"), clique.Name, fmt.Errorf("no ready pod is deleted: %s", again.State.Message))
			}
		}
	} else {
		live, err := r.livePods(ctx, clique)
		if err != nil {
			return fmt.Errorf("counting the pods before some are deleted: %w", err)
		}
		for i := range live {
			there[live[i].UID] = live[i].DeletionTimestamp == nil
		}
	}
	selector := labels.SelectorFromSet(naming.OfPodClique(clique.Name))
	for _, p := range pods {
		if p.DeletionTimestamp == nil && selector.Matches(labels.Set(p.Labels)) && !there[p.UID] {
			return apierrors.NewConflict(corev1.Resource("pods"), p.Name, errors.New("is gone or being deleted, but was counted"))
		}
	}
	return nil
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
