// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
)

// ClassKey returns a key that is equal for pods of one namespace that the scheduler's filters treat alike as far as
// only the pod's spec is concerned. It covers the fields that filters read: priority, resources, ports, node selection,
// affinity, spread, tolerations, volumes that affect placement, and what needs a feature of the kubelet. It omits
// fields that differ from pod to pod without affecting placement (names, environment, token volumes), images, which
// only scores read, and fields that matter only together with other objects: labels, through existing selectors, and
// claims of volumes and devices, through what they are bound to or ask for. kubescheduler.FilterCache.Classify
// evaluates those when a plan is made.
func ClassKey(pod *corev1.Pod) string {
	spec := &pod.Spec
	type container struct {
		Resources corev1.ResourceRequirements
		Ports     []corev1.ContainerPort         `json:",omitempty"`
		Restart   *corev1.ContainerRestartPolicy `json:",omitempty"`
		Rules     []corev1.ContainerRestartRule  `json:",omitempty"`
	}
	reduce := func(in []corev1.Container) []container {
		out := make([]container, 0, len(in))
		for i := range in {
			out = append(out, container{in[i].Resources, in[i].Ports, in[i].RestartPolicy, in[i].RestartPolicyRules})
		}
		return out
	}
	var volumes []corev1.VolumeSource
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		// Every node can provide any number of these volumes; in addition, the name of a token volume is random.
		if v.Projected == nil && v.ConfigMap == nil && v.Secret == nil && v.EmptyDir == nil && v.DownwardAPI == nil && v.HostPath == nil {
			source := v.VolumeSource
			if claim := v.PersistentVolumeClaim; claim != nil {
				source.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ReadOnly: claim.ReadOnly}
			}
			volumes = append(volumes, source)
		}
	}
	data, err := json.Marshal(struct {
		Namespace, Scheduler string
		Priority             *int32
		Init, Containers     []container
		Resources            *corev1.ResourceRequirements
		Overhead             corev1.ResourceList
		NodeName             string
		NodeSelector         map[string]string
		Affinity             *corev1.Affinity
		Tolerations          []corev1.Toleration
		Spread               []corev1.TopologySpreadConstraint
		HostNetwork          bool
		HostUsers            *bool
		RuntimeClass         *string
		OS                   *corev1.PodOS
		Volumes              []corev1.VolumeSource
		Claims               int
	}{
		pod.Namespace, spec.SchedulerName, spec.Priority, reduce(spec.InitContainers), reduce(spec.Containers),
		spec.Resources, spec.Overhead, spec.NodeName, spec.NodeSelector, spec.Affinity, spec.Tolerations,
		spec.TopologySpreadConstraints, spec.HostNetwork, spec.HostUsers, spec.RuntimeClassName, spec.OS, volumes, len(spec.ResourceClaims),
	})
	if err != nil {
		// Nothing in these types fails to marshal; a class of its own is always right.
		return string(pod.UID)
	}
	h := fnv.New128a()
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}
