// SPDX-License-Identifier: Apache-2.0

package wrappers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeWrapper builds a Node.
type NodeWrapper struct {
	object[*NodeWrapper]
	node corev1.Node
}

// MakeNode returns a builder of a ready node with 128 CPUs, 1Ti memory, room for 110 pods, no GPUs, and its hostname
// label.
func MakeNode(name string) *NodeWrapper {
	w := &NodeWrapper{node: corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Capacity:    corev1.ResourceList{},
			Allocatable: corev1.ResourceList{},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		},
	}}
	w.object = object[*NodeWrapper]{w, &w.node.ObjectMeta}
	return w.Capacity(corev1.ResourceCPU, "128").Capacity(corev1.ResourceMemory, "1Ti").Capacity(corev1.ResourcePods, "110")
}

// Obj returns a copy of the node built so far.
func (w *NodeWrapper) Obj() *corev1.Node { return w.node.DeepCopy() }

// GPUs sets the number of GPUs.
func (w *NodeWrapper) GPUs(n int64) *NodeWrapper {
	return w.Capacity(GPUResource, resource.NewQuantity(n, resource.DecimalSI).String())
}

// Capacity sets a resource's capacity, all of it allocatable.
func (w *NodeWrapper) Capacity(name corev1.ResourceName, quantity string) *NodeWrapper {
	q := resource.MustParse(quantity)
	w.node.Status.Capacity[name], w.node.Status.Allocatable[name] = q, q
	return w
}

// Taint adds a NoSchedule taint.
func (w *NodeWrapper) Taint(key, value string) *NodeWrapper {
	w.node.Spec.Taints = append(w.node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule})
	return w
}

// Unschedulable cordons the node.
func (w *NodeWrapper) Unschedulable() *NodeWrapper {
	w.node.Spec.Unschedulable = true
	return w
}
