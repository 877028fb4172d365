// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"math"
	"slices"
	"time"
)

// result is one drain in figures. Times in seconds.
type result struct {
	firstBind, lastBind float64 // since the start
	lastWrite           float64 // since the start, of any kind: events and conditions are written after the bindings
	podsPerSecond       float64 // from the start to the last bind
	// latency of a gang: from the moment when it could be scheduled, here the start of the scheduler since all pods
	// exist before, to the last binding of its minimum.
	latencyMedian, latency99 float64
	// spread of a gang: from its first binding to the last of its minimum. That long it is observably partial.
	spreadMedian, spreadLongest float64
	partialGangSeconds          float64 // sum of the spreads
	heldGPUSeconds              float64 // GPUs bound to gangs whose minimum was not bound yet
	cpu, serverCPU              float64 // the scheduler's; API server's and etcd's
	memory                      float64 // the scheduler's largest resident set, MiB
	serverCollections           float64
	writesPerPod                float64
	writes                      map[string]float64 // by resource, per pod
}

// measure computes the figures of a drain. Every pod has one GPU. Of a gang with sub-groups, the minimum is assumed to
// be bound when as many pods are bound as it needs, whichever they are.
func measure(d *drained) result {
	r := result{cpu: d.process.cpu.Seconds(), memory: mebibytes(d.process.memory), serverCPU: d.server.Seconds(), serverCollections: d.collections, writes: map[string]float64{}}
	pods := float64(len(d.bindings))
	for resource, n := range d.writes {
		r.writes[resource] = float64(n) / pods
		r.writesPerPod += float64(n) / pods
	}
	if len(d.bindings) == 0 {
		return r
	}
	r.firstBind = since(d.start, d.bindings[0].at)
	r.lastBind = since(d.start, d.bindings[len(d.bindings)-1].at)
	r.lastWrite = max(r.lastBind, since(d.start, d.quiet))
	r.podsPerSecond = pods / r.lastBind

	gangs := map[string][]time.Time{} // in order
	for _, b := range d.bindings {
		gang := d.gangOf[b.pod]
		gangs[gang] = append(gangs[gang], b.at)
	}
	var latencies, spreads []float64
	for _, at := range gangs {
		if d.needed > 0 {
			at = at[:min(d.needed, len(at))]
		}
		whole := at[len(at)-1]
		latencies = append(latencies, since(d.start, whole))
		spreads = append(spreads, since(at[0], whole))
		for _, t := range at {
			r.heldGPUSeconds += since(t, whole)
		}
	}
	r.latencyMedian, r.latency99 = quantile(latencies, 0.5), quantile(latencies, 0.99)
	r.spreadMedian, r.spreadLongest = quantile(spreads, 0.5), slices.Max(spreads)
	for _, s := range spreads {
		r.partialGangSeconds += s
	}
	return r
}

// outcome returns the figures for the report. Without a scheduler there is no CPU time and no memory of one.
func (r result) outcome(scheduler bool) outcome {
	var out outcome
	out.add(lastBind, r.lastBind)
	out.add(lastWrite, r.lastWrite)
	out.add(firstBind, r.firstBind)
	out.add(podsPerSecond, r.podsPerSecond)
	out.add(gangLatencyMedian, r.latencyMedian)
	out.add(gangLatency99, r.latency99)
	out.add(spreadMedian, 1000*r.spreadMedian)
	out.add(spreadLongest, 1000*r.spreadLongest)
	out.add(partialGangSeconds, r.partialGangSeconds)
	out.add(heldGPUSeconds, r.heldGPUSeconds)
	if scheduler {
		out.add(schedulerCPU, r.cpu)
		out.add(schedulerMemory, r.memory)
	}
	out.add(serverCPU, r.serverCPU)
	out.add(serverCollected, r.serverCollections)
	out.add(writesPerPod, r.writesPerPod)
	for _, resource := range slices.Sorted(maps.Keys(r.writes)) {
		if perPod := r.writes[resource]; perPod >= 0.005 {
			out.add(writesOf(resource), perPod)
		}
	}
	return out
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
