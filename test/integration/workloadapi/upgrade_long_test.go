// SPDX-License-Identifier: Apache-2.0

//go:build long

package workloadapi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// build is the folder of the programs of a version, and that of its manifests.
type build struct{ bin, manifests string }

var (
	thisBuild   = build{"../../../bin", "../../../manifests"}
	beforeBuild = build{"../../../bin/before", "../../../bin/before/manifests"} // see hack/build-before.sh
)

const (
	muScheduler  = "muster-scheduler"
	muController = "muster-controller"
)

// TestUpgrade upgrades from an earlier version while gangs run, wait, preempt and update, and goes back: one program
// after the other, so that each version of the one works beside each version of the other, with the CRDs of this
// version and objects that were there before. Then everything is uninstalled. No gang is disturbed.
func TestUpgrade(t *testing.T) {
	for name, order := range map[string][]string{
		"the scheduler first":  {muScheduler, muController},
		"the controller first": {muController, muScheduler},
	} {
		t.Run(name, func(t *testing.T) { testUpgrade(t, order) })
	}
}

func testUpgrade(t *testing.T, order []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	defer cancel()
	cp, err := controlplane.Start(ctx, controlplane.Options{WithControllerManager: true, WithKubelets: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cp.Stop)
	u := &upgrade{installation: installation{user: newUser(t, cp), cp: cp}, leaders: map[string]*controlplane.Process{}, ended: map[string]map[types.UID]*corev1.Pod{}}
	for pool, nodes := range map[string]int{"common": 8, "contested": 2} {
		_, err := cp.CreateNodes(ctx, controlplane.NodeOptions{Count: nodes, GPUs: 8, NamePrefix: pool, Labels: map[string]string{"pool": pool}})
		check(t, err)
	}
	u.load("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 100")

	// 1. The earlier version, with gangs that run, and one that waits.
	u.kubectl("apply --server-side -k " + beforeBuild.manifests + "/crds")
	u.kubectl("wait --for=condition=Established crd --all")
	u.manifests(beforeBuild)
	for _, program := range order {
		u.replace(ctx, program, beforeBuild)
	}
	stop := u.record(ctx)
	u.load(gang("steady", "common", 4, ""), gang("waits", "common", 9, ""), rolling(1), training)
	u.untilBound(ctx, "steady", 4)
	u.untilBound(ctx, "rolls-0", 6)
	u.untilBound(ctx, "pretrain-0", 3)
	u.kubectl("wait -n " + u.namespace + " --for=jsonpath={.status.reason} podgroup/waits --timeout=60s")
	u.kubectl("wait -n " + u.namespace + " --for=condition=Satisfied podgroup/steady podgroup/pretrain-0 --timeout=60s")
	u.kubectl("wait -n " + u.namespace + " --for=jsonpath={.status.phase}=Running podcliqueset/pretrain --timeout=60s")

	// 2. This version, and back. Whatever is under way when a program changes is completed by the other version.
	rounds, statuses := 0, u.statuses(ctx)
	u.kubectl("apply --server-side -k " + thisBuild.manifests + "/crds")
	for _, to := range []build{thisBuild, beforeBuild} {
		u.manifests(to)
		for _, program := range order {
			rounds++
			prey, hunter, during := fmt.Sprint("prey-", rounds), fmt.Sprint("hunter-", rounds), fmt.Sprint("during-", rounds)
			u.load(gang(prey, "contested", 2, ""))
			u.untilBound(ctx, prey, 2)
			u.load(gang(hunter, "contested", 2, "high"), rolling(1+rounds))
			u.until(ctx, "the victims end", func(pods []*corev1.Pod) bool { return count(pods, prey, terminating) == 2 })
			u.until(ctx, "an update is under way", func(pods []*corev1.Pod) bool { return count(pods, "rolls-0", terminating) > 0 })

			u.replace(ctx, program, to)
			u.load(gang(during, "common", 1, ""))
			u.untilBound(ctx, hunter, 2)
			u.untilBound(ctx, during, 1)
			u.until(ctx, "the update is complete", func(pods []*corev1.Pod) bool {
				return count(pods, "rolls-0", func(pod *corev1.Pod) bool {
					return controlplane.PodReady(pod) && !terminating(pod) && pod.Spec.Containers[0].Image == webImage(1+rounds)
				}) == 6
			})
			for _, done := range []string{prey, hunter, during} { // for the next round
				u.kubectl("delete -n " + u.namespace + " job/" + done + " podgroup/" + done)
			}
			u.until(ctx, "the contested nodes are free", func(pods []*corev1.Pod) bool { return count(pods, prey, whatever)+count(pods, hunter, whatever) == 0 })
			u.check(prey, rounds)
			u.checkStatuses(ctx, statuses)
		}
	}

	// 3. Without the programs everything goes on; the gang that waits starts once they are back, and there is room.
	before := u.running(ctx)
	u.kubectl("delete --ignore-not-found -k " + thisBuild.manifests)
	u.collectGarbage(ctx)
	for _, p := range u.leaders {
		p.Kill()
	}
	if after := u.running(ctx); !maps.Equal(before, after) {
		t.Errorf("pods after the programs were uninstalled: %v, before: %v", after, before)
	}
	u.manifests(thisBuild)
	for _, program := range order {
		u.replace(ctx, program, thisBuild)
	}
	if after := u.running(ctx); !maps.Equal(before, after) {
		t.Errorf("pods after the programs were installed again: %v, before: %v", after, before)
	}
	_, err = cp.CreateNodes(ctx, controlplane.NodeOptions{Count: 8, First: 8, GPUs: 8, NamePrefix: "common", Labels: map[string]string{"pool": "common"}})
	check(t, err)
	u.untilBound(ctx, "waits", 9)
	disturbed := u.check("", rounds)
	maps.DeleteFunc(statuses, func(of, _ string) bool { return strings.HasPrefix(of, "waits ") }) // it has started
	u.checkStatuses(ctx, statuses)
	stop()
	t.Logf("%d times a program was replaced by that of another version, and both by none: %d gangs of 4 disturbed; %d gangs preempted, whole; %d updates replaced %d pods, each once",
		rounds, disturbed, rounds, rounds, len(u.ended["rolls-0"]))
}

// upgrade is an installation whose programs are replaced by those of another version.
type upgrade struct {
	installation
	leaders map[string]*controlplane.Process // by program

	mu    sync.Mutex
	ended map[string]map[types.UID]*corev1.Pod // guarded by mu; pods that terminated, failed or vanished, by gang
}

// load applies objects in the namespace of the test.
func (u *upgrade) load(files ...string) {
	u.t.Helper()
	for _, file := range files {
		check(u.t, u.cp.ApplyYAML(u.t.Context(), strings.ReplaceAll(file, "NAMESPACE", u.namespace)))
	}
}

// manifests applies what a version has beside the CRDs and the webhooks, which replace points at the process.
func (u *upgrade) manifests(of build) {
	u.t.Helper()
	u.kubectl("apply --server-side -k " + of.manifests + "/scheduler")
	u.kubectl("apply --server-side -f " + of.manifests + "/controller")
}

// replace starts a program of a version beside the one that runs, as a Deployment does, ends that one, and returns when
// the new one leads.
func (u *upgrade) replace(ctx context.Context, program string, of build) {
	u.t.Helper()
	u.times++
	name := fmt.Sprint(program, "-", u.times)
	var process *controlplane.Process
	var err error
	if program == muScheduler {
		config, failed := u.cp.Client().CoreV1().ConfigMaps(controlplane.MusterNamespace).Get(ctx, "muster-scheduler-config", metav1.GetOptions{})
		check(u.t, failed)
		process, err = u.cp.StartMusterScheduler(ctx, controlplane.SchedulerOptions{Name: name, Path: of.bin + "/" + program, Config: []byte(config.Data["config.yaml"]), LeaderElect: true})
	} else {
		process, err = u.cp.StartMusterController(ctx, controlplane.ControllerOptions{Name: name, Path: of.bin + "/" + program, Args: []string{"--leader-elect=true"}})
	}
	if err != nil {
		u.t.Fatal(err)
	}
	leases := u.cp.Client().CoordinationV1().Leases(controlplane.MusterNamespace)
	former := ""
	if old := u.leaders[program]; old != nil && old.Running() {
		lease, err := leases.Get(ctx, program, metav1.GetOptions{})
		check(u.t, err)
		former = *lease.Spec.HolderIdentity
		old.Terminate(10 * time.Second)
	}
	u.leaders[program] = process
	if err := controlplane.Until(ctx, leases, metav1.ListOptions{FieldSelector: "metadata.name=" + program}, func(found []*coordinationv1.Lease) bool {
		return len(found) == 1 && found[0].Spec.HolderIdentity != nil && *found[0].Spec.HolderIdentity != "" && *found[0].Spec.HolderIdentity != former
	}); err != nil {
		u.t.Fatalf("%s of %s does not lead: %v\n%s", program, of.bin, err, process.LogTail(20))
	}
}

// record watches pods, until the function that it returns is called, for those that end.
func (u *upgrade) record(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		last := map[types.UID]*corev1.Pod{}
		_ = controlplane.Until(ctx, u.cp.Client().CoreV1().Pods(u.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
			u.mu.Lock()
			defer u.mu.Unlock()
			now := map[types.UID]*corev1.Pod{}
			for _, pod := range pods {
				now[pod.UID] = pod
				if terminating(pod) || pod.Status.Phase == corev1.PodFailed {
					u.ends(pod)
				}
			}
			for uid, pod := range last {
				if now[uid] == nil {
					u.ends(pod)
				}
			}
			last = now
			return false
		})
	})
	return func() { cancel(); watch.Wait() }
}

// ends notes the end of a pod. u.mu is held.
func (u *upgrade) ends(pod *corev1.Pod) {
	of := pod.Annotations[v2alpha2.PodGroupAnnotation]
	if u.ended[of] == nil {
		u.ended[of] = map[types.UID]*corev1.Pod{}
	}
	u.ended[of][pod.UID] = pod
}

// check returns how many gangs were disturbed, and fails the test if any was. Of the prey its two bound pods end, and
// of the set that is updated each pod once for each update; of gangs that run or wait none does.
func (u *upgrade) check(prey string, updates int) (disturbed int) {
	u.t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	complain := func(format string, args ...any) {
		u.t.Helper()
		u.t.Errorf(format, args...)
		disturbed++
	}
	if n := count(slices.Collect(maps.Values(u.ended[prey])), prey, bound); prey != "" && n != 2 {
		complain("of the 2 pods of %s that ran %d were ended", prey, n)
	}
	times := map[string]int{}
	for _, pod := range u.ended["rolls-0"] {
		times[pod.Labels[v1alpha1.LabelPodIndex]]++
	}
	want := map[string]int{}
	for index := range 6 {
		want[fmt.Sprint(index)] = updates
	}
	if !maps.Equal(times, want) {
		complain("how often the pods of the set were replaced: %v, want %v", times, want)
	}
	for _, of := range []string{"steady", "waits", "pretrain-0"} {
		if n := len(u.ended[of]); n > 0 {
			complain("%d pods of %s have ended", n, of)
		}
	}
	return disturbed
}

// statuses returns what the programs have written about the gangs that run or wait all the time, and about the training
// job: conditions with the time since when it is so, by PodGroup and type, and fields of the job.
func (u *upgrade) statuses(ctx context.Context) map[string]string {
	u.t.Helper()
	told := map[string]string{}
	for _, name := range []string{"steady", "waits", "pretrain-0"} {
		conditions, _, err := unstructured.NestedSlice(u.status(ctx, v2alpha2.SchemeGroupVersion.WithKind("PodGroup"), name), "conditions")
		check(u.t, err)
		for _, c := range conditions {
			condition := c.(map[string]any)
			told[fmt.Sprint(name, " ", condition["type"])] = fmt.Sprint(condition["status"], " since ", condition["lastTransitionTime"])
		}
	}
	job := u.status(ctx, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindPodCliqueSet), "pretrain")
	for _, field := range []string{"phase", "startTime", "restartCount", "runtimeDeadline"} {
		told["pretrain "+field] = fmt.Sprint(job[field])
	}
	return told
}

// status returns the status of an object of the test.
func (u *upgrade) status(ctx context.Context, kind schema.GroupVersionKind, name string) map[string]any {
	u.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	check(u.t, u.Get(ctx, client.ObjectKey{Namespace: u.namespace, Name: name}, o))
	status, _, err := unstructured.NestedMap(o.Object, "status")
	check(u.t, err)
	return status
}

// checkStatuses fails the test if one of the statuses has changed. Another version may have conditions of its own.
func (u *upgrade) checkStatuses(ctx context.Context, before map[string]string) {
	u.t.Helper()
	after := u.statuses(ctx)
	for of, status := range before {
		if after[of] != status {
			u.t.Errorf("%s is %q, was %q", of, after[of], status)
		}
	}
}

// until waits until the pods of the test satisfy done.
func (u *upgrade) until(ctx context.Context, what string, done func([]*corev1.Pod) bool) {
	u.t.Helper()
	limited, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	var last []*corev1.Pod
	if err := controlplane.Until(limited, u.cp.Client().CoreV1().Pods(u.namespace), metav1.ListOptions{},
		func(pods []*corev1.Pod) bool { last = pods; return done(pods) }); err != nil {
		var text strings.Builder
		for _, pod := range last {
			fmt.Fprintf(&text, "%s %s %s terminating: %t\n", pod.Name, pod.Status.Phase, pod.Spec.NodeName, terminating(pod))
		}
		u.t.Fatalf("waiting until %s: %v\n%s", what, err, text.String())
	}
}

// untilBound waits until n pods of a gang, none terminating, are bound. A part of them never is.
func (u *upgrade) untilBound(ctx context.Context, name string, n int) {
	u.t.Helper()
	u.until(ctx, fmt.Sprintf("%d pods of %s are bound", n, name), func(pods []*corev1.Pod) bool {
		return count(pods, name, func(pod *corev1.Pod) bool { return bound(pod) && !terminating(pod) }) == n
	})
}

// running returns the pods that are bound and do not terminate, with their nodes.
func (u *upgrade) running(ctx context.Context) map[types.UID]string {
	u.t.Helper()
	pods, err := u.cp.Client().CoreV1().Pods(u.namespace).List(ctx, metav1.ListOptions{})
	check(u.t, err)
	nodes := map[types.UID]string{}
	for _, pod := range pods.Items {
		if bound(&pod) && !terminating(&pod) {
			nodes[pod.UID] = pod.Spec.NodeName
		}
	}
	return nodes
}

func bound(pod *corev1.Pod) bool       { return pod.Spec.NodeName != "" }
func terminating(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }
func whatever(*corev1.Pod) bool        { return true }

// count returns how many pods of a gang are so.
func count(pods []*corev1.Pod, name string, so func(*corev1.Pod) bool) int {
	n := 0
	for _, pod := range pods {
		if pod.Annotations[v2alpha2.PodGroupAnnotation] == name && so(pod) {
			n++
		}
	}
	return n
}

// gang returns a Job of pods of 8 GPUs and its PodGroup. Its pods need some seconds to end.
func gang(name, pool string, pods int, class string) string {
	return fmt.Sprintf(`
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: %[1]s, namespace: NAMESPACE}
spec: {minMember: %[3]d}
---
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s, namespace: NAMESPACE}
spec:
  completions: %[3]d
  parallelism: %[3]d
  completionMode: Indexed
  backoffLimitPerIndex: 4
  maxFailedIndexes: 0
  podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}
  template:
    metadata: {annotations: {pod-group-name: %[1]s, %[5]s: 8s}}
    spec:
      schedulerName: muster-scheduler
      priorityClassName: %[4]q
      restartPolicy: Never
      nodeSelector: {pool: %[2]s}
      containers: [{name: main, image: "registry.example/main:1", resources: {limits: {nvidia.com/gpu: 8}}}]
`, name, pool, pods, class, controlplane.LingerAnnotation)
}

func webImage(version int) string { return fmt.Sprint("registry.example/web:", version) }

// rolling returns a PodCliqueSet of six pods that need two seconds each to be replaced.
func rolling(version int) string {
	return fmt.Sprintf(`
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: rolls, namespace: NAMESPACE}
spec:
  replicas: 1
  template:
    cliques:
    - name: web
      annotations: {%s: 1s, %s: 1s}
      spec:
        replicas: 6
        minAvailable: 4
        podSpec: {containers: [{name: main, image: %q}]}
`, controlplane.StartAfterAnnotation, controlplane.LingerAnnotation, webImage(version))
}

// training is a job of a launcher and two workers of 8 GPUs.
const training = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: pretrain, namespace: NAMESPACE}
spec:
  replicas: 1
  workloadType: Training
  trainingSpec: {maxRuntime: 24h, maxRestarts: 1}
  template:
    cliques:
    - name: launcher
      spec: {replicas: 1, podSpec: {containers: [{name: main, image: "registry.example/launcher:1"}]}}
    - name: worker
      spec:
        replicas: 2
        podSpec:
          nodeSelector: {pool: common}
          containers: [{name: main, image: "registry.example/worker:1", resources: {limits: {nvidia.com/gpu: 8}}}]
`
