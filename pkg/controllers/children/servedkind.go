// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// ServedKind is a kind that is read, as unstructured objects, in whatever version the API server serves, from a cache of its own. While it
// serves none there are no objects. It is a client.Reader.
type ServedKind struct {
	schema.GroupKind
	cache  cache.Cache
	clock  clock.PassiveClock
	served func(context.Context) (versions []string, err error)

	mu      sync.Mutex
	version string // "": none is watched
	changes int    // of version
	checked time.Time
}

// NewServedKind returns a kind. transform shortens its objects.
func NewServedKind(mgr ctrl.Manager, c clock.PassiveClock, transform toolscache.TransformFunc, kind schema.GroupKind) (*ServedKind, error) {
	separate, err := separateCache(mgr, cache.Options{DefaultTransform: transform})
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client that asks what the API server serves: %w", err)
	}
	return &ServedKind{GroupKind: kind, cache: separate, clock: c,
		served: func(ctx context.Context) ([]string, error) { return servedVersions(ctx, client, kind) }}, nil
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

// check finds out which version to watch: the one that is watched, as long as it is served. An API server that does not answer changes
// nothing.
func (k *ServedKind) check(ctx context.Context) (version string, changes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.clock.Now(); now.Sub(k.checked) > servedCheckPeriod/2 {
		versions, err := k.served(ctx)
		switch {
		case err != nil:
			klog.FromContext(ctx).V(4).Info("Could not find out what the API server serves", "kind", k.GroupKind, "err", err)
		case k.version != "" && slices.Contains(versions, k.version):
			k.checked = now
		default:
			k.checked = now
			next := ""
			if len(versions) > 0 {
				next = versions[0]
			}
			if next != k.version {
				if k.version != "" {
					if err := k.cache.RemoveInformer(ctx, k.object(k.version)); err != nil {
						klog.FromContext(ctx).Error(err, "Failed to stop watching a kind that is no longer served", "kind", k.GroupKind, "version", k.version)
					}
				}
				klog.FromContext(ctx).Info("Changed the version that is watched", "kind", k.GroupKind, "from", k.version, "to", next)
				k.version, k.changes = next, k.changes+1
			}
		}
	}
	return k.version, k.changes
}

func (k *ServedKind) object(version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(k.WithVersion(version))
	return o
}

// Get reads an object, whose version it sets.
func (k *ServedKind) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	version := k.Version()
	if version == "" {
		return apierrors.NewNotFound(schema.GroupResource{Group: k.Group, Resource: k.Kind}, key.Name)
	}
	o.GetObjectKind().SetGroupVersionKind(k.WithVersion(version))
	return k.cache.Get(ctx, key, o, options...)
}

// List reads objects into an unstructured list, whose version it sets.
func (k *ServedKind) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	version := k.Version()
	if version == "" {
		return nil
	}
	kind := k.WithVersion(version)
	kind.Kind += "List"
	list.GetObjectKind().SetGroupVersionKind(kind)
	return k.cache.List(ctx, list, options...)
}

// Source returns a source of events about the objects, which begins again when another version is served.
func (k *ServedKind) Source(h handler.EventHandler) source.Source {
	return follows{k, func(version string) source.Source { return source.Kind[client.Object](k.cache, k.object(version), h) }}
}

// WhileServed returns a source of events about objects of another kind, those that the field selector selects, which are read from the
// cache that is returned too. It starts when this kind is served first.
func (k *ServedKind) WhileServed(mgr ctrl.Manager, h handler.EventHandler, object client.Object, selector string,
	transform toolscache.TransformFunc) (client.Reader, source.Source, error) {
	selected, err := fields.ParseSelector(selector)
	if err != nil {
		return nil, nil, err
	}
	separate, err := separateCache(mgr, cache.Options{DefaultFieldSelector: selected, DefaultTransform: transform})
	if err != nil {
		return nil, nil, err
	}
	return separate, served{source.Kind(separate, object, h), func() bool { return k.Version() != "" }}, nil
}

// follows starts a source for each version that is served after the other.
type follows struct {
	kind *ServedKind
	of   func(version string) source.Source
}

func (f follows) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		started := 0
		_ = wait.PollUntilContextCancel(ctx, servedCheckPeriod, true, func(ctx context.Context) (bool, error) { // ends with the context alone
			version, changes := f.kind.check(ctx)
			if changes == started {
				return false, nil
			}
			started = changes
			if version == "" {
				return false, nil
			}
			if err := f.of(version).Start(ctx, queue); err != nil {
				klog.FromContext(ctx).Error(err, "Failed to watch a kind", "kind", f.kind.GroupKind, "version", version)
			}
			return false, nil
		})
	}()
	return nil
}
