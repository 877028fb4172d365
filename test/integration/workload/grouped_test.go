// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
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

// TestJobBecomesAGang: the pods that the Job controller makes from an unchanged template with one annotation start
// together or not at all. The PodGroup follows the Job: suspended it has none, and what is deleted leaves nothing
// behind.
func TestJobBecomesAGang(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	job := read(w, trainJob)
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
	if n := w.boundPods(); n > 0 {
		t.Errorf("%d pods started, and half of their gang has no room", n)
	}
	w.addNodes(1)
	w.untilReadyPods(8)
	w.renamePodGroup(&list.Items[0])

	w.patchJob(`{"spec": {"suspend": true}}`)
	w.untilNames(podGroups)
	w.untilReadyPods(0)
	w.patchJob(`{"spec": {"suspend": false}}`)
	w.untilReadyPods(8)

	w.must(w.dynamic.Resource(jobs).Namespace(w.namespace).Delete(w.ctx, "train", metav1.DeleteOptions{PropagationPolicy: &background}), "deleting the Job")
	w.untilGone()
}

// renamePodGroup replaces the PodGroup of a workload that runs by one of another name, as an earlier version of
// muster-controller may have left it. The gang goes on under the name that its pods look for: no pod ends, and a lost
// one is replaced alone.
func (w *world) renamePodGroup(made *v2alpha2.PodGroup) {
	w.t.Helper()
	running := map[types.UID]bool{}
	for _, p := range w.pods() {
		running[p.UID] = true
	}
	former := &v2alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "former", Labels: made.Labels, OwnerReferences: made.OwnerReferences}, Spec: made.Spec}
	w.must(w.client.Create(w.ctx, former), "creating a PodGroup of another name")
	w.must(w.client.Delete(w.ctx, made), "deleting the PodGroup")
	w.until("the PodGroup has its name, and its gang runs", podGroups, func(groups []*unstructured.Unstructured) bool {
		return len(groups) == 1 && groups[0].GetName() == made.Name && groups[0].GetUID() != made.UID &&
			conditionOf(groups[0], v2alpha2.ConditionSatisfied, "status") == "True"
	})
	pods := w.pods()
	for _, p := range pods {
		if !running[p.UID] || p.DeletionTimestamp != nil {
			w.t.Errorf("pod %s was ended, or made", p.Name)
		}
	}
	w.must(w.client.Delete(w.ctx, &pods[0]), "deleting a pod")
	w.untilReadyPods(8)
}

// install creates a CRD, as far as muster-controller sees it, and returns it.
func install(w *world, group, version, kind string) *unstructured.Unstructured {
	w.t.Helper()
	singular := strings.ToLower(kind)
	crd := read(w, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[3]ss.%[1]s
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: %[1]s
  names: {kind: %[4]s, plural: %[3]ss, singular: %[3]s}
  scope: Namespaced
  versions:
  - name: %[2]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group, version, singular, kind))
	crd.SetNamespace("")
	w.must(w.client.Create(w.ctx, crd), "installing "+kind)
	return crd
}

// createWhenServed creates an object of a kind that was just installed.
func createWhenServed(w *world, object *unstructured.Unstructured) {
	w.t.Helper()
	w.must(wait.PollUntilContextCancel(w.ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return w.client.Create(ctx, object) == nil, nil
	}), "creating "+object.GetKind())
}

const llmSet = `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: llm}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 2
    workerTemplate: {spec: {schedulerName: muster-scheduler, containers: [{name: main, image: "registry.example/llm:1"}]}}
`

// TestReplicasOfALeaderWorkerSetAreGangs: LeaderWorkerSet is installed while muster-controller runs. The test makes its
// pods as its controller does. Each replica starts as a whole, and waits for its own pods only.
func TestReplicasOfALeaderWorkerSetAreGangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	crd := install(w, "leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet")
	pod := func(replica, worker int) {
		name := fmt.Sprintf("llm-%d", replica)
		if worker > 0 {
			name += fmt.Sprintf("-%d", worker)
		}
		p := wrappers.MakePod(name, w.namespace).NodeSelector("world", w.namespace).GPUs(1).
			Label("leaderworkerset.sigs.k8s.io/name", "llm").Label("leaderworkerset.sigs.k8s.io/group-index", strconv.Itoa(replica)).
			Label("leaderworkerset.sigs.k8s.io/worker-index", strconv.Itoa(worker))
		w.must(w.client.Create(w.ctx, p.Obj()), "creating a pod")
	}
	pod(0, 0) // before its PodGroup exists
	pod(0, 1)
	pod(1, 0)
	set := read(w, llmSet)
	createWhenServed(w, set)
	w.untilNames(podGroups, "leaderworkerset-llm.0", "leaderworkerset-llm.1")
	bound := func(want ...string) {
		w.until(fmt.Sprintf("the bound pods are %v", want), podsKind, func(pods []*unstructured.Unstructured) bool {
			var names []string
			for _, p := range pods {
				if node, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName"); node != "" {
					names = append(names, p.GetName())
				}
			}
			slices.Sort(names)
			return slices.Equal(names, want)
		})
	}
	bound("llm-0", "llm-0-1")
	w.until("the other replica waits for its worker", podGroups, func(groups []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(groups, func(g *unstructured.Unstructured) bool {
			return g.GetName() == "leaderworkerset-llm.1" && conditionOf(g, v2alpha2.ConditionSatisfied, "reason") == string(v2alpha2.ReasonWaitingForPods)
		})
	})
	bound("llm-0", "llm-0-1")
	pod(1, 1)
	bound("llm-0", "llm-0-1", "llm-1", "llm-1-1")
	w.must(w.client.DeleteAllOf(w.ctx, &corev1.Pod{}, client.InNamespace(w.namespace)), "deleting the pods")
	w.must(w.client.Delete(w.ctx, set), "deleting the LeaderWorkerSet")
	w.untilGone()
	w.must(w.client.Delete(w.ctx, crd), "removing LeaderWorkerSet")
}

const trainSet = `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - name: driver
    template: {spec: {template: {spec: {schedulerName: muster-scheduler, containers: []}}}}
  - name: workers
    dependsOn: [{name: driver, status: Ready}]
    template: {spec: {parallelism: 2, completions: 2, template: {spec: {schedulerName: muster-scheduler, containers: []}}}}
`

// TestJobSetIsOneGang: the test makes the Jobs of a JobSet as its controller does, and the Job controller their pods.
// The driver, on which the workers depend, starts without them, and they start together.
func TestJobSetIsOneGang(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	crd := install(w, "jobset.x-k8s.io", "v1alpha2", "JobSet")
	set := read(w, trainSet)
	createWhenServed(w, set)
	w.until("the PodGroup of the JobSet", podGroups, func(groups []*unstructured.Unstructured) bool {
		return len(groups) == 1 && metav1.GetControllerOf(groups[0]).UID == set.GetUID()
	})
	create := func(replicatedJob string, pods, gpus int) {
		job := read(w, strings.Replace(trainJob, "nvidia.com/gpu: 2", fmt.Sprintf("nvidia.com/gpu: %d", gpus), 1))
		job.SetName("train-" + replicatedJob + "-0")
		job.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: set.GetAPIVersion(), Kind: "JobSet", Name: "train", UID: set.GetUID()}})
		for _, field := range []string{"parallelism", "completions"} {
			w.must(unstructured.SetNestedField(job.Object, int64(pods), "spec", field), "sizing the Job")
		}
		w.must(unstructured.SetNestedMap(job.Object, map[string]any{"labels": map[string]any{
			"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/jobset-uid": string(set.GetUID()),
			"jobset.sigs.k8s.io/replicatedjob-name": replicatedJob, "jobset.sigs.k8s.io/job-index": "0"}}, "spec", "template", "metadata"), "labelling the pods")
		w.must(unstructured.SetNestedStringMap(job.Object, map[string]string{"world": w.namespace}, "spec", "template", "spec", "nodeSelector"), "selecting the nodes")
		w.must(w.client.Create(w.ctx, job), "creating the Job")
	}
	create("driver", 1, 1)
	w.untilReadyPods(1)
	create("workers", 2, 5) // one has room
	w.until("the workers lack room", podGroups, func(groups []*unstructured.Unstructured) bool {
		return strings.Contains(fmt.Sprint(groups[0].Object["status"]), "workers")
	})
	if n := w.boundPods(); n != 1 {
		t.Errorf("%d pods are bound, and the workers have no room for both", n)
	}
	w.addNodes(1)
	w.untilReadyPods(3)
	w.must(w.client.Delete(w.ctx, set), "deleting the JobSet")
	w.untilGone()
	w.must(w.client.Delete(w.ctx, crd), "removing JobSet")
}

func (w *world) boundPods() int {
	w.t.Helper()
	n := 0
	for _, p := range w.pods() {
		if p.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// read returns the object of a manifest, in the namespace of the test.
func read(w *world, manifest string) *unstructured.Unstructured {
	w.t.Helper()
	object := &unstructured.Unstructured{}
	w.must(yaml.Unmarshal([]byte(manifest), &object.Object), "reading a manifest")
	object.SetNamespace(w.namespace)
	return object
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
