// SPDX-License-Identifier: Apache-2.0

package gangs

// orderedHeap provides the first item of a changing set: O(log n) for each change, O(1) for the first item. Each item
// stores its own position, so it can be in one heap per position field.
type orderedHeap[T any] struct {
	items []T
	less  func(a, b T) bool
	place func(T) *int // 1 + the item's index; 0: not in the heap
}

// first returns the first item, false if there is none.
func (h *orderedHeap[T]) first() (T, bool) {
	if len(h.items) == 0 {
		var none T
		return none, false
	}
	return h.items[0], true
}

// set inserts the item, or restores the heap order after its key has changed.
func (h *orderedHeap[T]) set(x T) {
	at := h.place(x)
	if *at == 0 {
		h.items = append(h.items, x)
		*at = len(h.items)
	}
	if !h.up(*at - 1) {
		h.down(*at - 1)
	}
}

// remove removes the item, if it is in the heap.
func (h *orderedHeap[T]) remove(x T) {
	at := h.place(x)
	if *at == 0 {
		return
	}
	i, last := *at-1, len(h.items)-1
	h.swap(i, last)
	var none T
	h.items[last] = none
	h.items = h.items[:last]
	*at = 0
	if i < last && !h.up(i) {
		h.down(i)
	}
}

func (h *orderedHeap[T]) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.place(h.items[i]), *h.place(h.items[j]) = i+1, j+1
}

// up reports whether the item moved.
func (h *orderedHeap[T]) up(i int) bool {
	moved := false
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(h.items[i], h.items[parent]) {
			break
		}
		h.swap(i, parent)
		i, moved = parent, true
	}
	return moved
}

func (h *orderedHeap[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			return
		}
		if child+1 < len(h.items) && h.less(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.less(h.items[child], h.items[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
