// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

// runRestart has the scheduler bind the gangs of the shape, then kills it with SIGKILL o.kills times. While it is away, a
// plain pod and a gang are created; the clock runs from the start of the new process.
func runRestart(ctx context.Context, r run) (out outcome, err error) {
	gangs := r.o.equalGangs()
	cl, seen, stop, err := prepared(ctx, r, &out, func(cl *cluster) error { return cl.createGangs(ctx, gangs...) })
	defer stop()
	if err != nil {
		return out, err
	}
	names := podNames(gangs...)
	if err := seen.until(ctx, r.o.stall, r.o.limit, cl.failed, seen.allBound(names)); err != nil {
		return out, cl.withLog(err)
	}
	if err := pause(ctx, r.o.settle); err != nil {
		return out, err
	}

	var first, ready, whole latencies
	var u usage
	for kill := range r.o.kills {
		cl.kill()
		one := gang{name: fmt.Sprintf("after-%d-pod", kill), pods: 1}
		four := gang{name: fmt.Sprintf("after-%d-gang", kill), pods: fittingGang}
		plain := *cl
		plain.c.api = noGangs
		if err := plain.createPods(ctx, one); err != nil {
			return out, err
		}
		if err := cl.createGangs(ctx, four); err != nil {
			return out, err
		}
		began := time.Now()
		if err := cl.startReady(ctx); err != nil {
			return out, err
		}
		ready.add(began, time.Now(), true)
		both := append(one.podNames(), four.podNames()...)
		if err := seen.until(ctx, 0, r.o.limit, cl.failed, seen.allBound(both)); err != nil {
			return out, cl.withLog(err)
		}
		at, _ := seen.boundAt(both)
		_, last := seen.boundAt(four.podNames())
		first.add(began, at, true)
		whole.add(began, last, true)
		if u, err = cl.usage(); err != nil {
			return out, err
		}
	}
	out.add(restartFirst, quantile(first.seconds, 0.5))
	out.add(restartGang, quantile(whole.seconds, 0.5))
	out.add(restartReady, quantile(ready.seconds, 0.5))
	out.add(schedulerCPU, u.cpu.Seconds())
	out.add(schedulerMemory, mebibytes(u.memory))
	return out, nil
}
