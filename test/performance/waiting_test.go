// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

func TestFinal(t *testing.T) {
	t.Parallel()
	for reason, want := range map[v2alpha2.Reason]bool{
		v2alpha2.ReasonInsufficientGPUs: true, v2alpha2.ReasonTooLarge: true,
		v2alpha2.ReasonWaitingForPods: false, v2alpha2.ReasonBehindInQueue: false,
		"": false, // it is satisfied, or has no status yet
	} {
		podGroup := unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"reason": string(reason)}}}
		if got := final(&podGroup); got != want {
			t.Errorf("%q is final: %v, want %v", reason, got, want)
		}
	}
	if final(&unstructured.Unstructured{}) {
		t.Error("an object without a status has a final reason")
	}
}
