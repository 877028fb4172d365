// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

func TestPodGroupsOfAGang(t *testing.T) {
	t.Parallel()
	flat := gang{name: "g", pods: 8}
	tree := gang{name: "g", pods: 8, subGroups: 4, minSubGroups: 3}
	for name, test := range map[string]struct {
		gang gang
		api  gangAPI
		kind string
		want map[string]any // the spec; nil: there is no PodGroup
	}{
		"a flat gang needs all of its pods":                     {flat, musterGangs, "PodGroup.v2alpha2.scheduling.run.ai", map[string]any{"minMember": int64(8)}},
		"a flat gang for Coscheduling":                          {flat, coschedulingGangs, "PodGroup.v1alpha1.scheduling.x-k8s.io", map[string]any{"minMember": int64(8)}},
		"a tree is as much as it needs where it has to be flat": {tree, coschedulingGangs, "PodGroup.v1alpha1.scheduling.x-k8s.io", map[string]any{"minMember": int64(6)}},
		"without gangs there is none":                           {gang: flat, api: noGangs},
		"pods without a gang have none":                         {gang: gang{name: "g", pods: 8, plain: true}, api: musterGangs},
		"a tree": {tree, musterGangs, "PodGroup.v2alpha2.scheduling.run.ai", map[string]any{
			"minSubGroup": int64(3),
			"subGroups": []any{
				map[string]any{"name": "s0000", "minMember": int64(2)}, map[string]any{"name": "s0001", "minMember": int64(2)},
				map[string]any{"name": "s0002", "minMember": int64(2)}, map[string]any{"name": "s0003", "minMember": int64(2)},
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.gang.podGroup(contest{api: test.api})
			if test.want == nil {
				if got != nil {
					t.Errorf("got %v, want none", got)
				}
				return
			}
			if kind := got.GetObjectKind().GroupVersionKind(); kind.Kind+"."+kind.Version+"."+kind.Group != test.kind {
				t.Errorf("kind %s, want %s", kind, test.kind)
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(got)
			if err != nil {
				t.Fatal(err)
			}
			if got.GetName() != "g" || got.GetNamespace() != namespace {
				t.Errorf("name %s/%s", got.GetNamespace(), got.GetName())
			}
			if diff := cmp.Diff(test.want, content["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodsOfAGang(t *testing.T) {
	t.Parallel()
	tree := gang{name: "g", pods: 8, subGroups: 4, minSubGroups: 3, gpus: 2, indexed: true, image: "registry.example/other:1"}
	got := tree.pod(contestNamed(muster), 5)
	want := wrappers.MakePod("g-00005", namespace).SchedulerName("muster-scheduler").GPUs(2).Label(indexLabel, "5").Gang("g").SubGroup("s0002").
		Spec(func(s *corev1.PodSpec) { s.Containers[0].Image = "registry.example/other:1" }).Obj()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("muster (-want +got):\n%s", diff)
	}
	got = gang{name: "g", pods: 8, devices: true}.pod(contestNamed(stock), 5)
	want = wrappers.MakePod("g-00005", namespace).SchedulerName("default-scheduler").CPU("10m").Spec(func(s *corev1.PodSpec) {
		claim := "g-00005"
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &claim}}
	}).Obj()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a pod with a device (-want +got):\n%s", diff)
	}
	got = tree.pod(contestNamed(coscheduling), 5)
	if got.Labels[coschedulingLabel] != "g" || got.Spec.SchedulerName != "default-scheduler" || got.Annotations[v2alpha2.PodGroupAnnotation] != "" {
		t.Errorf("coscheduling: %v %v %s", got.Labels, got.Annotations, got.Spec.SchedulerName)
	}
	got = tree.pod(contestNamed(stock), 5)
	if len(got.Annotations) != 0 || got.Labels[v2alpha2.SubGroupLabel] != "" || got.Labels[coschedulingLabel] != "" {
		t.Errorf("stock: %v %v", got.Labels, got.Annotations)
	}
}

// The pods of flat gangs are as large as those of the trees with which they are compared.
func TestPodsOfTreesAndFlatGangsAreOfOneSize(t *testing.T) {
	t.Parallel()
	found, err := parse([]string{"-shape=trees"})
	if err != nil {
		t.Fatal(err)
	}
	size := func(kind string) int {
		g := drainedGangs(found[0].o, variant{kind: kind})[0]
		content, err := g.pod(contestNamed(muster), 31).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return len(content)
	}
	if trees, whole, flat, bare := size("trees"), size("whole"), size("flat"), size("bare"); whole != trees || flat != trees || bare >= trees {
		t.Errorf("pods of trees have %d bytes, of whole %d, of flat %d, of bare %d", trees, whole, flat, bare)
	}
}

func TestWaitingGangs(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]struct{ gangs, pods, subGroups int }{
		"none":          {},
		"gangs:250":     {gangs: 250, pods: 2000},
		"images:2":      {gangs: 2, pods: 16},
		"trees:10x1024": {gangs: 10, pods: 10240, subGroups: 1024},
		"levels:2":      {gangs: 2, pods: 16},
		"preemptors:2":  {gangs: 2, pods: 16},
		"plain:2000":    {gangs: 1, pods: 2000},
	} {
		v, err := parseVariant(s)
		if err != nil {
			t.Fatal(err)
		}
		gangs := waitingGangs(options{gpus: 8}, v)
		if pods := len(podNames(gangs...)); len(gangs) != want.gangs || pods != want.pods {
			t.Errorf("%s: %d gangs with %d pods, want %d and %d", s, len(gangs), pods, want.gangs, want.pods)
		}
		for i, g := range gangs {
			if g.plain != (v.kind == "plain") || g.gpus != 8 && v.kind != "preemptors" || v.kind == "preemptors" && (g.gpus != 9 || g.priorityClass != highPriority) || g.subGroups != want.subGroups || v.kind == "images" && i > 0 && g.image == gangs[0].image {
				t.Errorf("%s: %+v", s, g)
			}
			level := ""
			if group, ok := g.podGroup(contestNamed(muster)).(*v2alpha2.PodGroup); ok && group.Spec.TopologyConstraint != nil {
				level = group.Spec.TopologyConstraint.RequiredTopologyLevel
			}
			if want := map[bool]string{true: controlplane.BlockLabel}[v.kind == "levels"]; level != want {
				t.Errorf("%s: requires %q, want %q", s, level, want)
			}
		}
	}
}
