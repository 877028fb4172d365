// SPDX-License-Identifier: Apache-2.0

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
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
)

const (
	// lateBy is the maximum delay of an event while bindings are being posted.
	lateBy = 5 * time.Second
	// latest is the delay from which events are posted concurrently although bindings are being posted: if these never
	// end, more events could come than are posted one by one.
	latest = time.Minute
	// latePoll is how often a delayed event checks whether bindings are still being posted.
	latePoll = 20 * time.Millisecond
	// lateWriters is the number of events posted concurrently after the delay; while bindings are being posted it is
	// one.
	lateWriters = 8
	// lateTimeout bounds the posting of one event.
	lateTimeout = 10 * time.Second
)

// lateRecorder is the event recorder of a profile, but that the events "Scheduled" of members wait as long as bindings
// are being posted, but not longer than five seconds; after that they are posted one by one, and after a minute
// concurrently. Without the delay, half of the API server's capacity is used for events while gangs wait to be
// completed. The events have the usual content, and the time of the binding. They are lost only if the process ends
// during the delay.
type lateRecorder struct {
	events.EventRecorderLogger // for all events that are not delayed
	late                       *lateEvents
	member                     func(*corev1.Pod) bool
	controller, instance       string
	create                     func(context.Context, *eventsv1.Event) error
}

// recorderOf returns the recorder for the cycles of a profile.
func (l *lateEvents) recorderOf(f framework.Framework, member func(*corev1.Pod) bool) lateRecorder {
	host, _ := os.Hostname() // as the stock recorder
	client := f.ClientSet().EventsV1()
	return lateRecorder{
		EventRecorderLogger: f.EventRecorder(), late: l, member: member, controller: f.ProfileName(), instance: f.ProfileName() + "-" + host,
		create: func(ctx context.Context, e *eventsv1.Event) error {
			_, err := client.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
			return err
		},
	}
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
	r.late.addEvent(now, func() {
		ctx, cancel := context.WithTimeout(context.Background(), lateTimeout)
		defer cancel()
		if err := r.create(ctx, event); err != nil {
			record() // the stock recorder retries for longer
		}
	})
}

// lateEvents are the delayed events, in order.
type lateEvents struct {
	busy  func() bool
	clock clock.Clock

	mu      sync.Mutex
	waiting []lateEvent // guarded by mu
	running bool        // guarded by mu: a goroutine posts the events
}

type lateEvent struct {
	since time.Time
	post  func()
}

func (l *lateEvents) addEvent(now time.Time, post func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, lateEvent{since: now, post: post})
	if !l.running {
		l.running = true
		go l.postEvents()
	}
}

// postEvents posts the waiting events, and returns when there are none.
func (l *lateEvents) postEvents() {
	writers := make(chan struct{}, lateWriters)
	for {
		post, alone, more := l.nextEvent()
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

// nextEvent returns the event that may be posted now, nil if it must wait. alone: no other event should be posted at
// the same time. more is false if there is no event; the caller must then end.
func (l *lateEvents) nextEvent() (post func(), alone, more bool) {
	busy := l.busy()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.waiting, l.running = nil, false
		return nil, false, false
	}
	waited := l.clock.Since(l.waiting[0].since)
	if busy && waited < lateBy {
		return nil, false, true
	}
	post = l.waiting[0].post
	l.waiting[0] = lateEvent{} // release the reference to the pod
	l.waiting = l.waiting[1:]
	return post, busy && waited < latest, true
}
