// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/test/wrappers"
)

func TestColumns(t *testing.T) {
	t.Parallel()
	three := func() *wrappers.PodGroupWrapper {
		return wrappers.MakePodGroup("g", "ml").SubGroup("a", 1).SubGroup("b", 2).SubGroup("c", 1)
	}
	tests := map[string]struct {
		group           *wrappers.PodGroupWrapper
		gpus, held      int64
		needs, wantGPUs string
	}{
		"nothing is said":        {wrappers.MakePodGroup("g", "ml"), 0, 0, "1 pod", ""},
		"a number of pods":       {wrappers.MakePodGroup("g", "ml").MinMember(8), 8, 0, "8 pods", "0/8"},
		"all children":           {three(), 32, 32, "all", "32/32"},
		"some children":          {three().MinSubGroup(2), 32, 24, "2 of 3", "24/32"},
		"as many as there are":   {three().MinSubGroup(3), 0, 0, "all", ""},
		"the old form means all": {three().MinMember(4), 0, 0, "all", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := tc.group.Obj()
			tree, err := Tree(&group.Spec)
			if err != nil {
				t.Fatal(err)
			}
			s := Status(Facts{Namespace: "ml", Name: "g", Group: group, Tree: tree, GPUs: tc.gpus, HeldGPUs: tc.held}, now)
			if s.Needs != tc.needs || s.GPUs != tc.wantGPUs {
				t.Errorf("needs %q, GPUs %q; want %q, %q", s.Needs, s.GPUs, tc.needs, tc.wantGPUs)
			}
		})
	}
}

func TestGPUs(t *testing.T) {
	t.Parallel()
	container := func(name corev1.ResourceName, n string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(n), "cpu": resource.MustParse("4")}}}
	}
	sidecar := container("nvidia.com/gpu", "1")
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	tests := map[string]struct {
		init, containers []corev1.Container
		want             int64
	}{
		"none":                                {nil, []corev1.Container{container("memory", "1Gi")}, 0},
		"two containers":                      {nil, []corev1.Container{container("nvidia.com/gpu", "4"), container("nvidia.com/gpu", "3")}, 7},
		"another vendor":                      {nil, []corev1.Container{container("amd.com/gpu", "8")}, 8},
		"a third one":                         {nil, []corev1.Container{container("gpu.intel.com/i915", "2")}, 2},
		"slices":                              {nil, []corev1.Container{container("nvidia.com/mig-1g.5gb", "2")}, 2},
		"no GPUs but another device":          {nil, []corev1.Container{container("rdma/hca", "2")}, 0},
		"an init container before the others": {[]corev1.Container{container("nvidia.com/gpu", "4")}, []corev1.Container{container("nvidia.com/gpu", "3")}, 4},
		"a sidecar beside the others":         {[]corev1.Container{sidecar}, []corev1.Container{container("nvidia.com/gpu", "3")}, 4},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := GPUs(&corev1.Pod{Spec: corev1.PodSpec{InitContainers: tc.init, Containers: tc.containers}}); got != tc.want {
				t.Errorf("%d GPUs, want %d", got, tc.want)
			}
		})
	}
}
