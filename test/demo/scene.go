// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/controlplane"
)

// scene is the cluster at one moment: API objects as the API server has them, without any state of the demo.
type scene struct {
	nodes    []*corev1.Node
	pods     []*corev1.Pod
	services []*corev1.Service
	groups   []*v2alpha2.PodGroup

	sets          []*v1alpha1.PodCliqueSet
	scalingGroups []*v1alpha1.PodCliqueScalingGroup
	cliques       []*v1alpha1.PodClique
}

// group returns the PodGroup of that name, an empty one if there is none.
func (s scene) group(name string) *v2alpha2.PodGroup { return named(s.groups, name) }

// set returns the PodCliqueSet of that name, an empty one if there is none.
func (s scene) set(name string) *v1alpha1.PodCliqueSet { return named(s.sets, name) }

// named returns the object of that name, an empty one if there is none.
func named[T any, P interface {
	*T
	metav1.Object
}](objects []P, name string) P {
	for _, object := range objects {
		if object.GetName() == name {
			return object
		}
	}
	return new(T)
}

// subGroup returns the status of one sub-group in the status of its PodGroup, the zero value if it has none.
func subGroup(g *v2alpha2.PodGroup, name string) v2alpha2.SubGroupStatus {
	for _, status := range g.Status.SubGroups {
		if status.Name == name {
			return status
		}
	}
	return v2alpha2.SubGroupStatus{}
}

// where returns the objects that satisfy is.
func where[T any](objects []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(objects), func(o T) bool { return !is(o) })
}

// each reports whether there are n pods, and all of them satisfy is.
func each(pods []*corev1.Pod, n int, is func(*corev1.Pod) bool) bool {
	return len(pods) == n && len(where(pods, is)) == n
}

// ofSet returns the objects that belong to a PodCliqueSet.
func ofSet[T metav1.Object](objects []T, set string) []T {
	return where(objects, func(o T) bool { return o.GetLabels()[v1alpha1.LabelPartOf] == set })
}

// ofGang returns the pods of a gang, whatever state they are in.
func (s scene) ofGang(name string) []*corev1.Pod {
	return where(s.pods, func(pod *corev1.Pod) bool { return gangOf(pod) == name })
}

// below returns the pods of a replica of a scaling group.
func (s scene) below(group string, replica int) []*corev1.Pod {
	return where(s.pods, func(pod *corev1.Pod) bool {
		return pod.Labels[v1alpha1.LabelPodCliqueScalingGroup] == group &&
			pod.Labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex] == strconv.Itoa(replica)
	})
}

// bound counts, per leaf, the pods of a gang that are bound to a node, have not finished, and are not being deleted.
func (s scene) bound(group string) gang.Counts {
	counts := gang.Counts{}
	for _, pod := range s.ofGang(group) {
		if holdsGPUs(pod) && pod.DeletionTimestamp == nil {
			counts[pod.Labels[v2alpha2.SubGroupLabel]]++
		}
	}
	return counts
}

// held returns how many GPUs the pods of a gang hold.
func (s scene) held(group string) int {
	n := 0
	for _, pod := range where(s.ofGang(group), holdsGPUs) {
		n += gpus(pod)
	}
	return n
}

// free returns how many GPUs of schedulable nodes are not held by a pod.
func (s scene) free() int {
	n := 0
	for _, node := range s.nodes {
		n += strings.Count(s.cells(node), freeCell)
	}
	return n
}

// cells returns one character per GPU of the node: the letters of the gangs that hold them, sorted, then the unused
// ones.
func (s scene) cells(node *corev1.Node) string {
	capacity := node.Status.Capacity[controlplane.GPUResource]
	var held []string
	for _, pod := range where(s.pods, holdsGPUs) {
		if pod.Spec.NodeName == node.Name {
			held = append(held, slices.Repeat([]string{letterOf(gangOf(pod))}, gpus(pod))...)
		}
	}
	slices.Sort(held)
	unused := freeCell
	if node.Spec.Unschedulable {
		unused = closedCell
	}
	return strings.Join(held, "") + strings.Repeat(unused, max(0, int(capacity.Value())-len(held)))
}

const (
	freeCell     = "."
	closedCell   = "x" // unused, on a node that takes no pods
	strangerCell = "?" // held by a pod that is in no gang
)

// letterOf returns the letter that marks the GPUs of a gang.
func letterOf(name string) string {
	if i := slices.Index(gangs, name); i >= 0 {
		return string(rune('A' + i))
	}
	return strangerCell
}

func gangOf(pod *corev1.Pod) string { return pod.Annotations[v2alpha2.PodGroupAnnotation] }

// holdsGPUs reports whether the pod is on a node and has not finished; a pod that is being deleted still holds its
// GPUs.
func holdsGPUs(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

func gpus(pod *corev1.Pod) int {
	quantity := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[controlplane.GPUResource]
	return int(quantity.Value())
}

func total(counts gang.Counts) int {
	n := 0
	for _, k := range counts {
		n += k
	}
	return n
}

// upToDate reports whether the status of every PodGroup counts the pods that exist. It follows them within two seconds.
func (s scene) upToDate() bool {
	for _, g := range s.groups {
		tree, err := podgroup.Tree(&g.Spec)
		if err != nil {
			continue // its picture has the error
		}
		bound := gang.Counts{} // with those that have succeeded
		for _, pod := range s.ofGang(g.Name) {
			if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed {
				bound[pod.Labels[v2alpha2.SubGroupLabel]]++
			}
		}
		for _, leaf := range tree.Leaves() {
			// The status of a PodGroup without sub-groups counts the minimum only.
			if leaf != tree.Root() && int(subGroup(g, leaf.Name()).Bound) != bound[leaf.Name()] {
				return false
			}
		}
		if minimum := tree.MinPods(); g.Status.Scheduled != fmt.Sprintf("%d/%d", minimum-tree.MissingPods(bound), minimum) {
			return false
		}
	}
	return true
}
