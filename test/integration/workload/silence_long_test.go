// SPDX-License-Identifier: Apache-2.0

//go:build long

package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// wholeNodes is a set of pods that need a node each. Its silent nodes count after two seconds, and Kubernetes deletes
// its pods after 20. %[1]s: the name, %[2]s: more lines of the spec, %[3]s: of the template, %[4]d: the number of pods.
const wholeNodes = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: %[1]s
spec:
  replicas: 1
%[2]s
  template:
    unreachableGrace: 2s
%[3]s
    cliques:
    - name: w
      spec:
        replicas: %[4]d
        podSpec:
          terminationGracePeriodSeconds: 1
          tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 20}]
          containers: [{name: main, image: "registry.example/main:1", resources: {limits: {nvidia.com/gpu: 8}}}]
`

// The kubelets of all 24 nodes stop reporting for longer than every delay, while kube-controller-manager, with leader
// election, marks and taints the nodes, and is replaced by another leader. No pod of a job or of a service ends, no job
// fails, and no restart is used.
func TestAllKubeletsAreSilent(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	ownPlane(t, ctx, controlplane.Options{WithControllerManager: true, WithKubelets: true, NodeLease: 8 * time.Second,
		ControllerManagerArgs: []string{"--leader-elect=true", "--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s"}})
	if err := startMuster(cp, ctx); err != nil {
		t.Fatal(err)
	}
	w := newWorldFor(t, 24, 8*time.Minute)
	training := func(more string) string { return "  workloadType: Training" + more }
	quiet := []string{"default", "three", "chat"}
	w.apply(fmt.Sprintf(wholeNodes, "default", training(""), "", 7))
	w.apply(fmt.Sprintf(wholeNodes, "three", training("\n  trainingSpec: {maxRestarts: 3}"), "", 7))
	w.apply(fmt.Sprintf(wholeNodes, "chat", "", "    terminationDelay: 3s", 7))
	w.apply(fmt.Sprintf(wholeNodes, "control", "", "    terminationDelay: 30s", 3))
	for _, name := range append(slices.Clone(quiet), "control") {
		w.untilAvailable(name)
	}
	ended := w.watchEnds(quiet...)

	for _, node := range w.nodes {
		cp.Kubelets().Kill(node)
	}
	silent := time.Now()
	for _, name := range quiet {
		w.untilTold(name, "24 of 24 nodes do not answer; waiting")
	}
	t.Logf("told %s after the kubelets stopped", time.Since(silent).Round(time.Second))
	w.must(cp.Restart(w.ctx, cp.ControllerManager), "replacing kube-controller-manager")
	// What a user deletes is missing for certain: the end of its set shows that longer than every delay has passed.
	for _, pod := range w.pods() {
		if strings.HasPrefix(pod.Name, "control-0-w") {
			w.must(w.client.Delete(w.ctx, &pod), "deleting "+pod.Name)
			break
		}
	}
	w.untilTerminated("control")
	t.Logf("the nodes answer again after %s", time.Since(silent).Round(time.Second))
	for _, node := range w.nodes {
		cp.Kubelets().Revive(node)
	}
	for _, name := range append(slices.Clone(quiet), "control") {
		w.untilAvailable(name)
	}
	if gone := ended(); len(gone) > 0 {
		t.Errorf("pods ended: %v", gone)
	}
	for _, name := range quiet {
		if a := w.attemptOf(name); a.Attempt != 0 {
			t.Errorf("%s: attempt %+v", name, a)
		}
	}
}

// watchEnds watches the pods of some sets, and returns a function that returns those that have ended, are being
// deleted, or were not there in the beginning, by name.
func (w *world) watchEnds(names ...string) (ended func() []string) {
	w.t.Helper()
	isOf := func(p *corev1.Pod) bool { return slices.Contains(names, p.Labels[v1alpha1.LabelPartOf]) }
	first, gone := map[types.UID]bool{}, map[string]bool{}
	for _, p := range w.pods() {
		first[p.UID] = isOf(&p)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		_ = controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
			there := map[types.UID]bool{}
			for _, p := range pods {
				there[p.UID] = true
				if isOf(p) && (!first[p.UID] || p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning) {
					gone[p.Name] = true
				}
			}
			for uid, counts := range first {
				if counts && !there[uid] {
					gone[string(uid)] = true
				}
			}
			return false
		})
	})
	return func() []string {
		cancel()
		watching.Wait()
		return slices.Sorted(maps.Keys(gone))
	}
}

// untilTerminated waits until a replica of a set has a new attempt.
func (w *world) untilTerminated(name string) {
	w.t.Helper()
	w.until(name+" is terminated", sets, func(objects []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			attempts, _, _ := unstructured.NestedSlice(o.Object, "status", "replicaAttempts")
			return o.GetName() == name && len(attempts) > 0
		})
	})
}

// untilTold waits until the condition Available of a set contains a text, and returns its message.
func (w *world) untilTold(name, text string) (told string) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s says %q", name, text), sets, func(objects []*unstructured.Unstructured) bool {
		for _, o := range objects {
			if o.GetName() == name {
				told = conditionOf(o, v1alpha1.ConditionAvailable, "message")
			}
		}
		return strings.Contains(told, text)
	})
	return told
}

// muster-scheduler is killed, and a pod of a running service is deleted: nothing ends for longer than the delay, and
// the status names the Lease and since when it has not been renewed. When the scheduler runs again, the pod is placed.
func TestAStoppedScheduler(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	ownPlane(t, ctx, controlplane.Options{WithControllerManager: true, WithKubelets: true})
	cp.Kubelets().SetProgram("", usual)
	var err error
	if controller, err = cp.StartMusterController(ctx, controlplane.ControllerOptions{}); err != nil {
		t.Fatal(err)
	}
	if scheduler, err = cp.StartMusterScheduler(ctx, controlplane.SchedulerOptions{LeaderElect: true}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 8)
	for name, replicas := range map[string]int{"chat": 3, "control": 2} {
		delay := map[string]string{"chat": "3s", "control": "15s"}[name]
		w.apply(fmt.Sprintf(wholeNodes, name, "", "    terminationDelay: "+delay, replicas))
		w.untilAvailable(name)
	}
	scheduler.Kill()
	lost := ""
	for _, pod := range w.pods() {
		if pod.Labels[v1alpha1.LabelPartOf] == "chat" {
			lost = pod.Name
		}
	}
	w.must(cp.Client().CoreV1().Pods(w.namespace).Delete(w.ctx, lost, metav1.DeleteOptions{}), "deleting "+lost)
	w.untilPodsAre("the pod is created again", func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == "" })
	})
	before := w.hosts()
	told := w.untilTold("chat", "muster-scheduler has not answered since ")
	if !strings.Contains(told, "(Lease muster-system/muster-scheduler)") {
		t.Errorf("told: %s", told)
	}
	w.ready("control-0-w", false) // its end shows that longer than the delay of chat has passed
	w.untilTerminated("control")
	w.must(cp.Restart(w.ctx, scheduler), "starting muster-scheduler again")
	w.untilAvailable("chat")
	w.untilAvailable("control")
	after := w.hosts()
	for host, uid := range before {
		if strings.HasPrefix(host, "chat-") && after[host] != uid {
			t.Errorf("pod %s was replaced", host)
		}
	}
	if a := w.attemptOf("chat"); a.Attempt != 0 {
		t.Errorf("attempt %+v", a)
	}
}
