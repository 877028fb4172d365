// SPDX-License-Identifier: Apache-2.0

package wrappers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/naming"
)

// ScalingGroupWrapper builds a PodCliqueScalingGroup.
type ScalingGroupWrapper struct {
	object[*ScalingGroupWrapper]
	group v1alpha1.PodCliqueScalingGroup
}

// MakeScalingGroup starts the PodCliqueScalingGroup of a scaling group in replica i of a set, with the name, labels and
// owner that muster-controller gives it. It has one replica. The UID of the owner is its name and "-uid".
func MakeScalingGroup(set string, i int, group, namespace string) *ScalingGroupWrapper {
	w := &ScalingGroupWrapper{group: v1alpha1.PodCliqueScalingGroup{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindPodCliqueScalingGroup},
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.ScalingGroup(set, i, group), Namespace: namespace,
			Labels:          naming.ScalingGroupLabels(set, i, group),
			OwnerReferences: controlledBy(v1alpha1.KindPodCliqueSet, set),
		},
		Spec: v1alpha1.PodCliqueScalingGroupSpec{Replicas: 1},
	}}
	w.object = object[*ScalingGroupWrapper]{w, &w.group.ObjectMeta}
	return w
}

// Obj returns a copy of the PodCliqueScalingGroup built so far. An API server refuses one without cliques: it gets the
// clique "main".
func (w *ScalingGroupWrapper) Obj() *v1alpha1.PodCliqueScalingGroup {
	group := w.group.DeepCopy()
	if len(group.Spec.CliqueNames) == 0 {
		group.Spec.CliqueNames = []string{"main"}
	}
	return group
}

// Replicas sets spec.replicas.
func (w *ScalingGroupWrapper) Replicas(n int32) *ScalingGroupWrapper {
	w.group.Spec.Replicas = n
	return w
}

// MinAvailable sets spec.minAvailable.
func (w *ScalingGroupWrapper) MinAvailable(n int32) *ScalingGroupWrapper {
	w.group.Spec.MinAvailable = &n
	return w
}

// Cliques sets spec.cliqueNames.
func (w *ScalingGroupWrapper) Cliques(names ...string) *ScalingGroupWrapper {
	w.group.Spec.CliqueNames = names
	return w
}

// Status edits the status.
func (w *ScalingGroupWrapper) Status(edit func(*v1alpha1.PodCliqueScalingGroupStatus)) *ScalingGroupWrapper {
	edit(&w.group.Status)
	return w
}
