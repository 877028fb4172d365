// SPDX-License-Identifier: Apache-2.0

package grouper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/controllers/children"
	"github.com/muster-project/muster/pkg/grouping"
	"github.com/muster-project/muster/pkg/membership"
)

// bed is an API server in memory, whose PodGroups and workloads the controllers read from caches.
type bed struct {
	t        *testing.T
	api      client.Client
	cache    client.Client // nil: there is no delay
	recorder *events.FakeRecorder
}

// scheme is made once: most of the time of a test would go into it.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, v2alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	for _, kind := range []schema.GroupVersionKind{lwsKind, jobSetKind, nativeKind, nativeComposite, volcanoKind} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	return scheme
})

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	withStatus := &unstructured.Unstructured{}
	withStatus.SetGroupVersionKind(nativeKind)
	builder := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(objects...).WithStatusSubresource(withStatus)
	builder = builder.WithIndex(&corev1.Pod{}, groupIndex, groupOf)
	return builder.WithIndex(&v2alpha2.PodGroup{}, "controller.uid", func(o client.Object) []string {
		if ref := metav1.GetControllerOf(o); ref != nil {
			return []string{string(ref.UID)}
		}
		return nil
	}).Build()
}

func newBed(t *testing.T, objects ...client.Object) *bed {
	t.Helper()
	return &bed{t: t, api: newClient(t, objects...), recorder: events.NewFakeRecorder(100)}
}

// pass lets the controller of the kind reconcile a workload.
func (b *bed) pass(kind, name string) ctrl.Result {
	b.t.Helper()
	kinds, err := grouping.Select([]string{kind})
	if err != nil {
		b.t.Fatal(err)
	}
	var reader client.Reader = b.api
	cached := b.api
	if b.cache != nil {
		reader, cached = b.cache, readsFrom{b.api, b.cache}
	}
	native := &Native{Groups: inVersion{reader, nativeKind}, Composites: inVersion{reader, nativeComposite}}
	r := New(kinds[0], reader, cached, b.api, children.Options{Clock: testclock.NewFakePassiveClock(metav1.Now().Time)}, b.recorder)
	if kinds[0].IsNamed() {
		r.NamedBy(reader)
	}
	if kinds[0].IsNative() {
		r.workloads = inVersion{reader, map[string]schema.GroupVersionKind{nativeKind.Kind: nativeKind, nativeComposite.Kind: nativeComposite}[kinds[0].Kind]}
		r.InTrees(native)
	}
	result, err := r.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}})
	if err != nil {
		b.t.Fatalf("%s %s: %v", kind, name, err)
	}
	return result
}

// readsFrom is a client that reads from a cache.
type readsFrom struct {
	client.Client
	cache client.Reader
}

func (c readsFrom) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return c.cache.Get(ctx, key, o, options...)
}

func (c readsFrom) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.cache.List(ctx, list, options...)
}

// groups returns the PodGroups in words, sorted; of a tree the minimums of all leaves together.
func (b *bed) groups() string {
	b.t.Helper()
	list := &v2alpha2.PodGroupList{}
	if err := b.api.List(b.t.Context(), list); err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, g := range list.Items {
		n := ptr.Deref(g.Spec.MinMember, 0)
		for _, sub := range g.Spec.SubGroups {
			n += ptr.Deref(sub.MinMember, 0)
		}
		out = append(out, fmt.Sprintf("%s needs %d", g.Name, n))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func job(name string, uid types.UID, size int32, labels map[string]string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid},
		Spec: batchv1.JobSpec{Parallelism: &size, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{SchedulerName: "muster-scheduler"}}},
	}
}

func marked(value string) map[string]string { return map[string]string{v2alpha2.MinMemberKey: value} }

func groupName(kind, name string, uid types.UID) string {
	return membership.Workload{Kind: kind, Name: name, UID: uid}.GroupName()
}

// TestLifeOfAJob: what one pass makes of the PodGroup after each change of the Job.
func TestLifeOfAJob(t *testing.T) {
	t.Parallel()
	b := newBed(t, job("a", "u1", 4, marked("all")))
	name := groupName("Job", "a", "u1")
	for _, step := range []struct {
		what   string
		change func(*batchv1.Job)
		want   string
	}{
		{"created", func(*batchv1.Job) {}, name + " needs 4"},
		{"scaled out", func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](6) }, name + " needs 6"},
		{"scaled in", func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](2) }, name + " needs 2"},
		{"suspended", func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }, ""},
		{"resumed", func(j *batchv1.Job) { j.Spec.Suspend = nil }, name + " needs 2"},
		{"opted out", func(j *batchv1.Job) { j.Spec.Template.Labels[v2alpha2.GangKey] = "false" }, ""},
	} {
		j := &batchv1.Job{}
		if err := b.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, j); err != nil {
			t.Fatal(err)
		}
		step.change(j)
		if err := b.api.Update(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		b.pass("Job", "a")
		if got := b.groups(); got != step.want {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
	}
	b.pass("Job", "gone")
}

// TestDeadlineOfAJobThatChanges: the PodGroup tells the deadline that the Job has, and none when it has none any more;
// what a user tells of a Job without one stays.
func TestDeadlineOfAJobThatChanges(t *testing.T) {
	t.Parallel()
	b := newBed(t, job("a", "u1", 4, marked("all")))
	name := client.ObjectKey{Namespace: "ns", Name: groupName("Job", "a", "u1")}
	group := func() *v2alpha2.PodGroup {
		g := &v2alpha2.PodGroup{}
		if err := b.api.Get(t.Context(), name, g); err != nil {
			t.Fatal(err)
		}
		return g
	}
	for _, step := range []struct {
		what    string
		seconds *int64
		want    string
	}{
		{"none", nil, ""}, {"set", ptr.To[int64](3600), "3600s"}, {"longer", ptr.To[int64](7200), "7200s"}, {"removed", nil, ""}, {"set again", ptr.To[int64](60), "60s"}, {"and removed", nil, ""},
	} {
		j := &batchv1.Job{}
		if err := b.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, j); err != nil {
			t.Fatal(err)
		}
		j.Spec.ActiveDeadlineSeconds = step.seconds
		if err := b.api.Update(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		b.pass("Job", "a")
		if got := group().Annotations[v2alpha2.MaxRuntimeAnnotation]; got != step.want {
			t.Errorf("%s: its pods run for %q at most, want %q", step.what, got, step.want)
		}
	}
	g := group()
	metav1.SetMetaDataAnnotation(&g.ObjectMeta, v2alpha2.MaxRuntimeAnnotation, "8h")
	if err := b.api.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	b.pass("Job", "a")
	if got := group().Annotations[v2alpha2.MaxRuntimeAnnotation]; got != "8h" {
		t.Errorf("a user's %q, want 8h", got)
	}
}

var (
	lwsKind    = schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}
	jobSetKind = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}
)

// newWorkload returns one with UID u1.
func newWorkload(kind schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	w := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	w.SetGroupVersionKind(kind)
	w.SetNamespace("ns")
	w.SetName(name)
	w.SetUID("u1")
	return w
}

// TestReplicasOfALeaderWorkerSet: there is a PodGroup for each replica, also after the set was scaled.
func TestReplicasOfALeaderWorkerSet(t *testing.T) {
	t.Parallel()
	set := newWorkload(lwsKind, "llm", map[string]any{"leaderWorkerTemplate": map[string]any{"size": int64(4), "workerTemplate": template(nil)}})
	b := newBed(t, set)
	for _, step := range []struct {
		replicas int64
		want     string
	}{
		{2, "leaderworkerset-llm.0 needs 4, leaderworkerset-llm.1 needs 4"},
		{3, "leaderworkerset-llm.0 needs 4, leaderworkerset-llm.1 needs 4, leaderworkerset-llm.2 needs 4"},
		{1, "leaderworkerset-llm.0 needs 4"},
		{0, ""},
	} {
		if err := b.api.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(set.Object, step.replicas, "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
		if err := b.api.Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		b.pass("LeaderWorkerSet", "llm")
		if got := b.groups(); got != step.want {
			t.Errorf("%d replicas: %q, want %q", step.replicas, got, step.want)
		}
	}
}

// TestPodGroupsOfOthers: a PodGroup that a user wrote under the name wins; one that the workload owns is set right
// again.
func TestPodGroupsOfOthers(t *testing.T) {
	t.Parallel()
	name := groupName("Job", "a", "u1")
	owned := func(uid types.UID, labels map[string]string) *v2alpha2.PodGroup {
		return &v2alpha2.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "batch/v1", Kind: "Job", Name: "a", UID: uid, Controller: ptr.To(true)}}},
			Spec: v2alpha2.PodGroupSpec{MinMember: ptr.To[int32](1)},
		}
	}
	for what, tc := range map[string]struct {
		there client.Object
		want  string
	}{
		"of nobody": {&v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v2alpha2.PodGroupSpec{MinMember: ptr.To[int32](3)}}, name + " needs 3"},
		"of nobody, which was made for a former Job": {&v2alpha2.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{grouping.LabelManagedBy: grouping.LabelManagedByValue}},
			Spec:       v2alpha2.PodGroupSpec{MinMember: ptr.To[int32](3)}}, name + " needs 8"},
		"its own, edited": {owned("u1", map[string]string{grouping.LabelManagedBy: grouping.LabelManagedByValue}), name + " needs 8"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, job("a", "u1", 8, marked("all")), tc.there)
			result := b.pass("Job", "a")
			if got := b.groups(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if asksAgain := tc.want != name+" needs 8"; (result.RequeueAfter > 0) != asksAgain {
				t.Errorf("due again after %v", result.RequeueAfter)
			}
		})
	}
}

// TestRecreatedWorkload: a LeaderWorkerSet and a Deployment, whose PodGroups have no UID in their names, do not meet
// those of their predecessors: these are deleted, not changed, so that nothing that was recorded about them counts for
// the new ones.
func TestRecreatedWorkload(t *testing.T) {
	t.Parallel()
	for group, w := range map[string]*unstructured.Unstructured{
		"leaderworkerset-a.0": newWorkload(lwsKind, "a", map[string]any{"leaderWorkerTemplate": map[string]any{"size": int64(4), "workerTemplate": template(nil)}}),
		"deployment-a": newWorkload(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "a",
			map[string]any{"replicas": int64(4), "template": template(map[string]any{v2alpha2.MinMemberKey: "all"})}),
	} {
		t.Run(w.GetKind(), func(t *testing.T) {
			t.Parallel()
			left := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: group, UID: "former", Labels: map[string]string{grouping.LabelManagedBy: grouping.LabelManagedByValue},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "x/v1", Kind: w.GetKind(), Name: "a", UID: "former", Controller: ptr.To(true)}}},
				Spec: v2alpha2.PodGroupSpec{MinMember: ptr.To[int32](1)}, Status: v2alpha2.PodGroupStatus{Phase: "Running"}}
			b := newBed(t, w, left)
			b.pass(w.GetKind(), "a")
			got := &v2alpha2.PodGroup{}
			if err := b.api.Get(t.Context(), client.ObjectKeyFromObject(left), got); err != nil {
				t.Fatal(err)
			}
			if owner := metav1.GetControllerOf(got); owner == nil || owner.UID != w.GetUID() || got.UID == "former" || got.Status.Phase != "" {
				t.Errorf("PodGroup %+v", got)
			}
		})
	}
}

// TestRejectionIsTold: what the API server does not accept, as beyond a quota, is told on the workload, not in a log
// alone.
func TestRejectionIsTold(t *testing.T) {
	t.Parallel()
	b := newBed(t, job("a", "u1", 8, marked("all")))
	b.api = interceptor.NewClient(b.api.(client.WithWatch), interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: v2alpha2.GroupName, Resource: "podgroups"}, o.GetName(), errors.New("exceeded quota: few"))
	}})
	result := b.pass("Job", "a")
	const want = `Warning GangNotMade its pods wait: creating PodGroup job-a-0442a7f3: podgroups.scheduling.run.ai "job-a-0442a7f3" is forbidden: exceeded quota: few`
	if got := <-b.recorder.Events; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if result.RequeueAfter == 0 {
		t.Error("it is not tried again")
	}
}

// TestRefusalIsTold: an event on the workload names what is wrong, and no PodGroup is made.
func TestRefusalIsTold(t *testing.T) {
	t.Parallel()
	b := newBed(t, job("a", "u1", 8, marked("most")))
	b.pass("Job", "a")
	const want = `Warning GangNotMade label scheduling.run.ai/min-member of the pod template is "most": its pods wait; write "all" or a number from 1`
	if got := <-b.recorder.Events; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := b.groups(); got != "" {
		t.Errorf("made %s", got)
	}
}

// TestRefusedEditKeepsTheGang: an edit that cannot be obeyed takes the PodGroup from no pod that runs.
func TestRefusedEditKeepsTheGang(t *testing.T) {
	t.Parallel()
	b := newBed(t, job("a", "u1", 8, marked("all")))
	b.pass("Job", "a")
	before := b.groups()
	edited := &batchv1.Job{}
	if err := b.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, edited); err != nil {
		t.Fatal(err)
	}
	edited.Spec.Template.Labels[v2alpha2.MinMemberKey] = "most"
	if err := b.api.Update(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	b.pass("Job", "a")
	if got := b.groups(); got != before || got == "" {
		t.Errorf("%q, want %q as before", got, before)
	}
}
