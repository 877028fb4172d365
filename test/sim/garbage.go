// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// garbage returns the steps that the garbage collector can take: an object whose owners are all gone is deleted; one
// that has another owner left loses the references to those that are gone. The dependents of an owner that is deleted
// with the policy Orphan lose their references to it; those of an owner that is deleted with Foreground are deleted
// before it.
func (a *API) garbage() []step {
	a.mu.Lock()
	if a.clean == a.version {
		a.mu.Unlock()
		return nil
	}
	version := a.version
	var objects []client.Object
	alive := map[types.UID]client.Object{}
	for _, gvk := range a.kinds() {
		for _, o := range a.tables[gvk].ordered {
			objects = append(objects, o)
			alive[o.GetUID()] = o
		}
	}
	a.mu.Unlock()

	dependents := map[types.UID][]client.Object{}
	var steps []step
	add := func(what string, do func() error) { steps = append(steps, step{"garbage collector: " + what, do}) }
	collect := func(o client.Object) { add("deletes "+describe(o), func() error { return a.collect(o) }) }
	drop := func(o client.Object, owner string, which func(metav1.OwnerReference) bool) {
		add(describe(o)+" loses the reference to an owner that "+owner, func() error { return a.dropReferences(o, which) })
	}
	for _, o := range objects {
		gone, left := 0, 0
		for _, ref := range o.GetOwnerReferences() {
			owner := alive[ref.UID]
			if owner == nil {
				gone++
				continue
			}
			left++
			dependents[ref.UID] = append(dependents[ref.UID], o)
		}
		switch {
		case gone == 0:
		case left > 0:
			drop(o, "is gone", func(r metav1.OwnerReference) bool { return alive[r.UID] == nil })
		case o.GetDeletionTimestamp() == nil:
			collect(o)
		}
	}
	for _, owner := range objects {
		if owner.GetDeletionTimestamp() == nil {
			continue
		}
		orphans := slices.Contains(owner.GetFinalizers(), metav1.FinalizerOrphanDependents)
		foreground := slices.Contains(owner.GetFinalizers(), metav1.FinalizerDeleteDependents)
		if !orphans && !foreground {
			continue
		}
		for _, o := range dependents[owner.GetUID()] {
			switch {
			case orphans || hasOther(o, owner, alive):
				drop(o, "goes", func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
			case o.GetDeletionTimestamp() == nil:
				collect(o)
			}
		}
		if len(dependents[owner.GetUID()]) == 0 {
			add("lets "+describe(owner)+" go", func() error {
				next := owner.DeepCopyObject().(client.Object)
				next.SetFinalizers(slices.DeleteFunc(next.GetFinalizers(), func(f string) bool {
					return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
				}))
				return tolerant(a.Update(context.Background(), next))
			})
		}
	}
	if len(steps) == 0 {
		a.mu.Lock()
		a.clean = version
		a.mu.Unlock()
	}
	return steps
}

// hasOther reports whether an object has another owner than this one that exists and is not being deleted.
func hasOther(o, owner client.Object, alive map[types.UID]client.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		other := alive[r.UID]
		return r.UID != owner.GetUID() && other != nil && other.GetDeletionTimestamp() == nil
	})
}

// collect deletes an object, with its UID and resourceVersion as preconditions.
func (a *API) collect(o client.Object) error {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return tolerant(a.Delete(context.Background(), o, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// dropReferences removes owner references from an object.
func (a *API) dropReferences(o client.Object, which func(metav1.OwnerReference) bool) error {
	next := o.DeepCopyObject().(client.Object)
	next.SetOwnerReferences(slices.DeleteFunc(next.GetOwnerReferences(), which))
	return tolerant(a.Update(context.Background(), next))
}

// tolerant drops an error that a later step corrects.
func tolerant(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// kinds returns the kinds, sorted. a.mu is held.
func (a *API) kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for gvk := range a.tables {
		kinds = append(kinds, gvk)
	}
	slices.SortFunc(kinds, func(x, y schema.GroupVersionKind) int { return strings.Compare(x.String(), y.String()) })
	return kinds
}

// describe returns the kind and the name of an object.
func describe(o client.Object) string {
	return o.GetObjectKind().GroupVersionKind().Kind + " " + o.GetName()
}
