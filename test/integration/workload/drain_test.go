// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/test/controlplane"
)

// TestSampleOfAJobSurvivesADrain: a drain of the node evicts all eight pods of the sample's Job, more than its
// backoffLimit allows to fail, and the Job goes on elsewhere.
func TestSampleOfAJobSurvivesADrain(t *testing.T) {
	w := newWorld(t, 1)
	w.kubectl("apply", "--server-side", "-f", "../../../manifests/samples/job.yaml")
	t.Cleanup(func() { w.kubectl("delete", "job", "training", "--cascade=foreground") })
	untilRunning := func(node string) {
		t.Helper()
		w.must(controlplane.Until(w.ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
			running := 0
			for _, p := range pods {
				if p.Spec.NodeName == node && p.Status.Phase == corev1.PodRunning {
					running++
				}
			}
			return running == 8
		}), "waiting for eight running pods on "+node)
	}
	untilRunning(w.nodes[0])
	w.addNodes(1)
	w.kubectl("drain", w.nodes[0], "--ignore-daemonsets", "--force")
	w.must(controlplane.Until(w.ctx, cp.Client().BatchV1().Jobs(w.namespace), metav1.ListOptions{}, func(jobs []*batchv1.Job) bool {
		for _, j := range jobs {
			for _, c := range j.Status.Conditions {
				if (c.Type == batchv1.JobFailed || c.Type == batchv1.JobFailureTarget) && c.Status == corev1.ConditionTrue {
					t.Fatalf("the Job has failed: %s: %s", c.Reason, c.Message)
				}
			}
			if j.Status.Active == 8 && j.Status.Ready != nil && *j.Status.Ready == 8 {
				return true
			}
		}
		return false
	}), "waiting for the Job")
	untilRunning(w.nodes[1])
	job, err := cp.Client().BatchV1().Jobs(w.namespace).Get(w.ctx, "training", metav1.GetOptions{})
	w.must(err, "reading the Job")
	if job.Status.Failed != 0 {
		t.Errorf("%d pods count as failed, want none of the eight evicted ones", job.Status.Failed)
	}
}
