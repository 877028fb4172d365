// SPDX-License-Identifier: Apache-2.0

package count

import (
	"cmp"
	"math"
	"math/rand/v2"
	"testing"
)

// TestPrioritiesAtTheEndsOfInt32: a difference of such priorities does not fit into an int32.
func TestPrioritiesAtTheEndsOfInt32(t *testing.T) {
	t.Parallel()
	ends := []int32{math.MaxInt32, math.MaxInt32 - 1, 1, 0, -1, math.MinInt32 + 1, math.MinInt32} // the order in which they go first
	for i, a := range ends {
		for k, b := range ends {
			want := cmp.Compare(i, k)
			orders := []Order{{Priority: a}, {Priority: b}}
			if got := orders[0].Compare(&orders[1]); got != want {
				t.Errorf("pods of %d and %d compare as %d, want %d", a, b, got, want)
			}
			sorted := Sorted(orders, func(o *Order) *Order { return o })
			if want > 0 && sorted[0] != &orders[1] || want < 0 && sorted[0] != &orders[0] {
				t.Errorf("of pods of %d and %d, the lower one is planned first", a, b)
			}
		}
	}
}

func TestHeapHasTheFirstItem(t *testing.T) {
	t.Parallel()
	type item struct{ key, place int }
	rng := rand.New(rand.NewPCG(1, 0))
	h := NewHeap(func(a, b *item) bool { return a.key < b.key }, func(x *item) *int { return &x.place })
	items := map[*item]bool{}
	for range 5000 {
		switch _, ok := h.First(); {
		case rng.IntN(3) > 0 || !ok:
			x := &item{key: rng.IntN(1000)}
			items[x] = true
			h.Set(x)
		case rng.IntN(2) == 0:
			x := h.Items()[rng.IntN(len(items))]
			x.key = rng.IntN(1000)
			h.Set(x)
		default:
			x := h.Items()[rng.IntN(len(items))]
			delete(items, x)
			h.Remove(x)
			h.Remove(x) // has no effect
		}
		first, ok := h.First()
		if ok != (len(items) > 0) || len(h.Items()) != len(items) {
			t.Fatalf("%d items, first: %t; want %d", len(h.Items()), ok, len(items))
		}
		for x := range items {
			if x.key < first.key || h.Items()[x.place-1] != x {
				t.Fatalf("item %+v, first is %+v", *x, *first)
			}
		}
	}
}
