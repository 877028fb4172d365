// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/test/wrappers"
)

// at returns a time in seconds.
func at(second int) time.Time { return time.Unix(int64(1_000_000+second), 0) }

// failedPod returns a pod that was created at a second.
func failedPod(name string, second int) *wrappers.PodWrapper {
	return wrappers.MakePod(name, "ml").UID(name).Gang("llm").Phase(corev1.PodFailed).CreationTimestamp(at(second))
}

// exited returns the status of a container that has ended at a second.
func exited(name string, code int32, second int) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: "Error", FinishedAt: metav1.NewTime(at(second))}}}
}

func containers(statuses ...corev1.ContainerStatus) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) { s.ContainerStatuses = statuses }
}

func TestFailures(t *testing.T) {
	t.Parallel()
	oomKilled := exited("worker", 137, 9)
	oomKilled.State.Terminated.Reason = "OOMKilled"
	for name, tc := range map[string]struct {
		pods []*wrappers.PodWrapper
		live []Owner
		want FailedPods
	}{
		"none": {},
		"a container failed": {
			pods: []*wrappers.PodWrapper{failedPod("a", 1).Status(containers(exited("log", 0, 3), exited("worker", 3, 9)))},
			want: FailedPods{Total: 1, First: "a", Why: "container worker exited with code 3", Bare: true},
		},
		"the container that failed first is named": {
			pods: []*wrappers.PodWrapper{failedPod("a", 1).Status(containers(exited("worker", 143, 9), exited("log", 1, 8)))},
			want: FailedPods{Total: 1, First: "a", Why: "container log exited with code 1", Bare: true},
		},
		"the kernel killed it": {
			pods: []*wrappers.PodWrapper{failedPod("a", 1).Status(containers(oomKilled))},
			want: FailedPods{Total: 1, First: "a", Why: "container worker exited with code 137 (OOMKilled)", Bare: true},
		},
		"an init container failed": {
			pods: []*wrappers.PodWrapper{failedPod("a", 1).Status(func(s *corev1.PodStatus) { s.InitContainerStatuses = []corev1.ContainerStatus{exited("load", 2, 3)} })},
			want: FailedPods{Total: 1, First: "a", Why: "init container load exited with code 2", Bare: true},
		},
		"the end of a sidecar is no failure": {
			pods: []*wrappers.PodWrapper{failedPod("a", 1).
				Spec(func(s *corev1.PodSpec) {
					s.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
				}).
				Status(func(s *corev1.PodStatus) {
					s.InitContainerStatuses, s.ContainerStatuses = []corev1.ContainerStatus{exited("proxy", 2, 3)}, []corev1.ContainerStatus{exited("worker", 1, 4)}
				})},
			want: FailedPods{Total: 1, First: "a", Why: "container worker exited with code 1", Bare: true},
		},
		"it was evicted": {
			pods: []*wrappers.PodWrapper{failedPod("a", 1).Status(func(s *corev1.PodStatus) { s.Reason = "Evicted" })},
			want: FailedPods{Total: 1, First: "a", Why: "Evicted", Bare: true},
		},
		"its node was lost": {
			pods: []*wrappers.PodWrapper{failedPod("a", 1).Status(func(s *corev1.PodStatus) {
				s.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager"}}
				s.ContainerStatuses = []corev1.ContainerStatus{exited("worker", 143, 9)}
			})},
			want: FailedPods{Total: 1, First: "a", Why: "container worker exited with code 143 (DeletionByTaintManager)", Bare: true},
		},
		"why is unknown": {
			pods: []*wrappers.PodWrapper{failedPod("a", 1)},
			want: FailedPods{Total: 1, First: "a", Bare: true},
		},
		"three pods of a Job: the one that failed first is named": {
			pods: []*wrappers.PodWrapper{
				failedPod("a", 1).Controller("Job", "train", "1").Status(containers(exited("worker", 1, 9))),
				failedPod("b", 1).Controller("Job", "train", "1").Status(containers(exited("worker", 2, 8))),
				failedPod("c", 2).Controller("Job", "train", "1").Status(containers(exited("worker", 3, 9))),
			},
			want: FailedPods{Total: 3, First: "b", Why: "container worker exited with code 2",
				Owners: []Owner{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "1", Failed: 3}}},
		},
		"two Jobs of one gang have failed": {
			pods: []*wrappers.PodWrapper{
				failedPod("a", 1).SubGroup("leader").Controller("Job", "leader", "1").Status(containers(exited("main", 1, 9))),
				failedPod("b", 2).SubGroup("workers").Controller("Job", "workers", "2").Status(containers(exited("main", 2, 10))),
			},
			want: FailedPods{Total: 2, First: "a", Why: "container main exited with code 1", Owners: []Owner{
				{APIVersion: "batch/v1", Kind: "Job", Name: "leader", UID: "1", Leaf: "leader", Failed: 1},
				{APIVersion: "batch/v1", Kind: "Job", Name: "workers", UID: "2", Leaf: "workers", Failed: 1}}},
		},
		"an earlier run has failed, too": {
			pods: []*wrappers.PodWrapper{
				failedPod("a", 1).Controller("Job", "run-1", "1").Status(containers(exited("main", 1, 9))),
				failedPod("b", 3600).Controller("Job", "run-2", "2").Status(containers(exited("main", 2, 3700))),
				failedPod("c", 3610).Controller("Job", "run-2", "2").Status(containers(exited("main", 3, 3650))),
			},
			want: FailedPods{Total: 2, First: "c", Why: "container main exited with code 3",
				Owners: []Owner{{APIVersion: "batch/v1", Kind: "Job", Name: "run-2", UID: "2", Failed: 2}}},
		},
		"only an earlier run has failed": {
			pods: []*wrappers.PodWrapper{failedPod("a", 1).Controller("Job", "run-1", "1").Status(containers(exited("main", 1, 9)))},
			live: []Owner{{Kind: "Job", Name: "run-2", UID: "2", Pods: 1, Since: at(3600)}},
		},
		"the Job has replaced all of its failed pods": {
			pods: []*wrappers.PodWrapper{failedPod("a", 1).Controller("Job", "train", "1").Status(containers(exited("main", 1, 9)))},
			live: []Owner{{Kind: "Job", Name: "train", UID: "1", Pods: 1, Since: at(20)}},
			want: FailedPods{Total: 1, First: "a", Why: "container main exited with code 1",
				Owners: []Owner{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "1", Failed: 1}}},
		},
		"a Job beside one that runs": {
			pods: []*wrappers.PodWrapper{failedPod("a", 1).Controller("Job", "job-1", "1").Status(containers(exited("main", 1, 9)))},
			live: []Owner{{Kind: "Job", Name: "job-0", UID: "0", Pods: 1, Since: at(2)}},
			want: FailedPods{Total: 1, First: "a", Why: "container main exited with code 1",
				Owners: []Owner{{APIVersion: "batch/v1", Kind: "Job", Name: "job-1", UID: "1", Failed: 1}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var whole, kept []*corev1.Pod
			for _, w := range tc.pods {
				pod := w.Obj()
				stripped := &corev1.Pod{ObjectMeta: pod.ObjectMeta, Status: FailedStatus(pod)}
				whole, kept = append(whole, pod), append(kept, stripped)
			}
			if diff := cmp.Diff(tc.want, DescribeFailures(whole, tc.live)); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, DescribeFailures(kept, tc.live)); diff != "" {
				t.Errorf("failures, of what is kept of the pods (-want +got):\n%s", diff)
			}
		})
	}
}
