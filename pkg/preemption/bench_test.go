// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"testing"

	"github.com/muster-project/muster/pkg/gang"
	"github.com/muster-project/muster/pkg/placement"
)

// BenchmarkFindVictims decides on a full cluster of 5,000 nodes with 40,000 pods in 5,000 gangs of three priorities.
// Each gang has 8 pods with one GPU and needs 6 of them.
func BenchmarkFindVictims(b *testing.B) {
	for _, bc := range []struct {
		name       string
		pods, gpus int
		size       int // GPUs of running pods' nodes that are gone for the preemptor; 0: none
	}{
		{"64x1", 64, 1, 0}, {"32x8", 32, 8, 0}, {"1000x1", 1000, 1, 0}, {"hopeless", 64, 9, 0},
	} {
		b.Run(bc.name, func(b *testing.B) {
			in, nodes, pods := fullCluster(b, 5000)
			in.Problem = problemOf(b, bc.pods)
			b.ReportAllocs()
			var d *Decision
			plans := 0
			for b.Loop() {
				w := newCluster(b, nodes, []fakeClass{{gpus: bc.gpus}}, pods)
				d, _ = FindVictims(in, w, Budget{Plans: 64})
				plans = w.plans
			}
			if (d == nil) != (bc.gpus > 8) {
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
			pods = append(pods, running{(g + p%2) % nodes, 1})
		}
		in.Workloads = append(in.Workloads, w)
	}
	return in, list, pods
}

// BenchmarkUnitsWith asks for the units of 8 pods, those of one node, of gangs with pods above their minimum.
func BenchmarkUnitsWith(b *testing.B) {
	var groups []gang.Node
	grouped := Workload{}
	for i := range 8 {
		name := fmt.Sprintf("leaf-%d", i)
		groups = append(groups, gang.Node{Name: name, MinMember: new(int32(8))})
		for range 8 {
			grouped.Pods = append(grouped.Pods, Pod{Leaf: name})
		}
	}
	flat := Workload{Pods: make([]Pod, 64)}
	for w, root := range map[*Workload]gang.Node{&flat: {MinMember: new(int32(60))}, &grouped: {MinSubGroup: new(int32(6))}} {
		tree, err := gang.Build(root, groups)
		if root.MinMember != nil {
			tree, err = gang.Build(root, nil)
		}
		if err != nil {
			b.Fatal(err)
		}
		w.Tree = tree
	}
	for _, bc := range []struct {
		name string
		w    *Workload
		pods []int
	}{
		{"single pods and the rest", &flat, numbersTo(64)[56:]}, {"single pods", &flat, numbersTo(64)[60:]}, {"the rest", &flat, numbersTo(8)},
		{"a sub-group", &grouped, numbersTo(64)[56:]}, {"a pod of each sub-group", &grouped, []int{0, 8, 16, 24, 32, 40, 48, 56}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			l := NewLadder(bc.w)
			b.ReportAllocs()
			for b.Loop() {
				if len(l.UnitsWith(bc.pods, nil)) == 0 {
					b.Fatal("there are no units")
				}
			}
		})
	}
}
