//go:build workloads

// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/wrappers"
)

var kueueWorkloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}

// queues are a queue of so many GPUs for the namespace of a test, in a topology of racks. %[1]s is the namespace.
const queues = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: %[1]s}
spec: {levels: [{nodeLabel: topology.example.com/rack}, {nodeLabel: kubernetes.io/hostname}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: %[1]s}
spec:
  nodeLabels: {world: %[1]s}
  %[3]s
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {}
  stopPolicy: Hold
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: %[1]s, resources: [{name: nvidia.com/gpu, nominalQuota: %[2]d}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: %[1]s}
spec: {clusterQueue: %[1]s}
`

// queuedWorkloads are workloads of one queue, each a gang of 4 pods with 1 GPU each.
var queuedWorkloads = map[string]string{
	"Job": `
apiVersion: batch/v1
kind: Job
metadata: {name: job, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  parallelism: 4
  completions: 4
  template:
    metadata: {annotations: {scheduling.run.ai/min-member: all}}
    spec:
      schedulerName: muster-scheduler
      restartPolicy: Never
      containers: [{name: main, image: "registry.example/train:1", resources: {limits: {nvidia.com/gpu: 1}}}]
`,
	"JobSet": `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: jobset, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  replicatedJobs:
  - name: workers
    template:
      spec:
        completions: 4
        parallelism: 4
        template:
          metadata: {annotations: {scheduling.run.ai/min-member: all}}
          spec:
            schedulerName: muster-scheduler
            restartPolicy: Never
            containers: [{name: main, image: "registry.example/train:1", resources: {limits: {nvidia.com/gpu: 1}}}]
`,
	"LeaderWorkerSet": `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: lws, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 4
    workerTemplate:
      metadata: {annotations: {scheduling.run.ai/min-member: all}}
      spec:
        schedulerName: muster-scheduler
        containers: [{name: main, image: "registry.example/llm:1", resources: {limits: {nvidia.com/gpu: 1}}}]
`,
	"Pods": `
apiVersion: v1
kind: Pod
metadata:
  generateName: plain-
  labels: {kueue.x-k8s.io/queue-name: team, kueue.x-k8s.io/pod-group-name: plain}
  annotations: {scheduling.run.ai/min-member: all, kueue.x-k8s.io/pod-group-total-count: "4", pod-group-name: plain}
spec:
  schedulerName: muster-scheduler
  containers: [{name: main, image: "registry.example/train:1", resources: {limits: {nvidia.com/gpu: 1}}}]
`,
}

// queuedGang tells the gangs of queuedWorkloads apart.
func queuedGang(p *corev1.Pod) string {
	for _, key := range []string{"jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name", "leaderworkerset.sigs.k8s.io/group-key"} {
		if value := p.Labels[key]; value != "" {
			return value
		}
	}
	return p.Annotations[v2alpha2.PodGroupAnnotation]
}

// TestRealKueue: quotas, queues and topology assignments are Kueue's, and what it admits starts as gangs.
func TestRealKueue(t *testing.T) {
	ctx := t.Context()
	ownPlane(t, ctx, controlplane.Options{WithControllerManager: true, WithKubelets: true})
	startProjects(t, ctx, "jobset", "lws")
	kueue := startKueue(t, ctx, nil)
	t.Run("behind its gates", behindGates)
	t.Run("admits fewer pods", admitsFewerPods)
	t.Run("preempts what is bound in part", forQueued(preemptsWhatIsBoundInPart))
	t.Run("assigns a topology", forQueued(assignsATopology))

	kueue.Kill()
	startKueue(t, ctx, map[string]any{"timeout": "15s", "requeuingStrategy": map[string]any{"backoffBaseSeconds": 1, "backoffMaxSeconds": 5}})
	t.Run("waits for pods to be ready", waitsForPodsReady)
}

// startKueue starts Kueue. waitForPodsReady is that of its configuration; nil: it does not wait.
func startKueue(t *testing.T, ctx context.Context, waitForPodsReady map[string]any) *controlplane.Process {
	t.Helper()
	kueue, err := cp.StartProject(ctx, "kueue", func(config map[string]any) {
		config["internalCertManagement"] = map[string]any{"enable": true}    // or else it reads those of its metrics from a directory in /etc
		config["featureGates"] = map[string]any{"VisibilityOnDemand": false} // an aggregated API, which has no Service here
		config["integrations"] = map[string]any{"frameworks": []any{"batch/job", "jobset.x-k8s.io/jobset", "pod", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"}}
		if waitForPodsReady != nil {
			config["waitForPodsReady"] = waitForPodsReady
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Kueue's last lines:\n%.6000s", kueue.LogTail(30))
		}
	})
	return kueue
}

// forQueued runs a test for each of queuedWorkloads.
func forQueued(test func(*testing.T, string)) func(*testing.T) {
	return func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(queuedWorkloads)) {
			t.Run(name, func(t *testing.T) { test(t, queuedWorkloads[name]) })
		}
	}
}

// queue creates the queue of the test, on hold.
func (w *world) queue(gpus int, topology string) {
	w.t.Helper()
	w.must(cp.ApplyYAML(w.ctx, fmt.Sprintf(queues, w.namespace, gpus, topology)), "creating the queues")
}

// admit lets the queue admit what waits in it, or no longer.
func (w *world) admit(stopPolicy string) {
	w.t.Helper()
	queue := &unstructured.Unstructured{}
	queue.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	queue.SetKind("ClusterQueue")
	queue.SetName(w.namespace)
	patch := fmt.Sprintf(`{"spec": {"stopPolicy": %q}}`, stopPolicy)
	w.must(w.client.Patch(w.ctx, queue, client.RawPatch(types.MergePatchType, []byte(patch))), "setting the stopPolicy of the queue")
}

// submit creates a workload of queuedWorkloads, with these changes of its manifest. Plain pods come with their
// PodGroup.
func (w *world) submit(manifest string, changes ...string) []client.Object {
	w.t.Helper()
	manifest = strings.NewReplacer(changes...).Replace(manifest)
	object := read(w, manifest)
	if object.GetKind() != "Pod" {
		createWhenServed(w, object)
		return []client.Object{object}
	}
	minimum := int32(4)
	if strings.Contains(manifest, `min-member: "2"`) {
		minimum = 2
	}
	group := wrappers.MakePodGroup("plain", w.namespace).MinMember(minimum).Obj()
	w.must(client.IgnoreAlreadyExists(w.client.Create(w.ctx, group)), "creating the PodGroup")
	all := []client.Object{group}
	for range 4 {
		p := object.DeepCopy()
		createWhenServed(w, p)
		all = append(all, p)
	}
	return all
}

// deleteAll deletes the workloads, and the Workloads that Kueue has made for them, without which it keeps plain pods
// from going.
func (w *world) deleteAll(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		w.must(client.IgnoreNotFound(w.client.Delete(w.ctx, o, client.PropagationPolicy(background))), "deleting "+o.GetName())
	}
	w.must(w.dynamic.Resource(kueueWorkloads).Namespace(w.namespace).DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), "deleting the Workloads")
	w.untilGone()
}

// untilOnly waits until so many pods are ready, and no others are bound, and have not ended.
func (w *world) untilOnly(what string, n int, ours func(*corev1.Pod) bool) {
	w.t.Helper()
	ctx, cancel := w.patient()
	defer cancel()
	w.must(controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		ready := 0
		for _, p := range pods {
			switch ended := p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded; {
			case p.Spec.NodeName == "" || ended:
			case ours(p) && p.DeletionTimestamp == nil && controlplane.PodReady(p):
				ready++
			default:
				return false
			}
		}
		return ready == n
	}), "waiting until "+what)
}

func anyPod(*corev1.Pod) bool { return true }

// untilGated waits until these PodGroups, and no others, are there, and say that Kueue's gate keeps their pods, none of
// which is bound.
func (w *world) untilGated(n int) {
	w.t.Helper()
	w.until("the gangs are gated", podGroups, func(groups []*unstructured.Unstructured) bool {
		return len(groups) == n && !slices.ContainsFunc(groups, func(g *unstructured.Unstructured) bool {
			scheduled, _, _ := unstructured.NestedString(g.Object, "status", "scheduled")
			return scheduled != "0/4" || conditionOf(g, v2alpha2.ConditionSatisfied, "reason") != string(v2alpha2.ReasonGated) ||
				!strings.Contains(conditionOf(g, v2alpha2.ConditionSatisfied, "message"), "kueue.x-k8s.io/admission")
		})
	})
}

// behindGates: while the queue is on hold, a Job and a JobSet have neither pods nor PodGroups, and the PodGroups of
// gated pods say that they are gated. Admitted, all start whole. Each replica of a LeaderWorkerSet is admitted alone.
func behindGates(t *testing.T) {
	w := newWorldFor(t, 2, 20*time.Minute)
	witness := realKind{size: 4, gangOf: queuedGang}.watch(w)
	w.queue(16, "")
	all := map[string][]client.Object{}
	for name, manifest := range queuedWorkloads {
		all[name] = w.submit(manifest)
	}
	w.untilPodCount(8) // those of the LeaderWorkerSet and plain ones
	w.untilGated(2)
	w.admit("None")
	w.untilReadyPods(16)
	witness.check("admitted")

	set := all["LeaderWorkerSet"][0]
	w.must(w.client.Patch(w.ctx, set, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"replicas": 2}}`))), "scaling the set")
	w.untilPodCount(20)
	w.until("the second replica is gated", podGroups, func(groups []*unstructured.Unstructured) bool {
		return len(groups) == 5 && slices.ContainsFunc(groups, func(g *unstructured.Unstructured) bool {
			return g.GetName() == "leaderworkerset-lws.1" && conditionOf(g, v2alpha2.ConditionSatisfied, "reason") == string(v2alpha2.ReasonGated)
		})
	})
	w.must(w.client.Delete(w.ctx, all["Job"][0], client.PropagationPolicy(background)), "deleting the Job")
	w.untilReadyPods(16)
	witness.check("the second replica is admitted")
	w.deleteAll(slices.Concat(all["JobSet"], all["LeaderWorkerSet"], all["Pods"])...)
}

// admitsFewerPods: where the quota holds 3 of the 4 pods of a Job that may run with 2, Kueue lowers its parallelism,
// and the 3 start together.
func admitsFewerPods(t *testing.T) {
	w := newWorldFor(t, 1, 20*time.Minute) // has room for 2 pods
	w.queue(12, "")
	all := w.submit(queuedWorkloads["Job"], "labels:", `annotations: {kueue.x-k8s.io/job-min-parallelism: "2"}, labels:`, "gpu: 1", "gpu: 4")
	w.admit("None")
	w.untilShort(3)
	if n := w.boundPods(); n > 0 {
		t.Errorf("%d of 3 pods started", n)
	}
	w.addNodes(1)
	w.untilReadyPods(3)
	w.deleteAll(all...)
}

// waitsForPodsReady: what Kueue has admitted and Muster cannot start is evicted after the timeout, which leaves no pod
// bound and no PodGroup of a suspended workload, and starts whole when it is admitted again and there is room.
func waitsForPodsReady(t *testing.T) {
	w := newWorldFor(t, 0, 20*time.Minute)
	witness := realKind{size: 4, gangOf: queuedGang}.watch(w)
	w.queue(64, "")
	w.addNodes(1) // has room for 2 of 4 pods
	var all []client.Object
	for _, manifest := range queuedWorkloads {
		all = append(all, w.submit(manifest, "gpu: 1", "gpu: 4")...)
	}
	w.untilGated(2)
	w.admit("None")
	w.untilShort(16)
	w.admit("Hold")
	w.until("Kueue evicts all", kueueWorkloads, func(workloads []*unstructured.Unstructured) bool {
		return len(workloads) == 4 && !slices.ContainsFunc(workloads, func(o *unstructured.Unstructured) bool {
			return conditionOf(o, "Evicted", "reason") != "PodsReadyTimeout"
		})
	})
	all = append(all, w.submit(queuedWorkloads["Pods"], "gpu: 1", "gpu: 4")...) // nobody else replaces the pods that Kueue deletes
	w.untilPodCount(8)
	w.untilGated(2)
	witness.check("evicted")
	w.addNodes(7)
	w.admit("None")
	w.untilReadyPods(16)
	witness.check("admitted again")
	w.deleteAll(all...)
}

// preemptsWhatIsBoundInPart: of a gang that needs 2 of 4 pods, only 2 have room. Kueue preempts it for a Job of higher
// priority, which starts whole in its place, and admits it again afterwards.
func preemptsWhatIsBoundInPart(t *testing.T, manifest string) {
	w := newWorldFor(t, 1, 20*time.Minute)
	witness := realKind{size: 2, gangOf: queuedGang}.watch(w)
	w.queue(16, "")
	w.must(client.IgnoreAlreadyExists(w.client.Create(w.ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "kueue-high"}, Value: 1000})), "creating a class")
	part := []string{"min-member: all", `min-member: "2", fake-kubelet.muster.test/linger: 2s`, "gpu: 1", "gpu: 3"}
	all := w.submit(manifest, part...)
	w.admit("None")
	w.untilOnly("a part of the gang runs", 2, anyPod)
	urgent := w.submit(queuedWorkloads["Job"], "name: job", "name: urgent", "gpu: 1", "gpu: 2", "schedulerName:", "priorityClassName: kueue-high\n      schedulerName:")
	isUrgent := func(p *corev1.Pod) bool { return queuedGang(p) == "urgent" }
	w.untilOnly("the urgent Job runs alone", 4, isUrgent)
	witness.check("preempted")
	w.must(w.client.Delete(w.ctx, urgent[0], client.PropagationPolicy(background)), "deleting the urgent Job")
	if len(all) > 1 {
		all = append(all, w.submit(manifest, part...)...) // nobody else replaces plain pods
	}
	w.untilOnly("the gang runs again", 2, func(p *corev1.Pod) bool { return !isUrgent(p) })
	witness.check("admitted again")
	w.deleteAll(all...)
}

// assignsATopology: Kueue chooses the nodes, in one rack, and Muster starts the gang there, and nowhere else.
func assignsATopology(t *testing.T, manifest string) {
	w := newWorldFor(t, 8, 20*time.Minute) // two racks
	witness := realKind{size: 4, gangOf: queuedGang}.watch(w)
	w.queue(64, "topologyName: "+w.namespace)
	all := w.submit(manifest, "min-member: all", "min-member: all, kueue.x-k8s.io/podset-required-topology: topology.example.com/rack", "gpu: 1", "gpu: 8")
	w.admit("None")
	w.untilReadyPods(4)
	witness.check("started")
	racks := map[string]bool{}
	for _, p := range w.pods() {
		if host := p.Spec.NodeSelector[corev1.LabelHostname]; host != p.Spec.NodeName {
			t.Errorf("pod %s is on node %s, and Kueue assigned %q", p.Name, p.Spec.NodeName, host)
		}
		node := &corev1.Node{}
		w.must(w.client.Get(w.ctx, client.ObjectKey{Name: p.Spec.NodeName}, node), "reading a node")
		racks[node.Labels[controlplane.RackLabel]] = true
	}
	if len(racks) != 1 {
		t.Errorf("the pods are in %d racks", len(racks))
	}
	w.deleteAll(all...)
}
