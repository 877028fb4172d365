// SPDX-License-Identifier: Apache-2.0

package podcliqueset

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// adopt makes a new set, which follows no revision yet, the owner of what a deleted set of its name has left without an
// owner, and records what the objects tell. The result is a conflict until the cache shows that, so that nothing is
// created or decided on a part of it. revisions are the stored ones of both sets, the latest first, at least one. The
// caller has compared the set with the API server: it is not being deleted. Source: docs/decisions, W14.
func (r *Reconciler) adopt(ctx context.Context, set *v1alpha1.PodCliqueSet, revisions []*workload.Revision, now time.Time) error {
	podGroups, groups := &v2alpha2.PodGroupList{}, &v1alpha1.PodCliqueScalingGroupList{}
	cliques, labels := &v1alpha1.PodCliqueList{}, client.MatchingLabels(naming.SelectSetObjects(set.Name))
	for _, list := range []client.ObjectList{cliques, groups} {
		if err := r.live.List(ctx, list, client.InNamespace(set.Namespace), labels); err != nil {
			return fmt.Errorf("listing %T that a PodCliqueSet %s may have left: %w", list, set.Name, err)
		}
	}
	left := workload.Adoption{Revisions: revisions, Cliques: children.Pointers(cliques.Items), Groups: children.Pointers(groups.Items)}
	if !left.IsOf(set, r.options.SchedulerName) {
		return nil // its objects are in the way, and are reported when those of the set are created
	}
	// PodGroups are the last: a PodClique that has not been adopted does not count as listed in the PodGroup of the
	// set.
	if err := r.children.Adopt(ctx, set, maxParallel, &appsv1.ControllerRevisionList{}, groups, cliques,
		&corev1.ServiceList{}, &autoscalingv2.HorizontalPodAutoscalerList{}, podGroups); err != nil {
		return err
	}
	left.Cliques, left.Groups = children.Pointers(cliques.Items), children.Pointers(groups.Items)
	left.PodGroups = children.Pointers(podGroups.Items)
	adopted := set.DeepCopy()
	adopted.Status = left.Status(set, metav1.NewTime(now))
	if equality.Semantic.DeepEqual(set.Status, adopted.Status) {
		return nil
	}
	if err := r.children.WriteStatus(ctx, set, adopted); err != nil {
		return err
	}
	return apierrors.NewConflict(v1alpha1.Resource("podcliquesets"), set.Name,
		errors.New("it goes on with what a deleted set of its name has left"))
}
