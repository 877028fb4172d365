// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/test/wrappers"
)

// TestRefusedBy plans one pod that nodes refuse, and compares what may have refused it.
func TestRefusedBy(t *testing.T) {
	t.Parallel()
	using := func(w *wrappers.PodWrapper, claim string) *wrappers.PodWrapper {
		return w.Spec(func(s *corev1.PodSpec) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}})
		})
	}
	// shared returns a bound claim that several pods may use, whose volume has these labels.
	shared := func(name string, labels map[string]string) []runtime.Object {
		objects := rwop(name)
		objects[0].(*corev1.PersistentVolumeClaim).Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		objects[1].(*corev1.PersistentVolume).Labels = labels
		return objects
	}
	zone := map[string]string{corev1.LabelTopologyZone: "z9"}
	for name, tc := range map[string]struct {
		pod     *wrappers.PodWrapper
		objects []runtime.Object
		running []*wrappers.PodWrapper
		want    Inputs
		unknown bool // it is not known where its resources come from
	}{
		"only room":                             {pod: classPod("p").GPUs(9)},
		"room, its volume is not asked":         {pod: using(classPod("p").GPUs(9), "data"), objects: shared("data", zone)},
		"its volume is in no zone of the nodes": {pod: using(classPod("p").GPUs(1), "data"), objects: shared("data", zone), want: Inputs{Volumes: true}},
		"its claim does not exist":              {pod: using(classPod("p").GPUs(9), "data"), want: Inputs{Volumes: true, Disks: true}, unknown: true},
		"its claim is used by the only pod":     {pod: using(classPod("p"), "data"), objects: rwop("data"), running: []*wrappers.PodWrapper{using(classPod("q"), "data")}, want: Inputs{Volumes: true, Disks: true, Attachments: true}},
		"its port is used":                      {pod: classPod("p").HostPort(80), running: []*wrappers.PodWrapper{classPod("q").HostPort(80)}, want: Inputs{Ports: true}},
		"no node has the device that it claims": {pod: withClaims(classPod("p"), "gpu"), want: Inputs{Devices: true}, unknown: true,
			objects: []runtime.Object{deviceClass("gpu", "driver", ""), claim("gpu", resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{exactly("gpu", 1)}})}},
		"no pod near which it must be": {pod: classPod("p").TogetherWith("rack", "app", "q"), want: Inputs{Labels: true}},
		"spreading of its own":         {pod: spread(classPod("p").GPUs(9), "rack", "p", 1), want: Inputs{Labels: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := slices.Concat(tc.objects, []runtime.Object{
				wrappers.MakeNode("n0").GPUs(8).Label("rack", "r0").Label(corev1.LabelTopologyZone, "z0").Obj(),
			})
			c := newCluster(t, objects...)
			for _, pod := range tc.running {
				c.bind(pod.Obj(), pod.Obj().Name, "n0")
			}
			w := c.world(tc.pod.Obj())
			if node, ok := w.Place(0, ""); ok {
				t.Fatalf("the pod is placed on %s", node)
			}
			if got, counted := w.RefusedBy(0); got != tc.want || counted == tc.unknown {
				t.Errorf("refused by %+v, counted: %t, want %+v, %t", got, counted, tc.want, !tc.unknown)
			}
		})
	}
}
