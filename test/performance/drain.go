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
func prepareDrain(ctx context.Context, cl *cluster) error {
	return cl.createGangs(ctx, cl.drainedGangs()...)
}

// measureDrain starts the scheduler, and measures until the last pod is bound.
func measureDrain(ctx context.Context, cl *cluster, out *outcome) error {
	profiles, err := cl.profiler(ctx)
	if err != nil {
		return err
	}
	writesBefore, err := countWrites(ctx, cl.client)
	if err != nil {
		return err
	}
	if err := collectGarbage(ctx, cl.client); err != nil {
		return err
	}
	collectionsBefore, err := countCollections(ctx, cl.client)
	if err != nil {
		return err
	}
	serverBefore := serverUsage()
	out.load = loadAverage()

	// 1. From the start to the last binding.
	gangs := cl.drainedGangs()
	d := &drained{start: time.Now(), gangOf: gangOf(gangs), needed: gangs[0].needed()}
	if cl.c.program == nil {
		cl.startPosting(ctx, gangs)
	} else {
		if err := cl.startScheduler(); err != nil {
			return err
		}
		if profiles != nil {
			defer profiles.begin(ctx, "https://"+hostOf(cl.program))()
		}
	}
	if err := cl.pods.until(ctx, cl.o.stall, 0, cl.failed, cl.pods.allBound(podNames(gangs...))); err != nil {
		return err
	}
	d.bindings = cl.pods.bindingsOf(gangs...)
	d.server = serverUsage() - serverBefore
	if d.process, err = cl.usage(); err != nil {
		return err
	}
	if d.collections, err = countCollections(ctx, cl.client); err != nil {
		return err
	}
	d.collections -= collectionsBefore

	// 2. Events and conditions may be written later than the bindings to which they refer.
	if d.writes, d.quiet, err = settledWrites(ctx, cl.client, writesBefore); err != nil {
		return err
	}
	if profiles != nil {
		if err := profiles.heap(ctx, hostOf(cl.program)); err != nil {
			return err
		}
	}
	measure(d, cl.c.program != nil, out)
	out.bindings = d.bindings
	return checkNodes(d.bindings, cl.o.gpus)
}

// drainedGangs returns the gangs of the shape in its variant.
func (cl *cluster) drainedGangs() []gang { return cl.o.inVariant(cl.variant).equalGangs() }

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
