// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// EventsToRegister implements fwk.EnqueueExtensions: every event that may make a refused gang fit. The scheduler passes
// only registered events to its queue, which reports them to Backlog.Observe. The hints concern pods
// without a gang that were refused because of reservations (filterPlain). Events without a hint wake them.
func (pl *Admission) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	all := func(resource fwk.EventResource, action fwk.ActionType) fwk.ClusterEventWithHint {
		return fwk.ClusterEventWithHint{Event: fwk.ClusterEvent{Resource: resource, ActionType: action}}
	}
	return []fwk.ClusterEventWithHint{
		// Removing a node may remove a topology domain over which pods must be spread.
		all(fwk.Node, fwk.Add|fwk.Delete|fwk.UpdateNodeAllocatable|fwk.UpdateNodeLabel|fwk.UpdateNodeTaint|fwk.UpdateNodeDeclaredFeature),
		{
			Event:          fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete | fwk.UpdatePodScaleDown | fwk.UpdatePodLabel | fwk.UpdatePodGeneratedResourceClaim | fwk.Add},
			QueueingHintFn: pl.afterPod,
		},
		all(fwk.PersistentVolumeClaim, fwk.Add|fwk.Update),
		all(fwk.PersistentVolume, fwk.Add|fwk.Update),
		all(fwk.StorageClass, fwk.Add|fwk.Update),
		all(fwk.CSINode, fwk.Add|fwk.Update),
		all(fwk.CSIDriver, fwk.Update),
		all(fwk.CSIStorageCapacity, fwk.Add|fwk.Update),
		all(fwk.VolumeAttachment, fwk.Delete),
		all(fwk.ResourceClaim, fwk.Add|fwk.Update|fwk.Delete),
		all(fwk.ResourceSlice, fwk.Add|fwk.Update),
		all(fwk.DeviceClass, fwk.Add|fwk.Update),
	}, nil
}

// afterPod wakes the pod after an event of a pod with a node, which may release resources or match a pod affinity, and
// after a change of itself.
func (pl *Admission) afterPod(_ klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	old, _ := oldObj.(*corev1.Pod)
	updated, _ := newObj.(*corev1.Pod)
	helps := false
	switch {
	case updated == nil: // deleted
		helps = old != nil && old.Spec.NodeName != ""
	case old == nil: // newly bound: this can help only by affinity to it
		helps = updated.Spec.NodeName != "" && pod.Spec.Affinity != nil && pod.Spec.Affinity.PodAffinity != nil
	default:
		helps = updated.Spec.NodeName != "" || updated.UID == pod.UID
	}
	if helps {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}
