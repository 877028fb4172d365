// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/controllers"
)

// The controllers' cache shows pods that are created and deleted, lose the label that it selects, and are held back,
// and calls its handlers accordingly.
func TestViews(t *testing.T) {
	ctx := t.Context()
	api, _ := newTestAPI()
	options := cache.Options{}
	controllers.AddCacheOptions(&options, controllers.Options{})
	c := newViewCache(api, options)
	must(t, c.IndexField(ctx, &corev1.Pod{}, "node", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }))
	informer, err := c.GetInformer(ctx, &corev1.Pod{})
	must(t, err)
	var told []string
	_, err = informer.AddEventHandlerWithOptions(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { told = append(told, "added "+o.(*corev1.Pod).Name) },
		UpdateFunc: func(_, o any) { told = append(told, "updated "+o.(*corev1.Pod).Name) },
		DeleteFunc: func(o any) { told = append(told, "deleted "+o.(*corev1.Pod).Name) },
	}, toolscache.HandlerOptions{})
	must(t, err)
	deliver := func() {
		c.settle()
		for kinds := c.waiting(); len(kinds) > 0; kinds = c.waiting() {
			c.deliver(kinds[0])
		}
	}
	want := func(what string, events []string, onNode int) {
		t.Helper()
		deliver()
		if diff := cmp.Diff(events, told); diff != "" {
			t.Errorf("%s: events of the handler (-want +got):\n%s", what, diff)
		}
		told = nil
		list := &corev1.PodList{}
		must(t, c.List(ctx, list, client.InNamespace("ns"), client.MatchingFields{"node": "n"}, client.UnsafeDisableDeepCopy))
		if len(list.Items) != onNode {
			t.Errorf("%s: the index finds %d pods, want %d", what, len(list.Items), onNode)
		}
	}

	ours, theirs := testPod("n"), testPod("n")
	ours.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue}
	theirs.Name = "theirs"
	must(t, api.Create(ctx, theirs))
	must(t, api.Create(ctx, ours))
	want("pods of ours and of others", []string{"added p"}, 1)

	c.hold(&corev1.Pod{}, true)
	ours.Annotations = map[string]string{"x": "y"}
	must(t, api.Update(ctx, ours))
	want("held back", nil, 1)
	c.hold(&corev1.Pod{}, false)
	want("let go", []string{"updated p"}, 1)

	ours.Labels = nil
	must(t, api.Update(ctx, ours))
	want("without its label", []string{"deleted p"}, 0)
	must(t, api.Delete(ctx, ours, client.GracePeriodSeconds(0)))
	want("gone, and not selected before", nil, 0)
	if err := c.List(ctx, &corev1.PodList{}, client.MatchingFields{"other": "n"}); err == nil {
		t.Error("an index that does not exist was asked, and there is no error")
	}
}

// A request is in the queue once, at the earliest of its times.
func TestQueue(t *testing.T) {
	_, clock := newTestAPI()
	q := newQueue(clock, workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute))
	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	}
	q.AddAfter(request("a"), 10*time.Second)
	q.AddAfter(request("a"), 20*time.Second)
	q.Add(request("b"))
	q.AddAfter(request("b"), time.Second)
	want := func(names ...string) {
		t.Helper()
		var got []string
		for _, r := range q.ready() {
			got = append(got, r.Name)
		}
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("ready (-want +got):\n%s", diff)
		}
	}
	want("b")
	q.take(request("b"))
	want()
	clock.Step(10 * time.Second)
	want("a")
	q.take(request("a"))
	for _, wait := range []time.Duration{time.Second, 2 * time.Second} {
		q.AddRateLimited(request("a"))
		if at, ok := q.next(); !ok || at.Sub(clock.Now()) != wait {
			t.Errorf("retried after %s, want %s", at.Sub(clock.Now()), wait)
		}
		q.take(request("a"))
	}
}
