// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ExtendedResource returns the extended resource that the pods of the plan request: that of the largest class. "": they
// request none.
func (w *Snapshot) ExtendedResource() corev1.ResourceName {
	var largest *class
	for _, c := range w.classes {
		if isExtended(c.resource) && (largest == nil || c.pods > largest.pods) {
			largest = c
		}
	}
	if largest == nil {
		return ""
	}
	return largest.resource
}

// ExtendedAmounts returns a function that returns what a running pod has of the extended resources that the pods of the plan
// request.
func (w *Snapshot) ExtendedAmounts() func(id int) int64 {
	var resources []corev1.ResourceName
	for _, c := range w.classes {
		if isExtended(c.resource) && !slices.Contains(resources, c.resource) {
			resources = append(resources, c.resource)
		}
	}
	w.runningPods()
	return func(id int) int64 {
		pod, _ := w.runningPod(id)
		requests, n := pod.CalculateResource().Resource, int64(0)
		for _, name := range resources {
			n += amountOf(requests, name)
		}
		return n
	}
}

// isExtended reports whether the main resource of a class is an extended one: these have a domain in their names.
func isExtended(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }
