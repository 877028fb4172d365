// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"maps"
	"strconv"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// Annotations that muster-controller stores on PodCliques and PodCliqueScalingGroups for its own use. They are not
// copied to pods.
const (
	// AnnotationStartRequirements holds the requirements that the clique's pods wait for before they start, as text of
	// lifecycle.FormatRequirements. Absent: none.
	AnnotationStartRequirements = "grove.io/start-requirements"
	// AnnotationGroupPods holds the number of pods of one replica of the scaling group according to the template. Set
	// on member PodCliques only.
	AnnotationGroupPods = "grove.io/scaling-group-pods"
	// AnnotationTemplateKeys holds the keys of the labels and annotations that the template set. Absent: none.
	AnnotationTemplateKeys = "grove.io/template-keys"
)

// IsInternalAnnotation reports whether an annotation is for muster-controller's own use and is not copied to pods.
func IsInternalAnnotation(annotation string) bool {
	switch annotation {
	case AnnotationStartRequirements, AnnotationGroupPods, AnnotationTemplateKeys,
		v1alpha1.AnnotationInitialReplicas, v1alpha1.AnnotationTemplateReplicas, v1alpha1.AnnotationPodCliqueSetUID, v1alpha1.AnnotationTerminationDelay,
		v1alpha1.AnnotationWorkloadType, v1alpha1.AnnotationWorkloadFailed,
		v1alpha1.AnnotationGenerationHash, v1alpha1.AnnotationRevision, v1alpha1.AnnotationUpdateStrategy, v1alpha1.AnnotationUpdateTurn,
		v1alpha1.AnnotationUpdatePaused:
		return true
	}
	return false
}

// childLabels returns the labels of every child: object is its name, component one of the Component values.
func childLabels(set, object, component string) map[string]string {
	return map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue,
		v1alpha1.LabelPartOf:    set,
		v1alpha1.LabelName:      object,
		v1alpha1.LabelComponent: component,
	}
}

// SetLabels returns the labels of a child that belongs to the set as a whole: the Role and RoleBinding for the init
// containers that wait.
func SetLabels(set, object, component string) map[string]string {
	return childLabels(set, object, component)
}

// ReplicaLabels returns the labels of a child of replica i of a set: PodGroup, Service, HorizontalPodAutoscaler.
func ReplicaLabels(set string, i int, object, component string) map[string]string {
	labels := childLabels(set, object, component)
	labels[v1alpha1.LabelPodCliqueSetReplicaIndex] = strconv.Itoa(i)
	return labels
}

// ScalingGroupLabels returns the labels of a PodCliqueScalingGroup.
func ScalingGroupLabels(set string, i int, group string) map[string]string {
	labels := ReplicaLabels(set, i, ScalingGroup(set, i, group), v1alpha1.ComponentPodCliqueScalingGroup)
	labels[v1alpha1.LabelTemplateName] = group
	return labels
}

// PodCliqueLabels returns the labels of a standalone PodClique, without template labels and template hash.
func PodCliqueLabels(set string, i int, clique string) map[string]string {
	labels := ReplicaLabels(set, i, PodCliqueName(set, i, clique), v1alpha1.ComponentStandalonePodClique)
	labels[v1alpha1.LabelTemplateName] = clique
	labels[v1alpha1.LabelPodGang] = PodGroupName(set, i)
	return labels
}

// MemberLabels returns the labels of the PodClique of a clique in replica j of a scaling group with the given
// minAvailable, without template labels and template hash.
func MemberLabels(set string, i int, group string, j, minAvailable int, clique string) map[string]string {
	labels := ReplicaLabels(set, i, MemberPodClique(set, i, group, j, clique), v1alpha1.ComponentMemberPodClique)
	labels[v1alpha1.LabelTemplateName] = clique
	labels[v1alpha1.LabelPodCliqueScalingGroup] = ScalingGroup(set, i, group)
	labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex] = strconv.Itoa(j)
	gang, scaled := PodGangLabel(set, i, group, j, minAvailable)
	labels[v1alpha1.LabelPodGang] = gang
	if scaled {
		labels[v1alpha1.LabelBasePodGang] = PodGroupName(set, i)
	}
	return labels
}

// PodLabels returns the labels of a pod: those of its PodClique, which are passed in, and those that distinguish it
// from its siblings.
func PodLabels(podCliqueLabels map[string]string, podClique string, index int) map[string]string {
	labels := maps.Clone(podCliqueLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LabelPodClique] = podClique
	labels[v1alpha1.LabelPodIndex] = strconv.Itoa(index)
	return labels
}

// IdentityLabels returns the labels that identify an object and the workload it belongs to. They never change during
// the object's lifetime; muster-controller selects objects by them and restores them.
func IdentityLabels(labels map[string]string) map[string]string {
	identity := map[string]string{}
	for _, key := range []string{
		v1alpha1.LabelManagedBy, v1alpha1.LabelPartOf, v1alpha1.LabelName, v1alpha1.LabelComponent, v1alpha1.LabelTemplateName,
		v1alpha1.LabelPodCliqueSetReplicaIndex, v1alpha1.LabelPodCliqueScalingGroup, v1alpha1.LabelPodCliqueScalingGroupReplicaIndex,
		v1alpha1.LabelPodClique, v1alpha1.LabelPodIndex,
	} {
		if v, ok := labels[key]; ok {
			identity[key] = v
		}
	}
	return identity
}

// Selectors. Callers also check the owner of the selected objects, because any client can set a label.

// SelectSetObjects selects all objects that were created for a set.
func SelectSetObjects(set string) map[string]string {
	return map[string]string{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue, v1alpha1.LabelPartOf: set}
}

// OfSetReplica selects all objects that were created for replica i of a set. The headless Service selects its pods by
// these labels, without managed-by, as Grove's does.
func OfSetReplica(set string, i int) map[string]string {
	return map[string]string{v1alpha1.LabelPartOf: set, v1alpha1.LabelPodCliqueSetReplicaIndex: strconv.Itoa(i)}
}

// OfScalingGroup selects the PodCliques and the pods of the PodCliqueScalingGroup with the given full name.
func OfScalingGroup(group string) map[string]string {
	return map[string]string{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue, v1alpha1.LabelPodCliqueScalingGroup: group}
}

// OfPodClique selects the pods of the PodClique with the given full name.
func OfPodClique(podClique string) map[string]string {
	return map[string]string{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue, v1alpha1.LabelPodClique: podClique}
}

// LabelIndex returns the number in a label, -1 if the label is missing or not a number.
func LabelIndex(labels map[string]string, key string) int {
	n, err := strconv.Atoi(labels[key])
	if err != nil || n < 0 {
		return -1
	}
	return n
}
