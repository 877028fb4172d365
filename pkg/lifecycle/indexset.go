// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// MaxIndicesLength is the maximum length in bytes of the text of an IndexSet in a status, which is the limit of the
// CRDs.
const MaxIndicesLength = 131072

// IndexSet is a set of indices of pods or replicas. It is stored as ranges, so that a text from a status takes no more
// memory than its length, whatever numbers it contains. The zero value is empty. No method modifies the set.
type IndexSet struct {
	ranges []indexRange // sorted, neither overlapping nor adjacent
}

// indexRange is first to last, both included.
type indexRange struct{ first, last int }

// Indices returns the set of the given indices, in any order. Negative ones are ignored.
func Indices(indices ...int) IndexSet {
	var ranges []indexRange
	for _, i := range indices {
		ranges = append(ranges, indexRange{i, i})
	}
	return normalized(ranges)
}

// ParseIndices parses the text of String. Invalid parts are ignored.
func ParseIndices(text string) IndexSet {
	var ranges []indexRange
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to, err := strconv.Atoi(last)
		if err != nil {
			continue
		}
		ranges = append(ranges, indexRange{from, to})
	}
	return normalized(ranges)
}

// normalized returns the set of the indices in the ranges.
func normalized(ranges []indexRange) IndexSet {
	ranges = slices.DeleteFunc(ranges, func(r indexRange) bool { return r.first < 0 || r.last < r.first })
	slices.SortFunc(ranges, func(a, b indexRange) int { return cmp.Compare(a.first, b.first) })
	var s IndexSet
	for _, r := range ranges {
		if n := len(s.ranges); n > 0 && r.first-1 <= s.ranges[n-1].last {
			s.ranges[n-1].last = max(s.ranges[n-1].last, r.last)
			continue
		}
		s.ranges = append(s.ranges, r)
	}
	return s
}

// String returns the set as text: ranges and single indices, as in 0-3,7. "" for the empty set.
func (s IndexSet) String() string {
	var b strings.Builder
	for i, r := range s.ranges {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(r.first))
		if r.last > r.first {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(r.last))
		}
	}
	return b.String()
}

// Len returns the number of indices in the set.
func (s IndexSet) Len() int {
	n := 0
	for _, r := range s.ranges {
		n += r.last - r.first + 1
	}
	return n
}

// Has reports whether the index is in the set.
func (s IndexSet) Has(index int) bool {
	_, found := slices.BinarySearchFunc(s.ranges, index, func(r indexRange, index int) int {
		switch {
		case r.last < index:
			return -1
		case r.first > index:
			return 1
		default:
			return 0
		}
	})
	return found
}

// IndicesOf returns the indices of the pods that are not being deleted.
func IndicesOf(pods []Pod) IndexSet {
	var indices []int
	for _, p := range pods {
		if !p.Terminating {
			indices = append(indices, p.Index)
		}
	}
	return Indices(indices...)
}

// presentIn returns the indices of the set that are those of one of the units.
func (s IndexSet) presentIn(units []updateUnit) IndexSet {
	var kept []int
	for _, u := range units {
		if s.Has(u.index) {
			kept = append(kept, u.index)
		}
	}
	return Indices(kept...)
}

// Union returns the indices that are in either set.
func (s IndexSet) Union(other IndexSet) IndexSet {
	return normalized(append(slices.Clone(s.ranges), other.ranges...))
}

// Below returns the indices of the set that are less than n.
func (s IndexSet) Below(n int) IndexSet {
	var below IndexSet
	for _, r := range s.ranges {
		if r.first < n {
			below.ranges = append(below.ranges, indexRange{r.first, min(r.last, n-1)})
		}
	}
	return below
}

// Within reports whether every index of the set is in the other.
func (s IndexSet) Within(other IndexSet) bool {
	return s.Union(other).String() == other.String()
}
