package gangadmission

import (
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// causes is a set of kinds of events that may help a refused gang.
type causes uint8

const (
	// moreRoom: a node came or changed, or a pod gave something up.
	moreRoom causes = 1 << iota
	// otherPods: pods came, went or changed labels, or nodes their labels: affinity and spread look at both.
	otherPods
	// otherVolumes: an object of storage changed.
	otherVolumes
	// otherClaims: an object of dynamic resource allocation changed.
	otherClaims
	// nominationGone: a pod that other nodes kept room for is gone, or its room is elsewhere.
	nominationGone
)

// anything is every cause: for gangs with pods that are judged by more than what nodes have free.
const anything = moreRoom | otherPods | otherVolumes | otherClaims | nominationGone

// causesOf returns what an event of the scheduler's cache may help with. 0: nothing.
func causesOf(event fwk.ClusterEvent, oldObj, newObj any) causes {
	switch event.Resource {
	case fwk.Node:
		return moreRoom | otherPods
	case fwk.Pod, "AssignedPod":
		old, _ := oldObj.(*corev1.Pod)
		updated, _ := newObj.(*corev1.Pod)
		switch {
		case updated == nil && old != nil && old.Spec.NodeName == "":
			return nominationGone
		case updated == nil:
			return moreRoom | otherPods
		case old == nil:
			return otherPods
		case event.ActionType&fwk.UpdatePodScaleDown != 0:
			return moreRoom | otherPods
		default:
			return otherPods
		}
	case fwk.PersistentVolume, fwk.PersistentVolumeClaim, fwk.StorageClass, fwk.CSINode, fwk.CSIDriver, fwk.CSIStorageCapacity, fwk.VolumeAttachment:
		return otherVolumes
	case fwk.ResourceClaim, fwk.ResourceSlice, fwk.DeviceClass:
		return otherClaims
	case fwk.WildCard:
		return anything
	default:
		return otherPods
	}
}
