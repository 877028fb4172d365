package kubescheduler

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
)

const (
	// lateBy is how long an event waits while bindings are posted, if they are posted for so long.
	lateBy = 5 * time.Second
	// latePoll is how often a waiting event asks whether they still are.
	latePoll = 20 * time.Millisecond
	// lateWriters is how many events are posted at a time once they may; only one while bindings are posted.
	lateWriters = 8
	// lateTimeout bounds the posting of one.
	lateTimeout = 10 * time.Second
)

// DelayScheduled makes the events "Scheduled" of the pods that member picks wait as long as busy says that bindings are
// being posted. After five seconds they come all the same, one by one. To the API server an event is as much work as a
// binding: posted together, half of what it can do goes into events while gangs wait to become whole. The events look as
// ever, and bear the time of the binding. None is lost by this unless the process ends meanwhile.
// To be called before the scheduler runs.
func DelayScheduled(sched *scheduler.Scheduler, member func(*corev1.Pod) bool, busy func() bool) {
	late := &lateEvents{busy: busy, clock: clock.RealClock{}}
	host, _ := os.Hostname() // as the stock recorder
	for name, f := range sched.Profiles {
		client := f.ClientSet().EventsV1()
		sched.Profiles[name] = lateFramework{Framework: f, recorder: lateRecorder{
			EventRecorderLogger: f.EventRecorder(), late: late, member: member, controller: name, instance: name + "-" + host,
			create: func(ctx context.Context, e *eventsv1.Event) error {
				_, err := client.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
				return err
			},
		}}
	}
}

// lateFramework is a profile whose scheduling and binding cycles report to another recorder. Plugins have the profile's
// own.
type lateFramework struct {
	framework.Framework
	recorder lateRecorder
}

// EventRecorder returns what the cycles report to.
func (f lateFramework) EventRecorder() events.EventRecorderLogger { return f.recorder }

type lateRecorder struct {
	events.EventRecorderLogger // for all events that are not late
	late                       *lateEvents
	member                     func(*corev1.Pod) bool
	controller, instance       string
	create                     func(context.Context, *eventsv1.Event) error
}

// WithLogger implements events.EventRecorderLogger.
func (r lateRecorder) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	r.EventRecorderLogger = r.EventRecorderLogger.WithLogger(logger)
	return r
}

// Eventf implements events.EventRecorder.
func (r lateRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	record := func() { r.EventRecorderLogger.Eventf(regarding, related, eventtype, reason, action, note, args...) }
	pod, ok := regarding.(*corev1.Pod)
	if !ok || reason != "Scheduled" || related != nil || !r.member(pod) {
		record()
		return
	}
	now := r.late.clock.Now()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: fmt.Sprintf("%s.%x", pod.Name, now.UnixNano())},
		EventTime:  metav1.NewMicroTime(now),
		Regarding: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Type: eventtype, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...),
		ReportingController: r.controller, ReportingInstance: r.instance,
	}
	r.late.add(now, func() {
		ctx, cancel := context.WithTimeout(context.Background(), lateTimeout)
		defer cancel()
		if err := r.create(ctx, event); err != nil {
			record() // the stock recorder tries for longer
		}
	})
}

// lateEvents are the events held back, in order.
type lateEvents struct {
	busy  func() bool
	clock clock.Clock

	mu      sync.Mutex
	held    []lateEvent // guarded by mu
	running bool        // guarded by mu: somebody posts them
}

type lateEvent struct {
	since time.Time
	post  func()
}

func (l *lateEvents) add(now time.Time, post func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, lateEvent{since: now, post: post})
	if !l.running {
		l.running = true
		go l.run()
	}
}

// run posts what is held, and ends when nothing is.
func (l *lateEvents) run() {
	writers := make(chan struct{}, lateWriters)
	for {
		post, alone, more := l.next()
		switch {
		case !more:
			return
		case post == nil:
			<-l.clock.After(latePoll)
		case alone:
			post()
		default:
			writers <- struct{}{}
			go func() {
				defer func() { <-writers }()
				post()
			}()
		}
	}
}

// next takes the event that may go now, nil if it has to wait; alone: nothing else should go meanwhile. Without more
// there is none, and the caller has to end.
func (l *lateEvents) next() (post func(), alone, more bool) {
	busy := l.busy()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held) == 0 {
		l.held, l.running = nil, false
		return nil, false, false
	}
	if busy && l.clock.Since(l.held[0].since) < lateBy {
		return nil, false, true
	}
	post = l.held[0].post
	l.held[0] = lateEvent{} // its pod must not stay in memory
	l.held = l.held[1:]
	return post, busy, true
}
