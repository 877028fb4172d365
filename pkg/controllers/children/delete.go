package children

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// Delete deletes the object as it was read: not a successor of the same name, and not one that has lost its owner since.
// One that is gone, or on its way, is no error.
func (m Maker) Delete(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	return m.deleteIf(ctx, object, client.Preconditions{UID: &uid})
}

// DeleteVersion is Delete of an object that nobody has changed since it was read. One that somebody has is a conflict.
func (m Maker) DeleteVersion(ctx context.Context, object client.Object) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	return m.deleteIf(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
}

func (m Maker) deleteIf(ctx context.Context, object client.Object, still client.Preconditions) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	err := m.Client.Delete(ctx, object, still, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil {
		m.logChange(ctx, "Deleted an object", object)
	}
	return client.IgnoreNotFound(err)
}

// Release lets go of what an owner has that is being deleted with --cascade=orphan: of what the cache has of the kinds of
// lists. The garbage collector does the same, except for kinds that were installed less than half a minute ago: these it
// learns one after the other, and it may let the owner go before it knows what that owns, and collect this then.
func (m Maker) Release(ctx context.Context, owner client.Object, parallel int, lists ...client.ObjectList) error {
	if owner.GetDeletionTimestamp() == nil || !controllerutil.ContainsFinalizer(owner, metav1.FinalizerOrphanDependents) {
		return nil
	}
	var owned []client.Object
	for _, list := range lists {
		if err := Of(ctx, m.Client, owner, list); err != nil {
			return err
		}
		owned = append(owned, objects(list)...)
	}
	return All(len(owned), parallel, func(i int) error {
		free := owned[i].DeepCopyObject().(client.Object)
		free.SetOwnerReferences(slices.DeleteFunc(free.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }))
		if err := m.Client.Update(ctx, free); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("letting go of %T %s: %w", free, free.GetName(), err)
		}
		return nil
	})
}

// CollectAfter deletes what earlier owners of that kind and name have left behind, of the kinds of lists. The garbage
// collector would do the same, but for all of the cluster, at some tens of objects a second.
//
// The cache alone is not believed: the API server is asked whether the owner is gone, and what has lost its owner
// reference since it was read (deleted with --cascade=orphan) is left alone: what has changed since is a conflict, and the
// pass is to be made again. owner is filled with what the cache has.
func (m Maker) CollectAfter(ctx context.Context, owner client.Object, kind string, name types.NamespacedName, parallel int, lists ...client.ObjectList) error {
	if err := m.Client.Get(ctx, name, owner); client.IgnoreNotFound(err) != nil {
		return err
	} else if err != nil {
		owner.SetUID("")
	}
	var left []client.Object
	for _, list := range lists {
		if err := m.Client.List(ctx, list, client.InNamespace(name.Namespace),
			client.MatchingFields{byFormerOwner: formerOwner(v1alpha1.SchemeGroupVersion.String(), kind, name.Name)}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing %T left by %s %s: %w", list, kind, name.Name, err)
		}
		for _, object := range objects(list) {
			if object.GetDeletionTimestamp() == nil && metav1.GetControllerOfNoCopy(object).UID != owner.GetUID() {
				left = append(left, object)
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	// An owner that the cache does not know yet would be found here.
	if err := m.Live.Get(ctx, name, owner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %s: %w", kind, name.Name, err)
	} else if err != nil {
		owner.SetUID("")
	}
	return All(len(left), parallel, func(i int) error {
		if metav1.GetControllerOfNoCopy(left[i]).UID == owner.GetUID() {
			return nil
		}
		return m.DeleteVersion(ctx, left[i])
	})
}
