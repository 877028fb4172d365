// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// ValidatePodCliqueSetUpdate returns what ValidatePodCliqueSet returns for the new object, an error for every change
// of an immutable field, and warnings about changes that have no effect on existing pods. An update that leaves the
// spec alone, or of a terminating object, always passes without warnings, so that finalizers, labels and status can be
// written even if the spec is invalid.
func ValidatePodCliqueSetUpdate(pcs, old *v1alpha1.PodCliqueSet) (field.ErrorList, []string) {
	pcs, old = defaultedCopies(pcs, old)
	if pcs.DeletionTimestamp != nil || equality.Semantic.DeepEqual(pcs.Spec, old.Spec) {
		return nil, nil
	}
	errs := validateDefaulted(pcs)
	errs = append(errs, validateImmutable(pcs, old)...)
	rolling := rollingChanges(pcs, old)
	if pcs.Spec.IsTraining() && old.Spec.IsTraining() {
		for _, path := range rolling {
			errs = append(errs, fixedTemplate(path))
		}
	}
	out := append(fieldWarnings(pcs), replicasWarnings(pcs, old)...)
	return limitErrors(errs), append(out, strategyWarnings(pcs, old, rolling)...)
}

// ValidatePodCliqueSetScale returns the errors of scaling a PodCliqueSet.
func ValidatePodCliqueSetScale(pcs *v1alpha1.PodCliqueSet, replicas int32) field.ErrorList {
	if pcs.DeletionTimestamp != nil || replicas == pcs.Spec.Replicas {
		return nil
	}
	if pcs.Spec.IsTraining() {
		return field.ErrorList{fixedReplicas(replicasPath)}
	}
	if replicas < 0 {
		return field.ErrorList{field.Invalid(replicasPath, replicas, "must not be negative")}
	}
	if replicas < pcs.Spec.Replicas {
		return nil
	}
	scaled := withDefaults(pcs)
	scaled.Spec.Replicas = replicas
	return validatePods(scaled)
}

// defaultedCopies returns copies with defaults. A default that the old object lacks because it bypassed admission, and that the
// new object has, does not count as a change.
func defaultedCopies(pcs, old *v1alpha1.PodCliqueSet) (*v1alpha1.PodCliqueSet, *v1alpha1.PodCliqueSet) {
	pcs, old = withDefaults(pcs), old.DeepCopy()
	for _, before := range old.Spec.Template.Cliques {
		clique := pcs.Spec.Template.Clique(nameOf(before))
		if clique != nil && before.Spec.PodSpec.SchedulerName == "" {
			before.Spec.PodSpec.SchedulerName = clique.Spec.PodSpec.SchedulerName
		}
	}
	return pcs, withDefaults(old)
}

func nameOf(clique *v1alpha1.PodCliqueTemplateSpec) string {
	if clique == nil {
		return ""
	}
	return clique.Name
}

// Reasons why a field is immutable, for error messages.
const (
	whyAdmitted = "running pods were admitted by it"
	whyFollow   = "running pods could not follow"
	whyStarted  = "running pods were started by it"
	newSet      = "create a new PodCliqueSet"
)

func immutableError(path *field.Path, why string) *field.Error {
	return field.Forbidden(path, fmt.Sprintf("is immutable: %s; %s", why, newSet))
}

func fixedReplicas(path *field.Path) *field.Error {
	return immutableError(path, "the replicas of a Training workload are fixed")
}

func validateImmutable(pcs, old *v1alpha1.PodCliqueSet) field.ErrorList {
	var errs field.ErrorList
	same := sameIn(&errs)
	if inference := v1alpha1.WorkloadTypeInference; cmp.Or(pcs.Spec.WorkloadType, inference) != cmp.Or(old.Spec.WorkloadType, inference) {
		errs = append(errs, immutableError(specPath.Child("workloadType"), "a running workload cannot become another kind"))
	}
	same(specPath.Child("trainingSpec"), trainingLimitsOf(&pcs.Spec), trainingLimitsOf(&old.Spec), "restarts and time were counted against it")
	training := pcs.Spec.IsTraining() && old.Spec.IsTraining()
	if training && pcs.Spec.Replicas != old.Spec.Replicas {
		errs = append(errs, fixedReplicas(replicasPath))
	}
	template, before := &pcs.Spec.Template, &old.Spec.Template
	same(startTypePath, template.StartupType, before.StartupType, whyStarted)
	same(templatePath.Child("topologyConstraint"), template.TopologyConstraint, before.TopologyConstraint, whyAdmitted)
	same(templatePath.Child("resourceClaimTemplates"), template.ResourceClaimTemplates, before.ResourceClaimTemplates, whyFollow)
	same(templatePath.Child("resourceSharing"), template.ResourceSharing, before.ResourceSharing, whyFollow)
	same(field.NewPath("metadata", "annotations").Key(v1alpha1.AnnotationMNNVLGroup),
		pcs.Annotations[v1alpha1.AnnotationMNNVLGroup], old.Annotations[v1alpha1.AnnotationMNNVLGroup], whyFollow)

	// Cliques.
	names, namesBefore := cliqueNames(template), cliqueNames(before)
	errs = append(errs, sameNames(cliquesPath, "cliques", names, namesBefore)...)
	if *template.StartupType != v1alpha1.CliqueStartupTypeAnyOrder && !slices.Equal(names, namesBefore) && sameSet(names, namesBefore) {
		errs = append(errs, field.Forbidden(cliquesPath, fmt.Sprintf(
			"the order of cliques is immutable with %s: %s; it was %s", *template.StartupType, whyStarted, quotedList(namesBefore))))
	}
	errs = append(errs, immutableInCliques(template, before, training)...)
	errs = append(errs, sameNames(groupsPath, "scaling groups", groupNames(template), groupNames(before))...)
	return append(errs, immutableInGroups(template, before, training)...)
}

// sameIn returns a function that adds an error if two values differ.
func sameIn(errs *field.ErrorList) func(path *field.Path, now, before any, why string) {
	return func(path *field.Path, now, before any, why string) {
		if !equality.Semantic.DeepEqual(now, before) {
			*errs = append(*errs, immutableError(path, why))
		}
	}
}

func immutableInCliques(template, before *v1alpha1.PodCliqueSetTemplateSpec, training bool) field.ErrorList {
	var errs field.ErrorList
	same := sameIn(&errs)
	for i, clique := range template.Cliques {
		before := before.Clique(nameOf(clique))
		if before == nil {
			continue
		}
		path := cliquesPath.Index(i)
		same(path.Child("topologyConstraint"), clique.TopologyConstraint, before.TopologyConstraint, whyAdmitted)
		same(path.Child("resourceSharing"), clique.ResourceSharing, before.ResourceSharing, whyFollow)
		same(path.Child("annotations").Key(v1alpha1.AnnotationMNNVLGroup),
			clique.Annotations[v1alpha1.AnnotationMNNVLGroup], before.Annotations[v1alpha1.AnnotationMNNVLGroup], whyFollow)
		path = path.Child("spec")
		same(path.Child("roleName"), clique.Spec.RoleName, before.Spec.RoleName, "running pods have it")
		same(path.Child("minAvailable"), clique.Spec.MinAvailable, before.Spec.MinAvailable, whyAdmitted)
		same(path.Child("startsAfter"), clique.Spec.StartsAfter, before.Spec.StartsAfter, whyStarted)
		same(path.Child("podSpec", "schedulerName"), clique.Spec.PodSpec.SchedulerName, before.Spec.PodSpec.SchedulerName, whyAdmitted)
		if training && clique.Spec.Replicas != before.Spec.Replicas {
			errs = append(errs, fixedReplicas(path.Child("replicas")))
		}
	}
	return errs
}

func immutableInGroups(template, before *v1alpha1.PodCliqueSetTemplateSpec, training bool) field.ErrorList {
	var errs field.ErrorList
	same := sameIn(&errs)
	for i := range template.PodCliqueScalingGroupConfigs {
		group := &template.PodCliqueScalingGroupConfigs[i]
		before := before.ScalingGroup(group.Name)
		if before == nil {
			continue
		}
		path := groupsPath.Index(i)
		same(path.Child("cliqueNames"), group.CliqueNames, before.CliqueNames, whyFollow)
		same(path.Child("minAvailable"), group.MinAvailable, before.MinAvailable, whyAdmitted)
		same(path.Child("topologyConstraint"), group.TopologyConstraint, before.TopologyConstraint, whyAdmitted)
		same(path.Child("resourceSharing"), group.ResourceSharing, before.ResourceSharing, whyFollow)
		same(path.Child("annotations").Key(v1alpha1.AnnotationMNNVLGroup),
			group.Annotations[v1alpha1.AnnotationMNNVLGroup], before.Annotations[v1alpha1.AnnotationMNNVLGroup], whyFollow)
		if training && *group.Replicas != *before.Replicas {
			errs = append(errs, fixedReplicas(path.Child("replicas")))
		}
	}
	return errs
}

// trainingLimitsOf returns the immutable limits of a Training workload, with the meaning of unset limits filled in: no
// restarts, and no limit of the runtime.
func trainingLimitsOf(spec *v1alpha1.PodCliqueSetSpec) v1alpha1.TrainingSpec {
	var limits v1alpha1.TrainingSpec
	if spec.TrainingSpec != nil {
		limits = *spec.TrainingSpec
	}
	limits.TTLSecondsAfterFinished = nil
	if limits.MaxRestarts == nil {
		limits.MaxRestarts = new(int32)
	}
	return limits
}

func cliqueNames(template *v1alpha1.PodCliqueSetTemplateSpec) []string {
	var names []string
	for _, clique := range template.Cliques {
		names = append(names, nameOf(clique))
	}
	return names
}

func groupNames(template *v1alpha1.PodCliqueSetTemplateSpec) []string {
	var names []string
	for _, group := range template.PodCliqueScalingGroupConfigs {
		names = append(names, group.Name)
	}
	return names
}

// sameNames returns one error if entries were added to or removed from a list.
func sameNames(path *field.Path, what string, names, before []string) field.ErrorList {
	if sameSet(names, before) {
		return nil
	}
	detail := what + " cannot be added, removed or renamed: " + whyFollow + "; " + newSet
	added := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(before, name) })
	removed := slices.DeleteFunc(slices.Clone(before), func(name string) bool { return slices.Contains(names, name) })
	if len(added) > 0 {
		detail += "; added: " + quotedList(added)
	}
	if len(removed) > 0 {
		detail += "; removed: " + quotedList(removed)
	}
	return field.ErrorList{field.Forbidden(path, detail)}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// fixedTemplate returns the error for a change of the template of a Training workload, which no update applies
// (docs/decisions, J1).
func fixedTemplate(path *field.Path) *field.Error {
	return field.Forbidden(path, "the template of a Training workload is immutable under either update strategy: a rolling change would restart the job; "+
		"create a new PodCliqueSet, with workloadType Inference and update strategy OnDelete if its template is to change while it runs")
}

// rollingChanges returns the changed fields of the template that take effect only by replacing pods, in the order of
// the new template: labels, annotations and podSpec of its cliques, then the priority class of the template
// (docs/decisions, U1). A change of the priority class counts only if it gives pods another priority class. Cliques
// that exist in only one of the two templates are ignored.
func rollingChanges(pcs, old *v1alpha1.PodCliqueSet) []*field.Path {
	var changed []*field.Path
	priority := false
	for i, clique := range pcs.Spec.Template.Cliques {
		before := old.Spec.Template.Clique(nameOf(clique))
		if before == nil {
			continue
		}
		path := cliquesPath.Index(i)
		if !equality.Semantic.DeepEqual(clique.Labels, before.Labels) {
			changed = append(changed, path.Child("labels"))
		}
		if !equality.Semantic.DeepEqual(clique.Annotations, before.Annotations) {
			changed = append(changed, path.Child("annotations"))
		}
		podsNow, podsBefore := pcs.Spec.Template.PodCliqueSpec(clique).PodSpec, old.Spec.Template.PodCliqueSpec(before).PodSpec
		switch {
		case equality.Semantic.DeepEqual(podsNow, podsBefore):
		case equality.Semantic.DeepEqual(clique.Spec.PodSpec, before.Spec.PodSpec):
			priority = true
		default:
			changed = append(changed, path.Child("spec", "podSpec"))
			priority = priority || podsNow.PriorityClassName != podsBefore.PriorityClassName
		}
	}
	if priority && pcs.Spec.Template.PriorityClassName != old.Spec.Template.PriorityClassName {
		changed = append(changed, templatePath.Child("priorityClassName"))
	}
	return changed
}

// strategyWarnings returns warnings about changes that the update strategy does not apply to running pods: under
// OnDelete, all rolling changes (docs/decisions, U4); after a switch from OnDelete to RollingRecreate, the changes
// before the switch (docs/decisions, U5). It returns none if no pods are running, and none for Training, which has no
// updates.
func strategyWarnings(pcs, old *v1alpha1.PodCliqueSet, rolling []*field.Path) []string {
	if pcs.Spec.IsTraining() || pcs.Spec.Replicas == 0 || old.Spec.Replicas == 0 {
		return nil
	}
	switch {
	case pcs.Spec.IsOnDelete() && len(rolling) > 0:
		return []string{firstPaths(rolling[0].String(), len(rolling)-1) +
			": updateStrategy is OnDelete, so nothing is replaced: delete pods or PodCliques to replace them"}
	case old.Spec.IsOnDelete() && !pcs.Spec.IsOnDelete() && len(rolling) == 0:
		return []string{strategyPath.String() +
			": replaces nothing by itself: pods of earlier templates, if there are any, stay until the next change of the template"}
	}
	return nil
}

// replicasWarnings returns warnings that an edit of the template's replicas has no effect on objects that have been
// scaled (docs/decisions, W2).
func replicasWarnings(pcs, old *v1alpha1.PodCliqueSet) []string {
	var out []string
	warn := func(path *field.Path, kind string) {
		out = append(out, fmt.Sprintf("%s: applies to %ss that have not been scaled; the others keep the replicas they were scaled to", path, kind))
	}
	for i, clique := range pcs.Spec.Template.Cliques {
		if before := old.Spec.Template.Clique(nameOf(clique)); before != nil && before.Spec.Replicas != clique.Spec.Replicas {
			warn(cliquesPath.Index(i).Child("spec", "replicas"), v1alpha1.KindPodClique)
		}
	}
	for i, group := range pcs.Spec.Template.PodCliqueScalingGroupConfigs {
		if before := old.Spec.Template.ScalingGroup(group.Name); before != nil && *before.Replicas != *group.Replicas {
			warn(groupsPath.Index(i).Child("replicas"), v1alpha1.KindPodCliqueScalingGroup)
		}
	}
	return out
}
