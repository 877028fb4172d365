package lifecycle

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
