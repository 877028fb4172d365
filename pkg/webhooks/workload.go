package webhooks

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/grove/validation"
)

// podCliqueSetDefaulter fills in what a PodCliqueSet leaves unset.
type podCliqueSetDefaulter struct{ schedulerName string }

var _ admission.Defaulter[*v1alpha1.PodCliqueSet] = podCliqueSetDefaulter{}

// Default implements admission.Defaulter. A terminating object is left alone.
func (d podCliqueSetDefaulter) Default(_ context.Context, pcs *v1alpha1.PodCliqueSet) error {
	if pcs.DeletionTimestamp == nil {
		v1alpha1.SetDefaults(pcs, d.schedulerName)
	}
	return nil
}

// podCliqueDefaulter fills in what a PodClique leaves unset.
type podCliqueDefaulter struct{ schedulerName string }

var _ admission.Defaulter[*v1alpha1.PodClique] = podCliqueDefaulter{}

// Default implements admission.Defaulter. A terminating object is left alone.
func (d podCliqueDefaulter) Default(_ context.Context, pclq *v1alpha1.PodClique) error {
	if pclq.DeletionTimestamp == nil {
		v1alpha1.SetPodCliqueDefaults(pclq, d.schedulerName)
	}
	return nil
}

// podCliqueSetValidator refuses invalid PodCliqueSets and forbidden changes, and
// passes on warnings.
type podCliqueSetValidator struct{ kinReader }

var _ admission.Validator[*v1alpha1.PodCliqueSet] = podCliqueSetValidator{}

// ValidateCreate validates a new PodCliqueSet.
func (v podCliqueSetValidator) ValidateCreate(_ context.Context, pcs *v1alpha1.PodCliqueSet) (admission.Warnings, error) {
	errs, warnings := validation.ValidatePodCliqueSet(pcs)
	return warnings, invalid(v1alpha1.Kind(v1alpha1.KindPodCliqueSet), pcs, errs)
}

// ValidateUpdate validates a changed PodCliqueSet.
func (v podCliqueSetValidator) ValidateUpdate(ctx context.Context, old, pcs *v1alpha1.PodCliqueSet) (admission.Warnings, error) {
	var live validation.Live
	if pcs.DeletionTimestamp == nil {
		bound, err := v.cliquesWithBoundPods(ctx, old, validation.ChangedCliques(pcs, old))
		if err != nil {
			return nil, err
		}
		live.Bound = bound
	}
	errs, warnings := validation.ValidatePodCliqueSetUpdate(pcs, old, live)
	return warnings, invalid(v1alpha1.Kind(v1alpha1.KindPodCliqueSet), pcs, errs)
}

// ValidateDelete allows every deletion.
func (podCliqueSetValidator) ValidateDelete(context.Context, *v1alpha1.PodCliqueSet) (admission.Warnings, error) {
	return nil, nil
}

// podCliqueScalingGroupValidator guards what users may change of a
// PodCliqueScalingGroup: its replicas, within limits.
type podCliqueScalingGroupValidator struct{ kinReader }

var _ admission.Validator[*v1alpha1.PodCliqueScalingGroup] = podCliqueScalingGroupValidator{}

// ValidateCreate validates a new PodCliqueScalingGroup.
func (v podCliqueScalingGroupValidator) ValidateCreate(_ context.Context, pcsg *v1alpha1.PodCliqueScalingGroup) (admission.Warnings, error) {
	return nil, invalid(v1alpha1.Kind(v1alpha1.KindPodCliqueScalingGroup), pcsg, validation.ValidatePodCliqueScalingGroup(pcsg))
}

// ValidateUpdate validates a changed PodCliqueScalingGroup.
func (v podCliqueScalingGroupValidator) ValidateUpdate(ctx context.Context, old, pcsg *v1alpha1.PodCliqueScalingGroup) (admission.Warnings, error) {
	var kin validation.Kin
	if pcsg.DeletionTimestamp == nil && pcsg.Spec.Replicas != old.Spec.Replicas {
		var err error
		if kin, err = v.kinOf(ctx, old); err != nil {
			return nil, err
		}
	}
	return nil, invalid(v1alpha1.Kind(v1alpha1.KindPodCliqueScalingGroup), pcsg, validation.ValidatePodCliqueScalingGroupUpdate(pcsg, old, kin))
}

// ValidateDelete allows every deletion.
func (podCliqueScalingGroupValidator) ValidateDelete(context.Context, *v1alpha1.PodCliqueScalingGroup) (admission.Warnings, error) {
	return nil, nil
}

// podCliqueValidator guards what users may change of a PodClique: its replicas,
// within limits, unless it is a member of a scaling group.
type podCliqueValidator struct{ kinReader }

var _ admission.Validator[*v1alpha1.PodClique] = podCliqueValidator{}

// ValidateCreate validates a new PodClique.
func (v podCliqueValidator) ValidateCreate(_ context.Context, pclq *v1alpha1.PodClique) (admission.Warnings, error) {
	return nil, invalid(v1alpha1.Kind(v1alpha1.KindPodClique), pclq, validation.ValidatePodClique(pclq))
}

// ValidateUpdate validates a changed PodClique.
func (v podCliqueValidator) ValidateUpdate(ctx context.Context, old, pclq *v1alpha1.PodClique) (admission.Warnings, error) {
	var kin validation.Kin
	if pclq.DeletionTimestamp == nil && pclq.Spec.Replicas != old.Spec.Replicas {
		var err error
		if kin, err = v.kinOf(ctx, old); err != nil {
			return nil, err
		}
	}
	return nil, invalid(v1alpha1.Kind(v1alpha1.KindPodClique), pclq, validation.ValidatePodCliqueUpdate(pclq, old, kin))
}

// ValidateDelete allows every deletion.
func (podCliqueValidator) ValidateDelete(context.Context, *v1alpha1.PodClique) (admission.Warnings, error) {
	return nil, nil
}
