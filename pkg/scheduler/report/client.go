// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

const podGroups = "podgroups"

// missingCRDInterval is the pause between two checks whether the PodGroup resource exists.
const missingCRDInterval = time.Second

// PodGroupClient reads PodGroups of all namespaces and writes their status.
type PodGroupClient struct {
	rest  rest.Interface
	clock clock.Clock
}

// NewPodGroupClient returns a client for the API server of the configuration, which is not modified. It uses JSON
// regardless of the configuration, because custom resources do not support protobuf.
func NewPodGroupClient(config *rest.Config) (*PodGroupClient, error) {
	client, err := newRESTClient(config, v2alpha2.SchemeGroupVersion, v2alpha2.AddToScheme)
	if err != nil {
		return nil, err
	}
	return &PodGroupClient{rest: client, clock: clock.RealClock{}}, nil
}

// newRESTClient returns a client for custom resources of one version.
func newRESTClient(config *rest.Config, version schema.GroupVersion, addToScheme func(*runtime.Scheme) error) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return nil, err
	}
	c := rest.CopyConfig(config)
	c.APIPath = "/apis"
	c.GroupVersion = &version
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType = runtime.ContentTypeJSON
	c.AcceptContentTypes = runtime.ContentTypeJSON
	return rest.RESTClientFor(c)
}

// listFirst makes an informer begin with a list instead of a watch. The first request of a custom resource makes the
// API server read its objects: until it has read them, it answers a watch with 429 and Retry-After: 1, and a list with
// a limit immediately.
type listFirst struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is what the informer asks before it begins.
func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext lists the latest state. An informer asks for resourceVersion 0 first, which an API server may answer
// with an old state, and with all objects at once.
func (l listFirst) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if opts.ResourceVersion == "0" {
		opts.ResourceVersion = ""
	}
	return l.ListWatch.ListWithContext(ctx, opts)
}

// Get reads a PodGroup from the API server.
func (c *PodGroupClient) Get(ctx context.Context, namespace, name string) (*v2alpha2.PodGroup, error) {
	out := &v2alpha2.PodGroup{}
	err := c.rest.Get().Namespace(namespace).Resource(podGroups).Name(name).Do(ctx).Into(out)
	return out, err
}

// List returns the PodGroups of all namespaces.
func (c *PodGroupClient) List(ctx context.Context, opts metav1.ListOptions) (*v2alpha2.PodGroupList, error) {
	out := &v2alpha2.PodGroupList{}
	err := c.rest.Get().Resource(podGroups).VersionedParams(&opts, metav1.ParameterCodec).Do(ctx).Into(out)
	return out, err
}

// Watch watches the PodGroups of all namespaces.
func (c *PodGroupClient) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return c.rest.Get().Resource(podGroups).VersionedParams(&opts, metav1.ParameterCodec).Watch(ctx)
}

// UpdateStatus writes the status of a PodGroup and returns the resulting object. A conflict means that the given
// object does not have the latest resourceVersion.
//
// It sends a PUT and not a merge patch: the whole status is written, so that an emptied field is removed, and the
// resourceVersion ensures that the status describes the spec from which it was computed. The API server ignores the
// spec and metadata of the request, so fields that this program does not know are safe.
func (c *PodGroupClient) UpdateStatus(ctx context.Context, group *v2alpha2.PodGroup) (*v2alpha2.PodGroup, error) {
	out := &v2alpha2.PodGroup{}
	err := c.rest.Put().Namespace(group.Namespace).Resource(podGroups).Name(group.Name).SubResource("status").
		Body(group).Do(ctx).Into(out)
	return out, err
}

// NewInformer returns an informer for the PodGroups of all namespaces. If the API server does not have the PodGroup
// resource (the CRD is missing), it retries every second, and does not sync until the resource exists. Managed fields
// are omitted.
func (c *PodGroupClient) NewInformer() cache.SharedIndexInformer {
	lw := listFirst{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			for misses := 1; ; misses++ {
				list, err := c.List(ctx, opts)
				if !apierrors.IsNotFound(err) {
					return list, err
				}
				if misses == 2 { // not while the CRD is being installed
					klog.FromContext(ctx).Error(err, "PodGroups are not known to the API server: pods of gangs are gated until the CRD is installed", "resource", v2alpha2.Resource(podGroups))
				}
				// Returning the error would delay the next attempt by the reflector's back-off, up to 30 s.
				select {
				case <-c.clock.After(missingCRDInterval):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		},
		WatchFuncWithContext: c.Watch,
	}}
	informer := cache.NewSharedIndexInformer(lw, &v2alpha2.PodGroup{}, 0, cache.Indexers{})
	// SetTransform fails only if the informer has been started, which is not the case here.
	_ = informer.SetTransform(func(obj any) (any, error) {
		if group, ok := obj.(*v2alpha2.PodGroup); ok {
			group.ManagedFields = nil
		}
		return obj, nil
	})
	return informer
}
