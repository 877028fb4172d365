// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/muster-project/muster/pkg/message"
)

// TestTablesFitAScreen: kubectl get of each kind prints at most 80 columns, and with -o wide at most 160, with values
// as long as they are in clusters.
func TestTablesFitAScreen(t *testing.T) {
	t.Parallel()
	const gap = 3
	const (
		age      = "119d"
		deadline = "2026-11-28T16:11:46Z"
		update   = "WaitingForReadiness"
	)
	longest := map[string]map[string]string{
		"podgroups": {"Name": "llama-serve-0", "Phase": "Waiting", "Reason": "InsufficientResources", "Bound": "0/16", "GPUs": "0/64", "Since": age, "Age": age,
			"Summary": strings.Repeat("x", message.MaxBrief), "Needs": "3 of 4", "Priority": "100000"},
		"podcliquesets": {"Name": "llama-serve", "Phase": "Succeeded", "Reason": "AllReplicasSucceeded", "Replicas": "8", "Available": "7", "Age": age,
			"Update": update, "Updated": "3", "Restarts": "0", "Breached": age, "Until": deadline},
		"podcliquescalinggroups": {"Name": "llama-serve-0-decode", "Min": "8", "Replicas": "8", "Bound": "7", "Available": "7", "Breached": age, "Age": age,
			"Update": update, "Updated": "3", "Until": deadline},
		"podcliques": {"Name": "llama-serve-0-decode-0-worker", "Min": "8", "Replicas": "8", "Bound": "7", "Ready": "7", "Breached": age, "Age": age,
			"Available": "7", "Update": update, "Updated": "3", "Until": deadline},
		"topologies":              {"Name": "gpu-fabric", "Outermost": "topology.kubernetes.io/zone", "Innermost": "topology.example.com/rack", "Age": age},
		"clustertopologybindings": {"Name": "gpu-fabric", "Outermost": "datacenter", "Innermost": "host", "Age": age},
	}
	for _, o := range readCRDs(t) {
		crd, isCRD := o.Object.(*apiextensionsv1.CustomResourceDefinition)
		if !isCRD {
			continue
		}
		values := longest[crd.Spec.Names.Plural]
		plain := len(values["Name"])
		wide := plain
		delete(values, "Name")
		for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
			value, known := values[column.Name]
			if !known {
				t.Errorf("%s: no value for column %s", crd.Name, column.Name)
			}
			width := gap + max(len(column.Name), len(value))
			wide += width
			if column.Priority == 0 {
				plain += width
			}
			delete(values, column.Name)
		}
		if plain > 80 {
			t.Errorf("%s: kubectl get prints %d columns, want at most 80", crd.Name, plain)
		}
		if wide > 160 {
			t.Errorf("%s: kubectl get -o wide prints %d columns, want at most 160", crd.Name, wide)
		}
		if len(values) > 0 {
			t.Errorf("%s: no columns for %v", crd.Name, values)
		}
		delete(longest, crd.Spec.Names.Plural)
	}
	if len(longest) > 0 {
		t.Errorf("no CustomResourceDefinitions of %v", longest)
	}
}
