// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestServesSet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set, namespace string // the classes that they name
		grove          bool   // whether Grove's Lease exists
		want           string // the reason not to serve it
	}{
		"no class":                                {},
		"no class, beside Grove":                  {grove: true, want: "it names no class, and Grove's operator has the Lease grove-system/lock"},
		"ours":                                    {set: "muster"},
		"ours, beside Grove":                      {set: "muster", grove: true},
		"another one":                             {set: "grove", want: `its annotation grove.io/controller-class is "grove"`},
		"another case":                            {set: "Muster", want: `its annotation grove.io/controller-class is "Muster"`},
		"our namespace":                           {namespace: "muster"},
		"our namespace, beside Grove":             {namespace: "muster", grove: true},
		"another namespace":                       {namespace: "grove", want: `the label grove.io/controller-class of its namespace is "grove"`},
		"ours, in another namespace":              {set: "muster", namespace: "grove"},
		"ours, in another namespace, with Grove":  {set: "muster", namespace: "grove", grove: true},
		"another one, in our namespace":           {set: "grove", namespace: "muster", want: `its annotation grove.io/controller-class is "grove"`},
		"another one, in our namespace and Grove": {set: "x", namespace: "muster", grove: true, want: `its annotation grove.io/controller-class is "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const key = "grove.io/controller-class"
			var lease *coordinationv1.Lease
			if tc.grove {
				lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "grove-system", Name: "lock"}}
			}
			// An empty value names no class.
			served, reason := ServesSet("muster", map[string]string{key: tc.set}, map[string]string{key: tc.namespace}, lease)
			if served != (tc.want == "") || reason != tc.want {
				t.Errorf("served %t, because %q, want %q", served, reason, tc.want)
			}
			if tc.set == "" && tc.namespace == "" {
				if without, _ := ServesSet("muster", nil, nil, lease); without != served {
					t.Errorf("served %t without annotations and labels", without)
				}
			}
		})
	}
}
