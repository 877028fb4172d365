// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// runArrive creates a gang for a running scheduler, and measures its creation, binding and, with probes, deletion, while
// plain pods are timed.
func runArrive(ctx context.Context, r run) (out outcome, err error) {
	cl, err := newCluster(ctx, r.o, r.c)
	if err != nil {
		return out, err
	}
	defer cl.stop()
	seen, err := watchSights(ctx, cl.client)
	if err != nil {
		return out, err
	}
	defer seen.stop()
	out.load = loadAverage()
	if err := cl.startReady(ctx); err != nil {
		return out, err
	}
	g := arriving(r.o, r.variant)
	probing := r.o.probes > 0
	var alone latencies
	p := &prober{cl: cl, seen: seen, name: "probe"}
	if probing {
		for range r.o.probes {
			if err := p.plain(ctx, &alone); err != nil {
				return out, err
			}
		}
	}
	profiles, err := cl.profiler(ctx)
	if err != nil {
		return out, err
	}
	before, err := cl.usage()
	if err != nil {
		return out, err
	}
	serverBefore := childrenCPU("kube-apiserver", "etcd")
	stopProbes := func() (latencies, error) { return latencies{}, nil }
	if probing {
		stopProbes = p.meanwhile(ctx)
	}
	defer func() { _, _ = stopProbes() }() // unless it was closed below, another error came first

	// 1. Created.
	if err := cl.createPodGroups(ctx, g); err != nil {
		return out, err
	}
	began := time.Now()
	if err := cl.createPods(ctx, g); err != nil {
		return out, err
	}
	allThere := time.Now()
	if profiles != nil {
		defer profiles.begin(ctx, cl.program)()
	}

	// 2. Bound.
	failed := cl.failed
	if cl.c.program == nil {
		posting := make(chan error, 1)
		failed = posting
		go func() {
			if err := cl.post(ctx, []gang{g}, r.earlier); err != nil {
				posting <- err
			}
		}()
	}
	names := g.podNames()
	if err := seen.until(ctx, r.o.stall, r.o.limit, failed, seen.allBound(names)); err != nil {
		return out, cl.withLog(err)
	}
	first, last := seen.boundAt(names)
	after, err := cl.usage()
	if err != nil {
		return out, err
	}
	server := childrenCPU("kube-apiserver", "etcd") - serverBefore

	// 3. Deleted.
	gone := time.Now()
	if probing {
		if err := cl.deleteGangs(ctx, g); err != nil {
			return out, err
		}
		if err := seen.until(ctx, r.o.stall, r.o.limit, cl.failed, seen.allGone(names)); err != nil {
			return out, cl.withLog(err)
		}
	}
	took := time.Since(gone)
	meanwhile, err := stopProbes()
	if err != nil {
		return out, cl.withLog(err)
	}

	out.bindings = seen.bindingsOf(g)
	out.add(firstToLast, since(first, last))
	out.add(toFirstBind, 1000*since(allThere, first))
	out.add(lastBind, since(allThere, last))
	out.add(created, since(began, allThere))
	out.add(perCreated, since(allThere, last)/since(began, allThere)) // runs differ by a third in both: docs/performance-history.md
	if probing {
		out.add(deleted, took.Seconds())
		out.add(aloneMedian, alone.ms(0.5))
		out.add(alone99, alone.ms(0.99))
		out.add(meanwhile50, meanwhile.ms(0.5))
		out.add(meanwhile99, meanwhile.ms(0.99))
		out.add(meanwhileMax, meanwhile.longest())
		for _, phase := range []struct {
			median, nearlyAll kind
			from, to          time.Time
		}{{whileCreated50, whileCreated99, began, allThere}, {whileBound50, whileBound99, allThere, last}, {whileDeleted50, whileDeleted99, gone, gone.Add(took)}} {
			if probes := meanwhile.between(phase.from, phase.to); len(probes.seconds) > 0 {
				out.add(phase.median, probes.ms(0.5))
				out.add(phase.nearlyAll, probes.ms(0.99))
			}
		}
		out.add(plainNever, float64(meanwhile.never))
	}
	if cl.process != nil {
		out.add(schedulerCPU, (after.cpu - before.cpu).Seconds())
		out.add(schedulerMemory, mebibytes(after.memory))
	}
	out.add(serverCPU, server.Seconds())
	return out, checkNodes(out.bindings, r.o.gpus)
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
