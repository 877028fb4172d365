// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
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
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/topology"
)

const (
	// missingTopologiesInterval is the pause between two checks whether the Topology resource exists. A cluster need
	// not have it.
	missingTopologiesInterval = 5 * time.Second
	// firstTopologiesTimeout is how long gangs wait for the first list, from the first request on, while requests fail
	// or are not answered.
	firstTopologiesTimeout = 30 * time.Second
)

// Topologies are the Topology objects of the cluster, as an informer has them. A cluster without their CRD has none.
type Topologies struct {
	Informer cache.SharedIndexInformer
	clock    clock.Clock
	changed  func()                    // called when Unread may have changed
	begun    atomic.Pointer[time.Time] // the first request
	unread   atomic.Pointer[string]    // why Topologies cannot be read, with the remedy, as the end of a sentence; "": they can
	missing  atomic.Bool               // the CRD is
}

// NewTopologies returns the Topologies of the API server of the configuration, which is not modified. If the CRD is
// missing, also if it is deleted later, there are none, and it is looked for every few seconds. changed is called when
// Unread may have changed.
func NewTopologies(config *rest.Config, c clock.Clock, changed func()) (*Topologies, error) {
	client, err := newRESTClient(config, topologyv1alpha1.SchemeGroupVersion, topologyv1alpha1.AddToScheme)
	if err != nil {
		return nil, err
	}
	t := &Topologies{clock: c, changed: changed}
	t.setUnread(notAnswered)
	request := func(opts metav1.ListOptions) *rest.Request {
		return client.Get().Resource("topologies").VersionedParams(&opts, metav1.ParameterCodec)
	}
	t.Informer = cache.NewSharedIndexInformer(listFirst{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			if t.begun.Load() == nil {
				now := c.Now()
				t.begun.Store(&now) // lists are made one after the other
			}
			list := &topologyv1alpha1.TopologyList{}
			err := request(opts).Do(ctx).Into(list)
			t.recordList(err)
			if apierrors.IsNotFound(err) {
				return &topologyv1alpha1.TopologyList{}, nil // those that were read before are gone with their CRD
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			for t.missing.Load() { // an error would be logged each time
				select {
				case <-c.After(missingTopologiesInterval):
				case <-ctx.Done():
					return watch.NewProxyWatcher(make(chan watch.Event)), nil // an error would be logged
				}
				if err := request(metav1.ListOptions{Limit: 1}).Do(ctx).Error(); !apierrors.IsNotFound(err) {
					t.missing.Store(false)
					return nil, apierrors.NewResourceExpired("the CRD of Topologies was created: list them")
				}
			}
			opts.Watch = true
			return request(opts).Watch(ctx)
		},
	}}, &topologyv1alpha1.Topology{}, 0, cache.Indexers{})
	return t, nil
}

// recordList records the result of a list.
func (t *Topologies) recordList(err error) {
	t.missing.Store(apierrors.IsNotFound(err))
	resource := topologyv1alpha1.SchemeGroupVersion.WithResource("topologies").GroupResource().String()
	switch {
	case err == nil:
		t.setUnread("")
	case apierrors.IsNotFound(err):
		t.setUnread(fmt.Sprintf("install the CRD %s, and create it", resource))
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		t.setUnread(fmt.Sprintf("allow muster-scheduler to list and watch %s", resource))
	default:
		t.setUnread(fmt.Sprintf("the API server answers %q; it is asked again", message.Shorten(err.Error(), maxListError)))
	}
}

// setUnread sets why Topologies cannot be read; "": they can.
func (t *Topologies) setUnread(why string) {
	if before := t.unread.Swap(&why); before != nil && *before != why {
		t.changed()
	}
}

const notAnswered = "the API server has not answered yet"

// maxListError is the maximum length of an error in the message of a gang.
const maxListError = 200

// HasSynced reports whether the Topologies were read, there is no CRD, or reading them fails for so long that it must
// not keep other gangs waiting. One answer that reading is forbidden says little: an API server that was just started
// may not know the roles yet, and without the Topologies gangs would be placed regardless of the levels that they
// prefer.
func (t *Topologies) HasSynced() bool {
	begun := t.begun.Load()
	return t.Informer.HasSynced() || begun != nil && t.clock.Since(*begun) >= firstTopologiesTimeout
}

// LevelsOf returns the levels of a Topology, nil if it does not exist or was not read.
func (t *Topologies) LevelsOf(name string) topology.Levels {
	obj, ok, err := t.Informer.GetStore().GetByKey(name)
	if err != nil || !ok {
		return nil
	}
	return obj.(*topologyv1alpha1.Topology).Spec.NodeLabels()
}

// Unread returns why Topologies cannot be read, with the remedy. "": they were read.
func (t *Topologies) Unread() string { return *t.unread.Load() }

// FixedTopologies returns Topologies that were read already and do not change. unread: see Topologies.Unread.
func FixedTopologies(all []*topologyv1alpha1.Topology, unread string) (*Topologies, error) {
	t := &Topologies{Informer: cache.NewSharedIndexInformer(&cache.ListWatch{}, &topologyv1alpha1.Topology{}, 0, cache.Indexers{}), changed: func() {}}
	t.setUnread(unread)
	for _, topology := range all {
		if err := t.Informer.GetIndexer().Add(topology); err != nil {
			return nil, err
		}
	}
	return t, nil
}
