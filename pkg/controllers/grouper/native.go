// SPDX-License-Identifier: Apache-2.0

package grouper

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/grouping"
	"github.com/muster-project/muster/pkg/membership"
)

// Native reads the groups of Kubernetes, which form trees, of any version, as unstructured objects, the pods that are in trees, and the
// Jobs for which the Job controller makes groups.
type Native struct {
	Groups, Composites client.Reader
	Pods               client.Reader
	Jobs               client.Reader // unstructured; nil: read from the API server
}

// nativeSources returns what reads the groups of Kubernetes, and the sources of events by kind.
func nativeSources(mgr ctrl.Manager, o children.Options) (*Native, map[string][]source.Source, error) {
	served := map[string]*children.ServedKind{}
	for _, kind := range o.Grouped {
		if !kind.IsNative() {
			continue
		}
		k, err := children.NewServedKind(mgr, o.Clock, grouping.Strip, kind.GroupKind())
		if err != nil {
			return nil, nil, err
		}
		served[kind.Kind] = k
	}
	groups, composites := served[grouping.PodGroupKind], served[grouping.CompositeKind]
	native, sources := &Native{}, map[string][]source.Source{}
	if groups != nil {
		native.Groups = groups
		sources[grouping.PodGroupKind] = append(sources[grouping.PodGroupKind], groups.Source(&handler.EnqueueRequestForObject{}))
	}
	if composites == nil {
		return native, sources, nil
	}
	native.Composites = composites
	always := func(_, _ client.Object) children.Urgency { return children.Prompt }
	sources[grouping.CompositeKind] = append(sources[grouping.CompositeKind],
		composites.Source(children.ChangeHandler{Map: native.selfAndRoot, Urgency: always}.Handler()))
	if groups != nil {
		sources[grouping.PodGroupKind] = append(sources[grouping.PodGroupKind], composites.Source(children.ChangeHandler{Map: native.groupsIn, Urgency: always}.Handler()))
		sources[grouping.CompositeKind] = append(sources[grouping.CompositeKind], groups.Source(children.ChangeHandler{Map: native.root, Urgency: always}.Handler()))
	}
	pods, ofPods, err := composites.WhileServed(mgr, children.ChangeHandler{Map: native.rootOfPod, Urgency: always, DelayCreate: true}.Handler(),
		&corev1.Pod{}, grouping.PodsInTrees, grouping.StripPod)
	if err != nil {
		return nil, nil, err
	}
	native.Pods = pods
	sources[grouping.CompositeKind] = append(sources[grouping.CompositeKind], ofPods)
	return native, sources, nil
}

func (n *Native) reader(kind grouping.Kind) client.Reader {
	if kind.Kind == grouping.CompositeKind {
		return n.Composites
	}
	return n.Groups
}

// list returns the objects of a namespace, which belong to the cache and must not be modified; of no reader none.
func list(ctx context.Context, reader client.Reader, namespace string) ([]*unstructured.Unstructured, error) {
	if reader == nil {
		return nil, nil
	}
	found := &unstructured.UnstructuredList{}
	if err := reader.List(ctx, found, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, 0, len(found.Items))
	for i := range found.Items {
		objects = append(objects, &found.Items[i])
	}
	return objects, nil
}

// groupsOf returns the groups that decide about the gang of an object: those above it, and of a topmost one all below it. nil: it is a
// PodGroup in no tree.
func (n *Native) groupsOf(ctx context.Context, object *unstructured.Unstructured) (*grouping.NativeGroups, error) {
	if object.GetKind() == grouping.PodGroupKind && grouping.ParentOf(object) == "" {
		return nil, nil
	}
	composites, err := list(ctx, n.Composites, object.GetNamespace())
	if err != nil {
		return nil, fmt.Errorf("listing CompositePodGroups of namespace %s: %w", object.GetNamespace(), err)
	}
	if object.GetKind() == grouping.PodGroupKind || grouping.ParentOf(object) != "" { // its ancestors suffice
		return grouping.NewNativeGroups(composites...), nil
	}
	groups, err := list(ctx, n.Groups, object.GetNamespace())
	if err != nil {
		return nil, fmt.Errorf("listing PodGroups of namespace %s: %w", object.GetNamespace(), err)
	}
	return grouping.NewNativeGroups(append(composites, groups...)...), nil
}

// root maps a group to its topmost CompositePodGroup.
func (n *Native) root(ctx context.Context, o client.Object) []types.NamespacedName {
	object, is := o.(*unstructured.Unstructured)
	if !is || grouping.ParentOf(object) == "" {
		return nil
	}
	in, err := n.groupsOf(ctx, object)
	if err != nil {
		return nil // the cache has no objects yet, and tells of each
	}
	root, err := in.RootOf(object)
	if err != nil || root == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: root}}
}

func (n *Native) selfAndRoot(ctx context.Context, o client.Object) []types.NamespacedName {
	return append(n.root(ctx, o), client.ObjectKeyFromObject(o))
}

// groupsIn maps a CompositePodGroup to the PodGroups in it, which have no gang without it.
func (n *Native) groupsIn(ctx context.Context, o client.Object) []types.NamespacedName {
	groups, err := list(ctx, n.Groups, o.GetNamespace())
	if err != nil {
		return nil // as for root
	}
	var keys []types.NamespacedName
	for _, g := range groups {
		if grouping.ParentOf(g) == o.GetName() {
			keys = append(keys, client.ObjectKeyFromObject(g))
		}
	}
	return keys
}

// rootOfPod maps a pod to the tree that it is in.
func (n *Native) rootOfPod(ctx context.Context, o client.Object) []types.NamespacedName {
	pod, is := o.(*corev1.Pod)
	if !is || n.Groups == nil {
		return nil
	}
	name := grouping.NativeGroupOf(pod)
	if name == "" {
		return nil
	}
	group := &unstructured.Unstructured{}
	group.SetKind(grouping.PodGroupKind)
	if err := n.Groups.Get(ctx, client.ObjectKey{Namespace: pod.GetNamespace(), Name: name}, group); err != nil {
		return nil // when it comes, its tree is looked at
	}
	keys := n.root(ctx, group)
	if len(keys) > 0 && grouping.JoinTree(pod, keys[0].Name) == nil {
		return nil
	}
	return keys
}

// statusChanged is the urgency of an update of a PodGroup that was made of a group of Kubernetes, of which the status tells.
func statusChanged(before, after client.Object) children.Urgency {
	if urgency := children.SpecChanged(before, after); urgency != children.Never || before.GetResourceVersion() == after.GetResourceVersion() {
		return urgency
	}
	return children.Soon
}

// tell writes what became of a gang to the groups of Kubernetes that it was made of, and lets the pods of a tree find it.
func (r *Reconciler) tell(ctx context.Context, object *unstructured.Unstructured, in *grouping.NativeGroups, want []*v2alpha2.PodGroup) error {
	if len(want) != 1 {
		return nil
	}
	groups := []*unstructured.Unstructured{object}
	if object.GetKind() == grouping.CompositeKind {
		names := in.PodGroupsIn(object.GetName())
		if err := r.joinPods(ctx, object, names); err != nil {
			return err
		}
		groups = groups[:0]
		for _, name := range names {
			group := &unstructured.Unstructured{}
			switch err := r.native.Groups.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, group); {
			case apierrors.IsNotFound(err):
			case err != nil:
				return fmt.Errorf("reading PodGroup %s of Kubernetes: %w", name, err)
			default:
				groups = append(groups, group)
			}
		}
	}
	made := &v2alpha2.PodGroup{}
	if err := r.podGroups.Get(ctx, client.ObjectKeyFromObject(want[0]), made); err != nil {
		return client.IgnoreNotFound(err) // the cache will tell of it
	}
	if owner := metav1.GetControllerOfNoCopy(made); owner == nil || owner.UID != object.GetUID() {
		return nil // a user's
	}
	return children.ForEach(len(groups), maxParallel, func(i int) error { return r.writeConditions(ctx, groups[i], made) })
}

// hasPods reports whether pods may belong to the gang of a group. Those of a Job whose controller has made the group may have another
// mark, or another scheduler; then nothing is made of it.
func (r *Reconciler) hasPods(ctx context.Context, group *unstructured.Unstructured) (bool, error) {
	owner := metav1.GetControllerOfNoCopy(group)
	if owner == nil || owner.APIVersion != batchv1.SchemeGroupVersion.String() || owner.Kind != "Job" {
		return true, nil
	}
	for _, reader := range []client.Reader{r.native.Jobs, r.live} { // the cache may not know it yet
		if reader == nil {
			continue
		}
		job := &unstructured.Unstructured{}
		job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind(owner.Kind))
		switch err := reader.Get(ctx, client.ObjectKey{Namespace: group.GetNamespace(), Name: owner.Name}, job); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return false, fmt.Errorf("reading Job %s, for which PodGroup %s of Kubernetes was made: %w", owner.Name, group.GetName(), err)
		case job.GetUID() == owner.UID:
			return grouping.HasPods(group, job), nil
		}
	}
	return false, nil // it has gone, and the pods go too
}

// deleteFormer deletes the PodGroup that was made of a former PodGroup of Kubernetes of the same name, where this one has none: its pods
// would start by it.
func (r *Reconciler) deleteFormer(ctx context.Context, object *unstructured.Unstructured) error {
	former := &v2alpha2.PodGroup{}
	name := membership.Native.GroupName(object.GetName())
	if err := r.podGroups.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, former); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !isOfFormer(former, grouping.PodGroupKind, object.GetName(), object.GetUID()) {
		return nil
	}
	return r.children.Delete(ctx, former)
}

func (r *Reconciler) writeConditions(ctx context.Context, group *unstructured.Unstructured, made *v2alpha2.PodGroup) error {
	conditions := grouping.NativeConditions(group, made, metav1.NewTime(r.clock.Now()))
	if conditions == nil {
		return nil
	}
	values := make([]any, 0, len(conditions))
	for i := range conditions {
		value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			return err
		}
		values = append(values, value)
	}
	changed := group.DeepCopy()
	if err := unstructured.SetNestedSlice(changed.Object, values, "status", "conditions"); err != nil {
		return err
	}
	err := r.podGroups.Status().Patch(ctx, changed, client.MergeFromWithOptions(group, client.MergeFromWithOptimisticLock{}))
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("writing the status of PodGroup %s of Kubernetes: %w", group.GetName(), err)
	}
	return nil
}

// joinPods lets the pods of the PodGroups find the tree of a topmost CompositePodGroup.
func (r *Reconciler) joinPods(ctx context.Context, root *unstructured.Unstructured, groups []string) error {
	pods := &corev1.PodList{}
	if err := r.native.Pods.List(ctx, pods, client.InNamespace(root.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the pods of CompositePodGroup %s: %w", root.GetName(), err)
	}
	slices.Sort(groups)
	return children.ForEach(len(pods.Items), maxParallel, func(i int) error {
		if _, is := slices.BinarySearch(groups, grouping.NativeGroupOf(&pods.Items[i])); !is {
			return nil
		}
		patch := grouping.JoinTree(&pods.Items[i], root.GetName())
		if patch == nil {
			return nil
		}
		pod := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: root.GetNamespace(), Name: pods.Items[i].Name}}
		if err := client.IgnoreNotFound(r.podGroups.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))); err != nil {
			return fmt.Errorf("writing to pod %s which CompositePodGroup it is in: %w", pod.Name, err)
		}
		return nil
	})
}
