// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

// warnings returns the events of type Warning.
func (c *cluster) warnings() []string {
	out := []string{}
	for _, e := range c.events.list() {
		if strings.HasPrefix(e, "Warning ") {
			out = append(out, e)
		}
	}
	return out
}

// A PodGroup without pods is idle if nothing tries to create some, and then causes no warning.
func TestIdlePodGroups(t *testing.T) {
	t.Parallel()
	const quota = "needs 4 pods, 0 exist; Job train is to have 4 pods and has 0: see its events, a quota or an admission webhook may refuse the others, or it pauses after a failure"
	for name, tc := range map[string]struct {
		group    *wrappers.PodGroupWrapper // nil: train, which needs 4 pods
		objects  []runtime.Object
		failed   []*corev1.Pod
		others   []*wrappers.PodWrapper
		phase    v2alpha2.PodGroupPhase
		message  string
		warnings []string
	}{
		"no pod names it": {
			phase: v2alpha2.PodGroupIdle, message: "needs 4 pods, 0 exist; it is idle until pods name it by annotation pod-group-name",
		},
		"its Job is suspended": {
			objects: []runtime.Object{naming("train", &batchv1.Job{ObjectMeta: owned("train", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4), Suspend: ptr.To(true)}})},
			phase:   v2alpha2.PodGroupIdle, message: "needs 4 pods, 0 exist; Job train is suspended: resume it",
		},
		"its Job is complete": {
			objects: []runtime.Object{naming("train", ended(&batchv1.Job{ObjectMeta: owned("train", "1")}, batchv1.JobComplete, "CompletionsReached"))},
			phase:   v2alpha2.PodGroupIdle, message: "needs 4 pods, 0 exist; Job train is complete and makes no more pods: delete it and create it again",
		},
		"its Job cannot create pods": {
			objects: []runtime.Object{naming("train", &batchv1.Job{ObjectMeta: owned("train", "1"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4)}})},
			phase:   v2alpha2.PodGroupWaiting, message: quota,
			warnings: []string{"Warning GangIncomplete PodGroup/train: WaitingForPods for more than 5 minutes: " + quota},
		},
		"its pods have failed": {
			failed: []*corev1.Pod{failedPod("a", 1).Obj()},
			phase:  v2alpha2.PodGroupWaiting, message: "needs 4 pods, 0 exist; pod a failed: Evicted, and no controller replaces it",
			warnings: []string{"Warning GangIncomplete PodGroup/train: WaitingForPods for more than 5 minutes: needs 4 pods, 0 exist; pod a failed: Evicted, and no controller replaces it"},
		},
		"another object is to create its pods": {
			group: podGroup("train").MinMember(4).Controller("PodCliqueSet", "chat", "1"),
			phase: v2alpha2.PodGroupWaiting, message: "needs 4 pods, 0 exist; PodCliqueSet chat makes its pods: see its events",
			warnings: []string{"Warning GangIncomplete PodGroup/train: WaitingForPods for more than 5 minutes: needs 4 pods, 0 exist; PodCliqueSet chat makes its pods: see its events"},
		},
		"a pod names it by a label": {
			others: []*wrappers.PodWrapper{wrappers.MakePod("a", namespace).UID("a").Label(v2alpha2.PodGroupAnnotation, "train")},
			phase:  v2alpha2.PodGroupWaiting, message: "needs 4 pods, 0 exist; pod a names it by label pod-group-name: make it annotation pod-group-name",
			warnings: []string{
				"Warning PodGroupNotNamed Pod/a: the pod is in no gang, and PodGroup train has no pods: pod a names it by label pod-group-name: make it annotation pod-group-name",
				"Warning GangIncomplete PodGroup/train: WaitingForPods for more than 5 minutes: needs 4 pods, 0 exist; pod a names it by label pod-group-name: make it annotation pod-group-name",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.withMakers(tc.failed, tc.others...)
			c.adds(tc.objects...)
			if tc.group == nil {
				tc.group = podGroup("train").MinMember(4)
			}
			c.group(tc.group)
			c.lastsFor("train", makersAfter-time.Second)
			if s := c.groups.Get(keyOf("train")).Status; s.Phase != v2alpha2.PodGroupWaiting {
				t.Errorf("the phase of a new PodGroup is %s", s.Phase)
			}
			c.lastsFor("train", 2*warnAfter)
			s := c.groups.Get(keyOf("train")).Status
			if s.Phase != tc.phase || s.Reason != v2alpha2.ReasonWaitingForPods {
				t.Errorf("phase %s, reason %s, want %s", s.Phase, s.Reason, tc.phase)
			}
			if diff := cmp.Diff(tc.message, meta.FindStatusCondition(s.Conditions, v2alpha2.ConditionSatisfied).Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			want := []string{}
			if diff := cmp.Diff(append(want, tc.warnings...), c.warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			before := c.groups.Get(keyOf("train")).ResourceVersion
			c.withMakers(tc.failed, tc.others...)
			c.lastsFor("train", makersAfter)
			if after := c.groups.Get(keyOf("train")); after.ResourceVersion != before {
				t.Errorf("a restart wrote the status: %s, %q", after.Status.Phase, after.Status.Summary)
			}
		})
	}
}

// The PodGroup of a CronJob: what it says before, during and between runs.
func TestPodGroupOfACronJob(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var failed []*corev1.Pod
	c.withMakers(nil)
	c.reporter.statuses.makers.Failed = func(gangs.Key) []*corev1.Pod { return failed }
	group := func(pods int32, generation int64) { c.group(podGroup("train").MinMember(pods).Generation(generation)) }
	pod := func(run, name string) *wrappers.PodWrapper {
		return member("train", run+name).Controller("Job", run, run)
	}
	both := func(run string, edit func(*wrappers.PodWrapper) *wrappers.PodWrapper) {
		for _, name := range []string{"a", "b"} {
			c.pod(edit(pod(run, name)))
		}
	}
	runs := func(w *wrappers.PodWrapper) *wrappers.PodWrapper { return w.Node("n1") }
	succeeds := func(w *wrappers.PodWrapper) *wrappers.PodWrapper { return runs(w).Phase(corev1.PodSucceeded) }
	gone := func(run string) {
		for _, name := range []string{"a", "b"} {
			c.registry.RemoveSucceededPod(types.UID(run+name), c.clock.Now())
		}
	}
	job := func(run string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: controlled(owned(run, run), "CronJob", "train"), Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](2)}}
	}
	const idle = "; it is idle until pods name it by annotation pod-group-name"
	for _, step := range []struct {
		name  string
		do    func()
		lasts time.Duration
		phase v2alpha2.PodGroupPhase
		want  string // message of condition Satisfied
	}{
		{"before the first run", func() { group(2, 1) }, time.Hour, "Idle", "needs 2 pods, 0 exist" + idle},
		{"the first pod of the first run", func() { c.adds(job("run-1")); c.pod(pod("run-1", "a")) }, 5 * time.Second, "Waiting", "needs 2 pods, 1 exist"},
		{"it runs", func() { both("run-1", runs) }, time.Hour, "Admitted", "the minimum of 2 pods is bound"},
		{"it has succeeded", func() { both("run-1", succeeds) }, time.Hour, "Completed", "every pod has succeeded"},
		{"its pods are deleted", func() { gone("run-1") }, time.Hour, "Completed", "every pod has succeeded"},
		{"a third pod is needed from now on", func() { group(3, 2) }, time.Hour, "Idle", "needs 3 pods, 0 exist" + idle},
		{"two pods are needed again", func() { group(2, 3) }, time.Hour, "Idle", "needs 2 pods, 0 exist" + idle},
		{"the second run runs", func() { c.adds(job("run-2")); both("run-2", runs) }, time.Hour, "Admitted", "the minimum of 2 pods is bound"},
		{"it has failed", func() {
			for _, name := range []string{"a", "b"} {
				c.registry.RemoveFailedPod(types.UID("run-2"+name), c.clock.Now())
				failed = append(failed, pod("run-2", name).Status(func(s *corev1.PodStatus) { s.Reason = "Evicted" }).Obj())
			}
			if err := c.pods.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), ended(job("run-2"), batchv1.JobFailed, "BackoffLimitExceeded"), namespace); err != nil {
				t.Fatal(err)
			}
		}, time.Hour, "Waiting", "needs 2 pods, 0 exist; Job run-2 of CronJob train has failed: BackoffLimitExceeded; its next run makes new pods; pod run-2a failed: Evicted; 1 more failed pod"},
		{"its pods are deleted", func() { failed = nil }, time.Hour, "Idle", "needs 2 pods, 0 exist" + idle},
		{"the third run runs", func() { both("run-3", runs) }, time.Hour, "Admitted", "the minimum of 2 pods is bound"},
	} {
		step.do()
		c.lastsFor("train", step.lasts)
		s := c.groups.Get(keyOf("train")).Status
		if s.Phase != step.phase {
			t.Errorf("%s: phase %s, want %s", step.name, s.Phase, step.phase)
		}
		if diff := cmp.Diff(step.want, meta.FindStatusCondition(s.Conditions, v2alpha2.ConditionSatisfied).Message); diff != "" {
			t.Errorf("%s: message (-want +got):\n%s", step.name, diff)
		}
	}
	want := []string{
		"Warning GangIncomplete PodGroup/train: WaitingForPods for more than 5 minutes: needs 2 pods, 0 exist; Job run-2 of CronJob train has failed: BackoffLimitExceeded; its next run makes new pods; pod run-2a failed: Evicted; 1 more failed pod",
	}
	if diff := cmp.Diff(want, c.warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// The pods of a run that succeeded are gone, and those of the next run fail before the status tells of them, for
// example because its write waits for bindings: the gang has not completed, also for a process that starts later. Pods
// of the run that succeeded may have failed, too.
func TestARunFailsBeforeTheStatusTellsOfIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var failed []*corev1.Pod
	restart := func() {
		c.withMakers(nil)
		c.reporter.statuses.makers.Failed = func(gangs.Key) []*corev1.Pod { return failed }
	}
	restart()
	pod := func(run, name string) *wrappers.PodWrapper {
		return member("train", run+name).Controller("Job", run, run).CreationTimestamp(c.clock.Now()).Node("n1")
	}
	fails := func(run, name string) {
		w := pod(run, name)
		c.pod(w)
		failed = append(failed, w.Phase(corev1.PodFailed).Status(func(s *corev1.PodStatus) { s.Reason = "Evicted" }).Obj())
		c.registry.RemoveFailedPod(types.UID(run+name), c.clock.Now())
	}
	c.group(podGroup("train").MinMember(2))
	const succeeded = "2 pods succeeded, none is left to run"
	for _, step := range []struct {
		name  string
		do    func()
		phase v2alpha2.PodGroupPhase
		want  string // the summary
	}{
		{"the first run runs", func() { c.pod(pod("run-1", "a")); c.pod(pod("run-1", "b")) }, "Admitted", "the minimum is bound"},
		{"a surplus pod of it fails", func() { fails("run-1", "c") }, "Admitted", "the minimum is bound"},
		{"it has succeeded", func() {
			c.pod(pod("run-1", "a").Phase(corev1.PodSucceeded))
			c.pod(pod("run-1", "b").Phase(corev1.PodSucceeded))
		}, "Completed", succeeded},
		{"the pods that succeeded are deleted", func() {
			c.registry.RemoveSucceededPod("run-1a", c.clock.Now())
			c.registry.RemoveSucceededPod("run-1b", c.clock.Now())
		}, "Completed", succeeded},
		{"muster-scheduler is restarted", restart, "Completed", succeeded},
		{"the second run begins and fails", func() { fails("run-2", "a"); fails("run-2", "b") },
			"Waiting", "needs 2 pods, 0 exist; pod run-2a failed: Evicted; 1 more failed pod"},
		{"its pods are deleted", func() { failed = nil }, "Idle", "needs 2 pods, 0 exist; it is idle until pods name it by annotation pod-group-name"},
	} {
		step.do()
		c.lastsFor("train", time.Hour)
		if s := c.groups.Get(keyOf("train")).Status; s.Phase != step.phase || s.Summary != step.want {
			t.Errorf("%s: %s, %q, want %s, %q", step.name, s.Phase, s.Summary, step.phase, step.want)
		}
	}
}

// The pods of a run that succeeded are kept, and those of the next run fail: the gang has not completed.
func TestAFailedRunAfterOneThatSucceeded(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var failed []*corev1.Pod
	c.withMakers(nil)
	c.reporter.statuses.makers.Failed = func(gangs.Key) []*corev1.Pod { return failed }
	pod := func(run, name string, hour int) *wrappers.PodWrapper {
		return member("train", run+name).Controller("Job", run, run).CreationTimestamp(start.Add(time.Duration(hour) * time.Hour)).Node("n1")
	}
	c.group(podGroup("train").MinMember(2))
	for _, step := range []struct {
		name  string
		do    func()
		phase v2alpha2.PodGroupPhase
		want  string // the summary
	}{
		{"the first run has succeeded", func() {
			c.pod(pod("run-1", "a", 1).Phase(corev1.PodSucceeded))
			c.pod(pod("run-1", "b", 1).Phase(corev1.PodSucceeded))
		}, "Completed", "2 pods succeeded, none is left to run"},
		{"the second run runs", func() {
			c.pod(pod("run-2", "a", 2))
			c.pod(pod("run-2", "b", 2))
		}, "Admitted", "the minimum is bound"},
		{"its pods have failed", func() {
			for _, name := range []string{"a", "b"} {
				failed = append(failed, pod("run-2", name, 2).Phase(corev1.PodFailed).Status(func(s *corev1.PodStatus) { s.Reason = "Evicted" }).Obj())
				c.registry.RemoveFailedPod(types.UID("run-2"+name), c.clock.Now())
			}
		}, "Waiting", "needs 2 pods, 0 exist; pod run-2a failed: Evicted; 1 more failed pod"},
		{"the third run runs", func() {
			c.pod(pod("run-3", "a", 3))
			c.pod(pod("run-3", "b", 3))
		}, "Admitted", "the minimum is bound"},
		{"it has succeeded, although a pod of it had to be replaced", func() {
			failed = append(failed, pod("run-3", "b", 3).Phase(corev1.PodFailed).Obj())
			c.registry.RemoveFailedPod("run-3b", c.clock.Now())
			c.pod(pod("run-3", "a", 3).Phase(corev1.PodSucceeded))
			c.pod(pod("run-3", "c", 4).Phase(corev1.PodSucceeded))
		}, "Completed", "4 pods succeeded, none is left to run"},
	} {
		step.do()
		c.lastsFor("train", time.Hour)
		if s := c.groups.Get(keyOf("train")).Status; s.Phase != step.phase || s.Summary != step.want {
			t.Errorf("%s: %s, %q, want %s, %q", step.name, s.Phase, s.Summary, step.phase, step.want)
		}
	}
	completed := 0
	for _, e := range c.events.list() {
		if strings.Contains(e, v2alpha2.EventGangCompleted) {
			completed++
		}
	}
	if completed != 2 {
		t.Errorf("%d events GangCompleted, want 2: %q", completed, c.events.list())
	}
}
