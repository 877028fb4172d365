package webhooks

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
)

// PodGroupValidator refuses invalid PodGroups and passes on warnings.
type PodGroupValidator struct{}

var _ admission.Validator[*v2alpha2.PodGroup] = PodGroupValidator{}

// ValidateCreate validates a new PodGroup.
func (PodGroupValidator) ValidateCreate(_ context.Context, pg *v2alpha2.PodGroup) (admission.Warnings, error) {
	errs, warnings := validation.ValidatePodGroup(pg)
	return warnings, invalid(v2alpha2.SchemeGroupVersion.WithKind("PodGroup").GroupKind(), pg, errs)
}

// ValidateUpdate validates a changed PodGroup.
func (PodGroupValidator) ValidateUpdate(_ context.Context, old, pg *v2alpha2.PodGroup) (admission.Warnings, error) {
	errs, warnings := validation.ValidatePodGroupUpdate(pg, old)
	return warnings, invalid(v2alpha2.SchemeGroupVersion.WithKind("PodGroup").GroupKind(), pg, errs)
}

// ValidateDelete allows every deletion.
func (PodGroupValidator) ValidateDelete(context.Context, *v2alpha2.PodGroup) (admission.Warnings, error) {
	return nil, nil
}
