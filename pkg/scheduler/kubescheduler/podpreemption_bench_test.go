// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"

	"github.com/muster-project/muster/pkg/preemption"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
	"github.com/muster-project/muster/test/wrappers"
)

// BenchmarkPodPreemption compares one decision for a pod without a gang, on nodes that are full of such pods, with that
// of the stock plugin. After each the victim is replaced by the preemptor.
func BenchmarkPodPreemption(b *testing.B) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, nodes := range []int{1000, 5000} {
		for _, who := range []string{"stock", "muster"} {
			b.Run(fmt.Sprintf("%d/%s", nodes, who), func(b *testing.B) {
				c := newCluster(b)
				registry := gangs.New()
				registry.Configure(gangs.Options{PreemptionTimeout: 30 * time.Second})
				registry.AddProfile(wrappers.SchedulerName)
				registry.SetGroup(wrappers.MakePodGroup("high", "ml").UID("high").MinMember(1).Obj(), now)
				for i := range nodes {
					c.sched.Cache.AddNode(klog.Background(), wrappers.MakeNode(fmt.Sprintf("n%05d", i)).GPUs(8).Obj())
					for k := range 8 {
						name := fmt.Sprintf("p%d-%d", i, k)
						pod := wrappers.MakePod(name, "ml").UID(name).GPUs(1).Priority(int32((i + k) % 3)).Node(fmt.Sprintf("n%05d", i)).Obj()
						pod.Status.StartTime = &metav1.Time{Time: now.Add(-time.Duration(i%97) * time.Second)}
						if err := c.sched.Cache.AddPod(klog.Background(), pod); err != nil {
							b.Fatal(err)
						}
					}
				}
				registry.SetSynced(now)
				c.refresh()
				cache := NewFilterCache()
				decide := func(pod *corev1.Pod) *corev1.Pod { return c.decideAsGang(b, registry, cache, pod, now) }
				if who == "stock" {
					decide = func(pod *corev1.Pod) *corev1.Pod { return c.decideAsStock(b, pod) }
				}
				var cpu time.Duration
				step := func(i int) {
					name := fmt.Sprintf("high-%d", i)
					pod := wrappers.MakePod(name, "ml").UID(name).GPUs(1).Priority(100).Obj()
					start := cpuTime(b)
					victim := decide(pod)
					cpu += cpuTime(b) - start
					if err := c.sched.Cache.RemovePod(klog.Background(), victim); err != nil {
						b.Fatal(err)
					}
					pod.Spec.NodeName = victim.Spec.NodeName
					c.sched.Cache.AddPod(klog.Background(), pod)
					c.refresh()
				}
				step(-1)
				cpu = 0
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					step(i)
					i++
				}
				b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

func (c *cluster) decideAsStock(b *testing.B, pod *corev1.Pod) *corev1.Pod {
	var pl *defaultpreemption.DefaultPreemption
	for _, p := range c.f.PreEnqueuePlugins() {
		if dp, ok := p.(*defaultpreemption.DefaultPreemption); ok {
			pl = dp
		}
	}
	state := framework.NewCycleState()
	if _, status, _ := c.f.RunPreFilterPlugins(c.ctx, state, pod); !status.IsSuccess() {
		b.Fatal(status)
	}
	statuses := framework.NewDefaultNodeToStatus()
	for _, n := range c.nodes {
		statuses.Set(n.Node().Name, fwk.NewStatus(fwk.Unschedulable))
	}
	potential, err := statuses.NodesForStatusCode(c.f.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	if err != nil {
		b.Fatal(err)
	}
	offset, n := pl.GetOffsetAndNumCandidates(int32(len(potential)))
	candidates, _, err := pl.Evaluator.DryRunPreemption(c.ctx, state, pod, potential, nil, offset, n)
	if err != nil {
		b.Fatal(err)
	}
	best := pl.Evaluator.SelectCandidate(c.ctx, candidates)
	return best.Victims().Pods[0]
}

func (c *cluster) decideAsGang(b *testing.B, registry *gangs.Registry, cache *FilterCache, pod *corev1.Pod, now time.Time) *corev1.Pod {
	preemptor := gangs.Work{Gang: gangs.Key{Namespace: "ml", Name: "high"}, EvictionPriority: 100}
	p, classes := c.problem(cache, flat([]*corev1.Pod{pod}))
	w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, classes.options(cache))
	if err != nil {
		b.Fatal(err)
	}
	c.keys = map[*corev1.Pod]string{}
	holders, pods := w.Holders()
	for i := range p.Pods[""] {
		p.Pods[""][i].ID = string(types.UID(pod.UID))
	}
	screening := registry.ScreenHolders(&preemptor, holders, pods, now)
	if !w.MayFitWithout(p, screening.MayEnd) {
		b.Fatal("hopeless")
	}
	sample, _, _ := w.Sample(screening.Priorities)
	var running []*corev1.Pod
	w.VisitPods(func(_ int, pod *corev1.Pod) { running = append(running, pod) })
	candidates := registry.Candidates(&preemptor, gangs.RunningPods{
		Pods: running, Amount: w.ExtendedAmounts(), Sampled: func(id int) bool { return sample[w.NodeOf(id)] },
	}, false, now)
	d, result := preemption.FindVictims(preemption.Input{Problem: p, Workloads: candidates.Workloads}, w, preemption.Budget{})
	if result != preemption.Decided {
		b.Fatal(result)
	}
	w.Undo(len(d.Plan))
	return running[d.Victims[0].Pods[0]]
}
