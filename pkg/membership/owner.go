// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"hash/fnv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// Workload is the object whose pods form a gang.
type Workload struct {
	Kind, Name string
	UID        types.UID
}

const deploymentKind = "Deployment"

// workloadOf returns the workload of a pod: its controller, or the Deployment of its ReplicaSet. A pod without a
// controller is its own.
func workloadOf(pod *corev1.Pod) Workload {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return Workload{Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	// A Deployment names its ReplicaSets by itself and this label.
	hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if deployment, cut := strings.CutSuffix(ref.Name, "-"+hash); ref.Kind == "ReplicaSet" && hash != "" && cut {
		return Workload{Kind: deploymentKind, Name: deployment}
	}
	return Workload{Kind: ref.Kind, Name: ref.Name, UID: ref.UID}
}

// maxName is the maximum length of the name of a PodGroup.
const maxName = 253

// GroupName returns the name of the PodGroup of the workload's gang. It contains a hash of the UID, so that pods of a
// workload that is created again do not join the PodGroup of the former one; not of a Deployment, which its pods do not
// know.
func (w Workload) GroupName() string {
	name := strings.ToLower(w.Kind) + "-" + w.Name
	if w.UID != "" && w.Kind != deploymentKind {
		h := fnv.New32a()
		h.Write([]byte(w.UID))
		name += fmt.Sprintf("-%08x", h.Sum32())
	}
	return shorten(name, maxName)
}

// shorten returns the name, with a hash instead of its end if it is longer than max.
func shorten(name string, max int) string {
	if len(name) <= max {
		return name
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	end := fmt.Sprintf("-%016x", h.Sum64())
	return strings.TrimRight(name[:max-len(end)], "-.") + end
}

const (
	placeOfReplica    = "label " + labelLWSGroup
	placeOfJobSet     = "label " + labelJobSetUID
	placeOfLabel      = "label " + v2alpha2.MinMemberKey
	placeOfAnnotation = "annotation " + v2alpha2.MinMemberKey
	placeOfKAI        = "annotation " + annotationKAI

	annotationKAI = "kai.scheduler/batch-min-member"
)

// Minimum is what the labels and annotations of a pod, or of a pod template, say about the gang of its workload.
type Minimum struct {
	// Value is the text of scheduling.run.ai/min-member, "" if the pods form no gang by it.
	Value string
	// Place is where it stands: "label scheduling.run.ai/min-member".
	Place string
	// Other is a different value, and OtherPlace where it stands: the marks contradict each other. "": they do not.
	Other, OtherPlace string
}

// MinimumIn returns what labels and annotations say. The label precedes the annotation, and that KAI's.
func MinimumIn(labels, annotations map[string]string) Minimum {
	label, annotation, kai := labels[v2alpha2.MinMemberKey], annotations[v2alpha2.MinMemberKey], annotations[annotationKAI]
	if label == "" && annotation == "" && kai == "" || OptsOut(labels, annotations) { // most pods
		return Minimum{}
	}
	var found Minimum
	for _, m := range []Minimum{{Value: label, Place: placeOfLabel}, {Value: annotation, Place: placeOfAnnotation}, {Value: kai, Place: placeOfKAI}} {
		switch {
		case m.Value == "" || m.Value == found.Value:
		case found.Value == "":
			found = m
		default:
			found.Other, found.OtherPlace = m.Value, m.Place
			return found
		}
	}
	return found
}

// OptsOut reports whether the pods form no gang by their workload, whatever else they carry.
func OptsOut(labels, annotations map[string]string) bool {
	return labels[v2alpha2.GangKey] == "false" || annotations[v2alpha2.GangKey] == "false" || annotations[v2alpha2.GangKey] == left
}

// left is the value of scheduling.run.ai/gang of pods that LeaveWorkload has taken out of their gang.
const left = "without --workload-gangs"

// Left returns the mark by which the pod would belong to a gang, had LeaveWorkload not taken it out of it. "": it has
// not.
func Left(pod *corev1.Pod) string {
	if pod.Annotations[v2alpha2.GangKey] != left {
		return ""
	}
	back := pod.DeepCopy()
	delete(back.Annotations, v2alpha2.GangKey)
	return Mark(back)
}

// groupOfWorkload returns a function for mark.group: the PodGroup of the gang of the pod's workload, if MinimumIn finds
// the mark at the place.
func groupOfWorkload(place string) func(pod *corev1.Pod) string {
	return func(pod *corev1.Pod) string {
		if MinimumIn(pod.Labels, pod.Annotations).Place != place {
			return ""
		}
		return workloadOf(pod).GroupName()
	}
}

// LeaveWorkload takes a pod out of the gang that it belongs to by the labels of its LeaderWorkerSet, JobSet or
// RayCluster alone: where nobody makes PodGroups for them it would wait for ever. It changes annotations, as the pod's
// author could.
func LeaveWorkload(pod *corev1.Pod) {
	switch Mark(pod) {
	case placeOfReplica, placeOfJobSet, placeOfRay:
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v2alpha2.GangKey, left)
	}
}

// WorkloadOf returns the workload for whose gang muster-controller makes the PodGroup of the pod. made is false if the
// pod names its PodGroup itself, or is in no gang.
func WorkloadOf(pod *corev1.Pod) (of Workload, made bool) {
	switch Mark(pod) {
	case placeOfReplica:
		return Workload{Kind: leaderWorkerSet, Name: pod.Labels[labelLWS]}, true
	case placeOfJobSet:
		return jobSetOf(pod), true
	case placeOfRay, placeOfLabel, placeOfAnnotation, placeOfKAI:
		return workloadOf(pod), true
	}
	return Workload{}, false
}

// IsMarked reports whether the pod belongs to its gang by a minimum that its pod template asks for.
func IsMarked(pod *corev1.Pod) bool {
	switch Mark(pod) {
	case placeOfLabel, placeOfAnnotation, placeOfKAI:
		return true
	}
	return false
}

// gpuShares are the annotations by which pods ask KAI for a share of a GPU.
var gpuShares = []string{"gpu-fraction", "gpu-memory"}

// GPUShare returns where the pod asks KAI for a share of a GPU, which it would not get: "annotation gpu-fraction". "":
// nowhere.
func GPUShare(pod *corev1.Pod) string {
	for _, key := range gpuShares {
		if pod.Annotations[key] != "" {
			return "annotation " + key
		}
	}
	return ""
}
