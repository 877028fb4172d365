// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
)

// PodGroupValidator rejects invalid PodGroups and returns warnings.
type PodGroupValidator struct{ PriorityClasses }

var _ admission.Validator[*v2alpha2.PodGroup] = PodGroupValidator{}

// untilClassOfGroup describes the effect of a missing PriorityClass of a PodGroup.
const untilClassOfGroup = "until it does, the gang has the priority of its pods"

// ValidateCreate validates a new PodGroup.
func (v PodGroupValidator) ValidateCreate(ctx context.Context, pg *v2alpha2.PodGroup) (admission.Warnings, error) {
	errs, warnings := validation.ValidatePodGroup(pg)
	if len(errs) == 0 {
		warnings = append(warnings, v.warnIfMissing(ctx, "spec.priorityClassName", pg.Spec.PriorityClassName, untilClassOfGroup)...)
	}
	return warnings, invalidError(v2alpha2.SchemeGroupVersion.WithKind("PodGroup").GroupKind(), pg, errs)
}

// ValidateUpdate validates a changed PodGroup.
func (v PodGroupValidator) ValidateUpdate(ctx context.Context, old, pg *v2alpha2.PodGroup) (admission.Warnings, error) {
	errs, warnings := validation.ValidatePodGroupUpdate(pg, old)
	if len(errs) == 0 && pg.DeletionTimestamp == nil && pg.Spec.PriorityClassName != old.Spec.PriorityClassName {
		warnings = append(warnings, v.warnIfMissing(ctx, "spec.priorityClassName", pg.Spec.PriorityClassName, untilClassOfGroup)...)
	}
	return warnings, invalidError(v2alpha2.SchemeGroupVersion.WithKind("PodGroup").GroupKind(), pg, errs)
}

// ValidateDelete allows every deletion.
func (PodGroupValidator) ValidateDelete(context.Context, *v2alpha2.PodGroup) (admission.Warnings, error) {
	return nil, nil
}
