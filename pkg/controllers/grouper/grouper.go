// SPDX-License-Identifier: Apache-2.0

package grouper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/grouping"
	"github.com/muster-project/muster/pkg/membership"
	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/workload"
)

// Reconciler makes the PodGroups of the workloads of one kind.
type Reconciler struct {
	kind      grouping.Kind
	workloads client.Reader // reads workloads from their cache, as unstructured objects
	native    *Native       // nil, unless the kind is of Kubernetes itself
	pods      client.Reader // reads pods that may name a group of the kind; nil: pods name none
	children  *children.Client
	podGroups client.Client
	live      client.Reader
	clock     clock.PassiveClock
	recorder  events.EventRecorder
}

// New returns a Reconciler. workloads reads workloads of the kind, c PodGroups, both from caches; live reads from the
// API server.
func New(kind grouping.Kind, workloads client.Reader, c client.Client, live client.Reader, o children.Options, recorder events.EventRecorder) *Reconciler {
	return &Reconciler{kind: kind, workloads: workloads, children: o.NewClient(c, live), podGroups: c, live: live, clock: o.Clock, recorder: recorder}
}

// NamedBy lets the Reconciler read the pods that may name a group of the kind. It makes no PodGroup that none of them
// names.
func (r *Reconciler) NamedBy(pods client.Reader) *Reconciler {
	r.pods = pods
	return r
}

// InTrees lets the Reconciler, whose kind is of Kubernetes itself, read the groups that form a tree with one.
func (r *Reconciler) InTrees(n *Native) *Reconciler {
	r.native = n
	return r
}

// Setup registers a controller for each of the grouped kinds. Each has a cache of its own: if it cannot be filled,
// because muster-controller may not read a kind, the other controllers do not wait for it.
func Setup(mgr ctrl.Manager, o children.Options) error {
	workloads, named := map[string]*children.ServedKind{}, []*children.ServedKind{}
	for _, kind := range o.Grouped {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind.GroupVersionKind)
		served, err := children.NewServedKind(mgr, object, cache.Options{DefaultTransform: grouping.Strip})
		if err != nil {
			return err
		}
		if workloads[kind.Name()] = served; kind.IsNamed() {
			named = append(named, served)
		}
	}
	pods, err := children.NewServedKind(mgr, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}},
		cache.Options{DefaultTransform: grouping.StripPod, DefaultFieldSelector: notOf(o.OtherSchedulers)})
	if err != nil {
		return err
	}
	pods.OnceServed(named...)
	pods.IndexField(groupIndex, groupOf)
	native := newNative(workloads)
	for _, kind := range o.Grouped {
		r := New(kind, workloads[kind.Name()], mgr.GetClient(), mgr.GetAPIReader(), o, mgr.GetEventRecorder("muster-controller"))
		owned, sources := children.ChangeHandler{Map: ownerOf(kind), Urgency: children.SpecChanged}, []source.Source{}
		if kind.IsNamed() {
			r.NamedBy(pods)
		}
		switch {
		case kind.IsNative():
			r.InTrees(native)
			owned.Urgency, sources = statusChanged, native.sources(kind, workloads, pods)
		case kind.IsNamed():
			sources = append(sources, pods.Source(namedBy(kind)))
		}
		if kind.Kind != grouping.CompositeKind {
			sources = append(sources, workloads[kind.Name()].Source(&handler.EnqueueRequestForObject{}))
		}
		b := ctrl.NewControllerManagedBy(mgr).
			Named("grouper-"+kind.Name()).
			Watches(&v2alpha2.PodGroup{}, owned.Handler()).
			WithOptions(children.ControllerOptions(8))
		for _, source := range sources {
			b = b.WatchesRawSource(source)
		}
		if err := b.Complete(r.children.Awake(r)); err != nil {
			return fmt.Errorf("setting up the controller that groups %ss: %w", kind.Name(), err)
		}
	}
	return nil
}

// notOf selects the pods of all schedulers but these, which have not ended.
func notOf(schedulers []string) fields.Selector {
	each := []fields.Selector{
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)), fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed))}
	for _, name := range schedulers {
		each = append(each, fields.OneTermNotEqualSelector("spec.schedulerName", name))
	}
	return fields.AndSelectors(each...)
}

// namedBy maps a pod to the group of the kind that it names.
func namedBy(kind grouping.Kind) handler.EventHandler {
	nameOf := func(o client.Object) string {
		pod, is := o.(*corev1.Pod)
		if !is {
			return ""
		}
		return kind.NamedBy(pod)
	}
	return children.ChangeHandler{
		Map: func(_ context.Context, o client.Object) []types.NamespacedName {
			if name := nameOf(o); name != "" {
				return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: name}}
			}
			return nil
		},
		Urgency: func(before, after client.Object) children.Urgency {
			if nameOf(before) == nameOf(after) {
				return children.Never
			}
			return children.Prompt
		}}.Handler()
}

// ownerOf maps a PodGroup to its controlling owner, if that is of the kind: there are PodGroups of several API groups.
func ownerOf(kind grouping.Kind) func(context.Context, client.Object) []types.NamespacedName {
	return func(_ context.Context, o client.Object) []types.NamespacedName {
		ref := metav1.GetControllerOfNoCopy(o)
		if ref == nil || schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() != kind.GroupKind() {
			return nil
		}
		return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: ref.Name}}
	}
}

// Reconcile creates, updates and deletes the PodGroups of a workload.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	workload := &unstructured.Unstructured{}
	workload.SetGroupVersionKind(r.kind.GroupVersionKind)
	err := r.workloads.Get(ctx, request.NamespacedName, workload)
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading %s %s: %w", r.kind.Name(), request.NamespacedName, err)
	case workload.GetDeletionTimestamp() != nil:
		return ctrl.Result{}, nil
	}
	var in *grouping.NativeGroups
	if r.native != nil {
		if in, err = r.native.groupsOf(ctx, workload); err != nil {
			return ctrl.Result{}, err
		}
	}
	owned := &v2alpha2.PodGroupList{}
	if err := r.children.ListOwned(ctx, workload, owned); err != nil {
		return ctrl.Result{}, err
	}
	if r.pods != nil && len(owned.Items) == 0 {
		named, err := r.isNamed(ctx, workload, in)
		if err == nil && (!named || grouping.ParentOf(workload) != "") {
			err = r.deleteFormer(ctx, workload)
		}
		if err != nil || !named {
			return ctrl.Result{}, err
		}
	}
	want, err := r.kind.PodGroupsIn(workload, in)
	if refused := (*grouping.RefusedError)(nil); errors.As(err, &refused) {
		r.recorder.Eventf(workload, nil, corev1.EventTypeWarning, v2alpha2.EventGangNotMade, "Group", "%s", refused.Error())
		return ctrl.Result{}, nil // pods that run keep their gang, as it was before the edit
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if ignored := r.kind.Ignored(workload); ignored != "" {
		r.recorder.Eventf(workload, nil, corev1.EventTypeWarning, v2alpha2.EventIgnoredKeys, "Group", "%s", ignored)
	}
	after, err := r.apply(ctx, owned.Items, want)
	if children.IsRefusal(err) {
		r.recorder.Eventf(workload, nil, corev1.EventTypeWarning, v2alpha2.EventGangNotMade, "Group", "%s", message.Shorten("its pods wait: "+err.Error(), message.MaxCondition))
	}
	var told error
	if r.native != nil {
		told = r.tell(ctx, workload, in, want)
	}
	return r.children.Result(ctx, request.NamespacedName, r.clock.Now(), after, err, told)
}

// othersInterval is how often it is checked whether a user's PodGroup still has a name that a workload needs: there is
// no event when it goes.
const othersInterval = time.Minute

// maxParallel is the maximum number of requests of a pass at a time.
const maxParallel = 16

// isNamed reports whether a pod names a group, or one that is below it.
func (r *Reconciler) isNamed(ctx context.Context, group *unstructured.Unstructured, in *grouping.NativeGroups) (bool, error) {
	names := []string{group.GetName()}
	if group.GetKind() == grouping.CompositeKind {
		names = in.PodGroupsIn(group.GetName())
	}
	for _, name := range names {
		pods, err := r.podsOf(ctx, group.GetNamespace(), name)
		if err != nil || len(pods) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// podsOf returns the pods that name a group, which belong to the cache and must not be modified.
func (r *Reconciler) podsOf(ctx context.Context, namespace, name string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	names := client.MatchingFields{groupIndex: membership.DialectOf(r.kind.Group).APIVersion + "/" + name}
	if err := r.pods.List(ctx, pods, client.InNamespace(namespace), names, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods that name %s %s/%s: %w", r.kind.Name(), namespace, name, err)
	}
	return pods.Items, nil
}

// groupIndex is an index of pods by the groups that they name.
const groupIndex = "group"

// groupOf returns the value of a pod in the index, none if it names no group.
func groupOf(o client.Object) []string {
	pod, is := o.(*corev1.Pod)
	if !is {
		return nil
	}
	d, name, ok := membership.NamedBy(pod)
	if !ok {
		return nil
	}
	return []string{d.APIVersion + "/" + name}
}

// apply makes the PodGroups that a workload needs the only ones that it owns. It is due again after the interval; 0:
// when something changes.
func (r *Reconciler) apply(ctx context.Context, owned []v2alpha2.PodGroup, want []*v2alpha2.PodGroup) (time.Duration, error) {
	present, unwanted := map[string]*v2alpha2.PodGroup{}, []*v2alpha2.PodGroup{}
	for i := range owned {
		present[owned[i].Name] = &owned[i]
		if !slices.ContainsFunc(want, func(g *v2alpha2.PodGroup) bool { return g.Name == owned[i].Name }) {
			unwanted = append(unwanted, &owned[i])
		}
	}
	deleted := children.ForEach(len(unwanted), maxParallel, func(i int) error { return r.children.Delete(ctx, unwanted[i]) })
	var ofOthers atomic.Bool
	err := children.ForEach(len(want), maxParallel, func(i int) error {
		workload.StoreAnnotationKeys(want[i])
		err := children.CreateOrUpdate(ctx, r.children, present[want[i].Name], want[i])
		if conflict := (*children.NameConflictError)(nil); errors.As(err, &conflict) {
			var made bool
			made, err = r.replaceFormer(ctx, want[i], err)
			ofOthers.CompareAndSwap(false, !made && err == nil)
		}
		return err
	})
	if ofOthers.Load() {
		return othersInterval, errors.Join(deleted, err)
	}
	return 0, errors.Join(deleted, err)
}

// replaceFormer makes a PodGroup whose name is taken, as conflict says, by that of a former workload of the same name.
// If the former one was deleted without its PodGroups, this one takes it over. If its PodGroups are still to be
// deleted, this one deletes it: pods that find it would start by its minimum, or one by one, as if they replaced its
// pods. A PodGroup of a user is left alone: made is false.
func (r *Reconciler) replaceFormer(ctx context.Context, want *v2alpha2.PodGroup, conflict error) (made bool, err error) {
	former := &v2alpha2.PodGroup{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(want), former); apierrors.IsNotFound(err) {
		return false, conflict
	} else if err != nil {
		return false, fmt.Errorf("reading PodGroup %s, whose name is needed: %w", want.Name, err)
	}
	next := metav1.GetControllerOfNoCopy(want)
	switch {
	case former.DeletionTimestamp != nil:
		return false, conflict
	case isMade(former) && metav1.GetControllerOfNoCopy(former) == nil:
		return true, children.CreateOrUpdate(ctx, r.children, former, want)
	case isOfFormer(former, next.Kind, next.Name, next.UID):
		if err := r.children.Delete(ctx, former); err != nil {
			return false, err
		}
		return true, children.CreateOrUpdate(ctx, r.children, (*v2alpha2.PodGroup)(nil), want)
	}
	klog.FromContext(ctx).V(2).Info("Left the PodGroup of a user alone", "podGroup", klog.KObj(want))
	return false, nil
}

// deleteFormer deletes the PodGroup that was made of a former group of the same name, where this one has none: its pods
// would start by it.
func (r *Reconciler) deleteFormer(ctx context.Context, group client.Object) error {
	former := &v2alpha2.PodGroup{}
	if err := r.podGroups.Get(ctx, client.ObjectKey{Namespace: group.GetNamespace(), Name: r.kind.MadeName(group.GetName())}, former); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !isOfFormer(former, r.kind.Kind, group.GetName(), group.GetUID()) {
		return nil
	}
	return r.children.Delete(ctx, former)
}

// isMade reports whether muster-controller made a PodGroup for a workload.
func isMade(g *v2alpha2.PodGroup) bool {
	return g.Labels[grouping.LabelManagedBy] == grouping.LabelManagedByValue
}

// isOfFormer reports whether a PodGroup was made for a former workload of the same kind and name.
func isOfFormer(made *v2alpha2.PodGroup, kind, name string, uid types.UID) bool {
	owner := metav1.GetControllerOfNoCopy(made)
	return isMade(made) && owner != nil && owner.Kind == kind && owner.Name == name && owner.UID != uid
}
