// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/naming"
)

// validateLengths validates that the names fit into hostnames, which are composed of the names of the set, the scaling
// group and the clique, and of indices. The API server would reject a pod whose hostname is too long. The limit leaves
// room for the indices of as many pods as validatePods allows.
func validateLengths(pcs *v1alpha1.PodCliqueSet) field.ErrorList {
	set := pcs.Name
	if set == "" && pcs.GenerateName != "" {
		set = generatedNameExample(pcs.GenerateName)
	}
	var errs field.ErrorList
	groups := scalingGroupsOfCliques(&pcs.Spec.Template)
	for i, clique := range pcs.Spec.Template.Cliques {
		if clique == nil {
			continue
		}
		group := groups[clique.Name]
		excess := naming.ExcessLength(set, group, clique.Name)
		if excess == 0 {
			continue
		}
		of := fmt.Sprintf("the names of the set (%q, %d characters) and of the clique (%d)", set, len(set), len(clique.Name))
		if group != "" {
			of = fmt.Sprintf("the names of the set (%q, %d characters), of the scaling group (%q, %d) and of the clique (%d)", set, len(set), group, len(group), len(clique.Name))
		}
		errs = append(errs, field.Invalid(cliquesPath.Index(i).Child("name"), clique.Name, fmt.Sprintf(
			"%s may have %d characters together, and have %d: with indices they make the hostnames of pods, which have %d at most; shorten them by %d",
			of, naming.MaxCombinedLength, naming.MaxCombinedLength+excess, naming.MaxLength, excess)))
	}
	return errs
}

// child describes one kind of child object of a replica of a set.
type child struct {
	path *field.Path // of the name in the template, for errors
	name string      // the name in the template
	what string      // description for error messages
	// segments are the parts, split at the dashes, of the object's name after "<set>-<i>-". The constant index stands
	// for the index of a scaling group's replica.
	segments []string
}

// index cannot be a segment of any name, because it is not a valid character of a DNS label.
const index = "#"

// validateClashes rejects names that would give two children of a replica the same name at any number of replicas of
// the scaling groups. The children are standalone cliques, scaling groups, replicas of scaling groups (nodes of the
// PodGroup's tree) and the cliques of such replicas. It also rejects a clique and a scaling group with the same name,
// which could not be distinguished.
//
// An index stands between dashes. Two names can therefore be equal if and only if their segments can be equal one by
// one.
func validateClashes(template *v1alpha1.PodCliqueSetTemplateSpec) field.ErrorList {
	var children []child
	add := func(path *field.Path, name, what string, object ...string) {
		children = append(children, child{path.Child("name"), name, what, strings.Split(strings.Join(object, "-"), "-")})
	}
	var errs field.ErrorList
	groups := scalingGroupsOfCliques(template)
	for i, clique := range template.Cliques {
		switch {
		case clique == nil || clique.Name == "":
		case template.ScalingGroup(clique.Name) != nil:
			errs = append(errs, field.Invalid(cliquesPath.Index(i).Child("name"), clique.Name, "is the name of a scaling group too; rename one"))
		case groups[clique.Name] == "":
			add(cliquesPath.Index(i), clique.Name, fmt.Sprintf("clique %q", clique.Name), clique.Name)
		}
	}
	for i, group := range template.PodCliqueScalingGroupConfigs {
		path := groupsPath.Index(i)
		add(path, group.Name, fmt.Sprintf("scaling group %q", group.Name), group.Name)
		add(path, group.Name, fmt.Sprintf("a replica of scaling group %q", group.Name), group.Name, index)
		for _, clique := range group.CliqueNames {
			if groups[clique] != group.Name { // also in another group, which is reported separately
				continue
			}
			add(path, group.Name, fmt.Sprintf("clique %q of scaling group %q", clique, group.Name), group.Name, index, clique)
		}
	}

	resembling := map[string][]child{} // by name without numbers: only children with the same key can have the same name
	reported := map[string]bool{}      // by path: one error for a name is enough
	for _, c := range children {
		key := withoutNumbers(c.segments)
		for _, other := range resembling[key] {
			name, same := commonName(c.segments, other.segments)
			if !same || other.name == c.name || reported[c.path.String()] { // duplicate names are reported separately
				continue
			}
			reported[c.path.String()] = true
			errs = append(errs, field.Invalid(c.path, c.name, fmt.Sprintf(
				"%s and %s would have the same name, \"<set>-<index>-%s\"; rename one", c.what, other.what, name)))
		}
		resembling[key] = append(resembling[key], c)
	}
	return errs
}

func withoutNumbers(segments []string) string {
	segments = slices.Clone(segments)
	for i := range segments {
		if isReplicaIndex(segments[i]) {
			segments[i] = index
		}
	}
	return strings.Join(segments, "-")
}

// commonName returns a name that both can have, and whether there is one.
func commonName(a, b []string) (string, bool) {
	if len(a) != len(b) {
		return "", false
	}
	segments := make([]string, len(a))
	for i := range a {
		switch {
		case a[i] == index && b[i] == index:
			segments[i] = "0"
		case a[i] == b[i], a[i] == index && isReplicaIndex(b[i]):
			segments[i] = b[i]
		case b[i] == index && isReplicaIndex(a[i]):
			segments[i] = a[i]
		default:
			return "", false
		}
	}
	return strings.Join(segments, "-"), true
}

// isReplicaIndex reports whether a segment is, or stands for, an index that a replica of a scaling group can have.
func isReplicaIndex(segment string) bool {
	if segment == index {
		return true
	}
	n, err := strconv.Atoi(segment)
	return err == nil && n >= 0 && n < v2alpha2.MaxSubGroups && strconv.Itoa(n) == segment
}

// validateTreeSize validates the number of sub-groups of the PodGroup of each replica of the set.
func validateTreeSize(template *v1alpha1.PodCliqueSetTemplateSpec) field.ErrorList {
	size := treeSize(template, func(config *v1alpha1.PodCliqueScalingGroupConfig) int32 {
		if config.ScaleConfig == nil {
			return *config.Replicas
		}
		return max(*config.Replicas, config.ScaleConfig.MaxReplicas)
	})
	if size <= v2alpha2.MaxSubGroups {
		return nil
	}
	return field.ErrorList{field.Invalid(groupsPath, int(min(size, 1<<31-1)), tooLargeError("with replicas, or maxReplicas where there are more,", size))}
}

func tooLargeError(when string, size int64) string {
	return fmt.Sprintf("%s a replica of the PodCliqueSet would be a PodGroup of %d sub-groups, %d at most: one for each standalone clique, scaling group, replica of one, and clique of such a replica; use fewer replicas of scaling groups, and more of the PodCliqueSet",
		when, size, v2alpha2.MaxSubGroups)
}

// treeSize returns the number of sub-groups of the PodGroup of one replica, given
// the replicas of each scaling group.
func treeSize(template *v1alpha1.PodCliqueSetTemplateSpec, replicas func(*v1alpha1.PodCliqueScalingGroupConfig) int32) int64 {
	size, groups := int64(0), scalingGroupsOfCliques(template)
	for _, clique := range template.Cliques {
		if clique != nil && groups[clique.Name] == "" {
			size++
		}
	}
	for i := range template.PodCliqueScalingGroupConfigs {
		config := &template.PodCliqueScalingGroupConfigs[i]
		size += 1 + int64(max(replicas(config), 0))*int64(1+len(config.CliqueNames))
	}
	return size
}

// validatePods rejects numbers of replicas that no cluster could run. Such numbers are typing errors, and the creation
// of so many pods would overload the API server.
func validatePods(pcs *v1alpha1.PodCliqueSet) field.ErrorList {
	pods := countTemplatePods(&pcs.Spec)
	if pods <= v1alpha1.MaxPods {
		return nil
	}
	return field.ErrorList{field.Invalid(replicasPath, pcs.Spec.Replicas, tooManyError(pods))}
}

func tooManyError(pods float64) string {
	return fmt.Sprintf("the PodCliqueSet would have %.0f pods, %d at most: a cluster of Kubernetes runs no more; use fewer replicas", pods, v1alpha1.MaxPods)
}

// countTemplatePods returns the number of pods of a PodCliqueSet according to its template. It is a float64 because the product of
// the three kinds of replicas can exceed every integer type.
func countTemplatePods(spec *v1alpha1.PodCliqueSetSpec) float64 {
	replicas := map[string]float64{} // of scaling groups by clique; 1 for standalone cliques
	for i := range spec.Template.PodCliqueScalingGroupConfigs {
		replicas[spec.Template.PodCliqueScalingGroupConfigs[i].Name] = float64(*spec.Template.PodCliqueScalingGroupConfigs[i].Replicas)
	}
	pods, groups := 0.0, scalingGroupsOfCliques(&spec.Template)
	for _, clique := range spec.Template.Cliques {
		if clique == nil {
			continue
		}
		times := 1.0
		if group := groups[clique.Name]; group != "" {
			times = replicas[group]
		}
		pods += max(times, 0) * float64(max(clique.Spec.Replicas, 0))
	}
	return pods * float64(max(spec.Replicas, 0))
}
