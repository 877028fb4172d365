// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// group returns the PodGroup of that name, nil if there is none.
func (s scene) group(name string) *v2alpha2.PodGroup { return named(s.groups, name) }

func (s scene) set(name string) *v1alpha1.PodCliqueSet { return named(s.sets, name) }

func (s scene) scalingGroup(name string) *v1alpha1.PodCliqueScalingGroup {
	return named(s.scalingGroups, name)
}

func (s scene) clique(name string) *v1alpha1.PodClique { return named(s.cliques, name) }

// named returns the object of that name, nil if there is none.
func named[T metav1.Object](objects []T, name string) T {
	for _, object := range objects {
		if object.GetName() == name {
			return object
		}
	}
	var none T
	return none
}

// subGroup returns the status of one sub-group in the status of its PodGroup, the zero value if it has none.
func (s scene) subGroup(group, name string) v2alpha2.SubGroupStatus {
	if g := s.group(group); g != nil {
		for _, status := range g.Status.SubGroups {
			if status.Name == name {
				return status
			}
		}
	}
	return v2alpha2.SubGroupStatus{}
}

// bound counts, per leaf, the pods of a gang that are bound to a node, have not finished, and are not being deleted.
func (s scene) bound(group string) gang.Counts {
	counts := gang.Counts{}
	for _, pod := range s.pods {
		if gangOf(pod) == group && holdsGPUs(pod) && pod.DeletionTimestamp == nil {
			counts[pod.Labels[v2alpha2.SubGroupLabel]]++
		}
	}
	return counts
}

// below returns the pods of a replica of a scaling group.
func (s scene) below(group string, replica int) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range s.pods {
		if pod.Labels[v1alpha1.LabelPodCliqueScalingGroup] == group &&
			pod.Labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex] == strconv.Itoa(replica) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// created counts the pods of a gang that exist, whatever state they are in.
func (s scene) created(group string) int {
	n := 0
	for _, pod := range s.pods {
		if gangOf(pod) == group {
			n++
		}
	}
	return n
}

// held returns how many GPUs the pods of a gang hold.
func (s scene) held(group string) int {
	n := 0
	for _, pod := range s.pods {
		if gangOf(pod) == group && holdsGPUs(pod) {
			n += gpus(pod)
		}
	}
	return n
}

// free returns how many GPUs of schedulable nodes are not held by a pod.
func (s scene) free() int {
	n := 0
	for _, node := range s.nodes {
		if takesPods(node) {
			n += strings.Count(s.cells(node), freeCell)
		}
	}
	return n
}

// cells returns one character per GPU of the node: the letters of the gangs that hold them, sorted, then the unused ones.
func (s scene) cells(node *corev1.Node) string {
	capacity := node.Status.Capacity[controlplane.GPUResource]
	var held []string
	for _, pod := range s.pods {
		if pod.Spec.NodeName == node.Name && holdsGPUs(pod) {
			letter, known := letters[gangOf(pod)]
			if !known {
				letter = strangerCell
			}
			for range gpus(pod) {
				held = append(held, letter)
			}
		}
	}
	slices.Sort(held)
	unused := freeCell
	if !takesPods(node) {
		unused = closedCell
	}
	return strings.Join(held, "") + strings.Repeat(unused, max(0, int(capacity.Value())-len(held)))
}

const (
	freeCell     = "."
	closedCell   = "x" // unused, on a node that takes no pods
	strangerCell = "?" // held by a pod that is in no gang
)

func gangOf(pod *corev1.Pod) string { return pod.Annotations[v2alpha2.PodGroupAnnotation] }

// holdsGPUs reports whether the pod is on a node and has not finished; a pod that is being deleted still holds its GPUs.
func holdsGPUs(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

func gpus(pod *corev1.Pod) int {
	n := 0
	for _, container := range pod.Spec.Containers {
		quantity := container.Resources.Requests[controlplane.GPUResource]
		n += int(quantity.Value())
	}
	return n
}

func takesPods(node *corev1.Node) bool { return !node.Spec.Unschedulable }

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
		created, bound := gang.Counts{}, gang.Counts{}
		for _, pod := range s.pods {
			if gangOf(pod) != g.Name || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed {
				continue
			}
			leaf := pod.Labels[v2alpha2.SubGroupLabel]
			created[leaf]++
			if pod.Spec.NodeName != "" {
				bound[leaf]++
			}
		}
		tree, err := podgroup.Tree(&g.Spec)
		if err != nil {
			continue // its picture has the error
		}
		for _, leaf := range tree.Leaves() {
			if leaf == tree.Root() {
				continue // the status of a PodGroup without sub-groups counts the minimum only
			}
			status := s.subGroup(g.Name, leaf.Name())
			if int(status.Created) != created[leaf.Name()] || int(status.Bound) != bound[leaf.Name()] {
				return false
			}
		}
		if minimum := tree.MinPods(); g.Status.Scheduled != fmt.Sprintf("%d/%d", minimum-tree.MissingPods(bound), minimum) {
			return false
		}
	}
	return true
}

// surplus returns how many pods above the minimum are bound, according to the status of an admitted gang.
func surplus(g *v2alpha2.PodGroup) int {
	tree, err := podgroup.Tree(&g.Spec)
	if err != nil || g.Status.Phase != v2alpha2.PodGroupAdmitted {
		return 0
	}
	n := 0
	for _, sub := range g.Status.SubGroups {
		if leaf := tree.Group(sub.Name); leaf != nil && leaf.IsLeaf() {
			n += int(sub.Bound)
		}
	}
	return max(0, n-tree.MinPods())
}

// made lists the objects that exist for a PodCliqueSet as counts by kind, "nothing" if there are none.
func (s scene) made(set string) string {
	var parts []string
	count := func(n int, one, more string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, plural(n, one, more)))
		}
	}
	count(len(ofSet(s.groups, set)), "PodGroup", "PodGroups")
	count(len(ofSet(s.scalingGroups, set)), "PodCliqueScalingGroup", "PodCliqueScalingGroups")
	count(len(ofSet(s.cliques, set)), "PodClique", "PodCliques")
	count(len(ofSet(s.pods, set)), "pod", "pods")
	count(len(ofSet(s.services, set)), "Service", "Services")
	switch n := len(parts); n {
	case 0:
		return "nothing"
	case 1:
		return parts[0]
	default:
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
}

func ofSet[T metav1.Object](objects []T, set string) []T {
	var of []T
	for _, object := range objects {
		if object.GetLabels()[v1alpha1.LabelPartOf] == set {
			of = append(of, object)
		}
	}
	return of
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
