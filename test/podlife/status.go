// SPDX-License-Identifier: Apache-2.0

package podlife

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Over reports whether a pod has ended: nothing of it runs any more, whoever has reported that.
func Over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// exitSIGKILL is the exit code of a container that was killed.
const exitSIGKILL = 137

// accept starts a pod, and its containers if nothing delays them.
func (p Program) accept(pod *corev1.Pod, clock metav1.Time) {
	switch {
	case p.Unpullable:
		start(pod, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"}}, clock)
	case p.StartsAfter > 0:
		start(pod, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}, clock)
	default:
		p.run(pod, clock)
	}
}

// run starts the containers of a pod. They are ready if their program is so immediately.
func (p Program) run(pod *corev1.Pod, clock metav1.Time) {
	Run(pod, clock)
	if p.ReadyAfter == 0 && !p.Unready {
		SetReady(pod, true, clock)
	}
}

// Run makes the containers of a pod run.
func Run(pod *corev1.Pod, clock metav1.Time) {
	start(pod, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: clock}}, clock)
	pod.Status.Phase = corev1.PodRunning
}

// start starts a pod unless it has started, and its containers with this state.
func start(pod *corev1.Pod, state corev1.ContainerState, clock metav1.Time) {
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &clock
		for _, c := range pod.Spec.InitContainers {
			done := corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: clock, FinishedAt: clock}
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{
				Name: c.Name, Image: c.Image, Ready: true, State: corev1.ContainerState{Terminated: &done},
			})
		}
		SetCondition(pod, corev1.PodReadyToStartContainers, true, clock)
		SetCondition(pod, corev1.PodInitialized, true, clock)
		SetReady(pod, false, clock)
	}
	setContainers(pod, state)
}

// Exit ends the containers of a pod with this code, and with them the pod.
func Exit(pod *corev1.Pod, code int32, clock metav1.Time) {
	ended := corev1.ContainerStateTerminated{ExitCode: code, Reason: "Completed", FinishedAt: clock}
	if code != 0 {
		ended.Reason = "Error"
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Running != nil {
			ended.StartedAt = s.State.Running.StartedAt
		}
	}
	end(pod, ended, clock)
}

func exitWith(code int32) func(*corev1.Pod, metav1.Time) {
	return func(pod *corev1.Pod, clock metav1.Time) { Exit(pod, code, clock) }
}

// neverRan ends a pod that was deleted before its containers ran.
func neverRan(pod *corev1.Pod, clock metav1.Time) {
	end(pod, corev1.ContainerStateTerminated{ExitCode: exitSIGKILL, Reason: "ContainerStatusUnknown"}, clock)
}

func end(pod *corev1.Pod, state corev1.ContainerStateTerminated, clock metav1.Time) {
	pod.Status.Phase = corev1.PodSucceeded
	if state.ExitCode != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	setContainers(pod, corev1.ContainerState{Terminated: &state})
	SetCondition(pod, corev1.PodReadyToStartContainers, false, clock)
	SetReady(pod, false, clock)
}

// setContainers sets the state of all containers. What their earlier runs have left stays.
func setContainers(pod *corev1.Pod, state corev1.ContainerState) {
	if len(pod.Status.ContainerStatuses) == 0 {
		for _, c := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image})
		}
	}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].State = state
	}
}

// SetReady sets whether a pod and its containers are ready.
func SetReady(pod *corev1.Pod, ready bool, clock metav1.Time) {
	SetCondition(pod, corev1.ContainersReady, ready, clock)
	SetCondition(pod, corev1.PodReady, ready, clock)
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = ready
	}
}

func setReady(ready bool) func(*corev1.Pod, metav1.Time) {
	return func(pod *corev1.Pod, clock metav1.Time) { SetReady(pod, ready, clock) }
}

// SetCondition sets a condition of a pod. Its time changes only with its status.
func SetCondition(pod *corev1.Pod, kind corev1.PodConditionType, is bool, clock metav1.Time) {
	condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: clock}
	if !is {
		condition.Status = corev1.ConditionFalse
	}
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, condition)
	} else if pod.Status.Conditions[i].Status != condition.Status {
		pod.Status.Conditions[i] = condition
	}
}
