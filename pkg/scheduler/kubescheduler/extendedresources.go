// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/podgroup"
)

// ExtendedResource returns the extended resource that the pods of the plan request: that of the largest class. "": they
// request none.
func (w *Snapshot) ExtendedResource() corev1.ResourceName {
	var largest *class
	for _, c := range w.classes {
		if podgroup.IsExtended(c.resource) && (largest == nil || c.pods > largest.pods) {
			largest = c
		}
	}
	if largest == nil {
		return ""
	}
	return largest.resource
}

// ExtendedAmounts returns a function that returns what a running pod has of the extended resources that the pods of the
// plan request.
func (w *Snapshot) ExtendedAmounts() func(id int) int64 {
	f, t := w.runningPods(), w.usage()
	t.readPods(w.nodes.nodes)
	var columns []int
	for _, c := range w.classes {
		if column := t.columnOf(c.resource); podgroup.IsExtended(c.resource) && !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
	}
	return func(id int) int64 {
		uses, n := t.usesOf(int(f.node[id]), id-int(f.first[f.node[id]])), int64(0)
		for _, column := range columns {
			n += uses[column]
		}
		return n
	}
}
