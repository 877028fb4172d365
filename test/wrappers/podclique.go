// SPDX-License-Identifier: Apache-2.0

package wrappers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/naming"
)

// PodCliqueWrapper builds a PodClique.
type PodCliqueWrapper struct {
	object[*PodCliqueWrapper]
	clique v1alpha1.PodClique
}

// MakePodClique starts the PodClique of a standalone clique in replica i of a set, with the name, role, labels and
// owner that muster-controller gives it. It has one replica. The UID of the owner is its name and "-uid".
func MakePodClique(set string, i int, clique, namespace string) *PodCliqueWrapper {
	return makePodClique(clique, metav1.ObjectMeta{
		Name: naming.PodCliqueName(set, i, clique), Namespace: namespace,
		Labels:          naming.PodCliqueLabels(set, i, clique),
		OwnerReferences: controlledBy(v1alpha1.KindPodCliqueSet, set),
	})
}

// MakeMemberPodClique starts the PodClique of a clique in replica j of a scaling group in replica i of a set, as
// MakePodClique does. The labels are those of a scaling group with minAvailable 1.
func MakeMemberPodClique(set string, i int, group string, j int, clique, namespace string) *PodCliqueWrapper {
	return makePodClique(clique, metav1.ObjectMeta{
		Name: naming.MemberPodClique(set, i, group, j, clique), Namespace: namespace,
		Labels:          naming.MemberLabels(set, i, group, j, 1, clique),
		OwnerReferences: controlledBy(v1alpha1.KindPodCliqueScalingGroup, naming.ScalingGroup(set, i, group)),
	})
}

func makePodClique(role string, meta metav1.ObjectMeta) *PodCliqueWrapper {
	spec := podCliqueSpec(1)
	spec.RoleName = role
	w := &PodCliqueWrapper{clique: v1alpha1.PodClique{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindPodClique},
		ObjectMeta: meta,
		Spec:       spec,
	}}
	w.object = object[*PodCliqueWrapper]{w, &w.clique.ObjectMeta}
	return w
}

// Obj returns a copy of the PodClique built so far.
func (w *PodCliqueWrapper) Obj() *v1alpha1.PodClique { return w.clique.DeepCopy() }

// Replicas sets spec.replicas.
func (w *PodCliqueWrapper) Replicas(n int32) *PodCliqueWrapper {
	w.clique.Spec.Replicas = n
	return w
}

// Status edits the status.
func (w *PodCliqueWrapper) Status(edit func(*v1alpha1.PodCliqueStatus)) *PodCliqueWrapper {
	edit(&w.clique.Status)
	return w
}

// controlledBy returns the reference to an owner of this API that controls an object.
func controlledBy(kind, name string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: types.UID(name + "-uid"),
		Controller: &yes, BlockOwnerDeletion: &yes}}
}
