// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/grove/validation"
)

// defaulter sets defaults for unset fields and changes no other field, so that values stay as the user wrote them. The
// defaulting of controller-runtime would write "24h0m0s" for "24h" and "1" for "1000m", and every application of the
// same manifest would be a change.
type defaulter[T client.Object] struct {
	decoder  admission.Decoder
	empty    func() T
	defaults func(T)
	setOf    func(context.Context, T) (*v1alpha1.PodCliqueSet, error)
	owners   ownerReader
}

func podCliqueSetDefaulter(scheme *runtime.Scheme, schedulerName string, owners ownerReader) admission.Handler {
	return defaulter[*v1alpha1.PodCliqueSet]{admission.NewDecoder(scheme),
		func() *v1alpha1.PodCliqueSet { return &v1alpha1.PodCliqueSet{} },
		func(pcs *v1alpha1.PodCliqueSet) { v1alpha1.SetDefaults(pcs, schedulerName) },
		func(_ context.Context, pcs *v1alpha1.PodCliqueSet) (*v1alpha1.PodCliqueSet, error) { return pcs, nil }, owners}
}

func podCliqueDefaulter(scheme *runtime.Scheme, schedulerName string, owners ownerReader) admission.Handler {
	return defaulter[*v1alpha1.PodClique]{admission.NewDecoder(scheme),
		func() *v1alpha1.PodClique { return &v1alpha1.PodClique{} },
		func(pclq *v1alpha1.PodClique) { v1alpha1.SetPodCliqueDefaults(pclq, schedulerName) },
		func(ctx context.Context, pclq *v1alpha1.PodClique) (*v1alpha1.PodCliqueSet, error) {
			of, err := owners.ownerContextOf(ctx, pclq)
			return of.Set, err
		}, owners}
}

// Handle implements admission.Handler. A terminating object is left alone, and one whose set is not served.
func (d defaulter[T]) Handle(ctx context.Context, request admission.Request) admission.Response {
	object := d.empty()
	if err := d.decoder.DecodeRaw(request.Object, object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("reading the %s: %w", request.Kind.Kind, err))
	}
	if object.GetDeletionTimestamp() != nil {
		return admission.Allowed("")
	}
	set, err := d.setOf(ctx, object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if served, _, err := d.owners.serves(ctx, object, set); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	} else if !served {
		return admission.Allowed("")
	}
	// Both sides of the comparison are marshalled from the Go type, so that the patch contains only the added
	// defaults.
	before, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	d.defaults(object)
	after, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	response := admission.PatchResponseFromRaw(before, after)

	// The Go type has structs where the user's object may have no value. Such a missing value is a required field: the
	// API server rejects it, unless the webhook fails before with a patch that cannot be applied.
	var written any
	if err := json.Unmarshal(request.Object.Raw, &written); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	kept := response.Patches[:0]
	for _, patch := range response.Patches {
		if hasParent(written, patch.Path) {
			kept = append(kept, patch)
		}
	}
	if response.Patches = kept; len(kept) == 0 {
		response.PatchType = nil
	}
	return response
}

// hasParent reports whether the parent of the value that a JSON pointer refers to exists. No field with a default has
// a name that JSON pointers escape.
func hasParent(document any, pointer string) bool {
	steps := strings.Split(pointer, "/")
	for _, step := range steps[1 : len(steps)-1] {
		switch node := document.(type) {
		case map[string]any:
			document = node[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(node) {
				return false
			}
			document = node[i]
		default:
			return false
		}
	}
	switch document.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// podCliqueSetValidator rejects invalid PodCliqueSets and forbidden changes, and returns warnings.
type podCliqueSetValidator struct {
	allowDeletion[*v1alpha1.PodCliqueSet]
	PriorityClasses
	owners        ownerReader
	schedulerName string // see Setup
}

var _ admission.Validator[*v1alpha1.PodCliqueSet] = podCliqueSetValidator{}

// untilClassOfSet describes the effect of a missing PriorityClass of a PodCliqueSet.
const untilClassOfSet = "until it does, the API server refuses the pods"

// ValidateCreate validates a new PodCliqueSet. A warning tells that it is not served: its class may be misspelled.
func (v podCliqueSetValidator) ValidateCreate(ctx context.Context, pcs *v1alpha1.PodCliqueSet) (admission.Warnings, error) {
	if served, reason, err := v.owners.serves(ctx, pcs, pcs); err != nil {
		return nil, err
	} else if !served {
		return admission.Warnings{"muster-controller leaves this PodCliqueSet alone: " + reason}, nil
	}
	errs, warnings := validation.ValidateNewPodCliqueSet(pcs)
	warnings = append(warnings, validation.SchedulerWarnings(pcs, nil, v.schedulerName)...)
	topologyErrs, topologyWarnings, err := validation.ValidateNewTopology(pcs, func(name string) (*v1alpha1.ClusterTopologyBinding, error) {
		return v.readBinding(ctx, name)
	})
	if err != nil {
		return nil, err
	}
	errs, warnings = append(errs, topologyErrs...), append(warnings, topologyWarnings...)
	if len(errs) == 0 {
		warnings = append(warnings, v.warnIfMissing(ctx, "spec.template.priorityClassName", pcs.Spec.Template.PriorityClassName, untilClassOfSet)...)
	}
	return unlessRejected(warnings, errs), invalidError(v1alpha1.Kind(v1alpha1.KindPodCliqueSet), pcs, errs)
}

// readBinding returns the ClusterTopologyBinding with a name, nil if there is none or no CRD.
func (v podCliqueSetValidator) readBinding(ctx context.Context, name string) (*v1alpha1.ClusterTopologyBinding, error) {
	binding := &v1alpha1.ClusterTopologyBinding{}
	switch err := v.Reader.Get(ctx, client.ObjectKey{Name: name}, binding); {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, undecidedError("reading ClusterTopologyBinding %s: %w", name, err)
	}
	return binding, nil
}

// ValidateUpdate validates a changed PodCliqueSet.
func (v podCliqueSetValidator) ValidateUpdate(ctx context.Context, old, pcs *v1alpha1.PodCliqueSet) (admission.Warnings, error) {
	if served, _, err := v.owners.serves(ctx, pcs, pcs); err != nil || !served {
		return nil, err
	}
	errs, warnings := validation.ValidatePodCliqueSetUpdate(pcs, old)
	if pcs.DeletionTimestamp == nil {
		warnings = append(warnings, validation.SchedulerWarnings(pcs, old, v.schedulerName)...)
	}
	if name := pcs.Spec.Template.PriorityClassName; len(errs) == 0 && pcs.DeletionTimestamp == nil && name != old.Spec.Template.PriorityClassName {
		warnings = append(warnings, v.warnIfMissing(ctx, "spec.template.priorityClassName", name, untilClassOfSet)...)
	}
	return unlessRejected(warnings, errs), invalidError(v1alpha1.Kind(v1alpha1.KindPodCliqueSet), pcs, errs)
}

// unlessRejected returns the warnings of a request that is accepted: one that is rejected has none of the effects that
// they describe.
func unlessRejected(warnings []string, errs field.ErrorList) admission.Warnings {
	if len(errs) > 0 {
		return nil
	}
	return warnings
}

// childValidator restricts the changes of PodCliqueScalingGroups or PodCliques, which belong to a PodCliqueSet: users
// may change their replicas, within limits, unless they are PodCliques of a scaling group. All other fields are changed
// in the template of the PodCliqueSet, and muster-controller applies the changes to its children.
type childValidator[T client.Object] struct {
	ownerReader
	allowDeletion[T]
	kind   string
	specOf func(T) any
	create func(T) field.ErrorList
	update func(child, old T, owners validation.OwnerContext) field.ErrorList
}

func podCliqueScalingGroupValidator(owners ownerReader) childValidator[*v1alpha1.PodCliqueScalingGroup] {
	return childValidator[*v1alpha1.PodCliqueScalingGroup]{ownerReader: owners, kind: v1alpha1.KindPodCliqueScalingGroup,
		specOf: func(pcsg *v1alpha1.PodCliqueScalingGroup) any { return pcsg.Spec },
		create: validation.ValidatePodCliqueScalingGroup, update: validation.ValidatePodCliqueScalingGroupUpdate}
}

func podCliqueValidator(owners ownerReader) childValidator[*v1alpha1.PodClique] {
	return childValidator[*v1alpha1.PodClique]{ownerReader: owners, kind: v1alpha1.KindPodClique,
		specOf: func(pclq *v1alpha1.PodClique) any { return pclq.Spec },
		create: validation.ValidatePodClique, update: validation.ValidatePodCliqueUpdate}
}

// ValidateCreate validates a new child.
func (v childValidator[T]) ValidateCreate(ctx context.Context, child T) (admission.Warnings, error) {
	owners, err := v.ownerContextOf(ctx, child)
	if err != nil {
		return nil, err
	}
	if served, _, err := v.serves(ctx, child, owners.Set); err != nil || !served {
		return nil, err
	}
	return nil, invalidError(v1alpha1.Kind(v.kind), child, v.create(child))
}

// ValidateUpdate validates a changed child. Its owners are read only if its spec has changed.
func (v childValidator[T]) ValidateUpdate(ctx context.Context, old, child T) (admission.Warnings, error) {
	var owners validation.OwnerContext
	if child.GetDeletionTimestamp() == nil && !equality.Semantic.DeepEqual(v.specOf(child), v.specOf(old)) {
		var err error
		if owners, err = v.ownerContextOf(ctx, old); err != nil {
			return nil, err
		}
		if served, _, err := v.serves(ctx, child, owners.Set); err != nil || !served {
			return nil, err
		}
	}
	return nil, invalidError(v1alpha1.Kind(v.kind), child, v.update(child, old, owners))
}

// allowDeletion is the part of a validator that allows every deletion.
type allowDeletion[T any] struct{}

// ValidateDelete implements admission.Validator.
func (allowDeletion[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) {
	return nil, nil
}
