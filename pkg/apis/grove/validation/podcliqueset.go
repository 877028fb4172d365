// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

var (
	specPath      = field.NewPath("spec")
	templatePath  = specPath.Child("template")
	cliquesPath   = templatePath.Child("cliques")
	groupsPath    = templatePath.Child("podCliqueScalingGroups")
	replicasPath  = specPath.Child("replicas")
	delayPath     = templatePath.Child("terminationDelay")
	startTypePath = templatePath.Child("cliqueStartupType")
	strategyPath  = specPath.Child("updateStrategy", "type")
	rollingPath   = specPath.Child("updateStrategy", "rollingRecreate")
)

// ValidatePodCliqueSet returns the errors of a PodCliqueSet, none for a valid one, and warnings about fields that are
// accepted but do not have the effect they promise.
func ValidatePodCliqueSet(pcs *v1alpha1.PodCliqueSet) (field.ErrorList, []string) {
	pcs = withDefaults(pcs)
	return limitErrors(validateDefaulted(pcs)), fieldWarnings(pcs)
}

// ValidateNewPodCliqueSet is ValidatePodCliqueSet for a new one. Later it may be scaled to 0.
func ValidateNewPodCliqueSet(pcs *v1alpha1.PodCliqueSet) (field.ErrorList, []string) {
	errs, warnings := ValidatePodCliqueSet(pcs)
	switch {
	case pcs.Spec.Replicas != 0: // which it is also if it is not set
	case pcs.Spec.IsTraining():
		errs = append(errs, field.Invalid(specPath.Child("replicas"), 0,
			"0, the value if it is not set, gives a Training workload no pods, and it is immutable: set it to 1 or more"))
	default:
		warnings = append(warnings, "spec.replicas is 0, the value if it is not set: no pods are created until it is raised")
	}
	return errs, warnings
}

// limitErrors limits the number of errors to what a user can read and what fits into a response or a status. A single
// mistake in a long list can cause tens of thousands of errors.
func limitErrors(errs field.ErrorList) field.ErrorList {
	const most = 32
	if len(errs) <= most {
		return errs
	}
	more := field.TooMany(specPath, len(errs), most)
	more.Detail = fmt.Sprintf("so many errors in all; these are the first %d", most)
	return append(errs[:most:most], more)
}

func withDefaults(pcs *v1alpha1.PodCliqueSet) *v1alpha1.PodCliqueSet {
	pcs = pcs.DeepCopy()
	v1alpha1.SetDefaults(pcs, "")
	return pcs
}

// validateDefaulted returns every error of a PodCliqueSet with defaults.
func validateDefaulted(pcs *v1alpha1.PodCliqueSet) field.ErrorList {
	errs := validateSetName(pcs)
	if pcs.Spec.Replicas < 0 {
		errs = append(errs, field.Invalid(replicasPath, pcs.Spec.Replicas, "must not be negative"))
	}
	if s := pcs.Spec.UpdateStrategy; s != nil {
		errs = append(errs, oneOf(strategyPath, s.Type,
			v1alpha1.RollingRecreateStrategyType, v1alpha1.OnDeleteStrategyType)...)
		errs = append(errs, validateRollingRecreate(s)...)
	}
	errs = append(errs, validateWorkload(&pcs.Spec)...)

	template := &pcs.Spec.Template
	errs = append(errs, oneOf(startTypePath, *template.StartupType, v1alpha1.CliqueStartupTypeAnyOrder,
		v1alpha1.CliqueStartupTypeInOrder, v1alpha1.CliqueStartupTypeExplicit)...)
	errs = append(errs, validateDelays(&pcs.Spec)...)
	errs = append(errs, validateResourceClaims(template)...)
	errs = append(errs, validateCliques(pcs)...)
	errs = append(errs, validateGroups(&pcs.Spec)...)
	errs = append(errs, validateStartOrder(template)...)
	errs = append(errs, validateLengths(pcs)...)
	errs = append(errs, validateClashes(template)...)
	errs = append(errs, validateTreeSize(template)...)
	return append(errs, validatePods(pcs)...)
}

// validateSetName validates the name, which is part of hostnames and, with an index appended, the name of Services.
func validateSetName(pcs *v1alpha1.PodCliqueSet) field.ErrorList {
	path, name := field.NewPath("metadata", "name"), pcs.Name
	if name == "" && pcs.GenerateName != "" {
		path, name = field.NewPath("metadata", "generateName"), generatedNameExample(pcs.GenerateName)
	}
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1035Label(name) {
		errs = append(errs, field.Invalid(path, name, "is part of the names of pods, hostnames and Services: "+problem))
	}
	return errs
}

// generatedNameExample returns an example of the name that the API server generates from a generateName.
func generatedNameExample(prefix string) string { return prefix + "xxxxx" }

func validateWorkload(spec *v1alpha1.PodCliqueSetSpec) field.ErrorList {
	var errs field.ErrorList
	if spec.WorkloadType != "" {
		errs = append(errs, oneOf(specPath.Child("workloadType"), spec.WorkloadType,
			v1alpha1.WorkloadTypeInference, v1alpha1.WorkloadTypeTraining)...)
	}
	if spec.Suspend != nil && *spec.Suspend {
		errs = append(errs, field.Forbidden(specPath.Child("suspend"), "is not supported; create the PodCliqueSet when it may start, and delete it to stop it"))
	}
	training := spec.TrainingSpec
	if training == nil {
		return errs
	}
	path := specPath.Child("trainingSpec")
	if !spec.IsTraining() {
		errs = append(errs, field.Forbidden(path, "needs workloadType Training"))
	}
	if n := training.MaxRestarts; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("maxRestarts"), *n, "must not be negative"))
	}
	if n := training.TTLSecondsAfterFinished; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("ttlSecondsAfterFinished"), *n, "must not be negative; leave it out to keep the PodCliqueSet"))
	}
	if d := training.MaxRuntime; d != nil && d.Duration <= 0 {
		errs = append(errs, field.Invalid(path.Child("maxRuntime"), d.Duration.String(), "must be greater than 0; leave it out for no limit"))
	}
	return errs
}

// validateRollingRecreate validates the settings of an update strategy that apply only to RollingRecreate. A partition
// above replicas is valid: replicas may be scaled at any time.
func validateRollingRecreate(s *v1alpha1.PodCliqueSetUpdateStrategy) field.ErrorList {
	if s.RollingRecreate == nil {
		return nil
	}
	if s.Type == v1alpha1.OnDeleteStrategyType {
		return field.ErrorList{field.Forbidden(rollingPath, fmt.Sprintf("only allowed with type %s", v1alpha1.RollingRecreateStrategyType))}
	}
	if n := s.RollingRecreate.Partition; n != nil && *n < 0 {
		return field.ErrorList{field.Invalid(rollingPath.Child("partition"), *n, "must not be negative")}
	}
	return nil
}

// validateMinReadySeconds validates the minReadySeconds of a clique or scaling group at path.
func validateMinReadySeconds(path *field.Path, seconds int32) field.ErrorList {
	if seconds < 0 {
		return field.ErrorList{field.Invalid(path.Child("minReadySeconds"), seconds, "must not be negative")}
	}
	return nil
}

// validateDelays validates unreachableGrace and the terminationDelays. Unset disables gang termination; a delay is positive, for Training
// it may also be 0; a scaling group may have one only if the set has one (docs/decisions, T1).
func validateDelays(spec *v1alpha1.PodCliqueSetSpec) field.ErrorList {
	var errs field.ErrorList
	check := func(path *field.Path, d *metav1.Duration) {
		switch {
		case d == nil:
		case d.Duration < 0:
			errs = append(errs, field.Invalid(path, d.Duration.String(), "must not be negative"))
		case d.Duration == 0 && !spec.IsTraining():
			errs = append(errs, field.Invalid(path, time.Duration(0).String(), "must be greater than 0; leave it out to turn gang termination off"))
		}
	}
	check(delayPath, spec.Template.TerminationDelay)
	if grace := spec.Template.UnreachableGrace; grace != nil && grace.Duration < 0 {
		errs = append(errs, field.Invalid(templatePath.Child("unreachableGrace"), grace.Duration.String(), "must not be negative"))
	}
	for i, group := range spec.Template.PodCliqueScalingGroupConfigs {
		path := groupsPath.Index(i).Child("terminationDelay")
		check(path, group.TerminationDelay)
		if group.TerminationDelay != nil && spec.Template.TerminationDelay == nil {
			errs = append(errs, field.Forbidden(path, "needs "+delayPath.String()+", without which gang termination is off for the whole PodCliqueSet"))
		}
	}
	return errs
}

func validateResourceClaims(template *v1alpha1.PodCliqueSetTemplateSpec) field.ErrorList {
	var errs field.ErrorList
	path, seen := templatePath.Child("resourceClaimTemplates"), map[string]bool{}
	for i, claim := range template.ResourceClaimTemplates {
		if claim.Name == "" {
			errs = append(errs, field.Required(path.Index(i).Child("name"), ""))
		} else if seen[claim.Name] {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), claim.Name))
		}
		seen[claim.Name] = true
	}
	check := func(path *field.Path, sharing v1alpha1.ResourceSharing) {
		if sharing.Name == "" {
			errs = append(errs, field.Required(path.Child("name"), ""))
		}
		errs = append(errs, oneOf(path.Child("scope"), sharing.Scope,
			v1alpha1.ResourceSharingScopeAllReplicas, v1alpha1.ResourceSharingScopePerReplica)...)
	}
	for i, s := range template.ResourceSharing {
		check(templatePath.Child("resourceSharing").Index(i), s.ResourceSharing)
	}
	for i, clique := range template.Cliques {
		if clique == nil {
			continue
		}
		for k, s := range clique.ResourceSharing {
			check(cliquesPath.Index(i).Child("resourceSharing").Index(k), s)
		}
	}
	for i, group := range template.PodCliqueScalingGroupConfigs {
		for k, s := range group.ResourceSharing {
			check(groupsPath.Index(i).Child("resourceSharing").Index(k), s.ResourceSharing)
		}
	}
	return errs
}

func validateCliques(pcs *v1alpha1.PodCliqueSet) field.ErrorList {
	var errs field.ErrorList
	template := &pcs.Spec.Template
	if len(template.Cliques) == 0 {
		errs = append(errs, field.Required(cliquesPath, "at least one clique is needed"))
	}
	names, roles, groups := map[string]bool{}, map[string]string{}, scalingGroupsOfCliques(template)
	scheduler := ""
	for i, clique := range template.Cliques {
		path := cliquesPath.Index(i)
		if clique == nil {
			errs = append(errs, field.Required(path, "an empty entry"))
			continue
		}
		errs = append(errs, validateChildName(path.Child("name"), clique.Name, names)...)
		errs = append(errs, metav1validation.ValidateLabels(clique.Labels, path.Child("labels"))...)
		errs = append(errs, apivalidation.ValidateAnnotations(clique.Annotations, path.Child("annotations"))...)

		spec, path := &clique.Spec, path.Child("spec")
		if other, taken := roles[spec.RoleName]; taken && other != clique.Name {
			errs = append(errs, &field.Error{Type: field.ErrorTypeDuplicate, Field: path.Child("roleName").String(), BadValue: spec.RoleName,
				Detail: fmt.Sprintf("is the role of clique %q already; an unset roleName means the name of the clique", other)})
		}
		roles[spec.RoleName] = clique.Name
		if spec.Replicas == 0 {
			errs = append(errs, field.Invalid(path.Child("replicas"), 0,
				"must be greater than 0; leave out a clique that is not wanted, scale one that runs to 0 by its scale subresource"))
		} else {
			errs = append(errs, validateReplicas(path, spec.Replicas, spec.MinAvailable)...)
		}
		errs = append(errs, validateMinReadySeconds(path, spec.MinReadySeconds)...)
		if spec.ScaleConfig != nil {
			if group := groups[clique.Name]; group != "" {
				errs = append(errs, field.Forbidden(path.Child("autoScalingConfig"), fmt.Sprintf(
					"a clique of a scaling group scales with the group; use scaleConfig of scaling group %q", group)))
			}
			errs = append(errs, validateAutoScaling(path.Child("autoScalingConfig"), &pcs.Spec, spec.ScaleConfig, spec.Replicas, spec.MinAvailable)...)
		}
		errs = append(errs, validatePodSpec(path.Child("podSpec"), &pcs.Spec, &spec.PodSpec)...)
		switch {
		case scheduler == "":
			scheduler = spec.PodSpec.SchedulerName
		case scheduler != spec.PodSpec.SchedulerName:
			errs = append(errs, field.Invalid(path.Child("podSpec", "schedulerName"), spec.PodSpec.SchedulerName, fmt.Sprintf(
				"must be the same for all cliques, %q so far: no scheduler could admit the gang alone", scheduler)))
		}
	}
	return errs
}

// validateChildName validates a name that is part of pod names, and adds it to the seen names.
func validateChildName(path *field.Path, name string, seen map[string]bool) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	for _, problem := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, "is part of the hostnames of pods: "+problem))
	}
	if seen[name] {
		errs = append(errs, field.Duplicate(path, name))
	}
	seen[name] = true
	return errs
}

// validateReplicas validates replicas and an explicit minAvailable, of a clique or a scaling group, at path.
func validateReplicas(path *field.Path, replicas int32, minAvailable *int32) field.ErrorList {
	var errs field.ErrorList
	if replicas < 0 {
		errs = append(errs, field.Invalid(path.Child("replicas"), replicas, "must not be negative"))
	}
	switch {
	case minAvailable == nil:
	case *minAvailable < 1:
		errs = append(errs, field.Invalid(path.Child("minAvailable"), *minAvailable, "must be greater than 0"))
	case *minAvailable > replicas:
		errs = append(errs, field.Invalid(path.Child("minAvailable"), *minAvailable, fmt.Sprintf("must not be above replicas, %d", replicas)))
	}
	return errs
}

func validateAutoScaling(path *field.Path, spec *v1alpha1.PodCliqueSetSpec, config *v1alpha1.AutoScalingConfig, replicas int32, minAvailable *int32) field.ErrorList {
	if config == nil {
		return nil
	}
	var errs field.ErrorList
	if spec.IsTraining() {
		errs = append(errs, field.Forbidden(path, "replicas of a Training workload are fixed"))
	}
	least := replicas
	if config.MinReplicas != nil {
		least = *config.MinReplicas
		switch {
		case least < 1:
			errs = append(errs, field.Invalid(path.Child("minReplicas"), least, "must be greater than 0"))
		case minAvailable != nil && least < *minAvailable:
			errs = append(errs, field.Invalid(path.Child("minReplicas"), least, fmt.Sprintf("must not be below minAvailable, %d", *minAvailable)))
		}
	}
	switch {
	case config.MaxReplicas < least:
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), config.MaxReplicas, fmt.Sprintf("must not be below minReplicas, %d", least)))
	case config.MaxReplicas < replicas:
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), config.MaxReplicas, fmt.Sprintf("must not be below replicas, %d", replicas)))
	}
	return errs
}

// validatePodSpec validates the parts of a pod spec that matter to the workload. The API server validates everything
// else when it creates the pod.
func validatePodSpec(path *field.Path, spec *v1alpha1.PodCliqueSetSpec, pod *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	if len(pod.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), "at least one container is needed"))
	}
	if pod.NodeName != "" {
		errs = append(errs, field.Forbidden(path.Child("nodeName"), "the scheduler chooses the nodes; use nodeSelector or affinity"))
	}
	policy := path.Child("restartPolicy")
	errs = append(errs, oneOf(policy, pod.RestartPolicy,
		corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	if spec.IsTraining() && pod.RestartPolicy == corev1.RestartPolicyAlways {
		errs = append(errs, field.Invalid(policy, pod.RestartPolicy, "a Training workload would never complete; use Never or OnFailure"))
	}
	check := func(path *field.Path, containers []corev1.Container) {
		for i, container := range containers {
			seen := map[string]bool{}
			for k, env := range container.Env {
				name := path.Index(i).Child("env").Index(k).Child("name")
				for _, problem := range validation.IsRelaxedEnvVarName(env.Name) {
					errs = append(errs, field.Invalid(name, env.Name, problem))
				}
				if seen[env.Name] {
					errs = append(errs, field.Duplicate(name, env.Name))
				}
				seen[env.Name] = true
			}
		}
	}
	check(path.Child("initContainers"), pod.InitContainers)
	check(path.Child("containers"), pod.Containers)
	for i, container := range pod.InitContainers {
		if container.Name == v1alpha1.InitContainerName {
			errs = append(errs, field.Forbidden(path.Child("initContainers").Index(i).Child("name"), "the name is reserved for the container that waits for other cliques to start"))
		}
	}
	return errs
}

func validateGroups(spec *v1alpha1.PodCliqueSetSpec) field.ErrorList {
	template := &spec.Template
	var errs field.ErrorList
	cliques := map[string]bool{}
	for _, clique := range template.Cliques {
		if clique != nil {
			cliques[clique.Name] = true
		}
	}
	names, groupOf := map[string]bool{}, map[string]string{}
	for i, group := range template.PodCliqueScalingGroupConfigs {
		path := groupsPath.Index(i)
		errs = append(errs, validateChildName(path.Child("name"), group.Name, names)...)
		errs = append(errs, apivalidation.ValidateAnnotations(group.Annotations, path.Child("annotations"))...)
		if len(group.CliqueNames) == 0 {
			errs = append(errs, field.Required(path.Child("cliqueNames"), "at least one clique is needed"))
		}
		for k, name := range group.CliqueNames {
			path := path.Child("cliqueNames").Index(k)
			switch other, taken := groupOf[name]; {
			case !cliques[name]:
				errs = append(errs, &field.Error{Type: field.ErrorTypeNotFound, Field: path.String(), BadValue: name, Detail: "no clique of the template has this name"})
			case taken && other == group.Name:
				errs = append(errs, field.Duplicate(path, name))
			case taken:
				errs = append(errs, &field.Error{Type: field.ErrorTypeDuplicate, Field: path.String(), BadValue: name, Detail: fmt.Sprintf(
					"is in scaling group %q already, and a clique is in one at most", other)})
			}
			if _, taken := groupOf[name]; !taken {
				groupOf[name] = group.Name
			}
		}
		if *group.Replicas < 1 {
			errs = append(errs, field.Invalid(path.Child("replicas"), *group.Replicas,
				"must be greater than 0; scale a group that runs to 0 by its scale subresource"))
		} else {
			errs = append(errs, validateReplicas(path, *group.Replicas, group.MinAvailable)...)
		}
		errs = append(errs, validateMinReadySeconds(path, group.MinReadySeconds)...)
		errs = append(errs, validateAutoScaling(path.Child("scaleConfig"), spec, group.ScaleConfig, *group.Replicas, group.MinAvailable)...)
	}
	return errs
}

// scalingGroupsOfCliques returns the names of the scaling groups by the names of their cliques. A clique that belongs to several
// groups, which is an error, is mapped to the first.
func scalingGroupsOfCliques(template *v1alpha1.PodCliqueSetTemplateSpec) map[string]string {
	groups := map[string]string{}
	for _, group := range template.PodCliqueScalingGroupConfigs {
		for _, clique := range group.CliqueNames {
			if _, taken := groups[clique]; !taken {
				groups[clique] = group.Name
			}
		}
	}
	return groups
}

func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// quotedList returns names as "a, b, c", quoted.
func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted, ", ")
}
