// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/muster-project/muster/pkg/message"
)

// TestWideTablesFitAScreen: kubectl get -o wide prints at most 160 columns with values as long as they are in clusters, and whatever
// may be empty stands last.
func TestWideTablesFitAScreen(t *testing.T) {
	t.Parallel()
	const most, gap, deadline = 160, 3, "2026-11-28T16:11:46Z"
	longest := map[string]map[string]string{
		"podgroups": {"Name": "llama-serve-0", "Phase": "Waiting", "Reason": "InsufficientGPUs", "Needs": "16 pods", "Scheduled": "0/16", "GPUs": "0/64", "Since": "119s", "Age": "119s",
			"Priority": "1000000", "Summary": strings.Repeat("x", message.MaxBrief)},
		"podcliquesets": {"Name": "llama-serve", "Phase": "Running", "Reason": "ReplicasUnavailable", "Replicas": "8", "Available": "7", "Update": "WaitingForReadiness", "Age": "119d",
			"Updated": "3", "Restarts": "0", "Breached": "119s", "Until": deadline},
		"podcliquescalinggroups": {"Name": "llama-serve-0-decode", "MinAvail": "8", "Replicas": "8", "Scheduled": "7", "Available": "7", "Updated": "3", "Breached": "119s", "Until": deadline, "Age": "119d",
			"Update": "WaitingForReadiness"},
		"podcliques": {"Name": "llama-serve-0-decode-0-worker", "MinAvail": "8", "Replicas": "8", "Scheduled": "7", "Ready": "7", "Available": "7", "Updated": "3", "Breached": "119s", "Until": deadline, "Age": "119d",
			"Update": "WaitingForReadiness"},
	}
	for _, o := range readCRDs(t) {
		crd, isCRD := o.Object.(*apiextensionsv1.CustomResourceDefinition)
		if !isCRD || longest[crd.Spec.Names.Plural] == nil {
			continue
		}
		values, width := longest[crd.Spec.Names.Plural], len(longest[crd.Spec.Names.Plural]["Name"])
		for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
			value, known := values[column.Name]
			if !known {
				t.Errorf("%s: no value for column %s", crd.Name, column.Name)
			}
			width += gap + max(len(column.Name), len(value))
			delete(values, column.Name)
		}
		if width > most {
			t.Errorf("%s: %d columns, want at most %d", crd.Name, width, most)
		}
		if len(values) != 1 { // the name
			t.Errorf("%s: no columns for %v", crd.Name, values)
		}
		delete(longest, crd.Spec.Names.Plural)
	}
	if len(longest) > 0 {
		t.Errorf("no CustomResourceDefinitions of %v", longest)
	}
}
