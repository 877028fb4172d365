// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/pkg/scheduler/marks"
	"github.com/muster-project/muster/test/wrappers"
)

// ward is a releaser with a registry and an API server, and a clock that only the test advances.
type ward struct {
	t        *testing.T
	clock    *testclock.FakeClock
	registry *gangs.Registry
	api      *fake.Clientset
	releaser *Releaser
	applied  []gangs.Effects

	mu      sync.Mutex
	down    bool     // the API server does not answer reads
	refuse  error    // error of deletions
	reads   int      // of PodGroups
	deleted []string // "<pod> <UID of the precondition>"
	events  []string // "<type> <reason> <about>: <note>"
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newWard(t *testing.T) *ward {
	w := &ward{t: t, clock: testclock.NewFakeClock(start), registry: gangs.New(), api: fake.NewClientset()}
	w.registry.Configure(gangs.Options{RepairTimeout: 30 * time.Second})
	w.registry.AddProfile(wrappers.SchedulerName)
	keys, err := marks.NewKeys("test", map[string][]byte{"test": []byte("the secret of the tests")})
	if err != nil {
		t.Fatal(err)
	}
	w.registry.SetKeys(keys, start)
	w.registry.SetSynced(start)
	w.api.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		d := a.(clienttesting.DeleteActionImpl)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.refuse != nil {
			return true, nil, w.refuse
		}
		w.deleted = append(w.deleted, d.Name+" "+string(*d.DeleteOptions.Preconditions.UID))
		return true, nil, nil
	})
	w.releaser = NewReleaser(Options{Registry: w.registry, PodGroups: w, Client: w.api, Recorder: w, Clock: w.clock,
		Apply: func(e gangs.Effects) { w.applied = append(w.applied, e) }})
	return w
}

func (w *ward) Get(_ context.Context, namespace, name string) (*v2alpha2.PodGroup, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	if w.down {
		return nil, fmt.Errorf("connection refused")
	}
	if name == "deleted" {
		return nil, apierrors.NewNotFound(v2alpha2.Resource("podgroups"), name)
	}
	return &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, nil
}

func (w *ward) Eventf(about, _ runtime.Object, kind, reason, _, note string, args ...any) {
	name := ""
	switch o := about.(type) {
	case *corev1.ObjectReference:
		name = o.Kind + "/" + o.Name
	case *corev1.Pod:
		name = "Pod/" + o.Name
	}
	w.events = append(w.events, fmt.Sprintf("%s %s %s: %s", kind, reason, name, fmt.Sprintf(note, args...)))
}

// seconds runs one step of the releaser in each of n seconds.
func (w *ward) seconds(n int) {
	for range n {
		w.clock.Step(time.Second)
		w.releaser.checkPartialGangs(context.Background())
	}
}

func pod(name string) *wrappers.PodWrapper {
	return wrappers.MakePod(name, "ml").UID("uid-"+name).Gang("train").Controller("Job", "train", "job")
}

// partial creates a gang of 4 whose plan bound a, b and bare; d waits. It returns the marks of the pods.
func (w *ward) partial() (marks map[string]string) {
	w.registry.SetGroup(wrappers.MakePodGroup("train", "ml").UID("group").MinMember(4).Obj(), start)
	bare := wrappers.MakePod("bare", "ml").UID("uid-bare").Gang("train")
	marks = w.bind("", 3, pod("a"), pod("b"), bare, pod("d"))
	w.registry.SetPod(pod("d").SchedulingGate("test/hold").Obj(), start)
	return marks
}

// bind plans these pods of a leaf and binds them as the scheduler does. The bindings after the first n fail. It returns
// the marks of the pods.
func (w *ward) bind(leaf string, n int, pods ...*wrappers.PodWrapper) (marks map[string]string) {
	var placements []placement.Placement
	for _, p := range pods {
		w.registry.SetPod(p.Obj(), start)
	}
	var work *gangs.Work
	for _, p := range pods {
		if got, _ := w.registry.BeginAttempt(p.Obj()); got != nil {
			work = got
		}
	}
	for _, p := range work.Problem.Pods[leaf] {
		if slices.ContainsFunc(pods, func(w *wrappers.PodWrapper) bool { return string(w.Obj().UID) == p.ID }) {
			placements = append(placements, placement.Placement{Pod: p, Leaf: leaf, Node: "n1"})
		}
	}
	plan, reason := w.registry.CommitPlan(work, placements, start)
	if plan == nil {
		w.t.Fatal(reason)
	}
	for _, p := range pods {
		if err := w.registry.AssumeMember(p.Obj().UID, "n1", start); err != nil {
			w.t.Fatal(err)
		}
	}
	var arrived sync.WaitGroup
	for _, p := range pods {
		arrived.Go(func() {
			if err := w.registry.WaitAtBarrier(context.Background(), p.Obj().UID, time.Minute); err != nil {
				w.t.Error(err)
			}
		})
	}
	arrived.Wait()
	marks = map[string]string{}
	for _, p := range pods[:n] {
		uid := p.Obj().UID
		marks[p.Obj().Name] = w.registry.SignedMark(plan, uid)
		w.registry.RecordPosted(uid, start)
		w.registry.SetPod(p.Node("n1").BoundFor(marks[p.Obj().Name]).Obj(), start)
	}
	for _, p := range pods[n:] {
		w.registry.ReleaseMember(p.Obj().UID, start)
	}
	return marks
}

func TestAPartialGangIsReleased(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	marks := w.partial()
	w.seconds(29)
	if len(w.deleted) > 0 || len(w.events) > 0 {
		t.Fatalf("deleted %q, events %q before the repair time was over", w.deleted, w.events)
	}
	w.seconds(1)
	if diff := cmp.Diff([]string{"a uid-a", "b uid-b"}, w.deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	want := []string{
		"Warning PartialGangKept Pod/bare: bound for PodGroup train; its gang never became whole and cannot be completed now; no controller would replace the pod, so it is kept: delete it to free what it holds",
		"Warning PartialGangReleased PodGroup/train: 2 bound pods were deleted, because their gang never became whole after a crash or a failed binding and could not be completed in time; their controllers replace them: a, b",
	}
	if diff := cmp.Diff(want, w.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	// Until the deletion is observed it is repeated without another event; then nothing follows.
	w.seconds(2)
	for _, name := range []string{"a", "b"} {
		w.registry.SetPod(pod(name).Node("n1").BoundFor(marks[name]).Terminating().Obj(), start)
	}
	n := len(w.deleted)
	w.seconds(5)
	for _, name := range []string{"a", "b"} {
		w.registry.RemovePod(pod(name).Obj().UID, start)
	}
	w.seconds(60)
	if len(w.deleted) != n {
		t.Errorf("deleted %q after the deletion was seen", w.deleted[n:])
	}
	if diff := cmp.Diff(want, w.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A sub-group above the minimum that was bound in part is given back while the rest of the gang runs.
func TestATornUnitIsReleased(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.registry.SetGroup(wrappers.MakePodGroup("train", "ml").UID("group").MinSubGroup(1).SubGroup("x", 1).SubGroup("y", 3).Obj(), start)
	w.registry.SetPod(pod("x").SubGroup("x").Node("n1").Obj(), start)
	pods := []*wrappers.PodWrapper{pod("a").SubGroup("y"), wrappers.MakePod("bare", "ml").UID("uid-bare").Gang("train").SubGroup("y"), pod("c").SubGroup("y")}
	w.bind("y", 2, pods...)
	w.registry.SetPod(pod("c").SubGroup("y").SchedulingGate("test/hold").Obj(), start)
	w.seconds(29)
	if len(w.deleted) > 0 || len(w.events) > 0 {
		t.Fatalf("deleted %q, events %q before the repair time was over", w.deleted, w.events)
	}
	w.seconds(1)
	if diff := cmp.Diff([]string{"a uid-a"}, w.deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	want := []string{
		"Warning PartialGangKept Pod/bare: bound for PodGroup train; its sub-group above the gang's minimum never became whole and cannot be completed now; no controller would replace the pod, so it is kept: delete it to free what it holds",
		"Warning PartialGangReleased PodGroup/train: 1 bound pods were deleted, because their sub-group above the gang's minimum never became whole after a crash or a failed binding and could not be completed in time; their controllers replace them: a",
	}
	if diff := cmp.Diff(want, w.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestTheRepairTimeStopsWhileTheAPIServerIsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.partial()
	w.seconds(20)
	w.down = true
	w.seconds(120)
	w.down = false
	w.seconds(9)
	if len(w.deleted) > 0 {
		t.Fatalf("deleted %q after 29 s of answers", w.deleted)
	}
	w.seconds(1)
	if len(w.deleted) != 2 {
		t.Errorf("deleted %q, want two", w.deleted)
	}
}

// A gang without any answered binding is not partial if none was stored; it is tried again as soon as the API server
// answers.
func TestTheEndOfAnOutageIsReported(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.registry.RecordUnanswered(gangs.Key{Namespace: "ml", Name: "train"})
	w.seconds(1)
	if w.reads != 1 || len(w.applied) != 1 {
		t.Fatalf("%d reads, applied %d times, want once: the API server answers", w.reads, len(w.applied))
	}
	w.seconds(5)
	if w.reads != 1 {
		t.Fatalf("%d reads though everything is answered", w.reads)
	}

	// Several attempts fail, so the back-off is long.
	w.registry.SetGroup(wrappers.MakePodGroup("train", "ml").UID("group").MinMember(1).Obj(), start)
	w.registry.SetPod(pod("a").Obj(), start)
	for range 8 {
		w.clock.Step(time.Minute)
		w.registry.Tick(w.clock.Now())
		work, why := w.registry.BeginAttempt(pod("a").Obj())
		if work == nil {
			t.Fatal(why)
		}
		if plan, why := w.registry.CommitPlan(work, []placement.Placement{{Pod: placement.Pod{ID: "uid-a"}, Node: "n1"}}, w.clock.Now()); plan == nil {
			t.Fatal(why)
		}
		if err := w.registry.AssumeMember("uid-a", "n1", w.clock.Now()); err != nil {
			t.Fatal(err)
		}
		w.registry.RecordUnanswered(gangs.Key{Namespace: "ml", Name: "train"})
		w.registry.ReleaseMember("uid-a", w.clock.Now())
	}
	w.down = true
	w.seconds(5)
	if n := len(w.applied); n != 1 {
		t.Fatalf("applied %d times while the API server does not answer", n)
	}
	w.down = false
	w.seconds(1)
	if n := len(w.applied); n != 2 || len(w.applied[1].Activate) != 1 || w.applied[1].Activate[0].Name != "a" {
		t.Fatalf("applied %v, want the leader a activated", w.applied)
	}
	w.seconds(60)
	if w.reads != 7 || len(w.applied) != 2 {
		t.Errorf("%d reads, applied %d times, want 7 and twice", w.reads, len(w.applied))
	}
}

func TestADeletionThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.partial()
	w.refuse = apierrors.NewForbidden(corev1.Resource("pods"), "a", fmt.Errorf("no"))
	w.seconds(40)
	if len(w.events) != 1 || !strings.Contains(w.events[0], "PartialGangKept") {
		t.Errorf("events %q, want only the pod that is kept: nothing was given back", w.events)
	}
	w.refuse = nil
	w.seconds(1)
	if diff := cmp.Diff([]string{"a uid-a", "b uid-b"}, w.deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	// Another pod has the name by now, or none: the deletion counts as done.
	w.refuse = apierrors.NewConflict(corev1.Resource("pods"), "a", fmt.Errorf("precondition failed: UID"))
	w.seconds(1)
	w.refuse = apierrors.NewNotFound(corev1.Resource("pods"), "a")
	w.seconds(1)
	if n := len(w.events); n != 2 {
		t.Errorf("%d events, want 2: %q", n, w.events)
	}
}

// No pod is deleted before all of them have the condition, since the next process releases the others by it.
func TestAReleaseThatCannotBeRecordedIsRepeated(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]error{
		"busy":      apierrors.NewConflict(corev1.Resource("pods"), "b", fmt.Errorf("the object has been modified")),
		"forbidden": apierrors.NewForbidden(corev1.Resource("pods"), "b", fmt.Errorf("no")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWard(t)
			w.partial()
			for _, name := range []string{"a", "b"} {
				if err := w.api.Tracker().Add(pod(name).Node("n1").Obj()); err != nil {
					t.Fatal(err)
				}
			}
			refused := true
			w.api.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if refused && a.(clienttesting.PatchAction).GetName() == "b" {
					return true, nil, refuse
				}
				return false, nil, nil
			})
			w.seconds(40)
			if len(w.deleted) > 0 {
				t.Errorf("%q are deleted while b has no condition", w.deleted)
			}
			refused = false
			w.seconds(1)
			if diff := cmp.Diff([]string{"a uid-a", "b uid-b"}, w.deleted); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutPartialGangsNoRequestIsSent(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.registry.SetGroup(wrappers.MakePodGroup("train", "ml").UID("group").MinMember(4).Obj(), start)
	w.registry.SetPod(pod("a").Obj(), start)
	w.registry.SetPod(pod("b").Node("n1").Obj(), start) // bound by another scheduler
	w.seconds(120)
	if w.reads > 0 || len(w.deleted) > 0 || len(w.events) > 0 {
		t.Errorf("%d reads, deleted %q, events %q", w.reads, w.deleted, w.events)
	}
}

func TestRunLooksEverySecond(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.partial()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.releaser.Run(ctx)
	}()
	reads := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.reads
	}
	deadline := time.Now().Add(30 * time.Second)
	await := func(what string, done func() bool) {
		t.Helper()
		for !done() {
			if time.Now().After(deadline) {
				t.Fatalf("never %s", what)
			}
			time.Sleep(time.Millisecond)
		}
	}
	await("waiting", w.clock.HasWaiters)
	for i := range 30 {
		w.clock.Step(time.Second)
		await("asked", func() bool { return reads() > i })
	}
	await("given back", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Equal(w.deleted, []string{"a uid-a", "b uid-b"})
	})
	cancel()
	<-ended
}
