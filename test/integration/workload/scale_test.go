// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/test/controlplane"
)

// leaf returns minMember of a leaf of a PodGroup, -1 if the PodGroup does not list it.
func leaf(podGroup *unstructured.Unstructured, name string) int64 {
	nodes, _, _ := unstructured.NestedSlice(podGroup.Object, "spec", "subGroups")
	for _, n := range nodes {
		if m, ok := n.(map[string]any); ok && m["name"] == name {
			minimum, _ := m["minMember"].(int64)
			return minimum
		}
	}
	return -1
}

func (w *world) untilLeaf(podGroup, name string, minimum int64) {
	w.t.Helper()
	w.until("the leaf "+name+" is as it should be", podGroups, func(objects []*unstructured.Unstructured) bool {
		for _, o := range objects {
			if o.GetName() == podGroup && leaf(o, name) == minimum {
				return true
			}
		}
		return false
	})
}

// Scaling out, in, to zero and back at each of the three levels.
func TestScalingAtEachLevel(t *testing.T) {
	w := newWorld(t, 8)
	w.apply(service)
	w.untilAvailable("llm")
	want := servicePods("llm")
	w.untilPods(want, true)

	// A clique: surplus only, the minimum stays 1.
	w.scale(cliques, "llm-0-frontend", 5)
	want["llm-0-frontend"] = 5
	w.untilPods(want, true)
	w.untilLeaf("llm-0", "llm-0-frontend", 1)
	w.scale(cliques, "llm-0-frontend", 1)
	want["llm-0-frontend"] = 1
	w.untilPods(want, true)

	// A scaling group gets and loses whole replicas, the highest index first.
	w.scale(groups, "llm-0-decode", 3)
	want["llm-0-decode-2-dleader"], want["llm-0-decode-2-dworker"] = 1, 3
	w.untilPods(want, true)
	w.untilLeaf("llm-0", "llm-0-decode-2-dworker", 2)
	w.scale(groups, "llm-0-decode", 1)
	for _, gone := range []string{"1-dleader", "1-dworker", "2-dleader", "2-dworker"} {
		delete(want, "llm-0-decode-"+gone)
	}
	w.untilPods(want, true)
	w.untilLeaf("llm-0", "llm-0-decode-1-dworker", -1)
	w.until("the PodCliques of removed replicas are gone", cliques, func(objects []*unstructured.Unstructured) bool { return len(objects) == 5 })

	// A group to zero and back: its node leaves the tree. Its minAvailable is unset.
	w.scale(groups, "llm-0-prefill", 0)
	w.untilLeaf("llm-0", "llm-0-prefill", -1)
	without := maps.Clone(want)
	delete(without, "llm-0-prefill-0-pworker")
	delete(without, "llm-0-prefill-1-pworker")
	w.untilPods(without, true)
	w.untilAvailable("llm")
	w.scale(groups, "llm-0-prefill", 2)
	w.untilPods(want, true)

	// The set.
	w.scale(sets, "llm", 2)
	both := maps.Clone(want)
	for clique, n := range servicePods("llm") {
		both[strings.Replace(clique, "llm-0-", "llm-1-", 1)] = n
	}
	w.untilPods(both, true)
	w.untilNames(podGroups, "llm-0", "llm-1")
	w.untilNames(services, "llm-0", "llm-1")
	w.scale(sets, "llm", 1)
	w.untilPods(want, true)
	w.untilNames(podGroups, "llm-0")
	w.untilNames(services, "llm-0")
	w.untilNames(hpas, "llm-0-decode")
	w.scale(sets, "llm", 0)
	w.untilPods(map[string]int{}, true)
	w.untilNames(podGroups)
	w.untilNames(groups)
	w.untilNames(cliques)
	w.untilNames(hpas)
	w.scale(sets, "llm", 1)
	w.untilPods(servicePods("llm"), true) // the scale is deleted together with the object
	w.checkIndices()
	w.delete(sets, "llm")
	w.untilGone()
}

// Capacity is short and then added: first the minimum of the tree starts as a whole, and with the remaining capacity
// whole surplus replicas before single pods. No unit below its own minimum is ever bound, at any of the three levels.
func TestMinimumBeforeSurplus(t *testing.T) {
	w := newWorld(t, 1)
	stop := w.watchMinimums()
	w.apply(service)
	w.untilPods(servicePods("llm"), false)

	// 8 GPUs take the minimum, one replica of each group (4 + 3), and the third worker of that decode replica.
	either := func(bound map[string]int, a, b string, n int) bool {
		return bound[a] == n && bound[b] == 0 || bound[a] == 0 && bound[b] == n
	}
	w.untilBound(func(bound map[string]int) bool {
		return bound["llm-0-frontend"] == 2 &&
			either(bound, "llm-0-prefill-0-pworker", "llm-0-prefill-1-pworker", 2) &&
			either(bound, "llm-0-decode-0-dleader", "llm-0-decode-1-dleader", 1) &&
			either(bound, "llm-0-decode-0-dworker", "llm-0-decode-1-dworker", 3)
	})
	w.untilAvailable("llm") // the minimum is enough

	// 8 more take the surplus replicas, whole.
	w.addNodes(1)
	want := servicePods("llm")
	w.untilPods(want, true)

	// Out at each level without room: the pods exist, none is bound, and running pods are not affected.
	w.scale(groups, "llm-0-decode", 3)
	w.scale(sets, "llm", 2)
	more := maps.Clone(want)
	more["llm-0-decode-2-dleader"], more["llm-0-decode-2-dworker"] = 1, 3
	for clique, n := range servicePods("llm") {
		more[strings.Replace(clique, "llm-0-", "llm-1-", 1)] = n
	}
	w.untilPods(more, false)
	for _, p := range w.pods() {
		clique := p.Labels[v1alpha1.LabelPodClique]
		if bound := p.Spec.NodeName != ""; bound != (want[clique] > 0) {
			t.Errorf("pod %s of %s is bound: %t", p.Name, clique, bound)
		}
	}
	w.until("one replica of the set is available", sets, func(objects []*unstructured.Unstructured) bool {
		return len(objects) == 1 && number(objects[0], "availableReplicas") == 1 && conditionOf(objects[0], v1alpha1.ConditionAvailable, "status") == "False"
	})

	// In again before there is room, and then room for all the rest.
	w.scale(groups, "llm-0-decode", 2)
	delete(more, "llm-0-decode-2-dleader")
	delete(more, "llm-0-decode-2-dworker")
	w.addNodes(2)
	w.untilPods(more, true)
	w.untilAvailable("llm")
	stop()
}

// watchMinimums fails the test if a group replica of service is bound below the minimum of its cliques for longer than
// its bindings take. The returned function ends the watch.
func (w *world) watchMinimums() (stop func()) {
	const binding = 10 * time.Second
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		since := map[string]time.Time{}
		_ = controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
			bound := map[string]int{}
			replicas := map[string]bool{}
			for _, p := range pods {
				if group := p.Labels[v1alpha1.LabelPodCliqueScalingGroup]; group != "" && p.DeletionTimestamp == nil {
					replica := group + "-" + p.Labels[v1alpha1.LabelPodCliqueScalingGroupReplicaIndex]
					replicas[replica] = true
					if p.Spec.NodeName != "" {
						bound[p.Labels[v1alpha1.LabelPodClique]]++
					}
				}
			}
			for replica := range replicas {
				minimums := map[string]int{replica + "-dleader": 1, replica + "-dworker": 2}
				if strings.Contains(replica, "prefill") {
					minimums = map[string]int{replica + "-pworker": 2}
				}
				some, all := false, true
				for clique, n := range minimums {
					some, all = some || bound[clique] > 0, all && bound[clique] >= n
				}
				if !some || all {
					delete(since, replica)
				} else if since[replica].IsZero() {
					since[replica] = time.Now()
				} else if time.Since(since[replica]) > binding {
					w.t.Errorf("replica %s was bound in part for %s: %v", replica, time.Since(since[replica]), bound)
				}
			}
			return false
		})
	}()
	return func() { cancel(); <-done }
}

// untilBound waits until the numbers of bound pods by PodClique are as wanted.
func (w *world) untilBound(done func(bound map[string]int) bool) {
	w.t.Helper()
	var bound map[string]int
	w.must(controlplane.Until(w.ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		bound = map[string]int{}
		for _, p := range pods {
			if p.Spec.NodeName != "" {
				bound[p.Labels[v1alpha1.LabelPodClique]]++
			}
		}
		return done(bound)
	}), "waiting for bound pods")
}

// objects0 returns the first object, nil if there is none.
func objects0(objects []*unstructured.Unstructured) map[string]any {
	if len(objects) == 0 {
		return nil
	}
	return objects[0].Object
}
