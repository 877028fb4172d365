// SPDX-License-Identifier: Apache-2.0

package wrappers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// SchedulerName is the scheduler that pods of MakePod name.
const SchedulerName = "muster-scheduler"

// Image is the image of containers that no test starts.
const Image = "registry.example/main:1"

// GPUResource is the extended resource that stands for GPUs.
const GPUResource corev1.ResourceName = "nvidia.com/gpu"

// PodWrapper builds a Pod.
type PodWrapper struct {
	object[*PodWrapper]
	pod corev1.Pod
}

// MakePod returns a builder of a pending pod for muster-scheduler with one container without requests.
func MakePod(name, namespace string) *PodWrapper {
	grace := int64(0)
	w := &PodWrapper{pod: corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			SchedulerName:                 SchedulerName,
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "main", Image: Image}},
		},
	}}
	w.object = object[*PodWrapper]{w, &w.pod.ObjectMeta}
	return w
}

// Obj returns a copy of the pod built so far.
func (w *PodWrapper) Obj() *corev1.Pod { return w.pod.DeepCopy() }

// NativeGroup makes the pod name a PodGroup of Kubernetes.
func (w *PodWrapper) NativeGroup(name string) *PodWrapper {
	w.pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	return w
}

// Gang makes the pod a member of the PodGroup of that name in its namespace.
func (w *PodWrapper) Gang(podGroup string) *PodWrapper {
	return w.Annotation(v2alpha2.PodGroupAnnotation, podGroup)
}

// SubGroup makes the pod count towards a leaf of its gang.
func (w *PodWrapper) SubGroup(leaf string) *PodWrapper {
	return w.Label(v2alpha2.SubGroupLabel, leaf)
}

// BoundFor sets the mark of the plan that bound the pod.
func (w *PodWrapper) BoundFor(mark string) *PodWrapper {
	return w.Annotation(v2alpha2.BoundForAnnotation, mark)
}

// Controller sets the controlling owner.
func (w *PodWrapper) Controller(kind, name, uid string) *PodWrapper {
	version := "batch/v1"
	switch kind {
	case "StatefulSet", "ReplicaSet":
		version = "apps/v1"
	case "RayCluster":
		version = "ray.io/v1"
	}
	return w.controller(version, kind, name, uid)
}

// GPUs requests n whole GPUs.
func (w *PodWrapper) GPUs(n int64) *PodWrapper {
	return w.Resource(GPUResource, *resource.NewQuantity(n, resource.DecimalSI))
}

// CPU requests CPU, for example "500m".
func (w *PodWrapper) CPU(quantity string) *PodWrapper {
	return w.Resource(corev1.ResourceCPU, resource.MustParse(quantity))
}

// Memory requests memory, for example "1Gi".
func (w *PodWrapper) Memory(quantity string) *PodWrapper {
	return w.Resource(corev1.ResourceMemory, resource.MustParse(quantity))
}

// Resource requests a resource and limits it to the same.
func (w *PodWrapper) Resource(name corev1.ResourceName, quantity resource.Quantity) *PodWrapper {
	r := &w.pod.Spec.Containers[0].Resources
	if r.Requests == nil {
		r.Requests, r.Limits = corev1.ResourceList{}, corev1.ResourceList{}
	}
	r.Requests[name], r.Limits[name] = quantity, quantity
	return w
}

// SchedulerName sets the scheduler.
func (w *PodWrapper) SchedulerName(name string) *PodWrapper {
	w.pod.Spec.SchedulerName = name
	return w
}

// Node binds the pod to a node.
func (w *PodWrapper) Node(name string) *PodWrapper {
	w.pod.Spec.NodeName = name
	return w
}

// Phase sets status.phase.
func (w *PodWrapper) Phase(phase corev1.PodPhase) *PodWrapper {
	w.pod.Status.Phase = phase
	return w
}

// Status edits the status, for fields without a method of their own.
func (w *PodWrapper) Status(edit func(*corev1.PodStatus)) *PodWrapper {
	edit(&w.pod.Status)
	return w
}

// Priority sets the resolved priority. An API server rejects it without the matching class; see PriorityClass.
func (w *PodWrapper) Priority(p int32) *PodWrapper {
	w.pod.Spec.Priority = &p
	return w
}

// NeverPreempts sets the preemption policy to Never.
func (w *PodWrapper) NeverPreempts() *PodWrapper {
	never := corev1.PreemptNever
	w.pod.Spec.PreemptionPolicy = &never
	return w
}

// PriorityClass names the PriorityClass.
func (w *PodWrapper) PriorityClass(name string) *PodWrapper {
	w.pod.Spec.PriorityClassName = name
	return w
}

// SchedulingGate adds a scheduling gate.
func (w *PodWrapper) SchedulingGate(name string) *PodWrapper {
	w.pod.Spec.SchedulingGates = append(w.pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: name})
	return w
}

// NodeSelector requires a node label.
func (w *PodWrapper) NodeSelector(key, value string) *PodWrapper {
	w.pod.Spec.NodeSelector = with(w.pod.Spec.NodeSelector, key, value)
	return w
}

// Toleration tolerates every taint of a key.
func (w *PodWrapper) Toleration(key string) *PodWrapper {
	w.pod.Spec.Tolerations = append(w.pod.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	return w
}

// HostPort requests a port of the node, so that two such pods exclude each other.
func (w *PodWrapper) HostPort(port int32) *PodWrapper {
	c := &w.pod.Spec.Containers[0]
	c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP})
	return w
}

// TogetherWith requires pods with the label to share the topology domain.
func (w *PodWrapper) TogetherWith(topologyKey, key, value string) *PodWrapper {
	a := w.affinity()
	if a.PodAffinity == nil {
		a.PodAffinity = &corev1.PodAffinity{}
	}
	terms := &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*terms = append(*terms, podTerm(topologyKey, key, value))
	return w
}

// ApartFrom requires pods with the label to be in other topology domains.
func (w *PodWrapper) ApartFrom(topologyKey, key, value string) *PodWrapper {
	a := w.affinity()
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	terms := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*terms = append(*terms, podTerm(topologyKey, key, value))
	return w
}

// Claim mounts a PersistentVolumeClaim.
func (w *PodWrapper) Claim(name string) *PodWrapper {
	w.pod.Spec.Volumes = append(w.pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	return w
}

// Spec edits the spec, for fields without a method of their own.
func (w *PodWrapper) Spec(edit func(*corev1.PodSpec)) *PodWrapper {
	edit(&w.pod.Spec)
	return w
}

func (w *PodWrapper) affinity() *corev1.Affinity {
	if w.pod.Spec.Affinity == nil {
		w.pod.Spec.Affinity = &corev1.Affinity{}
	}
	return w.pod.Spec.Affinity
}

func podTerm(topologyKey, key, value string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{
		TopologyKey:   topologyKey,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
	}
}
