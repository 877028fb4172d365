// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/muster-project/muster/test/controlplane"
)

// prepareWaiting fills the cluster, and creates the gangs that wait.
func prepareWaiting(ctx context.Context, cl *cluster) {
	cl.fill(ctx)
	cl.createPriorityClasses(ctx)
	cl.createGangs(ctx, waitingGangs(cl.o, cl.variant)...)
}

// measureWaiting replaces pods of the full cluster continuously, and times pods that fit. After that the cluster does not
// change, and the remaining work of the scheduler is measured.
func measureWaiting(ctx context.Context, cl *cluster, out *outcome) {
	// 1. While it changes.
	must(pause(ctx, cl.o.settle))
	before, began := cl.usage(), time.Now()
	plain, gangs := cl.probeWhileChurning(ctx)
	after := cl.usage()
	out.addQuantiles(plainPod, plain.seconds, 0.5, 0.99)
	out.add(plainNever, float64(plain.never))
	out.addQuantiles(gangOfFour, gangs.seconds, 0.5, 0.99)
	out.add(kind{"gang_never", "gangs of 4 not bound in time", "%.0f"}, float64(gangs.never))
	out.add(kind{"probes", "of each so many", "%.0f"}, float64(len(plain.seconds)))
	out.add(kind{"busy_cpu_percent", "scheduler CPU meanwhile, % of a core", "%.0f"}, after.percentSince(before, time.Since(began)))

	// 2. While nothing changes.
	must(pause(ctx, cl.o.settle))
	writesBefore := cl.countWrites(ctx)
	before, began = cl.usage(), time.Now()
	must(pause(ctx, cl.o.quiet))
	took := time.Since(began)
	after = cl.usage()
	var writes int64
	for _, n := range cl.writesSince(ctx, writesBefore) {
		writes += n
	}
	out.add(quietCPU, after.percentSince(before, took))
	out.add(quietWrites, float64(writes)/took.Minutes())
	out.add(schedulerMemory, after.mebibytes)
}

// waitingPods is how many pods a waiting gang has that is not a tree.
const waitingPods = 8

// waitingGangs returns the waiting gangs of a variant. Each pod requests all GPUs of a node, or more.
func waitingGangs(o options, v variant) []gang {
	whole := int64(o.gpus)
	if v.kind == "plain" { // one pod each, and no PodGroup
		return []gang{{name: "waiting", pods: v.n, gpus: whole, plain: true}}
	}
	gangs := make([]gang, v.n)
	for i := range gangs {
		g := gang{name: fmt.Sprintf("waiting-%04d", i), pods: waitingPods, gpus: whole}
		switch v.kind {
		case "images":
			g.image = fmt.Sprintf("registry.example/model-%04d:1", i)
		case "levels": // a block has 16 nodes
			g.level = controlplane.BlockLabel
		case "preemptors": // whoever ends, no node is large enough
			g.gpus, g.priorityClass = whole+1, highPriority
		case "trees": // v.m sub-groups of one pod, all needed
			g.pods, g.subGroups, g.minSubGroups = v.m, v.m, v.m
		}
		gangs[i] = g
	}
	return gangs
}

// probeWhileChurning times plain pods and gangs that fit, in turn, o.probes of each or until o.window is over.
func (cl *cluster) probeWhileChurning(ctx context.Context) (plain, gangs latencies) {
	churning, stop := context.WithCancel(ctx)
	churned := make(chan error, 1)
	go func() { churned <- cl.churn(churning, cl.o.churn) }()
	err := attempt(func() {
		for end := time.Now().Add(cl.o.window); len(plain.seconds) == 0 || len(plain.seconds) < cl.o.probes && time.Now().Before(end); {
			cl.probe(ctx, onePod, &plain)
			cl.probe(ctx, fourPods, &gangs)
		}
	})
	stop()
	failed := <-churned
	must(cmp.Or(err, failed))
	return plain, gangs
}

// prepareThroughput creates fitting gangs, which request CPU only, beside those that wait; their PodGroups, or without
// gangs their pods, are still missing.
func prepareThroughput(ctx context.Context, cl *cluster) {
	prepareWaiting(ctx, cl)
	if cl.c.api != noGangs {
		cl.createPods(ctx, fittingGangs(cl.o)...)
	}
}

// measureThroughput makes the fitting gangs ready at the same time, and measures the time until the last of them is bound.
func measureThroughput(ctx context.Context, cl *cluster, out *outcome) {
	must(pause(ctx, cl.o.settle))
	before, began := cl.usage(), time.Now()
	fitting := fittingGangs(cl.o)
	if cl.c.api == noGangs {
		cl.createPods(ctx, fitting...)
	} else {
		cl.createPodGroups(ctx, fitting...)
	}
	_, last := cl.untilBound(ctx, fitting...)
	out.add(podsPerSecond, float64(len(podNames(fitting...)))/since(began, last))
	out.add(lastBind, since(began, last))
	cl.usage().add(out, before)
}

func fittingGangs(o options) []gang {
	gangs := o.equalGangs()
	for i := range gangs {
		gangs[i].gpus = 0
	}
	return gangs
}
