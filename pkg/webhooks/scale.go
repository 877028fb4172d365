// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/grove/validation"
)

// scaleValidator validates the scale subresource of one kind. A Scale has neither labels nor owners, so the validator
// reads the scaled object.
type scaleValidator struct {
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

// ValidateDelete is not called: a Scale is not deleted.
func (scaleValidator) ValidateDelete(context.Context, *autoscalingv1.Scale) (admission.Warnings, error) {
	return nil, nil
}

func (r ownerReader) scalePodCliqueSet(ctx context.Context, key client.ObjectKey, replicas int32) error {
	pcs := &v1alpha1.PodCliqueSet{}
	if found, err := r.readLive(ctx, key, pcs); err != nil || !found {
		return err
	}
	return invalidError(v1alpha1.Kind(v1alpha1.KindPodCliqueSet), pcs, validation.ValidatePodCliqueSetScale(pcs, replicas))
}

func (r ownerReader) scalePodCliqueScalingGroup(ctx context.Context, key client.ObjectKey, replicas int32) error {
	pcsg := &v1alpha1.PodCliqueScalingGroup{}
	if found, err := r.readLive(ctx, key, pcsg); err != nil || !found {
		return err
	}
	owners, err := r.ownerContextOf(ctx, pcsg)
	if err != nil {
		return err
	}
	return invalidError(v1alpha1.Kind(v1alpha1.KindPodCliqueScalingGroup), pcsg, validation.ValidatePodCliqueScalingGroupScale(pcsg, replicas, owners))
}

func (r ownerReader) scalePodClique(ctx context.Context, key client.ObjectKey, replicas int32) error {
	pclq := &v1alpha1.PodClique{}
	if found, err := r.readLive(ctx, key, pclq); err != nil || !found {
		return err
	}
	owners, err := r.ownerContextOf(ctx, pclq)
	if err != nil {
		return err
	}
	return invalidError(v1alpha1.Kind(v1alpha1.KindPodClique), pclq, validation.ValidatePodCliqueScale(pclq, replicas, owners))
}

func (r ownerReader) readLive(ctx context.Context, key client.ObjectKey, into client.Object) (bool, error) {
	err := r.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, undecidedError("reading %s: %w", key, err)
	}
	return true, nil
}
