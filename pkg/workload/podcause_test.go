// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

func TestCauseOfAPodThatIsNotReady(t *testing.T) {
	t.Parallel()
	waiting := func(name, reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
	}
	running := func(name string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	}
	ended := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
	}
	restarted := func(s corev1.ContainerStatus, times, code int32) corev1.ContainerStatus {
		s.RestartCount, s.LastTerminationState.Terminated = times, &corev1.ContainerStateTerminated{ExitCode: code}
		return s
	}
	isReady := func(s corev1.ContainerStatus) corev1.ContainerStatus {
		s.Ready = true
		return s
	}
	of := func(statuses ...corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.ContainerStatuses = statuses }
	}
	initOf := func(statuses ...corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.InitContainerStatuses = statuses }
	}
	says := func(kind corev1.PodConditionType, status corev1.ConditionStatus, text string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Message: text})
		}
	}
	unbound := func(p *corev1.Pod) { p.Spec.NodeName = "" }
	gate := func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "lb"}} }
	const crash = "container main is started again and again (CrashLoopBackOff), the last time it ended with exit code 3"
	const pull = "the image of container main cannot be pulled (ImagePullBackOff)"
	type changes = []func(*corev1.Pod)
	for name, tc := range map[string]struct {
		changes changes
		want    string
	}{
		"no status yet":                                   {nil, ""},
		"unbound, without a condition":                    {changes{unbound}, ""},
		"unbound, with a message":                         {changes{unbound, says(corev1.PodScheduled, corev1.ConditionFalse, "0/3 nodes are available")}, "0/3 nodes are available"},
		"unbound, with a long message":                    {changes{unbound, says(corev1.PodScheduled, corev1.ConditionFalse, strings.Repeat("x", 400))}, strings.Repeat("x", 299) + "…"},
		"gated":                                           {changes{unbound, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }}, "it has the scheduling gate quota"},
		"bound: the earlier message is outdated":          {changes{says(corev1.PodScheduled, corev1.ConditionTrue, "old")}, ""},
		"being created":                                   {changes{of(waiting("main", "ContainerCreating"))}, ""},
		"after its init containers":                       {changes{of(waiting("main", "PodInitializing"))}, ""},
		"its image cannot be pulled":                      {changes{of(waiting("main", "ErrImagePull"))}, pull},
		"the pull is retried later: the same":             {changes{of(waiting("main", "ImagePullBackOff"))}, pull},
		"another reason":                                  {changes{of(waiting("main", "CreateContainerConfigError"))}, "container main waits (CreateContainerConfigError)"},
		"it crashes":                                      {changes{of(restarted(waiting("main", "CrashLoopBackOff"), 1, 3))}, crash},
		"it crashes and runs: the same":                   {changes{of(restarted(running("main"), 2, 3))}, crash},
		"it crashes and just ended: the same":             {changes{of(restarted(ended("main", 3), 2, 1))}, crash},
		"it was restarted once":                           {changes{of(restarted(running("main"), 1, 3))}, "container main runs and is not ready"},
		"its probe fails":                                 {changes{of(running("main"))}, "container main runs and is not ready"},
		"it ended and is not restarted":                   {changes{of(ended("main", 0))}, "container main ended with exit code 0"},
		"the first that is not ready":                     {changes{of(isReady(running("a")), running("b"), waiting("c", "ErrImagePull"))}, "container b runs and is not ready"},
		"one without a cause does not hide it":            {changes{of(waiting("a", "ContainerCreating"), waiting("main", "ErrImagePull"))}, pull},
		"an init container runs":                          {changes{initOf(running("i")), of(waiting("main", "PodInitializing"))}, ""},
		"an init container has ended":                     {changes{initOf(restarted(ended("i", 0), 3, 1)), of(running("main"))}, "container main runs and is not ready"},
		"an init container fails":                         {changes{initOf(ended("i", 0), ended("j", 2)), of(waiting("main", "PodInitializing"))}, "init container j ended with exit code 2"},
		"an init container's image":                       {changes{initOf(waiting("i", "ErrImagePull"))}, "the image of init container i cannot be pulled (ImagePullBackOff)"},
		"a readiness gate":                                {changes{gate, of(isReady(running("main"))), says(corev1.ContainersReady, corev1.ConditionTrue, "")}, "its containers are ready, and a readiness gate is not fulfilled"},
		"all containers are ready, the condition follows": {changes{of(isReady(running("main"))), says(corev1.ContainersReady, corev1.ConditionTrue, "")}, ""},
		"it is ready":                                     {changes{of(running("main")), says(corev1.PodReady, corev1.ConditionTrue, "")}, ""},
		"it terminates":                                   {changes{of(running("main")), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: t0} }}, ""},
		"it has ended":                                    {changes{of(ended("main", 1)), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}
			for _, change := range tc.changes {
				change(pod)
			}
			if got := PodFacts(&v1alpha1.PodClique{}, pod, func(string) bool { return false }).Cause; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
