// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/classes"
)

// ServesSet reports whether muster-controller serves a set; what belongs to another one is left alone. The class of a
// new set is read from the API server: its namespace may just have been labelled, or Grove's operator installed.
func (c *Client) ServesSet(ctx context.Context, set *v1alpha1.PodCliqueSet) (bool, error) {
	if set.Status.ObservedGeneration == 0 {
		return serves(ctx, c.liveClasses, set.Namespace, set)
	}
	return serves(ctx, c.classes, set.Namespace, set)
}

// Serves reports whether muster-controller serves the set that an object belongs to: its owner, or else the set in its
// label. Of a set that is gone the class of the namespace decides.
func (c *Client) Serves(ctx context.Context, object client.Object) (bool, error) {
	name := object.GetLabels()[v1alpha1.LabelPartOf]
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil && owner.Kind == v1alpha1.KindPodCliqueSet {
		name = owner.Name
	}
	if name == "" {
		return serves(ctx, c.liveClasses, object.GetNamespace(), nil)
	}
	set, key := &v1alpha1.PodCliqueSet{}, client.ObjectKey{Namespace: object.GetNamespace(), Name: name}
	err := c.client.Get(ctx, key, set, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) { // the cache may have the object before its set
		err = c.live.Get(ctx, key, set)
	}
	switch {
	case apierrors.IsNotFound(err):
		return serves(ctx, c.liveClasses, object.GetNamespace(), nil)
	case err != nil:
		return false, fmt.Errorf("reading PodCliqueSet %s: %w", name, err)
	case object.GetAnnotations()[v1alpha1.AnnotationGenerationHash] != "":
		// muster-controller has created it, so that the class was read when the set was new.
		return serves(ctx, c.classes, set.Namespace, set)
	}
	return c.ServesSet(ctx, set)
}

func serves(ctx context.Context, by classes.Reader, namespace string, set *v1alpha1.PodCliqueSet) (bool, error) {
	served, reason, err := by.Serves(ctx, namespace, set)
	if err == nil && !served {
		klog.FromContext(ctx).V(4).Info("Left a PodCliqueSet alone", "reason", reason)
	}
	return served, err
}

// WatchClasses adds watches to a controller: if the class of a set or of a namespace changes, or if the Lease of
// Grove's operator is created or deleted, all objects of the kind of list that this may concern are reconciled.
func (c *Client) WatchClasses(b *builder.Builder, list client.ObjectList) *builder.Builder {
	urgent := func(of func(client.Object) (namespace string)) ChangeHandler {
		return ChangeHandler{
			Map: func(ctx context.Context, o client.Object) []types.NamespacedName { return c.keysIn(ctx, of(o), list) },
			Urgency: func(before, after client.Object) Urgency {
				if before.GetAnnotations()[v1alpha1.ControllerClass] == after.GetAnnotations()[v1alpha1.ControllerClass] &&
					before.GetLabels()[v1alpha1.ControllerClass] == after.GetLabels()[v1alpha1.ControllerClass] {
					return Never
				}
				return Urgent
			}}
	}
	ofSet, ofNamespace := urgent(client.Object.GetNamespace).Handler(), urgent(client.Object.GetName).Handler()
	everywhere := urgent(func(client.Object) string { return metav1.NamespaceAll }).Handler()
	return b.
		Watches(&v1alpha1.PodCliqueSet{}, handler.Funcs{UpdateFunc: ofSet.UpdateFunc}).
		Watches(&corev1.Namespace{}, handler.Funcs{UpdateFunc: ofNamespace.UpdateFunc}).
		Watches(&coordinationv1.Lease{}, handler.Funcs{
			CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) {
				if c.classes.IsGroveLease(e.Object) {
					everywhere.Create(ctx, e, q)
				}
			},
			DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requestQueue) {
				if c.classes.IsGroveLease(e.Object) {
					everywhere.Delete(ctx, e, q)
				}
			}})
}

// keysIn returns the keys of the cached objects of the kind of list in a namespace, "": in all.
func (c *Client) keysIn(ctx context.Context, namespace string, list client.ObjectList) []types.NamespacedName {
	found := list.DeepCopyObject().(client.ObjectList)
	if err := c.client.List(ctx, found, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil // cannot happen: the controller watches the kind
	}
	return keys(found)
}
