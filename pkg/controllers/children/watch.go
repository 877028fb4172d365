package children

import (
	"context"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Settling is how long news that only move numbers are collected before the object concerned is looked at: a pod alone
// brings four (created, bound, running, ready), and every look may cost a write. The Job controller waits as long.
const Settling = time.Second

// News says what a change of one object means for others.
type News struct {
	// Concerns returns the objects to look at.
	Concerns func(ctx context.Context, o client.Object) []types.NamespacedName
	// Of grades a change. nil: every change is Urgent. Deletion is always Urgent.
	Of func(before, after client.Object) Urgency
	// Calm: a creation is no more than Soon.
	Calm bool
}

// Urgency says when the objects concerned are looked at.
type Urgency int

// Urgencies, from nothing to at once.
const (
	Never Urgency = iota
	Soon          // after Settling
	Urgent
)

// Handler returns the news as an event handler.
func (n News) Handler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	tell := func(ctx context.Context, o client.Object, urgency Urgency, q queue) {
		for _, key := range n.Concerns(ctx, o) {
			switch urgency {
			case Urgent:
				q.Add(reconcile.Request{NamespacedName: key})
			case Soon:
				q.AddAfter(reconcile.Request{NamespacedName: key}, Settling)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if n.Calm {
				tell(ctx, e.Object, Soon, q)
			} else {
				tell(ctx, e.Object, Urgent, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { tell(ctx, e.Object, Urgent, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			urgency := Urgent
			if n.Of != nil {
				urgency = n.Of(e.ObjectOld, e.ObjectNew)
			}
			if urgency != Never {
				tell(ctx, e.ObjectNew, urgency, q)
			}
			if ownerUID(e.ObjectOld) != ownerUID(e.ObjectNew) { // whoever has lost it
				tell(ctx, e.ObjectOld, Urgent, q)
			}
		},
	}
}

// Owner returns the controlling owner if it is of that kind of grove.io, as News.Concerns wants it.
func Owner(kind string) func(context.Context, client.Object) []types.NamespacedName {
	return func(_ context.Context, o client.Object) []types.NamespacedName {
		ref := metav1.GetControllerOfNoCopy(o)
		if ref == nil || ref.Kind != kind {
			return nil
		}
		return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: ref.Name}}
	}
}

// Wanted grades a change of an object whose status does not matter: Urgent if what people or controllers want of it has
// changed, or it is being deleted, or it has another owner.
func Wanted(before, after client.Object) Urgency {
	if specChanged(before, after) ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		metaChanged(before, after) {
		return Urgent
	}
	return Never
}

// WantedOrCounts grades a change like Wanted, and Soon if anything else has changed.
func WantedOrCounts(before, after client.Object) Urgency {
	if urgency := Wanted(before, after); urgency != Never {
		return urgency
	}
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return Never // a resync
	}
	return Soon
}

// specChanged tells whether the spec differs: by the generation, or for kinds whose API keeps none, by looking.
func specChanged(before, after client.Object) bool {
	switch was := before.(type) {
	case *corev1.Service:
		return !equality.Semantic.DeepEqual(was.Spec, after.(*corev1.Service).Spec)
	case *autoscalingv2.HorizontalPodAutoscaler:
		return !equality.Semantic.DeepEqual(was.Spec, after.(*autoscalingv2.HorizontalPodAutoscaler).Spec)
	case *metav1.PartialObjectMetadata: // of Roles and RoleBindings, which are nothing but spec
		return before.GetResourceVersion() != after.GetResourceVersion()
	default:
		return before.GetGeneration() != after.GetGeneration()
	}
}

func metaChanged(before, after client.Object) bool {
	return !sameMap(before.GetLabels(), after.GetLabels()) || !sameMap(before.GetAnnotations(), after.GetAnnotations()) ||
		ownerUID(before) != ownerUID(after)
}

func ownerUID(o client.Object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return ref.UID
	}
	return ""
}

func sameMap(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// WantedOnly is a predicate for the controller's own kind: its status, which the controller writes, is no news.
func WantedOnly() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return Wanted(e.ObjectOld, e.ObjectNew) != Never }}
}

// What failed is tried again after FirstRetry, doubling to LastRetry: a quota that is raised tells nobody.
const (
	FirstRetry = 20 * time.Millisecond
	LastRetry  = 30 * time.Second
)
