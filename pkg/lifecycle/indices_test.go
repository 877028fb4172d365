package lifecycle

import "testing"

func TestFormatIndices(t *testing.T) {
	t.Parallel()
	for want, indices := range map[string][]int{
		"":            nil,
		"0":           {0},
		"0-3,7":       {0, 1, 2, 3, 7},
		"1,3-4,10-11": {1, 3, 4, 10, 11},
	} {
		if got := FormatIndices(indices); got != want {
			t.Errorf("FormatIndices(%v) = %q, want %q", indices, got, want)
		}
		has := map[int]bool{}
		for _, i := range indices {
			has[i] = true
		}
		for i := range 13 {
			if ContainsIndex(want, i) != has[i] {
				t.Errorf("ContainsIndex(%q, %d) = %t", want, i, !has[i])
			}
		}
	}
	for _, broken := range []string{"x", "1-", "-1", "a-3", ","} {
		if ContainsIndex(broken, 1) {
			t.Errorf("ContainsIndex(%q, 1)", broken)
		}
	}
}
