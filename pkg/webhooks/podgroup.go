// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/apis/scheduling/validation"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/pkg/topology"
)

// PodGroupValidator rejects invalid PodGroups and returns warnings.
type PodGroupValidator struct {
	allowDeletion[*v2alpha2.PodGroup]
	PriorityClasses
}

var _ admission.Validator[*v2alpha2.PodGroup] = PodGroupValidator{}

// untilClassOfGroup describes the effect of a missing PriorityClass of a PodGroup.
const untilClassOfGroup = "until it does, the gang has the priority of its pods"

// ValidateCreate validates a new PodGroup.
func (v PodGroupValidator) ValidateCreate(ctx context.Context, pg *v2alpha2.PodGroup) (admission.Warnings, error) {
	errs, warnings := validation.ValidatePodGroup(pg)
	if len(errs) == 0 {
		warnings = append(warnings, v.warnIfMissing(ctx, "spec.priorityClassName", pg.Spec.PriorityClassName, untilClassOfGroup)...)
		errs, warnings = v.validateTopologies(ctx, nil, pg, warnings)
	}
	return warnings, invalidError(v2alpha2.SchemeGroupVersion.WithKind("PodGroup").GroupKind(), pg, errs)
}

// ValidateUpdate validates a changed PodGroup.
func (v PodGroupValidator) ValidateUpdate(ctx context.Context, old, pg *v2alpha2.PodGroup) (admission.Warnings, error) {
	errs, warnings := validation.ValidatePodGroupUpdate(pg, old)
	if len(errs) == 0 && pg.DeletionTimestamp == nil && pg.Spec.PriorityClassName != old.Spec.PriorityClassName {
		warnings = append(warnings, v.warnIfMissing(ctx, "spec.priorityClassName", pg.Spec.PriorityClassName, untilClassOfGroup)...)
	}
	if len(errs) == 0 && pg.DeletionTimestamp == nil && !equality.Semantic.DeepEqual(pg.Spec, old.Spec) {
		errs, warnings = v.validateTopologies(ctx, old, pg, warnings)
	}
	return warnings, invalidError(v2alpha2.SchemeGroupVersion.WithKind("PodGroup").GroupKind(), pg, errs)
}

// validateTopologies returns the errors of a PodGroup that depend on the Topologies that it refers to, and the warnings
// with those about levels without effect and about Topologies that do not exist. What cannot be read within a second is
// no error: the scheduler checks the levels again. old is the PodGroup before an update, nil: it is new. If it has such
// errors itself, because a Topology was created again with other levels, they are warnings: other fields can still be
// updated.
func (v PodGroupValidator) validateTopologies(ctx context.Context, old, pg *v2alpha2.PodGroup, warnings []string) (field.ErrorList, []string) {
	names := validation.Topologies(&pg.Spec)
	if v.Reader == nil || len(names) == 0 {
		return nil, warnings
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	levels := map[string]topology.Levels{}
	for _, name := range names {
		found := &topologyv1alpha1.Topology{}
		switch err := v.Reader.Get(ctx, client.ObjectKey{Name: name}, found); {
		case err == nil:
			levels[name] = found.Spec.NodeLabels()
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			warnings = append(warnings, fmt.Sprintf("topologyConstraint.topology: Topology %q does not exist; until it does, pods with a required level of it wait, and a preferred one has no effect", name))
		}
	}
	levelsOf := func(name string) topology.Levels { return levels[name] }
	errs, more := validation.ValidateTopologyLevels(&pg.Spec, levelsOf)
	warnings = append(warnings, more...)
	if old == nil || len(errs) == 0 {
		return errs, warnings
	}
	if tree, _ := validation.BuildTree(&old.Spec); tree == nil { // ValidateTopologyLevels needs a valid tree
		return errs, warnings
	}
	if former, _ := validation.ValidateTopologyLevels(&old.Spec, levelsOf); len(former) == 0 {
		return errs, warnings
	}
	for _, err := range errs {
		warnings = append(warnings, err.Error())
	}
	return nil, warnings
}
