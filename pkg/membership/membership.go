// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// mark is a way to name the gang of a pod.
type mark struct {
	// place is where a pod carries it: "annotation pod-group-name".
	place string
	// group returns the PodGroup, of the pod's namespace, that the pod names by it. "": none.
	group func(pod *corev1.Pod) string
}

// marks are in the order of precedence: the first by which a pod names a PodGroup decides. They are listed in
// docs/workloads.md; a test compares the two.
var marks = slices.Concat(marksOf(named...), []mark{
	{placeOfReplica, groupOfReplica},
	{placeOfJobSet, groupOfJobSet},
	{placeOfRay, groupOfRayCluster},
	{placeOfLabel, groupOfWorkload(placeOfLabel)},
	{placeOfAnnotation, groupOfWorkload(placeOfAnnotation)},
	{placeOfKAI, groupOfWorkload(placeOfKAI)},
}, marksOf(nativeOfJob))

// Written returns the places of the marks that users write into pod templates, beside those of Muster's own PodGroups:
// "label KEY" or "annotation KEY".
func Written() []string {
	written := []string{placeOfLabel, placeOfAnnotation, placeOfKAI, "label " + v2alpha2.GangKey, "annotation " + v2alpha2.GangKey}
	for _, d := range named {
		if d.prefix != "" && d.APIVersion != native { // a field
			written = append(written, d.Place)
		}
	}
	return written
}

// Group returns the name of the PodGroup, of the pod's namespace, that the pod belongs to. "": it is in no gang.
func Group(pod *corev1.Pod) string {
	group, _ := groupAndMark(pod)
	return group
}

// Mark returns the place of the mark by which the pod belongs to its gang, "" if it is in none.
func Mark(pod *corev1.Pod) string {
	_, place := groupAndMark(pod)
	return place
}

// Leaf returns the sub-group that the pod names, "" for none. Whether it is a leaf of its PodGroup depends on that.
func Leaf(pod *corev1.Pod) string {
	leaf := pod.Labels[v2alpha2.SubGroupLabel]
	if leaf != "" || pod.Labels[labelLWS] == "" && pod.Labels[labelJobSet] == "" && pod.Labels[labelRayCluster] == "" &&
		pod.Annotations[AnnotationTask] == "" && pod.Annotations[CompositeAnnotation] == "" { // most pods
		return leaf
	}
	switch Mark(pod) {
	case placeOfReplica:
		return leafOfReplica(pod)
	case placeOfJobSet:
		return leafOfJobSet(pod)
	case placeOfRay:
		return pod.Labels[labelRayGroup]
	case Volcano.Place, volcanoAlias.Place:
		return pod.Annotations[AnnotationTask]
	case placeNative:
		if pod.Annotations[CompositeAnnotation] != "" {
			return NativeLeaf(*pod.Spec.SchedulingGroup.PodGroupName)
		}
	}
	return ""
}

// Run returns a number from 1 that is higher for pods of a later run of the gang's workload, and whether the pod shows
// that a run has begun, to which no pod with a lower number belongs. 0, false: the pod tells nothing.
func Run(pod *corev1.Pod) (run int, begins bool) {
	if pod.Labels[labelLWS] == "" && pod.Labels[labelRestarts] == "" { // most pods
		return 0, false
	}
	switch Mark(pod) {
	case placeOfJobSet:
		return runOfJobSet(pod)
	case placeOfReplica:
		return runOfReplica(pod)
	}
	return 0, false
}

// LeafPlace returns where a pod names its leaf: "label kai.scheduler/subgroup-name".
func LeafPlace(pod *corev1.Pod) string {
	d, _, _ := NamedBy(pod)
	switch {
	case pod.Labels[v2alpha2.SubGroupLabel] != "":
	case d.APIVersion == volcano:
		return "annotation " + AnnotationTask
	case d.APIVersion == native:
		return placeNative
	}
	return "label " + v2alpha2.SubGroupLabel
}

func groupAndMark(pod *corev1.Pod) (group, place string) {
	for i := range marks {
		if group := marks[i].group(pod); group != "" {
			return group, marks[i].place
		}
	}
	return "", ""
}
