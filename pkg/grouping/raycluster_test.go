// SPDX-License-Identifier: Apache-2.0

package grouping

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/membership"
)

// TestRayClusters: RayClusters as their documentation shows them, which KubeRay makes for RayJobs and RayServices too,
// and the PodGroup that each needs.
func TestRayClusters(t *testing.T) {
	t.Parallel()
	const (
		head   = "kind: RayCluster\napiVersion: ray.io/v1\nmetadata: {name: ray, namespace: ns, uid: u1}\n"
		ours   = "template: {spec: {schedulerName: muster-scheduler, containers: [{name: c}]}}"
		leader = "headGroupSpec: {rayStartParams: {}, " + ours + "}"
		group  = "raycluster-ray-0442a7f3"
	)
	workers := func(name, numbers string) string { return fmt.Sprintf("{groupName: %s, %s, %s}", name, numbers, ours) }
	for name, tc := range map[string]struct{ manifest, group string }{
		"a head": {head + "spec: {" + leader + "}", group + " needs 1 of headgroup 1"},
		"a head and workers": {head + "spec: {" + leader + ", workerGroupSpecs: [" + workers("gpu", "replicas: 4, minReplicas: 1, maxReplicas: 8") + "]}",
			group + " needs 2 of headgroup 1, gpu 4"},
		"autoscaled workers are surplus": {
			head + "spec: {enableInTreeAutoscaling: true, " + leader + ", workerGroupSpecs: [" + workers("gpu", "replicas: 4, minReplicas: 1, maxReplicas: 8") + "]}",
			group + " needs 2 of headgroup 1, gpu 1"},
		"autoscaled from none": {
			head + "spec: {enableInTreeAutoscaling: true, " + leader + ", workerGroupSpecs: [" + workers("cpu", "minReplicas: 2") + ", " + workers("gpu", "replicas: 1, maxReplicas: 8, numOfHosts: 2") + "]}",
			group + " needs 2 of headgroup.autoscaled 1 of all, headgroup 1, cpu 2, gpu 2"},
		"replicas of several hosts": {head + "spec: {" + leader + ", workerGroupSpecs: [" + workers("tpu", "replicas: 2, numOfHosts: 4") + "]}",
			group + " needs 2 of headgroup 1, tpu 8"},
		"no hosts, no pods": {head + "spec: {" + leader + ", workerGroupSpecs: [" + workers("tpu", "replicas: 2, numOfHosts: 0") + "]}", group + " needs 1 of headgroup 1"},
		"no more than maxReplicas, no fewer than minReplicas": {
			head + "spec: {" + leader + ", workerGroupSpecs: [" + workers("a", "replicas: 9, maxReplicas: 5") + ", " + workers("b", "replicas: 0, minReplicas: 2") + ", " + workers("c", "replicas: 0") + "]}",
			group + " needs 3 of headgroup 1, a 5, b 2"},
		"autoscaled, no more than maxReplicas": {
			head + "spec: {enableInTreeAutoscaling: true, " + leader + ", workerGroupSpecs: [" + workers("gpu", "minReplicas: 4, maxReplicas: 2") + "]}",
			group + " needs 2 of headgroup 1, gpu 2"},
		"a suspended group": {head + "spec: {" + leader + ", workerGroupSpecs: [" + workers("gpu", "replicas: 4, suspend: true") + "]}", group + " needs 1 of headgroup 1"},
		"suspended":         {head + "spec: {suspend: true, " + leader + "}", ""},
		"workers alone are ours": {
			head + "spec: {enableInTreeAutoscaling: true, headGroupSpec: {template: {spec: {containers: []}}}, workerGroupSpecs: [" + workers("gpu", "maxReplicas: 8") + "]}",
			group + " needs 1 of gpu 1"},
		"of the default scheduler": {head + "spec: {headGroupSpec: {template: {spec: {containers: []}}}}", ""},
		"two groups of a name": {head + "spec: {" + leader + ", workerGroupSpecs: [" + workers("headgroup", "replicas: 4") + "]}",
			`refused: two groups are "headgroup": its pods wait`},
		"a mark that has no meaning": {
			head + "spec: {headGroupSpec: {template: {metadata: {labels: {scheduling.run.ai/min-member: all}}, spec: {schedulerName: muster-scheduler, containers: []}}}}",
			`refused: scheduling.run.ai/min-member on the template of group "headgroup"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkGroups(t, tc.manifest, tc.group)
		})
	}
	of := func(kind, apiVersion, group string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"ray.io/cluster": "ray", "ray.io/group": group},
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, APIVersion: apiVersion, Name: "ray", UID: "u1", Controller: ptr.To(true)}}}}
	}
	for _, leaf := range []string{"headgroup", "gpu"} {
		if pod := of("RayCluster", "ray.io/v1", leaf); membership.Group(pod) != group || membership.Leaf(pod) != leaf {
			t.Errorf("a pod of group %s is in %s/%s", leaf, membership.Group(pod), membership.Leaf(pod))
		}
	}
	for _, pod := range []*corev1.Pod{of("Job", "batch/v1", ""), of("RayCluster", "example.com/v1", "gpu")} {
		if found := membership.Group(pod); found != "" {
			t.Errorf("a pod of %v is in %s", pod.OwnerReferences[0], found)
		}
	}
}
