// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/muster-project/muster/test/wrappers"
)

// classesOf returns the number of classes of the pods, which all have one spec.
func (c *cluster) classesOf(cache *FilterCache, pods []*corev1.Pod) int {
	return len(cache.Classify(c.f, c.nodes, pods, make([]int, len(pods))).Pods)
}

func TestLabelsDivideWhereASelectorReadsThem(t *testing.T) {
	t.Parallel()
	const index = "training.kubeflow.org/replica-index"
	indexed := func(edit func(*wrappers.PodWrapper)) []*corev1.Pod {
		return members(1000, func(i int) *wrappers.PodWrapper {
			p := worker(i).Label(index, fmt.Sprint(i))
			edit(p)
			return p
		})
	}
	plain := indexed(func(*wrappers.PodWrapper) {})
	c := newCluster(t, wrappers.MakeNode("n0").GPUs(8).Obj())
	cache := NewFilterCache()
	if got := c.classesOf(cache, plain); got != 1 {
		t.Errorf("pods that differ in a label that nothing reads are %d classes, want 1", got)
	}
	for name, edit := range map[string]func(*wrappers.PodWrapper){
		"own anti-affinity": func(p *wrappers.PodWrapper) { p.ApartFrom("rack", index, "0") },
		"own affinity":      func(p *wrappers.PodWrapper) { p.TogetherWith("rack", index, "0") },
		"own spread constraint": func(p *wrappers.PodWrapper) {
			p.Spec(func(s *corev1.PodSpec) {
				s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}, MatchLabelKeys: []string{index}}}
			})
		},
	} {
		if got := c.classesOf(cache, indexed(edit)); got != 1000 {
			t.Errorf("%s: %d classes, want 1000", name, got)
		}
	}

	// A running pod's selector counts as long as the pod exists.
	running := wrappers.MakePod("running", "ml").UID("running").Label("app", "r").ApartFrom(corev1.LabelHostname, index, "7").Obj()
	bound := c.bind(running, "running", "n0")
	if got := c.classesOf(cache, plain); got != 1000 {
		t.Errorf("with a running pod whose anti-affinity reads the label: %d classes, want 1000", got)
	}
	c.unbind(bound)
	if got := c.classesOf(cache, plain); got != 1 {
		t.Errorf("once that pod is gone: %d classes, want 1", got)
	}
}

func TestClaimsDivideByTheirVolumes(t *testing.T) {
	t.Parallel()
	objects := append(rwop("a"), rwop("b")...)
	for _, o := range objects { // bound, and usable by any number of pods
		if claim, ok := o.(*corev1.PersistentVolumeClaim); ok {
			claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		}
	}
	objects = append(objects[:5], rwop("c")[:2]...) // one StorageClass
	objects = append(objects, unboundClaim("d")...)
	objects = append(objects, unboundClaim("e")[:1]...)
	placed := pendingClaim("placed", "wait", "0")
	placed.Annotations = map[string]string{storagehelpers.AnnSelectedNode: "n0"}
	meant := localVolume("v", "wait", "1Gi", corev1.LabelHostname, "n0")
	meant.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ml", Name: "meant"}
	objects = append(objects, unboundClaim("meant")[0], meant, placed, pendingClaim("large", "wait", "9Gi"))
	objects = append(objects, boundClaim("used", "disks.example.com", nil)...)
	objects = append(objects, wrappers.MakeNode("n0").Obj(), classPod("running").Claim("used").Node("n0").Obj())
	c := newCluster(t, objects...)
	for name, tc := range map[string]struct {
		claims []string
		want   int
	}{
		"bound to volumes without constraints": {[]string{"a", "b"}, 1},
		"shared":                               {[]string{"a", "b", "a"}, 2},
		"each for one pod alone":               {[]string{"a", "c"}, 1},
		"not bound":                            {[]string{"d", "e"}, 1},
		"not bound, shared":                    {[]string{"d", "e", "d"}, 2},
		"of another size":                      {[]string{"d", "large"}, 2},
		"meant for a volume":                   {[]string{"d", "meant"}, 2},
		"with a node":                          {[]string{"d", "placed"}, 2},
		"used by a running pod":                {[]string{"a", "used"}, 2},
		"missing":                              {[]string{"x", "y"}, 1},
	} {
		var pods []*corev1.Pod
		for i, claim := range tc.claims {
			pods = append(pods, worker(i).Claim(claim).Obj())
		}
		if got := c.classesOf(NewFilterCache(), pods); got != tc.want {
			t.Errorf("%s: %d classes, want %d", name, got, tc.want)
		}
	}
}
