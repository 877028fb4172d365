// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-project/muster/pkg/apis/grove/v1alpha1"
	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/controlplane"
)

// The table of the shapes agrees with their manifests.
func TestShapesAreWhatTheTableSays(t *testing.T) {
	if len(shapes) < 35 {
		t.Errorf("%d shapes", len(shapes))
	}
	seen := map[string]bool{}
	for _, s := range shapes {
		if seen[s.set] {
			t.Errorf("two shapes are called %s", s.set)
		}
		seen[s.set] = true
		pods, gpus := 0, 0
		for i := range s.setReplicas() {
			s.eachClique(i, func(_ string, _ part, _ int, c clique) { pods, gpus = pods+c.pods, gpus+c.pods*c.gpus })
		}
		if pods != s.pods*s.setReplicas() || gpus != s.gpus {
			t.Errorf("%s (%s) has %d pods and %d GPUs, want %d and %d", s.set, s.what, pods, gpus, s.pods*s.setReplicas(), s.gpus)
		}
	}
}

// Every shape, all in one namespace at the same time, takes the same steps. With room for its minimum except one pod no
// pod of it is bound. With room for that pod its minimum is bound, and no other pod. With room for the rest everything
// runs, and all objects are as expected, including every label. After the deletion no object is left.
func TestShapes(t *testing.T) {
	began := time.Now()
	phase := func(what string) {
		t.Logf("%s after %s", what, time.Since(began).Round(100*time.Millisecond))
	}
	w := newWorld(t, 0)
	short, missing, rest := map[string][]int{}, map[string][]int{}, map[string][]int{}
	count := 0
	for _, s := range shapes {
		var pod int
		short[s.set], pod, rest[s.set] = s.room()
		missing[s.set] = []int{pod}
		count += s.pods * s.setReplicas()
	}
	w.addRoom(short)
	phase(fmt.Sprintf("%d nodes are made", len(w.nodes)))
	for _, s := range shapes {
		w.must(w.client.Create(w.ctx, s.manifest(w.namespace)), "creating "+s.set)
	}
	phase(fmt.Sprintf("%d shapes with %d pods are applied", len(shapes), count))

	// One pod short. Every gang has been tried, and none has got anything.
	gangs := 0
	for _, s := range shapes {
		gangs += s.setReplicas()
	}
	reasons := map[v2alpha2.Reason]int{}
	w.until("every gang was tried", podGroups, func(objects []*unstructured.Unstructured) bool {
		clear(reasons)
		refused := 0
		for _, o := range objects {
			reason := v2alpha2.Reason(conditionOf(o, v2alpha2.ConditionSatisfied, "reason"))
			reasons[reason]++
			switch reason {
			case v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonFragmented, v2alpha2.ReasonTooLarge, v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonNodesUnavailable, v2alpha2.ReasonInsufficientResources:
				refused++
			}
		}
		return refused == gangs
	})
	bound := w.bound()
	for _, s := range shapes {
		for clique, n := range bound {
			if s.owns(clique) && n > 0 {
				t.Errorf("%s lacks a pod of its minimum, but %d of %s are bound", s.set, n, clique)
			}
		}
	}
	w.eachTree(t)
	phase(fmt.Sprintf("one pod short, nothing is bound: %v", reasons))

	// Room for that pod: the minimum is bound, and no further pods that need GPUs.
	w.addRoom(missing)
	problems := map[string]string{}
	ctx, cancel := w.patient()
	_ = controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		bound := boundByClique(pods)
		clear(problems)
		for _, s := range shapes {
			if problem := s.minimumOnly(bound); problem != "" {
				problems[s.set] = problem
			}
		}
		return len(problems) == 0
	})
	cancel()
	for _, s := range shapes {
		if problems[s.set] != "" {
			t.Errorf("%s with room for its minimum: %s", s.set, problems[s.set])
		}
	}
	phase("the minimums are bound")

	// The rest.
	w.addRoom(rest)
	ctx, cancel = w.patient()
	defer cancel()
	ready := 0
	if err := controlplane.Until(ctx, cp.Client().CoreV1().Pods(w.namespace), metav1.ListOptions{}, func(pods []*corev1.Pod) bool {
		ready = 0
		for _, p := range pods {
			if controlplane.PodReady(p) {
				ready++
			}
		}
		return ready == count
	}); err != nil {
		t.Errorf("%d pods are ready, want %d: %v", ready, count, err)
	}
	phase("all are ready")
	want := map[string]inventory{}
	for _, s := range shapes {
		want[s.set] = s.inventory(w.namespace)
	}
	got := w.untilInventories(func(got map[string]inventory) bool { return cmp.Equal(got, want) })
	for set := range got {
		if want[set] == nil {
			t.Errorf("there are objects of %q, which was not applied: %v", set, got[set])
		}
	}
	for _, s := range shapes {
		t.Run(s.set, func(t *testing.T) {
			if diff := cmp.Diff(want[s.set], got[s.set]); diff != "" {
				t.Errorf("what there is of %s (-want +got):\n%s", s.what, diff)
			}
		})
	}
	phase("all is as it should be")

	w.must(w.client.DeleteAllOf(w.ctx, &v1alpha1.PodCliqueSet{}, client.InNamespace(w.namespace)), "deleting")
	w.untilGone()
	if got, err := w.inventories(); err != nil || len(got) != 0 {
		t.Errorf("deleted, but there is still %v (%v)", got, err)
	}
	phase("nothing is left")
}

// owns reports whether the PodClique of that name belongs to the shape.
func (s shape) owns(podClique string) bool {
	found := false
	for i := range s.setReplicas() {
		s.eachClique(i, func(name string, _ part, _ int, _ clique) { found = found || name == podClique })
	}
	return found
}

// minimumOnly returns the deviations when the shape has room for exactly the minimum of one replica: in exactly one
// replica of the set every standalone clique has its minimum, and the needed number of replicas of each group have
// theirs. Surplus without GPUs has room too, but only as whole group replicas.
func (s shape) minimumOnly(bound map[string]int) string {
	admitted := 0
	for i := range s.setReplicas() {
		any := 0
		s.eachClique(i, func(name string, _ part, _ int, _ clique) { any += bound[name] })
		if any == 0 {
			continue
		}
		admitted++
		for _, p := range s.parts {
			whole := 0
			for j := range max(p.replicas, 1) {
				some, all := false, true
				for _, c := range p.cliques {
					name := fmt.Sprintf("%s-%d-%s", s.set, i, c.name)
					want := c.needed()
					if p.group != "" {
						name = fmt.Sprintf("%s-%d-%s-%d-%s", s.set, i, p.group, j, c.name)
					} else if c.gpus == 0 {
						want = c.pods
					}
					some, all = some || bound[name] > 0, all && bound[name] == want
				}
				if some && !all {
					return fmt.Sprintf("part of replica %d, %s %d is bound: %v", i, p.group+p.cliques[0].name, j, s.only(bound))
				}
				if all {
					whole++
				}
			}
			if want := p.needed(); whole != want {
				return fmt.Sprintf("replica %d: %d of %s are bound, want %d: %v", i, whole, p.group+p.cliques[0].name, want, s.only(bound))
			}
		}
	}
	if admitted != 1 {
		return fmt.Sprintf("%d replicas have bound pods: %v", admitted, s.only(bound))
	}
	return ""
}

func (s shape) only(bound map[string]int) map[string]int {
	mine := map[string]int{}
	for name, n := range bound {
		if s.owns(name) {
			mine[name] = n
		}
	}
	return mine
}

// addRoom creates nodes with this number of GPUs each, by shape; only that shape may use them.
func (w *world) addRoom(gpus map[string][]int) {
	w.t.Helper()
	var mu sync.Mutex
	var wait sync.WaitGroup
	var failed error
	slots := make(chan struct{}, 16)
	for set, sizes := range gpus {
		for _, n := range sizes {
			first := len(w.nodes)
			w.nodes = append(w.nodes, "")
			wait.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				names, err := cp.CreateNodes(w.ctx, controlplane.NodeOptions{
					Count: 1, GPUs: n, First: first, NamePrefix: w.namespace, Labels: map[string]string{"shape": set},
				})
				mu.Lock()
				defer mu.Unlock()
				if failed = err; err == nil {
					w.nodes[first] = names[0]
				}
			})
		}
	}
	wait.Wait()
	w.must(failed, "creating nodes")
}

// bound counts the bound pods by PodClique.
func (w *world) bound() map[string]int {
	w.t.Helper()
	list := w.pods()
	var pods []*corev1.Pod
	for i := range list {
		pods = append(pods, &list[i])
	}
	return boundByClique(pods)
}

func boundByClique(pods []*corev1.Pod) map[string]int {
	bound := map[string]int{}
	for _, p := range pods {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			bound[p.Labels[v1alpha1.LabelPodClique]]++
		}
	}
	return bound
}

// eachTree checks the minimum of the tree of every PodGroup of the shapes.
func (w *world) eachTree(t *testing.T) {
	t.Helper()
	list := &v2alpha2.PodGroupList{}
	w.must(w.client.List(w.ctx, list, client.InNamespace(w.namespace)), "listing PodGroups")
	n := 0
	for _, s := range shapes {
		for i := range s.setReplicas() {
			at := slices.IndexFunc(list.Items, func(g v2alpha2.PodGroup) bool { return g.Name == fmt.Sprintf("%s-%d", s.set, i) })
			if at < 0 {
				t.Errorf("%s has no PodGroup %d", s.set, i)
				continue
			}
			n++
			tree, err := podgroup.Tree(&list.Items[at].Spec)
			if err != nil {
				t.Errorf("PodGroup %s: %v", list.Items[at].Name, err)
			} else if tree.MinPods() != s.minimum {
				t.Errorf("PodGroup %s needs %d pods, want %d", list.Items[at].Name, tree.MinPods(), s.minimum)
			}
			if want := fmt.Sprintf("0/%d", s.minimum); list.Items[at].Status.Scheduled != want {
				t.Errorf("PodGroup %s: scheduled %q, want %q", list.Items[at].Name, list.Items[at].Status.Scheduled, want)
			}
		}
	}
	if n != len(list.Items) {
		t.Errorf("there are %d PodGroups, want %d", len(list.Items), n)
	}
}
