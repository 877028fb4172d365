// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
)

// service is a disaggregated inference service: a frontend, a prefill group of one clique, and a decode group whose
// replicas have a leader and workers.
const service = `
metadata: {name: llm}
spec:
  replicas: 1
  template:
    cliques:
    - name: frontend
      spec: {replicas: 2, minAvailable: 1, podSpec: {}}
    - name: pworker
      spec:
        replicas: 2
        podSpec: {containers: [{name: main, image: "registry.example/prefill:1", resources: {limits: {nvidia.com/gpu: 2}}}]}
    - name: dleader
      spec:
        replicas: 1
        podSpec: {containers: [{name: main, image: "registry.example/decode:1", resources: {limits: {nvidia.com/gpu: 1}}}]}
    - name: dworker
      spec:
        replicas: 3
        minAvailable: 2
        podSpec: {containers: [{name: main, image: "registry.example/decode:1", resources: {limits: {nvidia.com/gpu: 1}}}]}
    podCliqueScalingGroups:
    - {name: prefill, cliqueNames: [pworker], replicas: 2}
    - {name: decode, cliqueNames: [dleader, dworker], replicas: 2, minAvailable: 1, scaleConfig: {minReplicas: 1, maxReplicas: 4}}
`

// servicePods are the pods of one replica of service.
func servicePods(set string) map[string]int {
	return map[string]int{
		set + "-0-frontend":          2,
		set + "-0-prefill-0-pworker": 2, set + "-0-prefill-1-pworker": 2,
		set + "-0-decode-0-dleader": 1, set + "-0-decode-0-dworker": 3,
		set + "-0-decode-1-dleader": 1, set + "-0-decode-1-dworker": 3,
	}
}

func TestServiceIsMadeAndDeleted(t *testing.T) {
	w := newWorld(t, 4)
	w.apply(service)
	w.untilAvailable("llm")
	w.untilPods(servicePods("llm"), true)
	w.checkIndices()
	w.untilNames(podGroups, "llm-0")
	w.untilNames(services, "llm-0")
	w.untilNames(hpas, "llm-0-decode")
	w.untilNames(groups, "llm-0-decode", "llm-0-prefill")
	w.untilNames(cliques, "llm-0-frontend", "llm-0-prefill-0-pworker", "llm-0-prefill-1-pworker",
		"llm-0-decode-0-dleader", "llm-0-decode-0-dworker", "llm-0-decode-1-dleader", "llm-0-decode-1-dworker")
	for _, group := range []string{"llm-0-decode", "llm-0-prefill"} {
		w.untilCondition(groups, group, v1alpha1.ConditionAvailable, "True")
	}
	w.until("the numbers of the set are right", sets, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && number(objects[0], "scheduledReplicas") == 1 && number(objects[0], "availableReplicas") == 1 &&
			number(objects[0], "updatedReplicas") == 1 && number(objects[0], "replicas") == 1
	})
	for _, p := range w.pods() {
		if p.Annotations["pod-group-name"] != "llm-0" || p.Labels["kai.scheduler/subgroup-name"] != p.Labels[v1alpha1.LabelPodClique] {
			t.Errorf("pod %s is of PodGroup %q, sub-group %q", p.Name, p.Annotations["pod-group-name"], p.Labels["kai.scheduler/subgroup-name"])
		}
		if p.Spec.Subdomain != "llm-0" || p.Spec.SchedulerName != "muster-scheduler" {
			t.Errorf("pod %s has subdomain %q, scheduler %q", p.Name, p.Spec.Subdomain, p.Spec.SchedulerName)
		}
		if got := env(p, "GROVE_PCS_NAME"); got != "llm" {
			t.Errorf("pod %s has GROVE_PCS_NAME=%q", p.Name, got)
		}
	}

	w.delete(sets, "llm")
	w.untilGone()
}

// number returns a number of the status, -1 if it is not there.
func number(o *unstructured.Unstructured, field string) int64 {
	n, found, _ := unstructured.NestedInt64(o.Object, "status", field)
	if !found {
		return -1
	}
	return n
}

func env(p corev1.Pod, name string) string {
	for _, e := range p.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}
