// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/classes"
)

// Paths of the webhooks.
const (
	// PodGroupPath validates PodGroups.
	PodGroupPath = "/validate-scheduling-run-ai-v2alpha2-podgroup"

	// Defaulting webhooks of the workload API.
	PodCliqueSetDefaultPath = "/mutate-grove-io-v1alpha1-podcliqueset"
	PodCliqueDefaultPath    = "/mutate-grove-io-v1alpha1-podclique"

	// Validating webhooks of the workload API.
	PodCliqueSetPath          = "/validate-grove-io-v1alpha1-podcliqueset"
	PodCliqueScalingGroupPath = "/validate-grove-io-v1alpha1-podcliquescalinggroup"
	PodCliquePath             = "/validate-grove-io-v1alpha1-podclique"

	// Validating webhooks of the scale subresources.
	PodCliqueSetScalePath          = "/validate-grove-io-v1alpha1-podcliqueset-scale"
	PodCliqueScalingGroupScalePath = "/validate-grove-io-v1alpha1-podcliquescalinggroup-scale"
	PodCliqueScalePath             = "/validate-grove-io-v1alpha1-podclique-scale"
)

// Setup registers all webhooks with the manager's webhook server. The manager's scheme must contain the workload API.
// The webhooks read from the API server, because the cache may not contain the latest writes. schedulerName is the
// scheduler of pods whose template has no schedulerName, "": the default of the API.
func Setup(mgr ctrl.Manager, schedulerName string, served classes.Options) error {
	scheme := mgr.GetScheme()
	if err := autoscalingv1.AddToScheme(scheme); err != nil {
		return err
	}
	owners := ownerReader{mgr.GetAPIReader(), classes.Reader{Options: served, Leases: mgr.GetClient(), Namespaces: mgr.GetAPIReader()}}
	priorities := PriorityClasses{mgr.GetAPIReader()}
	for path, build := range map[string]func() error{
		PodGroupPath: ctrl.NewWebhookManagedBy(mgr, &v2alpha2.PodGroup{}).
			WithValidator(PodGroupValidator{PriorityClasses: priorities}).WithValidatorCustomPath(PodGroupPath).Complete,
		PodCliqueSetPath: ctrl.NewWebhookManagedBy(mgr, &v1alpha1.PodCliqueSet{}).
			WithValidator(podCliqueSetValidator{PriorityClasses: priorities, owners: owners, schedulerName: schedulerName}).WithValidatorCustomPath(PodCliqueSetPath).Complete,
		PodCliqueScalingGroupPath: ctrl.NewWebhookManagedBy(mgr, &v1alpha1.PodCliqueScalingGroup{}).
			WithValidator(podCliqueScalingGroupValidator(owners)).WithValidatorCustomPath(PodCliqueScalingGroupPath).Complete,
		PodCliquePath: ctrl.NewWebhookManagedBy(mgr, &v1alpha1.PodClique{}).
			WithValidator(podCliqueValidator(owners)).WithValidatorCustomPath(PodCliquePath).Complete,
		PodCliqueSetScalePath: ctrl.NewWebhookManagedBy(mgr, &autoscalingv1.Scale{}).
			WithValidator(scaleValidator{scale: owners.scalePodCliqueSet}).WithValidatorCustomPath(PodCliqueSetScalePath).Complete,
		PodCliqueScalingGroupScalePath: ctrl.NewWebhookManagedBy(mgr, &autoscalingv1.Scale{}).
			WithValidator(scaleValidator{scale: owners.scalePodCliqueScalingGroup}).WithValidatorCustomPath(PodCliqueScalingGroupScalePath).Complete,
		PodCliqueScalePath: ctrl.NewWebhookManagedBy(mgr, &autoscalingv1.Scale{}).
			WithValidator(scaleValidator{scale: owners.scalePodClique}).WithValidatorCustomPath(PodCliqueScalePath).Complete,
	} {
		if err := build(); err != nil {
			return fmt.Errorf("registering %s: %w", path, err)
		}
	}
	server := mgr.GetWebhookServer()
	server.Register(PodCliqueSetDefaultPath, &admission.Webhook{Handler: podCliqueSetDefaulter(scheme, schedulerName, owners)})
	server.Register(PodCliqueDefaultPath, &admission.Webhook{Handler: podCliqueDefaulter(scheme, schedulerName, owners)})
	return nil
}

// invalidError returns the errors in the form in which the API server reports its own, nil for none.
func invalidError(kind schema.GroupKind, object metav1.Object, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	name := object.GetName()
	if name == "" { // generateName: the API server has not generated the name yet
		name = object.GetGenerateName()
	}
	return apierrors.NewInvalid(kind, name, errs)
}
