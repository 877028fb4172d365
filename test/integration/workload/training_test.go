// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// trainingJob is a launcher and a scaling group of 2 workers. %s: more lines of the spec.
const trainingJob = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: job
spec:
  workloadType: Training
  replicas: 1
%s
  template:
    cliques:
    - name: launcher
      spec: {roleName: launcher, replicas: 1, podSpec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: registry.example/main:1, resources: {limits: {nvidia.com/gpu: 1}}}]}}
    - name: worker
      spec: {roleName: worker, replicas: 2, podSpec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: registry.example/main:1, resources: {limits: {nvidia.com/gpu: 1}}}]}}
    podCliqueScalingGroups:
    - {name: ring, cliqueNames: [worker]}
`

var eventsKind = eventsv1.SchemeGroupVersion.WithResource("events")

// jobWorld returns a world in which a job runs, with those lines in its spec.
func jobWorld(t *testing.T, lines string) *world {
	w := newWorld(t, 1)
	w.apply(fmt.Sprintf(trainingJob, lines))
	w.untilJob("runs", "Running", 0)
	w.untilRunning(nil)
	return w
}

// untilJob waits until the job is in a phase and was restarted so often, and returns it.
func (w *world) untilJob(what, phase string, restarts int64) *unstructured.Unstructured {
	w.t.Helper()
	var job *unstructured.Unstructured
	w.until(what, sets, func(objects []*unstructured.Unstructured) bool {
		for _, o := range objects {
			is, _, _ := unstructured.NestedString(o.Object, "status", "phase")
			count, shown, _ := unstructured.NestedInt64(o.Object, "status", "restartCount")
			if o.GetName() == "job" && is == phase && count == restarts && shown {
				job = o
				return true
			}
		}
		return false
	})
	return job
}

// untilRunning waits until the job's 3 pods run, none of them one of those before, and muster-controller has seen it.
// It returns their UIDs by host name.
func (w *world) untilRunning(before map[string]types.UID) map[string]types.UID {
	w.t.Helper()
	var uids map[string]types.UID
	w.untilPodsAre("3 new pods run", func(pods []*corev1.Pod) bool {
		uids = map[string]types.UID{}
		for _, p := range pods {
			if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || p.UID == before[p.Spec.Hostname] {
				return false
			}
			uids[p.Spec.Hostname] = p.UID
		}
		return len(uids) == 3
	})
	w.untilWereAvailable(2)
	return uids
}

// exit makes the pods with these host names exit with a code.
func (w *world) exit(code int, hosts ...string) {
	w.t.Helper()
	for _, pod := range w.pods() {
		if slices.Contains(hosts, pod.Spec.Hostname) {
			w.must(cp.ExitPod(w.ctx, w.namespace, pod.Name, code), "ending "+pod.Name)
		}
	}
}

// finish makes all pods of the job exit with 0.
func (w *world) finish() {
	w.exit(0, "job-0-launcher-0", "job-0-ring-0-worker-0", "job-0-ring-0-worker-1")
}

// untilEvents waits for events about the job with these reasons, and returns their notes.
func (w *world) untilEvents(reasons ...string) map[string]string {
	w.t.Helper()
	notes := map[string]string{}
	w.until("there are events "+strings.Join(reasons, ", "), eventsKind, func(objects []*unstructured.Unstructured) bool {
		for _, o := range objects {
			kind, _, _ := unstructured.NestedString(o.Object, "regarding", "kind")
			reason, _, _ := unstructured.NestedString(o.Object, "reason")
			note, _, _ := unstructured.NestedString(o.Object, "note")
			level, _, _ := unstructured.NestedString(o.Object, "type")
			if kind == v1alpha1.KindPodCliqueSet {
				notes[reason] = level + " " + note
			}
		}
		return !slices.ContainsFunc(reasons, func(reason string) bool { return notes[reason] == "" })
	})
	return notes
}

// All pods exit 0: the job has succeeded, its pods stay without a finalizer, and go with it when its time to live is
// over.
func TestTrainingSucceeds(t *testing.T) {
	w := jobWorld(t, "  trainingSpec: {ttlSecondsAfterFinished: 3600}")
	w.exit(0, "job-0-ring-0-worker-1")
	w.until("the pod that succeeded is recorded", cliques, func(objects []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			indices, _, _ := unstructured.NestedString(o.Object, "status", "succeededIndices")
			return o.GetName() == "job-0-ring-0-worker" && indices == "1"
		})
	})
	w.exit(0, "job-0-launcher-0", "job-0-ring-0-worker-0")
	job := w.untilJob("it has succeeded", "Succeeded", 0)
	if indices, _, _ := unstructured.NestedString(job.Object, "status", "succeededIndices"); indices != "0" {
		t.Errorf("succeeded replicas %q", indices)
	}
	for _, field := range []string{"startTime", "completionTime"} {
		if text, _, _ := unstructured.NestedString(job.Object, "status", field); text == "" {
			t.Errorf("no %s", field)
		}
	}
	w.untilCondition(cliques, "job-0-launcher", v1alpha1.ConditionSucceeded, "True")
	if note := w.untilEvents(v1alpha1.EventWorkloadSucceeded)[v1alpha1.EventWorkloadSucceeded]; !strings.HasPrefix(note, "Normal ") {
		t.Errorf("event %q", note)
	}
	w.untilPodsAre("3 pods without finalizers are left", func(pods []*corev1.Pod) bool {
		return len(pods) == 3 && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return p.Status.Phase != corev1.PodSucceeded || len(p.Finalizers) > 0
		})
	})
	w.edit("job", func(s *v1alpha1.PodCliqueSet) { *s.Spec.TrainingSpec.TTLSecondsAfterFinished = 1 })
	w.untilGone()
}

// A restart replaces every pod of the replica, and the job succeeds within its budget.
func TestTrainingRestartsAndSucceeds(t *testing.T) {
	w := jobWorld(t, "  trainingSpec: {maxRestarts: 1}")
	before := w.untilRunning(nil)
	w.exit(1, "job-0-launcher-0")
	w.untilJob("the restart is counted", "Running", 1)
	after := w.untilRunning(before)
	if !slices.Equal(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after))) {
		t.Errorf("host names before %v, after %v", before, after)
	}
	if note := w.untilEvents(v1alpha1.EventReplicaRestarting)[v1alpha1.EventReplicaRestarting]; !strings.HasPrefix(note, "Normal Restarting replica 0 (restart 1 of 1): ") {
		t.Errorf("event %q", note)
	}
	w.finish()
	w.untilJob("it has succeeded", "Succeeded", 1)
	w.delete(sets, "job")
	w.untilGone()
}

// A namespace with a running job is deleted as fast as any other.
func TestTrainingKeepsNoNamespace(t *testing.T) {
	w := jobWorld(t, "")
	for _, p := range w.pods() {
		if !slices.Contains(p.Finalizers, v1alpha1.FinalizerPodTracking) {
			t.Fatalf("pod %s has no finalizer", p.Name)
		}
	}
	w.must(cp.Client().CoreV1().Namespaces().Delete(w.ctx, w.namespace, metav1.DeleteOptions{}), "deleting the namespace")
	ctx, cancel := w.patient()
	defer cancel()
	w.must(controlplane.Until(ctx, cp.Client().CoreV1().Namespaces(), metav1.ListOptions{FieldSelector: "metadata.name=" + w.namespace},
		func(namespaces []*corev1.Namespace) bool { return len(namespaces) == 0 }), "waiting until the namespace is gone")
}

// What cannot be changed of a job is refused, with the reason.
func TestTrainingRefusals(t *testing.T) {
	w := jobWorld(t, "  trainingSpec: {maxRuntime: 1h}")
	for name, tc := range map[string]struct {
		change func(*v1alpha1.PodCliqueSet)
		want   string
	}{
		"the template": {func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Image = "x:2" },
			"a rolling change would restart the job"},
		"the replicas": {func(s *v1alpha1.PodCliqueSet) { s.Spec.Replicas = 2 }, "the replicas of a Training workload are fixed"},
		"the replicas of a clique": {func(s *v1alpha1.PodCliqueSet) { s.Spec.Template.Cliques[1].Spec.Replicas = 3 },
			"the replicas of a Training workload are fixed"},
		"an autoscaler": {func(s *v1alpha1.PodCliqueSet) {
			s.Spec.Template.Cliques[0].Spec.ScaleConfig = &v1alpha1.AutoScalingConfig{MaxReplicas: 4}
		}, "replicas of a Training workload are fixed"},
		"the limit of the runtime": {func(s *v1alpha1.PodCliqueSet) { s.Spec.TrainingSpec.MaxRuntime.Duration *= 2 }, "is immutable"},
		"the type":                 {func(s *v1alpha1.PodCliqueSet) { s.Spec.WorkloadType, s.Spec.TrainingSpec = "", nil }, "is immutable"},
		"suspend":                  {func(s *v1alpha1.PodCliqueSet) { yes := true; s.Spec.Suspend = &yes }, "is not supported"},
	} {
		job := &v1alpha1.PodCliqueSet{}
		w.must(w.client.Get(w.ctx, types.NamespacedName{Namespace: w.namespace, Name: "job"}, job), "reading the job")
		before := job.DeepCopy()
		tc.change(job)
		if err := w.client.Patch(w.ctx, job, client.MergeFrom(before)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	for kind, name := range map[string]string{"podcliques": "job-0-launcher", "podcliquescalinggroups": "job-0-ring", "podcliquesets": "job"} {
		if err := w.tryScale(v1alpha1.SchemeGroupVersion.WithResource(kind), name, 3); err == nil || !strings.Contains(err.Error(), "Training") {
			t.Errorf("scaling %s: %v", name, err)
		}
	}
	w.delete(sets, "job")
	w.untilGone()
}
