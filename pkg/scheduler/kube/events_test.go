package kube

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/muster-project/muster/test/wrappers"
)

func TestLateEvents(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakeClock(time.Unix(1000, 0))
	busy := true
	// running: the test takes the place of the goroutine that lets events go.
	late := &lateEvents{busy: func() bool { return busy }, clock: clock, running: true}
	posted := 0
	step := func(what string, wantPosted int, wantMore bool) {
		t.Helper()
		due, more := late.due()
		for _, e := range due {
			e.post()
		}
		if posted != wantPosted || more != wantMore {
			t.Errorf("%s: %d events posted so far, want %d; more %t, want %t", what, posted, wantPosted, more, wantMore)
		}
	}
	for range 100 {
		late.add(func() { posted++ })
	}
	step("bindings are in flight", 0, true)
	busy = false
	step("the last binding is posted", latePerTick, true)
	busy = true
	step("bindings again", latePerTick, true)
	clock.Step(lateBy)
	step("overdue ones go slowly", latePerTick+latePerBusyTick, true)
	busy = false
	step("idle", 2*latePerTick+latePerBusyTick, true)
	late.add(func() { posted++ })
	step("the rest, and one that came meanwhile", 101, false)
	if late.running {
		t.Error("nothing is held, but somebody is said to let events go")
	}
}

// recorder notes what reaches the broadcaster.
type recorder struct {
	events.EventRecorderLogger
	got chan string
}

func (r recorder) WithLogger(klog.Logger) events.EventRecorderLogger { return r }

func (r recorder) Eventf(regarding, _ runtime.Object, _, reason, _, note string, args ...any) {
	r.got <- reason + " " + regarding.(*corev1.Pod).Name + ": " + fmt.Sprintf(note, args...)
}

func TestOnlyScheduledEventsOfMembersAreLate(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakeClock(time.Unix(1000, 0))
	late := &lateEvents{
		member: func(pod *corev1.Pod) bool { return len(pod.Annotations) > 0 },
		busy:   func() bool { return false },
		clock:  clock,
	}
	got := make(chan string, 10)
	r := lateRecorder{EventRecorderLogger: recorder{got: got}, late: late}.WithLogger(klog.Background())
	member, plain := wrappers.MakePod("member", "ns").Gang("g").Obj(), wrappers.MakePod("plain", "ns").Obj()
	r.Eventf(member, nil, "Normal", "Scheduled", "Binding", "to %s", "n1")
	r.Eventf(member, nil, "Warning", "FailedScheduling", "Scheduling", "no")
	r.Eventf(plain, nil, "Normal", "Scheduled", "Binding", "to %s", "n2")

	var order []string
	order = append(order, <-got, <-got)
	for done := false; !done; { // until the goroutine has its ticker
		clock.Step(lateTick)
		select {
		case e := <-got:
			order, done = append(order, e), true
		case <-time.After(time.Millisecond):
		}
	}
	want := []string{"FailedScheduling member: no", "Scheduled plain: to n2", "Scheduled member: to n1"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order of events (-want +got):\n%s", diff)
	}
}
