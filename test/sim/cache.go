// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// viewCache is the cache of one process: a view of each kind, with the changes that were delivered to it. It implements
// the part of cache.Cache that controllers use.
type viewCache struct {
	cache.Cache // nil: methods that are not implemented panic

	api  *API
	stop func()

	mu    sync.RWMutex
	views map[schema.GroupVersionKind]*view // the map is not modified
}

// view is the content of a cache for one kind. Its fields are guarded by viewCache.mu.
type view struct {
	table     *table
	selects   labels.Selector
	transform toolscache.TransformFunc

	objects toolscache.Indexer // not modified in place
	pending []Change           // not delivered yet
	settled int                // number of pending changes, from the front, whose order is fixed
	held    bool

	handlers []toolscache.ResourceEventHandler
}

// newViewCache returns a cache that has listed all objects and watches from now on. options.ByObject can restrict and
// transform the objects of a kind.
func newViewCache(api *API, options cache.Options) *viewCache {
	c := &viewCache{api: api, views: map[schema.GroupVersionKind]*view{}}
	for gvk, t := range api.tables {
		c.views[gvk] = &view{table: t, selects: labels.Everything(), objects: toolscache.NewIndexer(keyOf, toolscache.Indexers{})}
	}
	for kind, by := range options.ByObject {
		t, err := api.tableOf(kind)
		utilruntime.Must(err)
		v := c.views[t.gvk]
		if by.Label != nil {
			v.selects = by.Label
		}
		v.transform = by.Transform
	}
	c.stop = api.watch(func(change Change) {
		c.mu.Lock()
		defer c.mu.Unlock()
		v := c.views[change.GVK]
		v.pending = append(v.pending, change)
	})
	for _, v := range c.views {
		api.mu.Lock()
		objects := v.table.ordered
		api.mu.Unlock()
		for _, o := range objects {
			v.show(client.ObjectKeyFromObject(o), o)
		}
	}
	return c
}

// keyOf returns the key of an object in a view.
func keyOf(o any) (string, error) { return client.ObjectKeyFromObject(o.(client.Object)).String(), nil }

// sorted returns objects of a view by key.
func sorted(objects []any) []client.Object {
	list := make([]client.Object, len(objects))
	for i, o := range objects {
		list[i] = o.(client.Object)
	}
	slices.SortFunc(list, func(x, y client.Object) int {
		return cmp.Or(strings.Compare(x.GetNamespace(), y.GetNamespace()), strings.Compare(x.GetName(), y.GetName()))
	})
	return list
}

// get returns the object of a key, nil if the view has none.
func (v *view) get(key types.NamespacedName) client.Object {
	there, _, err := v.objects.GetByKey(key.String())
	utilruntime.Must(err)
	o, _ := there.(client.Object)
	return o
}

// show updates one object of the view, nil if it is gone, and returns the view's object before and after; nil if the
// view has none.
func (v *view) show(key types.NamespacedName, now client.Object) (before, after client.Object) {
	before = v.get(key)
	if now == nil || !v.selects.Matches(labels.Set(now.GetLabels())) {
		if before != nil {
			utilruntime.Must(v.objects.Delete(before))
		}
		return before, nil
	}
	if v.transform != nil {
		transformed, err := v.transform(now.DeepCopyObject())
		utilruntime.Must(err)
		now = transformed.(client.Object)
	}
	utilruntime.Must(v.objects.Update(now))
	return before, now
}

// settle fixes the order of the changes since the last call: changes that one step made to several objects are ordered
// by the names of the objects, those of objects that it created first. A pass creates before it deletes and before it
// removes finalizers, and a watch keeps that order.
func (c *viewCache) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.views {
		isNew := map[types.NamespacedName]bool{}
		for _, change := range slices.Backward(v.pending[v.settled:]) {
			isNew[change.Key] = change.Old == nil // the first change of the key decides
		}
		rank := func(c Change) int {
			if isNew[c.Key] {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(v.pending[v.settled:], func(x, y Change) int {
			return cmp.Or(cmp.Compare(rank(x), rank(y)), strings.Compare(x.Key.String(), y.Key.String()))
		})
		v.settled = len(v.pending)
	}
}

// waiting returns the kinds that have changes to deliver, sorted.
func (c *viewCache) waiting() []schema.GroupVersionKind {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var kinds []schema.GroupVersionKind
	for gvk, v := range c.views {
		if len(v.pending) > 0 && !v.held {
			kinds = append(kinds, gvk)
		}
	}
	slices.SortFunc(kinds, func(x, y schema.GroupVersionKind) int { return strings.Compare(x.String(), y.String()) })
	return kinds
}

// deliver applies the oldest pending change of a kind, and calls the handlers.
func (c *viewCache) deliver(gvk schema.GroupVersionKind) {
	c.mu.Lock()
	v := c.views[gvk]
	change := v.pending[0]
	v.pending = v.pending[1:]
	v.settled = max(0, v.settled-1)
	before, after := v.show(change.Key, change.New)
	handlers := v.handlers
	c.mu.Unlock()
	for _, h := range handlers {
		switch {
		case before == nil && after == nil:
		case before == nil:
			h.OnAdd(after, false)
		case after == nil:
			h.OnDelete(before)
		default:
			h.OnUpdate(before, after)
		}
	}
}

// hold stops or resumes the delivery of a kind.
func (c *viewCache) hold(kind client.Object, held bool) {
	t, err := c.api.tableOf(kind)
	utilruntime.Must(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views[t.gvk].held = held
}

// Get implements client.Reader.
func (c *viewCache) Get(_ context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	t, err := c.api.tableOf(into)
	if err != nil {
		return err
	}
	o := client.GetOptions{}
	o.ApplyOptions(options)
	c.mu.RLock()
	there := c.views[t.gvk].get(key)
	c.mu.RUnlock()
	if there == nil {
		return apierrors.NewNotFound(t.resource, key.Name)
	}
	return fill(into, there, t.gvk, o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy)
}

// List implements client.Reader. A field selector has to name one index.
func (c *viewCache) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	t, err := c.api.tableOf(into)
	if err != nil {
		return err
	}
	o := client.ListOptions{}
	o.ApplyOptions(options)
	objects := c.views[t.gvk].objects
	c.mu.RLock()
	all := objects.List()
	if o.FieldSelector != nil && !o.FieldSelector.Empty() {
		fields := o.FieldSelector.Requirements()
		if all, err = objects.ByIndex(fields[0].Field, fields[0].Value); len(fields) > 1 {
			err = fmt.Errorf("no index answers %s", o.FieldSelector)
		}
	}
	c.mu.RUnlock()
	if err != nil {
		return err
	}
	return fillList(into, sorted(all), &o, t.gvk)
}

// IndexField implements client.FieldIndexer.
func (c *viewCache) IndexField(_ context.Context, kind client.Object, field string, values client.IndexerFunc) error {
	t, err := c.api.tableOf(kind)
	if err != nil {
		return err
	}
	return c.views[t.gvk].objects.AddIndexers(toolscache.Indexers{
		field: func(o any) ([]string, error) { return values(o.(client.Object)), nil },
	})
}

// GetInformer implements cache.Informers.
func (c *viewCache) GetInformer(_ context.Context, kind client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	t, err := c.api.tableOf(kind)
	if err != nil {
		return nil, err
	}
	return informer{cache: c, view: c.views[t.gvk]}, nil
}

// WaitForCacheSync implements cache.Informers.
func (c *viewCache) WaitForCacheSync(context.Context) bool { return true }

// informer adds handlers to a view.
type informer struct {
	cache.Informer // nil: methods that are not implemented panic

	cache *viewCache
	view  *view
}

// AddEventHandlerWithOptions implements cache.Informer. The handler first receives the objects of the view.
func (i informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.cache.mu.Lock()
	i.view.handlers = append(i.view.handlers, h)
	objects := sorted(i.view.objects.List())
	i.cache.mu.Unlock()
	for _, o := range objects {
		h.OnAdd(o, true)
	}
	return synced{}, nil
}

// synced is the registration of a handler.
type synced struct {
	toolscache.ResourceEventHandlerRegistration // nil: methods that are not implemented panic
}

// HasSynced implements toolscache.ResourceEventHandlerRegistration.
func (synced) HasSynced() bool { return true }
