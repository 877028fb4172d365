// SPDX-License-Identifier: Apache-2.0

// Package podlife is the life of a pod on its node, as a kubelet reports it: what comes next, and when. It has neither
// a client nor a clock. The kubelets of test/sim and test/controlplane watch pods, wait, and write what it says.
//
// All containers of a pod do the same, and their end is that of the pod. Init containers have succeeded when it has
// started.
package podlife

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/workload"
)

// Program is what the containers of a pod do. With the zero Program a pod is started as soon as it is bound, runs and
// is ready immediately, and is gone as soon as it is deleted.
type Program struct {
	Held       bool // the pod is not started
	Unpullable bool // its containers wait for their image for ever
	// AcceptedAfter is the time from the binding of the pod until its kubelet starts it, StartsAfter the time from
	// there to phase Running, ReadyAfter from there to Ready. A state in which no time passes is not reported.
	AcceptedAfter, StartsAfter, ReadyAfter time.Duration
	Unready                                bool          // the readiness probe fails
	UnreadyAfter                           time.Duration // from Ready until the readiness probe fails for good; 0: never
	ExitCode                               *int32        // of containers that end by themselves; nil: they do not
	ExitsAfter                             time.Duration // from when they run and have an ExitCode
	StopsAfter                             time.Duration // from SIGTERM to the exit, at most the grace period
	StopCode                               *int32        // of containers that exit after SIGTERM; nil: their exit is not reported
	Stuck                                  bool          // they cannot be killed
}

// Life is when a kubelet saw what it acts on, by the clock of the simulation. Zero: it has not seen it.
type Life struct {
	Bound, Accepted, Running, Ready, ExitDecided, Terminating time.Time
	Latest                                                    time.Time // the newest version of the pod
}

// Event is what happens to a pod by itself.
type Event struct {
	At     time.Time
	What   string                                   // in words, after the name of the pod
	Report func(pod *corev1.Pod, clock metav1.Time) // edits its status, with the time of the node's clock; nil: it does not change
	Gone   bool                                     // afterwards the deletion of the pod is confirmed
}

// See records what is new in a version of the pod that is bound.
func (l *Life) See(pod *corev1.Pod, program Program, now time.Time) {
	l.Latest = now
	running := pod.Status.Phase == corev1.PodRunning
	for _, first := range []struct {
		when *time.Time
		is   bool
	}{
		{&l.Bound, true},
		{&l.Accepted, pod.Status.StartTime != nil},
		{&l.Running, running},
		{&l.Ready, workload.IsReady(pod)},
		{&l.ExitDecided, running && program.ExitCode != nil},
		{&l.Terminating, pod.DeletionTimestamp != nil},
	} {
		if first.is && first.when.IsZero() {
			*first.when = now
		}
	}
}

// Next returns what happens next to a pod, as it was seen last; false if nothing does.
func (l *Life) Next(pod *corev1.Pod, program Program) (Event, bool) {
	next, ok := l.change(pod, program)
	if !l.Terminating.IsZero() {
		next, ok = l.end(pod, program)
	}
	if pod.Status.Phase == corev1.PodRunning && program.ExitCode != nil && !l.ExitDecided.IsZero() {
		exit := Event{At: l.ExitDecided.Add(program.ExitsAfter), What: "exits", Report: exitWith(*program.ExitCode)}
		if !ok || exit.At.Before(next.At) {
			return exit, true
		}
	}
	return next, ok
}

// change returns the next change of a pod that is not deleted and does not end.
func (l *Life) change(pod *corev1.Pod, program Program) (Event, bool) {
	faded := program.UnreadyAfter > 0 && !l.Ready.IsZero() && !l.Latest.Before(l.Ready.Add(program.UnreadyAfter))
	switch ready := workload.IsReady(pod); {
	case pod.Status.Phase == corev1.PodPending && !program.Held && l.Accepted.IsZero():
		return Event{At: l.Bound.Add(program.AcceptedAfter), What: "starts", Report: program.accept}, true
	case pod.Status.Phase == corev1.PodPending && !l.Accepted.IsZero() && !program.Unpullable:
		return Event{At: l.Accepted.Add(program.StartsAfter), What: "starts", Report: program.run}, true
	case pod.Status.Phase != corev1.PodRunning:
		return Event{}, false
	case ready && program.Unready:
		return Event{At: l.Ready, What: "is no longer ready", Report: setReady(false)}, true
	case ready && program.UnreadyAfter > 0:
		return Event{At: l.Ready.Add(program.UnreadyAfter), What: "is no longer ready", Report: setReady(false)}, true
	case !ready && !program.Unready && !faded:
		return Event{At: l.Running.Add(program.ReadyAfter), What: "becomes ready", Report: setReady(true)}, true
	}
	return Event{}, false
}

// end returns the end of a pod that is deleted.
func (l *Life) end(pod *corev1.Pod, program Program) (Event, bool) {
	grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	over, reported := Over(pod), program.StopCode != nil
	end := Event{At: l.Terminating, What: "has ended and goes", Gone: true}
	switch {
	case grace == 0 && (over || !reported):
		return Event{}, false // it has finished, and exists until its finalizers are removed
	case over:
	case pod.Status.Phase != corev1.PodRunning:
		if reported {
			end.Report = neverRan
		}
	case program.Stuck:
		return Event{}, false
	default:
		end.At = l.Terminating.Add(min(program.StopsAfter, grace))
		if reported && program.StopsAfter > grace {
			end.Report = exitWith(exitSIGKILL)
		} else if reported {
			end.Report = exitWith(*program.StopCode)
		}
	}
	return end, true
}
