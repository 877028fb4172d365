// SPDX-License-Identifier: Apache-2.0

package wrappers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// PodGroupWrapper builds a PodGroup.
type PodGroupWrapper struct{ pg v2alpha2.PodGroup }

// MakePodGroup returns a builder of a PodGroup with an empty spec: a gang of one pod.
func MakePodGroup(name, namespace string) *PodGroupWrapper {
	return &PodGroupWrapper{v2alpha2.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: v2alpha2.SchemeGroupVersion.String(), Kind: "PodGroup"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
	}}
}

// Obj returns a copy of the PodGroup built so far.
func (w *PodGroupWrapper) Obj() *v2alpha2.PodGroup { return w.pg.DeepCopy() }

// UID sets metadata.uid.
func (w *PodGroupWrapper) UID(uid string) *PodGroupWrapper {
	w.pg.UID = types.UID(uid)
	return w
}

// Generation sets metadata.generation.
func (w *PodGroupWrapper) Generation(generation int64) *PodGroupWrapper {
	w.pg.Generation = generation
	return w
}

// CreationTimestamp sets metadata.creationTimestamp.
func (w *PodGroupWrapper) CreationTimestamp(t time.Time) *PodGroupWrapper {
	w.pg.CreationTimestamp = metav1.NewTime(t)
	return w
}

// Terminating sets a deletion timestamp, and the finalizer that such an object needs.
func (w *PodGroupWrapper) Terminating() *PodGroupWrapper {
	now := metav1.Now()
	w.pg.DeletionTimestamp = &now
	w.pg.Finalizers = append(w.pg.Finalizers, "test/hold")
	return w
}

// Label sets one label.
func (w *PodGroupWrapper) Label(key, value string) *PodGroupWrapper {
	w.pg.Labels = with(w.pg.Labels, key, value)
	return w
}

// Annotation sets one annotation.
func (w *PodGroupWrapper) Annotation(key, value string) *PodGroupWrapper {
	w.pg.Annotations = with(w.pg.Annotations, key, value)
	return w
}

// Controller sets the owner that controls the PodGroup.
func (w *PodGroupWrapper) Controller(kind, name, uid string) *PodGroupWrapper {
	yes := true
	w.pg.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "grove.io/v1alpha1", Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes, BlockOwnerDeletion: &yes}}
	return w
}

// ControllerVersion sets the apiVersion of the controller set before.
func (w *PodGroupWrapper) ControllerVersion(version string) *PodGroupWrapper {
	w.pg.OwnerReferences[0].APIVersion = version
	return w
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

// with returns m with one more entry; m may be nil.
func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
