// SPDX-License-Identifier: Apache-2.0

package count

// Heap provides the first item of a changing set: O(log n) for each change, O(1) for the first item. Each item stores
// its own position, so it can be in one heap per position field. The zero Heap is not usable; see NewHeap.
type Heap[T any] struct {
	items []T
	less  func(a, b T) bool
	place func(T) *int
}

// NewHeap returns an empty heap. less is its order. place returns where an item stores its position: 1 + the item's
// index; 0: it is not in the heap.
func NewHeap[T any](less func(a, b T) bool, place func(T) *int) *Heap[T] {
	return &Heap[T]{less: less, place: place}
}

// First returns the first item, false if there is none.
func (h *Heap[T]) First() (T, bool) {
	if len(h.items) == 0 {
		var none T
		return none, false
	}
	return h.items[0], true
}

// Items returns all items, the first one first and the others in no order. It must not be modified.
func (h *Heap[T]) Items() []T { return h.items }

// VisitWhile calls visit with the items for which holds returns true, in no order. If holds is false for an item, it
// must be false for all that follow it in the order. It costs O(1) for each of the items that are visited.
func (h *Heap[T]) VisitWhile(holds func(T) bool, visit func(T)) { h.visitBelow(0, holds, visit) }

func (h *Heap[T]) visitBelow(i int, holds func(T) bool, visit func(T)) {
	if i >= len(h.items) || !holds(h.items[i]) {
		return
	}
	visit(h.items[i])
	h.visitBelow(2*i+1, holds, visit)
	h.visitBelow(2*i+2, holds, visit)
}

// Set inserts the item, or restores the heap order after its key has changed.
func (h *Heap[T]) Set(x T) {
	at := h.place(x)
	if *at == 0 {
		h.items = append(h.items, x)
		*at = len(h.items)
	}
	if !h.moveUp(*at - 1) {
		h.moveDown(*at - 1)
	}
}

// Remove removes the item, if it is in the heap.
func (h *Heap[T]) Remove(x T) {
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
	if i < last && !h.moveUp(i) {
		h.moveDown(i)
	}
}

func (h *Heap[T]) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.place(h.items[i]), *h.place(h.items[j]) = i+1, j+1
}

// moveUp reports whether the item moved.
func (h *Heap[T]) moveUp(i int) bool {
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

func (h *Heap[T]) moveDown(i int) {
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
