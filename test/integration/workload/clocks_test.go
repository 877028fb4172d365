// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
