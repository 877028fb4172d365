// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// measureArrival creates a gang for a running scheduler, and measures its creation, binding and, with probes, deletion,
// while plain pods are timed.
func measureArrival(ctx context.Context, cl *cluster, out *outcome) {
	g := arriving(cl.o, cl.variant)
	probing := cl.o.probes > 0
	var alone, probed latencies
	for range cl.o.probes {
		cl.probe(ctx, onePod, &alone)
	}
	profiles := cl.profiler(ctx)
	before, serverBefore := cl.usage(), serverUsage()
	stopProbes := func() error { return nil }
	if probing {
		stopProbes = cl.probeMeanwhile(ctx, &probed)
	}
	defer func() { _ = stopProbes() }() // unless it was called below, another error came first

	// 1. Created.
	cl.createPodGroups(ctx, g)
	began := time.Now()
	cl.createPods(ctx, g)
	allThere := time.Now()
	defer profiles.begin(ctx)()

	// 2. Bound.
	if cl.c.program == nil {
		cl.startPosting(ctx, []gang{g})
	}
	first, last := cl.untilBound(ctx, g)
	out.add(firstToLast, since(first, last))
	out.add(toFirstBind, 1000*since(allThere, first))
	out.add(lastBind, since(allThere, last))
	out.add(kind{"created_seconds", "created, s", "%.1f"}, since(began, allThere))
	out.add(kind{"last_bind_per_created_ratio", "last bind, as a multiple of created", "%.2f"}, since(allThere, last)/since(began, allThere)) // runs differ by a third in both: docs/performance-history.md
	cl.usage().add(out, before)
	out.add(serverCPU, (serverUsage() - serverBefore).Seconds())
	out.bindings = cl.pods.bindingsOf(g)

	// 3. Deleted.
	if probing {
		deleting := time.Now()
		cl.deleteGangs(ctx, g)
		cl.until(ctx, stall, limit, cl.pods.allGone(podNames(g)))
		gone := time.Now()
		must(stopProbes())
		out.add(kind{"deleted_seconds", "deleted, s", "%.1f"}, since(deleting, gone))
		out.addQuantiles(kind{"plain_alone_%s_ms", "plain pod without the gang, %s, ms", "%.0f"}, alone.seconds, 0.5, 0.99)
		out.addQuantiles(kind{"plain_meanwhile_%s_ms", "plain pod meanwhile, %s, ms", "%.0f"}, probed.seconds, 0.5, 0.99, 1)
		out.addQuantiles(kind{"plain_while_created_%s_ms", "plain pod while the gang is created, %s, ms", "%.0f"}, probed.between(began, allThere), 0.5, 0.99)
		out.addQuantiles(kind{"plain_while_bound_%s_ms", "plain pod while the gang is bound, %s, ms", "%.0f"}, probed.between(allThere, last), 0.5, 0.99)
		out.addQuantiles(kind{"plain_while_deleted_%s_ms", "plain pod while the gang is deleted, %s, ms", "%.0f"}, probed.between(deleting, gone), 0.5, 0.99)
		out.add(plainNever, float64(probed.never))
	}
	must(checkNodes(out.bindings, cl.o.gpus))
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
