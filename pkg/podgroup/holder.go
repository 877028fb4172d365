// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/membership"
)

// Holder is what running pods have in common if they hold room for the same PodGroup at the same priority. It bounds
// who may preempt them, whatever the state of each pod.
type Holder struct {
	Group       types.NamespacedName // that the pods name; zero: none
	Priority    int32                // of the pods themselves
	Terminating bool
}

// HolderOf returns the holder that a pod belongs to.
func HolderOf(pod *corev1.Pod) Holder {
	h := Holder{Terminating: pod.DeletionTimestamp != nil}
	if name := membership.Group(pod); name != "" {
		h.Group = types.NamespacedName{Namespace: pod.Namespace, Name: name}
	}
	if pod.Spec.Priority != nil {
		h.Priority = *pod.Spec.Priority
	}
	return h
}
