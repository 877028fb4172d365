// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// measureArrival creates a gang for a running scheduler, and measures its creation, binding and, with probes, deletion,
// while plain pods are timed.
func measureArrival(ctx context.Context, cl *cluster, out *outcome) error {
	o := cl.o
	g := arriving(o, cl.variant)
	probing := o.probes > 0
	var alone, meanwhile latencies
	p := &prober{cl: cl, name: "probe"}
	for range o.probes {
		if err := p.plain(ctx, &alone); err != nil {
			return err
		}
	}
	profiles, err := cl.profiler(ctx)
	if err != nil {
		return err
	}
	before, err := cl.usage()
	if err != nil {
		return err
	}
	serverBefore := serverUsage()
	stopProbes := func() error { return nil }
	if probing {
		stopProbes = p.meanwhile(ctx, &meanwhile)
	}
	defer func() { _ = stopProbes() }() // unless it was called below, another error came first

	// 1. Created.
	if err := cl.createPodGroups(ctx, g); err != nil {
		return err
	}
	began := time.Now()
	if err := cl.createPods(ctx, g); err != nil {
		return err
	}
	allThere := time.Now()
	if profiles != nil {
		defer profiles.begin(ctx, "https://"+hostOf(cl.program))()
	}

	// 2. Bound.
	if cl.c.program == nil {
		cl.startPosting(ctx, []gang{g})
	}
	names := g.podNames()
	if err := cl.untilDone(ctx, cl.pods.allBound(names)); err != nil {
		return err
	}
	first, last := cl.pods.boundAt(names)
	out.add(firstToLast, since(first, last))
	out.add(toFirstBind, 1000*since(allThere, first))
	out.add(lastBind, since(allThere, last))
	out.add(created, since(began, allThere))
	out.add(perCreated, since(allThere, last)/since(began, allThere)) // runs differ by a third in both: docs/performance-history.md
	if err := cl.addUsage(out, before); err != nil {
		return err
	}
	out.add(serverCPU, (serverUsage() - serverBefore).Seconds())
	out.bindings = cl.pods.bindingsOf(g)

	// 3. Deleted.
	if probing {
		deleting := time.Now()
		if err := cl.deleteGangs(ctx, g); err != nil {
			return err
		}
		if err := cl.untilDone(ctx, cl.pods.allGone(names)); err != nil {
			return err
		}
		gone := time.Now()
		if err := stopProbes(); err != nil {
			return err
		}
		out.add(deleted, since(deleting, gone))
		alone.report(out, aloneMedian, alone99)
		meanwhile.report(out, meanwhile50, meanwhile99)
		out.add(meanwhileMax, meanwhile.longest())
		meanwhile.between(began, allThere).report(out, whileCreated50, whileCreated99)
		meanwhile.between(allThere, last).report(out, whileBound50, whileBound99)
		meanwhile.between(deleting, gone).report(out, whileDeleted50, whileDeleted99)
		out.add(plainNever, float64(meanwhile.never))
	}
	return checkNodes(out.bindings, o.gpus)
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
