// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	topologyv1alpha1 "github.com/muster-project/muster/pkg/apis/topology/v1alpha1"
)

// API is an API server in memory for the kinds of the workload API and the kinds that these own. It implements the
// rules on which controllers rely: resourceVersions and conflicts, UIDs, generations, the status subresource,
// preconditions, finalizers, grace periods and propagation of deletions. It has neither validation nor admission.
//
// It is a client itself, with the semantics of the API server, without a cache. Safe for concurrent use.
type API struct {
	apiClient

	// Refuse, if not nil, is called before every write, like admission; if it returns an error, the write fails with
	// it. Set it between steps.
	Refuse func(verb Verb, object client.Object) error

	clock  clock.PassiveClock
	scheme *runtime.Scheme
	mapper meta.RESTMapper

	mu       sync.Mutex
	tables   map[schema.GroupVersionKind]*table // guarded by mu, as all fields below
	version  int64                              // the newest resourceVersion
	clean    int64                              // the version at which there was no garbage
	made     map[string]int                     // number of objects created so far, by kind and key: a part of their UIDs
	watchers []func(Change)
}

// Verb is the kind of a write.
type Verb string

// Verbs.
const (
	Create       Verb = "create"
	Update       Verb = "update"
	UpdateStatus Verb = "update status of"
	Delete       Verb = "delete"
)

// Change is the effect of one write on an object. Its objects are shared: read-only.
type Change struct {
	GVK      schema.GroupVersionKind
	Key      types.NamespacedName
	Old, New client.Object // Old is nil after a creation, New after a deletion
}

// table holds the objects of one kind. The objects are not modified in place.
type table struct {
	gvk        schema.GroupVersionKind
	resource   schema.GroupResource
	namespaced bool
	status     bool // status is a subresource
	custom     bool // of a CustomResourceDefinition
	objects    map[types.NamespacedName]client.Object
	ordered    []client.Object // the same by key; slices that were read are not modified
}

// NewAPI returns an API server without objects.
func NewAPI(clock clock.PassiveClock) *API {
	a := &API{clock: clock, scheme: newScheme(), tables: map[schema.GroupVersionKind]*table{}, made: map[string]int{}}
	a.apiClient = apiClient{api: a}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, t := range []table{
		{gvk: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindPodCliqueSet), namespaced: true, status: true, custom: true},
		{gvk: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindPodCliqueScalingGroup), namespaced: true, status: true, custom: true},
		{gvk: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindPodClique), namespaced: true, status: true, custom: true},
		{gvk: v2alpha2.SchemeGroupVersion.WithKind("PodGroup"), namespaced: true, status: true, custom: true},
		{gvk: v1alpha1.SchemeGroupVersion.WithKind("ClusterTopologyBinding"), custom: true},
		{gvk: topologyv1alpha1.SchemeGroupVersion.WithKind("Topology"), custom: true},
		{gvk: corev1.SchemeGroupVersion.WithKind("Pod"), namespaced: true, status: true},
		{gvk: corev1.SchemeGroupVersion.WithKind("Node"), status: true},
		{gvk: corev1.SchemeGroupVersion.WithKind("Namespace"), status: true},
		{gvk: coordinationv1.SchemeGroupVersion.WithKind("Lease"), namespaced: true},
		{gvk: corev1.SchemeGroupVersion.WithKind("Service"), namespaced: true, status: true},
		{gvk: autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), namespaced: true, status: true},
		{gvk: appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), namespaced: true},
		{gvk: rbacv1.SchemeGroupVersion.WithKind("Role"), namespaced: true},
		{gvk: rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), namespaced: true},
	} {
		scope := meta.RESTScope(meta.RESTScopeRoot)
		if t.namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.Add(t.gvk, scope)
		t.resource = schema.GroupResource{Group: t.gvk.Group, Resource: strings.ToLower(t.gvk.Kind) + "s"}
		t.objects = map[types.NamespacedName]client.Object{}
		a.tables[t.gvk] = &t
	}
	a.mapper = mapper
	return a
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme, coordinationv1.AddToScheme, rbacv1.AddToScheme,
		v2alpha2.AddToScheme, v1alpha1.AddToScheme, topologyv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}

// watch registers f, which is called with every later change, in the order of resourceVersions and one call at a time.
// f must not call the API.
func (a *API) watch(f func(Change)) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchers = append(a.watchers, f)
	i := len(a.watchers) - 1
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.watchers[i] = nil
	}
}

// tableOf returns the table of the kind of an object or a list, typed or PartialObjectMetadata.
func (a *API) tableOf(o runtime.Object) (*table, error) {
	gvk, err := apiutil.GVKForObject(o, a.scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	t := a.tables[gvk]
	if t == nil {
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return t, nil
}

// with returns objects by key with o in place of the object of its key, or without that object if o is nil. The given
// list is not modified.
func with(ordered []client.Object, key types.NamespacedName, o client.Object) []client.Object {
	i, found := slices.BinarySearchFunc(ordered, key, func(x client.Object, key types.NamespacedName) int {
		return cmp.Or(strings.Compare(x.GetNamespace(), key.Namespace), strings.Compare(x.GetName(), key.Name))
	})
	rest := ordered[i:]
	if found {
		rest = rest[1:]
	}
	next := make([]client.Object, 0, len(ordered)+1)
	next = append(next, ordered[:i]...)
	if o != nil {
		next = append(next, o)
	}
	return append(next, rest...)
}

// Get implements client.Reader.
func (a *API) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	t, err := a.tableOf(into)
	if err != nil {
		return err
	}
	there, err := a.stored(t, key)
	if err != nil {
		return err
	}
	return fill(into, there, t.gvk, false)
}

// List implements client.Reader. It supports the selectors namespace and labels.
func (a *API) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	t, err := a.tableOf(into)
	if err != nil {
		return err
	}
	o := client.ListOptions{}
	o.ApplyOptions(options)
	name, byName := "", o.FieldSelector != nil && !o.FieldSelector.Empty()
	if byName {
		if name, byName = o.FieldSelector.RequiresExactMatch(metav1.ObjectNameField); !byName {
			return apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", o.FieldSelector))
		}
	}
	a.mu.Lock()
	all := t.ordered
	if byName {
		all = slices.DeleteFunc(slices.Clone(all), func(o client.Object) bool { return o.GetName() != name })
	}
	into.SetResourceVersion(strconv.FormatInt(a.version, 10))
	a.mu.Unlock()
	return fillList(into, all, &o, t.gvk)
}

// fill copies an object into another of its type, or its metadata into a PartialObjectMetadata. shared: pointers are
// shared with the object instead of copied.
func fill(into, from client.Object, gvk schema.GroupVersionKind, shared bool) error {
	if !shared {
		from = from.DeepCopyObject().(client.Object)
	}
	if partial, ok := into.(*metav1.PartialObjectMetadata); ok {
		partial.ObjectMeta = *objectMeta(from)
		partial.SetGroupVersionKind(gvk)
		return nil
	}
	target, source := reflect.ValueOf(into), reflect.ValueOf(from)
	if target.Type() != source.Type() {
		return fmt.Errorf("a %T cannot be read into a %T", from, into)
	}
	target.Elem().Set(source.Elem())
	into.GetObjectKind().SetGroupVersionKind(gvk)
	return nil
}

// fillList puts those objects into a list whose namespace and labels the options select.
func fillList(into client.ObjectList, all []client.Object, o *client.ListOptions, gvk schema.GroupVersionKind) error {
	selector := o.LabelSelector
	if selector == nil {
		selector = labels.Everything()
	}
	shared := o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy
	items := reflect.ValueOf(into).Elem().FieldByName("Items")
	selected := reflect.MakeSlice(items.Type(), 0, 0)
	for _, object := range all {
		if o.Namespace != "" && object.GetNamespace() != o.Namespace || !selector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		item := reflect.New(items.Type().Elem())
		if err := fill(item.Interface().(client.Object), object, gvk, shared); err != nil {
			return err
		}
		selected = reflect.Append(selected, item.Elem())
	}
	items.Set(selected)
	return nil
}

// objectMeta returns the metadata of an object without copying it.
func objectMeta(o client.Object) *metav1.ObjectMeta {
	return o.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// all returns the objects of the kind of an object, by key. Read-only.
func all[T client.Object](a *API) []T {
	var kind T
	t, err := a.tableOf(reflect.New(reflect.TypeOf(kind).Elem()).Interface().(client.Object))
	utilruntime.Must(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	objects := make([]T, 0, len(t.ordered))
	for _, o := range t.ordered {
		objects = append(objects, o.(T))
	}
	return objects
}
