// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
)

// Labels of the PodGroups that are made for workloads.
const (
	LabelManagedBy      = "app.kubernetes.io/managed-by"
	LabelManagedByValue = "muster-controller"
)

// RefusedError says in words why a workload has no PodGroup although its marks ask for one.
type RefusedError struct{ text string }

func (e *RefusedError) Error() string { return e.text }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// all is the value of scheduling.run.ai/min-member for as many pods as the workload has.
const all = "all"

// PodGroups returns the PodGroups of the gangs of a workload, sorted by name. None without an error: it needs none,
// because nothing asks for it, its pods name another one, or it has no pods now. The error is a *RefusedError if a user
// has to decide. Source: docs/decisions, W13.
func (k Kind) PodGroups(object *unstructured.Unstructured) ([]*v2alpha2.PodGroup, error) {
	return k.PodGroupsIn(object, nil)
}

// PodGroupsIn is PodGroups of an object that may be in a tree with others of its namespace. nil: there are no others.
func (k Kind) PodGroupsIn(object *unstructured.Unstructured, in *NativeGroups) ([]*v2alpha2.PodGroup, error) {
	var gangs map[string]v2alpha2.PodGroupSpec
	var err error
	if k.IsNative() {
		gangs, err = gangOfNative(object, in)
	} else {
		gangs, err = k.gangs(object)
	}
	if err != nil {
		return nil, err
	}
	var annotations map[string]string
	if seconds, set, _ := unstructured.NestedInt64(object.Object, "spec", "activeDeadlineSeconds"); set && k.GroupVersionKind == jobKind {
		annotations = map[string]string{v2alpha2.MaxRuntimeAnnotation: fmt.Sprintf("%ds", seconds)} // the Job controller ends its pods then
	}
	groups := make([]*v2alpha2.PodGroup, 0, len(gangs))
	for _, name := range slices.Sorted(maps.Keys(gangs)) {
		spec := gangs[name]
		if err := obeyKAI(&spec, object.GetLabels(), object.GetAnnotations()); err != nil {
			return nil, err
		}
		groups = append(groups, &v2alpha2.PodGroup{
			TypeMeta: metav1.TypeMeta{APIVersion: v2alpha2.SchemeGroupVersion.String(), Kind: PodGroupKind},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: object.GetNamespace(), Name: name, Labels: map[string]string{LabelManagedBy: LabelManagedByValue}, Annotations: annotations,
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: object.GetAPIVersion(), Kind: k.Kind, Name: object.GetName(), UID: object.GetUID(), Controller: ptr.To(true)}},
			},
			Spec: spec,
		})
	}
	return groups, nil
}

// oneGang returns a function for Kind.gangs: the pods of a workload are one gang, if a mark says so.
func oneGang(read func(*unstructured.Unstructured) (plan, error)) func(*unstructured.Unstructured) (map[string]v2alpha2.PodGroupSpec, error) {
	return func(object *unstructured.Unstructured) (map[string]v2alpha2.PodGroupSpec, error) {
		p, err := read(object)
		if err != nil {
			return nil, err
		}
		labels, annotations := p.template.Labels, p.template.Annotations
		if !p.template.isGrouped() || membership.IsOfASet(labels) {
			return nil, nil
		}
		marked := membership.MinimumIn(labels, annotations)
		if err := checkObject(object, marked); err != nil || marked.Value == "" {
			return nil, err
		}
		if p.asksNative {
			return nil, refuse("spec.scheduling and %s of the pod template both say which pods start together: its pods wait; recreate it with one of the two", marked.Place)
		}
		minimum, err := podsOf(marked, p.pods)
		if err != nil || p.pods <= 0 {
			return nil, err
		}
		spec := v2alpha2.PodGroupSpec{MinMember: &minimum, PriorityClassName: p.template.Spec.PriorityClassName}
		if err := obeyKAI(&spec, labels, annotations); err != nil {
			return nil, err
		}
		name := membership.Workload{Kind: object.GetKind(), Name: object.GetName(), UID: object.GetUID()}.GroupName()
		return map[string]v2alpha2.PodGroupSpec{name: spec}, nil
	}
}

// checkObject refuses marks on the workload itself that its pods, whose template has the marks in, do not have.
func checkObject(object *unstructured.Unstructured, in ...membership.Minimum) error {
	const advice = "pods have the marks of their template: write it there"
	if membership.OptsOut(object.GetLabels(), object.GetAnnotations()) {
		return refuse("%s is on the %s itself, and its %s", v2alpha2.GangKey, object.GetKind(), advice)
	}
	own := membership.MinimumIn(object.GetLabels(), object.GetAnnotations())
	if own.Value != "" && !slices.ContainsFunc(in, func(m membership.Minimum) bool { return m.Value == own.Value }) {
		return refuse("%s is on the %s itself, and its %s", own.Place, object.GetKind(), advice)
	}
	return nil
}

// isGrouped reports whether the PodGroups of the template's pods are made for them: they name none, do not opt out, and
// a scheduler of Muster may schedule them.
func (t template) isGrouped() bool {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations}}
	pod.Spec.SchedulingGroup = t.Spec.SchedulingGroup
	return t.isOurs() && !membership.NamesGroup(pod) && !membership.OptsOut(pod.Labels, pod.Annotations)
}

// podsOf returns the number of pods that a mark asks for, of a workload with so many.
func podsOf(marked membership.Minimum, pods int32) (int32, error) {
	if marked.Other != "" {
		return 0, refuse("%s of the pod template is %q, and %s %q: its pods wait; write one of the two",
			marked.Place, message.Truncate(marked.Value, maxShown), marked.OtherPlace, message.Truncate(marked.Other, maxShown))
	}
	if marked.Value == all {
		return pods, nil
	}
	n, err := strconv.ParseInt(marked.Value, 10, 32)
	if err != nil || n < 1 {
		return 0, refuse("%s of the pod template is %q: its pods wait; write %q or a number from 1", marked.Place, message.Truncate(marked.Value, maxShown), all)
	}
	return int32(n), nil
}

// maxShown is the maximum length of a value in a message.
const maxShown = 63
