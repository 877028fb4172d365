// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// collection holds the objects of one kind.
type collection struct {
	kind schema.GroupVersionKind

	mu      sync.Mutex
	objects map[types.NamespacedName]object // guarded by mu; not modified in place
	history []event                         // guarded by mu; the resource version is its length
	changed chan struct{}                   // guarded by mu; closed at the next event
}

type object interface {
	runtime.Object
	metav1.Object
}

type event struct {
	Type   watch.EventType `json:"type"`
	Object object          `json:"object"`
}

func newCollection(kind schema.GroupVersionKind) collection {
	return collection{kind: kind, objects: map[types.NamespacedName]object{}, changed: make(chan struct{})}
}

// record stores an object as its newest version, or removes it. The caller holds mu, and must not modify it afterwards.
func (c *collection) record(change watch.EventType, o object) {
	o.GetObjectKind().SetGroupVersionKind(c.kind)
	o.SetResourceVersion(strconv.Itoa(len(c.history) + 1))
	if key := keyOf(o); change == watch.Deleted {
		delete(c.objects, key)
	} else {
		c.objects[key] = o
	}
	c.history = append(c.history, event{change, o})
	close(c.changed)
	c.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler for GET and watch of all objects.
func (c *collection) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		c.watch(w, r)
		return
	}
	c.mu.Lock()
	items := make([]object, 0, len(c.objects))
	for _, o := range c.objects {
		items = append(items, o)
	}
	version := strconv.Itoa(len(c.history))
	c.mu.Unlock()
	answer(w, map[string]any{
		"apiVersion": c.kind.GroupVersion().String(), "kind": c.kind.Kind + "List", "metadata": metav1.ListMeta{ResourceVersion: version}, "items": items,
	})
}

// watch sends the changes since the resource version that the client has listed.
func (c *collection) watch(w http.ResponseWriter, r *http.Request) {
	seen, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for {
		c.mu.Lock()
		missed, changed := c.history[seen:], c.changed
		c.mu.Unlock()
		for _, e := range missed {
			if json.NewEncoder(w).Encode(e) != nil {
				return
			}
			seen++
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
