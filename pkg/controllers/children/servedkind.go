// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// ServedKind is a kind that the API server need not serve. It is read from a cache of its own, in one version or in
// whatever version is served. While none is, there are no objects, and nothing is watched. It is a client.Reader.
type ServedKind struct {
	of     client.Object // empty, of the kind and version that is read; no version: whichever is served
	cache  cache.Cache
	served func(context.Context) (versions []string, err error)
	period time.Duration // between two checks
	// index is the name of the index, and values its function; "": there is none.
	index  string
	values client.IndexerFunc
	// doubted: a watch has ended because the API server did not know the version that is watched.
	doubted atomic.Bool

	mu      sync.Mutex
	version string // "": none is watched
	changes int    // of version
	told    string // that another version is served
}

// NewServedKind returns the kind of an object, which is of the type in which it is read. o.DefaultTransform shortens
// its objects, and o.DefaultFieldSelector selects some.
func NewServedKind(mgr ctrl.Manager, object client.Object, o cache.Options) (*ServedKind, error) {
	k := &ServedKind{of: object, period: servedCheckPeriod}
	o.ReaderFailOnMissingInformer, o.DefaultWatchErrorHandler = true, k.watchFailed
	separate, err := separateCache(mgr, o)
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client that asks what the API server serves: %w", err)
	}
	k.cache, k.served = separate, func(ctx context.Context) ([]string, error) { return servedVersions(ctx, client, k.kind().GroupKind()) }
	return k, nil
}

// OnceServed lets the kind, which is always served, be watched only when one of the others is served first.
func (k *ServedKind) OnceServed(others ...*ServedKind) {
	k.period = time.Second // it costs no request
	k.served = func(context.Context) ([]string, error) {
		if !slices.ContainsFunc(others, func(o *ServedKind) bool { return o.Version() != "" }) {
			return nil, nil
		}
		return []string{k.kind().Version}, nil
	}
}

// IndexField lets List select objects by values of theirs (client.MatchingFields). A kind has one index, set before it
// is watched.
func (k *ServedKind) IndexField(name string, values client.IndexerFunc) {
	k.index, k.values = name, values
}

func (k *ServedKind) kind() schema.GroupVersionKind { return k.of.GetObjectKind().GroupVersionKind() }

// watchFailed is told why a watch has ended. It is tried again, until the kind is found to be gone.
func (k *ServedKind) watchFailed(ctx context.Context, r *toolscache.Reflector, err error) {
	if !apierrors.IsNotFound(err) {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)
		return
	}
	k.doubted.Store(true)
}

// servedVersions returns the versions in which a kind is served, the API server's preferred one first.
func servedVersions(ctx context.Context, d discovery.DiscoveryInterface, kind schema.GroupKind) ([]string, error) {
	group := &metav1.APIGroup{}
	switch err := d.RESTClient().Get().AbsPath("/apis/" + kind.Group).Do(ctx).Into(group); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var versions []string
	for _, v := range group.Versions {
		list, err := d.ServerResourcesForGroupVersion(v.GroupVersion)
		switch {
		case apierrors.IsNotFound(err): // dropped since
		case err != nil:
			return nil, err
		case slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }):
			versions = append(versions, v.Version)
		}
	}
	return versions, nil
}

// Version returns the version that is watched, "" for none.
func (k *ServedKind) Version() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.version
}

// check finds out which version to watch, unless one is watched without doubt. That one stays as long as it is served.
// An API server that does not answer changes nothing.
func (k *ServedKind) check(ctx context.Context) (version string, changes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.version != "" && !k.doubted.Load() {
		return k.version, k.changes
	}
	kind, log := k.kind(), klog.FromContext(ctx)
	versions, err := k.served(ctx)
	if err != nil {
		log.V(4).Info("Could not find out what the API server serves", "kind", kind.GroupKind(), "err", err)
		return k.version, k.changes
	}
	k.doubted.Store(false)
	next := ""
	switch {
	case slices.Contains(versions, k.version):
		next = k.version
	case slices.Contains(versions, kind.Version):
		next = kind.Version
	case len(versions) > 0 && kind.Version == "":
		next = versions[0]
	case len(versions) > 0 && k.told != versions[0]:
		k.told = versions[0]
		log.Info("A kind is not watched, because the API server does not serve the version that is read", "kind", kind, "served", k.told)
	}
	if next == k.version {
		return k.version, k.changes
	}
	if k.version != "" {
		if err := k.cache.RemoveInformer(ctx, k.object(k.version)); err != nil {
			log.Error(err, "Failed to stop watching a kind that is no longer served", "kind", kind.GroupKind(), "version", k.version)
		}
	}
	if next != "" && k.index != "" {
		if err := k.cache.IndexField(ctx, k.object(next), k.index, k.values); err != nil {
			log.Error(err, "Failed to index a kind; it is tried again", "kind", kind.GroupKind(), "index", k.index)
			return k.version, k.changes
		}
	}
	log.V(2).Info("Changed the version that is watched", "kind", kind.GroupKind(), "from", k.version, "to", next)
	k.version, k.changes = next, k.changes+1
	return k.version, k.changes
}

func (k *ServedKind) object(version string) client.Object {
	o := k.of.DeepCopyObject().(client.Object)
	o.GetObjectKind().SetGroupVersionKind(k.kind().GroupKind().WithVersion(version))
	return o
}

// Get reads an object, whose version it sets.
func (k *ServedKind) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	kind := k.kind().GroupKind().WithVersion(k.Version())
	notFound := apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	if kind.Version == "" {
		return notFound
	}
	o.GetObjectKind().SetGroupVersionKind(kind)
	if err := k.cache.Get(ctx, key, o, options...); !isUnwatched(err) {
		return err
	}
	return notFound
}

// List reads objects into a list, whose version it sets.
func (k *ServedKind) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind := k.kind().GroupKind().WithVersion(k.Version())
	if kind.Version == "" {
		return nil
	}
	kind.Kind += "List"
	list.GetObjectKind().SetGroupVersionKind(kind)
	if err := k.cache.List(ctx, list, options...); !isUnwatched(err) {
		return err
	}
	return nil
}

// isUnwatched reports whether the cache has no informer: one starts, or has just stopped.
func isUnwatched(err error) bool {
	unwatched := (*cache.ErrResourceNotCached)(nil)
	return errors.As(err, &unwatched)
}

// servedCheckPeriod is how often it is checked whether the API server has begun to serve a kind.
const servedCheckPeriod = 30 * time.Second

// Source returns a source of events about the objects. A controller starts without it, and receives events at most
// servedCheckPeriod after the API server has begun to serve the kind, or serves another version of it.
func (k *ServedKind) Source(h handler.EventHandler) source.Source {
	return follows{k, func(version string) source.Source { return source.Kind(k.cache, k.object(version), h) }}
}

// ServedSources returns sources of events about the metadata of all objects of kinds whose CRDs are optional.
func ServedSources(mgr ctrl.Manager, h handler.EventHandler, kinds ...schema.GroupVersionKind) ([]source.Source, error) {
	var sources []source.Source
	for _, kind := range kinds {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		k, err := NewServedKind(mgr, object, cache.Options{DefaultTransform: cache.TransformStripManagedFields()})
		if err != nil {
			return nil, err
		}
		sources = append(sources, k.Source(h))
	}
	return sources, nil
}

// follows starts a source for each version that is served after the other.
type follows struct {
	kind *ServedKind
	of   func(version string) source.Source
}

func (f follows) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		started := 0
		_ = wait.PollUntilContextCancel(ctx, f.kind.period, true, func(ctx context.Context) (bool, error) { // ends with the context alone
			version, changes := f.kind.check(ctx)
			if changes == started {
				return false, nil
			}
			started = changes
			if version == "" {
				return false, nil
			}
			if err := f.of(version).Start(ctx, queue); err != nil {
				klog.FromContext(ctx).Error(err, "Failed to watch a kind", "kind", f.kind.kind().GroupKind(), "version", version)
			}
			return false, nil
		})
	}()
	return nil
}
