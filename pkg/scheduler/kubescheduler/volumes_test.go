// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

// attaching returns a node of a driver that can attach so many volumes. -1: any number.
func attaching(name string, gpus int64, driver string, volumes int32) []runtime.Object {
	d := storagev1.CSINodeDriver{Name: driver, NodeID: name}
	if volumes >= 0 {
		d.Allocatable = &storagev1.VolumeNodeResources{Count: &volumes}
	}
	return []runtime.Object{wrappers.MakeNode(name).GPUs(gpus).Obj(),
		&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{d}}}}
}

// TestVolumesOfAGang: pods with volumes are planned where their pods would start alone, and refused for the reason that
// applies.
func TestVolumesOfAGang(t *testing.T) {
	t.Parallel()
	const driver = "disks.example.com"
	late := storageClass("late", driver, storagev1.VolumeBindingWaitForFirstConsumer)
	local := storageClass("on-node", "kubernetes.io/no-provisioner", storagev1.VolumeBindingWaitForFirstConsumer)
	ephemeral := func(class string) func(p *wrappers.PodWrapper) []runtime.Object {
		return func(p *wrappers.PodWrapper) []runtime.Object {
			return []runtime.Object{ephemeralClaim(p, class, "1Gi")}
		}
	}
	own := func(p *wrappers.PodWrapper) []runtime.Object {
		p.Claim("own-" + p.Obj().Name)
		return boundClaim("own-"+p.Obj().Name, driver, nil)
	}
	unbound := func(class string) func(p *wrappers.PodWrapper) []runtime.Object {
		return func(p *wrappers.PodWrapper) []runtime.Object {
			p.Claim("own-" + p.Obj().Name)
			return []runtime.Object{pendingClaim("own-"+p.Obj().Name, class, "1Gi")}
		}
	}
	two := func(volumes int32) []runtime.Object {
		return append(attaching("n0", 8, driver, volumes), attaching("n1", 8, driver, volumes)...)
	}
	volumes := func(n int) (out []runtime.Object) {
		for i := range 2 * n {
			out = append(out, localVolume(fmt.Sprintf("v%d", i), "on-node", "1Gi", corev1.LabelHostname, fmt.Sprintf("n%d", i%2)))
		}
		return out
	}
	hundred, fiveEach := []runtime.Object{local}, map[string]int{}
	for i := range 100 {
		node := fmt.Sprintf("n%d", i)
		hundred, fiveEach[node] = append(hundred, wrappers.MakeNode(node).GPUs(8).Obj()), 5
		for k := range 5 {
			hundred = append(hundred, localVolume(fmt.Sprintf("v%d-%d", i, k), "on-node", "1Gi", corev1.LabelHostname, node))
		}
	}
	zone := []runtime.Object{wrappers.MakeNode("n0").GPUs(8).Label("zone", "a").Obj(), wrappers.MakeNode("n1").GPUs(8).Label("zone", "b").Obj()}
	for i := range 2 * maxMatched / 8 {
		zone = append(zone, localVolume(fmt.Sprintf("v%d", i), "on-node", "1Gi", "zone", "a"))
	}
	zone = slices.Clip(append(zone, local))
	for name, tc := range map[string]struct {
		objects []runtime.Object
		pods    int
		volume  func(p *wrappers.PodWrapper) []runtime.Object
		classes int
		want    map[string]int // nodes with how many pods; nil: no plan
		why     string         // a reason of the refusal
	}{
		"ephemeral": {objects: append(two(-1), late), pods: 12, volume: ephemeral("late"), classes: 1, want: map[string]int{"n0": 8, "n1": 4}},
		"ephemeral, a claim is missing": {objects: append(two(-1), late), pods: 4, classes: 2,
			volume: func(p *wrappers.PodWrapper) []runtime.Object {
				if claim := ephemeralClaim(p, "late", "1Gi"); p.Obj().Name != "w-3" {
					return []runtime.Object{claim}
				}
				return nil
			}, why: `waiting for ephemeral volume controller to create the persistentvolumeclaim "w-3-scratch"`},
		"ephemeral, a claim of another": {objects: append(two(-1), late), pods: 4, classes: 2,
			volume: func(p *wrappers.PodWrapper) []runtime.Object {
				claim := ephemeralClaim(p, "late", "1Gi")
				if p.Obj().Name == "w-3" {
					claim.OwnerReferences = nil
				}
				return []runtime.Object{claim}
			}, why: "PVC ml/w-3-scratch was not created for pod ml/w-3 (pod is not owner)"},
		"ephemeral, without a volume that fits": {objects: append(two(-1), local), pods: 4, volume: ephemeral("on-node"), classes: 1, why: noVolume},
		"ephemeral, attached":                   {objects: append(two(3), late), pods: 6, volume: ephemeral("late"), classes: 1, want: map[string]int{"n0": 3, "n1": 3}},
		"attached":                              {objects: two(4), pods: 8, volume: own, classes: 1, want: map[string]int{"n0": 4, "n1": 4}},
		"one too many":                          {objects: two(4), pods: 9, volume: own, classes: 1, why: "node(s) exceed max volume count"},
		"a limit of zero":                       {objects: append(two(0), attaching("n2", 8, driver, 2)...), pods: 2, volume: own, classes: 1, want: map[string]int{"n2": 2}},
		"zero everywhere":                       {objects: two(0), pods: 1, volume: own, classes: 1, why: "node(s) exceed max volume count"},
		"no CSINode":                            {objects: racks(2, 8), pods: 12, volume: own, classes: 1, want: map[string]int{"n0": 8, "n1": 4}},
		"one volume for all": {objects: append(two(1), boundClaim("dataset", driver, nil)...), pods: 12, classes: 1,
			volume: func(p *wrappers.PodWrapper) []runtime.Object { p.Claim("dataset"); return nil }, want: map[string]int{"n0": 8, "n1": 4}},
		"local volumes":              {objects: append(append(two(-1), local), volumes(3)...), pods: 6, volume: unbound("on-node"), classes: 1, want: map[string]int{"n0": 3, "n1": 3}},
		"local volumes of 100 nodes": {objects: hundred, pods: 500, volume: unbound("on-node"), classes: 1, want: fiveEach},
		"many volumes of a zone":     {objects: zone, pods: 8, volume: unbound("on-node"), classes: 1, want: map[string]int{"n0": 8}},
		"volumes of another zone":    {objects: zone[1:], pods: 1, volume: unbound("on-node"), classes: 1, why: noVolume},
		"one volume lacks":           {objects: append(append(two(-1), local), volumes(3)...), pods: 7, volume: unbound("on-node"), classes: 1, why: noVolume},
		"made on demand":             {objects: append(two(-1), late), pods: 12, volume: unbound("late"), classes: 1, want: map[string]int{"n0": 8, "n1": 4}},
		"no such class":              {objects: two(-1), pods: 4, volume: unbound("missing"), classes: 1, why: "pod has unbound immediate PersistentVolumeClaims"},
		"for one pod alone": {objects: append(two(-1), rwop("x")[2]), pods: 3, volume: func(p *wrappers.PodWrapper) []runtime.Object {
			p.Claim("x-" + p.Obj().Name)
			return rwop("x-" + p.Obj().Name)[:2]
		}, classes: 1, want: map[string]int{"n0": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := tc.objects
			pods := members(tc.pods, func(i int) *wrappers.PodWrapper {
				p := worker(i)
				objects = append(objects, tc.volume(p)...)
				return p
			})
			c := newCluster(t, objects...)
			w, classes, problem := c.classWorld(pods)
			if len(classes.Pods) != tc.classes {
				t.Errorf("%d classes, want %d", len(classes.Pods), tc.classes)
			}
			plan, short := placement.Minimum(problem, w, placement.Budget{})
			var got map[string]int
			for _, p := range plan {
				if got == nil {
					got = map[string]int{}
				}
				got[p.Node]++
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pods by node (-want +got):\n%s", diff)
			}
			if tc.want != nil {
				return
			}
			reasons := map[string]int{}
			for _, leaf := range short.Leaves {
				maps.Copy(reasons, leaf.Refusal.Reasons)
			}
			for i := range classes.Pods {
				maps.Copy(reasons, w.Explain(i, "").Reasons)
			}
			if reasons[tc.why] == 0 {
				t.Errorf("refused for %v, want %q", reasons, tc.why)
			}
			if message := podgroup.Explain(problem, w, short).Message; !strings.Contains(message, tc.why) {
				t.Errorf("the message is %q, want it to say %q", message, tc.why)
			}
		})
	}
}

// TestClaimsAppearWhileAPlanIsMade: the first pod of a class passes PreFilter because its claim has been created since
// the pods were classified. The claims of the others may still be missing.
func TestClaimsAppearWhileAPlanIsMade(t *testing.T) {
	t.Parallel()
	objects := append(attaching("n0", 8, "disks.example.com", -1), storageClass("late", "disks.example.com", storagev1.VolumeBindingWaitForFirstConsumer))
	var first *corev1.PersistentVolumeClaim
	pods := members(2, func(i int) *wrappers.PodWrapper {
		p := worker(i)
		if claim := ephemeralClaim(p, "late", "1Gi"); first == nil {
			first = claim
		}
		return p
	})
	c := newCluster(t, objects...)
	classes := new(FilterCache).Classify(c.f, c.nodes, pods, make([]int, len(pods)))
	if err := c.f.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Informer().GetIndexer().Add(first); err != nil {
		t.Fatal(err)
	}
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, classes.options(nil))
	if err != nil {
		t.Fatal(err)
	}
	if node, ok := w.Place(0, ""); ok {
		t.Errorf("a pod of a class of which a claim is missing is placed on %s", node)
	}
	const why = `waiting for ephemeral volume controller to create the persistentvolumeclaim "w-1-scratch"`
	if e := w.Explain(0, ""); e.Reasons[why] == 0 {
		t.Errorf("refused for %v, want %q", e.Reasons, why)
	}
}

// TestRoomForVolumesIsNotFreed: volumes stay attached for a time after a pod ends, so nothing is ended for them.
func TestRoomForVolumesIsNotFreed(t *testing.T) {
	t.Parallel()
	const driver = "disks.example.com"
	objects := attaching("n0", 8, driver, 1)
	objects = append(objects, boundClaim("held", driver, nil)...)
	objects = append(objects, boundClaim("own", driver, nil)...)
	objects = append(objects, classPod("running").Claim("held").Node("n0").Obj(),
		&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "held"}, Spec: storagev1.VolumeAttachmentSpec{
			Attacher: driver, NodeName: "n0", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv-held")}}})
	w, _, _ := newCluster(t, objects...).classWorld([]*corev1.Pod{classPod("a").Claim("own").Obj()})
	if node, ok := w.Place(0, ""); ok {
		t.Errorf("placed on %s, which has attached all that it can", node)
	}
	w.Free([]int{0})
	if node, ok := w.Place(0, ""); ok {
		t.Errorf("without the running pod it is placed on %s, where its volume is still attached", node)
	}
}
