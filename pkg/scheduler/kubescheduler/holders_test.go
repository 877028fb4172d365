// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/pkg/preemption"
	"github.com/muster-project/muster/test/rounds"
	"github.com/muster-project/muster/test/wrappers"
)

// countedHolders returns the number of running pods by holder, by a look at each pod.
func countedHolders(w *Snapshot) map[podgroup.Holder]int {
	counted := map[podgroup.Holder]int{}
	w.VisitPods(func(_ int, pod *corev1.Pod) { counted[podgroup.HolderOf(pod)]++ })
	return counted
}

// TestMayFitWithout plans random gangs on random clusters whose pods change, beside one cache. If MayFitWithout
// refuses, there is no plan, and no search finds victims; if the numbers of the nodes without the pods that may end
// allow a plan, it does not refuse. The holders are those of the pods that run.
func TestMayFitWithout(t *testing.T) {
	t.Parallel()
	repeats := 12 * rounds.Number()
	results := make([][2]int, repeats)
	t.Run("clusters", func(t *testing.T) {
		for seed := range repeats {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				s := newScreened(t, rand.New(rand.NewSource(int64(seed))))
				for range 20 {
					s.changePods()
					for range 3 {
						fits := 0
						if s.compare() {
							fits = 1
						}
						results[seed][fits]++
					}
				}
			})
		}
	})
	refused, fits := 0, 0
	for _, r := range results {
		refused, fits = refused+r[0], fits+r[1]
	}
	t.Logf("%d gangs were refused, %d were not", refused, fits)
	if refused < 20*repeats || fits < 5*repeats {
		t.Errorf("%d gangs were refused, %d were not: too few to compare", refused, fits)
	}
}

// screened is a cluster whose running pods change.
type screened struct {
	t       *testing.T
	rng     *rand.Rand
	c       *cluster
	cache   *FilterCache
	classes []*corev1.Pod
	running []*corev1.Pod
	serial  int
}

func newScreened(t *testing.T, rng *rand.Rand) *screened {
	objects, classes := randomCluster(rng)
	s := &screened{t: t, rng: rng, cache: NewFilterCache(), classes: classes}
	s.c = newCluster(t, objects...)
	for _, pod := range moreRunning(rng, objects, classes) {
		s.run(pod)
	}
	return s
}

// run binds a pod of random priority and gang.
func (s *screened) run(pod *corev1.Pod) {
	pod = pod.DeepCopy()
	s.serial++
	pod.Name = fmt.Sprintf("run-%d", s.serial)
	pod.UID, pod.Spec.Priority, pod.Spec.Volumes = types.UID(pod.Name), new(int32(s.rng.Intn(3))), nil
	if pod.Annotations = nil; s.rng.Intn(2) == 0 {
		pod.Annotations = map[string]string{v2alpha2.PodGroupAnnotation: fmt.Sprintf("g%d", s.rng.Intn(3))}
	}
	s.running = append(s.running, pod)
	s.c.add(pod)
}

// changePods starts, ends and changes some pods.
func (s *screened) changePods() {
	for range s.rng.Intn(4) {
		switch i := s.rng.Intn(len(s.running) + 1); {
		case i == len(s.running) || s.rng.Intn(3) == 0:
			pod := s.classes[s.rng.Intn(len(s.classes))].DeepCopy()
			pod.Spec.NodeName = s.c.nodes[s.rng.Intn(len(s.c.nodes))].Node().Name
			pod.Spec.Containers[0].Ports = nil
			s.run(pod)
		case s.rng.Intn(3) == 0:
			s.c.unbind(s.running[i])
			s.running = slices.Delete(s.running, i, i+1)
		default:
			changed := s.running[i].DeepCopy()
			if changed.DeletionTimestamp == nil && s.rng.Intn(2) == 0 {
				changed.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
			} else {
				changed.Annotations = map[string]string{v2alpha2.PodGroupAnnotation: fmt.Sprintf("g%d", s.rng.Intn(3))}
			}
			if err := s.c.sched.Cache.UpdatePod(klog.FromContext(s.c.ctx), s.running[i], changed); err != nil {
				s.t.Fatal(err)
			}
			s.running[i] = changed
			s.c.refresh()
		}
	}
}

// compare screens a random gang, and reports whether it may fit.
func (s *screened) compare() bool {
	s.t.Helper()
	var pods []*corev1.Pod
	for range 1 + s.rng.Intn(2) {
		class := s.classes[s.rng.Intn(len(s.classes))]
		for range 1 + s.rng.Intn(6) {
			pod := class.DeepCopy()
			s.serial++
			pod.Name = fmt.Sprintf("pod-%d", s.serial)
			pod.UID = types.UID(pod.Name)
			pods = append(pods, pod)
		}
	}
	snapshot := func(cache *FilterCache) (placement.Problem, *Snapshot) {
		p, classes := s.c.problem(cache, flat(pods))
		w, err := NewSnapshot(s.c.ctx, s.c.f, s.c.nodes, classes.Pods, Options{Cache: cache, Pods: classes.Size})
		if err != nil {
			s.t.Fatal(err)
		}
		return p, w
	}
	p, w := snapshot(s.cache)
	holders, numbers := w.Holders()
	counted := map[podgroup.Holder]int{}
	for i, h := range holders {
		if numbers[i] > 0 {
			counted[h] = numbers[i]
		}
	}
	if diff := cmp.Diff(countedHolders(w), counted); diff != "" {
		s.t.Fatalf("pods by holder (-want +got):\n%s", diff)
	}
	mayEnd, ends := map[podgroup.Holder]bool{}, make([]bool, len(holders))
	percent := s.rng.Intn(4) * 33
	for i, h := range holders {
		ends[i] = s.rng.Intn(100) < percent
		mayEnd[h] = ends[i]
	}
	mayFit := w.MayFitWithout(p, ends)
	var ids []int
	in := preemption.Input{Problem: p}
	w.VisitPods(func(id int, pod *corev1.Pod) {
		if mayEnd[podgroup.HolderOf(pod)] {
			ids = append(ids, id)
			in.Workloads = append(in.Workloads, preemption.Workload{Name: pod.Name, Pods: []preemption.Pod{{ID: id}}})
		}
	})
	if _, result := preemption.FindVictims(in, w, preemption.Budget{}); !mayFit && result != preemption.Hopeless {
		s.t.Fatalf("refused, and a search with the same pods has the result %d", result)
	}
	p, w = snapshot(NewFilterCache())
	w.Free(ids)
	numbersAllow := placement.MayFit(p, func(index int) int { return w.Capacity(index).Pods })
	if numbersAllow && !mayFit {
		s.t.Fatal("refused, and the numbers without the pods allow a plan")
	}
	if _, short := placement.Minimum(p, w, placement.Budget{}); short == nil && !mayFit {
		s.t.Fatal("refused, and there is a plan without the pods")
	}
	return mayFit
}

// Where only amounts of resources decide, in the cluster or in a rack that the gang requires, it refuses exactly the
// gangs for which there is no plan.
func TestMayFitWithoutIsExactForResources(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(1))
	refused, gangs := 0, 0
	for range 8 {
		s := &screened{t: t, rng: rng, cache: NewFilterCache()}
		s.c = newCluster(t, racks(1+rng.Intn(5), 8)...)
		for range rng.Intn(12) {
			node := s.c.nodes[rng.Intn(len(s.c.nodes))].Node().Name
			s.run(classPod("running").GPUs(int64(1 + rng.Intn(3))).Node(node).Obj())
		}
		for range 40 {
			gpus := int64(1 + rng.Intn(9))
			p, classes := s.c.problem(s.cache, flat(members(1+rng.Intn(6), func(i int) *wrappers.PodWrapper { return worker(i).GPUs(gpus) })))
			if rng.Intn(2) == 0 {
				p.Required = map[string]string{"": "rack"}
			}
			w, err := NewSnapshot(s.c.ctx, s.c.f, s.c.nodes, classes.Pods, Options{Cache: s.cache, Pods: classes.Size})
			if err != nil {
				t.Fatal(err)
			}
			holders, _ := w.Holders()
			ends := make([]bool, len(holders))
			for i := range holders {
				ends[i] = rng.Intn(2) == 0
			}
			mayFit := w.MayFitWithout(p, ends)
			var ids []int
			w.VisitPods(func(id int, pod *corev1.Pod) {
				if ends[slices.Index(holders, podgroup.HolderOf(pod))] {
					ids = append(ids, id)
				}
			})
			w.Free(ids)
			if _, short := placement.Minimum(p, w, placement.Budget{}); (short == nil) != mayFit {
				t.Fatalf("gang %d: it may fit: %t, and there is a plan: %t", gangs, mayFit, short == nil)
			}
			if gangs++; !mayFit {
				refused++
			}
		}
	}
	if refused < 50 || refused > gangs-50 {
		t.Errorf("%d of %d gangs were refused: too few or too many to compare", refused, gangs)
	}
}

// The holders of pods that are gone are forgotten when they are many.
func TestHoldersAreForgotten(t *testing.T) {
	t.Parallel()
	c := newCluster(t, racks(1, 8)...)
	cache := NewFilterCache()
	for i := range keptHolders + 200 {
		pod := c.bind(classPod("running").Gang(fmt.Sprintf("g-%d", i)).Obj(), "running", "n0")
		w := c.worldWith([]*corev1.Pod{classPod("a").Obj()}, cache)
		holders, pods := w.Holders()
		if len(holders) > keptHolders+2 {
			t.Fatalf("%d holders of one pod are kept", len(holders))
		}
		if n := pods[slices.Index(holders, podgroup.HolderOf(pod))]; n != 1 {
			t.Fatalf("its holder has %d pods", n)
		}
		c.unbind(pod)
	}
}
