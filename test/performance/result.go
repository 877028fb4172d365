// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"math"
	"slices"
	"time"
)

// measure adds the figures of a drain. Every pod has one GPU. Of a gang with sub-groups, the minimum is assumed to
// be bound when as many pods are bound as it needs, whichever they are. Without a scheduler there is no CPU time and no memory
// of one.
//
// The latency of a gang is from the moment when it could be scheduled, here the start of the scheduler since all pods exist
// before, to the last binding of its minimum. Its spread is from its first binding to the last of its minimum: that long it is
// observably partial.
func measure(d *drained, scheduler bool, out *outcome) {
	gangs := map[string][]time.Time{} // in order
	for _, b := range d.bindings {
		gang := d.gangOf[b.pod]
		gangs[gang] = append(gangs[gang], b.at)
	}
	var latencies, spreads []float64
	partial, held := 0.0, 0.0
	for _, at := range gangs {
		if d.needed > 0 {
			at = at[:min(d.needed, len(at))]
		}
		whole := at[len(at)-1]
		latencies = append(latencies, since(d.start, whole))
		spreads = append(spreads, since(at[0], whole))
		partial += since(at[0], whole)
		for _, t := range at {
			held += since(t, whole)
		}
	}
	first, last, pods := d.bindings[0].at, d.bindings[len(d.bindings)-1].at, float64(len(d.bindings))

	out.add(lastBind, since(d.start, last))
	out.add(lastWrite, max(since(d.start, last), since(d.start, d.quiet))) // events and conditions are written after the bindings
	out.add(firstBind, since(d.start, first))
	out.add(podsPerSecond, pods/since(d.start, last))
	out.add(gangLatencyMedian, quantile(latencies, 0.5))
	out.add(gangLatency99, quantile(latencies, 0.99))
	out.add(spreadMedian, 1000*quantile(spreads, 0.5))
	out.add(spreadLongest, 1000*slices.Max(spreads))
	out.add(partialGangSeconds, partial)
	out.add(heldGPUSeconds, held)
	if scheduler {
		out.add(schedulerCPU, d.process.cpu.Seconds())
		out.add(schedulerMemory, mebibytes(d.process.memory))
	}
	out.add(serverCPU, d.server.Seconds())
	out.add(serverCollected, d.collections)
	out.addWrites(writesPerPod, d.writes, pods)
}

// addWrites adds the writes per pod, and the share of each resource that is not next to none.
func (r *outcome) addWrites(total kind, writes map[string]int64, pods float64) {
	all := 0.0
	for resource, n := range writes {
		if total != writesButEvents || resource != "events" {
			all += float64(n) / pods
		}
	}
	r.add(total, all)
	for _, resource := range slices.Sorted(maps.Keys(writes)) {
		if perPod := float64(writes[resource]) / pods; perPod >= 0.005 {
			r.add(writesOf(resource), perPod)
		}
	}
}

func since(a, b time.Time) float64 { return b.Sub(a).Seconds() }

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// quantile returns the smallest of the values that at least the share q of them does not exceed; for the median of an even
// number, the mean of the two in the middle. NaN for none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if q == 0.5 && n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[max(0, int(math.Ceil(q*float64(n)))-1)]
}
