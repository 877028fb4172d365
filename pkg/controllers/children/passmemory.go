// SPDX-License-Identifier: Apache-2.0

package children

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PassMemory stores data of objects between two passes. An object that is recreated under the same name begins anew.
// The contents are lost when the process ends. The zero value is ready for use.
type PassMemory[T any] struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]memoryEntry[T] // guarded by mu, but not the data: see Of
}

type memoryEntry[T any] struct {
	uid  types.UID
	data *T
}

// Of returns the data of an object; if there are none, they begin with the result of initial, nil means the zero
// value. Only the worker that processes the object may read or change them.
func (m *PassMemory[T]) Of(object client.Object, initial func() T) *T {
	name := client.ObjectKeyFromObject(object)
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[name]; ok && e.uid == object.GetUID() {
		return e.data
	}
	if m.entries == nil {
		m.entries = map[types.NamespacedName]memoryEntry[T]{}
	}
	data := new(T)
	if initial != nil {
		*data = initial()
	}
	m.entries[name] = memoryEntry[T]{uid: object.GetUID(), data: data}
	return data
}

// Forget removes the data of the object of this name, which is gone.
func (m *PassMemory[T]) Forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, name)
}

// Len returns the number of objects with data.
func (m *PassMemory[T]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries)
}
