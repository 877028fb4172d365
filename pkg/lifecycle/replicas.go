package lifecycle

import "slices"

// Batches returns the sizes in which n objects are made: 1, 2, 4 and so on, the last one the rest. The next batch follows
// only when all of a batch succeeded, so that a template that the API server refuses costs one call, not n.
//
// Example: Batches(12) = [1 2 4 5].
func Batches(n int) []int {
	var sizes []int
	for size := 1; n > 0; size *= 2 {
		size = min(size, n)
		sizes = append(sizes, size)
		n -= size
	}
	return sizes
}

// Replicas compares the indices of the replicas that exist with the number that is wanted: create are the missing ones
// of 0..want-1, lowest first; remove are those from want on, highest first. Holes are filled, and an index that is too
// high goes, however many there are. present may be in any order and have duplicates; indices below 0 are no replica of
// ours and are left out.
func Replicas(want int32, present []int) (create, remove []int) {
	exists := make(map[int]bool, len(present))
	for _, i := range present {
		if i >= int(want) && i >= 0 && !exists[i] {
			remove = append(remove, i)
		}
		exists[i] = true
	}
	slices.SortFunc(remove, func(a, b int) int { return b - a })
	for i := range int(max(want, 0)) {
		if !exists[i] {
			create = append(create, i)
		}
	}
	return create, remove
}
