// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels that KubeRay puts on the pods of a RayCluster, also of one that it makes for a RayJob or a RayService.
const (
	labelRayCluster = "ray.io/cluster"
	labelRayGroup   = "ray.io/group"
	rayCluster      = "RayCluster"

	// RayHead is the group of the head.
	RayHead = "headgroup"

	placeOfRay = "label " + labelRayCluster
)

// RayLabels returns the labels by which the pods of a group of a RayCluster find their gang.
func RayLabels(cluster, group string) map[string]string {
	return map[string]string{labelRayCluster: cluster, labelRayGroup: group}
}

// groupOfRayCluster is the mark.group of pods of RayClusters. Other pods with the label, as those of Jobs that clean up
// or submit, are in no gang.
func groupOfRayCluster(pod *corev1.Pod) string {
	if pod.Labels[labelRayCluster] == "" || OptsOut(pod.Labels, pod.Annotations) {
		return ""
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref == nil || ref.Kind != rayCluster || !strings.HasPrefix(ref.APIVersion, "ray.io/") {
		return ""
	}
	return workloadOf(pod).GroupName()
}
