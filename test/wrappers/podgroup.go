// SPDX-License-Identifier: Apache-2.0

package wrappers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// PodGroupWrapper builds a PodGroup.
type PodGroupWrapper struct {
	object[*PodGroupWrapper]
	pg v2alpha2.PodGroup
}

// MakePodGroup returns a builder of a PodGroup with an empty spec: a gang of one pod.
func MakePodGroup(name, namespace string) *PodGroupWrapper {
	w := &PodGroupWrapper{pg: v2alpha2.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: v2alpha2.SchemeGroupVersion.String(), Kind: "PodGroup"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
	}}
	w.object = object[*PodGroupWrapper]{w, &w.pg.ObjectMeta}
	return w
}

// Obj returns a copy of the PodGroup built so far.
func (w *PodGroupWrapper) Obj() *v2alpha2.PodGroup { return w.pg.DeepCopy() }

// Controller sets the owner that controls the PodGroup.
func (w *PodGroupWrapper) Controller(kind, name, uid string) *PodGroupWrapper {
	return w.controller("grove.io/v1alpha1", kind, name, uid)
}

// MinMember sets spec.minMember.
func (w *PodGroupWrapper) MinMember(n int32) *PodGroupWrapper {
	w.pg.Spec.MinMember = &n
	return w
}

// MinSubGroup sets spec.minSubGroup.
func (w *PodGroupWrapper) MinSubGroup(n int32) *PodGroupWrapper {
	w.pg.Spec.MinSubGroup = &n
	return w
}

// Priority sets spec.priorityClassName.
func (w *PodGroupWrapper) Priority(className string) *PodGroupWrapper {
	w.pg.Spec.PriorityClassName = className
	return w
}

// MarkUnschedulable sets spec.markUnschedulable.
func (w *PodGroupWrapper) MarkUnschedulable(mark bool) *PodGroupWrapper {
	w.pg.Spec.MarkUnschedulable = &mark
	return w
}

// SubGroup appends a leaf that is a direct child of the PodGroup.
func (w *PodGroupWrapper) SubGroup(name string, minMember int32) *PodGroupWrapper {
	return w.Append(v2alpha2.SubGroup{Name: name, MinMember: &minMember})
}

// SubGroupOf appends a leaf below parent, which may be appended later.
func (w *PodGroupWrapper) SubGroupOf(parent, name string, minMember int32) *PodGroupWrapper {
	return w.Append(v2alpha2.SubGroup{Name: name, Parent: &parent, MinMember: &minMember})
}

// Inner appends a sub-group with children. parent "" is the PodGroup;
// minSubGroup 0 leaves the field unset: all children.
func (w *PodGroupWrapper) Inner(parent, name string, minSubGroup int32) *PodGroupWrapper {
	sg := v2alpha2.SubGroup{Name: name}
	if parent != "" {
		sg.Parent = &parent
	}
	if minSubGroup != 0 {
		sg.MinSubGroup = &minSubGroup
	}
	return w.Append(sg)
}

// Append appends a sub-group unmodified.
func (w *PodGroupWrapper) Append(sg v2alpha2.SubGroup) *PodGroupWrapper {
	w.pg.Spec.SubGroups = append(w.pg.Spec.SubGroups, sg)
	return w
}

// Spec edits the spec, for fields without a method of their own.
func (w *PodGroupWrapper) Spec(edit func(*v2alpha2.PodGroupSpec)) *PodGroupWrapper {
	edit(&w.pg.Spec)
	return w
}

// Condition appends a condition of the status.
func (w *PodGroupWrapper) Condition(conditionType string, status metav1.ConditionStatus, reason v2alpha2.Reason, message string) *PodGroupWrapper {
	w.pg.Status.Conditions = append(w.pg.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: string(reason), Message: message})
	return w
}
