package gangadmission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangstate"
)

// EventsToRegister implements fwk.EnqueueExtensions: everything that may make a refused gang fit. Too wide rather than too
// narrow: a leader that is woken in vain costs one plan, one that sleeps on costs its user the whole gang.
func (pl *Admission) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	all := func(resource fwk.EventResource, action fwk.ActionType) fwk.ClusterEventWithHint {
		return fwk.ClusterEventWithHint{Event: fwk.ClusterEvent{Resource: resource, ActionType: action}, QueueingHintFn: pl.afterChange}
	}
	return []fwk.ClusterEventWithHint{
		// A node that goes may take with it a topology domain that pods have to be spread over.
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

// afterChange wakes the leader. It also counts the change, before the leader can be popped: the informer's handlers may
// run later, and until then an older gang in back-off would not be known to be worth another try (docs/decisions, G16).
func (pl *Admission) afterChange(_ klog.Logger, _ *corev1.Pod, _, _ any) (fwk.QueueingHint, error) {
	pl.registry.ClusterChanged()
	return fwk.Queue, nil
}

// afterPod wakes the leader for a pod that gives something up or could be one that affinity asks for: one that had a node.
// And for whatever happens to a pod of its own gang: it may be what the gang was refused for.
func (pl *Admission) afterPod(logger klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	old, _ := oldObj.(*corev1.Pod)
	updated, _ := newObj.(*corev1.Pod)
	switch {
	case old != nil && updated == nil: // gone
		if old.Spec.NodeName != "" {
			return pl.afterChange(logger, pod, oldObj, newObj)
		}
	case old != nil && updated != nil && gangOf(pod) == gangOf(updated):
		return pl.afterChange(logger, pod, oldObj, newObj)
	case old == nil && updated != nil: // came to run: only affinity to it can help
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
