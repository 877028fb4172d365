// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/muster-project/muster/test/controlplane"
)

// A worker that a user deletes exits with 0 on SIGTERM, on a node whose clock is behind, so that it says to have exited
// before it was deleted: it has not succeeded, and the job is restarted.
func TestDeletedWorkerOnANodeThatIsBehind(t *testing.T) {
	for name, tc := range map[string]struct {
		clock  time.Duration
		linger string
	}{
		"3s behind":                 {-3 * time.Second, "0s"},
		"1s behind":                 {-time.Second, "0s"},
		"3s behind and later":       {-3 * time.Second, "500ms"},
		"a day behind":              {-24 * time.Hour, "0s"},
		"the same clock":            {0, "0s"},
		"5 minutes ahead and later": {5 * time.Minute, "500ms"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			cp.Kubelets().SetClock(w.nodes[0], tc.clock)
			set := w.parse(fmt.Sprintf(trainingJob, "  trainingSpec: {maxRestarts: 1}"))
			for _, c := range set.Spec.Template.Cliques {
				c.Annotations = map[string]string{controlplane.StopCodeAnnotation: "0", controlplane.LingerAnnotation: tc.linger}
			}
			w.must(w.client.Create(w.ctx, set), "creating the job")
			w.untilJob("runs", "Running", 0)
			first := w.untilRunning(nil)
			w.delete(podsKind, w.podOn("job-0-ring-0-worker-1"))
			succeeded := ""
			w.until("the job is restarted, or takes the worker for done", cliques, func(objects []*unstructured.Unstructured) bool {
				for _, o := range objects {
					if succeeded, _, _ = unstructured.NestedString(o.Object, "status", "succeededIndices"); succeeded != "" {
						return true
					}
				}
				return number(w.only(sets), "restartCount") == 1
			})
			if succeeded != "" {
				t.Fatal("the worker that was deleted counts as succeeded")
			}
			w.untilJob("it is restarted", "Running", 1)
			w.untilRunning(first)
			w.finish()
			w.untilJob("it has succeeded", "Succeeded", 1)
		})
	}
}

// A pod above the minimum fails on a node whose clock is ahead, or behind: it is replaced at once, whatever the time of
// its end.
func TestFailedPodOnANodeOfAnotherTime(t *testing.T) {
	for clock, fast := range map[string]time.Duration{"5 minutes ahead": 5 * time.Minute, "a day ahead": 24 * time.Hour, "5 minutes behind": -5 * time.Minute} {
		for kind, text := range map[string]string{
			"service": `
metadata: {name: s}
spec:
  replicas: 1
  template:
    cliques:
    - {name: web, spec: {replicas: 3, minAvailable: 1, podSpec: {restartPolicy: Never}}}
`,
			"job": `
metadata: {name: s}
spec:
  workloadType: Training
  replicas: 1
  trainingSpec: {maxRestarts: 0}
  template:
    cliques:
    - {name: web, spec: {replicas: 3, minAvailable: 1, podSpec: {}}}
`,
		} {
			t.Run(kind+" "+clock, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, 1)
				cp.Kubelets().SetClock(w.nodes[0], fast)
				w.apply(text)
				w.untilPods(map[string]int{"s-0-web": 3}, true)
				failed := w.hosts()["s-0-web-2"]
				began := time.Now()
				w.must(cp.ExitPod(w.ctx, w.namespace, w.podOn("s-0-web-2"), 1), "ending a pod")
				w.untilPodsAre("it is replaced", func(pods []*corev1.Pod) bool {
					return slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
						return p.Spec.Hostname == "s-0-web-2" && p.UID != failed && controlplane.PodReady(p)
					})
				})
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it was replaced after %s", took)
				}
			})
		}
	}
}

// A node dies under a job with delay 0 and grace 0, whose pods tolerate that for 5 minutes, as all do: the job restarts on
// another node as soon as the node is marked as unreachable and the grace period is over. Until then, and after it, its pods on
// the dead node say that they run.
func TestJobOnANodeThatDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	set := w.parse(fmt.Sprintf(trainingJob, "  trainingSpec: {maxRestarts: 1}"))
	set.Spec.Template.TerminationDelay, set.Spec.Template.UnreachableGrace = &metav1.Duration{}, &metav1.Duration{}
	w.must(w.client.Create(w.ctx, set), "creating the job")
	w.untilJob("runs", "Running", 0)
	first, dead := w.untilRunning(nil), w.nodes[0]
	w.addNodes(1)
	w.must(cp.LoseNode(w.ctx, dead), "losing the node")
	began := time.Now()
	second := w.untilReplacedElsewhere(first, dead, "job-0-")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it runs elsewhere after %s", took)
	} else {
		t.Logf("it runs elsewhere after %s", took)
	}
	w.untilJob("the restart is not counted", "Running", 0)
	for _, p := range w.pods() {
		if p.Spec.NodeName == dead && p.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s of the dead node is %s", p.Name, p.Status.Phase)
		}
	}
	if message := w.attemptOf("job").Message; !strings.Contains(message, dead) {
		t.Errorf("restarted because: %q", message)
	}
	w.must(cp.RestoreNode(w.ctx, dead), "restoring the node")
	w.untilHosts(second)
	w.finish()
	w.untilJob("it has succeeded", "Succeeded", 0)
}

// A job is deleted and applied again while its pods linger, beyond their grace period and without room for others: it is
// Pending, without a startTime and a deadline, for as long as that takes, and has all of its time when it runs.
func TestJobAppliedAgainWhileItsPodsLinger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	set := w.parse(fmt.Sprintf(trainingJob, "  trainingSpec: {maxRuntime: 8s}"))
	for _, c := range set.Spec.Template.Cliques {
		gpus := map[string]int64{"launcher": 4, "worker": 2}[c.Name]
		c.Spec.PodSpec.Containers[0].Resources.Limits[controlplane.GPUResource] = *resource.NewQuantity(gpus, resource.DecimalSI)
		c.Spec.PodSpec.TerminationGracePeriodSeconds = ptr.To[int64](3)
	}
	w.must(w.client.Create(w.ctx, set.DeepCopy()), "creating the job")
	w.untilJob("runs", "Running", 0)
	first := w.untilRunning(nil)
	lingering := w.hold("job-0")
	w.delete(sets, "job")
	w.until("the job is gone, or going", sets, func(objects []*unstructured.Unstructured) bool { return len(objects) == 0 })
	w.must(w.client.Create(w.ctx, set.DeepCopy()), "applying the job again")

	ctx, cancel := context.WithTimeout(w.ctx, 12*time.Second) // longer than maxRuntime and the grace period
	defer cancel()
	if err := controlplane.Until(ctx, w.dynamic.Resource(sets).Namespace(w.namespace), metav1.ListOptions{}, func(objects []*unstructured.Unstructured) bool {
		for _, o := range objects {
			phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
			for _, field := range []string{"startTime", "runtimeDeadline", "completionTime"} {
				if at, _, _ := unstructured.NestedString(o.Object, "status", field); at != "" {
					t.Errorf("%s %s, phase %s, while no pod of it has run", field, at, phase)
				}
			}
			if phase != "" && phase != "Pending" {
				t.Errorf("phase %s", phase)
			}
		}
		return t.Failed()
	}); err == nil {
		t.FailNow()
	}
	w.release(lingering)
	w.untilJob("runs", "Running", 0)
	w.untilRunning(first)
	w.finish()
	w.untilJob("it has succeeded", "Succeeded", 0)
}
