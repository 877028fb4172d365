// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
)

// Topics of events of host ports, volumes and devices. An event has the topics of the objects that it concerns; if it
// cannot be told which these are, that of all gangs that wait for such an event. The stock plugins' queueing hints
// decide what an event may help.
type (
	// portTopic: a pod that used the host port was removed.
	portTopic struct {
		ip, protocol string // ip "": any address of the node
		port         int32
	}
	volumeClaimTopic types.NamespacedName // a PersistentVolumeClaim, or its PersistentVolume
	claimUserTopic   types.NamespacedName // a pod that used the PersistentVolumeClaim was removed
	volumeTopic      struct{ name string }
	unboundTopic     struct{ class string } // a PersistentVolume of the StorageClass that is bound to no claim
	deviceClaimTopic types.NamespacedName   // a ResourceClaim
)

const (
	anyVolume = "any volume"
	anyDevice = "any device"
	// disksReleased: a removed pod used disks without a claim. volumesReleased: it used volumes that a node attaches.
	disksReleased   = "disks released"
	volumesReleased = "volumes released"

	// maxClaimTopics bounds the topics of the claims of one gang.
	maxClaimTopics = 10_000
)

// objectTopics returns the topics of an event, beside those of the labels of pods.
func objectTopics(event fwk.ClusterEvent, oldObj, newObj any) []gangs.Topic {
	switch event.Resource {
	case fwk.Pod, fwk.AssignedPod:
		if pod, ok := oldObj.(*corev1.Pod); ok && newObj == nil {
			return append(releasedPorts(pod), releasedVolumes(pod)...)
		}
		return nil
	case fwk.PersistentVolumeClaim:
		if claim, ok := latest[corev1.PersistentVolumeClaim](oldObj, newObj); ok {
			return []gangs.Topic{volumeClaimTopic{claim.Namespace, claim.Name}}
		}
		return []gangs.Topic{anyVolume}
	case fwk.PersistentVolume:
		if volume, ok := latest[corev1.PersistentVolume](oldObj, newObj); ok {
			return topicsOfVolume(volume)
		}
		return []gangs.Topic{anyVolume}
	case fwk.CSIStorageCapacity:
		if isCapacityUseless(oldObj, newObj) {
			return nil
		}
		return []gangs.Topic{anyVolume}
	case fwk.StorageClass, fwk.CSINode, fwk.CSIDriver, fwk.VolumeAttachment:
		return []gangs.Topic{anyVolume}
	case fwk.ResourceClaim:
		if claim, ok := latest[resourcev1.ResourceClaim](oldObj, newObj); ok && !freesDevices(oldObj, newObj) {
			return []gangs.Topic{deviceClaimTopic{claim.Namespace, claim.Name}}
		}
		return []gangs.Topic{anyDevice}
	case fwk.ResourceSlice, fwk.DeviceClass:
		return []gangs.Topic{anyDevice}
	}
	return nil
}

// latest returns the object after an event, or before it if it was deleted.
func latest[T any](oldObj, newObj any) (*T, bool) {
	if x, ok := newObj.(*T); ok {
		return x, x != nil
	}
	x, ok := oldObj.(*T)
	return x, ok && newObj == nil && x != nil
}

// awaitedPorts returns the topics of the pods that exclude this one by their host ports.
func awaitedPorts(pod *corev1.Pod) []gangs.Topic {
	var out []gangs.Topic
	for _, p := range kubescheduler.HostPorts(pod) {
		if p.IP == fwk.DefaultBindAllHostIP {
			out = append(out, portTopic{"", p.Protocol, p.Port})
		} else {
			out = append(out, portTopic{p.IP, p.Protocol, p.Port}, portTopic{fwk.DefaultBindAllHostIP, p.Protocol, p.Port})
		}
	}
	return out
}

func releasedPorts(pod *corev1.Pod) []gangs.Topic {
	var out []gangs.Topic
	for _, p := range kubescheduler.HostPorts(pod) {
		out = append(out, portTopic{p.IP, p.Protocol, p.Port}, portTopic{"", p.Protocol, p.Port})
	}
	return out
}

// awaitedVolumes returns the topics of a pod's claims. claimOf returns a claim, nil if it does not exist.
func awaitedVolumes(pod *corev1.Pod, claimOf func(namespace, name string) *corev1.PersistentVolumeClaim) []gangs.Topic {
	var out []gangs.Topic
	for i := range pod.Spec.Volumes {
		name := kubescheduler.VolumeClaimName(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		out = append(out, volumeClaimTopic{pod.Namespace, name})
		switch claim := claimOf(pod.Namespace, name); {
		case claim == nil: // it is known when it is created
		case claim.Spec.VolumeName != "":
			out = append(out, volumeTopic{claim.Spec.VolumeName})
		default:
			out = append(out, unboundTopic{storagehelpers.GetPersistentVolumeClaimClass(claim)})
		}
	}
	return out
}

// awaitedUsers returns the topics of other users of a pod's claims.
func awaitedUsers(pod *corev1.Pod) []gangs.Topic {
	var out []gangs.Topic
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			out = append(out, claimUserTopic{pod.Namespace, claim.ClaimName})
		}
	}
	return out
}

func topicsOfVolume(volume *corev1.PersistentVolume) []gangs.Topic {
	if claim := volume.Spec.ClaimRef; claim != nil {
		return []gangs.Topic{volumeTopic{volume.Name}, volumeClaimTopic{claim.Namespace, claim.Name}}
	}
	return []gangs.Topic{volumeTopic{volume.Name}, unboundTopic{storagehelpers.GetPersistentVolumeClass(volume)}}
}

// releasedVolumes returns the topics of the volumes of a pod that was removed.
func releasedVolumes(pod *corev1.Pod) []gangs.Topic {
	var out []gangs.Topic
	attached, disks := false, false
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			attached = true
			out = append(out, claimUserTopic{pod.Namespace, v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			attached = true
		case v.ConfigMap == nil && v.Secret == nil && v.Projected == nil && v.DownwardAPI == nil && v.EmptyDir == nil && v.HostPath == nil && v.Image == nil:
			disks = true
		}
	}
	if disks {
		out = append(out, disksReleased)
	}
	if attached || disks {
		out = append(out, volumesReleased)
	}
	return out
}

// isCapacityUseless reports whether a CSIStorageCapacity provides no larger volume than before.
func isCapacityUseless(oldObj, newObj any) bool {
	before, _ := oldObj.(*storagev1.CSIStorageCapacity)
	after, _ := newObj.(*storagev1.CSIStorageCapacity)
	if before == nil || after == nil {
		return false
	}
	was, is := largestVolume(before), largestVolume(after)
	return is == nil || was != nil && is.Cmp(*was) <= 0
}

func largestVolume(c *storagev1.CSIStorageCapacity) *resource.Quantity {
	if c.MaximumVolumeSize != nil {
		return c.MaximumVolumeSize
	}
	return c.Capacity
}

// awaitedDevices returns the topics of a pod's ResourceClaims.
func awaitedDevices(pod *corev1.Pod) []gangs.Topic {
	var out []gangs.Topic
	for _, name := range kubescheduler.ResourceClaimsOf(pod) {
		out = append(out, deviceClaimTopic{pod.Namespace, name})
	}
	return out
}

// freesDevices reports whether a ResourceClaim had devices that other claims may have now.
func freesDevices(oldObj, newObj any) bool {
	before, _ := oldObj.(*resourcev1.ResourceClaim)
	after, _ := newObj.(*resourcev1.ResourceClaim)
	return before != nil && before.Status.Allocation != nil && (after == nil || after.Status.Allocation == nil)
}
