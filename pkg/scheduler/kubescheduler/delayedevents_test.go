// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/test/wrappers"
)

func TestLateEvents(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakeClock(time.Unix(1000, 0))
	busy := true
	// running: the test replaces the goroutine that posts events.
	late := &lateEvents{busy: func() bool { return busy }, clock: clock, running: true}
	posted := ""
	add := func(name string) { late.addEvent(clock.Now(), func() { posted += name }) }
	step := func(what, wantPosted string, wantAlone, wantMore bool) {
		t.Helper()
		post, alone, more := late.nextEvent()
		if post != nil {
			post()
		}
		if posted != wantPosted || alone != wantAlone || more != wantMore {
			t.Errorf("%s: posted %q, want %q; alone %t, want %t; more %t, want %t", what, posted, wantPosted, alone, wantAlone, more, wantMore)
		}
	}
	add("a")
	add("b")
	clock.Step(time.Second)
	add("c")
	step("bindings are in flight", "", false, true)
	busy = false
	step("the last binding is posted", "a", false, true)
	busy = true
	step("bindings again", "a", false, true)
	clock.Step(lateBy - time.Second)
	step("an overdue one goes alone", "ab", true, true)
	step("the next is not overdue", "ab", false, true)
	clock.Step(latest)
	step("one that is very late does not go alone", "abc", false, true)
	busy = false
	add("d")
	step("idle", "abcd", false, true)
	step("nothing is left", "abcd", false, false)
	if late.running {
		t.Error("no event is waiting, but a goroutine is said to post")
	}
}

// recorder records the calls of the stock recorder.
type recorder struct {
	events.EventRecorderLogger
	got chan string
}

func (r recorder) WithLogger(klog.Logger) events.EventRecorderLogger { return r }

func (r recorder) Eventf(regarding, _ runtime.Object, _, reason, _, note string, args ...any) {
	r.got <- "stock: " + reason + " " + regarding.(*corev1.Pod).Name + " " + fmt.Sprintf(note, args...)
}

func TestOnlyScheduledEventsOfMembersAreLate(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	idle := make(chan struct{})
	late := &lateEvents{clock: clock.RealClock{}, busy: func() bool {
		<-idle // until the test has seen the events that are not delayed
		return false
	}}
	fail := false
	r := lateRecorder{
		EventRecorderLogger: recorder{got: got}, late: late, controller: "muster-scheduler", instance: "muster-scheduler-host",
		member: func(pod *corev1.Pod) bool { return len(pod.Annotations) > 0 },
		create: func(_ context.Context, e *eventsv1.Event) error {
			if fail {
				return errors.New("no")
			}
			got <- "late: " + e.Reason + " " + e.Regarding.Name + " " + e.Note
			return nil
		},
	}.WithLogger(klog.Background())
	member, plain := wrappers.MakePod("member", "ns").Gang("g").Obj(), wrappers.MakePod("plain", "ns").Obj()
	r.Eventf(member, nil, "Normal", "Scheduled", "Binding", "to %s", "n1")
	r.Eventf(member, nil, "Warning", "FailedScheduling", "Scheduling", "no node")
	r.Eventf(plain, nil, "Normal", "Scheduled", "Binding", "to %s", "n2")

	order := []string{<-got, <-got}
	close(idle)
	order = append(order, <-got)
	fail = true
	r.Eventf(member, nil, "Normal", "Scheduled", "Binding", "to %s", "n3")
	order = append(order, <-got)
	want := []string{"stock: FailedScheduling member no node", "stock: Scheduled plain to n2", "late: Scheduled member to n1", "stock: Scheduled member to n3"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order of events (-want +got):\n%s", diff)
	}
}

// TestLateEventsLookAsEver compares an event with the one that the stock recorder creates for the same call.
func TestLateEventsLookAsEver(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.f.ClientSet().EventsV1()})
	t.Cleanup(broadcaster.Shutdown)
	stock := make(chan *eventsv1.Event, 1)
	stop, err := broadcaster.StartEventWatcher(func(e runtime.Object) { stock <- e.(*eventsv1.Event) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)

	name := c.f.ProfileName()
	pod := wrappers.MakePod("p", "ns").UID("u").Gang("g").Obj()
	pod.ResourceVersion = "7"
	say := func(r events.EventRecorder) {
		r.Eventf(pod, nil, corev1.EventTypeNormal, "Scheduled", "Binding", "Successfully assigned %v/%v to %v", "ns", "p", "n")
	}
	WrapProfiles(c.sched, MemberHooks{Member: func(*corev1.Pod) bool { return true }, Binding: func() bool { return false }})
	watch, err := c.f.ClientSet().EventsV1().Events("ns").Watch(c.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	say(c.sched.Profiles[name].EventRecorder())
	got := (<-watch.ResultChan()).Object.(*eventsv1.Event)
	say(broadcaster.NewRecorder(runtimeScheme(t), name))
	want := <-stock
	for _, e := range []*eventsv1.Event{want, got} {
		if time.Since(e.EventTime.Time) > time.Hour || len(e.Name) < len("p.1") {
			t.Errorf("event %s at %s", e.Name, e.EventTime)
		}
		e.Name, e.EventTime = "", metav1.MicroTime{}
		e.TypeMeta, e.ManagedFields = metav1.TypeMeta{}, nil // set by the server
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event of the stock recorder (-) and the late one (+):\n%s", diff)
	}
}

func runtimeScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}
