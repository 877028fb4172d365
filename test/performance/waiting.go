// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-project/muster/test/controlplane"
)

// prepareWaiting fills the cluster, and creates the gangs that wait.
func prepareWaiting(ctx context.Context, cl *cluster) error {
	if err := cl.fill(ctx); err != nil {
		return err
	}
	if cl.variant.kind == "preemptors" {
		if err := cl.createPriorityClasses(ctx); err != nil {
			return err
		}
	}
	waiting := *cl
	if cl.variant.kind == "plain" {
		waiting.c.api = noGangs
	}
	return waiting.createGangs(ctx, waitingGangs(cl.o, cl.variant)...)
}

// measureWaiting replaces pods of the full cluster continuously, and times pods that fit. After that the cluster does not
// change, and the remaining work of the scheduler is measured.
func measureWaiting(ctx context.Context, cl *cluster, out *outcome) error {
	if err := pause(ctx, cl.o.settle); err != nil {
		return err
	}
	before, err := cl.usage()
	if err != nil {
		return err
	}
	began := time.Now()
	plain, gangs, err := cl.probeWhileChurning(ctx)
	if err != nil {
		return err
	}
	after, err := cl.usage()
	if err != nil {
		return err
	}
	plain.report(out, plainMedian, plain99)
	out.add(plainNever, float64(plain.never))
	gangs.report(out, fittingMedian, fitting99)
	out.add(fittingNever, float64(gangs.never))
	out.add(probes, float64(len(plain.seconds)))
	out.add(busyCPU, 100*(after.cpu-before.cpu).Seconds()/time.Since(began).Seconds())
	return cl.measureQuiet(ctx, out)
}

// waitingPods is how many pods a waiting gang has that is not a tree.
const waitingPods = 8

// waitingGangs returns the waiting gangs of a variant. Each pod requests all GPUs of a node, or more.
func waitingGangs(o options, v variant) []gang {
	var gangs []gang
	whole := int64(o.gpus)
	switch v.kind {
	case "plain": // one pod each, and no PodGroup
		gangs = append(gangs, gang{name: "waiting", pods: v.n, gpus: whole})
	case "trees": // v.m sub-groups of one pod, all needed
		for i := range v.n {
			gangs = append(gangs, gang{name: fmt.Sprintf("waiting-%04d", i), pods: v.m, subGroups: v.m, minSubGroups: v.m, gpus: whole})
		}
	default:
		for i := range v.n {
			g := gang{name: fmt.Sprintf("waiting-%04d", i), pods: waitingPods, gpus: whole}
			if v.kind == "images" {
				g.image = fmt.Sprintf("registry.example/model-%04d:1", i)
			}
			if v.kind == "levels" { // a block has 16 nodes
				g.level = controlplane.BlockLabel
			}
			if v.kind == "preemptors" { // whoever ends, no node is large enough
				g.gpus, g.priorityClass = whole+1, highPriority
			}
			gangs = append(gangs, g)
		}
	}
	return gangs
}

// fittingGang is the size of the gangs that are timed.
const fittingGang = 4

// probeWhileChurning times plain pods and gangs that fit, in turn, o.probes of each or until o.window is over.
func (cl *cluster) probeWhileChurning(ctx context.Context) (plain, gangs latencies, err error) {
	churning, stop := context.WithCancel(ctx)
	churned := make(chan error, 1)
	go func() { churned <- cl.churn(churning, cl.o.churn) }()
	defer func() {
		stop()
		if failed := <-churned; err == nil {
			err = failed
		}
	}()
	p := &prober{cl: cl, name: "probe"}
	for end := time.Now().Add(cl.o.window); len(plain.seconds) == 0 || len(plain.seconds) < cl.o.probes && time.Now().Before(end); {
		if err := p.plain(ctx, &plain); err != nil {
			return plain, gangs, err
		}
		if err := p.gang(ctx, fittingGang, &gangs); err != nil {
			return plain, gangs, err
		}
	}
	return plain, gangs, nil
}

// measureQuiet measures the work of the scheduler while nothing changes.
func (cl *cluster) measureQuiet(ctx context.Context, out *outcome) error {
	if err := pause(ctx, cl.o.settle); err != nil {
		return err
	}
	writesBefore, err := countWrites(ctx, cl.client)
	if err != nil {
		return err
	}
	before, err := cl.usage()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := pause(ctx, cl.o.quiet); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := cl.usage()
	if err != nil {
		return err
	}
	writesAfter, err := countWrites(ctx, cl.client)
	if err != nil {
		return err
	}
	var writes int64
	for resource, n := range writesAfter {
		writes += n - writesBefore[resource]
	}
	out.add(quietCPU, 100*(after.cpu-before.cpu).Seconds()/took.Seconds())
	out.add(quietWrites, float64(writes)/took.Minutes())
	out.add(schedulerMemory, mebibytes(after.memory))
	return nil
}

// prepareThroughput creates fitting gangs, which request CPU only, beside those that wait; their PodGroups, or without
// gangs their pods, are still missing.
func prepareThroughput(ctx context.Context, cl *cluster) error {
	if err := prepareWaiting(ctx, cl); err != nil || cl.c.api == noGangs {
		return err
	}
	return cl.createPods(ctx, cl.fittingGangs()...)
}

// measureThroughput makes the fitting gangs ready at the same time, and measures the time until the last of them is bound.
func measureThroughput(ctx context.Context, cl *cluster, out *outcome) error {
	if err := pause(ctx, cl.o.settle); err != nil {
		return err
	}
	before, err := cl.usage()
	if err != nil {
		return err
	}
	fitting, release := cl.fittingGangs(), cl.createPodGroups
	if cl.c.api == noGangs {
		release = cl.createPods
	}
	began := time.Now()
	if err := release(ctx, fitting...); err != nil {
		return err
	}
	names := podNames(fitting...)
	if err := cl.untilDone(ctx, cl.pods.allBound(names)); err != nil {
		return err
	}
	_, last := cl.pods.boundAt(names)
	out.add(podsPerSecond, float64(len(names))/since(began, last))
	out.add(lastBind, since(began, last))
	return cl.addUsage(out, before)
}

func (cl *cluster) fittingGangs() []gang {
	gangs := cl.o.equalGangs()
	for i := range gangs {
		gangs[i].gpus = 0
	}
	return gangs
}
