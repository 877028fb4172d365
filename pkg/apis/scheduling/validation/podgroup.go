// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
)

// ValidatePodGroup returns every error of a PodGroup, none for a valid one, and warnings about fields that are
// accepted but do not have the effect they promise.
func ValidatePodGroup(pg *v2alpha2.PodGroup) (field.ErrorList, []string) {
	tree, errs, warnings := validateSpec(&pg.Spec)
	if tree != nil && pg.Annotations[v2alpha2.TopologyLevelsAnnotation] == "" {
		warnings = append(warnings, unorderedLevels(&pg.Spec)...)
	}
	return errs, warnings
}

// ValidatePodGroupUpdate returns what ValidatePodGroup returns for the new object: no field is immutable. An update
// that leaves the spec alone, or of a terminating object, always passes without warnings, so that finalizers, labels
// and status can be written even if the spec is invalid.
func ValidatePodGroupUpdate(pg, old *v2alpha2.PodGroup) (field.ErrorList, []string) {
	if pg.DeletionTimestamp != nil || equality.Semantic.DeepEqual(pg.Spec, old.Spec) {
		return nil, nil
	}
	return ValidatePodGroup(pg)
}

// BuildTree returns the tree of a spec, and the errors that ValidatePodGroup returns for it. The tree is nil if and only if
// there are errors.
func BuildTree(spec *v2alpha2.PodGroupSpec) (*gang.Tree, field.ErrorList) {
	tree, errs, _ := validateSpec(spec)
	return tree, errs
}

func validateSpec(spec *v2alpha2.PodGroupSpec) (*gang.Tree, field.ErrorList, []string) {
	path := field.NewPath("spec")
	tree, errs := validateTree(spec, path)
	errs = append(errs, validatePreemptibility(spec.Preemptibility, path.Child("preemptibility"))...)
	errs = append(errs, validateLevels(spec)...)
	if len(errs) > 0 {
		tree = nil
	}
	return tree, errs, fieldWarnings(spec, tree)
}

// validateTree validates subGroups, minMember and minSubGroup.
func validateTree(spec *v2alpha2.PodGroupSpec, path *field.Path) (*gang.Tree, field.ErrorList) {
	root := gang.Node{MinMember: spec.MinMember, MinSubGroup: spec.MinSubGroup}
	groups := make([]gang.Node, len(spec.SubGroups))
	var errs field.ErrorList
	for i, sg := range spec.SubGroups {
		groups[i] = gang.Node{Name: sg.Name, MinMember: sg.MinMember, MinSubGroup: sg.MinSubGroup}
		if sg.Parent == nil {
			continue
		}
		if *sg.Parent == "" { // package gang uses "" for the root
			errs = append(errs, field.Invalid(path.Child("subGroups").Index(i).Child("parent"), "",
				"must not be empty; leave it out for a direct child of the PodGroup"))
		}
		groups[i].Parent = *sg.Parent
	}

	tree, err := gang.Build(root, groups)
	var structure *gang.StructureError
	switch {
	case errors.As(err, &structure):
		for _, p := range structure.Problems {
			errs = append(errs, fieldError(p, spec, path))
		}
	case err != nil:
		errs = append(errs, field.InternalError(path, err))
	}
	return tree, errs
}

// fieldError converts a problem of the tree to an error of a field.
func fieldError(p gang.Problem, spec *v2alpha2.PodGroupSpec, path *field.Path) *field.Error {
	minMember, minSubGroup := spec.MinMember, spec.MinSubGroup
	var name string
	var parent *string
	if p.Index >= 0 {
		sg := &spec.SubGroups[p.Index]
		path = path.Child("subGroups").Index(p.Index)
		minMember, minSubGroup, name, parent = sg.MinMember, sg.MinSubGroup, sg.Name, sg.Parent
	}
	path = path.Child(p.Field)

	var value any
	switch p.Field {
	case gang.FieldMinMember:
		value = valueOrNil(minMember)
	case gang.FieldMinSubGroup:
		value = valueOrNil(minSubGroup)
	case gang.FieldName:
		value = name
	case gang.FieldParent:
		value = valueOrNil(parent)
	}

	switch p.Kind {
	case gang.MinMemberRequired:
		return field.Required(path, p.Detail)
	case gang.BothMinimums, gang.MinMemberOnInner, gang.MinSubGroupOnLeaf:
		return field.Forbidden(path, p.Detail)
	case gang.TooManyGroups:
		return field.TooMany(path, len(spec.SubGroups), gang.MaxGroups)
	case gang.DuplicateName:
		return &field.Error{Type: field.ErrorTypeDuplicate, Field: path.String(), BadValue: value, Detail: p.Detail}
	case gang.UnknownParent:
		return &field.Error{Type: field.ErrorTypeNotFound, Field: path.String(), BadValue: value, Detail: p.Detail}
	default:
		return field.Invalid(path, value, p.Detail)
	}
}

// valueOrNil returns the value that p points to, nil for nil.
func valueOrNil[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func validatePreemptibility(p v2alpha2.Preemptibility, path *field.Path) field.ErrorList {
	switch p {
	case "", v2alpha2.Preemptible, v2alpha2.NonPreemptible, v2alpha2.SemiPreemptible:
		return nil
	}
	return field.ErrorList{field.NotSupported(path, p, []v2alpha2.Preemptibility{
		v2alpha2.Preemptible, v2alpha2.NonPreemptible, v2alpha2.SemiPreemptible})}
}

// fieldWarnings returns warnings about fields that are accepted but have no effect. tree is nil for an invalid spec.
func fieldWarnings(spec *v2alpha2.PodGroupSpec, tree *gang.Tree) []string {
	var out []string
	warn := func(text string) { out = append(out, text) }

	if tree != nil && len(spec.SubGroups) > 0 && spec.MinMember != nil && *spec.MinMember > 0 {
		out = append(out, oldFormWarnings(int(*spec.MinMember), tree)...)
	}
	if spec.Queue != "" {
		warn("spec.queue: stored, but has no effect: there are no queues with quota")
	}
	if spec.SchedulingBackoff != nil {
		warn("spec.schedulingBackoff: stored, but has no effect: a waiting gang is tried again when something that could help has changed")
	}
	if spec.BackoffLimit != nil {
		warn("spec.backoffLimit: stored, but has no effect: pods are retried by the controller that creates them")
	}
	if spec.Completions != nil {
		warn("spec.completions: stored, but has no effect: minMember or minSubGroup define what the gang needs, and the controller of the pods counts those that succeed")
	}
	if spec.Parallelism != nil {
		warn("spec.parallelism: stored, but has no effect: the controller of the pods decides how many there are")
	}
	if spec.StalenessGracePeriod != nil {
		warn("spec.stalenessGracePeriod: stored, but has no effect: the scheduler never ends a gang because it fell below its minimum")
	}
	return append(out, levelsWithoutEffect(spec)...)
}

// oldFormWarnings returns warnings about root minMember beside subGroups (docs/decisions, G3): all children are
// required, and minMember itself is not enforced.
func oldFormWarnings(minMember int, tree *gang.Tree) []string {
	out := []string{fmt.Sprintf(
		"spec.minMember: beside subGroups this is the old form and means that all %d direct children are required (%d pods); leave it out, or use minSubGroup",
		len(tree.Root().Children()), tree.MinPods())}
	leaves := 0
	for _, leaf := range tree.Leaves() {
		leaves += leaf.Min()
	}
	switch {
	case minMember > leaves:
		out = append(out, fmt.Sprintf("spec.minMember: %d is not enforced: it is above the sum of the leaves, %d pods", minMember, leaves))
	case minMember > tree.MinPods():
		out = append(out, fmt.Sprintf("spec.minMember: %d is not enforced: the tree is satisfied with %d pods", minMember, tree.MinPods()))
	}
	return out
}

// CombineErrors combines the errors into one error for messages, nil for none. It contains the first few errors and the number
// of the others.
func CombineErrors(errs field.ErrorList) error {
	const shown = 3
	if len(errs) == 0 {
		return nil
	}
	var b strings.Builder
	for i, e := range errs {
		if i == shown {
			fmt.Fprintf(&b, "; and %d more", len(errs)-shown)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(e.Error())
	}
	return errors.New(b.String())
}
