// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
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

	objects map[types.NamespacedName]client.Object // not modified in place
	ordered []client.Object                        // the same by key; slices that were read are not modified
	pending []Change                               // not delivered yet
	settled int                                    // number of pending changes, from the front, whose order is fixed
	held    bool

	indexes  map[string]*index
	handlers []toolscache.ResourceEventHandler
}

// index finds objects by the values of an index function.
type index struct {
	values  client.IndexerFunc
	ordered map[string][]client.Object // by value, as those of the view
}

// put stores an object in place of the object of its key; nil removes that.
func (i *index) put(key types.NamespacedName, before, after client.Object) {
	if before != nil {
		for _, v := range i.values(before) {
			if i.ordered[v] = with(i.ordered[v], key, nil); len(i.ordered[v]) == 0 {
				delete(i.ordered, v)
			}
		}
	}
	if after != nil {
		for _, v := range i.values(after) {
			i.ordered[v] = with(i.ordered[v], key, after)
		}
	}
}

// newViewCache returns a cache that has listed all objects and watches from now on. options.ByObject can restrict and
// transform the objects of a kind.
func newViewCache(api *API, options cache.Options) *viewCache {
	c := &viewCache{api: api, views: map[schema.GroupVersionKind]*view{}}
	for gvk, t := range api.tables {
		c.views[gvk] = &view{table: t, selects: labels.Everything(), objects: map[types.NamespacedName]client.Object{}, indexes: map[string]*index{}}
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

// show updates one object of the view, nil if it is gone, and returns the view's object before and after; nil if the
// view has none.
func (v *view) show(key types.NamespacedName, now client.Object) (before, after client.Object) {
	before = v.objects[key]
	defer func() {
		if before != nil || after != nil {
			v.ordered = with(v.ordered, key, after)
		}
		for _, i := range v.indexes {
			i.put(key, before, after)
		}
	}()
	if now == nil || !v.selects.Matches(labels.Set(now.GetLabels())) {
		delete(v.objects, key)
		return before, nil
	}
	if v.transform != nil {
		transformed, err := v.transform(now.DeepCopyObject())
		utilruntime.Must(err)
		now = transformed.(client.Object)
	}
	v.objects[key] = now
	return before, now
}

// settle fixes the order of the changes since the last call: changes that one step made to several objects are ordered
// by the names of the objects.
func (c *viewCache) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.views {
		slices.SortStableFunc(v.pending[v.settled:], func(x, y Change) int { return strings.Compare(x.Key.String(), y.Key.String()) })
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
	there := c.views[t.gvk].objects[key]
	c.mu.RUnlock()
	if there == nil {
		return apierrors.NewNotFound(t.resource, key.Name)
	}
	return fill(into, there, t.gvk, o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy)
}

// List implements client.Reader. A field selector has to name an index.
func (c *viewCache) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	t, err := c.api.tableOf(into)
	if err != nil {
		return err
	}
	o := client.ListOptions{}
	o.ApplyOptions(options)
	c.mu.RLock()
	v := c.views[t.gvk]
	all, err := v.selected(o.FieldSelector)
	c.mu.RUnlock()
	if err != nil {
		return err
	}
	return fillList(into, all, &o, t.gvk)
}

// selected returns the objects of the view with the index value that a selector requests; all objects if it requests
// none.
func (v *view) selected(selector fields.Selector) ([]client.Object, error) {
	if selector == nil || selector.Empty() {
		return v.ordered, nil
	}
	requirements := selector.Requirements()
	if len(requirements) > 1 {
		return nil, fmt.Errorf("no index answers %s", selector)
	}
	i := v.indexes[requirements[0].Field]
	if i == nil {
		return nil, fmt.Errorf("index with name field:%s does not exist", requirements[0].Field)
	}
	return i.ordered[requirements[0].Value], nil
}

// IndexField implements client.FieldIndexer.
func (c *viewCache) IndexField(_ context.Context, kind client.Object, field string, values client.IndexerFunc) error {
	t, err := c.api.tableOf(kind)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.views[t.gvk]
	if v.indexes[field] != nil {
		return fmt.Errorf("%s has an index %s already", t.gvk.Kind, field)
	}
	v.indexes[field] = &index{values, map[string][]client.Object{}}
	for key, o := range v.objects {
		v.indexes[field].put(key, nil, o)
	}
	return nil
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
	objects := i.view.ordered
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
