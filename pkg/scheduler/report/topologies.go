// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
	"github.com/muster-project/muster/pkg/topology"
)

// missingTopologiesInterval is the pause between two checks whether the Topology resource exists. A cluster need not have it.
const missingTopologiesInterval = 5 * time.Second

// Topologies are the Topology objects of the cluster, as an informer has them. A cluster without their CRD has none.
type Topologies struct {
	Informer cache.SharedIndexInformer
	failed   atomic.Bool // they could not be listed, for example because the CRD does not exist
}

// NewTopologies returns the Topologies of the API server of the configuration, which is not modified. If the CRD is missing,
// it is looked for every few seconds.
func NewTopologies(config *rest.Config, c clock.Clock) (*Topologies, error) {
	client, err := newRESTClient(config, topologyv1alpha1.SchemeGroupVersion, topologyv1alpha1.AddToScheme)
	if err != nil {
		return nil, err
	}
	t := &Topologies{}
	request := func(opts metav1.ListOptions) *rest.Request {
		return client.Get().Resource("topologies").VersionedParams(&opts, metav1.ParameterCodec)
	}
	t.Informer = cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			for {
				list := &topologyv1alpha1.TopologyList{}
				err := request(opts).Do(ctx).Into(list)
				t.failed.Store(err != nil)
				if !apierrors.IsNotFound(err) {
					return list, err
				}
				select {
				case <-c.After(missingTopologiesInterval):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.Watch = true
			return request(opts).Watch(ctx)
		},
	}, &topologyv1alpha1.Topology{}, 0, cache.Indexers{})
	return t, nil
}

// HasSynced reports whether the Topologies were read, or cannot be read, which must not keep other gangs waiting.
func (t *Topologies) HasSynced() bool { return t.Informer.HasSynced() || t.failed.Load() }

// LevelsOf returns the levels of a Topology, nil if it does not exist or was not read.
func (t *Topologies) LevelsOf(name string) topology.Levels {
	obj, ok, err := t.Informer.GetStore().GetByKey(name)
	if err != nil || !ok {
		return nil
	}
	return obj.(*topologyv1alpha1.Topology).Spec.NodeLabels()
}
