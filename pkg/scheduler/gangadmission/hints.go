// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
)

// EventsToRegister implements fwk.EnqueueExtensions: every event that may make a refused gang fit. The list is rather
// too wide than too narrow: waking a leader unnecessarily costs one plan, not waking it leaves the whole gang
// unscheduled.
func (pl *Admission) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	all := func(resource fwk.EventResource, action fwk.ActionType) fwk.ClusterEventWithHint {
		return fwk.ClusterEventWithHint{Event: fwk.ClusterEvent{Resource: resource, ActionType: action}, QueueingHintFn: pl.afterChange}
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

// afterChange wakes the leader. It also counts the change before the leader can be popped: the informer's handlers
// may run later, and until then the registry would not know that an older gang in back-off is worth another attempt
// (docs/decisions, G16).
func (pl *Admission) afterChange(_ klog.Logger, _ *corev1.Pod, _, _ any) (fwk.QueueingHint, error) {
	pl.registry.ClusterChanged()
	return fwk.Queue, nil
}

// afterPod wakes the leader after an event of a pod with a node, which may release resources or match a pod affinity,
// and after any event of a pod of its own gang, because this pod may be the cause of the refusal.
func (pl *Admission) afterPod(logger klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	old, _ := oldObj.(*corev1.Pod)
	updated, _ := newObj.(*corev1.Pod)
	switch {
	case old != nil && updated == nil: // deleted
		if old.Spec.NodeName != "" {
			return pl.afterChange(logger, pod, oldObj, newObj)
		}
	case old != nil && updated != nil && gangOf(pod) == gangOf(updated):
		return pl.afterChange(logger, pod, oldObj, newObj)
	case old == nil && updated != nil: // newly bound: this can help only by affinity to it
		if updated.Spec.NodeName != "" && pod.Spec.Affinity != nil && pod.Spec.Affinity.PodAffinity != nil {
			return pl.afterChange(logger, pod, oldObj, newObj)
		}
	case updated != nil && updated.Spec.NodeName != "":
		return pl.afterChange(logger, pod, oldObj, newObj)
	}
	return fwk.QueueSkip, nil
}

func gangOf(pod *corev1.Pod) gangstate.Key {
	return gangstate.Key{Namespace: pod.Namespace, Name: pod.Annotations[v2alpha2.PodGroupAnnotation]}
}
