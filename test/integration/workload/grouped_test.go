// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// trainJob is a Job of 8 pods with 2 GPUs each, of which a node takes four. One annotation makes them a gang.
const trainJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 8
  completions: 8
  template:
    metadata: {annotations: {scheduling.run.ai/min-member: all}}
    spec:
      schedulerName: muster-scheduler
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: registry.example/train:1
        resources: {limits: {nvidia.com/gpu: 2}}
`

// TestJobBecomesAGang: the pods that the Job controller makes from an unchanged template with one annotation start together or
// not at all. The PodGroup follows the Job: suspended it has none, and what is deleted leaves nothing behind.
func TestJobBecomesAGang(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	job := &unstructured.Unstructured{}
	w.must(yaml.Unmarshal([]byte(trainJob), &job.Object), "reading the Job")
	job.SetNamespace(w.namespace)
	w.must(unstructured.SetNestedStringMap(job.Object, map[string]string{"world": w.namespace}, "spec", "template", "spec", "nodeSelector"), "selecting the nodes")
	w.must(w.client.Create(w.ctx, job), "creating the Job")

	w.until("the gang lacks room for half of its pods", podGroups, func(groups []*unstructured.Unstructured) bool {
		return len(groups) == 1 && conditionOf(groups[0], v2alpha2.ConditionSatisfied, "reason") == string(v2alpha2.ReasonTooLarge)
	})
	list := &v2alpha2.PodGroupList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.namespace)), "listing PodGroups")
	if owner := metav1.GetControllerOf(&list.Items[0]); owner == nil || owner.UID != job.GetUID() || *list.Items[0].Spec.MinMember != 8 {
		t.Errorf("PodGroup %s: owner %v, needs %d", list.Items[0].Name, owner, *list.Items[0].Spec.MinMember)
	}
	for _, p := range w.pods() {
		if p.Spec.NodeName != "" {
			t.Errorf("pod %s started, and half of its gang has no room", p.Name)
		}
	}
	w.addNodes(1)
	w.untilReadyPods(8)

	w.patchJob(`{"spec": {"suspend": true}}`)
	w.untilNames(podGroups)
	w.untilReadyPods(0)
	w.patchJob(`{"spec": {"suspend": false}}`)
	w.untilReadyPods(8)

	w.must(w.dynamic.Resource(jobs).Namespace(w.namespace).Delete(w.ctx, "train", metav1.DeleteOptions{PropagationPolicy: &background}), "deleting the Job")
	w.untilGone()
}

var background = metav1.DeletePropagationBackground

// untilReadyPods waits until so many pods are there, all of them ready.
func (w *world) untilReadyPods(n int) {
	w.t.Helper()
	ctx, cancel := w.patient()
	defer cancel()
	if err := controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		for _, p := range pods {
			if p.DeletionTimestamp != nil || !controlplane.PodReady(p) {
				return false
			}
		}
		return len(pods) == n
	}); err != nil {
		w.t.Fatalf("waiting for %d pods that run: %v", n, err)
	}
}

func (w *world) patchJob(patch string) {
	w.t.Helper()
	_, err := w.dynamic.Resource(jobs).Namespace(w.namespace).Patch(w.ctx, "train", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err, "changing the Job")
}
