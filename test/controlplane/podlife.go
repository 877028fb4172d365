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
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"
)

// Program is what the containers of a pod do. The zero Program starts immediately, is ready as soon as it runs, and exits
// with 143 as soon as it gets SIGTERM.
type Program struct {
	// StartsAfter is the time from the start of the pod to that of its containers.
	StartsAfter time.Duration
	// UnreadyAfter is the time from readiness until the readiness probe fails for good. 0: it passes for ever.
	UnreadyAfter time.Duration
	// StopsAfter is the time from SIGTERM to the exit. A program that takes longer than the grace period is killed, and has exit
	// code 137. LingerAnnotation of the pod takes precedence.
	StopsAfter time.Duration
}

// Exit codes of a container that was terminated.
const (
	exitSIGTERM = 143
	exitSIGKILL = 137
)

// podLife is one pod as its node has it. All its containers are in the same state; its init containers have succeeded when
// it has started. It has neither a client nor a clock: advance lets time pass, observe tells it what the API server has, and
// status returns what the kubelet reports. Times are real, except in those that are reported, which are of the node's clock.
type podLife struct {
	uid      types.UID
	spec     *corev1.PodSpec
	program  Program
	reported *corev1.Pod // as it was after the last report; nil: not reported
	ip       string

	now    time.Time     // up to which the life is known
	skew   time.Duration // by how much the node's clock is fast
	agenda []appointment // what will happen by itself, in this order

	admitted   bool                  // its start is on the agenda
	startTime  *metav1.Time          // nil: its start was delayed, or prevented by HoldAnnotation
	state      corev1.ContainerState // of its containers; no state before its start
	probe      bool                  // the readiness probe passes
	stopping   bool                  // SIGTERM was sent
	killed     time.Time             // the end of the grace period; zero: it is not deleted
	postponed  *int                  // the exit code of a container that exits when it is no longer stuck; nil: none does
	over       bool                  // it has ended, and will not change
	removed    bool                  // the deletion of its object was confirmed
	conditions []corev1.PodCondition

	// What its annotations say.
	unready, stuck bool
	exitCode       *int // nil: it does not exit by annotation
	exitAfter      time.Duration
	exits          bool // its exit is on the agenda
	linger         time.Duration
	stopCode       int
}

// appointment is something that happens at a time.
type appointment struct {
	at time.Time
	do func()
}

// advance lets time pass until then, with everything that happens meanwhile at its own time.
func (l *podLife) advance(until time.Time) {
	for !l.over && len(l.agenda) > 0 && !l.agenda[0].at.After(until) {
		due := l.agenda[0]
		l.agenda = l.agenda[1:]
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
	return l.agenda[0].at
}

func (l *podLife) after(d time.Duration, do func()) {
	l.agenda = append(l.agenda, appointment{l.now.Add(d), do})
	slices.SortStableFunc(l.agenda, func(a, b appointment) int { return a.at.Compare(b.at) })
}

// observe takes over what the API server says of the pod.
func (l *podLife) observe(pod *corev1.Pod) {
	l.over = l.over || podutil.IsPodTerminal(pod) // whoever reported that: nothing of it runs any more
	if l.over {
		return
	}
	a := pod.Annotations
	l.unready, l.stuck = a[ReadyAnnotation] == "false", a[StuckAnnotation] == "true"
	l.linger, l.stopCode = l.program.StopsAfter, exitSIGTERM
	if text, is := a[LingerAnnotation]; is {
		l.linger = durationOf(text)
	}
	if code, err := strconv.Atoi(a[StopCodeAnnotation]); err == nil {
		l.stopCode = code
	}
	if code, err := strconv.Atoi(a[ExitCodeAnnotation]); err == nil {
		l.exitCode, l.exitAfter = &code, durationOf(a[ExitAfterAnnotation])
	}
	if !l.admitted && a[HoldAnnotation] != "true" && pod.DeletionTimestamp == nil {
		l.admitted = true
		l.after(durationOf(a[StartAfterAnnotation]), l.start)
	}
	switch {
	case !l.stuck && l.postponed != nil:
		l.exit(*l.postponed)
	case pod.DeletionTimestamp != nil:
		l.terminate(time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
	}
	l.settle()
}

// durationOf returns the duration of an annotation, 0 if it is none.
func durationOf(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

// start starts the pod, and its containers when it is their turn.
func (l *podLife) start() {
	now := l.clock()
	l.startTime = &now
	if slices.ContainsFunc(l.spec.Containers, func(c corev1.Container) bool { return strings.HasPrefix(c.Image, unpullable) }) {
		l.state.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"}
		return
	}
	l.state.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	l.after(l.program.StartsAfter, func() {
		l.state, l.probe = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: l.clock()}}, true
		if l.program.UnreadyAfter > 0 {
			l.after(l.program.UnreadyAfter, func() { l.probe = false })
		}
	})
}

// terminate sends SIGTERM for the first deletion. A later one may shorten the grace period.
func (l *podLife) terminate(grace time.Duration) {
	switch {
	case l.state.Running == nil:
		l.over = true
		return
	case grace == 0:
		l.leave(exitSIGKILL)
		return
	case !l.stopping:
		l.stopping = true
		code := l.stopCode
		l.after(l.linger, func() { l.leave(code) })
	}
	if end := l.now.Add(grace); l.killed.IsZero() || end.Before(l.killed) {
		l.killed = end
		l.after(grace, func() { l.leave(exitSIGKILL) }) // after an exit at the same time
	}
}

// leave ends the containers of a deleted pod, unless that is stuck.
func (l *podLife) leave(code int) {
	switch {
	case !l.stuck:
		l.exit(code)
	case l.postponed == nil:
		l.postponed = &code
	}
}

// exit ends the containers, and with them the pod.
func (l *podLife) exit(code int) {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	l.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: reason, StartedAt: l.state.Running.StartedAt, FinishedAt: l.clock(),
	}}
	l.probe, l.over = false, true
}

// settle does what follows from the present state.
func (l *podLife) settle() {
	if l.exitCode != nil && !l.exits && !l.stopping && l.state.Running != nil {
		l.exits = true
		l.after(l.exitAfter, func() { l.exit(*l.exitCode) })
	}
	l.updateConditions()
}

// phase returns the phase that the kubelet reports.
func (l *podLife) phase() corev1.PodPhase {
	switch {
	case l.over && l.state.Terminated != nil && l.state.Terminated.ExitCode == 0:
		return corev1.PodSucceeded
	case l.over:
		return corev1.PodFailed
	case l.state.Running != nil:
		return corev1.PodRunning
	}
	return corev1.PodPending
}

func (l *podLife) isReady() bool { return l.probe && !l.unready }

// updateConditions brings the pod's conditions up to date. A condition that changes does so now, by the node's clock.
func (l *podLife) updateConditions() {
	set := func(kind corev1.PodConditionType, is bool, reason string) {
		condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: l.clock()}
		if !is {
			condition.Status, condition.Reason = corev1.ConditionFalse, reason
		}
		setCondition(&l.conditions, condition)
	}
	reason := "ContainersNotReady"
	switch l.phase() {
	case corev1.PodSucceeded:
		reason = "PodCompleted"
	case corev1.PodFailed:
		reason = "PodFailed"
	}
	set(corev1.PodReadyToStartContainers, l.startTime != nil && !l.over, "")
	set(corev1.PodInitialized, l.startTime != nil, "ContainersNotInitialized")
	set(corev1.ContainersReady, l.isReady(), reason)
	set(corev1.PodReady, l.isReady(), reason)
}

// setCondition sets a condition, with the time of the earlier one unless its status changes.
func setCondition(conditions *[]corev1.PodCondition, condition corev1.PodCondition) {
	i := slices.IndexFunc(*conditions, func(c corev1.PodCondition) bool { return c.Type == condition.Type })
	if i < 0 {
		*conditions = append(*conditions, condition)
		return
	}
	if old := (*conditions)[i]; old.Status == condition.Status {
		condition.LastTransitionTime = old.LastTransitionTime
	}
	(*conditions)[i] = condition
}

// status returns the fields of the status that a kubelet writes, nil before it has started the pod.
func (l *podLife) status(node *corev1.Node) *corev1.PodStatus {
	if l.startTime == nil && !l.over {
		return nil
	}
	s := &corev1.PodStatus{Phase: l.phase(), StartTime: l.startTime, Conditions: slices.Clone(l.conditions)}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			s.HostIP, s.HostIPs = address.Address, []corev1.HostIP{{IP: address.Address}}
		}
	}
	if l.startTime != nil {
		s.PodIP, s.PodIPs = l.ip, []corev1.PodIP{{IP: l.ip}}
		done := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: *l.startTime, FinishedAt: *l.startTime}}
		s.InitContainerStatuses = containerStatuses(l.spec.InitContainers, done, true)
	}
	state := *l.state.DeepCopy()
	if l.over && state.Terminated == nil { // it waited for its start
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: exitSIGKILL, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated",
		}}
	}
	s.ContainerStatuses = containerStatuses(l.spec.Containers, state, l.isReady())
	return s
}

func containerStatuses(containers []corev1.Container, state corev1.ContainerState, ready bool) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, c := range containers {
		started := state.Running != nil
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: ready, Started: &started, State: state}
		if state.Waiting == nil {
			status.ImageID = c.Image
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// overlay returns the status after a report of these fields: conditions that are not reported stay.
func overlay(status, reported corev1.PodStatus) corev1.PodStatus {
	after := *status.DeepCopy()
	after.Phase, after.Reason, after.Message = reported.Phase, reported.Reason, reported.Message
	after.StartTime, after.HostIP, after.HostIPs, after.PodIP, after.PodIPs = reported.StartTime, reported.HostIP, reported.HostIPs, reported.PodIP, reported.PodIPs
	after.ContainerStatuses, after.InitContainerStatuses = reported.ContainerStatuses, reported.InitContainerStatuses
	for _, condition := range reported.Conditions {
		setCondition(&after.Conditions, condition)
	}
	return after
}

// clock returns the time of the node's clock, in whole seconds as the API server keeps it.
func (l *podLife) clock() metav1.Time {
	return metav1.NewTime(l.now.Add(l.skew).Truncate(time.Second))
}
