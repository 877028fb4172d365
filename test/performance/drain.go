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
	writesBefore := cl.countWrites(ctx)
	cl.collectGarbage(ctx)
	collectionsBefore, serverBefore := cl.countCollections(ctx), serverUsage()
	out.load = loadAverage()

	// 1. From the start to the last binding.
	gangs := drainedGangs(cl.o, cl.variant)
	d := &drained{start: time.Now(), gangOf: gangOf(gangs), needed: gangs[0].needed()}
	waitForProfiles := func() {}
	if cl.c.program == nil {
		cl.startPosting(ctx, gangs)
	} else {
		cl.startScheduler()
		waitForProfiles = cl.profileScheduler(ctx)
	}
	cl.until(ctx, stall, 0, cl.pods.allBound(podNames(gangs...)))
	d.bindings = cl.pods.bindingsOf(gangs...)
	d.server = serverUsage() - serverBefore
	d.process = cl.usage()
	d.collections = cl.countCollections(ctx) - collectionsBefore

	// 2. Events and conditions may be written later than the bindings to which they refer.
	d.writes, d.quiet = cl.settledWrites(ctx, writesBefore)
	waitForProfiles()
	d.measure(out)
	out.bindings = d.bindings
}

// measure adds the figures of a drain. Every pod has one GPU. Of a gang with sub-groups, the minimum is assumed to
// be bound when as many pods are bound as it needs, whichever they are.
//
// The latency of a gang is from the moment when it could be scheduled, here the start of the scheduler since all pods
// exist before, to the last binding of its minimum. Its spread is from its first binding to the last of its minimum:
// that long it is observably partial.
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
	out.add("last_write_seconds", max(since(d.start, last), since(d.start, d.quiet))) // events and conditions are written after the bindings
	out.add("first_bind_seconds", since(d.start, first))
	out.add(podsPerSecond, pods/since(d.start, last))
	out.addQuantiles("gang_latency_%s_seconds", latencies, 0.5, 0.99)
	out.addQuantiles("bind_spread_%s_ms", spreads, 0.5, 1)
	out.add("partial_gang_seconds", partial)
	out.add("held_gpu_seconds", held)
	d.process.add(out, usage{})
	out.add(serverCPU, d.server.Seconds())
	out.add("server_collections", d.collections)
	out.addWrites(writesPerPod, d.writes, pods)
}

// measureRestart has the scheduler bind the gangs of the shape, then kills it with SIGKILL o.kills times. While it is
// away, a plain pod and a gang are created; the clock runs from the start of the new process.
func measureRestart(ctx context.Context, cl *cluster, out *outcome) {
	cl.untilBound(ctx, drainedGangs(cl.o, cl.variant)...)
	pause(ctx, cl.o.settle)
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
	out.add("restart_gang_seconds", quantile(whole.seconds, 0.5))
	out.add("restart_ready_seconds", quantile(ready.seconds, 0.5))
	cl.usage().add(out, usage{})
}

// measureArrival creates a gang for a running scheduler, and measures its creation, binding and, with probes, deletion,
// while plain pods are timed.
func measureArrival(ctx context.Context, cl *cluster, out *outcome) {
	g := arriving(cl.o, cl.variant)
	var alone, probed latencies
	for range cl.o.probes {
		cl.probe(ctx, onePod, &alone)
	}
	before, serverBefore := cl.usage(), serverUsage()
	stopProbes := cl.meanwhile(ctx, func(ctx context.Context) {
		for cl.o.probes > 0 && ctx.Err() == nil {
			cl.probe(ctx, onePod, &probed)
		}
	})
	defer stopProbes()

	// 1. Created.
	cl.createPodGroups(ctx, g)
	began := time.Now()
	cl.createPods(ctx, g)
	allThere := time.Now()

	// 2. Bound.
	if cl.c.program == nil {
		cl.startPosting(ctx, []gang{g})
	} else {
		defer cl.profileScheduler(ctx)()
	}
	first, last := cl.untilBound(ctx, g)
	out.add(firstToLast, since(first, last))
	out.add(toFirstBind, 1000*since(allThere, first))
	out.add(lastBind, since(allThere, last))
	out.add("created_seconds", since(began, allThere))
	out.add("last_bind_per_created_ratio", since(allThere, last)/since(began, allThere)) // runs differ by a third in both
	cl.usage().add(out, before)
	out.add(serverCPU, (serverUsage() - serverBefore).Seconds())
	out.bindings = cl.pods.bindingsOf(g)
	if cl.o.probes == 0 {
		return
	}

	// 3. Deleted.
	deleting := time.Now()
	cl.deleteGangs(ctx, g)
	cl.until(ctx, stall, limit, cl.pods.allGone(podNames(g)))
	gone := time.Now()
	stopProbes()
	out.add("deleted_seconds", since(deleting, gone))
	out.addQuantiles("plain_alone_%s_ms", alone.seconds, 0.5, 0.99)
	out.addQuantiles("plain_meanwhile_%s_ms", probed.seconds, 0.5, 0.99, 1)
	out.addQuantiles("plain_while_created_%s_ms", probed.between(began, allThere), 0.5, 0.99)
	out.addQuantiles("plain_while_bound_%s_ms", probed.between(allThere, last), 0.5, 0.99)
	out.addQuantiles("plain_while_deleted_%s_ms", probed.between(deleting, gone), 0.5, 0.99)
	out.add(plainNever, float64(probed.never))
}

// arriving returns the gang of a variant: every pod wants one GPU.
func arriving(o options, v variant) gang {
	g := gang{name: "gang", pods: o.podsPerGang, gpus: 1, indexed: v.kind == "index"}
	switch v.kind {
	case "pods":
		g.pods = v.n
	case "subgroups": // n of m pods, all of them needed
		g.pods, g.subGroups, g.minSubGroups = v.n*v.m, v.n, v.n
	}
	return g
}

// profileScheduler fetches profiles of the scheduler from now on; see profile.
func (cl *cluster) profileScheduler(ctx context.Context) (wait func()) {
	return cl.profile(ctx, 5*time.Second, map[string]string{cl.c.name: addressOf(cl.program.ReadyURL)})
}
