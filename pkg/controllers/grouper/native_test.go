// SPDX-License-Identifier: Apache-2.0

package grouper

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/grouping"
	"github.com/muster-project/muster/pkg/membership"
)

var (
	nativeKind      = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1beta1", Kind: "PodGroup"}
	nativeComposite = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1alpha3", Kind: "CompositePodGroup"}
	volcanoKind     = schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}
)

// inVersion reads objects of one kind.
type inVersion struct {
	client.Reader
	kind schema.GroupVersionKind
}

func (r inVersion) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	o.GetObjectKind().SetGroupVersionKind(r.kind)
	return r.Reader.Get(ctx, key, o, options...)
}

func (r inVersion) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	list.GetObjectKind().SetGroupVersionKind(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
	return r.Reader.List(ctx, list, options...)
}

// nativeObject returns a group of Kubernetes that needs n pods or groups.
func nativeObject(kind schema.GroupVersionKind, name, parent string, n int64) *unstructured.Unstructured {
	field := map[string]string{"PodGroup": "minCount", "CompositePodGroup": "minGroupCount"}[kind.Kind]
	spec := map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{field: n}}}
	if parent != "" {
		spec["parentCompositePodGroupName"] = parent
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace("ns")
	o.SetName(name)
	o.SetUID(types.UID("uid-of-" + name))
	return o
}

func podIn(name, group string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To(group)}}}
}

// TestTreeOfKubernetes: the life of a tree whose objects come one after the other, and what its pods and PodGroups are
// told.
func TestTreeOfKubernetes(t *testing.T) {
	t.Parallel()
	const groups, composites = "PodGroup.scheduling.k8s.io", "CompositePodGroup.scheduling.k8s.io"
	b := newBed(t, nativeObject(nativeKind, "a", "root", 2), podIn("a-0", "a"), podIn("a-1", "a"), podIn("b-0", "b"), podIn("other", "x"))
	inTree := func() string {
		list := &corev1.PodList{}
		if err := b.api.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		var out []string
		for i := range list.Items {
			pod := &list.Items[i]
			out = append(out, fmt.Sprintf("%s: %s %s", pod.Name, membership.Group(pod), membership.Leaf(pod)))
		}
		return strings.Join(out, "; ")
	}
	b.pass(groups, "a")
	const want = `Warning GangNotMade it is in CompositePodGroup "root", which does not exist: its pods wait; create it`
	if got := <-b.recorder.Events; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	create := func(o client.Object) {
		if err := b.api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	create(nativeObject(nativeComposite, "root", "", 2))
	b.pass(composites, "root")
	if got := b.groups(); got != "composite-root needs 3" { // a, and what is missing
		t.Error(got)
	}
	create(nativeObject(nativeKind, "b", "root", 1))
	b.pass(groups, "b")
	b.pass(composites, "root")
	if got := b.groups(); got != "composite-root needs 3" { // a and b
		t.Error(got)
	}
	if got, want := inTree(), "a-0: composite-root a; a-1: composite-root a; b-0: composite-root b; other: kubernetes-x "; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}

	made := &v2alpha2.PodGroup{}
	if err := b.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "composite-root"}, made); err != nil {
		t.Fatal(err)
	}
	made.Status.Conditions = []metav1.Condition{{Type: v2alpha2.ConditionAdmitted, Status: metav1.ConditionTrue, Reason: "Admitted"}}
	made.Status.SubGroups = []v2alpha2.SubGroupStatus{{Name: "a", Admitted: true}, {Name: "b"}}
	if err := b.api.Update(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for range 2 {
		b.pass(composites, "root")
		for _, name := range []string{"a", "b"} {
			group := nativeObject(nativeKind, name, "", 1)
			if err := b.api.Get(t.Context(), client.ObjectKeyFromObject(group), group); err != nil {
				t.Fatal(err)
			}
			values, _, _ := unstructured.NestedSlice(group.Object, "status", "conditions")
			started := slices.ContainsFunc(values, func(v any) bool {
				return v.(map[string]any)["type"] == "PodGroupInitiallyScheduled" && v.(map[string]any)["status"] == "True"
			})
			if started != (name == "a") {
				t.Errorf("PodGroup %s: conditions %v", name, values)
			}
			if before := versions[name]; before != "" && before != group.GetResourceVersion() {
				t.Errorf("PodGroup %s is written again", name)
			}
			versions[name] = group.GetResourceVersion()
		}
	}
	if err := b.api.Delete(t.Context(), nativeObject(nativeKind, "b", "", 1)); err != nil {
		t.Fatal(err)
	}
	b.pass(composites, "root")
	if got := b.groups(); got != "composite-root needs 3" { // a, and what is missing again: nobody ends
		t.Error(got)
	}
}

// TestFormerGroupOfKubernetes: pods of a group that is created again, in a tree or before any of them, do not meet the
// PodGroup of the former one, by which they would start.
func TestFormerGroupOfKubernetes(t *testing.T) {
	t.Parallel()
	const groups = "PodGroup.scheduling.k8s.io"
	for what, tc := range map[string]struct {
		parent string
		pods   bool // are left
	}{"in a tree": {"root", true}, "in a tree, before its pods": {"root", false}, "before its pods": {"", false}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			former, pod := nativeObject(nativeKind, "a", "", 1), podIn("a-0", "a")
			b := newBed(t, former, pod)
			b.pass(groups, "a")
			if got := b.groups(); got != "kubernetes-a needs 1" {
				t.Fatal(got)
			}
			gone := []client.Object{former}
			if !tc.pods {
				gone = append(gone, pod)
			}
			for _, o := range gone {
				if err := b.api.Delete(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			again := nativeObject(nativeKind, "a", tc.parent, 1)
			again.SetUID("uid-again")
			if err := b.api.Create(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			b.pass(groups, "a")
			if got := b.groups(); got != "" {
				t.Error(got)
			}
		})
	}
}

// TestPodsOfTrees: a pod of a tree is looked at when it comes, even if its template names the topmost group, since
// nothing is made before, and when it leaves the tree; not at every change of its status.
func TestPodsOfTrees(t *testing.T) {
	t.Parallel()
	b := newBed(t, nativeObject(nativeComposite, "root", "", 1), nativeObject(nativeKind, "a", "root", 1))
	kinds, err := grouping.Select([]string{"CompositePodGroup.scheduling.k8s.io"})
	if err != nil {
		t.Fatal(err)
	}
	n := &Native{Groups: inVersion{b.api, nativeKind}, Composites: inVersion{b.api, nativeComposite}}
	told, untold, deleted := podIn("a-0", "a"), podIn("a-0", "a"), podIn("a-0", "a")
	told.Annotations = map[string]string{membership.CompositeAnnotation: "root"}
	deleted.DeletionTimestamp = ptr.To(metav1.Now())
	for what, tc := range map[string]struct {
		before, after *corev1.Pod
		want          int // requests
	}{
		"comes": {nil, untold, 1}, "comes and knows the tree": {nil, told, 1}, "of another group": {nil, podIn("b-0", "b"), 0}, "is told": {untold, told, 1},
		"is taken out": {told, untold, 1}, "its status changes": {told, told, 0}, "is being deleted": {told, deleted, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			h := n.podsHandler(kinds[0])
			if tc.before == nil {
				h.Create(t.Context(), event.CreateEvent{Object: tc.after}, queue)
			} else {
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, queue)
			}
			time.Sleep(2 * children.SyncBatchPeriod)
			synctest.Wait()
			if got := queue.Len(); got != tc.want {
				t.Errorf("%s: %d requests, want %d", what, got, tc.want)
			}
		})
	}
}

// TestGroupsWithoutPods: of the groups of other schedulers and of Kubernetes that no pod of Muster names nothing is
// made, and nothing is told of what could not be obeyed. What was made stays when the pods are gone.
func TestGroupsWithoutPods(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct {
		group *unstructured.Unstructured
		pod   *corev1.Pod
		want  string
	}{
		"PodGroup.scheduling.k8s.io": {nativeObject(nativeKind, "a", "", 2), podIn("p", "a"), "kubernetes-a needs 2"},
		"PodGroup.scheduling.volcano.sh": {newWorkload(volcanoKind, "a", map[string]any{"minMember": int64(2), "queue": "research"}),
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Annotations: map[string]string{"scheduling.k8s.io/group-name": "a"}}}, "volcano-a needs 2"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, tc.group, podIn("other", "b"))
			b.pass(what, "a")
			if got := b.groups(); got != "" || len(b.recorder.Events) > 0 {
				t.Fatalf("%q, %d events", got, len(b.recorder.Events))
			}
			if err := b.api.Create(t.Context(), tc.pod); err != nil {
				t.Fatal(err)
			}
			b.pass(what, "a")
			if err := b.api.Delete(t.Context(), tc.pod); err != nil {
				t.Fatal(err)
			}
			b.pass(what, "a")
			if got := b.groups(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestPodsThatMayNameGroups: of which pods the API server tells, by fields that it can select.
func TestPodsThatMayNameGroups(t *testing.T) {
	t.Parallel()
	for pod, want := range map[[2]string]bool{
		{"muster-scheduler", "Pending"}: true, {"muster-scheduler", "Running"}: true, {"muster-scheduler", "Succeeded"}: false,
		{"muster-scheduler", "Failed"}: false, {"default-scheduler", "Pending"}: false, {"volcano", "Running"}: false,
	} {
		of := fields.Set{"spec.schedulerName": pod[0], "status.phase": pod[1]}
		if got := notOf([]string{"default-scheduler", "volcano"}).Matches(of); got != want {
			t.Errorf("%v: %t", pod, got)
		}
	}
	if !notOf(nil).Matches(fields.Set{"spec.schedulerName": "default-scheduler", "status.phase": "Pending"}) {
		t.Error("there are no others")
	}
}

// TestOwnerOfOneGroup: a PodGroup is mapped to its owner by the controller of that kind alone, among the PodGroups of
// several groups.
func TestOwnerOfOneGroup(t *testing.T) {
	t.Parallel()
	made := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kubernetes-a", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "scheduling.k8s.io/v1alpha2", Kind: "PodGroup", Name: "a", Controller: ptr.To(true)}}}}
	for _, name := range grouping.Names() {
		kinds, err := grouping.Select([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		keys := ownerOf(kinds[0])(t.Context(), made)
		if (len(keys) == 1 && keys[0].Name == "a") != (name == "PodGroup.scheduling.k8s.io") {
			t.Errorf("%s: %v", name, keys)
		}
	}
}
