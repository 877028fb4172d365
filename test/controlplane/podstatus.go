// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// phase returns the phase that the kubelet reports. Source: getPhase of k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go.
func (l *podLife) phase() corev1.PodPhase {
	mains := slices.Collect(func(yield func(*containerLife) bool) {
		for _, c := range l.containers {
			if c.role == mainContainer && !yield(c) {
				return
			}
		}
	})
	switch {
	case l.over && !l.evicted && !slices.ContainsFunc(mains, func(c *containerLife) bool {
		return c.state.Terminated == nil || c.state.Terminated.ExitCode != 0
	}):
		return corev1.PodSucceeded
	case l.over:
		return corev1.PodFailed
	case !l.isInitialized() || slices.ContainsFunc(mains, func(c *containerLife) bool { return c.starts == 0 }):
		return corev1.PodPending
	}
	return corev1.PodRunning
}

// updateConditions brings the pod's conditions up to date. A condition that changes does so now, by the node's clock.
func (l *podLife) updateConditions() {
	set := func(kind corev1.PodConditionType, is bool, reason, message string) {
		condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: l.clock()}
		if !is {
			condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, reason, message
		}
		for i := range l.conditions {
			if old := &l.conditions[i]; old.Type == kind {
				if old.Status == condition.Status {
					condition.LastTransitionTime = old.LastTransitionTime
				}
				*old = condition
				return
			}
		}
		l.conditions = append(l.conditions, condition)
	}

	reason, message := "ContainersNotReady", ""
	switch l.phase() {
	case corev1.PodSucceeded:
		reason = "PodCompleted"
	case corev1.PodFailed:
		reason = "PodFailed"
	default:
		message = "containers with unready status: [" + strings.Join(l.unreadyNames(), " ") + "]"
	}
	ready := !l.over && l.phase() == corev1.PodRunning && len(l.unreadyNames()) == 0
	set(corev1.PodReadyToStartContainers, l.startTime != nil && !l.over, "", "")
	set(corev1.PodInitialized, l.startTime != nil && l.isInitialized(), "ContainersNotInitialized", "")
	set(corev1.ContainersReady, ready, reason, message)
	if ready && l.gated {
		reason, message = "ReadinessGatesNotReady", ""
	}
	set(corev1.PodReady, ready && !l.gated, reason, message)
	if l.evicted && !slices.ContainsFunc(l.conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget }) {
		l.conditions = append(l.conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: l.clock(),
			Reason: corev1.PodReasonTerminationByKubelet, Message: evictionMessage,
		})
	}
}

const evictionMessage = "The node was low on resource: memory. "

// unreadyNames returns the names of the containers and sidecars that are not ready.
func (l *podLife) unreadyNames() []string {
	var names []string
	for _, c := range l.containers {
		if c.role != initContainer && !l.isReady(c) {
			names = append(names, c.name)
		}
	}
	return names
}

func (l *podLife) isReady(c *containerLife) bool {
	if c.role == initContainer {
		return c.hasSucceeded()
	}
	return c.state.Running != nil && c.probe && !(l.unready && c.role == mainContainer)
}

// status returns the fields of the status that a kubelet writes, nil before it has started the pod.
func (l *podLife) status(node *corev1.Node) *corev1.PodStatus {
	if l.startTime == nil && !l.over {
		return nil
	}
	s := &corev1.PodStatus{Phase: l.phase(), StartTime: l.startTime, Conditions: slices.Clone(l.conditions)}
	if l.evicted {
		s.Reason, s.Message = "Evicted", evictionMessage
	}
	if l.startTime != nil {
		s.PodIP, s.PodIPs = l.ip, []corev1.PodIP{{IP: l.ip}}
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			s.HostIP, s.HostIPs = address.Address, []corev1.HostIP{{IP: address.Address}}
		}
	}
	for _, c := range l.containers {
		started := c.state.Running != nil
		status := corev1.ContainerStatus{
			Name: c.name, Image: c.image, RestartCount: c.restarts, Ready: l.isReady(c), Started: &started, State: *c.state.DeepCopy(),
		}
		if c.starts > 0 {
			status.ImageID = c.image
		}
		if c.last != nil {
			status.LastTerminationState.Terminated = c.last.DeepCopy()
		}
		if l.over && c.state.Terminated == nil { // it waited for its start
			status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: exitSIGKILL, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated",
			}}
		}
		if c.role == mainContainer {
			s.ContainerStatuses = append(s.ContainerStatuses, status)
		} else {
			s.InitContainerStatuses = append(s.InitContainerStatuses, status)
		}
	}
	return s
}

// overlay returns the status after a report of these fields: conditions that are not reported stay.
func overlay(status, reported corev1.PodStatus) corev1.PodStatus {
	after := *status.DeepCopy()
	after.Phase, after.Reason, after.Message = reported.Phase, reported.Reason, reported.Message
	after.StartTime, after.HostIP, after.HostIPs, after.PodIP, after.PodIPs = reported.StartTime, reported.HostIP, reported.HostIPs, reported.PodIP, reported.PodIPs
	after.ContainerStatuses, after.InitContainerStatuses = reported.ContainerStatuses, reported.InitContainerStatuses
	for _, condition := range reported.Conditions {
		i := slices.IndexFunc(after.Conditions, func(c corev1.PodCondition) bool { return c.Type == condition.Type })
		if i < 0 {
			after.Conditions = append(after.Conditions, condition)
		} else {
			condition.LastProbeTime = after.Conditions[i].LastProbeTime
			after.Conditions[i] = condition
		}
	}
	return after
}
