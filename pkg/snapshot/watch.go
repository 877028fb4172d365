// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watcher keeps a snapshot up to date. It survives an API server that goes away, and is safe for concurrent use.
type Watcher struct {
	by, server string
	now        func() time.Time
	kinds      []*watchedKind
	changed    chan struct{} // of capacity 1
}

// Watch reads a cluster and watches it until ctx ends. It returns when all kinds have been read and are watched; the
// error is that of Take. Kinds that may be read later, because rights or definitions change, are read then.
func Watch(ctx context.Context, config *rest.Config, by string, now func() time.Time) (*Watcher, error) {
	c, server, err := connect(config)
	if err != nil {
		return nil, err
	}
	w := &Watcher{by: by, server: server, now: now, changed: make(chan struct{}, 1)}
	for i := range Kinds {
		k := &watchedKind{Kind: &Kinds[i], Store: cache.NewStore(cache.MetaNamespaceKeyFunc), client: c, w: w, tried: make(chan struct{})}
		w.kinds = append(w.kinds, k)
		requests := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: k.list, WatchFuncWithContext: k.watch}, k)
		reflector := cache.NewReflectorWithOptions(requests, k.new(), k, cache.ReflectorOptions{Name: k.Resource})
		go reflector.RunWithContext(ctx)
	}
	for _, k := range w.kinds {
		select {
		case <-k.tried:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		why, _ := k.unread()
		switch {
		case why == "" && k.Needed() && k.isUnwatched():
			return nil, forbiddenError(k.Kind, "watch", "no change is seen")
		case why == "":
		case k.Needed():
			return nil, neededError(k.Kind, why)
		case why != WhyForbidden && why != WhyMissing:
			return nil, fmt.Errorf("reading %s: %s", k.qualified(), why)
		}
	}
	return w, nil
}

// Changed receives after objects have changed, and after the API server has been lost or has come back.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Snapshot returns the cluster as it is known now.
func (w *Watcher) Snapshot() *Snapshot {
	s := &Snapshot{Taken: w.now(), Server: w.server, By: w.by}
	for _, k := range w.kinds {
		if why, _ := k.unread(); why == WhyForbidden || why == WhyMissing {
			s.Unread = append(s.Unread, Unread{k.qualified(), why, k.Without})
		}
		objects := k.List()
		slices.SortFunc(objects, func(a, b any) int {
			x, y := a.(client.Object), b.(client.Object)
			return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
		})
		for _, object := range objects {
			s.Objects = append(s.Objects, object.(runtime.Object))
		}
	}
	return s
}

// Unwatched returns the kinds that may be read, but not watched, as "priorityclasses.scheduling.k8s.io": they are read
// again from time to time.
func (w *Watcher) Unwatched() []string {
	var names []string
	for _, k := range w.kinds {
		if why, _ := k.unread(); why == "" && k.isUnwatched() {
			names = append(names, k.qualified())
		}
	}
	return names
}

// Lost returns since when, and why, what is known is not up to date. "": it is.
func (w *Watcher) Lost() (why string, since time.Time) {
	for _, k := range w.kinds {
		text, at := k.unread()
		if k.Needed() && (text == WhyForbidden || text == WhyMissing) {
			text = neededError(k.Kind, text).Error()
		}
		if text != "" && text != WhyForbidden && text != WhyMissing && (why == "" || at.Before(since)) {
			why, since = text, at
		}
	}
	return why, since
}

func (w *Watcher) signal() {
	select {
	case w.changed <- struct{}{}:
	default: // it is signalled already
	}
}

// watchedKind is what is known about the objects of a kind. It is what a reflector reads from, and writes to.
type watchedKind struct {
	*Kind
	cache.Store
	client client.WithWatch
	w      *Watcher
	tried  chan struct{} // closed after the first attempt to read all objects and to watch them
	once   sync.Once

	mu        sync.Mutex
	why       string    // guarded by mu: whyUnread of the last request, but that of a watch that is forbidden
	since     time.Time // guarded by mu: when it became so
	unwatched bool      // guarded by mu: the last watch was forbidden
}

// unread returns whyUnread of the last request, and since when it is so.
func (k *watchedKind) unread() (why string, since time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.why, k.since
}

// isUnwatched reports whether the last watch was forbidden.
func (k *watchedKind) isUnwatched() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unwatched
}

// note notes how a request ended.
func (k *watchedKind) note(err error) {
	why := whyUnread(err)
	k.mu.Lock()
	turned := (why == "") != (k.why == "")
	if turned {
		k.since = k.w.now()
	}
	k.why = why
	k.mu.Unlock()
	if turned {
		k.w.signal()
	}
	if err != nil {
		k.once.Do(func() { close(k.tried) })
	}
}

func (k *watchedKind) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := k.newList()
	err := k.client.List(ctx, list, &client.ListOptions{Raw: &options, Limit: options.Limit, Continue: options.Continue})
	if ctx.Err() == nil {
		k.note(err)
	}
	return list, err
}

func (k *watchedKind) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	stream, err := k.client.Watch(ctx, k.newList(), &client.ListOptions{Raw: &options})
	if ctx.Err() != nil {
		return stream, err
	}
	forbidden := apierrors.IsForbidden(err) // the list before was not
	k.mu.Lock()
	k.unwatched = forbidden
	k.mu.Unlock()
	if !forbidden {
		k.note(err)
	}
	k.once.Do(func() { close(k.tried) })
	return stream, err
}

// IsWatchListSemanticsUnSupported is what the reflector asks before it begins: a list can be read in pages.
func (k *watchedKind) IsWatchListSemanticsUnSupported() bool { return true }

// Replace implements cache.Store.
func (k *watchedKind) Replace(objects []any, version string) error {
	for _, object := range objects {
		k.stripObject(object.(client.Object))
	}
	return k.after(k.Store.Replace(objects, version))
}

// Add implements cache.Store.
func (k *watchedKind) Add(object any) error {
	k.stripObject(object.(client.Object))
	return k.after(k.Store.Add(object))
}

// Update implements cache.Store.
func (k *watchedKind) Update(object any) error {
	k.stripObject(object.(client.Object))
	old, has, err := k.Store.Get(object)
	if has && err == nil && isSame(old.(client.Object), object.(client.Object)) {
		return k.Store.Update(object)
	}
	return k.after(k.Store.Update(object))
}

// isSame reports whether nothing of an object has changed but its version.
func isSame(old, object client.Object) bool {
	version := object.GetResourceVersion()
	object.SetResourceVersion(old.GetResourceVersion())
	defer object.SetResourceVersion(version)
	return equality.Semantic.DeepEqual(old, object)
}

// Delete implements cache.Store.
func (k *watchedKind) Delete(object any) error { return k.after(k.Store.Delete(object)) }

func (k *watchedKind) after(err error) error {
	k.w.signal()
	return err
}
