package kube

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	// lateTick and the two below bound how fast held events are let go: 1,600 a second, since the broadcaster drops what
	// comes in bursts of more than 1,000; and while bindings are posted 250 a second, a fraction of them.
	lateTick        = 20 * time.Millisecond
	latePerTick     = 32
	latePerBusyTick = 5
)

// DelayScheduled makes the events "Scheduled" of the pods that member picks wait as long as busy says that bindings are
// being posted. After five seconds they come all the same, but slowly. To the API server an event is as much work as a
// binding: posted together, half of what it can do goes into events while gangs wait to become whole. No event is lost by
// this, unless the process ends meanwhile. To be called before the scheduler runs.
func DelayScheduled(sched *scheduler.Scheduler, member func(*corev1.Pod) bool, busy func() bool) {
	late := &lateEvents{member: member, busy: busy, clock: clock.RealClock{}}
	for name, f := range sched.Profiles {
		sched.Profiles[name] = lateFramework{Framework: f, late: late}
	}
}

// lateFramework is a profile whose events go through lateEvents.
type lateFramework struct {
	framework.Framework
	late *lateEvents
}

// EventRecorder returns what the scheduling and binding cycles report to. Plugins have the profile's own recorder.
func (f lateFramework) EventRecorder() events.EventRecorderLogger {
	return lateRecorder{EventRecorderLogger: f.Framework.EventRecorder(), late: f.late}
}

type lateRecorder struct {
	events.EventRecorderLogger
	late *lateEvents
}

// WithLogger implements events.EventRecorderLogger.
func (r lateRecorder) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	return lateRecorder{EventRecorderLogger: r.EventRecorderLogger.WithLogger(logger), late: r.late}
}

// Eventf implements events.EventRecorder.
func (r lateRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	post := func() { r.EventRecorderLogger.Eventf(regarding, related, eventtype, reason, action, note, args...) }
	if pod, ok := regarding.(*corev1.Pod); ok && reason == "Scheduled" && r.late.member(pod) {
		r.late.add(post)
		return
	}
	post()
}

// lateEvents are the events held back, in order.
type lateEvents struct {
	member func(*corev1.Pod) bool
	busy   func() bool
	clock  clock.WithTicker

	mu      sync.Mutex
	held    []lateEvent // guarded by mu
	running bool        // guarded by mu: somebody will let them go
}

type lateEvent struct {
	since time.Time
	post  func()
}

func (l *lateEvents) add(post func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, lateEvent{since: l.clock.Now(), post: post})
	if !l.running {
		l.running = true
		go l.run()
	}
}

// run ends when nothing is held any more.
func (l *lateEvents) run() {
	ticker := l.clock.NewTicker(lateTick)
	defer ticker.Stop()
	for range ticker.C() {
		due, more := l.due()
		for _, e := range due {
			e.post()
		}
		if !more {
			return
		}
	}
}

// due takes the events that may go now, and reports whether any are left.
func (l *lateEvents) due() ([]lateEvent, bool) {
	busy, now := l.busy(), l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	most := latePerTick
	if busy {
		most = latePerBusyTick
	}
	n := 0
	for n < min(len(l.held), most) && (!busy || now.Sub(l.held[n].since) >= lateBy) {
		n++
	}
	due := l.held[:n:n]
	l.held = l.held[n:]
	l.running = len(l.held) > 0
	return due, l.running
}
