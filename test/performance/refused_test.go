// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/wrappers"
)

func TestFinal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		podGroup *wrappers.PodGroupWrapper
		want     bool
	}{
		"without a status": {wrappers.MakePodGroup("g", namespace), false},
		"a reason that is final": {wrappers.MakePodGroup("g", namespace).
			Condition(v2alpha2.ConditionSatisfied, metav1.ConditionFalse, v2alpha2.ReasonInsufficientGPUs, "80 are needed, 0 are free"), true},
		"a final reason without a word why": {wrappers.MakePodGroup("g", namespace).
			Condition(v2alpha2.ConditionSatisfied, metav1.ConditionFalse, v2alpha2.ReasonInsufficientGPUs, ""), false},
		"not all pods were seen": {wrappers.MakePodGroup("g", namespace).
			Condition(v2alpha2.ConditionSatisfied, metav1.ConditionFalse, v2alpha2.ReasonWaitingForPods, "9 of 10 pods exist"), false},
		"another condition": {wrappers.MakePodGroup("g", namespace).
			Condition(v2alpha2.ConditionAdmitted, metav1.ConditionFalse, v2alpha2.ReasonInsufficientGPUs, "80 are needed"), false},
		"satisfied": {wrappers.MakePodGroup("g", namespace).
			Condition(v2alpha2.ConditionSatisfied, metav1.ConditionTrue, v2alpha2.ReasonSatisfied, "all bound"), false},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test.podGroup.Obj())
		if err != nil {
			t.Fatal(err)
		}
		if got := final(&unstructured.Unstructured{Object: content}); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
