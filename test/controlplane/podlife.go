// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Program is what a container does. The zero Program runs immediately, is ready immediately, and exits with 143 as soon
// as it gets SIGTERM.
type Program struct {
	// StartsAfter is the time from the container's turn to its start.
	StartsAfter time.Duration
	// ReadyAfter is the time from its start until its readiness probe passes.
	ReadyAfter time.Duration
	// NeverReady: its readiness probe always fails.
	NeverReady bool
	// UnreadyAfter is the time from readiness until its readiness probe fails for good. 0: it stays ready.
	UnreadyAfter time.Duration

	// Exits: it exits by itself, ExitsAfter its start, with ExitCode.
	Exits      bool
	ExitsAfter time.Duration
	ExitCode   int

	// StopsAfter is the time from SIGTERM to its exit. A program that takes longer than the grace period is killed, and
	// has exit code 137. LingerAnnotation of the pod takes precedence.
	StopsAfter time.Duration
	// StopCode is its exit code after SIGTERM. nil: 143. StopCodeAnnotation of the pod takes precedence.
	StopCode *int

	// CannotPull: the image cannot be pulled.
	CannotPull bool
	// Backoff is the time before the second restart, and before the second attempt to pull the image. It doubles each
	// time, up to 32 times. A container that ran 60 times as long is restarted immediately again. 0: 1 s.
	Backoff time.Duration
}

// Exit codes of a container that was terminated.
const (
	exitSIGTERM = 143
	exitSIGKILL = 137
)

// podLife has the containers of one pod, as its node has them. It has neither a client nor a clock: advance lets time
// pass, observe tells it what the API server has, and status returns what the kubelet reports. Times are real, except in
// those that are reported, which are of the node's clock.
type podLife struct {
	uid      types.UID
	spec     *corev1.PodSpec
	program  func(image string) (program Program, own bool)
	reported *corev1.Pod // as it was after the last report; nil: not reported
	ip       string

	now    time.Time     // up to which the life is known
	skew   time.Duration // by how much the node's clock is fast
	agenda []appointment // what will happen by itself, in no order

	containers []*containerLife // init containers and sidecars in order, then the others

	admitted  bool         // its start is on the agenda
	startTime *metav1.Time // nil: its start was delayed, or prevented by HoldAnnotation
	ending    bool         // no container is started again
	killed    time.Time    // the end of the grace period; zero: it is not deleted
	over      bool         // it has ended, and will not change
	evicted   bool
	removed   bool // the deletion of its object was confirmed

	// What its annotations say.
	unready, stuck bool
	exitCode       *int // nil: it does not exit by annotation
	exitAfter      time.Duration
	exits          bool           // its exit is on the agenda
	linger         *time.Duration // nil: as the program says
	stopCode       *int           // nil: as the program says

	gated      bool     // a readiness gate is not True
	postponed  []func() // exits that wait until the pod is not stuck
	conditions []corev1.PodCondition
}

// appointment is something that happens at a time.
type appointment struct {
	at time.Time
	do func()
}

// containerRole says when a container starts, and whether its pod waits for its end.
type containerRole int

const (
	mainContainer containerRole = iota
	initContainer
	sidecar
)

// containerLife is one container.
type containerLife struct {
	name, image string
	role        containerRole
	policy      corev1.ContainerRestartPolicy // "": that of the pod
	program     Program

	state    corev1.ContainerState // Waiting without a reason until its turn
	last     *corev1.ContainerStateTerminated
	begun    time.Time // when it was started the last time, in real time
	starts   int       // how often it was started; distinguishes appointments of one run from those of the next
	restarts int32
	backoffs int // restarts in a row
	pulls    int // failed attempts to pull the image
	summoned bool
	probe    bool // its readiness probe passes
	final    bool // it is not started again
	stopping bool // it got SIGTERM
}

func newPodLife(pod *corev1.Pod, now time.Time, program func(string) (Program, bool)) *podLife {
	l := &podLife{uid: pod.UID, spec: &pod.Spec, program: program, now: now}
	add := func(c corev1.Container, role containerRole) {
		life := &containerLife{name: c.Name, image: c.Image, role: role}
		if c.RestartPolicy != nil {
			life.policy = *c.RestartPolicy
		}
		life.wait("PodInitializing", "")
		l.containers = append(l.containers, life)
	}
	for _, c := range pod.Spec.InitContainers {
		role := initContainer
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			role = sidecar
		}
		add(c, role)
	}
	for _, c := range pod.Spec.Containers {
		add(c, mainContainer)
	}
	return l
}

// advance lets time pass until then, with everything that happens meanwhile at its own time.
func (l *podLife) advance(until time.Time) {
	for !l.over {
		next := -1
		for i, a := range l.agenda {
			if !a.at.After(until) && (next < 0 || a.at.Before(l.agenda[next].at)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		due := l.agenda[next]
		l.agenda = slices.Delete(l.agenda, next, next+1)
		if due.at.After(l.now) {
			l.now = due.at
		}
		due.do()
		l.settle()
	}
	if until.After(l.now) {
		l.now = until
	}
}

// next returns the time of the next appointment, zero if there is none.
func (l *podLife) next() time.Time {
	if l.over || len(l.agenda) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(l.agenda, func(a, b appointment) int { return a.at.Compare(b.at) }).at
}

// untilNext returns the time until the next appointment, 0 if there is none.
func (l *podLife) untilNext() time.Duration {
	next := l.next()
	if next.IsZero() {
		return 0
	}
	return max(time.Until(next), time.Nanosecond)
}

func (l *podLife) after(d time.Duration, do func()) {
	l.agenda = append(l.agenda, appointment{l.now.Add(d), do})
}

// observe takes over what the API server says of the pod.
func (l *podLife) observe(pod *corev1.Pod) {
	if phase := pod.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		l.over = true // whoever reported that: nothing of it runs any more
	}
	if l.over {
		return
	}
	a := pod.Annotations
	l.unready, l.stuck = a[ReadyAnnotation] == "false", a[StuckAnnotation] == "true"
	l.linger, l.stopCode = nil, nil
	if text, is := a[LingerAnnotation]; is {
		linger := durationOf(text)
		l.linger = &linger
	}
	if code, err := strconv.Atoi(a[StopCodeAnnotation]); err == nil {
		l.stopCode = &code
	}
	if code, err := strconv.Atoi(a[ExitCodeAnnotation]); err == nil {
		l.exitCode, l.exitAfter = &code, durationOf(a[ExitAfterAnnotation])
	}
	l.gated = slices.ContainsFunc(pod.Spec.ReadinessGates, func(gate corev1.PodReadinessGate) bool {
		return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
	})
	if !l.admitted && a[HoldAnnotation] != "true" && pod.DeletionTimestamp == nil {
		l.admitted = true
		l.after(durationOf(a[StartAfterAnnotation]), func() {
			now := l.clock()
			l.startTime = &now
		})
	}
	if pod.DeletionTimestamp != nil {
		l.terminate(grace(pod))
	}
	if !l.stuck {
		for _, exit := range l.postponed {
			exit()
		}
		l.postponed = nil
	}
	l.settle()
}

// durationOf returns the duration of an annotation, 0 if it is none.
func durationOf(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

// terminate sends SIGTERM for the first deletion. A later one may shorten the grace period.
func (l *podLife) terminate(grace time.Duration) {
	l.ending = true
	if grace == 0 {
		l.kill()
	}
	if end := l.now.Add(grace); l.killed.IsZero() || end.Before(l.killed) {
		l.killed = end
		defer l.after(grace, l.kill) // after the exits of the same time
	}
	for _, c := range l.containers {
		if c.role != sidecar {
			l.stop(c)
		}
	}
}

// stop sends SIGTERM to a container.
func (l *podLife) stop(c *containerLife) {
	if c.state.Running == nil || c.stopping {
		return
	}
	c.stopping = true
	linger, code := c.program.StopsAfter, exitSIGTERM
	if c.program.StopCode != nil {
		code = *c.program.StopCode
	}
	if l.linger != nil {
		linger = *l.linger
	}
	if l.stopCode != nil {
		code = *l.stopCode
	}
	l.during(c, linger, func() { l.leave(c, code) })
}

// kill ends all containers at the end of the grace period.
func (l *podLife) kill() {
	for _, c := range l.containers {
		if c.state.Running != nil {
			l.leave(c, exitSIGKILL)
		}
	}
}

// leave ends a container of a deleted pod, unless that is stuck.
func (l *podLife) leave(c *containerLife, code int) {
	if l.stuck {
		starts := c.starts
		l.postponed = append(l.postponed, func() {
			if c.starts == starts && c.state.Running != nil {
				l.ended(c, code)
			}
		})
		return
	}
	l.ended(c, code)
}

// during does something later, if the container has neither ended nor been started again until then.
func (l *podLife) during(c *containerLife, d time.Duration, do func()) {
	starts := c.starts
	l.after(d, func() {
		if c.starts == starts && c.state.Running != nil {
			do()
		}
	})
}

// exitNow ends a running container as if it had exited by itself. Other names are ignored.
func (l *podLife) exitNow(container string, code int) {
	for _, c := range l.containers {
		if c.name == container && c.state.Running != nil {
			l.ended(c, code)
		}
	}
	l.settle()
}

// evict kills all containers.
func (l *podLife) evict() {
	if l.over {
		return
	}
	l.ending, l.evicted = true, true
	l.kill()
	l.settle()
}

// settle does what follows from the present states: the next containers start, sidecars end after the others, the pod
// ends.
func (l *podLife) settle() {
	if l.over {
		return
	}
	if l.startTime != nil && !l.ending {
		l.startNext()
	}
	if l.exitCode != nil && !l.exits && !l.ending && l.phase() == corev1.PodRunning {
		l.exits = true
		l.after(l.exitAfter, func() { l.exitAll(*l.exitCode) })
	}
	if l.mainsAreDone() {
		l.ending = l.ending || l.startTime != nil
		for _, c := range l.containers {
			if c.role == sidecar {
				l.stop(c)
			}
		}
	}
	l.over = l.ending && !l.runs(func(*containerLife) bool { return true })
	l.updateConditions()
}

// exitAll ends the pod, whatever its restart policy is, as ExitCodeAnnotation says.
func (l *podLife) exitAll(code int) {
	l.ending = true
	for _, c := range l.containers {
		if c.state.Running != nil {
			l.ended(c, code)
		}
	}
}

// startNext starts the containers whose turn it is: one init container after another, then all others.
func (l *podLife) startNext() {
	for _, c := range l.containers {
		if c.role == mainContainer && !l.isInitialized() {
			return
		}
		if !c.summoned {
			c.summoned = true
			if program, own := l.program(c.image); c.role == initContainer && !own {
				c.program = Program{Exits: true, CannotPull: strings.HasPrefix(c.image, unpullable)}
			} else {
				c.program = program
				c.program.CannotPull = program.CannotPull || strings.HasPrefix(c.image, unpullable)
			}
			c.wait("ContainerCreating", "")
			l.startAfter(c, c.program.StartsAfter)
		}
		if c.role == initContainer && !c.hasSucceeded() || c.role == sidecar && c.starts == 0 {
			return
		}
	}
}

// startAfter starts a container later. Without a delay it starts in this instant, so that it is reported in one write.
func (l *podLife) startAfter(c *containerLife, d time.Duration) {
	start := func() {
		if !l.ending {
			l.start(c)
		}
	}
	if d == 0 {
		start()
		return
	}
	l.after(d, start)
}

func (l *podLife) start(c *containerLife) {
	if c.program.CannotPull {
		c.pulls++
		reason, message := "ErrImagePull", "no such host"
		if c.pulls%2 == 0 {
			reason, message = "ImagePullBackOff", "Back-off pulling image "+strconv.Quote(c.image)
		}
		c.wait(reason, message)
		l.startAfter(c, c.backoff(c.pulls/2))
		return
	}
	c.starts++
	c.begun, c.probe, c.stopping = l.now, false, false
	c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: l.clock()}}
	if !c.program.NeverReady {
		c.probe = c.program.ReadyAfter == 0
		if !c.probe {
			l.during(c, c.program.ReadyAfter, func() { c.probe = true })
		}
		if c.program.UnreadyAfter > 0 {
			l.during(c, c.program.ReadyAfter+c.program.UnreadyAfter, func() { c.probe = false })
		}
	}
	if c.program.Exits {
		if c.program.ExitsAfter == 0 {
			l.ended(c, c.program.ExitCode)
			return
		}
		l.during(c, c.program.ExitsAfter, func() { l.ended(c, c.program.ExitCode) })
	}
}

// ended is the exit of a running container.
func (l *podLife) ended(c *containerLife, code int) {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	terminated := &corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: reason, StartedAt: c.state.Running.StartedAt, FinishedAt: l.clock(),
	}
	c.state, c.probe = corev1.ContainerState{Terminated: terminated}, false
	if l.ending || !l.restarts(c, code) {
		c.final = true
		return
	}
	if l.now.Sub(c.begun) >= 60*c.backoff(0) {
		c.backoffs = 0
	}
	again := func() {
		c.last = terminated
		c.restarts++
		l.start(c)
	}
	if c.backoffs++; c.backoffs == 1 {
		again()
		return
	}
	c.last = terminated
	wait := c.backoff(max(0, c.backoffs-2))
	c.wait("CrashLoopBackOff", "back-off "+wait.String()+" restarting failed container="+c.name)
	l.after(wait, func() {
		if !l.ending {
			again()
		}
	})
}

// restarts reports whether a container is started again after this exit.
func (l *podLife) restarts(c *containerLife, code int) bool {
	policy := string(l.spec.RestartPolicy)
	if c.policy != "" {
		policy = string(c.policy)
	}
	switch c.role {
	case sidecar:
		return true
	case initContainer:
		return code != 0 && policy != string(corev1.RestartPolicyNever)
	}
	return policy != string(corev1.RestartPolicyNever) && (code != 0 || policy != string(corev1.RestartPolicyOnFailure))
}

// backoff returns the nth back-off, from 0.
func (c *containerLife) backoff(n int) time.Duration {
	base := c.program.Backoff
	if base == 0 {
		base = time.Second
	}
	return base << min(n, 5)
}

func (c *containerLife) wait(reason, message string) {
	c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func (c *containerLife) hasSucceeded() bool {
	return c.final && c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
}

// isInitialized reports whether all init containers have succeeded and all sidecars were started.
func (l *podLife) isInitialized() bool {
	return !slices.ContainsFunc(l.containers, func(c *containerLife) bool {
		return c.role == initContainer && !c.hasSucceeded() || c.role == sidecar && c.starts == 0
	})
}

// mainsAreDone reports whether nothing but sidecars runs, or will run.
func (l *podLife) mainsAreDone() bool {
	if l.runs(func(c *containerLife) bool { return c.role != sidecar }) {
		return false
	}
	if l.ending {
		return true
	}
	failed := slices.ContainsFunc(l.containers, func(c *containerLife) bool { return c.role == initContainer && c.final && !c.hasSucceeded() })
	return failed || !slices.ContainsFunc(l.containers, func(c *containerLife) bool { return c.role == mainContainer && !c.final })
}

func (l *podLife) runs(of func(*containerLife) bool) bool {
	return slices.ContainsFunc(l.containers, func(c *containerLife) bool { return of(c) && c.state.Running != nil })
}

// clock returns the time of the node's clock, in whole seconds as the API server keeps it.
func (l *podLife) clock() metav1.Time {
	return metav1.NewTime(l.now.Add(l.skew).Truncate(time.Second))
}
