// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ListWatcher has the methods that every typed and dynamic client of a resource has.
type ListWatcher[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Until watches the objects that match the options and returns as soon as done returns true. done gets all of the
// objects, in no order, once at the beginning and after every change. Until survives a restart of the API server. It
// returns an error if ctx ends, or if the client may not list or watch. If ctx has no deadline, such as that of a test,
// Until gives up after three minutes.
//
//	err := controlplane.Until(ctx, client.CoreV1().Pods("default"), metav1.ListOptions{},
//		func(pods []*corev1.Pod) bool { return len(pods) == 8 })
func Until[P client.Object, L runtime.Object](ctx context.Context, client ListWatcher[L], options metav1.ListOptions, done func([]P) bool) error {
	if _, limited := ctx.Deadline(); !limited {
		limit, cancel := context.WithTimeout(ctx, 3*time.Minute)
		defer cancel()
		ctx = limit
	}
	for {
		satisfied, err := watchOnce(ctx, client, options, done)
		if satisfied {
			return nil
		}
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			return err
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = ctx.Err()
			}
			return fmt.Errorf("gave up waiting (%w), last: %w", context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond): // the API server is unavailable, or the watch is too old: list again
		}
	}
}

// untilNamed is Until for the object of this name, which has to exist.
func untilNamed[P client.Object, L runtime.Object](ctx context.Context, client ListWatcher[L], name string, done func(P) bool) error {
	return Until(ctx, client, metav1.ListOptions{FieldSelector: "metadata.name=" + name}, func(found []P) bool { return len(found) == 1 && done(found[0]) })
}

// watchOnce lists, then watches from there. It returns false when the watch ends before done is satisfied.
func watchOnce[P client.Object, L runtime.Object](ctx context.Context, client ListWatcher[L], options metav1.ListOptions, done func([]P) bool) (bool, error) {
	list, err := client.List(ctx, options)
	if err != nil {
		return false, err
	}
	listMeta, err := meta.ListAccessor(list)
	if err != nil {
		return false, err
	}
	objects := map[types.UID]P{}
	if err := meta.EachListItem(list, func(item runtime.Object) error {
		objects[item.(P).GetUID()] = item.(P)
		return nil
	}); err != nil {
		return false, err
	}
	if done(slices.Collect(maps.Values(objects))) {
		return true, nil
	}
	options.ResourceVersion = listMeta.GetResourceVersion()
	watcher, err := client.Watch(ctx, options)
	if err != nil {
		return false, err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return false, apierrors.FromObject(event.Object)
		}
		if object := event.Object.(P); event.Type == watch.Deleted {
			delete(objects, object.GetUID())
		} else {
			objects[object.GetUID()] = object
		}
		if done(slices.Collect(maps.Values(objects))) {
			return true, nil
		}
	}
	return false, nil
}
