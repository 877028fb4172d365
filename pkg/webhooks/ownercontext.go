// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/grove/validation"
	"github.com/muster-project/muster/pkg/classes"
)

// ownerReader reads the objects that a change is validated against: the owners of the changed object up to the
// PodCliqueSet, and other children of the set. classes tells which sets are served: what belongs to another one is
// neither changed nor rejected.
type ownerReader struct {
	client.Reader
	classes classes.Reader
}

// serves reports whether the set of an object is served, nil: it is gone.
func (r ownerReader) serves(ctx context.Context, object client.Object, set *v1alpha1.PodCliqueSet) (served bool, reason string, err error) {
	served, reason, err = r.classes.Serves(ctx, object.GetNamespace(), set)
	if err != nil {
		return false, "", undecidedError("%w", err)
	}
	return served, reason, nil
}

// ownerContextOf follows the owners of a PodClique or PodCliqueScalingGroup up to the PodCliqueSet: two steps for a
// member of a scaling group. If an owner is gone, or was replaced by another object of the same name, the search ends
// without an error.
func (r ownerReader) ownerContextOf(ctx context.Context, object client.Object) (validation.OwnerContext, error) {
	owner := validation.ControllingOwner(object)
	if owner != nil && owner.Kind == v1alpha1.KindPodCliqueScalingGroup {
		pcsg := &v1alpha1.PodCliqueScalingGroup{}
		found, err := r.readOwner(ctx, object.GetNamespace(), owner, pcsg)
		if err != nil || !found {
			return validation.OwnerContext{}, err
		}
		owner = validation.ControllingOwner(pcsg)
	}
	if owner == nil || owner.Kind != v1alpha1.KindPodCliqueSet {
		return validation.OwnerContext{}, nil
	}
	pcs := &v1alpha1.PodCliqueSet{}
	found, err := r.readOwner(ctx, object.GetNamespace(), owner, pcs)
	if err != nil || !found {
		return validation.OwnerContext{}, err
	}
	owners := validation.OwnerContext{Set: pcs}
	if _, isGroup := object.(*v1alpha1.PodCliqueScalingGroup); !isGroup || len(pcs.Spec.Template.PodCliqueScalingGroupConfigs) == 1 {
		return owners, nil
	}
	groups := &v1alpha1.PodCliqueScalingGroupList{}
	if err := r.List(ctx, groups, client.InNamespace(pcs.Namespace), client.MatchingLabels{v1alpha1.LabelPartOf: pcs.Name}); err != nil {
		return validation.OwnerContext{}, undecidedError("listing the scaling groups of PodCliqueSet %s: %w", pcs.Name, err)
	}
	for _, group := range groups.Items {
		if metav1.IsControlledBy(&group, pcs) {
			owners.Groups = append(owners.Groups, group)
		}
	}
	return owners, nil
}

// readOwner reads the object of the owner reference, and returns whether it still exists.
func (r ownerReader) readOwner(ctx context.Context, namespace string, reference *metav1.OwnerReference, into client.Object) (bool, error) {
	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, undecidedError("reading the owner, %s %s: %w", reference.Kind, reference.Name, err)
	}
	return into.GetUID() == reference.UID, nil
}

// undecidedError returns an error for a request that could not be decided, as an error of the API server itself: the
// request was not invalid and may be retried.
func undecidedError(format string, args ...any) error {
	return apierrors.NewInternalError(fmt.Errorf(format, args...))
}
