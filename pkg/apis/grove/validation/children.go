// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/naming"
)

// OwnerContext contains the objects, besides the changed object itself, that the validation of a PodClique or
// PodCliqueScalingGroup uses. An object that is unknown or deleted is left out and the checks that need it are
// skipped: an orphan can be scaled.
type OwnerContext struct {
	// Set is the PodCliqueSet that the object was created for.
	Set *v1alpha1.PodCliqueSet
	// Groups are the PodCliqueScalingGroups of that set. They are used for the size of the PodGroup's tree; a missing
	// one is assumed to have the replicas of the template.
	Groups []v1alpha1.PodCliqueScalingGroup
}

// ControllingOwner returns the reference to the PodCliqueSet or PodCliqueScalingGroup that controls the object, nil if it is
// controlled by neither.
func ControllingOwner(object metav1.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return nil
	}
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || group.Group != v1alpha1.GroupName {
		return nil
	}
	switch owner.Kind {
	case v1alpha1.KindPodCliqueSet, v1alpha1.KindPodCliqueScalingGroup:
		return owner
	}
	return nil
}

func validateOwner(object metav1.Object, kind string, owners ...string) field.ErrorList {
	if owner := ControllingOwner(object); owner != nil {
		for _, allowed := range owners {
			if owner.Kind == allowed {
				return nil
			}
		}
	}
	return field.ErrorList{field.Required(field.NewPath("metadata", "ownerReferences"), fmt.Sprintf(
		"a %s is made by muster-controller for a PodCliqueSet and is controlled by it; create a PodCliqueSet", kind))}
}

// ValidatePodCliqueScalingGroup returns every error of a new
// PodCliqueScalingGroup.
func ValidatePodCliqueScalingGroup(pcsg *v1alpha1.PodCliqueScalingGroup) field.ErrorList {
	errs := validateOwner(pcsg, v1alpha1.KindPodCliqueScalingGroup, v1alpha1.KindPodCliqueSet)
	return append(errs, validateScalingGroupSpec(&pcsg.Spec)...)
}

func validateScalingGroupSpec(spec *v1alpha1.PodCliqueScalingGroupSpec) field.ErrorList {
	errs := validateScale(spec.Replicas, spec.MinAvailable)
	path, seen := specPath.Child("cliqueNames"), map[string]bool{}
	if len(spec.CliqueNames) == 0 {
		errs = append(errs, field.Required(path, "at least one clique is needed"))
	}
	for i, name := range spec.CliqueNames {
		errs = append(errs, validateChildName(path.Index(i), name, seen)...)
	}
	return errs
}

// validateScale validates replicas against an explicit minAvailable, which is a lower limit.
func validateScale(replicas int32, minAvailable *int32) field.ErrorList {
	var errs field.ErrorList
	switch {
	case replicas < 0:
		errs = append(errs, field.Invalid(replicasPath, replicas, "must not be negative"))
	case replicas > v1alpha1.MaxPods:
		errs = append(errs, field.Invalid(replicasPath, replicas, fmt.Sprintf(
			"must not be above %d: a cluster of Kubernetes runs no more pods; use fewer replicas", v1alpha1.MaxPods)))
	case minAvailable != nil && replicas < *minAvailable:
		errs = append(errs, field.Invalid(replicasPath, replicas, fmt.Sprintf(
			"must not be below minAvailable, %d, the floor that the PodCliqueSet sets", *minAvailable)))
	}
	if minAvailable != nil && *minAvailable < 1 {
		errs = append(errs, field.Invalid(specPath.Child("minAvailable"), *minAvailable, "must be greater than 0"))
	}
	return errs
}

// ValidatePodCliqueScalingGroupUpdate returns every error of a change of a
// PodCliqueScalingGroup. An update that leaves the spec alone, or is of a
// terminating object, always passes.
func ValidatePodCliqueScalingGroupUpdate(pcsg, old *v1alpha1.PodCliqueScalingGroup, owners OwnerContext) field.ErrorList {
	if pcsg.DeletionTimestamp != nil || equality.Semantic.DeepEqual(pcsg.Spec, old.Spec) {
		return nil
	}
	errs := validateScalingGroupSpec(&pcsg.Spec)
	if !equality.Semantic.DeepEqual(pcsg.Spec.MinAvailable, old.Spec.MinAvailable) {
		errs = append(errs, immutableError(specPath.Child("minAvailable"), whyAdmitted))
	}
	if !equality.Semantic.DeepEqual(pcsg.Spec.CliqueNames, old.Spec.CliqueNames) {
		errs = append(errs, immutableError(specPath.Child("cliqueNames"), whyFollow))
	}
	errs = append(errs, validateGroupFromTemplate(pcsg, old, owners)...)
	return append(errs, scaleGroup(old, pcsg.Spec.Replicas, owners)...)
}

// validateGroupFromTemplate rejects changes of minReadySeconds, which the template of the PodCliqueSet sets, unless the
// new value is that of the current template; see validateFromTemplate.
func validateGroupFromTemplate(pcsg, old *v1alpha1.PodCliqueScalingGroup, owners OwnerContext) field.ErrorList {
	if owners.Set == nil || pcsg.Spec.MinReadySeconds == old.Spec.MinReadySeconds {
		return nil
	}
	path := groupsPath
	configs, name := owners.Set.Spec.Template.PodCliqueScalingGroupConfigs, old.Labels[v1alpha1.LabelTemplateName]
	for i := range configs {
		if configs[i].Name != name {
			continue
		}
		if configs[i].MinReadySeconds == pcsg.Spec.MinReadySeconds {
			return nil
		}
		path = groupsPath.Index(i).Child("minReadySeconds")
	}
	return field.ErrorList{setByTemplate(specPath.Child("minReadySeconds"), path, owners.Set)}
}

// setByTemplate returns the error for a change of a field that the template of a set sets at another path.
func setByTemplate(path, where *field.Path, set *v1alpha1.PodCliqueSet) *field.Error {
	return field.Forbidden(path, fmt.Sprintf(
		"is set by the template of the PodCliqueSet: change %s of PodCliqueSet %s instead", where, set.Name))
}

// ValidatePodCliqueScalingGroupScale returns the errors of scaling a
// PodCliqueScalingGroup.
func ValidatePodCliqueScalingGroupScale(pcsg *v1alpha1.PodCliqueScalingGroup, replicas int32, owners OwnerContext) field.ErrorList {
	if pcsg.DeletionTimestamp != nil || replicas == pcsg.Spec.Replicas {
		return nil
	}
	return append(validateScale(replicas, pcsg.Spec.MinAvailable), scaleGroup(pcsg, replicas, owners)...)
}

// scaleGroup validates new replicas of a scaling group against its set.
func scaleGroup(pcsg *v1alpha1.PodCliqueScalingGroup, replicas int32, owners OwnerContext) field.ErrorList {
	if owners.Set == nil || replicas == pcsg.Spec.Replicas {
		return nil
	}
	set := withDefaults(owners.Set)
	if set.Spec.IsTraining() {
		return field.ErrorList{fixedReplicas(replicasPath)}
	}
	if replicas < pcsg.Spec.Replicas {
		return nil
	}
	name, index := pcsg.Labels[v1alpha1.LabelTemplateName], replicaIndexOf(pcsg)
	size := treeSize(&set.Spec.Template, func(config *v1alpha1.PodCliqueScalingGroupConfig) int32 {
		if config.Name == name {
			return replicas
		}
		for i := range owners.Groups {
			if other := &owners.Groups[i]; other.Labels[v1alpha1.LabelTemplateName] == config.Name && replicaIndexOf(other) == index {
				return other.Spec.Replicas
			}
		}
		return *config.Replicas
	})
	if size > v2alpha2.MaxSubGroups {
		return field.ErrorList{field.Invalid(replicasPath, replicas, tooLargeError("with so many replicas", size))}
	}
	return nil
}

// replicaIndexOf returns the index of the set's replica that an object belongs to, 0 if its label is invalid.
func replicaIndexOf(object metav1.Object) int {
	return max(naming.LabelIndex(object.GetLabels(), v1alpha1.LabelPodCliqueSetReplicaIndex), 0)
}

// ValidatePodClique returns every error of a new PodClique.
func ValidatePodClique(pclq *v1alpha1.PodClique) field.ErrorList {
	errs := validateOwner(pclq, v1alpha1.KindPodClique, v1alpha1.KindPodCliqueSet, v1alpha1.KindPodCliqueScalingGroup)
	return append(errs, validateScale(pclq.Spec.Replicas, pclq.Spec.MinAvailable)...)
}

// ValidatePodCliqueUpdate returns every error of a change of a PodClique. An update that leaves the spec alone, or of
// a terminating object, always passes. The replicas of a member of a scaling group may only be changed to those of the
// template. Fields that the template sets must be changed in the template.
func ValidatePodCliqueUpdate(pclq, old *v1alpha1.PodClique, owners OwnerContext) field.ErrorList {
	if pclq.DeletionTimestamp != nil || equality.Semantic.DeepEqual(pclq.Spec, old.Spec) {
		return nil
	}
	errs := validateScale(pclq.Spec.Replicas, pclq.Spec.MinAvailable)
	if !equality.Semantic.DeepEqual(pclq.Spec.MinAvailable, old.Spec.MinAvailable) {
		errs = append(errs, immutableError(specPath.Child("minAvailable"), whyAdmitted))
	}
	if old.Spec.RoleName != "" && pclq.Spec.RoleName != old.Spec.RoleName {
		errs = append(errs, immutableError(specPath.Child("roleName"), "running pods have it"))
	}
	if !equality.Semantic.DeepEqual(pclq.Spec.StartsAfter, old.Spec.StartsAfter) {
		errs = append(errs, immutableError(specPath.Child("startsAfter"), whyStarted))
	}
	errs = append(errs, validateFromTemplate(pclq, old, owners)...)
	if pclq.Spec.Replicas == old.Spec.Replicas {
		return errs
	}
	if group := scalingGroupOf(old); group != "" && owners.Set != nil && !owners.Set.Spec.IsTraining() {
		clique := owners.Set.Spec.Template.Clique(old.Labels[v1alpha1.LabelTemplateName])
		if clique == nil || clique.Spec.Replicas != pclq.Spec.Replicas {
			errs = append(errs, scalesWithItsGroup(group))
		}
	}
	return append(errs, scaleClique(owners)...)
}

// validateFromTemplate rejects changes of fields that the template of the PodCliqueSet sets, unless the new value is
// that of the current template, whoever requests it. Any other change would leave the PodClique with wrong pods that
// would never be replaced.
func validateFromTemplate(pclq, old *v1alpha1.PodClique, owners OwnerContext) field.ErrorList {
	if owners.Set == nil {
		return nil
	}
	set := withDefaults(owners.Set)
	name := old.Labels[v1alpha1.LabelTemplateName]
	index := slices.IndexFunc(set.Spec.Template.Cliques, func(clique *v1alpha1.PodCliqueTemplateSpec) bool {
		return clique != nil && clique.Name == name
	})
	var want v1alpha1.PodCliqueSpec
	if index >= 0 {
		want = *set.Spec.Template.PodCliqueSpec(set.Spec.Template.Cliques[index])
		if owners.Set.Spec.Template.Cliques[index].Spec.PodSpec.SchedulerName == "" { // the configured default is not known here
			want.PodSpec.SchedulerName = pclq.Spec.PodSpec.SchedulerName
		}
	}
	var errs field.ErrorList
	for _, given := range []struct {
		field             string
		now, before, want any
	}{
		{"podSpec", pclq.Spec.PodSpec, old.Spec.PodSpec, want.PodSpec},
		{"autoScalingConfig", pclq.Spec.ScaleConfig, old.Spec.ScaleConfig, want.ScaleConfig},
		{"minReadySeconds", pclq.Spec.MinReadySeconds, old.Spec.MinReadySeconds, want.MinReadySeconds},
	} {
		if equality.Semantic.DeepEqual(given.now, given.before) || index >= 0 && equality.Semantic.DeepEqual(given.now, given.want) {
			continue
		}
		where := templatePath
		if index >= 0 {
			where = cliquesPath.Index(index).Child("spec", given.field)
		}
		errs = append(errs, setByTemplate(specPath.Child(given.field), where, set))
	}
	return errs
}

// ValidatePodCliqueScale returns the errors of scaling a PodClique.
func ValidatePodCliqueScale(pclq *v1alpha1.PodClique, replicas int32, owners OwnerContext) field.ErrorList {
	if pclq.DeletionTimestamp != nil || replicas == pclq.Spec.Replicas {
		return nil
	}
	if group := scalingGroupOf(pclq); group != "" {
		return field.ErrorList{scalesWithItsGroup(group)}
	}
	return append(validateScale(replicas, pclq.Spec.MinAvailable), scaleClique(owners)...)
}

// scalingGroupOf returns the name of the PodCliqueScalingGroup that controls the
// PodClique, "" for a standalone one.
func scalingGroupOf(pclq *v1alpha1.PodClique) string {
	if owner := ControllingOwner(pclq); owner != nil && owner.Kind == v1alpha1.KindPodCliqueScalingGroup {
		return owner.Name
	}
	return ""
}

func scalesWithItsGroup(group string) *field.Error {
	return field.Forbidden(replicasPath, fmt.Sprintf(
		"the clique belongs to a scaling group, whose replicas all have the same size: scale podcliquescalinggroup/%s instead, or change the replicas of the clique in the PodCliqueSet's template", group))
}

// scaleClique validates new replicas of a clique against its set.
func scaleClique(owners OwnerContext) field.ErrorList {
	if owners.Set != nil && owners.Set.Spec.IsTraining() {
		return field.ErrorList{fixedReplicas(replicasPath)}
	}
	return nil
}
