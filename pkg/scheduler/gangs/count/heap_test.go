// SPDX-License-Identifier: Apache-2.0

package count

import (
	"math/rand"
	"slices"
	"testing"
)

// TestHeapVisitsTheFirstItems compares the visited items with those of a sorted list, while items come, change and go.
func TestHeapVisitsTheFirstItems(t *testing.T) {
	t.Parallel()
	type item struct{ key, place int }
	rng := rand.New(rand.NewSource(1))
	h := NewHeap(func(a, b *item) bool { return a.key < b.key }, func(x *item) *int { return &x.place })
	items := make([]*item, 50)
	for i := range items {
		items[i] = &item{}
	}
	for range 2000 {
		x := items[rng.Intn(len(items))]
		if x.key = rng.Intn(20); rng.Intn(3) > 0 {
			h.Set(x)
		} else {
			h.Remove(x)
		}
		limit := rng.Intn(22)
		var want, got []int
		for i, x := range items {
			if x.place > 0 && x.key < limit {
				want = append(want, i)
			}
		}
		h.VisitWhile(func(x *item) bool { return x.key < limit }, func(x *item) { got = append(got, slices.Index(items, x)) })
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("visited %v, want %v", got, want)
		}
	}
}
