// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"maps"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/naming"
)

// Object is an API object that muster-controller creates for a workload.
type Object interface {
	metav1.Object
	runtime.Object
}

// Updated returns the desired state of an existing object, and whether it differs from the current one. An object that
// follows a later revision of the set than want does is left unchanged, because the caller observes an older set. live
// is not modified; the result is a copy of it, with its resourceVersion, so that the update fails if another client
// was faster.
//
// Desired labels, annotations and owner are set, and keys that the template has removed are removed. Other keys are
// left alone: users and tools add their own, and would add them again if they were removed. In the spec, only the
// fields that muster-controller sets are set; fields that the API server or a user added are left alone. Values are
// compared semantically: 1000m equals 1, and an empty list equals none.
func Updated[T Object](live, want T) (T, bool) {
	updated, ok := live.DeepCopyObject().(T)
	if !ok || reflect.TypeOf(live) != reflect.TypeOf(want) || RevisionNumber(live) > RevisionNumber(want) {
		return live, false
	}
	gone := keysTakenOut(live, want)
	for _, key := range []string{naming.AnnotationTemplateKeys, v1alpha1.AnnotationTerminationDelay,
		v1alpha1.AnnotationUpdateStrategy, v1alpha1.AnnotationUpdateTurn, v1alpha1.AnnotationUpdatePaused} {
		if want.GetAnnotations()[key] == "" {
			gone.Annotations = append(gone.Annotations, key)
		}
	}
	if key := v2alpha2.ReplacingAnnotation; want.GetAnnotations()[key] == "" && live.GetAnnotations()[key] == replacingUpdate {
		gone.Annotations = append(gone.Annotations, key) // another value is that of whoever else replaces pods
	}
	updated.SetLabels(mergedKeys(updated.GetLabels(), want.GetLabels(), gone.Labels))
	updated.SetAnnotations(mergedKeys(updated.GetAnnotations(), want.GetAnnotations(), gone.Annotations))
	switch owner, wanted := metav1.GetControllerOfNoCopy(updated), metav1.GetControllerOfNoCopy(want); {
	case owner == nil:
		updated.SetOwnerReferences(append(updated.GetOwnerReferences(), want.GetOwnerReferences()...))
	case wanted != nil && owner.UID == wanted.UID:
		owner.APIVersion = wanted.APIVersion // in one that is not served any more the garbage collector would never find it
	}
	updateSpec(updated, want)
	return updated, !equality.Semantic.DeepEqual(live, updated)
}

// SameState reports whether two versions of an object are the same in all on which decisions rest: what differs at most
// are labels and annotations of users and tools, and what the API server manages. The generation stands for the spec.
// Of a PodGroup, whose status the scheduler writes, the status does not count.
func SameState(a, b Object) bool {
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() &&
		a.GetDeletionTimestamp().Equal(b.GetDeletionTimestamp()) &&
		equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) &&
		maps.Equal(ownKeys(a.GetLabels()), ownKeys(b.GetLabels())) && maps.Equal(ownKeys(a.GetAnnotations()), ownKeys(b.GetAnnotations())) &&
		equality.Semantic.DeepEqual(statusOf(a), statusOf(b))
}

// ownKeys returns the labels or annotations that muster-controller sets.
func ownKeys(keys map[string]string) map[string]string {
	own := maps.Clone(keys)
	maps.DeleteFunc(own, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		return domain != v1alpha1.GroupName && domain != "app.kubernetes.io" && domain != v2alpha2.GroupName
	})
	return own
}

// statusOf returns the status that muster-controller writes, of a stored revision its number.
func statusOf(o Object) any {
	switch o := o.(type) {
	case *v1alpha1.PodCliqueSet:
		return o.Status
	case *v1alpha1.PodCliqueScalingGroup:
		return o.Status
	case *v1alpha1.PodClique:
		return o.Status
	case *appsv1.ControllerRevision:
		return o.Revision // it has no generation
	}
	return nil
}

// mergedKeys returns live with the entries of want, without the keys in gone.
func mergedKeys(live, want map[string]string, gone []string) map[string]string {
	m := withTemplate(live, want)
	for _, key := range gone {
		delete(m, key)
	}
	return m
}

// updateSpec sets the fields in live that muster-controller manages for objects of its kind.
func updateSpec(live, want Object) {
	switch want := want.(type) {
	case *v1alpha1.PodClique:
		live.(*v1alpha1.PodClique).Spec = *want.Spec.DeepCopy()
	case *v1alpha1.PodCliqueScalingGroup:
		live.(*v1alpha1.PodCliqueScalingGroup).Spec = *want.Spec.DeepCopy()
	case *v2alpha2.PodGroup:
		to, from := &live.(*v2alpha2.PodGroup).Spec, want.Spec.DeepCopy()
		to.MinMember, to.MinSubGroup, to.SubGroups, to.PriorityClassName = from.MinMember, from.MinSubGroup, from.SubGroups, from.PriorityClassName
		to.TopologyConstraint = from.TopologyConstraint
		to.Preemptibility = cmp.Or(from.Preemptibility, to.Preemptibility)
	case *corev1.Service:
		to, from := &live.(*corev1.Service).Spec, want.Spec.DeepCopy()
		to.Selector, to.PublishNotReadyAddresses = from.Selector, from.PublishNotReadyAddresses
	case *autoscalingv2.HorizontalPodAutoscaler:
		to, from := &live.(*autoscalingv2.HorizontalPodAutoscaler).Spec, want.Spec.DeepCopy()
		to.ScaleTargetRef, to.MinReplicas, to.MaxReplicas, to.Metrics = from.ScaleTargetRef, from.MinReplicas, from.MaxReplicas, from.Metrics
	case *appsv1.ControllerRevision:
		live.(*appsv1.ControllerRevision).Revision = want.Revision // the data is immutable
	case *rbacv1.Role:
		live.(*rbacv1.Role).Rules = want.DeepCopy().Rules
	case *rbacv1.RoleBinding:
		live.(*rbacv1.RoleBinding).Subjects = want.DeepCopy().Subjects // roleRef is immutable, and always the same
	}
}

// objectMeta returns the metadata of a child.
func objectMeta(owner Object, kind, name string, labels, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            name,
		Namespace:       owner.GetNamespace(),
		Labels:          labels,
		Annotations:     annotations,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.SchemeGroupVersion.WithKind(kind))},
	}
}

// withTemplate returns the labels or annotations of a template, overridden by ours.
func withTemplate(template, ours map[string]string) map[string]string {
	m := make(map[string]string, len(template)+len(ours))
	maps.Copy(m, template)
	maps.Copy(m, ours)
	return m
}
