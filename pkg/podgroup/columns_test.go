// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
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

// The column of the summary is narrow: its first words are the cause, and no other column says them.
func TestBrief(t *testing.T) {
	t.Parallel()
	eight := gang.Counts{"": 8}
	refused := func(reason v2alpha2.Reason, text string) Refusal { return Refusal{Reason: reason, Message: text} }
	for name, tc := range map[string]struct {
		facts Facts
		want  string
	}{
		"too little is free": {Facts{Created: eight, Usable: eight, Refused: refused(v2alpha2.ReasonInsufficientGPUs, "the gang needs 24 nvidia.com/gpu for 6 pods, 8 are free; 5 nodes: Insufficient nvidia.com/gpu")},
			"needs 24 nvidia.com/gpu for 6 pods, 8 are free; 5 nodes: In…"},
		"a node is cordoned": {Facts{Created: eight, Usable: eight, Refused: refused(v2alpha2.ReasonNodesUnavailable, "1 node cordoned (n; 8 nvidia.com/gpu, 8 free): uncordon it; the gang needs 8")},
			"1 node cordoned (n; 8 nvidia.com/gpu, 8 free): uncordon it;…"},
		"no pod exists": {Facts{}, "needs 8 pods, 0 exist; pods name it by annotation pod-group…"},
		"a plan failed": {Facts{Created: eight, Usable: eight, Failures: 1, Failure: "binding pod a to node n1: denied"},
			"1 planned attempt failed: binding pod a to node n1: denied;…"},
		"pods are gated": {Facts{Created: eight, Gated: 8}, "0 of 8 needed pods can be placed; 8 pods with scheduling ga…"},
		"it runs":        {Facts{Created: eight, Usable: eight, Bound: eight}, "the minimum is bound"},
		"it runs, and more waits": {Facts{Created: eight, Usable: eight, Bound: gang.Counts{"": 9}, Refused: refused(v2alpha2.ReasonFragmented, "the gang needs 4 on one node; more")},
			"more wait, Fragmented: the gang needs 4 on one node; 1 pod …"},
		"it starts by a time that is known": {Facts{Created: eight, Usable: eight, Promised: &Promised{Nodes: []string{"n1"}, Starts: time.Date(2026, 3, 1, 14, 20, 0, 0, time.UTC)},
			Refused: refused(v2alpha2.ReasonInsufficientGPUs, "the gang needs 24 nvidia.com/gpu for 6 pods, 8 are free")},
			"starts by 2026-03-01 14:20 UTC; needs 24 nvidia.com/gpu for…"},
		"it runs in a rack": {Facts{Created: eight, Usable: eight, Bound: eight, Nodes: map[string][]string{"": {"n1"}}, NodeLabels: fabric()}, "rack r1; the minimum is bound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := tc.facts
			f.Group = flat().Spec(constrain("", preferring(rackLabel))).Obj()
			tree, err := Tree(&f.Group.Spec)
			if err != nil {
				t.Fatal(err)
			}
			f.Tree = tree
			if got := Status(f, now).Brief; got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
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
