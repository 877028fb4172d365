package webhooks

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
)

// PodGroupPath is where the validating webhook of PodGroups is served.
const PodGroupPath = "/validate-scheduling-run-ai-v2alpha2-podgroup"

// Setup registers all webhooks with the manager's webhook server.
func Setup(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &v2alpha2.PodGroup{}).
		WithValidator(PodGroupValidator{}).
		WithValidatorCustomPath(PodGroupPath).
		Complete()
}

// PodGroupValidator refuses invalid PodGroups and passes on warnings.
type PodGroupValidator struct{}

var _ admission.Validator[*v2alpha2.PodGroup] = PodGroupValidator{}

// ValidateCreate validates a new PodGroup.
func (PodGroupValidator) ValidateCreate(_ context.Context, pg *v2alpha2.PodGroup) (admission.Warnings, error) {
	errs, warnings := validation.ValidatePodGroup(pg)
	return warnings, invalid(pg, errs)
}

// ValidateUpdate validates a changed PodGroup.
func (PodGroupValidator) ValidateUpdate(_ context.Context, old, pg *v2alpha2.PodGroup) (admission.Warnings, error) {
	errs, warnings := validation.ValidatePodGroupUpdate(pg, old)
	return warnings, invalid(pg, errs)
}

// ValidateDelete allows every deletion.
func (PodGroupValidator) ValidateDelete(context.Context, *v2alpha2.PodGroup) (admission.Warnings, error) {
	return nil, nil
}

// invalid returns the errors in the form in which the API server reports its own, nil for none.
func invalid(pg *v2alpha2.PodGroup, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	name := pg.Name
	if name == "" { // generateName: the API server has not made the name yet
		name = pg.GenerateName
	}
	return apierrors.NewInvalid(v2alpha2.SchemeGroupVersion.WithKind("PodGroup").GroupKind(), name, errs)
}
