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
)

// realKind is a kind of workloads whose own controller runs in these tests.
type realKind struct {
	// projects are the programs that run, in their order.
	projects []string
	// manifest is one of the kind's own documentation, written anew. All that was added to it is the schedulerName.
	manifest string
	// gangs is the number of gangs of the manifest, and size that of the pods of each.
	gangs, size int
	// gangOf returns what of a pod tells its gang from others.
	gangOf func(*corev1.Pod) string
	// resize are merge patches of the workload, one after the other, and the number of pods that run afterwards.
	resize []resized
	// alone: only the pods of one gang are created again when one of them fails, and what they are is in their name.
	keepsOthers bool
}

type resized struct {
	patch string
	pods  int
}

const suspended, resumed = `{"spec": {"suspend": true}}`, `{"spec": {"suspend": false}}`

func byLabels(keys ...string) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		values := make([]string, 0, len(keys))
		for _, key := range keys {
			values = append(values, p.Labels[key])
		}
		return strings.Join(values, "/")
	}
}

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
		resize: []resized{{suspended, 0}, {resumed, 5}},
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
        - {name: nginx2, image: "nginxinc/nginx-unprivileged:1.27", resources: {limits: {cpu: 100m}, requests: {cpu: 50m}}, ports: [{containerPort: 8080}]}
    workerTemplate:
      spec:
        schedulerName: muster-scheduler
        containers:
        - {name: nginx, image: "nginxinc/nginx-unprivileged:1.27", resources: {limits: {cpu: 100m}, requests: {cpu: 50m}}, ports: [{containerPort: 8080}]}
`,
		gangs: 3, size: 4,
		gangOf:      byLabels("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"),
		resize:      []resized{{`{"spec": {"replicas": 1}}`, 4}, {`{"spec": {"replicas": 3}}`, 12}},
		keepsOthers: true,
	},
}

// TestRealControllers: the controllers of other projects, as they are published, make the pods, and Muster starts them. No pod of a
// gang ever starts alone: on short capacity, when a node is lost, when a pod fails, and when ten such workloads come at once.
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
	total := k.gangs * k.size
	settled := func(what string, pods int) {
		w.t.Helper()
		w.t.Logf("%s: %d pods run", what, pods)
		w.untilReadyPods(pods)
		witness.check(what)
	}

	// 1. Room for all but one pod of a gang, then for all gangs but one, then for all.
	w.addSlots(k.size - 1)
	object := k.create(w, "")
	w.untilShort(total)
	if n := w.boundPods(); n > 0 {
		w.t.Fatalf("%d pods of a gang of %d started, with room for all but one", n, k.size)
	}
	if w.addSlots(1); k.gangs > 1 {
		w.until("one gang runs", podsKind, func(pods []*unstructured.Unstructured) bool { return boundAmong(pods) == k.size })
		witness.check("one gang runs")
		w.addSlots((k.gangs - 1) * k.size)
	}
	settled("started", total)

	// 2. One pod fails.
	before := w.present()
	var victim *corev1.Pod
	for _, p := range w.pods() {
		if victim == nil || p.Name > victim.Name { // a worker
			victim = &p
		}
	}
	w.must(cp.ExitPod(w.ctx, w.namespace, victim.Name, 1), "failing a pod")
	w.untilRestarted("a pod failed", before, func(p *corev1.Pod) bool { return !k.keepsOthers || k.gangOf(p) == k.gangOf(victim) }, k.gangOf)
	settled("a pod failed", total)

	// 3. A node is lost with its pod, and another one comes.
	lost := ""
	for _, p := range w.pods() {
		lost = p.Spec.NodeName
	}
	w.must(cp.LoseNode(w.ctx, lost), "losing a node")
	_, err := cp.RemoveNode(w.ctx, lost)
	w.must(err, "removing the node")
	w.until("the gang of the lost pod waits as a whole", podsKind, func(pods []*unstructured.Unstructured) bool {
		return len(pods) == total && boundAmong(pods) == total-k.size && !slices.ContainsFunc(pods, func(p *unstructured.Unstructured) bool {
			return p.GetDeletionTimestamp() != nil
		})
	})
	witness.check("a node was lost")
	w.addSlots(1)
	settled("another node has come", total)

	// 4. Its size is changed.
	for _, r := range k.resize {
		w.must(w.client.Patch(w.ctx, object, client.RawPatch(types.MergePatchType, []byte(r.patch))), "changing the size")
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
	w.untilPodCount(ten * total)
	w.addSlots((ten - 1) * total)
	settled("ten", ten*total)
	for _, o := range all {
		w.must(w.client.Delete(w.ctx, o, client.PropagationPolicy(background)), "deleting the workload")
	}
	w.untilGone()
	witness.check("all are deleted")
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

// untilRestarted waits until no pod of these UIDs is left that was to be replaced. All others must be there still.
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
		return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return before[p.UID] && replaced(p) })
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
		ends := p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
		if p.Spec.NodeName != "" && !ends {
			bound[gangOf(p)]++
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
