// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"
)

// runThroughput makes fitting gangs ready at the same time, in a full cluster where the gangs of the variant wait, and
// measures the time until the last of them is bound. They request CPU only. Their pods exist before; it creates their
// PodGroups, or without gangs the pods.
func runThroughput(ctx context.Context, r run) (out outcome, err error) {
	fitting := r.o.equalGangs()
	for i := range fitting {
		fitting[i].gpus = 0
	}
	cl, seen, stop, err := prepared(ctx, r, &out, func(cl *cluster) error {
		if err := cl.fill(ctx); err != nil {
			return err
		}
		if err := cl.createGangs(ctx, waitingGangs(r.o, r.variant)...); err != nil || cl.c.api == noGangs {
			return err
		}
		return cl.createPods(ctx, fitting...)
	})
	defer stop()
	if err != nil {
		return out, err
	}
	if err := pause(ctx, r.o.settle); err != nil {
		return out, err
	}
	before, err := cl.usage()
	if err != nil {
		return out, err
	}
	began := time.Now()
	release := cl.createPodGroups
	if cl.c.api == noGangs {
		release = cl.createPods
	}
	if err := release(ctx, fitting...); err != nil {
		return out, err
	}
	names := podNames(fitting...)
	if err := seen.until(ctx, r.o.stall, r.o.limit, cl.failed, seen.allBound(names)); err != nil {
		return out, cl.withLog(err)
	}
	_, last := seen.boundAt(names)
	after, err := cl.usage()
	if err != nil {
		return out, err
	}
	out.add(podsPerSecond, float64(len(names))/since(began, last))
	out.add(lastBind, since(began, last))
	out.add(schedulerCPU, (after.cpu - before.cpu).Seconds())
	out.add(schedulerMemory, mebibytes(after.memory))
	return out, nil
}
