// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// room is a World of identical nodes that answers in almost no time, so that a benchmark measures the planner itself.
type room struct {
	placement.NoTopology

	perNode int
	nodes   []string
	placed  int
}

func newRoom(nodes, perNode int) *room {
	w := &room{perNode: perNode, nodes: make([]string, nodes)}
	for i := range w.nodes {
		w.nodes[i] = fmt.Sprintf("node-%d", i)
	}
	return w
}

func (w *room) Place(int, string) (string, bool) {
	if w.placed == w.perNode*len(w.nodes) {
		return "", false
	}
	w.placed++
	return w.nodes[(w.placed-1)/w.perNode], true
}

func (w *room) Undo(n int)                  { w.placed -= n }
func (w *room) Kind(int) placement.Kind     { return placement.Independent }
func (w *room) Domains(int, []int) []string { return nil }
func (w *room) Open(int, string) bool       { return true }
func (w *room) Nodes(int, int) []string     { return nil }
func (w *room) Weight(int) int64            { return 1 }

// Capacity returns no bound, so that the World itself must refuse.
func (w *room) Capacity(int) placement.Capacity {
	return placement.Capacity{Nodes: len(w.nodes), Pods: 1 << 30}
}

func (w *room) Explain(int, string) *placement.Refusal {
	return &placement.Refusal{Reasons: map[string]int{"full": len(w.nodes)}}
}

// bounded is a room with a known capacity.
type bounded struct{ *room }

func (w bounded) Capacity(int) placement.Capacity {
	return placement.Capacity{Nodes: len(w.nodes), Pods: w.perNode * len(w.nodes)}
}

// cpuTime returns the CPU time that the process has used. Unlike elapsed time it is not affected by other load on the
// machine.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkMinimumOfLikePods verifies that the cost of a plan is proportional to its pods: at most half a microsecond
// each.
func BenchmarkMinimumOfLikePods(b *testing.B) {
	run := func(name string, p placement.Problem, w placement.World, undo func(), pods int, planned bool) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			start := cpuTime(b)
			for b.Loop() {
				if _, short := placement.Minimum(p, w, placement.Budget{Expired: func() bool { return false }}); (short == nil) != planned {
					b.Fatalf("planned: %t, want %t", short == nil, planned)
				}
				undo()
			}
			b.ReportMetric(float64((cpuTime(b)-start).Nanoseconds())/float64(b.N)/float64(pods), "cpu-ns/pod")
		})
	}
	for _, n := range []int{16, 1000, 20_000} {
		p := placement.Problem{Tree: mustBuild(b, leaf("", "", int32(n))), Pods: rootPods(n)}
		w := newRoom(n/8+1, 8)
		run(fmt.Sprintf("flat gang of %d", n), p, w, func() { w.placed = 0 }, n, true)
	}
	for _, leaves := range []int{128, 1024} {
		w := newRoom(leaves, 8)
		run(fmt.Sprintf("%d leaves of 8", leaves), wide(b, leaves, 8, leaves, 1), w, func() { w.placed = 0 }, 8*leaves, true)
		// Every second leaf has 12 pods, and there is room for leaves of 8 only: the first walk fails.
		var groups []gang.Node
		p := placement.Problem{Pods: map[string][]placement.Pod{}}
		for i := range leaves {
			name, size := fmt.Sprintf("worker%d", i), 12-i%2*4
			groups = append(groups, leaf(name, "", int32(size)))
			p.Pods[name] = pods(name, 0, size)
		}
		p.Tree = mustBuild(b, inner("", "", int32(leaves/2)), groups...)
		half := newRoom(leaves/2, 8)
		run(fmt.Sprintf("the small half of %d leaves", leaves), p, half, func() { half.placed = 0 }, 4*leaves, true)
	}
	tenOfEight := wide(b, 10, 8, 10, 1)
	run("refused 10 x 8, by its numbers", tenOfEight, bounded{newRoom(9, 8)}, func() {}, 80, false)
	run("refused 10 x 8, by the World", tenOfEight, newRoom(9, 8), func() {}, 80, false)
	run("refused 1024 x 8, by the World", wide(b, 1024, 8, 1024, 1), newRoom(1023, 8), func() {}, 8192, false)
}

// BenchmarkRack plans a leader and 127 workers on 312 racks, only one of which is large enough. The cost of the World
// is included.
func BenchmarkRack(b *testing.B) {
	p, w := leaderAndWorkers(b, 312, false)
	b.ReportAllocs()
	for b.Loop() {
		if _, short := placement.Minimum(p, w, placement.Budget{}); short != nil {
			b.Fatal("no plan")
		}
		w.Undo(len(w.stack))
	}
	b.ReportMetric(float64(w.calls)/float64(b.N), "calls/op")
}

// BenchmarkUnit plans the last of 1024 units of surplus, and all of them one after another.
func BenchmarkUnit(b *testing.B) {
	p := wide(b, 1024, 8, 1, 1)
	p.Have = gang.Counts{"worker0": 8}
	delete(p.Pods, "worker0")
	b.Run("one of 1023", func(b *testing.B) {
		w := newRoom(2000, 8)
		b.ReportAllocs()
		for b.Loop() {
			if plan := placement.Unit(p, w, placement.Budget{}); len(plan.Placements) != 8 {
				b.Fatal("no plan")
			}
			w.placed = 0
		}
	})
	b.Run("all at once", func(b *testing.B) {
		w := newRoom(2000, 8)
		b.ReportAllocs()
		for b.Loop() {
			if plan := surplusOf(p, w); len(plan) != 8*1023 {
				b.Fatal("no plan")
			}
			w.placed = 0
		}
	})
}
