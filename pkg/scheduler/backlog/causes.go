// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// causes is a set of kinds of events that may help a refused gang.
type causes uint8

const (
	// moreRoom: a node was added or changed, a pod released resources, or a DeviceClass may offer them.
	moreRoom causes = 1 << iota
	// otherPods: pods were removed or changed labels, or nodes changed labels. Affinity and topology spread depend on
	// both.
	otherPods
	// boundPod: a pod was bound. It helps only pods that must be near another pod, or that spread over domains.
	boundPod
	// otherVolumes: a storage object changed.
	otherVolumes
	// otherClaims: an object of dynamic resource allocation changed.
	otherClaims
	// otherNodes: nodes were added, removed or changed.
	otherNodes
	// nominationGone: a pod for which nodes kept room is gone, or its room is on another node.
	nominationGone
)

// topics returns the topic of each cause in the set.
func (c causes) topics() []gangs.Topic {
	var out []gangs.Topic
	for left := c; left != 0; left &= left - 1 {
		if one := left & -left; one == nominationGone {
			out = append(out, gangs.Anything)
		} else {
			out = append(out, one)
		}
	}
	return out
}

// anything contains every cause. It is used for gangs with pods that are filtered by more than the free resources of
// nodes.
const anything = moreRoom | otherPods | boundPod | otherVolumes | otherClaims | otherNodes | nominationGone

// causesOf returns which causes an event of the scheduler's cache has. 0: none.
func causesOf(event fwk.ClusterEvent, oldObj, newObj any) causes {
	switch event.Resource {
	case fwk.Node:
		return moreRoom | otherPods | otherNodes
	case fwk.Pod, fwk.AssignedPod:
		old, _ := oldObj.(*corev1.Pod)
		updated, _ := newObj.(*corev1.Pod)
		switch {
		case updated == nil && old != nil && old.Spec.NodeName == "" && old.Status.NominatedNodeName != "":
			return nominationGone
		case updated == nil:
			return moreRoom | otherPods
		case old == nil:
			return boundPod
		case event.ActionType&fwk.Update == fwk.Update: // no change that kube-scheduler tells apart, as of the status
			return otherPods
		case event.ActionType&fwk.UpdatePodScaleDown != 0:
			return moreRoom | otherPods
		default:
			return otherPods
		}
	case fwk.PersistentVolume, fwk.PersistentVolumeClaim, fwk.StorageClass, fwk.CSINode, fwk.CSIDriver, fwk.CSIStorageCapacity, fwk.VolumeAttachment:
		return otherVolumes
	case fwk.ResourceClaim, fwk.ResourceSlice:
		return otherClaims
	case fwk.DeviceClass:
		return otherClaims | moreRoom
	case fwk.WildCard:
		return anything
	default:
		return otherPods
	}
}

// dependsOnBound reports whether a pod that is bound may help this one: by required affinity, or because spreading
// counts it.
func dependsOnBound(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			return true
		}
	}
	a := pod.Spec.Affinity
	return a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}
