// SPDX-License-Identifier: Apache-2.0

package grouper

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	"github.com/muster-project/muster/test/rounds"
)

// bed is an API server in memory, whose PodGroups and workloads the controllers read from caches.
type bed struct {
	t        *testing.T
	api      client.Client
	cache    client.Client // nil: there is no delay
	recorder *events.FakeRecorder
}

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, v2alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	scheme.AddKnownTypeWithName(lwsKind, &unstructured.Unstructured{})
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
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
	r := New(kinds[0], reader, cached, b.api, children.Options{Clock: testclock.NewFakePassiveClock(metav1.Now().Time)}, b.recorder)
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

// groups returns the PodGroups in words, sorted.
func (b *bed) groups() string {
	b.t.Helper()
	list := &v2alpha2.PodGroupList{}
	if err := b.api.List(b.t.Context(), list); err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, g := range list.Items {
		out = append(out, fmt.Sprintf("%s needs %d", g.Name, ptr.Deref(g.Spec.MinMember, -1)))
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

var lwsKind = schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}

// TestReplicasOfALeaderWorkerSet: there is a PodGroup for each replica, also after the set was scaled.
func TestReplicasOfALeaderWorkerSet(t *testing.T) {
	t.Parallel()
	set := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"leaderWorkerTemplate": map[string]any{
		"size": int64(4), "workerTemplate": map[string]any{"spec": map[string]any{"schedulerName": "muster-scheduler"}}}}}}
	set.SetGroupVersionKind(lwsKind)
	set.SetNamespace("ns")
	set.SetName("llm")
	set.SetUID("u1")
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

// TestPodGroupsOfOthers: a PodGroup that a user wrote under the name wins; one that the workload owns is set right again.
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

// TestRejectionIsTold: what the API server does not accept, as beyond a quota, is told on the workload, not in a log alone.
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

// life is a random life of workloads, whose controllers, the garbage collector, the caches and a scheduler act at any time.
type life struct {
	*bed
	rng     *rand.Rand
	next    int
	lowest  map[types.UID]int32 // by workload: the fewest pods that it has ever asked for
	started map[types.UID]bool  // pods
	log     []string

	cachedWorkloads []client.Object
	cachedGroups    []v2alpha2.PodGroup
}

// TestAnyOrder: whatever comes first, no pod of a workload starts before as many as it asked for exist, and in the end there
// is one PodGroup for each workload that needs one, and no other.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20 * rounds.Number()) {
		l := &life{bed: newBed(t), rng: rand.New(rand.NewPCG(seed, 1)), lowest: map[types.UID]int32{}, started: map[types.UID]bool{}}
		for range 120 {
			l.step()
			if t.Failed() {
				t.Fatalf("seed %d:\n%s", seed, strings.Join(l.log, "\n"))
			}
		}
		l.settle()
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(l.log, "\n"))
		}
	}
}

// workloads returns those that exist, sorted.
func (l *life) workloads() []client.Object {
	l.t.Helper()
	var out []client.Object
	jobs, sets, deployments := &batchv1.JobList{}, &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}
	for _, list := range []client.ObjectList{jobs, sets, deployments} {
		if err := l.api.List(l.t.Context(), list); err != nil {
			l.t.Fatal(err)
		}
	}
	for i := range jobs.Items {
		out = append(out, &jobs.Items[i])
	}
	for i := range sets.Items {
		out = append(out, &sets.Items[i])
	}
	for i := range deployments.Items {
		out = append(out, &deployments.Items[i])
	}
	return out
}

// sizeOf returns the field with the number of pods.
func sizeOf(workload client.Object) **int32 {
	switch w := workload.(type) {
	case *batchv1.Job:
		return &w.Spec.Parallelism
	case *appsv1.StatefulSet:
		return &w.Spec.Replicas
	default:
		return &workload.(*appsv1.Deployment).Spec.Replicas
	}
}

func kindName(workload client.Object) string {
	switch workload.(type) {
	case *batchv1.Job:
		return "Job"
	case *appsv1.StatefulSet:
		return "StatefulSet"
	default:
		return "Deployment"
	}
}

// podOf returns the next pod that the controller of the workload makes.
func (l *life) podOf(workload client.Object) *corev1.Pod {
	l.next++
	uid := types.UID(fmt.Sprintf("pod-%d", l.next))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(uid), UID: uid, Labels: marked("all")}}
	owner := metav1.OwnerReference{APIVersion: "x/v1", Kind: kindName(workload), Name: workload.GetName(), UID: workload.GetUID(), Controller: ptr.To(true)}
	if owner.Kind == "Deployment" {
		owner.Kind, owner.Name, pod.Labels["pod-template-hash"] = "ReplicaSet", owner.Name+"-abc", "abc"
	}
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	return pod
}

func (l *life) step() {
	l.t.Helper()
	workloads := l.workloads()
	var some client.Object
	if len(workloads) > 0 {
		some = workloads[l.rng.IntN(len(workloads))]
	}
	note := func(format string, args ...any) { l.log = append(l.log, fmt.Sprintf(format, args...)) }
	switch what := l.rng.IntN(11); {
	case what == 0 && len(workloads) < 4:
		l.create(note)
	case some == nil:
	case what == 1:
		note("delete %s %s", kindName(some), some.GetName())
		l.must(l.api.Delete(l.t.Context(), some))
	case what == 2:
		size := int32(l.rng.IntN(5))
		*sizeOf(some) = &size
		if size > 0 {
			l.lowest[some.GetUID()] = min(l.lowest[some.GetUID()], size)
		}
		note("scale %s %s to %d", kindName(some), some.GetName(), size)
		l.must(l.api.Update(l.t.Context(), some))
	case what <= 4 && l.podsOf(some) < int(**sizeOf(some)):
		note("pod of %s %s", kindName(some), some.GetName())
		l.must(l.api.Create(l.t.Context(), l.podOf(some)))
	case what == 5:
		l.collectGarbage(1)
	case what == 6:
		note("the cache observes workloads")
		l.cachedWorkloads = workloads
	case what == 7:
		note("the cache observes PodGroups")
		l.cachedGroups = l.podGroups()
	case what == 8:
		note("pass over %s %s", kindName(some), some.GetName())
		l.reconcile(some)
	default:
		l.schedule(note)
	}
}

func (l *life) create(note func(string, ...any)) {
	l.next++
	size := 1 + int32(l.rng.IntN(4))
	uid := types.UID(fmt.Sprintf("uid-%d", l.next))
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: marked("all")}, Spec: corev1.PodSpec{SchedulerName: "muster-scheduler"}}
	object := []client.Object{
		job("a", uid, size, marked("all")),
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", UID: uid}, Spec: appsv1.StatefulSetSpec{Replicas: &size, Template: template}},
		// The pods of a Deployment do not tell it from a former one of the same name.
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-" + string(uid), UID: uid}, Spec: appsv1.DeploymentSpec{Replicas: &size, Template: template}},
	}[l.rng.IntN(3)]
	if err := l.api.Create(l.t.Context(), object); err != nil {
		return // it exists
	}
	l.lowest[uid] = size
	note("create %s %s of %d", kindName(object), object.GetName(), size)
}

func (l *life) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatalf("%v\n%s", err, strings.Join(l.log, "\n"))
	}
}

func (l *life) pods() []corev1.Pod {
	list := &corev1.PodList{}
	l.must(l.api.List(l.t.Context(), list))
	return list.Items
}

func (l *life) podsOf(workload client.Object) int {
	n := 0
	for _, pod := range l.pods() {
		if pod.OwnerReferences[0].UID == workload.GetUID() {
			n++
		}
	}
	return n
}

func (l *life) podGroups() []v2alpha2.PodGroup {
	list := &v2alpha2.PodGroupList{}
	l.must(l.api.List(l.t.Context(), list))
	return list.Items
}

// reconcile lets the controller pass, with its caches as they are.
func (l *life) reconcile(workload client.Object) {
	l.t.Helper()
	var cached []client.Object
	for _, w := range l.cachedWorkloads {
		cached = append(cached, w.DeepCopyObject().(client.Object))
	}
	for i := range l.cachedGroups {
		cached = append(cached, l.cachedGroups[i].DeepCopy())
	}
	l.cache = newClient(l.t, cached...)
	l.pass(kindName(workload), workload.GetName())
}

// collectGarbage deletes at most n objects without an owner.
func (l *life) collectGarbage(n int) {
	owners := map[types.UID]bool{}
	for _, w := range l.workloads() {
		owners[w.GetUID()] = true
	}
	var gone []client.Object
	for _, pod := range l.pods() {
		if !owners[pod.OwnerReferences[0].UID] {
			gone = append(gone, &pod)
		}
	}
	for _, g := range l.podGroups() {
		if !owners[g.OwnerReferences[0].UID] {
			gone = append(gone, &g)
		}
	}
	l.rng.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
	for _, o := range gone[:min(n, len(gone))] {
		l.must(l.api.Delete(l.t.Context(), o))
	}
}

// schedule starts the pods of every PodGroup that has its minimum, as muster-scheduler does.
func (l *life) schedule(note func(string, ...any)) {
	l.t.Helper()
	minimums, members := map[string]int{}, map[string][]corev1.Pod{}
	for _, g := range l.podGroups() {
		minimums[g.Name] = int(*g.Spec.MinMember)
	}
	for _, pod := range l.pods() {
		group := membership.Group(&pod)
		if group == "" {
			l.t.Errorf("pod %s is in no gang: it starts alone", pod.Name)
		}
		members[group] = append(members[group], pod)
	}
	for group, pods := range members {
		minimum, exists := minimums[group]
		if !exists || len(pods) < minimum {
			continue
		}
		of := map[types.UID]int32{}
		for _, pod := range pods {
			of[pod.OwnerReferences[0].UID]++
		}
		for _, pod := range pods {
			if owner := pod.OwnerReferences[0]; !l.started[pod.UID] && of[owner.UID] < l.lowest[owner.UID] {
				l.t.Errorf("%d pods of %s %s (%s) start, which never asked for fewer than %d", of[owner.UID], owner.Kind, owner.Name, owner.UID, l.lowest[owner.UID])
			}
			l.started[pod.UID] = true
		}
		note("%s starts with %d pods", group, len(pods))
	}
}

// settle lets everything catch up, and compares the PodGroups with the workloads.
func (l *life) settle() {
	l.t.Helper()
	for range 4 {
		l.cachedWorkloads, l.cachedGroups = l.workloads(), l.podGroups()
		for _, w := range l.cachedWorkloads {
			l.reconcile(w)
		}
		l.collectGarbage(1 << 10)
	}
	var want []string
	for _, w := range l.workloads() {
		if size := **sizeOf(w); size > 0 {
			want = append(want, fmt.Sprintf("%s needs %d", membership.Group(l.podOf(w)), size))
		}
	}
	slices.Sort(want)
	if got := l.groups(); got != strings.Join(want, ", ") {
		l.t.Errorf("PodGroups %s\nwant %s", got, strings.Join(want, ", "))
	}
}
