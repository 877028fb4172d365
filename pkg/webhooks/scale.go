// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/grove/validation"
)

// scaleValidator validates the scale subresource of one kind. A Scale has neither labels nor owners, so the validator
// reads the scaled object.
type scaleValidator struct {
	allowDeletion[*autoscalingv1.Scale] // not called: a Scale is not deleted
	// scale validates the new replicas of the object with the given name. It accepts an object that is not found,
	// which the API server rejects.
	scale func(ctx context.Context, key client.ObjectKey, replicas int32) error
}

var _ admission.Validator[*autoscalingv1.Scale] = scaleValidator{}

// ValidateCreate is not called: a Scale is not created.
func (scaleValidator) ValidateCreate(context.Context, *autoscalingv1.Scale) (admission.Warnings, error) {
	return nil, nil
}

// ValidateUpdate validates new replicas.
func (v scaleValidator) ValidateUpdate(ctx context.Context, _, scale *autoscalingv1.Scale) (admission.Warnings, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, undecidedError("scaling: %w", err)
	}
	return nil, v.scale(ctx, client.ObjectKey{Namespace: request.Namespace, Name: request.Name}, scale.Spec.Replicas)
}

func (r ownerReader) scalePodCliqueSet(ctx context.Context, key client.ObjectKey, replicas int32) error {
	validate := func(pcs *v1alpha1.PodCliqueSet, replicas int32, _ validation.OwnerContext) field.ErrorList {
		return validation.ValidatePodCliqueSetScale(pcs, replicas)
	}
	return scaleObject(ctx, r, v1alpha1.KindPodCliqueSet, key, &v1alpha1.PodCliqueSet{}, replicas, validate)
}

func (r ownerReader) scalePodCliqueScalingGroup(ctx context.Context, key client.ObjectKey, replicas int32) error {
	return scaleObject(ctx, r, v1alpha1.KindPodCliqueScalingGroup, key, &v1alpha1.PodCliqueScalingGroup{}, replicas, validation.ValidatePodCliqueScalingGroupScale)
}

func (r ownerReader) scalePodClique(ctx context.Context, key client.ObjectKey, replicas int32) error {
	return scaleObject(ctx, r, v1alpha1.KindPodClique, key, &v1alpha1.PodClique{}, replicas, validation.ValidatePodCliqueScale)
}

// scaleObject reads an object into object, then its owners, and returns the error of scaling it.
func scaleObject[T client.Object](ctx context.Context, r ownerReader, kind string, key client.ObjectKey, object T, replicas int32,
	validate func(object T, replicas int32, owners validation.OwnerContext) field.ErrorList) error {
	if err := r.Get(ctx, key, object); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return undecidedError("reading %s: %w", key, err)
	}
	owners, err := r.ownerContextOf(ctx, object)
	if err != nil {
		return err
	}
	set := owners.Set
	if scaled, isSet := any(object).(*v1alpha1.PodCliqueSet); isSet {
		set = scaled
	}
	if served, _, err := r.serves(ctx, object, set); err != nil || !served {
		return err
	}
	return invalidError(v1alpha1.Kind(kind), object, validate(object, replicas, owners))
}
