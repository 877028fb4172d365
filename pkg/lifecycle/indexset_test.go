// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"math/rand"
	"slices"
	"testing"
)

func TestIndices(t *testing.T) {
	t.Parallel()
	for want, indices := range map[string][]int{
		"":            nil,
		"0":           {0},
		"0-3,7":       {7, 0, 1, 3, 2, 3},
		"1,3-4,10-11": {1, 3, 4, 10, 11, -1},
	} {
		if got := Indices(indices...).String(); got != want {
			t.Errorf("Indices(%v) = %q, want %q", indices, got, want)
		}
		for i := range 13 {
			if ParseIndices(want).Has(i) != slices.Contains(indices, i) {
				t.Errorf("index %[2]d in %[1]q: %[3]t", want, i, !slices.Contains(indices, i))
			}
		}
	}
	for broken, want := range map[string]string{
		"x": "", "1-": "", "-1": "", "a-3": "", ",": "", "3-1": "", "4,x,2-3": "2-4", "0-2000000000": "0-2000000000",
	} {
		if got := ParseIndices(broken).String(); got != want {
			t.Errorf("ParseIndices(%q) = %q, want %q", broken, got, want)
		}
	}
}

// TestIndexSetIsASet: a set behaves like a map of its indices, and is unchanged after it was formatted and parsed.
func TestIndexSetIsASet(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewSource(1))
	for range 500 {
		draw := func() ([]int, map[int]bool) {
			var indices []int
			has := map[int]bool{}
			for range random.Intn(30) {
				i := random.Intn(40)
				indices, has[i] = append(indices, i), true
			}
			return indices, has
		}
		a, inA := draw()
		b, inB := draw()
		set := ParseIndices(Indices(a...).String())
		union, below := set.Union(Indices(b...)), set.Below(20)
		within := true
		for i := range 41 {
			if set.Has(i) != inA[i] || union.Has(i) != (inA[i] || inB[i]) || below.Has(i) != (inA[i] && i < 20) {
				t.Fatalf("%v and %v: %s, union %s, below 20 %s", a, b, set, union, below)
			}
			within = within && (!inA[i] || inB[i])
		}
		if set.Len() != len(inA) || set.Within(Indices(b...)) != within || !set.Within(union) {
			t.Fatalf("%v and %v: %d indices, within: %t", a, b, set.Len(), !within)
		}
	}
}

// Parsing and formatting a second time changes nothing.
func FuzzParseIndices(f *testing.F) {
	for _, seed := range []string{"", "0-5,7", "7,0-5", "1-", "9223372036854775807", "0-9223372036854775807,5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := ParseIndices(text)
		if again := ParseIndices(once.String()); again.String() != once.String() {
			t.Errorf("%q is read as %q, and that as %q", text, once, again)
		}
		if !once.Within(once) {
			t.Errorf("%q is not within itself", once)
		}
	})
}
