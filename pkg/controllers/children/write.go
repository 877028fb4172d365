// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers/metrics"
	"github.com/muster-project/muster/pkg/naming"
	"github.com/muster-project/muster/pkg/workload"
)

// Create creates the object, whose controlling owner is set. An existing object with the same owner is not an error:
// either the cache was behind and the event will arrive, or the object has lost the label by which the cache finds it,
// which Create restores. Create returns *NameConflictError if the existing object has another owner, or none.
func (c *Client) Create(ctx context.Context, object client.Object) error {
	err := c.client.Create(ctx, object)
	if err == nil {
		c.logChange(ctx, "Created object", object)
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	owner := metav1.GetControllerOfNoCopy(object)
	kind, gvkErr := apiutil.GVKForObject(object, c.client.Scheme())
	if gvkErr != nil {
		return gvkErr
	}
	existing := &metav1.PartialObjectMetadata{}
	existing.SetGroupVersionKind(kind)
	key := client.ObjectKeyFromObject(object)
	if err := c.live.Get(ctx, key, existing); apierrors.IsNotFound(err) {
		return &NameConflictError{Kind: kind.Kind, Name: key.Name, Terminating: true}
	} else if err != nil {
		return fmt.Errorf("reading %s %s, whose name is needed: %w", kind.Kind, key.Name, err)
	}

	other := metav1.GetControllerOfNoCopy(existing)
	conflict := &NameConflictError{Kind: kind.Kind, Name: key.Name, Terminating: existing.DeletionTimestamp != nil}
	switch {
	case conflict.Terminating, other == nil:
		return conflict
	case owner != nil && other.UID == owner.UID:
		if existing.Labels[v1alpha1.LabelManagedBy] == object.GetLabels()[v1alpha1.LabelManagedBy] {
			return nil
		}
		lost := map[string]string{}
		for k, v := range object.GetLabels() {
			if _, has := existing.Labels[k]; !has || k == v1alpha1.LabelManagedBy {
				lost[k] = v
			}
		}
		return c.RestoreLabels(ctx, existing, lost)
	}
	conflict.Owner = other.Kind + " " + other.Name
	if owner != nil && other.Kind == owner.Kind && other.Name == owner.Name {
		conflict.Terminating = true // an earlier owner of the same name, which no longer exists
	} else if conflict.Terminating, err = c.ownerGone(ctx, key.Namespace, other); err != nil {
		return err
	}
	return conflict
}

// ownerGone reports whether the owner no longer exists. Owners of kinds outside grove.io are assumed to exist.
func (c *Client) ownerGone(ctx context.Context, namespace string, ref *metav1.OwnerReference) (bool, error) {
	group := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupVersion() // empty if it cannot be parsed
	if !c.client.Scheme().Recognizes(group.WithKind(ref.Kind)) || group.Group != v1alpha1.GroupName {
		return false, nil
	}
	owner := &metav1.PartialObjectMetadata{}
	owner.SetGroupVersionKind(group.WithKind(ref.Kind))
	err := c.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, owner)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s %s, which owns an object whose name is needed: %w", ref.Kind, ref.Name, err)
	}
	return owner.UID != ref.UID, nil
}

// RestoreLabels sets labels of an object that were removed or changed.
func (c *Client) RestoreLabels(ctx context.Context, object client.Object, labels map[string]string) error {
	kind, err := apiutil.GVKForObject(object, c.client.Scheme())
	if err != nil {
		return err
	}
	restored := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}}
	restored.SetGroupVersionKind(kind)
	// With the UID, the patch cannot apply to a successor of the same name.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID(), "labels": labels}})
	if err != nil {
		return err
	}
	if err := c.client.Patch(ctx, restored, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("restoring the labels of %s %s: %w", kind.Kind, object.GetName(), err)
	}
	klog.FromContext(ctx).V(2).Info("Restored labels", "kind", kind.Kind, "object", klog.KObj(object))
	return nil
}

// CreateOrUpdate creates a desired object, or updates the existing one (nil: there is none) to the desired state. An
// object that is being deleted is left alone: the end of its deletion triggers the next pass.
func CreateOrUpdate[T interface {
	workload.Object
	client.Object
}](ctx context.Context, c *Client, existing, want T) error {
	name := want.GetObjectKind().GroupVersionKind().Kind + " " + want.GetName()
	if reflect.ValueOf(existing).IsNil() {
		if err := c.Create(ctx, want); err != nil {
			return fmt.Errorf("creating %s: %w", name, err)
		}
		return nil
	}
	if existing.GetDeletionTimestamp() != nil {
		return nil
	}
	updated, differs := workload.Updated(existing, want)
	if !differs {
		return nil
	}
	err := c.retryHarmless(ctx, existing, func(present client.Object) error {
		updated, _ = workload.Updated(present.(T), want)
		return c.client.Update(ctx, updated)
	})
	if err != nil {
		return fmt.Errorf("updating %s: %w", name, err)
	}
	c.logChange(ctx, "Updated object", updated)
	return nil
}

// maxHarmless is the number of times that a write is repeated because others have changed the object harmlessly.
const maxHarmless = 3

// retryHarmless calls write with an object as the pass has read it. After a conflict it calls write again with the
// version in the API server, if everything on which the decisions of the pass rest is the same there
// (workload.SameState): a tool that annotates the objects of a workload all the time must not delay it. Otherwise the
// conflict is returned.
func (c *Client) retryHarmless(ctx context.Context, read workload.Object, write func(present client.Object) error) error {
	present := read.(client.Object)
	for range maxHarmless {
		err := write(present)
		if !apierrors.IsConflict(err) {
			return err
		}
		live, readErr := c.liveIfSame(ctx, read)
		if readErr != nil || live == nil {
			return err
		}
		present = live
	}
	return write(present)
}

// liveIfSame returns an object as it is in the API server, nil if it differs from the given version in more than the
// keys of others.
func (c *Client) liveIfSame(ctx context.Context, read workload.Object) (client.Object, error) {
	live := reflect.New(reflect.TypeOf(read).Elem()).Interface().(client.Object)
	err := c.live.Get(ctx, types.NamespacedName{Namespace: read.GetNamespace(), Name: read.GetName()}, live)
	if err != nil || !workload.SameState(read, live) {
		return nil, client.IgnoreNotFound(err)
	}
	return live, nil
}

// CreateOrUpdateUncached is CreateOrUpdate for objects that are not cached: existing is read first. One that a deleted
// owner of the same name has left without an owner is adopted.
func CreateOrUpdateUncached[T interface {
	workload.Object
	client.Object
}](ctx context.Context, c *Client, existing, want T) error {
	err := c.live.Get(ctx, client.ObjectKeyFromObject(want), existing)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %s: %w", want.GetObjectKind().GroupVersionKind().Kind, want.GetName(), err)
	}
	other, owner := metav1.GetControllerOfNoCopy(existing), metav1.GetControllerOfNoCopy(want)
	isOrphan := other == nil && maps.Equal(naming.IdentityLabels(existing.GetLabels()), naming.IdentityLabels(want.GetLabels()))
	if apierrors.IsNotFound(err) || !isOrphan && (other == nil || other.UID != owner.UID) {
		var none T
		return CreateOrUpdate(ctx, c, none, want) // Create handles an object of another owner
	}
	return CreateOrUpdate(ctx, c, existing, want)
}

// WriteStatus writes the status of object, which was before when it was read, if the two differ. The write fails with a
// conflict if the object has changed since, except for labels and annotations of others.
func (c *Client) WriteStatus(ctx context.Context, before, object client.Object) error {
	if equality.Semantic.DeepEqual(before, object) {
		return nil
	}
	if c.pulse.wait() > 0 {
		return errStoodStill(object.GetName())
	}
	err := c.retryHarmless(ctx, before, func(present client.Object) error {
		base := before.DeepCopyObject().(client.Object)
		base.SetResourceVersion(present.GetResourceVersion())
		object.SetResourceVersion(present.GetResourceVersion())
		return c.client.Status().Patch(ctx, object, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// Delete deletes the object with the UID that was read, but not a successor of the same name. An object that is gone
// or being deleted is not an error.
func (c *Client) Delete(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	return c.deleteIf(ctx, object, client.Preconditions{UID: &uid})
}

// DeleteVersion is Delete of an object that has not changed since it was read; otherwise it returns a conflict.
func (c *Client) DeleteVersion(ctx context.Context, object client.Object) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	return c.deleteIf(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
}

func (c *Client) deleteIf(ctx context.Context, object client.Object, preconditions client.Preconditions) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	err := c.client.Delete(ctx, object, preconditions, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil {
		c.logChange(ctx, "Deleted object", object)
	}
	return client.IgnoreNotFound(err)
}

// DeleteRecorded calls remove for 0 to n-1, at most parallel calls at a time, unless recorded, whose status says what
// is deleted, has changed since it was written.
func (c *Client) DeleteRecorded(ctx context.Context, recorded client.Object, n, parallel int, remove func(i int) error) error {
	if n == 0 {
		return nil
	}
	if err := c.EnsureUpToDate(ctx, recorded); err != nil {
		return err
	}
	return ForEach(n, parallel, remove)
}

// Release removes the owner reference from the objects, of the kinds of lists, of an owner that is being deleted with
// --cascade=orphan. The garbage collector does the same, except for kinds that were installed less than half a minute
// ago: it discovers kinds one after the other, and may remove the owner before it knows all kinds that the owner owns,
// and then delete their objects.
func (c *Client) Release(ctx context.Context, owner client.Object, parallel int, lists ...client.ObjectList) error {
	if owner.GetDeletionTimestamp() == nil || !controllerutil.ContainsFinalizer(owner, metav1.FinalizerOrphanDependents) {
		return nil
	}
	var owned []client.Object
	for _, list := range lists {
		if err := c.ListOwned(ctx, owner, list); err != nil {
			return err
		}
		owned = append(owned, objects(list)...)
	}
	return ForEach(len(owned), parallel, func(i int) error {
		orphan := owned[i].DeepCopyObject().(client.Object)
		orphan.SetOwnerReferences(slices.DeleteFunc(orphan.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }))
		if err := c.client.Update(ctx, orphan); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing the owner reference of %T %s: %w", orphan, orphan.GetName(), err)
		}
		return nil
	})
}

// Adopt makes a set the controlling owner of the objects, of the kinds of lists, that a deleted set of its name has
// left without an owner (workload.IsOrphanOf). It fills lists with all objects that have the labels of the set, read
// from the API server. An object that has changed since is a conflict; so is the result as long as the cache does not
// show everything that the set owns.
func (c *Client) Adopt(ctx context.Context, set *v1alpha1.PodCliqueSet, parallel int, lists ...client.ObjectList) error {
	waits := false
	for _, list := range lists {
		cached := list.DeepCopyObject().(client.ObjectList)
		labels := client.MatchingLabels(naming.SelectSetObjects(set.Name))
		if err := c.live.List(ctx, list, client.InNamespace(set.Namespace), labels); err != nil {
			return fmt.Errorf("listing %T that may have been left by a PodCliqueSet %s: %w", list, set.Name, err)
		}
		if err := c.ListOwned(ctx, set, cached); err != nil {
			return err
		}
		shown := map[types.UID]bool{}
		for _, o := range objects(cached) {
			shown[o.GetUID()] = true
		}
		left := objects(list)
		err := ForEach(len(left), parallel, func(i int) error {
			if !workload.IsOrphanOf(set, left[i]) {
				return nil
			}
			ref := *metav1.NewControllerRef(set, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindPodCliqueSet))
			left[i].SetOwnerReferences(append(left[i].GetOwnerReferences(), ref))
			if err := c.client.Update(ctx, left[i]); err != nil {
				return fmt.Errorf("adopting %T %s: %w", left[i], left[i].GetName(), err)
			}
			c.logChange(ctx, "Adopted object", left[i])
			return nil
		})
		if err != nil {
			return err
		}
		waits = waits || slices.ContainsFunc(left, func(o client.Object) bool {
			return metav1.IsControlledBy(o, set) && !shown[o.GetUID()]
		})
	}
	if waits {
		return changed(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindPodCliqueSet), set)
	}
	return nil
}

// DeleteOwned deletes the objects, of the kind of list, of an owner that is being deleted. The garbage collector would
// do that when the owner is gone, for which a finalizer of others may let it wait. Those of an owner that is deleted
// with
// --cascade=orphan stay; an object that has lost its owner since it was read is a conflict.
func (c *Client) DeleteOwned(ctx context.Context, owner client.Object, parallel int, list client.ObjectList) error {
	if owner.GetDeletionTimestamp() == nil || controllerutil.ContainsFinalizer(owner, metav1.FinalizerOrphanDependents) {
		return nil
	}
	if err := c.ListOwned(ctx, owner, list); err != nil {
		return err
	}
	owned := objects(list)
	return ForEach(len(owned), parallel, func(i int) error { return c.DeleteVersion(ctx, owned[i]) })
}

// CleanUpFormerOwner deletes the objects, of the kinds of lists, that earlier owners of that kind and name have left,
// one kind after the other. The garbage collector would also delete them, but it deletes only some tens of objects per
// second in the whole cluster.
//
// The cache alone is not sufficient: CleanUpFormerOwner asks the API server whether the owner is gone. An object that
// has lost its owner reference since it was read (deleted with --cascade=orphan) is left alone, because a change since
// then is a conflict, and the pass is retried. owner is filled with the object in the cache.
func (c *Client) CleanUpFormerOwner(ctx context.Context, owner client.Object, kind string, name types.NamespacedName, parallel int, lists ...client.ObjectList) error {
	if err := c.client.Get(ctx, name, owner); client.IgnoreNotFound(err) != nil {
		return err
	} else if err != nil {
		owner.SetUID("")
	}
	left, some := make([][]client.Object, len(lists)), false
	for k, list := range lists {
		if err := c.client.List(ctx, list, client.InNamespace(name.Namespace),
			client.MatchingFields{byFormerOwner: formerOwner(v1alpha1.SchemeGroupVersion.String(), kind, name.Name)}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing %T left by %s %s: %w", list, kind, name.Name, err)
		}
		for _, object := range objects(list) {
			if object.GetDeletionTimestamp() == nil && metav1.GetControllerOfNoCopy(object).UID != owner.GetUID() {
				left[k], some = append(left[k], object), true
			}
		}
	}
	if !some {
		return nil
	}
	// This read finds an owner that is not in the cache yet.
	if err := c.live.Get(ctx, name, owner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %s: %w", kind, name.Name, err)
	} else if err != nil {
		owner.SetUID("")
	}
	var errs []error
	for _, objects := range left {
		errs = append(errs, ForEach(len(objects), parallel, func(i int) error {
			if metav1.GetControllerOfNoCopy(objects[i]).UID == owner.GetUID() {
				return nil
			}
			if served, err := c.Serves(ctx, objects[i]); err != nil || !served {
				return err
			}
			return c.DeleteVersion(ctx, objects[i])
		}))
	}
	return errors.Join(errs...)
}

// logChange logs a change of an object: at level 5 for pods, because there are so many, otherwise at level 2.
func (c *Client) logChange(ctx context.Context, what string, object client.Object) {
	level := 2
	if _, isPod := object.(*corev1.Pod); isPod {
		level = 5
	}
	logger := klog.FromContext(ctx).V(level)
	if !logger.Enabled() {
		return
	}
	kind, err := apiutil.GVKForObject(object, c.client.Scheme())
	if err != nil {
		return // the API server accepted the object: its kind is known
	}
	logger.Info(what, "kind", kind.Kind, "object", klog.KObj(object))
}

// DeleteAt is Delete at now, which also records the end of a PodClique's breach.
func (c *Client) DeleteAt(ctx context.Context, object client.Object, now time.Time) error {
	if err := c.Delete(ctx, object); err != nil {
		return err
	}
	if clique, ok := object.(*v1alpha1.PodClique); ok && clique.DeletionTimestamp == nil {
		if since := workload.BreachedSince(clique.Status.Conditions, clique.Status.MinAvailableBreachedSince); !since.IsZero() {
			metrics.BreachEnded(v1alpha1.KindPodClique, metrics.EndRemoved, now.Sub(since))
		}
	}
	return nil
}
