//go:build workloads

// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/test/controlplane"
	"github.com/muster-project/muster/test/podlife"
)

// realKind is a kind of workloads whose own controller runs in these tests.
type realKind struct {
	// projects are the programs that run, in their order.
	projects []string
	// given is an object that the manifest needs. "": none.
	given string
	// manifest is one of the kind's own documentation, written anew. All that was added to it, or to what is given, is
	// the schedulerName.
	manifest string
	// gangs is the number of gangs of the manifest, and size that of the pods of each.
	gangs, size int
	// later is the number of pods that come when the gangs run, and are in none.
	later int
	// gangOf returns what of a pod tells its gang from others. "": the pod is in none.
	gangOf func(*corev1.Pod) string
	// resize are patches of the workload, one after the other.
	resize []resized
	// restartsPods: when a pod of a gang fails, it is created again, and the others stay.
	restartsPods bool
}

type resized struct {
	patch string // a merge patch, or a JSON patch
	pods  int    // that run afterwards
	slots int    // for more pods, that are added before
}

const suspended, resumed = `{"spec": {"suspend": true}}`, `{"spec": {"suspend": false}}`

func byLabels(keys ...string) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		if p.Labels[keys[0]] == "" {
			return ""
		}
		values := make([]string, 0, len(keys))
		for _, key := range keys {
			values = append(values, p.Labels[key])
		}
		return strings.Join(values, "/")
	}
}

// torchDistributed is a runtime of TrainJobs.
const torchDistributed = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch-distributed, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1, torch: {numProcPerNode: auto}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                schedulerName: muster-scheduler
                containers: [{name: node, image: "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"}]
`

const torchJob = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: torch-ddp}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {image: docker.io/custom-training, command: [torchrun train.py], numNodes: 5}
`

var realKinds = map[string]realKind{
	"JobSet": {
		projects: []string{"jobset"},
		manifest: `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: max-restarts}
spec:
  failurePolicy: {maxRestarts: 3}
  replicatedJobs:
  - name: leader
    replicas: 1
    template:
      spec:
        backoffLimit: 0
        completions: 1
        parallelism: 1
        template:
          spec:
            schedulerName: muster-scheduler
            restartPolicy: Never
            containers: [{name: leader, image: "bash:latest", command: [bash, -xc, "sleep 1000"]}]
  - name: workers
    replicas: 2
    template:
      spec:
        backoffLimit: 0
        completions: 2
        parallelism: 2
        template:
          spec:
            schedulerName: muster-scheduler
            restartPolicy: Never
            containers: [{name: worker, image: "bash:latest", command: [bash, -xc, "sleep 1000"]}]
`,
		gangs: 1, size: 5,
		gangOf: byLabels("jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/restart-attempt"),
		resize: []resized{{suspended, 0, 0}, {resumed, 5, 0}},
	},
	"LeaderWorkerSet": {
		projects: []string{"lws"},
		manifest: `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: multi-template}
spec:
  replicas: 3
  leaderWorkerTemplate:
    size: 4
    restartPolicy: RecreateGroupOnPodRestart
    leaderTemplate:
      spec:
        schedulerName: muster-scheduler
        containers:
        - name: nginx2
          image: nginxinc/nginx-unprivileged:1.27
          resources: {limits: {cpu: 100m}, requests: {cpu: 50m}}
          ports: [{containerPort: 8080}]
    workerTemplate:
      spec:
        schedulerName: muster-scheduler
        containers:
        - name: nginx
          image: nginxinc/nginx-unprivileged:1.27
          resources: {limits: {cpu: 100m}, requests: {cpu: 50m}}
          ports: [{containerPort: 8080}]
`,
		gangs: 3, size: 4,
		gangOf: byLabels("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"),
		resize: []resized{{`{"spec": {"replicas": 1}}`, 4, 0}, {`{"spec": {"replicas": 3}}`, 12, 0}},
	},
	"RayCluster": {
		projects: []string{"kuberay"},
		manifest: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: raycluster-sample, labels: {kai.scheduler/queue: team-a}}
spec:
  headGroupSpec:
    template:
      spec:
        schedulerName: muster-scheduler
        containers: [{name: ray-head, image: "rayproject/ray:2.46.0", resources: {requests: {cpu: "1", memory: 2Gi}}}]
  workerGroupSpecs:
  - groupName: worker
    replicas: 2
    minReplicas: 2
    template:
      spec:
        schedulerName: muster-scheduler
        containers: [{name: ray-worker, image: "rayproject/ray:2.46.0", resources: {requests: {cpu: "1", memory: 1Gi}}}]
`,
		gangs: 1, size: 3,
		gangOf: byLabels("ray.io/cluster"),
		resize: []resized{
			{`[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 4}]`, 5, 2},
			{`[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 2}]`, 3, 0},
			{suspended, 0, 0}, {resumed, 3, 0},
		},
		restartsPods: true,
	},
	// Its submitter waits for an answer of Ray's dashboard, which nobody gives here: the life of the RayJob ends there.
	"RayJob": {
		projects: []string{"kuberay"},
		manifest: `
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: rayjob-sample-0, labels: {ray.io/scheduler-name: volcano, volcano.sh/queue-name: kuberay-test-queue}}
spec:
  entrypoint: python /home/ray/samples/sample_code.py
  shutdownAfterJobFinishes: true
  submitterPodTemplate:
    spec:
      schedulerName: muster-scheduler
      restartPolicy: Never
      containers: [{name: my-custom-rayjob-submitter-pod, image: "rayproject/ray:2.46.0"}]
  rayClusterSpec:
    rayVersion: 2.46.0
    headGroupSpec:
      rayStartParams: {}
      template:
        spec:
          schedulerName: muster-scheduler
          containers:
          - name: ray-head
            image: rayproject/ray:2.46.0
            ports: [{containerPort: 6379, name: gcs-server}, {containerPort: 8265, name: dashboard}, {containerPort: 10001, name: client}]
            resources: {limits: {cpu: "1", memory: 2Gi}, requests: {cpu: "1", memory: 2Gi}}
    workerGroupSpecs:
    - replicas: 2
      minReplicas: 2
      maxReplicas: 2
      groupName: small-group
      rayStartParams: {}
      template:
        spec:
          schedulerName: muster-scheduler
          containers:
          - name: ray-worker
            image: rayproject/ray:2.46.0
            resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: "1", memory: 1Gi}}
`,
		gangs: 1, size: 3, later: 1,
		gangOf:       byLabels("ray.io/cluster"),
		resize:       []resized{{suspended, 0, 0}, {resumed, 4, 0}},
		restartsPods: true,
	},
	// It serves nothing until Ray's dashboard answers: its RayCluster stays the pending one.
	"RayService": {
		projects: []string{"kuberay"},
		manifest: `
apiVersion: ray.io/v1
kind: RayService
metadata: {name: rayservice-no-ray-serve-replica}
spec:
  serveConfigV2: |
    applications:
    - name: simple_app
      import_path: ray-operator.config.samples.ray-serve.single_deployment_dag:DagNode
      route_prefix: /basic
      deployments: [{name: BaseService, num_replicas: 1, max_replicas_per_node: 1, ray_actor_options: {num_cpus: 0.1}}]
  rayClusterConfig:
    rayVersion: 2.46.0
    headGroupSpec:
      rayStartParams: {num-cpus: "0"}
      template:
        spec:
          schedulerName: muster-scheduler
          containers:
          - name: ray-head
            image: rayproject/ray:2.46.0
            resources: {limits: {cpu: 1, memory: 2Gi}, requests: {cpu: 1, memory: 2Gi}}
    workerGroupSpecs:
    - replicas: 2
      minReplicas: 1
      maxReplicas: 5
      groupName: small-group
      rayStartParams: {}
      template:
        spec:
          schedulerName: muster-scheduler
          containers:
          - name: ray-worker
            image: rayproject/ray:2.46.0
            resources: {limits: {cpu: "1", memory: 2Gi}, requests: {cpu: 500m, memory: 2Gi}}
`,
		gangs: 1, size: 3,
		gangOf: byLabels("ray.io/cluster"),
		resize: []resized{{`[{"op": "add", "path": "/spec/rayClusterConfig/workerGroupSpecs/-", "value": {
			"groupName": "large-group", "replicas": 2, "minReplicas": 1, "maxReplicas": 5, "rayStartParams": {}, "template": {"spec": {
			"schedulerName": "muster-scheduler", "containers": [{"name": "ray-worker", "image": "rayproject/ray:2.46.0"}]}}}}]`, 5, 2}},
		restartsPods: true,
	},
	"TrainJob": {
		projects: []string{"jobset", "trainer"},
		given:    torchDistributed,
		manifest: torchJob,
		gangs:    1, size: 5,
		gangOf:       byLabels("jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/restart-attempt"),
		resize:       []resized{{suspended, 0, 0}, {resumed, 5, 0}},
		restartsPods: true,
	},
	// Its pods name a PodGroup of Coscheduling, which trainer makes, and whose status the controller of
	// scheduler-plugins writes.
	"TrainJobOfCoscheduling": {
		projects: []string{"scheduler-plugins", "jobset", "trainer"},
		given:    torchDistributed + "  podGroupPolicy: {coscheduling: {}}\n",
		manifest: torchJob,
		gangs:    1, size: 5,
		gangOf:       byLabels("scheduling.x-k8s.io/pod-group", "jobset.sigs.k8s.io/restart-attempt"),
		resize:       []resized{{suspended, 0, 0}, {resumed, 5, 0}},
		restartsPods: true,
	},
}

// TestRealControllers: the controllers of other projects, as they are published, make the pods, and Muster starts them.
// No pod of a gang ever starts alone: on short capacity, when a node is lost, when a pod fails, and when ten such
// workloads come at once.
func TestRealControllers(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(realKinds)) {
		t.Run(name, func(t *testing.T) {
			kind := realKinds[name]
			ctx := context.Background()
			ownPlane(t, ctx, controlplane.Options{WithControllerManager: true, WithKubelets: true})
			startProjects(t, ctx, kind.projects...)
			w := newWorldFor(t, 0, 30*time.Minute)
			kind.live(w)
		})
	}
}

// startProjects starts Muster and the controllers of other projects on the test's own control plane.
func startProjects(t *testing.T, ctx context.Context, projects ...string) {
	t.Helper()
	for _, project := range projects {
		p, err := cp.StartProject(ctx, project, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s's last lines:\n%.6000s", project, p.LogTail(30))
			}
		})
	}
	if err := startMuster(cp, ctx); err != nil {
		t.Fatal(err)
	}
}

// live is the life of one workload, and of ten.
func (k realKind) live(w *world) {
	witness := k.watch(w)
	inGangs := k.gangs * k.size
	total := inGangs + k.later
	settled := func(what string, pods int) {
		w.t.Helper()
		w.t.Logf("%s: %d pods run", what, pods)
		w.until(fmt.Sprintf("%d pods run", pods), podsKind, func(all []*unstructured.Unstructured) bool {
			live := unended(all)
			return len(live) == pods && !slices.ContainsFunc(live, func(p *unstructured.Unstructured) bool {
				return p.GetDeletionTimestamp() != nil || conditionOf(p, "Ready", "status") != "True"
			})
		})
		witness.check(what)
	}
	if k.given != "" {
		given := read(w, k.given)
		given.SetNamespace("") // of no namespace
		createWhenServed(w, given)
	}

	// 1. Room for all but one pod of a gang, then for all gangs but one, then for all.
	w.addSlots(k.size - 1)
	object := k.create(w, "")
	w.untilShort(inGangs)
	if n := w.boundPods(); n > 0 {
		w.t.Fatalf("%d pods of a gang of %d started, with room for all but one", n, k.size)
	}
	if w.addSlots(1); k.gangs > 1 {
		w.until("one gang runs", podsKind, func(pods []*unstructured.Unstructured) bool { return boundAmong(pods) == k.size })
		witness.check("one gang runs")
	}
	w.addSlots(total - k.size)
	settled("started", total)

	// 2. One pod fails.
	before, victim := w.present(), k.worker(w)
	restarts := func(p *corev1.Pod) bool {
		return p.UID == victim.UID || !k.restartsPods && k.gangOf(p) == k.gangOf(victim)
	}
	w.must(cp.ExitPod(w.ctx, w.namespace, victim.Name, 1), "failing a pod")
	w.untilRestarted("a pod failed", before, restarts, k.gangOf)
	settled("a pod failed", total)

	// 3. A node is lost with its pod, and another one comes.
	lost, restarted := k.worker(w).Spec.NodeName, k.size
	if k.restartsPods {
		restarted = 1
	}
	w.must(cp.LoseNode(w.ctx, lost), "losing a node")
	_, err := cp.RemoveNode(w.ctx, lost)
	w.must(err, "removing the node")
	w.until("what was lost waits as a whole", podsKind, func(all []*unstructured.Unstructured) bool {
		pods := unended(all)
		return len(pods) == total && boundAmong(pods) == total-restarted && !slices.ContainsFunc(pods, func(p *unstructured.Unstructured) bool {
			return p.GetDeletionTimestamp() != nil
		})
	})
	witness.check("a node was lost")
	w.addSlots(1)
	settled("another node has come", total)

	// 4. Its size is changed.
	for _, r := range k.resize {
		w.addSlots(r.slots)
		kind := types.MergePatchType
		if strings.HasPrefix(r.patch, "[") {
			kind = types.JSONPatchType
		}
		w.must(w.client.Patch(w.ctx, object, client.RawPatch(kind, []byte(r.patch))), "changing the size")
		settled(r.patch, r.pods)
	}

	// 5. It is deleted.
	w.must(w.client.Delete(w.ctx, object, client.PropagationPolicy(background)), "deleting the workload")
	w.untilGone()

	// 6. Ten at once, with room for some, then for all.
	const ten = 10
	var all []*unstructured.Unstructured
	for i := range ten {
		all = append(all, k.create(w, fmt.Sprintf("-%d", i)))
	}
	w.until("all gangs have their pods", podsKind, func(pods []*unstructured.Unstructured) bool { return len(pods) >= ten*inGangs })
	w.addSlots((ten - 1) * total)
	settled("ten", ten*total)
	for _, o := range all {
		w.must(w.client.Delete(w.ctx, o, client.PropagationPolicy(background)), "deleting the workload")
	}
	w.untilGone()
	witness.check("all are deleted")
}

// worker returns the pod of a gang that has the last name: no leader or head.
func (k realKind) worker(w *world) *corev1.Pod {
	w.t.Helper()
	var last *corev1.Pod
	for _, p := range w.pods() {
		if k.gangOf(&p) != "" && !podlife.Over(&p) && (last == nil || p.Name > last.Name) {
			last = &p
		}
	}
	return last
}

// create creates the workload of the manifest, with this suffix in its name.
func (k realKind) create(w *world, suffix string) *unstructured.Unstructured {
	w.t.Helper()
	object := read(w, k.manifest)
	object.SetName(object.GetName() + suffix)
	createWhenServed(w, object)
	return object
}

// addSlots adds nodes with room for one pod each.
func (w *world) addSlots(pods int) {
	w.t.Helper()
	names, err := cp.CreateNodes(w.ctx, controlplane.NodeOptions{
		Count: pods, GPUs: 8, First: len(w.nodes), NamePrefix: w.namespace,
		Change: func(node *corev1.Node) {
			node.Status.Capacity[corev1.ResourcePods] = resource.MustParse("1")
			node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
		},
	})
	w.must(err, "creating nodes")
	w.nodes = append(w.nodes, names...)
}

// untilShort waits until so many pods are there, none of them in a gang that could start.
func (w *world) untilShort(pods int) {
	w.t.Helper()
	w.untilPodCount(pods)
	w.until("the gangs lack room", podGroups, func(groups []*unstructured.Unstructured) bool {
		return len(groups) > 0 && !slices.ContainsFunc(groups, func(g *unstructured.Unstructured) bool {
			return !slices.Contains([]string{"TooLarge", "InsufficientResources"}, conditionOf(g, "Satisfied", "reason"))
		})
	})
}

func (w *world) untilPodCount(n int) {
	w.t.Helper()
	w.until(fmt.Sprintf("there are %d pods", n), podsKind, func(pods []*unstructured.Unstructured) bool { return len(pods) == n })
}

// unended returns the pods that have not ended: a Job keeps those that have failed.
func unended(pods []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(pods), func(p *unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(p.Object, "status", "phase")
		return phase == string(corev1.PodFailed) || phase == string(corev1.PodSucceeded)
	})
}

func boundAmong(pods []*unstructured.Unstructured) int {
	n := 0
	for _, p := range pods {
		if node, _, _ := unstructured.NestedString(p.Object, "spec", "nodeName"); node != "" {
			n++
		}
	}
	return n
}

// present returns the UIDs of the pods.
func (w *world) present() map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, p := range w.pods() {
		uids[p.UID] = true
	}
	return uids
}

// untilRestarted waits until no pod of these UIDs runs that was to be replaced. All others must be there still.
func (w *world) untilRestarted(what string, before map[types.UID]bool, replaced func(*corev1.Pod) bool, gangOf func(*corev1.Pod) string) {
	w.t.Helper()
	kept := map[types.UID]string{}
	for _, p := range w.pods() {
		if !replaced(&p) {
			kept[p.UID] = gangOf(&p)
		}
	}
	ctx, cancel := w.patient()
	defer cancel()
	w.must(controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return before[p.UID] && replaced(p) && !podlife.Over(p) })
	}), "waiting until the pods are replaced")
	now := w.present()
	for uid, gang := range kept {
		if !now[uid] {
			w.t.Errorf("%s, and a pod of gang %s, another one, is gone", what, gang)
		}
	}
}

// witness watches pods for gangs that start in part.
type witness struct {
	w    *world
	size int

	mu       sync.Mutex
	bound    map[string]int  // guarded by mu; the pods that are bound, and do not end, by gang
	started  map[string]bool // guarded by mu; whole since its first pod was bound
	violated []string        // guarded by mu
}

// watch watches until the test ends.
func (k realKind) watch(w *world) *witness {
	ctx, cancel := context.WithCancel(w.ctx)
	witness := &witness{w: w, size: k.size, bound: map[string]int{}, started: map[string]bool{}}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		deadline, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		_ = controlplane.Until(deadline, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
			witness.see(pods, k.gangOf)
			return false
		})
	}()
	w.t.Cleanup(func() { cancel(); <-watched })
	return witness
}

func (s *witness) see(pods []*corev1.Pod, gangOf func(*corev1.Pod) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bound := map[string]int{}
	for _, p := range pods {
		ends := p.DeletionTimestamp != nil || podlife.Over(p)
		if gang := gangOf(p); gang != "" && p.Spec.NodeName != "" && !ends {
			bound[gang]++
		}
	}
	for gang, n := range s.bound {
		if n > 0 && bound[gang] == 0 {
			if !s.started[gang] {
				s.violated = append(s.violated, fmt.Sprintf("%d of %d pods of gang %s were bound, and ended", n, s.size, gang))
			}
			delete(s.started, gang)
		}
	}
	for gang, n := range bound {
		if n >= s.size {
			s.started[gang] = true
		}
	}
	s.bound = bound
}

// check fails the test if a gang has started in part. Nothing may happen meanwhile.
func (s *witness) check(when string) {
	s.w.t.Helper()
	time.Sleep(500 * time.Millisecond) // what must not happen has no event
	s.mu.Lock()
	defer s.mu.Unlock()
	for gang, n := range s.bound {
		if n > 0 && !s.started[gang] {
			s.violated = append(s.violated, fmt.Sprintf("%d of %d pods of gang %s are bound", n, s.size, gang))
		}
	}
	if len(s.violated) > 0 {
		state, _ := json.Marshal(s.bound)
		s.w.t.Fatalf("%s: %s; bound pods by gang: %s", when, strings.Join(s.violated, "; "), state)
	}
}
