// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// ConditionsDiffer reports whether the status of a condition differs, or the result of Trouble. An absent condition
// counts as False. Messages with numbers, and PodCliqueScheduled, are ignored, because no controller acts on them.
func ConditionsDiffer(before, after []metav1.Condition) bool {
	status := func(conditions []metav1.Condition, kind string) metav1.ConditionStatus {
		if c := meta.FindStatusCondition(conditions, kind); c != nil {
			return c.Status
		}
		return metav1.ConditionFalse
	}
	for _, conditions := range [][]metav1.Condition{before, after} {
		for i := range conditions {
			if kind := conditions[i].Type; kind != v1alpha1.ConditionPodCliqueScheduled && status(before, kind) != status(after, kind) {
				return true
			}
		}
	}
	return Trouble(before) != Trouble(after)
}
