// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

var (
	sets      = v1alpha1.SchemeGroupVersion.WithResource("podcliquesets")
	groups    = v1alpha1.SchemeGroupVersion.WithResource("podcliquescalinggroups")
	cliques   = v1alpha1.SchemeGroupVersion.WithResource("podcliques")
	podGroups = v2alpha2.SchemeGroupVersion.WithResource("podgroups")
	services  = corev1.SchemeGroupVersion.WithResource("services")
	hpas      = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	podsKind  = corev1.SchemeGroupVersion.WithResource("pods")
)

// world is the environment of one test: a namespace, and nodes that only its pods select.
type world struct {
	t         *testing.T
	ctx       context.Context
	namespace string
	client    client.Client
	dynamic   dynamic.Interface
	nodes     []string
}

// patience is the longest that a test waits for anything.
const patience = 90 * time.Second

// ownPlane gives the test a control plane of its own, with Muster installed. The test starts what runs on it.
func ownPlane(t *testing.T, ctx context.Context, options controlplane.Options) {
	t.Helper()
	oldPlane, oldController, oldScheduler := cp, controller, scheduler
	t.Cleanup(func() { cp, controller, scheduler = oldPlane, oldController, oldScheduler })
	plane, err := controlplane.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plane.Stop)
	if err := plane.InstallMuster(ctx); err != nil {
		t.Fatal(err)
	}
	cp = plane
}

// newWorld creates a namespace and nodes with 8 GPUs each, which are deleted at the end of the test.
func newWorld(t *testing.T, nodes int) *world {
	t.Helper()
	return newWorldFor(t, nodes, 15*time.Minute)
}

// newWorldFor is newWorld for a test that takes longer than others.
func newWorldFor(t *testing.T, nodes int, limit time.Duration) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v2alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-", "#", "-", "Test", "").Replace(t.Name()))
	w := &world{t: t, ctx: ctx, namespace: fmt.Sprintf("%.40s-%d", name, time.Now().UnixNano()%1_000_000)}
	var err error
	config := cp.Admin()
	config.WarningHandler = rest.NoWarnings{}
	w.client, err = client.New(config, client.Options{Scheme: scheme})
	w.must(err, "making a client")
	w.dynamic, err = dynamic.NewForConfig(cp.Admin())
	w.must(err, "making a dynamic client")
	w.must(cp.CreateNamespace(ctx, w.namespace), "creating the namespace")
	w.addNodes(nodes)
	t.Cleanup(w.close)
	return w
}

func (w *world) addNodes(n int) {
	w.t.Helper()
	names, err := cp.CreateNodes(w.ctx, controlplane.NodeOptions{
		Count: n, GPUs: 8, First: len(w.nodes), NamePrefix: w.namespace, Labels: map[string]string{"world": w.namespace},
	})
	w.must(err, "creating nodes")
	w.nodes = append(w.nodes, names...)
}

// close deletes everything.
func (w *world) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if w.t.Failed() {
		w.tell()
		w.letPodsEnd()
	}
	if err := w.client.DeleteAllOf(ctx, &v1alpha1.PodCliqueSet{}, client.InNamespace(w.namespace)); err != nil {
		w.t.Errorf("deleting the PodCliqueSets: %v", err)
	}
	if err := controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{},
		func(pods []*corev1.Pod) bool { return len(pods) == 0 }); err != nil {
		w.t.Errorf("waiting for the pods to go: %v", err)
	}
	for _, node := range w.nodes {
		_ = cp.Client().CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{})
	}
}

// letPodsEnd revives the nodes that a failed test left dead, and releases the pods that it held.
func (w *world) letPodsEnd() {
	for _, node := range w.nodes {
		cp.Kubelets().Revive(node)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pods := &corev1.PodList{}
	_ = w.client.List(ctx, pods, client.InNamespace(w.namespace))
	for _, p := range pods.Items {
		_ = cp.AnnotatePod(ctx, w.namespace, p.Name, map[string]string{controlplane.StuckAnnotation: "false"})
	}
}

// tell logs the objects, for a test that failed.
func (w *world) tell() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var text strings.Builder
	pods := &corev1.PodList{}
	_ = w.client.List(ctx, pods, client.InNamespace(w.namespace))
	for _, p := range pods.Items {
		fmt.Fprintf(&text, "pod %s %s node=%s terminating=%v\n", p.Name, p.Status.Phase, p.Spec.NodeName, p.DeletionTimestamp != nil)
	}
	for _, kind := range []schema.GroupVersionResource{sets, groups, cliques, podGroups} {
		list, err := w.dynamic.Resource(kind).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, o := range list.Items {
			status, _ := yaml.Marshal(o.Object["status"])
			fmt.Fprintf(&text, "%s %s generation %d\n%s", kind.Resource, o.GetName(), o.GetGeneration(), indent(string(status)))
		}
	}
	w.t.Logf("what there is:\n%.12000s", text.String())
	w.t.Logf("muster-controller's last lines:\n%s", controller.LogTail(40))
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ") + "\n"
}

func (w *world) must(err error, what string) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// apply creates the PodCliqueSet that the YAML describes. Pods select the nodes of this test.
func (w *world) apply(text string) *v1alpha1.PodCliqueSet {
	w.t.Helper()
	set := w.parse(text)
	w.must(w.client.Create(w.ctx, set), "creating PodCliqueSet "+set.Name)
	return set
}

func (w *world) parse(text string) *v1alpha1.PodCliqueSet {
	w.t.Helper()
	set := &v1alpha1.PodCliqueSet{}
	w.must(yaml.UnmarshalStrict([]byte(text), set), "reading YAML")
	set.Namespace = w.namespace
	for _, c := range set.Spec.Template.Cliques {
		c.Spec.PodSpec.NodeSelector = map[string]string{"world": w.namespace}
		if len(c.Spec.PodSpec.Containers) == 0 {
			c.Spec.PodSpec.Containers = []corev1.Container{{Name: "main", Image: "registry.example/main:1"}}
		}
	}
	return set
}

// edit changes a PodCliqueSet as a person does.
func (w *world) edit(name string, change func(*v1alpha1.PodCliqueSet)) {
	w.t.Helper()
	w.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		set := &v1alpha1.PodCliqueSet{}
		if err := w.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, set); err != nil {
			return err
		}
		change(set)
		return w.client.Update(w.ctx, set)
	}), "editing PodCliqueSet "+name)
}

// scale sets spec.replicas through the scale subresource, as kubectl scale does.
func (w *world) scale(kind schema.GroupVersionResource, name string, replicas int) {
	w.t.Helper()
	w.must(w.tryScale(kind, name, replicas), fmt.Sprintf("scaling %s %s to %d", kind.Resource, name, replicas))
}

func (w *world) tryScale(kind schema.GroupVersionResource, name string, replicas int) error {
	_, err := w.dynamic.Resource(kind).Namespace(w.namespace).Patch(w.ctx, name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{}, "scale")
	return err
}

func (w *world) delete(kind schema.GroupVersionResource, name string) {
	w.t.Helper()
	w.must(w.dynamic.Resource(kind).Namespace(w.namespace).Delete(w.ctx, name, metav1.DeleteOptions{}), "deleting "+name)
}

// until waits for objects of a kind in the namespace.
func (w *world) until(what string, kind schema.GroupVersionResource, done func([]*unstructured.Unstructured) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	var last []*unstructured.Unstructured
	if err := controlplane.Until(ctx, w.dynamic.Resource(kind).Namespace(w.namespace), metav1.ListOptions{},
		func(objects []*unstructured.Unstructured) bool { last = objects; return done(objects) }); err != nil {
		var names []string
		for _, o := range last {
			names = append(names, o.GetName())
		}
		slices.Sort(names)
		w.t.Fatalf("waiting until %s: %v; there are %d %s: %s", what, err, len(last), kind.Resource, strings.Join(names, " "))
	}
}

// patient returns the test's context with a deadline.
func (w *world) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.ctx, patience)
}

// untilAvailable waits until the PodCliqueSet is Available, for its present generation.
func (w *world) untilAvailable(name string) {
	w.t.Helper()
	w.untilCondition(sets, name, v1alpha1.ConditionAvailable, "True")
}

func (w *world) untilCondition(kind schema.GroupVersionResource, name, condition, value string) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s %s is %s=%s", kind.Resource, name, condition, value), kind, func(objects []*unstructured.Unstructured) bool {
		for _, o := range objects {
			observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			if o.GetName() == name && observed == o.GetGeneration() && conditionOf(o, condition, "status") == value {
				return true
			}
		}
		return false
	})
}

// conditionOf returns a field of a condition, "" if it is not there.
func conditionOf(o *unstructured.Unstructured, condition, key string) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == condition {
			text, _ := m[key].(string)
			return text
		}
	}
	return ""
}

// untilPods waits until there are exactly these numbers of pods by PodClique, none terminating, all ready or, if bound
// is false, in any state.
func (w *world) untilPods(want map[string]int, ready bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	var got map[string]int
	if err := controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		got = map[string]int{}
		for _, p := range pods {
			if p.DeletionTimestamp != nil || (ready && !controlplane.PodReady(p)) {
				got["not yet"]++
			}
			got[p.Labels[v1alpha1.LabelPodClique]]++
		}
		return equal(got, want)
	}); err != nil {
		w.t.Fatalf("waiting for pods %v: %v; there are %v", want, err, got)
	}
}

func equal(a, b map[string]int) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	for k, v := range b {
		if a[k] != v {
			return false
		}
	}
	return true
}

// pods returns the pods of the namespace, by name.
func (w *world) pods() []corev1.Pod {
	w.t.Helper()
	list := &corev1.PodList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.namespace)), "listing pods")
	return list.Items
}

// names returns the names of the objects of a kind that are not being deleted, sorted.
func (w *world) names(kind schema.GroupVersionResource) []string {
	w.t.Helper()
	list, err := w.dynamic.Resource(kind).Namespace(w.namespace).List(w.ctx, metav1.ListOptions{})
	w.must(err, "listing "+kind.Resource)
	var names []string
	for _, o := range list.Items {
		if o.GetDeletionTimestamp() == nil {
			names = append(names, o.GetName())
		}
	}
	slices.Sort(names)
	return names
}

// untilNames waits until exactly these objects of a kind are there.
func (w *world) untilNames(kind schema.GroupVersionResource, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	w.until(fmt.Sprintf("the %s are %v", kind.Resource, want), kind, func(objects []*unstructured.Unstructured) bool {
		var names []string
		for _, o := range objects {
			names = append(names, o.GetName())
		}
		slices.Sort(names)
		return slices.Equal(names, want)
	})
}

// untilGone waits until nothing of a workload is left in the namespace.
func (w *world) untilGone() {
	w.t.Helper()
	for _, kind := range []schema.GroupVersionResource{sets, groups, cliques, podGroups, services, hpas, podsKind} {
		w.until("no "+kind.Resource+" is left", kind, func(objects []*unstructured.Unstructured) bool { return len(objects) == 0 })
	}
}

// checkIndices fails the test if a PodClique has two pods of one index, or an index that does not agree with its host
// name. A terminating pod counts until its grace period is over.
func (w *world) checkIndices() {
	w.t.Helper()
	seen := map[string]string{}
	for _, p := range w.pods() {
		if p.DeletionTimestamp != nil && time.Now().After(p.DeletionTimestamp.Time) {
			continue
		}
		key := p.Labels[v1alpha1.LabelPodClique] + "-" + p.Labels[v1alpha1.LabelPodIndex]
		if other := seen[key]; other != "" {
			w.t.Errorf("pods %s and %s both have index %s of PodClique %s", other, p.Name, p.Labels[v1alpha1.LabelPodIndex], p.Labels[v1alpha1.LabelPodClique])
		}
		seen[key] = p.Name
		if p.Spec.Hostname != key {
			w.t.Errorf("pod %s is called %s, want %s", p.Name, p.Spec.Hostname, key)
		}
	}
}
