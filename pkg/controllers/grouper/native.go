// SPDX-License-Identifier: Apache-2.0

package grouper

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/grouping"
	"github.com/muster-project/muster/pkg/membership"
)

// Native reads the groups of Kubernetes, which form trees. Each field reads one kind, of any version, as unstructured
// objects. nil: the kind is not grouped.
type Native struct {
	Groups, Composites client.Reader
}

const (
	groupsName     = grouping.PodGroupKind + "." + membership.NativeGroup
	compositesName = grouping.CompositeKind + "." + membership.NativeGroup
)

// newNative returns what reads the groups of Kubernetes among the kinds.
func newNative(kinds map[string]*children.ServedKind) *Native {
	n := &Native{}
	if groups := kinds[groupsName]; groups != nil {
		n.Groups = groups
	}
	if composites := kinds[compositesName]; composites != nil {
		n.Composites = composites
	}
	return n
}

// sources returns the sources of events for the controller of one kind of groups, but that of PodGroups about
// themselves.
func (n *Native) sources(kind grouping.Kind, kinds map[string]*children.ServedKind, pods *children.ServedKind) (sources []source.Source) {
	source := func(of *children.ServedKind, mapped func(context.Context, client.Object) []types.NamespacedName) {
		if of != nil {
			always := func(_, _ client.Object) children.Urgency { return children.Prompt }
			sources = append(sources, of.Source(children.ChangeHandler{Map: mapped, Urgency: always}.Handler()))
		}
	}
	if kind.Kind == grouping.PodGroupKind {
		source(kinds[compositesName], n.groupsIn)
		return append(sources, pods.Source(namedBy(kind)))
	}
	source(kinds[compositesName], n.selfAndRoot)
	source(kinds[groupsName], n.root)
	return append(sources, pods.Source(n.podsHandler(kind)))
}

// podsHandler returns the handler of events of pods that may be in trees. Every one counts when it comes, also one that
// knows its tree: nothing may be made of that yet, because no pod named it.
func (n *Native) podsHandler(kind grouping.Kind) handler.EventHandler {
	told := func(o client.Object) string { return o.GetAnnotations()[membership.CompositeAnnotation] }
	return children.ChangeHandler{
		Map: n.rootOfPod(kind),
		Urgency: func(before, after client.Object) children.Urgency {
			if told(before) == told(after) {
				return children.Never
			}
			return children.Prompt
		},
		DelayCreate: true}.Handler()
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

// groupsOf returns the groups that decide about the gang of an object: those above it, and of a topmost one all below
// it. nil: it is a PodGroup in no tree.
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

// rootOfPod returns a function that maps a pod to the tree that it is in, unless it is being deleted.
func (n *Native) rootOfPod(kind grouping.Kind) func(context.Context, client.Object) []types.NamespacedName {
	return func(ctx context.Context, o client.Object) []types.NamespacedName {
		pod, is := o.(*corev1.Pod)
		if !is || n.Groups == nil || kind.NamedBy(pod) == "" || pod.DeletionTimestamp != nil {
			return nil
		}
		group := &unstructured.Unstructured{}
		group.SetKind(grouping.PodGroupKind)
		if err := n.Groups.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: kind.NamedBy(pod)}, group); err != nil {
			return nil // when it comes, its tree is looked at
		}
		return n.root(ctx, group)
	}
}

// statusChanged is the urgency of an update of a PodGroup that was made of a group of Kubernetes, of which the status
// tells.
func statusChanged(before, after client.Object) children.Urgency {
	if urgency := children.SpecChanged(before, after); urgency != children.Never || before.GetResourceVersion() == after.GetResourceVersion() {
		return urgency
	}
	return children.Soon
}

// tell writes what became of a gang to the groups of Kubernetes that it was made of, and lets the pods of a tree find
// it.
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
	var pods []corev1.Pod
	for _, name := range groups {
		of, err := r.podsOf(ctx, root.GetNamespace(), name)
		if err != nil {
			return err
		}
		pods = append(pods, of...)
	}
	return children.ForEach(len(pods), maxParallel, func(i int) error {
		patch := grouping.JoinTree(&pods[i], root.GetName())
		if patch == nil {
			return nil
		}
		pod := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: pods[i].Namespace, Name: pods[i].Name}}
		if err := client.IgnoreNotFound(r.podGroups.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))); err != nil {
			return fmt.Errorf("writing to pod %s which CompositePodGroup it is in: %w", pod.Name, err)
		}
		return nil
	})
}
