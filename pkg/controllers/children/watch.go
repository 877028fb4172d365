// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/workload"
)

// SyncBatchPeriod is how long changes that only affect counts are collected before the object is reconciled. A single
// pod causes four such changes (created, bound, running, ready), and every pass may cost a write. The Job controller
// uses the same period.
const SyncBatchPeriod = time.Second

// PromptBatchPeriod is how long changes that may affect availability are collected. Such changes must be in the status
// within 1 s.
const PromptBatchPeriod = SyncBatchPeriod / 4

// ChangeHandler defines which objects are reconciled, and when, after a change of another object.
type ChangeHandler struct {
	// Map returns the objects to reconcile.
	Map func(ctx context.Context, o client.Object) []types.NamespacedName
	// Urgency returns the urgency of an update. A deletion is always Urgent.
	Urgency func(before, after client.Object) Urgency
	// DelayCreate: a creation is Soon instead of Urgent.
	DelayCreate bool
}

// Urgency is when the mapped objects are reconciled.
type Urgency int

// Urgencies, lowest first.
const (
	Never  Urgency = iota
	Soon           // after SyncBatchPeriod
	Prompt         // after PromptBatchPeriod
	Urgent         // immediately
)

// Handler returns the event handler.
func (h ChangeHandler) Handler() handler.Funcs {
	creation := Urgent
	if h.DelayCreate {
		creation = Soon
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requestQueue) { h.enqueue(ctx, e.Object, creation, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requestQueue) { h.enqueue(ctx, e.Object, Urgent, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requestQueue) {
			h.enqueue(ctx, e.ObjectNew, h.Urgency(e.ObjectOld, e.ObjectNew), q)
			if ownerUID(e.ObjectOld) != ownerUID(e.ObjectNew) { // the former owner
				h.enqueue(ctx, e.ObjectOld, Urgent, q)
			}
		},
	}
}

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueue enqueues the objects that an object is mapped to.
func (h ChangeHandler) enqueue(ctx context.Context, o client.Object, urgency Urgency, q requestQueue) {
	if urgency == Never {
		return
	}
	for _, key := range h.Map(ctx, o) {
		switch urgency {
		case Urgent:
			q.Add(reconcile.Request{NamespacedName: key})
		case Prompt:
			q.AddAfter(reconcile.Request{NamespacedName: key}, PromptBatchPeriod)
		case Soon:
			q.AddAfter(reconcile.Request{NamespacedName: key}, SyncBatchPeriod)
		}
	}
}

// Owner returns a function for ChangeHandler.Map: it maps an object to its controlling owner, if that is of the kind.
func Owner(kind string) func(context.Context, client.Object) []types.NamespacedName {
	return func(_ context.Context, o client.Object) []types.NamespacedName {
		ref := metav1.GetControllerOfNoCopy(o)
		if ref == nil || ref.Kind != kind {
			return nil
		}
		return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: ref.Name}}
	}
}

// SpecChanged is the urgency of an update of an object whose status does not matter: Urgent if its spec, labels,
// annotations or owner differ or its deletion has begun, else Never.
func SpecChanged(before, after client.Object) Urgency {
	if specDiffers(before, after) ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
		metaChanged(before, after) {
		return Urgent
	}
	return Never
}

// RevisionChanged is Soon if the current revision of a PodCliqueSet has changed, else Never.
func RevisionChanged(before, after client.Object) Urgency {
	was, is := before.(*v1alpha1.PodCliqueSet), after.(*v1alpha1.PodCliqueSet)
	if ptr.Equal(was.Status.CurrentGenerationHash, is.Status.CurrentGenerationHash) {
		return Never
	}
	return Soon
}

// SpecOrStatusChanged is SpecChanged, Prompt if a condition has changed on which availability depends, and Soon if
// anything else has changed.
func SpecOrStatusChanged(before, after client.Object) Urgency {
	if urgency := SpecChanged(before, after); urgency != Never {
		return urgency
	}
	switch {
	case before.GetResourceVersion() == after.GetResourceVersion():
		return Never // no change, only a resync
	case workload.ConditionsDiffer(conditions(before), conditions(after)):
		return Prompt
	default:
		return Soon
	}
}

// conditions returns the conditions of a PodClique or PodCliqueScalingGroup.
func conditions(object client.Object) []metav1.Condition {
	switch o := object.(type) {
	case *v1alpha1.PodClique:
		return o.Status.Conditions
	case *v1alpha1.PodCliqueScalingGroup:
		return o.Status.Conditions
	default:
		return nil
	}
}

// specDiffers reports whether the spec differs: by the generation, or for kinds without one, by comparing.
func specDiffers(before, after client.Object) bool {
	switch was := before.(type) {
	case *corev1.Service:
		return !equality.Semantic.DeepEqual(was.Spec, after.(*corev1.Service).Spec)
	case *autoscalingv2.HorizontalPodAutoscaler:
		return !equality.Semantic.DeepEqual(was.Spec, after.(*autoscalingv2.HorizontalPodAutoscaler).Spec)
	case *metav1.PartialObjectMetadata: // of Roles and RoleBindings, which have no status
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

// SpecChangedPredicate is a predicate for the controller's own kind. It drops updates of the status, which the
// controller writes: these are for OwnStatusHandler.
func SpecChangedPredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return SpecChanged(e.ObjectOld, e.ObjectNew) != Never }}
}

// OwnStatusHandler returns the event handler for updates of the controller's own kind that SpecChangedPredicate drops.
// They are Soon: a pass between the write of a status and its arrival in the cache compares its observations with the
// previous status. If the two are equal it writes nothing, and only the next pass detects that the written status is
// outdated.
func OwnStatusHandler() handler.EventHandler {
	self := func(_ context.Context, o client.Object) []types.NamespacedName {
		return []types.NamespacedName{client.ObjectKeyFromObject(o)}
	}
	urgency := func(before, after client.Object) Urgency {
		if SpecChanged(before, after) != Never || before.GetResourceVersion() == after.GetResourceVersion() {
			return Never
		}
		return Soon
	}
	update := ChangeHandler{Map: self, Urgency: urgency}.Handler().UpdateFunc
	return handler.Funcs{UpdateFunc: update}
}

// A failed pass is retried after FirstRetry, doubling to LastRetry: a quota that is raised causes no event.
const (
	FirstRetry = 20 * time.Millisecond
	LastRetry  = 30 * time.Second
)

// OptionalSources returns sources of events about kinds that muster-controller may not be allowed to watch in some
// clusters. A controller starts without them and receives events as soon as it has the permission. They have a cache
// of their own, because the manager's cache becomes ready only when all its kinds are; the objects are read by
// CreateOrUpdateUncached.
func OptionalSources(mgr ctrl.Manager, h handler.EventHandler, kinds ...schema.GroupVersionKind) ([]source.Source, error) {
	separate, err := separateCache(mgr, cache.Options{DefaultLabelSelector: ManagedSelector(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, err
	}
	var sources []source.Source
	for _, kind := range kinds {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		sources = append(sources, unawaited{source.Kind[client.Object](separate, object, h)})
	}
	return sources, nil
}

// separateCache returns a cache of its own.
func separateCache(mgr ctrl.Manager, o cache.Options) (cache.Cache, error) {
	o.HTTPClient, o.Scheme, o.Mapper = mgr.GetHTTPClient(), mgr.GetScheme(), mgr.GetRESTMapper()
	separate, err := cache.New(mgr.GetConfig(), o)
	if err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	if err := mgr.Add(separate); err != nil {
		return nil, fmt.Errorf("adding a cache: %w", err)
	}
	return separate, nil
}

// unawaited hides the WaitForSync method of a source.
type unawaited struct{ source.Source }

// ControllerOptions returns the options of a controller with so many concurrent passes, which wait for the API server
// most of the time.
func ControllerOptions(passes int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: passes,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](FirstRetry, LastRetry)}
}
