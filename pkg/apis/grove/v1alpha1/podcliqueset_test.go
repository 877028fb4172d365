// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

func TestIsOnDelete(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		strategy *PodCliqueSetUpdateStrategy
		want     bool
	}{
		"no strategy":          {nil, false},
		"one without a type":   {&PodCliqueSetUpdateStrategy{}, false},
		"the default strategy": {&PodCliqueSetUpdateStrategy{Type: RollingRecreateStrategyType}, false},
		"OnDelete":             {&PodCliqueSetUpdateStrategy{Type: OnDeleteStrategyType}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := &PodCliqueSetSpec{UpdateStrategy: tc.strategy}
			if got := spec.IsOnDelete(); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
