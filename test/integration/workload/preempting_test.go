// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
)

// wholeNode is a set whose minimum is a node of 8 GPUs. %s: priority class.
const wholeNode = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: urgent
spec:
  replicas: 1
  template:
    priorityClassName: %q
    cliques:
    - name: worker
      spec: {roleName: worker, replicas: 8, podSpec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: registry.example/main:1, resources: {limits: {nvidia.com/gpu: 1}}}]}}
`

// preempt applies a set that takes the whole node, and waits until it is bound and nothing else is.
func (w *world) preempt() {
	w.t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Value: 1000}
	_, err := cp.Client().SchedulingV1().PriorityClasses().Create(w.ctx, class, metav1.CreateOptions{})
	w.must(err, "creating a priority class")
	w.apply(fmt.Sprintf(wholeNode, class.Name))
	w.untilBoundAre("only the urgent set", map[string]int{"urgent-0": 8})
	w.untilAvailable("urgent")
}

// A training job is preempted as a whole. It is restarted, which uses none of its restarts, waits, and runs when there
// is room.
func TestPreemptedTrainingUsesNoRestart(t *testing.T) {
	w := jobWorld(t, "  trainingSpec: {maxRestarts: 0}")
	before := w.untilRunning(nil)
	w.preempt()
	note := w.untilEvents(v1alpha1.EventReplicaPreempted)[v1alpha1.EventReplicaPreempted]
	if !strings.HasPrefix(note, "Normal Restarting replica 0 after a preemption, which uses no restart (0 of 0 are used): ") {
		t.Errorf("event %q", note)
	}
	by := fmt.Sprintf("preempted by PodGroup %s/urgent-0 (priority 1000", w.namespace)
	for reason, note := range w.untilEvents(v1alpha1.EventReplicaPreempted, v1alpha1.EventPodCliquePreempted) {
		if strings.HasSuffix(reason, "Preempted") && !strings.Contains(note, by+"); ") {
			t.Errorf("event %s does not name the preemptor: %q", reason, note)
		}
	}
	w.untilPodsAre("3 new pods of the job wait", func(pods []*corev1.Pod) bool {
		waiting := 0
		for _, p := range pods {
			if old, ok := before[p.Spec.Hostname]; ok && (p.UID == old || p.Spec.NodeName != "") {
				return false
			} else if ok {
				waiting++
			}
		}
		return waiting == 3
	})
	job := w.untilJob("the restart was recorded, and uses none", "Pending", 0)
	attempts, _, _ := unstructured.NestedSlice(job.Object, "status", "replicaAttempts")
	if len(attempts) != 1 || attempts[0].(map[string]any)["reason"] != v1alpha1.ReasonPreemption {
		t.Errorf("replicaAttempts %v, want one with reason %s", attempts, v1alpha1.ReasonPreemption)
	}
	if described := w.kubectl("describe", "pcs", "job"); !strings.Contains(described, by) {
		t.Errorf("kubectl describe does not print %q:\n%s", by, described)
	}
	w.delete(sets, "urgent")
	w.untilBoundAre("only the job", map[string]int{"job-0": 3})
	w.untilRunning(before)
	w.untilJob("it runs, and no restart was used", "Running", 0)
	w.finish()
	w.untilJob("it has succeeded", "Succeeded", 0)
}

// A replica of an inference service is preempted. It is replaced as a unit, waits, and is available when there is room.
func TestPreemptedInferenceReplicaIsReplacedAsAUnit(t *testing.T) {
	w := newWorld(t, 1)
	before := w.watched("")
	w.preempt()
	w.untilPodsAre("8 new pods wait", func(pods []*corev1.Pod) bool {
		waiting := map[string]bool{}
		for _, p := range pods {
			if old, ok := before[p.Spec.Hostname]; ok && (p.UID == old || p.Spec.NodeName != "" || p.DeletionTimestamp != nil) {
				return false
			} else if ok {
				waiting[p.Spec.Hostname] = true
			}
		}
		return len(waiting) == len(before)
	})
	w.untilCondition(podGroups, "chat-0", v2alpha2.ConditionPreempted, "True")
	by := fmt.Sprintf(" UTC by %s/urgent-0 (priority 1000 over 0): all 8 pods, because its minimum ends as a whole or not at all", w.namespace)
	note := w.untilEvents(v1alpha1.EventReplicaPreempted)[v1alpha1.EventReplicaPreempted]
	if !strings.HasPrefix(note, "Normal Waiting for room again: replica 0 was preempted at ") || !strings.HasSuffix(note, by) {
		t.Errorf("event %q, want %q in it", note, by)
	}
	w.answers("what took its GPUs", "get pg chat-0 -o wide", "preempted at ")
	if described := w.kubectl("describe", "pcs", "chat"); strings.Count(described, by) < 2 { // condition Available, and the event
		t.Errorf("kubectl describe does not print %q twice:\n%s", by, described)
	}
	w.delete(sets, "urgent")
	w.untilReplaced(before, "chat-0")
	w.untilBoundAre("all of the service", map[string]int{"chat-0": 8})
}
