// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/membership"
)

// IsNamed reports whether the objects of the kind are the groups of another scheduler or of Kubernetes, which pods
// name. A PodGroup is made of one only when such a pod exists that no other scheduler runs.
func (k Kind) IsNamed() bool { return k.Kind == PodGroupKind || k.IsNative() }

// NamedBy returns the PodGroup of the kind's API group that a pod belongs to by its name, "" for none.
func (k Kind) NamedBy(pod *corev1.Pod) string {
	d, name, ok := membership.NamedBy(pod)
	if !ok || membership.DialectOf(k.Group).APIVersion != d.APIVersion {
		return ""
	}
	return name
}

// MadeName returns the name of the PodGroup that is made of one of these groups.
func (k Kind) MadeName(name string) string {
	if k.Kind == CompositeKind {
		return membership.CompositeGroupName(name)
	}
	return membership.DialectOf(k.Group).GroupName(name)
}

// StripPod removes from a stored pod all that NamedBy and JoinTree do not read. It changes no object, and returns
// others as they are.
func StripPod(object any) (any, error) {
	pod, is := object.(*corev1.Pod)
	if !is {
		return object, nil
	}
	kept := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}}
	if _, _, named := membership.NamedBy(pod); !named {
		return kept, nil
	}
	kept.DeletionTimestamp, kept.OwnerReferences, kept.Labels = pod.DeletionTimestamp, pod.OwnerReferences, pod.Labels
	for _, key := range membership.Annotations {
		if value, has := pod.Annotations[key]; has {
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, key, value)
		}
	}
	kept.Spec.SchedulingGroup = pod.Spec.SchedulingGroup
	return kept, nil
}
