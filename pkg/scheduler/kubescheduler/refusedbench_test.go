// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/muster-project/muster/pkg/placement"
	"github.com/muster-project/muster/pkg/podgroup"
	"github.com/muster-project/muster/test/wrappers"
)

// BenchmarkRefusedLevels plans gangs that require racks and do not fit on 5,000 nodes in 312 racks, and says why: the
// whole work of a refused attempt except the registry and the backlog.
func BenchmarkRefusedLevels(b *testing.B) {
	c := newCluster(b)
	const nodes = 5000
	for i := range nodes {
		rack := i * 312 / nodes
		c.sched.Cache.AddNode(klog.Background(), wrappers.MakeNode(fmt.Sprintf("n%05d", i)).GPUs(8).
			Label("rack", fmt.Sprintf("r%05d", rack)).Label("block", fmt.Sprintf("b%05d", rack/8)).Obj())
	}
	c.refresh()
	c.fillNodes(5, func(int) bool { return true })
	racks := func(leaves int) map[string]string {
		required := map[string]string{}
		for i := range leaves {
			required[fmt.Sprintf("leaf-%d", i)] = "rack"
		}
		return required
	}
	inBlock := racks(32)
	inBlock[""] = "block"
	mixed := func() leaves {
		gang := subGroups(1024, 8)
		for i := range gang {
			for k, pod := range gang[i].pods {
				gang[i].pods[k] = wrappers.MakePod(pod.Name, "ml").UID(string(pod.UID)).Gang("g").GPUs(int64(1 + k%4)).Obj()
			}
		}
		return gang
	}
	like := func(n, pods int) func() leaves { return func() leaves { return subGroups(n, pods) } }
	for _, tt := range []struct {
		name     string
		gang     func() leaves
		required map[string]string
	}{
		{"64 pods in a rack", func() leaves { return flat(members(64, worker)) }, map[string]string{"": "rack"}},
		{"32 leaves of 64, a rack each in one block", like(32, 64), inBlock},
		{"1,024 leaves of 18, a rack each", like(1024, 18), racks(1024)},
		{"1,024 leaves of 8 in four classes, a rack each", mixed, racks(1024)},
	} {
		b.Run(tt.name, func(b *testing.B) {
			cache := NewFilterCache()
			var parts [3]time.Duration
			gang := tt.gang()
			attempt := func() {
				last := cpuTime(b)
				done := func(part int) {
					now := cpuTime(b)
					parts[part] += now - last
					last = now
				}
				p, classes := c.problem(cache, gang)
				p.Required = tt.required
				w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, Options{Cache: cache, Pods: classes.Size})
				if err != nil {
					b.Fatal(err)
				}
				_, short := placement.Minimum(p, w, placement.Budget{})
				if short == nil {
					b.Fatal("fits")
				}
				done(0)
				podgroup.Explain(p, w, short)
				done(1)
				placement.DomainNeeds(p, w)
				done(2)
			}
			attempt()
			parts = [3]time.Duration{}
			b.ReportAllocs()
			for b.Loop() {
				attempt()
			}
			for i, name := range []string{"plan", "explain", "needs"} {
				b.ReportMetric(float64(parts[i].Microseconds())/float64(b.N), name+"-cpu-us/op")
			}
		})
	}
}

// BenchmarkRefusedSurplus says why none of 32 sub-groups of 5,000 nodes in 312 racks gets another pod: each requires
// the full rack in which it runs, and the other racks are free.
func BenchmarkRefusedSurplus(b *testing.B) {
	const nodes, racks, units = 5000, 312, 32
	c := newCluster(b)
	for i := range nodes {
		c.sched.Cache.AddNode(klog.Background(), wrappers.MakeNode(fmt.Sprintf("n%05d", i)).GPUs(8).Label("rack", fmt.Sprintf("r%05d", i*racks/nodes)).Obj())
	}
	c.refresh()
	c.fillNodes(8, func(i int) bool { return i*racks/nodes < units })
	cache, gang := NewFilterCache(), subGroups(units, 1)
	explain := func() podgroup.Refusal {
		p, classes := c.problem(cache, gang)
		p.Required, p.Nodes, p.Have = map[string]string{}, map[string][]string{}, map[string]int{}
		for i, leaf := range gang {
			p.Required[leaf.name], p.Have[leaf.name] = "rack", 1
			p.Nodes[leaf.name] = []string{c.nodes[(i*nodes+racks-1)/racks].Node().Name}
		}
		w, err := NewSnapshot(c.ctx, c.f, c.nodes, classes.Pods, Options{Cache: cache, Pods: classes.Size})
		if err != nil {
			b.Fatal(err)
		}
		return podgroup.ExplainSurplus(p, placement.Problem{}, w)
	}
	if got, want := explain().Message, "leaf-0 needs 1 nvidia.com/gpu for 1 pod, 0 are free in rack r00000, where it runs"; !strings.HasPrefix(got, want) {
		b.Fatalf("%s, want %s", got, want)
	}
	b.ReportAllocs()
	for b.Loop() {
		explain()
	}
}
