// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-project/muster/pkg/message"
)

// maxCause is the maximum length, in characters, of a cause taken from the message of a condition. The name of the pod
// is added to it.
const maxCause = 300

// podCause returns why a pod that is neither ready nor ended is not bound or not ready; "" if the cause is unknown or
// the pod is starting. It returns the cause of the first container that has one, init containers first. The status of
// a container changes with every retry of the kubelet; the text does not, because every change of the text causes
// status writes.
func podCause(pod *corev1.Pod) string {
	if pod.Spec.NodeName == "" {
		if len(pod.Spec.SchedulingGates) > 0 {
			return "it has the scheduling gate " + pod.Spec.SchedulingGates[0].Name
		}
		if c := podCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
			return message.Truncate(c.Message, maxCause)
		}
		return ""
	}
	for i := range pod.Status.InitContainerStatuses {
		s := &pod.Status.InitContainerStatuses[i]
		if t := s.State.Terminated; s.State.Running != nil || t != nil && t.ExitCode == 0 {
			continue
		}
		if cause := containerCause("init container "+s.Name, s); cause != "" {
			return cause
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; !s.Ready {
			if cause := containerCause("container "+s.Name, s); cause != "" {
				return cause
			}
		}
	}
	if c := podCondition(pod, corev1.ContainersReady); c != nil && c.Status == corev1.ConditionTrue && len(pod.Spec.ReadinessGates) > 0 {
		return "its containers are ready, and a readiness gate is not fulfilled"
	}
	return ""
}

// containerCause returns why the container with the given name is not ready; "" if it is being created.
func containerCause(name string, s *corev1.ContainerStatus) string {
	waiting, last := s.State.Waiting, s.LastTerminationState.Terminated
	if s.State.Terminated != nil {
		last = s.State.Terminated
	}
	switch {
	case last != nil && (s.RestartCount > 1 || waiting != nil && waiting.Reason == "CrashLoopBackOff"):
		return fmt.Sprintf("%s is started again and again (CrashLoopBackOff), the last time it ended with exit code %d", name, last.ExitCode)
	case waiting != nil:
		switch waiting.Reason {
		case "", "ContainerCreating", "PodInitializing":
			return ""
		case "ErrImagePull", "ImagePullBackOff": // the two alternate
			return fmt.Sprintf("the image of %s cannot be pulled (ImagePullBackOff)", name)
		}
		return fmt.Sprintf("%s waits (%s)", name, waiting.Reason)
	case s.State.Terminated != nil:
		return fmt.Sprintf("%s ended with exit code %d", name, last.ExitCode)
	case s.State.Running != nil:
		return name + " runs and is not ready"
	}
	return ""
}

// podCondition returns a condition of a pod, nil if it does not have it.
func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}
