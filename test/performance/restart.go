// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"
)

// measureRestart has the scheduler bind the gangs of the shape, then kills it with SIGKILL o.kills times. While it is away,
// a plain pod and a gang are created; the clock runs from the start of the new process.
func measureRestart(ctx context.Context, cl *cluster, out *outcome) error {
	if err := cl.untilDone(ctx, cl.pods.allBound(podNames(cl.drainedGangs()...))); err != nil {
		return err
	}
	if err := pause(ctx, cl.o.settle); err != nil {
		return err
	}
	var first, ready, whole latencies
	for kill := range cl.o.kills {
		cl.kill()
		one := gang{name: fmt.Sprintf("after-%d-pod", kill), pods: 1}
		four := gang{name: fmt.Sprintf("after-%d-gang", kill), pods: fittingGang}
		plain := *cl
		plain.c.api = noGangs
		if err := plain.createPods(ctx, one); err != nil {
			return err
		}
		if err := cl.createGangs(ctx, four); err != nil {
			return err
		}
		began := time.Now()
		if err := cl.startReady(ctx); err != nil {
			return err
		}
		ready.add(began, time.Now())
		both := append(one.podNames(), four.podNames()...)
		if err := cl.pods.until(ctx, 0, cl.o.limit, cl.failed, cl.pods.allBound(both)); err != nil {
			return err
		}
		at, _ := cl.pods.boundAt(both)
		_, last := cl.pods.boundAt(four.podNames())
		first.add(began, at)
		whole.add(began, last)
	}
	out.add(restartFirst, quantile(first.seconds, 0.5))
	out.add(restartGang, quantile(whole.seconds, 0.5))
	out.add(restartReady, quantile(ready.seconds, 0.5))
	return cl.addUsage(out, usage{})
}
