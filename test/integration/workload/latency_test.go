// SPDX-License-Identifier: Apache-2.0

//go:build long

package workload

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// busy is a set whose pods are created and started as fast as the machine can.
const (
	busyReplicas, busyPods = 300, 2
	busyNodes              = busyReplicas * busyPods / 8
)

// perSecond is how many other pods are created in a second: somewhat more than the 100 that are to start.
const perSecond = 110

// farAbove is a bound on delays for a machine with much other load. The targets, for a machine without other load: a
// first status within 2 s, a changed availability or breach within 1 s, counts within 5 s.
const farAbove = 10 * time.Second

// startBusy creates the busy set and waits until 50 of its pods exist.
func (w *world) startBusy() {
	w.t.Helper()
	w.apply(fmt.Sprintf(`
metadata: {name: busy}
spec:
  replicas: %d
  template:
    cliques:
    - name: w
      spec:
        replicas: %d
        podSpec: {containers: [{name: main, image: "registry.example/main:1", resources: {limits: {nvidia.com/gpu: 1}}}]}
`, busyReplicas, busyPods))
	w.untilLabelled("the first pods of the busy set exist", v1alpha1.LabelPartOf+"=busy", func(pods []*corev1.Pod) bool { return len(pods) >= 50 })
}

// startSteadily creates this number of pods a second, bound to a node already, until the test ends: more than a control
// plane on two CPUs can create, schedule and start from PodCliques. They have the labels of a PodClique's pods, so that
// muster-controller receives every event about them.
func (w *world) startSteadily(perSecond int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	creating := sync.WaitGroup{}
	w.t.Cleanup(func() {
		cancel()
		creating.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		// The API server deletes a collection one by one, and ends a request after a minute: not enough for all on a
		// busy machine.
		pods := cp.Client().CoreV1().Pods(w.namespace)
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelPartOf + "=busy"})
		w.must(err, "listing the other pods")
		w.must(controlplane.InParallel(len(list.Items), 32, func(i int) error {
			return client.IgnoreNotFound(pods.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{}))
		}), "deleting the other pods")
	})
	slots := make(chan struct{}, 32)
	creating.Go(func() {
		ticks := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticks.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			slots <- struct{}{}
			creating.Go(func() {
				defer func() { <-slots }()
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("busy-%d", i), Labels: map[string]string{
						v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue, v1alpha1.LabelPartOf: "busy", v1alpha1.LabelPodClique: "busy-0-w"}},
					Spec: corev1.PodSpec{NodeName: w.nodes[i%len(w.nodes)], Containers: []corev1.Container{{Name: "main", Image: "registry.example/main:1"}}},
				}
				if _, err := cp.Client().CoreV1().Pods(w.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
					w.t.Errorf("creating another pod: %v", err)
				}
			})
		}
	})
	w.untilLabelled("100 other pods are ready", v1alpha1.LabelPartOf+"=busy", func(pods []*corev1.Pod) bool {
		return len(slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !controlplane.PodReady(p) })) >= 100
	})
}

// busyReady returns how many pods of the busy set are ready.
func (w *world) busyReady() (n int) {
	w.t.Helper()
	for _, p := range w.pods() {
		if p.Labels[v1alpha1.LabelPartOf] == "busy" && controlplane.PodReady(&p) {
			n++
		}
	}
	return n
}

// untilLabelled waits until the pods with these labels are as wanted.
func (w *world) untilLabelled(what, labels string, done func([]*corev1.Pod) bool) {
	w.t.Helper()
	w.must(controlplane.Until(w.ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{LabelSelector: labels}, done), "waiting until "+what)
}

// The status of a small set is up to date while hundreds of pods of another one are created and started.
func TestStatusBesideManyPods(t *testing.T) {
	w := newWorld(t, busyNodes+1)
	w.startBusy()

	w.measureStatus()
	if n := w.busyReady(); n == busyReplicas*busyPods {
		t.Error("all other pods were ready before the status: it may have waited for them")
	}
}

// The same while 100 other pods a second start.
func TestStatusBesideAHundredPodsASecond(t *testing.T) {
	w := newWorld(t, 50)
	w.startSteadily(perSecond)

	w.measureStatus()
}

// measureStatus creates a set of 4 pods, waits until all of them are ready, and logs how far its status was behind.
func (w *world) measureStatus() {
	w.t.Helper()
	before := w.busyReady()
	began := time.Now()
	w.apply(`
metadata: {name: calm}
spec:
  replicas: 1
  template:
    cliques:
    - name: a
      spec:
        replicas: 4
        minAvailable: 1
        podSpec: {containers: [{name: main, image: "registry.example/main:1", resources: {limits: {nvidia.com/gpu: 1}}}]}
`)
	status := func(name string, done func(o *unstructured.Unstructured) bool) func([]*unstructured.Unstructured) bool {
		return func(objects []*unstructured.Unstructured) bool {
			for _, o := range objects {
				if o.GetName() == name && done(o) {
					return true
				}
			}
			return false
		}
	}
	exists := func(*unstructured.Unstructured) bool { return true }
	observed := func(o *unstructured.Unstructured) bool { return number(o, "observedGeneration") == 1 }
	w.until("the PodClique exists", cliques, status("calm-0-a", exists))
	made := time.Now()
	w.until("the PodClique has a status", cliques, status("calm-0-a", observed))
	first := time.Since(made)
	ready := func(n int) time.Time {
		w.untilLabelled("pods are ready", v1alpha1.LabelPodClique+"=calm-0-a", func(pods []*corev1.Pod) bool {
			return len(slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !controlplane.PodReady(p) })) >= n
		})
		return time.Now()
	}
	one := ready(1)
	w.until("the PodClique is Available", cliques, status("calm-0-a", func(o *unstructured.Unstructured) bool {
		return conditionOf(o, v1alpha1.ConditionAvailable, "status") == "True"
	}))
	available := time.Since(one)
	w.untilAvailable("calm")
	setAvailable := time.Since(one)
	all := ready(4)
	w.until("the PodClique counts four ready pods", cliques, status("calm-0-a", func(o *unstructured.Unstructured) bool { return number(o, "readyReplicas") == 4 }))
	counted := time.Since(all)

	after, took := w.busyReady(), time.Since(began)
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	w.t.Logf("PodClique after %s, its first status %s later; from the first ready pod to PodClique Available %s, to PodCliqueSet Available %s; from the last ready pod to four counted %s; "+
		"meanwhile %.0f other pods a second started", round(made.Sub(began)), round(first), round(available), round(setAvailable), round(counted), float64(after-before)/took.Seconds())
	if slowest := max(first, available, setAvailable, counted); slowest > farAbove {
		w.t.Errorf("a status was %s behind", slowest)
	}
}

// A breach is reported within 2 s while hundreds of pods of another set are created and started, as fast as the machine
// can.
func TestBreachBesideManyPods(t *testing.T) {
	w := newWorld(t, 1)
	w.watched("10m")
	w.addNodes(busyNodes)
	w.startBusy()

	w.measureBreach()
	if n := w.busyReady(); n == busyReplicas*busyPods {
		t.Error("all other pods were ready before the breach showed: it may have waited for them")
	}
}

// The same while 100 other pods a second start.
func TestBreachBesideAHundredPodsASecond(t *testing.T) {
	w := newWorld(t, 1)
	w.watched("10m")
	w.startSteadily(perSecond)

	w.measureBreach()
}

// measureBreach makes a pod of a minimum unready, and logs the time until the breach is reported.
func (w *world) measureBreach() {
	w.t.Helper()
	before, began := w.busyReady(), time.Now()
	w.ready("chat-0-router", false)
	w.untilLabelled("the pod is not ready", v1alpha1.LabelPodClique+"=chat-0-router", func(pods []*corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return !controlplane.PodReady(p) })
	})
	unready := time.Now()
	w.untilBreached("chat-0-router")
	seen := time.Since(unready)
	after, took := w.busyReady(), time.Since(began)
	w.t.Logf("the breach showed %s after the pod was not ready; meanwhile %.0f pods a second started", seen.Round(10*time.Millisecond), float64(after-before)/took.Seconds())
	if seen > farAbove {
		w.t.Errorf("the breach showed after %s", seen)
	}
}
