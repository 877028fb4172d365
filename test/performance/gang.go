// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

// indexLabel is a label that an operator sets to another value on each pod of a gang.
const indexLabel = "training.kubeflow.org/replica-index"

// roleLabel is the label in which pods of flat gangs name their role. It is as long as the label of the sub-group.
const roleLabel = "app.kubernetes.io/component"

// coschedulingLabel names the PodGroup of a pod for Coscheduling, whose PodGroups are another kind.
const coschedulingLabel = "scheduling.x-k8s.io/pod-group"

// gang is a set of pods that start together, for any scheduler.
type gang struct {
	name string
	pods int
	// subGroups of equal size, of which minSubGroups are needed. 0: the gang is flat and needs all of its pods.
	subGroups, minSubGroups int
	// roles of equal size that the pods of a flat gang name in a label, as long as the one with which the pods of a
	// tree name their sub-group: the API server's work grows with the pod. 0: no label.
	roles   int
	gpus    int64 // of each pod; 0: a little CPU instead
	indexed bool  // each pod has a label with its number
	plain   bool  // pods without a gang
	devices bool  // each pod has a ResourceClaim with its name
	// The image and the PriorityClass of the pods, and the node label of the topology level that the gang requires; "":
	// none.
	image, priorityClass, level string
}

// needed is how many pods the gang cannot start without.
func (g gang) needed() int {
	if g.subGroups == 0 {
		return g.pods
	}
	return g.pods / g.subGroups * g.minSubGroups
}

func (g gang) podName(i int) string { return fmt.Sprintf("%s-%05d", g.name, i) }

// api returns the API in which the contestant learns of the gang.
func (g gang) api(c contest) gangAPI {
	if g.plain {
		return noGangs
	}
	return c.api
}

// podGroup returns the PodGroup of the gang for the contestant, nil if there is none.
func (g gang) podGroup(c contest) client.Object {
	switch g.api(c) {
	case musterGangs:
		w := wrappers.MakePodGroup(g.name, namespace)
		if g.subGroups == 0 {
			w.MinMember(int32(g.pods))
		} else {
			w.MinSubGroup(int32(g.minSubGroups))
			for i := range g.subGroups {
				w.SubGroup(subGroupName(i), int32(g.pods/g.subGroups))
			}
		}
		if g.level != "" {
			w.Spec(func(s *v2alpha2.PodGroupSpec) {
				s.TopologyConstraint = &v2alpha2.TopologyConstraint{RequiredTopologyLevel: g.level}
			})
		}
		return w.Obj()
	case coschedulingGangs:
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.x-k8s.io/v1alpha1",
			"kind":       "PodGroup",
			"metadata":   map[string]any{"name": g.name, "namespace": namespace},
			"spec":       map[string]any{"minMember": int64(g.needed())},
		}}
	default:
		return nil
	}
}

func subGroupName(i int) string { return fmt.Sprintf("s%04d", i) }

// pod returns the pod with this number, for the contestant.
func (g gang) pod(c contest, i int) *corev1.Pod {
	w := wrappers.MakePod(g.podName(i), namespace).SchedulerName(c.schedulerName)
	if g.gpus > 0 {
		w.GPUs(g.gpus)
	} else {
		w.CPU("10m")
	}
	if g.indexed {
		w.Label(indexLabel, fmt.Sprint(i))
	}
	w.PriorityClass(g.priorityClass).Spec(func(s *corev1.PodSpec) { s.Containers[0].Image = cmp.Or(g.image, wrappers.Image) })
	if g.devices {
		w.Spec(func(s *corev1.PodSpec) {
			claim := g.podName(i)
			s.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &claim}}
		})
	}
	switch g.api(c) {
	case musterGangs:
		w.Gang(g.name)
		if g.subGroups > 0 {
			w.SubGroup(subGroupName(i / (g.pods / g.subGroups)))
		}
		if g.roles > 0 {
			w.Label(roleLabel, subGroupName(i/(g.pods/g.roles)))
		}
	case coschedulingGangs:
		w.Label(coschedulingLabel, g.name)
	}
	return w.Obj()
}

// podNames returns the names of the gangs' pods, gang by gang.
func podNames(gangs ...gang) []string {
	var names []string
	for _, g := range gangs {
		for i := range g.pods {
			names = append(names, g.podName(i))
		}
	}
	return names
}

// gangOf maps each pod of the gangs to its gang.
func gangOf(gangs []gang) map[string]string {
	of := map[string]string{}
	for _, g := range gangs {
		for _, name := range podNames(g) {
			of[name] = g.name
		}
	}
	return of
}

// equalGangs returns gangs of one size, with names of their own: every pod wants one GPU.
func (o options) equalGangs() []gang {
	gangs := make([]gang, o.gangs)
	for i := range gangs {
		gangs[i] = gang{name: fmt.Sprintf("gang-%04d", i), pods: o.podsPerGang, subGroups: o.subGroups, minSubGroups: o.minSubGroups, gpus: 1}
	}
	return gangs
}

// drainedGangs returns the gangs of a drain in its variant.
func drainedGangs(o options, v variant) []gang {
	gangs := o.equalGangs()
	for i := range gangs {
		switch g := &gangs[i]; v.kind {
		case "whole":
			g.minSubGroups = g.subGroups
		case "flat":
			g.roles, g.subGroups, g.minSubGroups = g.subGroups, 0, 0
		case "bare":
			g.subGroups, g.minSubGroups = 0, 0
		case "claims":
			g.devices, g.gpus = true, 0
		}
	}
	return gangs
}
