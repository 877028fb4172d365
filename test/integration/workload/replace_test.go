// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
)

// eightGPUs is a set that fills a node of 8 GPUs; 5 of its pods are its minimum. %s: name, priority class.
const eightGPUs = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: %s
spec:
  replicas: 1
  template:
    priorityClassName: %q
    cliques:
    - name: router
      spec: {roleName: router, replicas: 2, podSpec: {containers: [{name: main, image: registry.example/main:1, resources: {limits: {nvidia.com/gpu: 1}}}]}}
    - name: leader
      spec: {roleName: leader, replicas: 1, podSpec: {containers: [{name: main, image: registry.example/main:1, resources: {limits: {nvidia.com/gpu: 1}}}]}}
    - name: worker
      spec: {roleName: worker, replicas: 2, podSpec: {containers: [{name: main, image: registry.example/main:1, resources: {limits: {nvidia.com/gpu: 1}}}]}}
    podCliqueScalingGroups:
    - {name: model, cliqueNames: [leader, worker], replicas: 2, minAvailable: 1}
`

// TestAUnitIsReplacedWhole deletes PodCliques of a set that fills its node, while its pods terminate slowly and another
// gang waits for the room. In the end the set is available or has no pod bound, and no two pods ever share a host name.
func TestAUnitIsReplacedWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		prefix string // of the PodCliques that are deleted
		rival  int32  // its priority above the set's; -1: there is none
	}{
		"set replica beside a rival of equal priority":  {"chat-0-", 0},
		"set replica beside a rival of higher priority": {"chat-0-", 1000},
		"group replica beside one of higher priority":   {"chat-0-model-1-", 1000},
		"one PodClique beside one of higher priority":   {"chat-0-router", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.apply(fmt.Sprintf(eightGPUs, "chat", ""))
			w.untilAvailable("chat")
			w.untilBoundAre("all of it", map[string]int{"chat-0": 8})
			if tc.rival >= 0 {
				w.rival(tc.rival)
			}

			ending := w.hold("chat-0")
			for _, clique := range w.names(cliques) {
				if strings.HasPrefix(clique, tc.prefix) {
					w.delete(cliques, clique)
				}
			}
			// Only terminating pods of these PodCliques exist, until they are gone.
			gone := func(pod *corev1.Pod) bool { return strings.HasPrefix(pod.Labels[v1alpha1.LabelPodClique], tc.prefix) }
			w.untilPodsAre("the pods of the deleted PodCliques end", func(pods []*corev1.Pod) bool {
				return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return gone(p) && p.DeletionTimestamp == nil })
			})
			w.release(ending)

			whole, rival := map[string]int{"chat-0": 8}, map[string]int{"rival-0": 8}
			w.untilPodsAre("one of the two is whole, and the other holds nothing", func(pods []*corev1.Pod) bool {
				bound := boundPods(pods)
				return maps.Equal(bound, whole) || tc.prefix == "chat-0-" && maps.Equal(bound, rival)
			})
		})
	}
}

// rival applies a set of this priority that needs the room of chat, and waits until the scheduler has refused it.
func (w *world) rival(priority int32) {
	w.t.Helper()
	never := corev1.PreemptNever // otherwise it ends chat
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Value: priority, PreemptionPolicy: &never}
	_, err := cp.Client().SchedulingV1().PriorityClasses().Create(w.ctx, class, metav1.CreateOptions{})
	w.must(err, "creating a priority class")
	w.apply(fmt.Sprintf(eightGPUs, "rival", class.Name))
	w.untilCondition(podGroups, "rival-0", v2alpha2.ConditionSatisfied, "False")
}

// boundPods returns the pods that have a node, by PodGroup.
func boundPods(pods []*corev1.Pod) map[string]int {
	bound := map[string]int{}
	for _, p := range pods {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			bound[p.Annotations[v2alpha2.PodGroupAnnotation]]++
		}
	}
	return bound
}

func (w *world) untilBoundAre(what string, want map[string]int) {
	w.t.Helper()
	w.untilPodsAre(what+" is bound", func(pods []*corev1.Pod) bool { return maps.Equal(boundPods(pods), want) })
}

// untilPodsAre waits until the pods of the namespace are as wanted, and fails the test if two of them ever share a host
// name.
func (w *world) untilPodsAre(what string, done func([]*corev1.Pod) bool) {
	w.t.Helper()
	ctx, cancel := w.patient()
	defer cancel()
	last := ""
	if err := controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		hosts := map[string]string{}
		for _, p := range pods {
			if other := hosts[p.Spec.Hostname]; other != "" {
				w.t.Errorf("pods %s and %s share the host name %s", other, p.Name, p.Spec.Hostname)
			}
			hosts[p.Spec.Hostname] = p.Name
		}
		last = fmt.Sprint(boundPods(pods))
		return done(pods)
	}); err != nil {
		w.t.Fatalf("waiting until %s: %v; bound pods: %s", what, err, last)
	}
}

// hold keeps the pods of a PodGroup terminating, with running containers, until they are released. It returns their
// names.
func (w *world) hold(podGroup string) []string {
	w.t.Helper()
	var names []string
	for _, p := range w.pods() {
		if p.Annotations[v2alpha2.PodGroupAnnotation] == podGroup {
			w.must(w.stick(p.Name, true), "holding pod "+p.Name)
			names = append(names, p.Name)
		}
	}
	return names
}

// release lets pods end that were held.
func (w *world) release(names []string) {
	w.t.Helper()
	for _, name := range names {
		w.must(w.stick(name, false), "releasing pod "+name)
	}
}

func (w *world) stick(pod string, stuck bool) error {
	return cp.AnnotatePod(w.ctx, w.namespace, pod, map[string]string{controlplane.StuckAnnotation: fmt.Sprint(stuck)})
}
