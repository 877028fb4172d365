// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// rule says which pods a kind of a site's own consists of. Its expressions are CEL, with the workload as object.
type rule struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Suspended is an expression: whether the workload has no pods now. "": never.
	Suspended string `json:"suspended,omitempty"`
	// Pods are those of one template each.
	Pods []struct {
		// Template is an expression: the pod template; an empty optional if the workload has none.
		Template string `json:"template"`
		// Replicas is an expression: the number of pods that the controller makes of it.
		Replicas string `json:"replicas"`
		// Minimum is an expression: the number of them that must start together. "": all.
		Minimum string `json:"minimum,omitempty"`
	} `json:"pods"`
}

// program is a compiled rule.
type program struct {
	kind      string
	suspended cel.Program // nil: never
	pods      []struct{ template, replicas, minimum cel.Program }
}

// maxCost is the maximum cost of an expression: that of some thousand fields, which takes milliseconds.
const maxCost = 100_000

// ParseRules returns the kinds of a file of rules. The error names all that is wrong with it.
func ParseRules(file []byte) ([]Kind, error) {
	var rules struct {
		Kinds []rule `json:"kinds"`
	}
	if err := yaml.UnmarshalStrict(file, &rules); err != nil {
		return nil, fmt.Errorf("reading the rules: %w", err)
	}
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.OptionalTypes())
	if err != nil {
		return nil, fmt.Errorf("making an environment for expressions: %w", err)
	}
	var out []Kind
	var errs []error
	for i, r := range rules.Kinds {
		refuse := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("kinds[%d]"+format, append([]any{i}, args...)...))
		}
		compile := func(field, expression string, result *cel.Type) cel.Program {
			ast, issues := env.Compile(expression)
			if issues.Err() != nil {
				refuse(".%s: %w", field, issues.Err())
				return nil
			}
			if is := ast.OutputType(); !result.IsAssignableType(is) && !is.IsExactType(cel.DynType) && !is.IsExactType(cel.OptionalType(cel.DynType)) {
				refuse(".%s: is of type %s, must be %s", field, is, result)
				return nil
			}
			compiled, err := env.Program(ast, cel.CostLimit(maxCost))
			if err != nil {
				refuse(".%s: %w", field, err)
			}
			return compiled
		}
		gv, err := schema.ParseGroupVersion(r.APIVersion)
		kind := Kind{GroupVersionKind: gv.WithKind(r.Kind)}
		switch named := func(k Kind) bool { return k.Kind == r.Kind }; {
		case err != nil || gv.Version == "" || r.Kind == "":
			refuse(": needs an apiVersion and a kind, has %q and %q", r.APIVersion, r.Kind)
		case slices.ContainsFunc(kinds, named) || slices.ContainsFunc(out, named):
			refuse(": there is a rule for a kind of the name %q already", r.Kind)
		}
		p := &program{kind: r.Kind}
		if r.Suspended != "" {
			p.suspended = compile("suspended", r.Suspended, cel.BoolType)
		}
		if len(r.Pods) == 0 {
			refuse(".pods: is empty")
		}
		for j, of := range r.Pods {
			field := fmt.Sprintf("pods[%d].", j)
			pods := struct{ template, replicas, minimum cel.Program }{
				template: compile(field+"template", of.Template, cel.MapType(cel.StringType, cel.DynType)), replicas: compile(field+"replicas", of.Replicas, cel.IntType)}
			if of.Minimum != "" {
				pods.minimum = compile(field+"minimum", of.Minimum, cel.IntType)
			}
			p.pods = append(p.pods, pods)
		}
		kind.gangs = p.gangs
		out = append(out, kind)
	}
	return out, errors.Join(errs...)
}

// value evaluates an expression of a rule; nil: it is an empty optional.
func (p *program) value(expression cel.Program, what string, object *unstructured.Unstructured) (any, error) {
	value, _, err := expression.Eval(map[string]any{"object": object.Object})
	if err != nil {
		return nil, refuse("the rule for %s cannot be evaluated, %s: %s: its pods wait", p.kind, what, message.Truncate(err.Error(), message.MaxCondition/2))
	}
	if optional, is := value.(*types.Optional); is {
		if !optional.HasValue() {
			return nil, nil
		}
		value = optional.GetValue()
	}
	return plain(value), nil
}

// plain returns a value of CEL as a decoder of JSON would: maps that an expression itself writes are of CEL's own
// types.
func plain(value ref.Val) any {
	m, is := value.(traits.Mapper)
	if !is {
		return value.Value()
	}
	fields := map[string]any{}
	for keys := m.Iterator(); keys.HasNext() == types.True; {
		key := keys.Next()
		fields[fmt.Sprint(key.Value())] = plain(m.Get(key))
	}
	return fields
}

// number evaluates an expression whose value is a number of pods.
func (p *program) number(expression cel.Program, what string, object *unstructured.Unstructured) (int32, error) {
	value, err := p.value(expression, what, object)
	n, is := value.(int64)
	if err == nil && (!is || n < 0 || n > 1<<31-1) {
		err = refuse("the rule for %s gives %v for %s, which is no number of pods: its pods wait", p.kind, value, what)
	}
	return int32(n), err
}

// gangs returns the gang of a workload: its pods of all templates with a mark. If there are several templates, each is
// a leaf, which its pods name.
func (p *program) gangs(object *unstructured.Unstructured) (map[string]v2alpha2.PodGroupSpec, error) {
	if p.suspended != nil {
		if suspended, err := p.value(p.suspended, "suspended", object); err != nil || suspended == true {
			return nil, err
		}
	}
	spec := v2alpha2.PodGroupSpec{}
	var marked []membership.Minimum
	for i, of := range p.pods {
		value, err := p.value(of.template, fmt.Sprintf("pods[%d].template", i), object)
		if err != nil {
			return nil, err
		}
		fields, is := value.(map[string]any)
		if value != nil && !is {
			return nil, refuse("the rule for %s gives no pod template for pods[%d].template: its pods wait", p.kind, i)
		}
		var t template
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &t); err != nil {
			return nil, fmt.Errorf("reading a template of %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		m := membership.MinimumIn(t.Labels, t.Annotations)
		if value == nil || m.Value == "" || !t.isGrouped() {
			continue
		}
		minimum, err := p.number(of.replicas, fmt.Sprintf("pods[%d].replicas", i), object)
		if err != nil {
			return nil, err
		}
		if minimum == 0 {
			continue
		}
		if of.minimum != nil {
			if minimum, err = p.number(of.minimum, fmt.Sprintf("pods[%d].minimum", i), object); err != nil {
				return nil, err
			}
		}
		if minimum, err = podsOf(m, minimum); err != nil {
			return nil, err
		}
		marked = append(marked, m)
		spec.PriorityClassName = cmp.Or(spec.PriorityClassName, t.Spec.PriorityClassName)
		leaf := t.Labels[v2alpha2.SubGroupLabel]
		if slices.ContainsFunc(spec.SubGroups, func(s v2alpha2.SubGroup) bool { return s.Name == leaf }) {
			return nil, refuse("two of its pod templates have the same label %s, %q, or none: its pods wait; write another one on each", v2alpha2.SubGroupLabel, message.Truncate(leaf, maxShown))
		}
		spec.SubGroups = append(spec.SubGroups, v2alpha2.SubGroup{Name: leaf, MinMember: ptr.To(minimum)})
	}
	if err := checkObject(object, marked...); err != nil || len(spec.SubGroups) == 0 {
		return nil, err
	}
	if first := spec.SubGroups[0]; len(spec.SubGroups) == 1 {
		spec.MinMember, spec.SubGroups = first.MinMember, nil
	} else {
		spec.MinSubGroup = ptr.To(int32(len(spec.SubGroups)))
	}
	name := membership.Workload{Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID()}.GroupName()
	return map[string]v2alpha2.PodGroupSpec{name: spec}, nil
}
