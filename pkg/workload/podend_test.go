// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/lifecycle"
)

// workerPod returns a pod with an init container, a sidecar and the containers main and log, all of which run.
func workerPod(edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w-0", Finalizers: []string{v1alpha1.FinalizerPodTracking}}}
	pod.Spec = corev1.PodSpec{
		NodeName:      "n0",
		RestartPolicy: corev1.RestartPolicyNever,
		InitContainers: []corev1.Container{
			{Name: "setup"}, {Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
		},
		Containers: []corev1.Container{{Name: "main"}, {Name: "log"}},
	}
	pod.Status.Phase = corev1.PodRunning
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

// exited is a container that ended the given number of seconds after twelve.
func exited(name string, code int32, second int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		status := corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, FinishedAt: metav1.Date(2026, 5, 1, 12, 0, second, 0, time.UTC)}}}
		if name == "setup" || name == "proxy" {
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, status)
		} else {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status)
		}
	}
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func restarts(policy corev1.RestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.RestartPolicy = policy }
}

// deleted is a pod whose deletion was requested at the given second, with the remaining grace period.
func deleted(second int, grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		end := metav1.Date(2026, 5, 1, 12, 0, second+int(grace), 0, time.UTC)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &end, &grace
	}
}

func TestHowAPodEnded(t *testing.T) {
	t.Parallel()
	main := func(code int32) lifecycle.PodEnd { return lifecycle.PodEnd{Container: "main", ExitCode: code} }
	for name, tc := range map[string]struct {
		pod               *corev1.Pod
		recorded          string // status.succeededIndices
		succeeded, failed bool
		end               lifecycle.PodEnd
		text              string
	}{
		"it runs": {pod: workerPod()},
		"a container has ended with 0, another runs": {
			pod: workerPod(exited("main", 0, 1))},
		"all containers ended with 0": {
			pod: workerPod(exited("main", 0, 1), exited("log", 0, 2), phase(corev1.PodSucceeded)), succeeded: true},
		"a container ended with 1, another runs": {
			pod: workerPod(exited("main", 1, 1)), failed: true, end: main(1), text: "container main exited with code 1"},
		"the first of two failures is named": {
			pod:    workerPod(exited("main", 137, 5), exited("log", 2, 3), phase(corev1.PodFailed)),
			failed: true, end: lifecycle.PodEnd{Container: "log", ExitCode: 2}, text: "container log exited with code 2"},
		"an init container failed": {
			pod:    workerPod(exited("setup", 3, 1), phase(corev1.PodFailed)),
			failed: true, end: lifecycle.PodEnd{Container: "setup", Init: true, ExitCode: 3}, text: "init container setup exited with code 3"},
		"a sidecar ended non-zero: it is restarted": {
			pod: workerPod(exited("proxy", 1, 1))},
		"a sidecar was stopped after success": {
			pod: workerPod(exited("main", 0, 1), exited("proxy", 137, 2), phase(corev1.PodSucceeded)), succeeded: true},
		"a sidecar was stopped after a failure": {
			pod:    workerPod(exited("proxy", 143, 1), exited("main", 1, 2), phase(corev1.PodFailed)),
			failed: true, end: main(1), text: "container main exited with code 1"},
		"OnFailure: the kubelet restarts the container": {
			pod: workerPod(restarts(corev1.RestartPolicyOnFailure), exited("main", 1, 1))},
		"OnFailure: the pod failed as a whole": {
			pod: workerPod(restarts(corev1.RestartPolicyOnFailure), exited("main", 137, 1), phase(corev1.PodFailed), func(p *corev1.Pod) {
				p.Status.Reason = "Evicted"
			}),
			failed: true, end: lifecycle.PodEnd{Container: "main", ExitCode: 137, Reason: "Evicted"}, text: "container main exited with code 137 (Evicted)"},
		"a container with a policy of its own is restarted": {
			pod: workerPod(exited("main", 1, 1), func(p *corev1.Pod) {
				p.Spec.Containers[0].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyOnFailure)
			})},
		"a container with a rule for the code is restarted": {
			pod: workerPod(exited("main", 42, 1), func(p *corev1.Pod) { p.Spec.Containers[0] = withRule(p.Spec.Containers[0]) })},
		"a container with a rule for another code is not": {
			pod:    workerPod(exited("main", 1, 1), func(p *corev1.Pod) { p.Spec.Containers[0] = withRule(p.Spec.Containers[0]) }),
			failed: true, end: main(1), text: "container main exited with code 1"},
		"evicted before any container ran": {
			pod:    workerPod(phase(corev1.PodFailed), func(p *corev1.Pod) { p.Status.Reason = "Evicted" }),
			failed: true, end: lifecycle.PodEnd{Reason: "Evicted"}, text: "Evicted"},
		"failed without a reason": {
			pod: workerPod(phase(corev1.PodFailed)), failed: true, text: "failed"},
		"deleted after its success was recorded": {
			pod: workerPod(exited("main", 0, 1), phase(corev1.PodSucceeded), deleted(5, 0)), recorded: "0", succeeded: true},
		"deleted after its success was recorded, its grace period still runs": {
			pod: workerPod(exited("main", 0, 4), phase(corev1.PodSucceeded), deleted(5, 30)), recorded: "0,3", succeeded: true},
		"deleted, and it exited with 0 when it was terminated": {
			pod: workerPod(exited("main", 0, 7), phase(corev1.PodSucceeded), deleted(5, 0))},
		"deleted, and a kubelet behind wrote that it exited before": {
			pod: workerPod(exited("main", 0, 2), phase(corev1.PodSucceeded), deleted(5, 0)), recorded: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clique := &v1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "w"}}
			clique.Status.SucceededIndices = tc.recorded
			tc.pod.Spec.Hostname = "w-0"
			p := PodFacts(clique, tc.pod, func(string) bool { return false })
			if p.Succeeded != tc.succeeded || p.Failed != tc.failed || p.End != tc.end {
				t.Errorf("succeeded %t, failed %t, end %+v", p.Succeeded, p.Failed, p.End)
			}
			if p.Failed && p.End.String() != tc.text {
				t.Errorf("%q, want %q", p.End, tc.text)
			}
			if !p.Tracked {
				t.Error("the finalizer was not detected")
			}
		})
	}
}

// withRule returns a container that is restarted when it exits with 42.
func withRule(c corev1.Container) corev1.Container {
	c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
	c.RestartPolicyRules = []corev1.ContainerRestartRule{{
		Action:    corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
	}}
	return c
}

func TestPreemptedPods(t *testing.T) {
	t.Parallel()
	marked := func(edits ...func(*corev1.PodCondition)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			c := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}
			for _, edit := range edits {
				edit(&c)
			}
			p.Status.Conditions = append(p.Status.Conditions, c)
		}
	}
	says := func(text string) func(*corev1.PodCondition) {
		return func(c *corev1.PodCondition) { c.Message = text }
	}
	const by = "muster-scheduler: preempting to accommodate a higher priority PodGroup, ml/urgent (priority 1000): its priority is lower; plan 5a0c1b2d"
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
		by   string
	}{
		"it runs":                                {pod: workerPod()},
		"it is preempted by a gang":              {workerPod(marked(says(by)), deleted(0, 30)), true, "ml/urgent (priority 1000)"},
		"it is to be preempted by a gang":        {pod: workerPod(marked(says(by)))},
		"a drain says that a gang preempts it":   {pod: workerPod(marked(says(by), func(c *corev1.PodCondition) { c.Reason = "EvictionByEvictionAPI" }), deleted(0, 30))},
		"it is preempted by the stock scheduler": {workerPod(marked(says("default-scheduler: preempting to accommodate a higher priority pod")), deleted(0, 30)), true, ""},
		"somebody else wrote the message":        {workerPod(marked(says(strings.Repeat("\x1b[2J", 9000)+by)), deleted(0, 30)), true, "ml/urgent (priority 1000)"},
		"it is to be preempted, and runs":        {pod: workerPod(marked())},
		"it is preempted":                        {workerPod(marked(), deleted(0, 30)), true, ""},
		"it failed before it was deleted":        {workerPod(marked(), exited("main", 1, 1), phase(corev1.PodFailed)), true, ""},
		"a container failed before the others":   {workerPod(marked(), exited("main", 1, 1)), true, ""},
		"it is deleted by a user":                {pod: workerPod(deleted(0, 30))},
		"it failed":                              {pod: workerPod(exited("main", 1, 1), phase(corev1.PodFailed))},
		"the preemption was given up, it fails":  {pod: workerPod(marked(func(c *corev1.PodCondition) { c.Status = corev1.ConditionFalse }), exited("main", 1, 1))},
		"it is evicted in a drain":               {pod: workerPod(marked(func(c *corev1.PodCondition) { c.Reason = "EvictionByEvictionAPI" }), deleted(0, 30))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := PodFacts(&v1alpha1.PodClique{}, tc.pod, func(string) bool { return false }); got.Preempted != tc.want || got.PreemptedBy != tc.by {
				t.Errorf("preempted: %t, by %q, want %t, %q", got.Preempted, got.PreemptedBy, tc.want, tc.by)
			}
		})
	}
}

func TestAPodThatIsDeletedIsStoppedWhenItsGracePeriodIsZero(t *testing.T) {
	t.Parallel()
	for grace, want := range map[int64]bool{0: true, 30: false} {
		p := PodFacts(&v1alpha1.PodClique{}, workerPod(deleted(5, grace)), func(string) bool { return false })
		if p.Stopped != want {
			t.Errorf("grace %d: stopped %t", grace, p.Stopped)
		}
	}
}
