// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// Ownership distinguishes the PodCliques and pods of a PodCliqueSet from those that a deleted set of the same name has
// left, which have the same labels. It follows the owners by UID. If an owner between the object and the set is gone,
// the object's annotation with the UID of its set decides; without the annotation, whether the object was created
// before the set. Source: docs/decisions, W10.
type Ownership struct {
	set     *v1alpha1.PodCliqueSet
	groups  map[types.UID]bool // the scaling groups of the set
	cliques map[types.UID]bool // existing PodCliques: whether they belong to the set
}

// OwnershipOf returns the ownership of the pods of cliques, which are the existing PodCliques with the labels of the
// set, in any order. groups are scaling groups that the set owns, not necessarily all of them.
func OwnershipOf(set *v1alpha1.PodCliqueSet, groups []*v1alpha1.PodCliqueScalingGroup, cliques []*v1alpha1.PodClique) Ownership {
	o := Ownership{set: set, groups: make(map[types.UID]bool, len(groups)), cliques: make(map[types.UID]bool, len(cliques))}
	for _, g := range groups {
		o.groups[g.UID] = true
	}
	for _, c := range cliques {
		o.cliques[c.UID] = o.HasClique(c)
	}
	return o
}

// HasClique reports whether a PodClique belongs to the set.
func (o Ownership) HasClique(c *v1alpha1.PodClique) bool {
	owner := metav1.GetControllerOfNoCopy(c)
	switch {
	case owner == nil:
		return false
	case owner.Kind == v1alpha1.KindPodCliqueSet:
		return owner.UID == o.set.UID
	case owner.Kind == v1alpha1.KindPodCliqueScalingGroup:
		return o.groups[owner.UID] || o.createdFor(c)
	}
	return false
}

// HasPod reports whether a pod belongs to the set. Its PodClique may be gone.
func (o Ownership) HasPod(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != v1alpha1.KindPodClique {
		return false
	}
	if has, exists := o.cliques[owner.UID]; exists {
		return has
	}
	return o.createdFor(pod)
}

func (o Ownership) createdFor(object metav1.Object) bool {
	if uid := object.GetAnnotations()[v1alpha1.AnnotationPodCliqueSetUID]; uid != "" {
		return uid == string(o.set.UID)
	}
	created, began := object.GetCreationTimestamp(), o.set.CreationTimestamp
	return !created.Before(&began)
}

// Cliques returns those of the PodCliques that belong to the set.
func (o Ownership) Cliques(cliques []*v1alpha1.PodClique) []*v1alpha1.PodClique {
	return slices.DeleteFunc(slices.Clone(cliques), func(c *v1alpha1.PodClique) bool { return !o.HasClique(c) })
}

// Pods returns those of the pods that belong to the set.
func (o Ownership) Pods(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !o.HasPod(pod) })
}

// PodCliqueSetUID returns the UID of the PodCliqueSet that owns a scaling group, PodClique, pod or PodGroup, or that it
// was created for; "": unknown.
func PodCliqueSetUID(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil && owner.Kind == v1alpha1.KindPodCliqueSet {
		return owner.UID
	}
	return types.UID(object.GetAnnotations()[v1alpha1.AnnotationPodCliqueSetUID])
}
