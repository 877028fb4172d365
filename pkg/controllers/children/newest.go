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
)

// Newest returns nil if the API server has the object in the version that the pass works with, else a conflict, which has
// the pass tried again soon. It is asked before something is deleted because the object does not want it: a cache that is
// behind may show a spec in which it is not wanted yet, after another muster-controller has made it.
func (m Maker) Newest(ctx context.Context, object client.Object) error {
	kind, err := apiutil.GVKForObject(object, m.Client.Scheme())
	if err != nil {
		return err
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(kind)
	switch err := m.Live.Get(ctx, client.ObjectKeyFromObject(object), there); {
	case apierrors.IsNotFound(err):
		return behind(kind, object)
	case err != nil:
		return fmt.Errorf("reading %s %s before something of it is deleted: %w", kind.Kind, object.GetName(), err)
	case there.UID != object.GetUID() || there.ResourceVersion != object.GetResourceVersion():
		return behind(kind, object)
	}
	return nil
}

// Unchanged returns nil as long as the cache shows the object with the spec that the pass works with, else a conflict. A
// pass that makes thousands of objects asks before each, so that it ends when nobody wants them any more.
func (m Maker) Unchanged(ctx context.Context, object client.Object) error {
	kind, err := apiutil.GVKForObject(object, m.Client.Scheme())
	if err != nil {
		return err
	}
	now, err := m.Client.Scheme().New(kind)
	if err != nil {
		return err
	}
	there := now.(client.Object)
	err = m.Client.Get(ctx, client.ObjectKeyFromObject(object), there, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil || there.GetUID() != object.GetUID() || there.GetDeletionTimestamp() != nil || there.GetGeneration() > object.GetGeneration() {
		return behind(kind, object)
	}
	return nil
}

func behind(kind schema.GroupVersionKind, object client.Object) error {
	return apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, object.GetName(),
		errors.New("has changed since it was read"))
}
