// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

// drained has the raw observations of a drain.
type drained struct {
	start       time.Time // of the scheduler's process, or of the plain client
	bindings    []binding // in the API server's order
	gangOf      map[string]string
	needed      int              // pods that a gang needs; 0: all that it has
	process     usage            // the scheduler's, at the last binding; zero for the floor
	server      time.Duration    // CPU time of API server and etcd, from start to the last binding
	collections float64          // of garbage by the API server, as long
	writes      map[string]int64 // by resource, from the start until writes ended
	quiet       time.Time        // when the last of them was seen, to a quarter of a second
}

// prepareDrain creates the gangs and their pods.
func prepareDrain(ctx context.Context, cl *cluster) {
	cl.createGangs(ctx, drainedGangs(cl.o, cl.variant)...)
}

// measureDrain starts the scheduler, and measures until the last pod is bound.
func measureDrain(ctx context.Context, cl *cluster, out *outcome) {
	profiles := cl.profiler(ctx)
	writesBefore := cl.countWrites(ctx)
	cl.collectGarbage(ctx)
	collectionsBefore, serverBefore := cl.countCollections(ctx), serverUsage()
	out.load = loadAverage()

	// 1. From the start to the last binding.
	gangs := drainedGangs(cl.o, cl.variant)
	d := &drained{start: time.Now(), gangOf: gangOf(gangs), needed: gangs[0].needed()}
	if cl.c.program == nil {
		cl.startPosting(ctx, gangs)
	} else {
		cl.startScheduler()
		defer profiles.begin(ctx)()
	}
	cl.until(ctx, stall, 0, cl.pods.allBound(podNames(gangs...)))
	d.bindings = cl.pods.bindingsOf(gangs...)
	d.server = serverUsage() - serverBefore
	d.process = cl.usage()
	d.collections = cl.countCollections(ctx) - collectionsBefore

	// 2. Events and conditions may be written later than the bindings to which they refer.
	d.writes, d.quiet = cl.settledWrites(ctx, writesBefore)
	profiles.heap(ctx)
	d.measure(out)
	out.bindings = d.bindings
	must(checkNodes(d.bindings, cl.o.gpus))
}

// measure adds the figures of a drain. Every pod has one GPU. Of a gang with sub-groups, the minimum is assumed to
// be bound when as many pods are bound as it needs, whichever they are.
//
// The latency of a gang is from the moment when it could be scheduled, here the start of the scheduler since all pods exist
// before, to the last binding of its minimum. Its spread is from its first binding to the last of its minimum: that long it is
// observably partial.
func (d *drained) measure(out *outcome) {
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
	out.addQuantiles(gangLatency, latencies, 0.5, 0.99)
	out.addQuantiles(bindSpread, spreads, 0.5, 1)
	out.add(partialGangSeconds, partial)
	out.add(heldGPUSeconds, held)
	d.process.add(out, usage{})
	out.add(serverCPU, d.server.Seconds())
	out.add(serverCollected, d.collections)
	out.addWrites(writesPerPod, d.writes, pods)
}

// checkNodes reports a node that got more pods than it has GPUs.
func checkNodes(bindings []binding, gpus int) error {
	pods := map[string]int{}
	for _, b := range bindings {
		if pods[b.node]++; pods[b.node] > gpus {
			return fmt.Errorf("node %s got more pods than its %d GPUs", b.node, gpus)
		}
	}
	return nil
}

// measureRestart has the scheduler bind the gangs of the shape, then kills it with SIGKILL o.kills times. While it is away,
// a plain pod and a gang are created; the clock runs from the start of the new process.
func measureRestart(ctx context.Context, cl *cluster, out *outcome) {
	cl.untilBound(ctx, drainedGangs(cl.o, cl.variant)...)
	must(pause(ctx, cl.o.settle))
	var first, ready, whole latencies
	for kill := range cl.o.kills {
		cl.kill()
		one, four := onePod, fourPods
		one.name, four.name = fmt.Sprintf("after-%d-pod", kill), fmt.Sprintf("after-%d-gang", kill)
		cl.createPods(ctx, one)
		cl.createGangs(ctx, four)
		began := time.Now()
		cl.startReady(ctx)
		ready.add(began, time.Now())
		cl.until(ctx, 0, limit, cl.pods.allBound(podNames(one, four)))
		at, _ := cl.pods.boundAt(podNames(one, four))
		_, last := cl.pods.boundAt(podNames(four))
		first.add(began, at)
		whole.add(began, last)
	}
	out.add(restartFirst, quantile(first.seconds, 0.5))
	out.add(kind{"restart_gang_seconds", "new process to a bound gang of 4, s", "%.2f"}, quantile(whole.seconds, 0.5))
	out.add(kind{"restart_ready_seconds", "new process to ready, s", "%.2f"}, quantile(ready.seconds, 0.5))
	cl.usage().add(out, usage{})
}
