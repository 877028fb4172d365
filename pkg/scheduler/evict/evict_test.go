// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/pkg/message"
	"github.com/muster-project/muster/pkg/scheduler/report"
	"github.com/muster-project/muster/test/wrappers"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// steppingClock is a clock that is advanced by whoever waits for it.
type steppingClock struct {
	*testclock.FakeClock
}

func (c steppingClock) After(d time.Duration) <-chan time.Time {
	at := c.FakeClock.After(d)
	c.Step(d)
	return at
}

// server is an API server with pods, some of whose requests fail. Its methods are called under the lock of the
// clientset.
type server struct {
	pods     map[string]*corev1.Pod // by name
	failures map[string][]error     // by name: the errors of the next requests for the pod
	patches  map[string]corev1.PodCondition
	requests []string // "<verb> <pod>"
	request  func()   // called before each request, if not nil
	patched  bool     // patches succeed
}

// ward is an evictor with its API server and recorder.
type ward struct {
	server
	clock   *testclock.FakeClock
	evictor *Evictor

	mu     sync.Mutex
	events []string // "<type> <reason> <action> <pod> <related>: <note>"
}

func newWard(pods ...*corev1.Pod) *ward {
	w := &ward{clock: testclock.NewFakeClock(start)}
	w.pods, w.failures, w.patches = map[string]*corev1.Pod{}, map[string][]error{}, map[string]corev1.PodCondition{}
	for _, p := range pods {
		w.pods[p.Name] = p
	}
	client := fake.NewClientset()
	client.PrependReactor("*", "pods", w.react)
	w.evictor = New(Options{Client: client, Recorder: w, Clock: steppingClock{w.clock}})
	return w
}

func (w *ward) Eventf(about, related runtime.Object, kind, reason, action, note string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	to := "nothing"
	if ref, ok := related.(*corev1.ObjectReference); ok {
		to = ref.Kind + "/" + ref.Name
	}
	w.events = append(w.events, fmt.Sprintf("%s %s %s %s %s: %s", kind, reason, action, about.(*corev1.Pod).Name, to, fmt.Sprintf(note, args...)))
}

// react handles a request for a pod.
func (s *server) react(a clienttesting.Action) (bool, runtime.Object, error) {
	name := a.(interface{ GetName() string }).GetName()
	s.requests = append(s.requests, a.GetVerb()+" "+name)
	if s.request != nil {
		s.request()
	}
	if left := s.failures[name]; len(left) > 0 && a.GetVerb() != "get" && !(s.patched && a.GetVerb() == "patch") {
		s.failures[name] = left[1:]
		return true, nil, left[0]
	}
	pod := s.pods[name]
	if pod == nil {
		return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	switch a := a.(type) {
	case clienttesting.PatchActionImpl:
		var patch corev1.Pod
		if err := json.Unmarshal(a.Patch, &patch); err != nil || a.Subresource != "status" || a.PatchType != types.StrategicMergePatchType {
			return true, nil, fmt.Errorf("unexpected patch %s of %s", a.Patch, a.Subresource)
		}
		if patch.UID != pod.UID { // as the API server refuses it
			return true, nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), name, nil)
		}
		if patch.ResourceVersion != "" && patch.ResourceVersion != pod.ResourceVersion {
			return true, nil, busy
		}
		s.patches[name] = patch.Status.Conditions[0]
	case clienttesting.DeleteActionImpl:
		if p := a.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != pod.UID {
			return true, nil, apierrors.NewConflict(corev1.Resource("pods"), name, errors.New("the UID differs"))
		}
		delete(s.pods, name)
	}
	return true, pod, nil
}

func pod(name string) *wrappers.PodWrapper {
	return wrappers.MakePod(name, "ml").UID("uid-" + name).Node("n1")
}

func marked(name, plan string) *corev1.Pod {
	return pod(name).Status(func(s *corev1.PodStatus) {
		s.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonPreemptionByScheduler, Message: schedulerName + ": text" + planSeparator + plan, LastTransitionTime: metav1.NewTime(start)}}
	}).Obj()
}

func evictionOf(pods ...*corev1.Pod) Eviction {
	e := Eviction{Plan: "7-ab", Preemptor: types.NamespacedName{Namespace: "default", Name: "chat"}, Priority: 1000,
		Kind: "PodGroup", Related: report.Reference(wrappers.MakePodGroup("chat", "default").UID("group").Obj())}
	for _, p := range pods {
		e.Victims = append(e.Victims, Victim{Pod: p, Text: "above the minimum of PodGroup ml/train (priority 100)"})
	}
	return e
}

var (
	unavailable = apierrors.NewServiceUnavailable("the API server is starting")
	forbidden   = apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("no"))
	busy        = apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("the object has been modified"))
)

func TestMarksAreThoseOfTheStockScheduler(t *testing.T) {
	t.Parallel()
	a := pod("a").Obj()
	a.Generation = 3
	w := newWard(a)
	if err := w.evictor.MarkVictims(t.Context(), evictionOf(a)); err != nil {
		t.Fatal(err)
	}
	got := w.patches["a"]
	if !got.LastTransitionTime.Time.Equal(start) {
		t.Errorf("marked at %s, want %s", got.LastTransitionTime, start)
	}
	want := corev1.PodCondition{LastTransitionTime: got.LastTransitionTime, Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler", ObservedGeneration: 3,
		Message: "muster-scheduler: preempting to accommodate a higher priority PodGroup, default/chat (priority 1000): above the minimum of PodGroup ml/train (priority 100); plan 7-ab"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
	if by := message.Preemptor(got.Message); by != "default/chat (priority 1000)" {
		t.Errorf("the preemptor is read as %q", by)
	}
	a = a.DeepCopy()
	a.Status.Conditions = append(a.Status.Conditions, got)
	if !IsMarkedFor(a, "7-ab") {
		t.Error("the mark is not recognised")
	}
	if err := w.evictor.MarkVictims(t.Context(), evictionOf(a)); err != nil || len(w.requests) != 1 {
		t.Errorf("requests %q, error %v, want no further request: the pod has the mark", w.requests, err)
	}
}

func TestIsMarkedFor(t *testing.T) {
	t.Parallel()
	edit := func(change func(*corev1.PodCondition)) *corev1.Pod {
		p := marked("a", "7-ab")
		change(&p.Status.Conditions[0])
		return p
	}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		plan string
		want bool
	}{
		"the plan":                     {marked("a", "7-ab"), "7-ab", true},
		"a prefix of the plan":         {marked("a", "7-ab"), "7-a", false},
		"a suffix of the plan":         {marked("a", "7-ab"), "ab", false},
		"a longer plan":                {marked("a", "7-ab"), "7-abc", false},
		"no plan":                      {marked("a", ""), "", false},
		"an earlier plan in the text":  {marked("a", "1; plan 2"), "1", false},
		"the last plan":                {marked("a", "1; plan 2"), "2", true},
		"more than the plan":           {marked("a", "1; plan 2"), "1; plan 2", false},
		"a pod without conditions":     {pod("a").Obj(), "7-ab", false},
		"a mark that became stale":     {edit(func(c *corev1.PodCondition) { c.Status = corev1.ConditionFalse }), "7-ab", false},
		"an eviction by somebody else": {edit(func(c *corev1.PodCondition) { c.Reason = "EvictionByEvictionAPI" }), "7-ab", false},
		"a mark of the stock scheduler": {edit(func(c *corev1.PodCondition) {
			c.Message = "default-scheduler: preempting to accommodate a higher priority pod"
		}), "7-ab", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := IsMarkedFor(test.pod, test.plan); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// kube-controller-manager removes a mark by its time, so that it is the time of the mark, whatever the condition said
// before.
func TestTimeOfAMark(t *testing.T) {
	t.Parallel()
	with := func(age time.Duration, change func(*corev1.PodCondition)) *corev1.Pod {
		p := marked("a", "7-ab")
		p.Status.Conditions[0].LastTransitionTime.Time = start.Add(-age)
		change(&p.Status.Conditions[0])
		return p
	}
	for name, tc := range map[string]struct {
		age     time.Duration
		change  func(*corev1.PodCondition)
		written bool
		witness bool
	}{
		"of the plan":                {age: renewAfter, change: func(*corev1.PodCondition) {}},
		"of the plan, and old":       {age: renewAfter + time.Second, change: func(*corev1.PodCondition) {}, written: true},
		"of another plan":            {change: func(c *corev1.PodCondition) { c.Message = schedulerName + ": text" + planSeparator + "other" }, written: true},
		"of another disruption":      {age: time.Hour, change: func(c *corev1.PodCondition) { c.Reason = "EvictionByEvictionAPI" }, written: true},
		"that was removed":           {change: func(c *corev1.PodCondition) { c.Status = corev1.ConditionFalse }, written: true},
		"of the witness":             {age: renewAfter, change: func(c *corev1.PodCondition) { c.Message = schedulerName + ": text" + begun + planSeparator + "7-ab" }},
		"of the witness, and is old": {age: time.Minute, change: func(c *corev1.PodCondition) { c.Message = schedulerName + ": text" + begun + planSeparator + "7-ab" }, written: true, witness: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := with(tc.age, tc.change)
			w := newWard(a)
			if err := w.evictor.MarkVictims(t.Context(), evictionOf(a)); err != nil {
				t.Fatal(err)
			}
			got, written := w.patches["a"]
			if written != tc.written || written && (!got.LastTransitionTime.Time.Equal(start) || !strings.HasSuffix(got.Message, "; plan 7-ab") || strings.Contains(got.Message, begun) != tc.witness) {
				t.Errorf("written %t, want %t, at %s, want now; of a witness: %t: %q", written, tc.written, got.LastTransitionTime, tc.witness, got.Message)
			}
		})
	}
}

func TestDeletionsAreReportedOnce(t *testing.T) {
	t.Parallel()
	a, b, leaving := pod("a").Obj(), pod("b").Obj(), pod("leaving").Terminating().Obj()
	other := pod("other").UID("another").Obj()
	w := newWard(a, b, leaving, other)
	w.failures["a"] = []error{unavailable, context.DeadlineExceeded, busy}
	eviction := evictionOf(a, b, leaving, pod("gone").Obj(), pod("other").Obj())
	deleted, err := w.evictor.DeleteVictims(t.Context(), eviction)
	if deleted != 5 || err != nil {
		t.Errorf("deleted %d, error %v, want 5: gone pods count as well", deleted, err)
	}
	if w.pods["other"] == nil || len(w.pods) != 1 {
		t.Errorf("pods %v are left, want other, which has another UID", w.pods)
	}
	want := []string{ // b is reported first, because a was not deleted in the first round
		"Normal Preempted Preempting b PodGroup/chat: Preempted by PodGroup default/chat (priority 1000) on node n1: above the minimum of PodGroup ml/train (priority 100)",
		"Normal Preempted Preempting a PodGroup/chat: Preempted by PodGroup default/chat (priority 1000) on node n1: above the minimum of PodGroup ml/train (priority 100)",
	}
	if diff := cmp.Diff(want, w.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.pods["a"], w.pods["b"] = a, b // their grace periods last
	if deleted, err := w.evictor.DeleteVictims(t.Context(), eviction); deleted != 5 || err != nil || len(w.events) != 2 {
		t.Errorf("deleted %d, error %v, %d events after the second call, want 5 and 2", deleted, err, len(w.events))
	}
	w.clock.Step(2 * eventMemory)
	if _, err := w.evictor.DeleteVictims(t.Context(), Eviction{}); err != nil || len(w.evictor.reported) > 0 {
		t.Errorf("error %v, %d pods are remembered after %s", err, len(w.evictor.reported), 2*eventMemory)
	}
}

func TestErrorsNameThePod(t *testing.T) {
	t.Parallel()
	a, b, c := pod("a").Obj(), pod("b").Obj(), pod("c").Obj()
	w := newWard(a, b, c)
	w.failures["b"], w.failures["c"] = []error{forbidden}, []error{forbidden}
	err := w.evictor.MarkVictims(t.Context(), evictionOf(a, b, c))
	want := `marking as preempted pod ml/b (and 1 more), for which muster-scheduler needs the ClusterRole of manifests/scheduler/rbac.yaml: pods "a" is forbidden: no`
	if err == nil || err.Error() != want || !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want %s", err, want)
	}
	w.failures["b"] = []error{forbidden}
	deleted, err := w.evictor.DeleteVictims(t.Context(), evictionOf(a, b, c))
	want = `preempting for PodGroup default/chat (priority 1000): deleting pod ml/b, for which muster-scheduler needs the ClusterRole of manifests/scheduler/rbac.yaml: pods "a" is forbidden: no; the deletion of the victims that are left must be repeated`
	if deleted != 2 || err == nil || err.Error() != want {
		t.Errorf("deleted %d, error %v, want 2 and %s", deleted, err, want)
	}
	// The next call finishes, and reports only what it deleted.
	deleted, err = w.evictor.DeleteVictims(t.Context(), evictionOf(a, b, c))
	if deleted != 3 || err != nil || len(w.events) != 3 {
		t.Errorf("deleted %d, error %v, events %q, want 3 pods, each reported once", deleted, err, w.events)
	}
}

func TestCancelledContext(t *testing.T) {
	t.Parallel()
	var victims []*corev1.Pod
	for i := range 1000 {
		victims = append(victims, pod(fmt.Sprintf("p%d", i)).Obj())
	}
	for name, call := range map[string]func(context.Context, *ward) error{
		"marks": func(ctx context.Context, w *ward) error { return w.evictor.MarkVictims(ctx, evictionOf(victims...)) },
		"deletions": func(ctx context.Context, w *ward) error {
			pods, events := len(w.pods), len(w.events)
			deleted, err := w.evictor.DeleteVictims(ctx, evictionOf(victims...))
			if deleted != len(w.events)-events || deleted != pods-len(w.pods) {
				t.Errorf("deleted %d, %d events, %d pods ended", deleted, len(w.events)-events, pods-len(w.pods))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWard(victims...)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w.request = func() {
				if len(w.requests) == 100 {
					cancel()
				}
			}
			if err := call(ctx, w); err == nil || !errors.Is(err, errNotTried) && !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want that the rest was not tried", err)
			}
			if n := len(w.requests); n > 100+2*maxParallel {
				t.Errorf("%d requests after the context had ended", n-100)
			}
			sent := len(w.requests)
			if err := call(ctx, w); err == nil || len(w.requests) > sent {
				t.Errorf("error %v, %d requests with a context that had ended before", err, len(w.requests)-sent)
			}
		})
	}
}

// victim is what a random test knows about a pod.
type victim struct {
	gone, replaced, marked bool
	transient              int // number of transient errors
	refused                bool
}

func randomVictims(r *rand.Rand) ([]victim, *ward, Eviction) {
	var victims []victim
	var live, given []*corev1.Pod
	failures := map[string][]error{}
	for i := range 1 + r.IntN(40) {
		v, name := victim{}, fmt.Sprintf("p%d", i)
		p := pod(name).Obj()
		switch r.IntN(12) {
		case 0:
			v.gone = true
		case 1:
			v.replaced = true
		case 2, 3:
			v.marked = true
			p = marked(name, "7-ab")
		case 4, 5:
			v.transient = 1 + r.IntN(markAttempts)
		case 6:
			v.refused = r.IntN(4) == 0
		}
		given = append(given, p)
		for range v.transient {
			failures[name] = append(failures[name], []error{unavailable, busy, errors.New("connection refused")}[r.IntN(3)])
		}
		if v.refused {
			failures[name] = append(failures[name], forbidden)
		}
		if v.replaced {
			p = pod(name).UID("another").Obj()
		}
		if !v.gone {
			live = append(live, p)
		}
		victims = append(victims, v)
	}
	w := newWard(live...)
	w.failures = failures
	return victims, w, evictionOf(given...)
}

func TestRandomMarks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		victims, w, eviction := randomVictims(rand.New(rand.NewPCG(seed, 1)))
		err := w.evictor.MarkVictims(t.Context(), eviction)
		failed := false
		for i, v := range victims {
			fails := v.refused || v.transient >= markAttempts
			failed = failed || fails
			_, got := w.patches[fmt.Sprintf("p%d", i)]
			if want := !fails && !v.gone && !v.replaced && !v.marked; got != want {
				t.Errorf("seed %d: pod p%d patched: %v, want %v", seed, i, got, want)
			}
		}
		if (err != nil) != failed {
			t.Errorf("seed %d: error %v, want one: %v", seed, err, failed)
		}
		if i := slices.IndexFunc(w.requests, func(s string) bool { return strings.HasPrefix(s, "delete") }); i >= 0 {
			t.Errorf("seed %d: %s", seed, w.requests[i])
		}
	}
}

func TestRandomDeletions(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		victims, w, eviction := randomVictims(r)
		w.patched = true
		witness, refused := map[string]int{}, map[string]int{} // by gang; refused: of others
		for i, v := range victims {
			gang := []string{"", "x", "y"}[r.IntN(3)]
			eviction.Victims[i].Gang.Name = gang
			if _, ok := witness[gang]; !ok {
				witness[gang] = i
			} else if v.refused {
				refused[gang]++
			}
		}
		deleted, err := w.evictor.DeleteVictims(t.Context(), eviction)
		want, reported := len(victims), []string{}
		for i, v := range victims {
			name, gang := fmt.Sprintf("p%d", i), eviction.Victims[i].Gang.Name
			isWitness := witness[gang] == i
			c, marked := w.patches[name]
			if got, want := marked && strings.Contains(c.Message, begun+planSeparator), isWitness && !v.gone && !v.replaced; got != want {
				t.Errorf("seed %d: pod %s is marked as a witness: %v, want %v", seed, name, got, want)
			}
			left := v.refused || isWitness && gang != "" && refused[gang] > 0 // a witness is the last of its gang
			if left {
				want--
			}
			if !left && !v.gone && !v.replaced {
				reported = append(reported, name)
			}
			if got := w.pods[name] != nil; got != (v.replaced || left && !v.gone) {
				t.Errorf("seed %d: pod %s exists: %v", seed, name, got)
			}
		}
		if deleted != want || (err != nil) != (want < len(victims)) {
			t.Errorf("seed %d: deleted %d, error %v, want %d of %d", seed, deleted, err, want, len(victims))
		}
		var events []string
		for _, e := range w.events {
			events = append(events, strings.Fields(e)[3])
		}
		slices.Sort(events)
		slices.Sort(reported)
		if !slices.Equal(events, reported) {
			t.Errorf("seed %d: events about %q, want %q", seed, events, reported)
		}
	}
}

// The witness of a gang is marked before the first deletion and deleted after the last one, also when another process
// goes on.
func TestTheWitnessIsTheLastOfItsGang(t *testing.T) {
	t.Parallel()
	a, b, c := marked("a", "7-ab"), marked("b", "7-ab"), marked("c", "7-ab")
	for name, of := range map[string][]*corev1.Pod{"the first pod": {a, b, c}, "the pod that is one": {b, witness("a", "7-ab"), c}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWard(a, b, c)
			eviction := evictionOf(of...)
			for i := range eviction.Victims {
				eviction.Victims[i].Gang.Name = "train"
			}
			if _, err := w.evictor.DeleteVictims(t.Context(), eviction); err != nil {
				t.Fatal(err)
			}
			first, last := w.requests[0], w.requests[len(w.requests)-1]
			if len(w.requests) != 4 || first != "patch a" || last != "delete a" {
				t.Errorf("the requests are %q, want a to be marked first and deleted last", w.requests)
			}
			got := w.patches["a"]
			if !IsWitness(pod("a").Status(func(s *corev1.PodStatus) { s.Conditions = []corev1.PodCondition{got} }).Obj()) {
				t.Errorf("the mark is %q", got.Message)
			}
		})
	}
	if IsWitness(a) || IsWitness(pod("d").Obj()) {
		t.Error("a pod without the mark of a witness is one")
	}
}

func witness(name, plan string) *corev1.Pod {
	p := marked(name, plan)
	c := &p.Status.Conditions[0]
	c.Message = strings.Replace(c.Message, planSeparator, begun+planSeparator, 1)
	return p
}

// Marks are taken back from the pods that have them still: not from those that are terminating, or were marked by
// another plan or for another reason.
func TestMarksAreTakenBack(t *testing.T) {
	t.Parallel()
	terminating, drained := marked("terminating", "7-ab"), marked("drained", "7-ab")
	terminating.DeletionTimestamp = &metav1.Time{Time: start}
	drained.Status.Conditions[0].Reason = "EvictionByEvictionAPI"
	live := []*corev1.Pod{marked("a", "7-ab"), marked("b", "8-cd"), pod("c").Obj(), terminating, drained, pod("replaced").UID("another").Obj()}
	live[0].ResourceVersion = "5"
	w := newWard(live...)
	w.failures["a"] = []error{unavailable, busy}
	if err := w.evictor.UnmarkVictims(t.Context(), evictionOf(append(live[:5:5], pod("replaced").Obj(), pod("gone").Obj())...)); err != nil {
		t.Fatal(err)
	}
	want := map[string]corev1.PodCondition{"a": {Type: corev1.DisruptionTarget, Status: corev1.ConditionFalse, Reason: "PreemptionByScheduler",
		Message: "muster-scheduler: the preemption does not end the pod"}}
	if diff := cmp.Diff(want, w.patches, cmpopts.IgnoreFields(corev1.PodCondition{}, "LastTransitionTime")); diff != "" {
		t.Errorf("patches (-want +got):\n%s", diff)
	}
	w.failures["b"] = []error{forbidden}
	other := evictionOf(live[1])
	other.Plan = "8-cd"
	if err := w.evictor.UnmarkVictims(t.Context(), other); err == nil || !strings.Contains(err.Error(), "taking back the mark of pod ml/b") {
		t.Errorf("error %v, want that b keeps its mark", err)
	}
}

func TestEventWithoutAPodGroup(t *testing.T) {
	t.Parallel()
	a := pod("a").Obj()
	w := newWard(a)
	eviction := evictionOf(a)
	eviction.Related, eviction.Victims[0].Text = nil, strings.Repeat("long ", 1000)
	if _, err := w.evictor.DeleteVictims(t.Context(), eviction); err != nil {
		t.Fatal(err)
	}
	if len(w.events) != 1 || !strings.HasPrefix(w.events[0], "Normal Preempted Preempting a nothing: ") || len(w.events[0]) > 1000 {
		t.Errorf("events %q, want a short one without a related object", w.events)
	}
}
