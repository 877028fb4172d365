// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// The pods of a Job succeed one by one, and one of them fails and is created again: succeeded pods count as present, so
// that the new pod is scheduled by itself (docs/decisions, G9).
func TestJobWithBackoff(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("train").MinMember(4))
	c.job("train", "train", 4, 1)
	c.untilBound("train", 4)
	admitted := condition(c.untilSatisfied("train"), v2alpha2.ConditionAdmitted)

	pods := c.podsOf("train")
	for _, p := range pods[:2] {
		c.must(cp.ExitPod(c.ctx, c.namespace, p.Name, 0), "ending a pod")
	}
	c.must(cp.ExitPod(c.ctx, c.namespace, pods[2].Name, 1), "failing a pod")
	c.stillSchedules()
	c.until("the failed pod's replacement is bound", 40*time.Second, func(pods []*corev1.Pod) bool {
		return bound(pods, "train") == 5 // the failed one among them
	})
	s := c.untilSatisfied("train")
	if s.Scheduled != "4/4" || condition(s, v2alpha2.ConditionAdmitted).LastTransitionTime != admitted.LastTransitionTime {
		t.Errorf("after a failure: %s, %v", s.Scheduled, s.Conditions)
	}
	for _, p := range c.podsOf("train") {
		if p.Status.Phase == "" || p.Status.Phase == corev1.PodPending {
			c.must(cp.ExitPod(c.ctx, c.namespace, p.Name, 0), "ending a pod")
		}
	}
	c.untilStatus("train", "is completed", func(s v2Status) bool { return s.Phase == v2alpha2.PodGroupCompleted })
	c.untilTold("PodGroup", "train", "GangCompleted")
}

// One PodGroup for every run of a CronJob: the second run is all or nothing again, although four Succeeded pods of the
// first are kept and Admitted was true.
func TestSecondRunOfACronJob(t *testing.T) {
	c := newCluster(t, 2)
	c.startQuick()
	c.apply(c.group("nightly").MinMember(4))
	c.job("nightly-1", "nightly", 4, 4)
	c.untilBound("nightly", 4)
	c.untilSatisfied("nightly")
	for _, p := range c.podsOf("nightly") {
		c.must(cp.ExitPod(c.ctx, c.namespace, p.Name, 0), "ending a pod")
	}
	c.untilStatus("nightly", "is completed", func(s v2Status) bool { return s.Phase == v2alpha2.PodGroupCompleted })

	o := c.observe()
	o.expect("nightly", 8)
	c.deleteNode(c.nodes[1]) // room for two
	// The Succeeded pods of the lost node may be collected; those of the other node are kept.
	c.job("nightly-2", "nightly", 4, 4)
	s := c.untilSays("nightly", v2alpha2.ReasonTooLarge, "2 of 4 pods can be placed")
	if condition(s, v2alpha2.ConditionAdmitted).Status != metav1.ConditionFalse || s.Scheduled != "0/4" {
		t.Errorf("the second run says %s, %v", s.Scheduled, s.Conditions)
	}
	ended := 0
	for _, p := range c.podsOf("nightly") {
		switch {
		case p.Status.Phase == corev1.PodSucceeded:
			ended++
		case p.Spec.NodeName != "":
			t.Errorf("pod %s of the second run is bound, and its gang is not", p.Name)
		}
	}
	if ended == 0 {
		t.Error("no pod of the first run is left: this shows nothing")
	}
	c.stillSchedules()
	c.addNodes(1)
	c.until("the second run is bound", 30*time.Second, func(pods []*corev1.Pod) bool {
		n := 0
		for _, p := range pods {
			if p.Labels[batchv1.JobNameLabel] == "nightly-2" && p.Spec.NodeName != "" {
				n++
			}
		}
		return n == 4
	})
	c.untilSatisfied("nightly")
}

// Failed pods count for no leaf, and an edit does not make a finished pod count again.
func TestGangWhosePodsAllFailed(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.createGang("g", 2, 1)
	c.untilSatisfied("g")
	for _, n := range numbered("g", 2) {
		c.must(cp.ExitPod(c.ctx, c.namespace, n, 1), "failing a pod")
	}
	c.untilSays("g", v2alpha2.ReasonWaitingForPods, "needs 2 pods, 0 exist")
	c.create(c.pod("again-0", "g", 1))
	c.untilSays("g", v2alpha2.ReasonWaitingForPods, "needs 2 pods, 1 exist")
	c.stillSchedules()
	c.notBound("again-0") // all or nothing again
	c.create(c.pod("again-1", "g", 1))
	c.untilPodBound("again-0", "again-1")
	c.untilSatisfied("g")
}

// All pods of a gang fail together, and their replacements are created at the same moment, as by a Job: no pod of the
// admitted gang is left, so the new gang is all or nothing.
func TestGangWhosePodsAllFailAndAreReplacedAtOnce(t *testing.T) {
	c := newCluster(t, 3)
	c.startQuick()
	c.createGang("g", 3, 8)
	c.untilSatisfied("g")
	c.deleteNode(c.nodes[2]) // room for two
	for _, n := range numbered("g", 3) {
		c.must(cp.ExitPod(c.ctx, c.namespace, n, 1), "failing a pod")
	}
	for _, n := range numbered("again", 3) {
		c.create(c.pod(n, "g", 8))
	}
	s := c.untilSays("g", v2alpha2.ReasonTooLarge, "2 of 3 pods can be placed")
	if condition(s, v2alpha2.ConditionAdmitted).Status != metav1.ConditionFalse {
		t.Errorf("nothing is left of the gang that was admitted, and it says %v", s.Conditions)
	}
	c.notBound(numbered("again", 3)...)
	c.addNodes(1)
	c.untilPodBound(numbered("again", 3)...)
	c.untilSatisfied("g")
	c.stillSchedules()
}

// A gang of several Jobs, one of which finishes before the others: its pods were bound together with those that run, so
// they count as present (docs/decisions, G9).
func TestOneJobOfAGangIsOver(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.apply(c.group("g").MinMember(4))
	c.job("leader", "g", 1, 1)
	c.job("workers", "g", 3, 1)
	c.untilBound("g", 4)
	c.untilSatisfied("g")
	end := func(p corev1.Pod) {
		t.Helper()
		c.must(cp.ExitPod(c.ctx, c.namespace, p.Name, 0), "ending a pod")
	}
	pods := c.podsOf("g") // by name: the leader first
	end(pods[0])
	c.stillSchedules()
	if n := c.countEvents("PodGroup", "g")["GangBelowMinimum"]; n > 0 {
		t.Errorf("the leader has succeeded, and the gang is said to be below its minimum")
	}
	for _, p := range c.podsOf("g") {
		if p.Status.Phase == corev1.PodPending {
			end(p)
		}
	}
	c.untilStatus("g", "is completed", func(s v2Status) bool { return s.Phase == v2alpha2.PodGroupCompleted })
	c.untilTold("PodGroup", "g", "GangCompleted")
}

// Two of three pods have succeeded and the third failed: the gang is not completed, whether or not the failed pod is
// created again.
func TestGangOfWhichAPodFailed(t *testing.T) {
	c := newCluster(t, 1)
	c.startQuick()
	c.createGang("g", 3, 1)
	c.untilSatisfied("g")
	for i, n := range numbered("g", 3) {
		c.must(cp.ExitPod(c.ctx, c.namespace, n, i/2), "ending a pod")
	}
	s := c.untilSays("g", v2alpha2.ReasonWaitingForPods, "needs 3 pods, 2 exist")
	if s.Phase != v2alpha2.PodGroupDegraded {
		t.Errorf("the phase is %s", s.Phase)
	}
	c.stillSchedules()
	c.create(c.pod("g-3", "g", 1))
	c.untilPodBound("g-3")
	c.untilSatisfied("g")
	c.must(cp.ExitPod(c.ctx, c.namespace, "g-3", 0), "ending a pod")
	c.untilStatus("g", "is completed", func(s v2Status) bool { return s.Phase == v2alpha2.PodGroupCompleted })
	if n := c.countEvents("PodGroup", "g")["GangCompleted"]; n > 1 {
		t.Errorf("%d events GangCompleted", n)
	}
}

// job creates a Job of n parallel pods, all members of the gang.
func (c *cluster) job(name, group string, n int32, gpus int64) {
	c.t.Helper()
	c.jobWith(name, group, n, gpus, func(*batchv1.JobSpec) {})
}

// jobWith is job with a changed spec.
func (c *cluster) jobWith(name, group string, n int32, gpus int64, change func(*batchv1.JobSpec)) {
	c.t.Helper()
	pod := c.pod("", group, gpus).Obj()
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	indexed, backoff := batchv1.IndexedCompletion, int32(4)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Completions: &n, Parallelism: &n, CompletionMode: &indexed, BackoffLimit: &backoff,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations}, Spec: pod.Spec},
		},
	}
	change(&job.Spec)
	_, err := cp.Client().BatchV1().Jobs(c.namespace).Create(c.ctx, job, metav1.CreateOptions{})
	c.must(err, "creating Job "+name)
	c.deleteJobsAtTheEnd()
}

// deleteJobsAtTheEnd keeps Jobs from creating pods again while the test's namespace is cleared.
func (c *cluster) deleteJobsAtTheEnd() {
	c.t.Cleanup(func() {
		background := metav1.DeletePropagationBackground
		_ = cp.Client().BatchV1().Jobs(c.namespace).DeleteCollection(context.Background(), metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	})
}

// podsOf returns the pods of a gang, by name.
func (c *cluster) podsOf(group string) []corev1.Pod {
	c.t.Helper()
	var out []corev1.Pod
	for _, p := range c.pods() {
		if p.Annotations[v2alpha2.PodGroupAnnotation] == group {
			out = append(out, p)
		}
	}
	return out
}
