// SPDX-License-Identifier: Apache-2.0

package lifecycle

// Batches returns the batch sizes in which n objects are created: 1, 2, 4 and so on, the last batch being the rest.
// The caller starts a batch only if all of the previous batch succeeded, so that a template that the API server
// rejects costs one request, not n.
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
