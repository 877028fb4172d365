// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/muster-project/muster/pkg/workload"
)

// EnsureUpToDate returns nil if the API server has the object in the version that the pass works with, apart from
// labels and annotations of others, otherwise a conflict, after which the pass is retried soon. It is called before
// children are deleted because they are not desired, or created in place of earlier ones: a cache that is behind may
// show an earlier spec, although another muster-controller has created the objects of the current one, or a status
// without the raised attempt.
func (c *Client) EnsureUpToDate(ctx context.Context, object client.Object) error {
	kind, live, err := c.liveMetadata(ctx, object)
	if err == nil && live != nil && live.ResourceVersion == object.GetResourceVersion() {
		return nil
	}
	var same client.Object
	if err == nil && live != nil {
		same, err = c.liveIfSame(ctx, object)
	}
	switch {
	case err != nil:
		return fmt.Errorf("reading %s %s before its children are deleted or replaced: %w", kind.Kind, object.GetName(), err)
	case same == nil:
		return changed(kind, object)
	}
	return nil
}

// liveMetadata returns the kind of an object, and its metadata in the API server, nil if it is gone.
func (c *Client) liveMetadata(ctx context.Context, object client.Object) (schema.GroupVersionKind, *metav1.PartialObjectMetadata, error) {
	kind, err := apiutil.GVKForObject(object, c.client.Scheme())
	if err != nil {
		return kind, nil, err
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kind)
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil || live.UID != object.GetUID() {
		return kind, nil, client.IgnoreNotFound(err)
	}
	return kind, live, nil
}

// SpecUnchanged returns nil as long as the cache shows the object with the spec that the pass works with, otherwise a
// conflict. A pass that creates thousands of objects calls it before each of them, so that the pass ends when they are
// no longer desired.
func (c *Client) SpecUnchanged(ctx context.Context, object client.Object) error {
	kind, err := apiutil.GVKForObject(object, c.client.Scheme())
	if err != nil {
		return err
	}
	empty, err := c.client.Scheme().New(kind)
	if err != nil {
		return err
	}
	existing := empty.(client.Object)
	err = c.client.Get(ctx, client.ObjectKeyFromObject(object), existing, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil || existing.GetUID() != object.GetUID() || existing.GetDeletionTimestamp() != nil || existing.GetGeneration() > object.GetGeneration() ||
		workload.RevisionNumber(existing) > workload.RevisionNumber(object) {
		return changed(kind, object)
	}
	return nil
}

// Stays reports whether the object exists in the API server and is not being deleted, whatever the cache shows.
func (c *Client) Stays(ctx context.Context, object client.Object) (bool, error) {
	_, live, err := c.liveMetadata(ctx, object)
	return live != nil && live.DeletionTimestamp == nil, err
}

func changed(kind schema.GroupVersionKind, object client.Object) error {
	return apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, object.GetName(),
		errors.New("has changed since it was read"))
}
