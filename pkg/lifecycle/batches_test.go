// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-project/muster/pkg/lifecycle"
)

func TestBatches(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]int{0: nil, 1: {1}, 2: {1, 1}, 3: {1, 2}, 12: {1, 2, 4, 5}, -4: nil} {
		if diff := cmp.Diff(want, lifecycle.Batches(n)); diff != "" {
			t.Errorf("Batches(%d) (-want +got):\n%s", n, diff)
		}
	}
	for n := range 3000 {
		sum := 0
		for _, size := range lifecycle.Batches(n) {
			sum += size
		}
		if sum != n {
			t.Fatalf("batches of %d make %d", n, sum)
		}
	}
}
