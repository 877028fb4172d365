// SPDX-License-Identifier: Apache-2.0

//go:build long

package scheduler

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// One PodGroup serves all runs of a CronJob, and says between them, as kubectl prints it, what it waits for: before the
// first run nothing; after one that succeeded nothing either, also when its Job and pods were removed; after one that
// failed the next run, until the failed pods are gone and it is idle again.
func TestPodGroupOfACronJobBetweenRuns(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("nightly").MinMember(2))
	pod := c.pod("", "nightly", 1).Obj()
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	cron := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly"},
		Spec: batchv1.CronJobSpec{
			Schedule: "0 2 * * *", Suspend: ptr.To(true), // runs begin by hand
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Completions: ptr.To[int32](2), Parallelism: ptr.To[int32](2),
				BackoffLimit: ptr.To[int32](1), // a run fails when both pods have: none is left for a kubelet to end
				Template:     corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations}, Spec: pod.Spec}}},
		},
	}
	_, err := cp.Client().BatchV1().CronJobs(c.namespace).Create(c.ctx, cron, metav1.CreateOptions{})
	c.must(err, "creating a CronJob")
	c.deleteJobsAtTheEnd()
	shows := func(phase v2alpha2.PodGroupPhase, text string) {
		t.Helper()
		c.untilStatus("nightly", fmt.Sprintf("is %s with %q", phase, text), func(s v2Status) bool { return s.Phase == phase && containsAll(s.Summary, text) })
		if columns := strings.Fields(c.kubectl("get", "pg", "nightly", "--no-headers")); len(columns) < 2 || columns[1] != string(phase) {
			t.Errorf("kubectl get prints %q, want phase %s", columns, phase)
		}
		if described := c.kubectl("describe", "pg", "nightly"); !containsAll(described, text) {
			t.Errorf("kubectl describe does not print %q:\n%s", text, described)
		}
	}
	noWarning := func() {
		t.Helper()
		if events := c.kubectl("events", "--for", "podgroup/nightly", "--types", "Warning"); !containsAll(events, "No events found") {
			t.Errorf("kubectl events prints\n%s", events)
		}
	}
	run := func(job string, code int) {
		t.Helper()
		c.kubectl("create", "job", job, "--from=cronjob/nightly")
		c.untilBound("nightly", 2)
		// Until then the status is that of the run before, which is satisfied, too.
		c.untilStatus("nightly", "is admitted in run "+job, func(s v2Status) bool { return s.Phase == v2alpha2.PodGroupAdmitted })
		for _, p := range c.podsOf("nightly") {
			c.must(cp.ExitPod(c.ctx, c.namespace, p.Name, code), "ending a pod")
		}
	}
	// remove deletes a run as the history limits of the CronJob do, or ttlSecondsAfterFinished of the Job.
	remove := func(job string) {
		t.Helper()
		c.kubectl("delete", "job", job)
		c.until("the pods of the run are gone", time.Minute, func(pods []*corev1.Pod) bool {
			return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Annotations[v2alpha2.PodGroupAnnotation] == "nightly" })
		})
	}
	const idle, succeeded = "needs 2 pods, 0 exist; it is idle until pods name it by annotation pod-group-name", "2 pods succeeded, none is left to run"

	shows(v2alpha2.PodGroupIdle, idle)
	noWarning()
	for _, job := range []string{"first", "second"} {
		run(job, 0)
		shows(v2alpha2.PodGroupCompleted, succeeded)
		remove(job)
		shows(v2alpha2.PodGroupCompleted, succeeded)
	}
	c.stillSchedules()
	shows(v2alpha2.PodGroupCompleted, succeeded)
	noWarning()

	run("third", 1)
	shows(v2alpha2.PodGroupWaiting, "Job third of CronJob nightly has failed: BackoffLimitExceeded; its next run makes new pods")
	remove("third")
	shows(v2alpha2.PodGroupIdle, idle)
	run("fourth", 0)
	shows(v2alpha2.PodGroupCompleted, succeeded)

	log, err := os.ReadFile(c.scheduler.Log())
	c.must(err, "reading the log")
	if containsAll(string(log), "Index with name") { // client-go visits all pods without one
		t.Error("muster-scheduler lists the pods of a namespace without an index")
	}
}

// All pods name a scheduler that does not run, perhaps because the name is misspelled, so that nobody else says why
// they wait. It is told after a minute, in which another scheduler would have reacted. A PodGroup whose pods another
// scheduler has looked at belongs to that one, and is left alone.
func TestPodsOfASchedulerThatDoesNotRun(t *testing.T) {
	c := newCluster(t, 1)
	c.apply(c.group("theirs").MinMember(2))
	c.apply(c.group("g").MinMember(2))
	names := numbered("g", 2)
	for i, n := range names {
		c.create(c.pod(numbered("theirs", 2)[i], "theirs", 1).SchedulerName("volcano"))
		c.create(c.pod(n, "g", 1).SchedulerName("muster-schedular"))
	}
	c.refusedBy("volcano", "theirs-0")
	c.startQuick() // last: all gangs are looked at once a minute from now on, and the pods are usually old enough the first time
	c.patience = 3 * time.Minute
	c.untilShown("g", v2alpha2.ReasonOtherScheduler, "0 of 2 needed pods can be placed",
		"set schedulerName muster-scheduler in all pods of the gang: 2 pods of scheduler muster-schedular",
		"no scheduler has reacted to them: perhaps none of that name runs")
	c.untilTold("PodGroup", "g", v2alpha2.EventGangBlocked, "OtherScheduler: ", "2 pods of scheduler muster-schedular")
	c.notBound(names...)

	// The schedulerName of a pod is immutable, so the pods are replaced. The first of them does not start alone.
	c.recreate(c.pod(names[0], "g", 1))
	c.untilShown("g", v2alpha2.ReasonOtherScheduler, "1 of 2 needed pods can be placed", ": 1 pod of scheduler muster-schedular")
	c.notBound(names...)
	c.recreate(c.pod(names[1], "g", 1))
	c.untilBound("g", 2)
	if s := c.untilSatisfied("g"); s.Reason != "" || s.Summary != "the minimum is bound" {
		t.Errorf("after the correction: reason %q, %q", s.Reason, s.Summary)
	}
	if printed := c.kubectl("get", "pg", "g"); !containsAll(printed, " Admitted ", " 2/2 ") || containsAll(printed, string(v2alpha2.ReasonOtherScheduler)) {
		t.Errorf("after the correction kubectl get prints\n%s", printed)
	}
	// The pods of both gangs are of the same age, and all gangs are looked at together.
	if columns := strings.Fields(c.kubectl("get", "pg", "theirs", "--no-headers")); len(columns) != 2 { // the name and the age
		t.Errorf("kubectl get prints of a PodGroup that another scheduler serves %q", columns)
	}
	c.stillSchedules()
}
