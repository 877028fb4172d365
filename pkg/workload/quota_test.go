// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestFitsQuotaAfter(t *testing.T) {
	t.Parallel()
	resources := func(quantities ...string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for pair := range slices.Chunk(quantities, 2) {
			list[corev1.ResourceName(pair[0])] = resource.MustParse(pair[1])
		}
		return list
	}
	pod := func(requests, limits corev1.ResourceList) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}}}}
	}
	type pods = []*corev1.Pod
	gpus := func(n string) *corev1.Pod { return pod(resources("nvidia.com/gpu", n), resources("nvidia.com/gpu", n)) }
	sidecar := pod(resources("cpu", "1"), nil)
	sidecar.Spec.InitContainers = []corev1.Container{
		{RestartPolicy: new(corev1.ContainerRestartPolicy), Resources: corev1.ResourceRequirements{Requests: resources("cpu", "500m")}}}
	*sidecar.Spec.InitContainers[0].RestartPolicy = corev1.ContainerRestartPolicyAlways
	const forbidden = `pods "chat-0-web-0-x8k2p" is forbidden: `

	for name, tc := range map[string]struct {
		message    string
		gone, also pods
		want       bool
	}{
		"a full quota, and a pod like the one that goes": {
			forbidden + "exceeded quota: all, requested: requests.cpu=1, used: requests.cpu=4, limited: requests.cpu=4", pods{pod(resources("cpu", "1000m"), nil)}, nil, true},
		"a full quota, and a larger pod": {
			forbidden + "exceeded quota: all, requested: requests.cpu=1500m, used: requests.cpu=4, limited: requests.cpu=4", pods{pod(resources("cpu", "1"), nil)}, nil, false},
		"a larger pod, for which there is just room": {
			forbidden + "exceeded quota: all, requested: cpu=1500m, used: cpu=3500m, limited: cpu=4", pods{pod(resources("cpu", "1"), nil)}, nil, true},
		"no pod goes": {
			forbidden + "exceeded quota: all, requested: pods=1, used: pods=3, limited: pods=3", nil, nil, false},
		"pods are counted": {
			forbidden + "exceeded quota: all, requested: pods=1, used: pods=3, limited: pods=3", pods{gpus("1")}, nil, true},
		"objects are counted": {
			forbidden + "exceeded quota: all, requested: count/pods=1, used: count/pods=3, limited: count/pods=3", pods{gpus("1")}, nil, true},
		"several resources of a quota, one of which does not fit": {
			forbidden + "exceeded quota: all, requested: limits.memory=2Gi,requests.nvidia.com/gpu=8, used: limits.memory=8Gi,requests.nvidia.com/gpu=16, limited: limits.memory=8Gi,requests.nvidia.com/gpu=16",
			pods{pod(resources("nvidia.com/gpu", "8"), resources("memory", "1Gi"))}, nil, false},
		"several resources of a quota that all fit": {
			forbidden + "exceeded quota: all, requested: limits.memory=2Gi,requests.nvidia.com/gpu=8, used: limits.memory=8Gi,requests.nvidia.com/gpu=16, limited: limits.memory=8Gi,requests.nvidia.com/gpu=16",
			pods{pod(resources("nvidia.com/gpu", "8"), resources("memory", "2048Mi"))}, nil, true},
		"several quotas, one of which does not fit": {
			forbidden + "exceeded quota: a, requested: pods=1, used: pods=3, limited: pods=3\nexceeded quota: b, requested: cpu=2, used: cpu=4, limited: cpu=4",
			pods{pod(resources("cpu", "1"), nil)}, nil, false},
		"several quotas that both fit": {
			forbidden + "exceeded quota: a, requested: pods=1, used: pods=3, limited: pods=3\nexceeded quota: b, requested: cpu=2, used: cpu=4, limited: cpu=4",
			pods{pod(resources("cpu", "2"), nil)}, nil, true},
		"a sidecar counts": {
			forbidden + "exceeded quota: all, requested: cpu=1500m, used: cpu=4, limited: cpu=4", pods{sidecar}, nil, true},
		"a replica of pods, of which one becomes smaller and one larger": {
			forbidden + "exceeded quota: all, requested: requests.nvidia.com/gpu=6, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8",
			pods{gpus("4"), gpus("4")}, pods{gpus("2")}, true},
		"a replica of pods that become larger": {
			forbidden + "exceeded quota: all, requested: requests.nvidia.com/gpu=6, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8",
			pods{gpus("4"), gpus("4")}, pods{gpus("4")}, false},
		"nothing is specified": {forbidden + "failed quota: all: must specify limits.cpu for: main", pods{gpus("1")}, nil, false},
		"a LimitRange":         {forbidden + "maximum cpu usage per Container is 1, but limit is 2", pods{gpus("1")}, nil, false},
		"a quota that no usage is known of": {
			forbidden + "status unknown for quota: all, resources: pods", pods{gpus("1")}, nil, false},
		"quantities that cannot be read": {
			forbidden + "exceeded quota: all, requested: cpu=x, used: cpu=1, limited: cpu=2", pods{gpus("1")}, nil, false},
		"no usage": {
			forbidden + "exceeded quota: all, requested: cpu=1, used: , limited: cpu=2", pods{gpus("1")}, nil, false},
		"nothing": {"", pods{gpus("1")}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := FitsQuotaAfter(tc.message, tc.gone, tc.also); got != tc.want {
				t.Errorf("fits %t, want %t", got, tc.want)
			}
		})
	}
}
