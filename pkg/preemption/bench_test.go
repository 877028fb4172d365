// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// BenchmarkFindVictims decides on a full cluster of 5,000 nodes with 40,000 pods in 5,000 gangs of three priorities.
// Each gang has 8 pods with one GPU and needs 6 of them.
func BenchmarkFindVictims(b *testing.B) {
	for _, bc := range []struct {
		name       string
		pods, gpus int
		racks      int // of which the preemptor requires one; 0: it requires none
		subGroups  int // of each gang, of one pod, of which one is above the minimum; 0: gangs have none
		budgets    int // of which each selects as many pods
	}{
		{"1x1", 1, 1, 0, 0, 0}, {"64x1", 64, 1, 0, 0, 0}, {"32x8", 32, 8, 0, 0, 0}, {"1000x1", 1000, 1, 0, 0, 0},
		{"hopeless", 64, 9, 0, 0, 0}, {"hopeless in a rack", 128, 8, 312, 0, 0},
		{"64x1 in a rack", 64, 1, 312, 0, 0}, {"32x8 in a rack", 32, 8, 100, 0, 0}, {"1000x1 in a rack", 1000, 1, 20, 0, 0},
		{"64x1 of sub-groups", 64, 1, 0, 40, 0}, {"32x8 of sub-groups", 32, 8, 0, 40, 0}, {"1000x1 of sub-groups", 1000, 1, 0, 40, 0},
		{"64x1 of sub-groups in a rack", 64, 1, 312, 40, 0}, {"32x8 of sub-groups in a rack", 32, 8, 100, 40, 0},
		{"64x1 with budgets", 64, 1, 0, 0, 5000}, {"64x1 with budgets in a rack", 64, 1, 312, 0, 5000},
	} {
		b.Run(bc.name, func(b *testing.B) {
			in, nodes, pods := fullCluster(b, 5000)
			if bc.subGroups > 0 {
				in.Workloads = groupedGangs(b, in.Workloads, bc.subGroups)
			}
			in.Problem, in.Allowed = problemOf(b, bc.pods), make([]int, bc.budgets)
			for n := range in.Workloads {
				for k := range in.Workloads[n].Pods {
					if bc.budgets > 0 {
						in.Workloads[n].Pods[k].Budgets = []int{n % bc.budgets}
					}
				}
			}
			for n := range in.Allowed {
				in.Allowed[n] = n % 3
			}
			if bc.racks > 0 {
				in.Problem.Required = map[string]string{"": "rack"}
				for n := range nodes {
					nodes[n].rack = fmt.Sprintf("rack-%d", n*bc.racks/len(nodes))
				}
			}
			b.ReportAllocs()
			var d *Decision
			plans, start := 0, cpuTime(b)
			for b.Loop() {
				w := newCluster(b, nodes, []fakeClass{{gpus: bc.gpus}}, pods)
				d, _ = FindVictims(in, w, Budget{Plans: 64})
				plans = w.plans
			}
			b.ReportMetric(float64((cpuTime(b)-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
			if (d == nil) != strings.Contains(bc.name, "hopeless") {
				b.Fatal("the result is not as expected")
			}
			b.ReportMetric(float64(plans), "plans/op")
			if d != nil {
				b.ReportMetric(float64(d.Cost.Amount)/float64(bc.pods*bc.gpus), "victims/GPU")
				b.ReportMetric(float64(d.Cost.Ended), "ended/op")
			}
		})
	}
}

// cpuTime is the time for which the process has used a CPU.
func cpuTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func problemOf(t testing.TB, pods int) placement.Problem {
	t.Helper()
	tree, err := gang.Build(gang.Node{MinMember: new(int32(pods))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := placement.Problem{Tree: tree, Pods: map[string][]placement.Pod{}}
	for i := range pods {
		p.Pods[""] = append(p.Pods[""], placement.Pod{ID: fmt.Sprint(i)})
	}
	return p
}

// groupedGangs returns the same pods in gangs of so many pods, each in a sub-group of its own.
func groupedGangs(t testing.TB, workloads []Workload, pods int) []Workload {
	t.Helper()
	groups := []gang.Node{innerOf("", "", int32(pods-1))}
	for k := range pods {
		groups = append(groups, leafOf(fmt.Sprint(k), "", 1))
	}
	tree := mustBuild(t, groups[0], groups[1:]...)
	var list []Workload
	for _, w := range workloads {
		for _, p := range w.Pods {
			if n := len(list); n == 0 || len(list[n-1].Pods) == pods {
				list = append(list, Workload{Name: w.Name, Priority: int32(n % 3), Tree: tree})
			}
			last := &list[len(list)-1]
			p.Leaf = fmt.Sprint(len(last.Pods))
			last.Pods = append(last.Pods, p)
		}
	}
	return list
}

// fullCluster returns full nodes with 8 GPUs. The pods of a gang are on neighbouring nodes.
func fullCluster(t testing.TB, nodes int) (in Input, list []fakeNode, pods []running) {
	t.Helper()
	tree, err := gang.Build(gang.Node{MinMember: new(int32(6))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for g := range nodes {
		list = append(list, fakeNode{gpus: 8})
		w := Workload{Name: fmt.Sprintf("gang-%05d", g), Priority: int32(g % 3), Tree: tree}
		for p := range 8 {
			w.Pods = append(w.Pods, Pod{ID: len(pods), Amount: 1, Running: int64(g % 97)})
			pods = append(pods, running{node: (g + p%2) % nodes, gpus: 1})
		}
		in.Workloads = append(in.Workloads, w)
	}
	return in, list, pods
}
