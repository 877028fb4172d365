// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// latencies are those of one kind of probe.
type latencies struct {
	seconds []float64   // of a probe that was given up: the time until then, a lower bound of its latency
	began   []time.Time // of each
	never   int         // how many were given up
}

// between returns the latencies of the probes that began in this time.
func (l latencies) between(from, to time.Time) []float64 {
	var within []float64
	for i, at := range l.began {
		if !at.Before(from) && at.Before(to) {
			within = append(within, l.seconds[i])
		}
	}
	return within
}

// add adds the latency of one probe.
func (l *latencies) add(began, ended time.Time) {
	l.began, l.seconds = append(l.began, began), append(l.seconds, since(began, ended))
}

// The probes are pods that fit: they request a small amount of CPU, of which every node has plenty.
var onePod, fourPods = gang{pods: 1, plain: true}, gang{pods: 4}

// probeGap is between two probes: at most ten a second, so that probes are no load of their own.
const probeGap = 100 * time.Millisecond

// probe creates pods that fit, and adds the time from the moment the last of them is created until all are bound.
func (cl *cluster) probe(ctx context.Context, g gang, into *latencies) {
	cl.probed++
	g.name = fmt.Sprintf("probe-%05d", cl.probed)
	cl.createPodGroups(ctx, g)
	var began time.Time
	for i := range g.pods {
		began = time.Now()
		must(cl.createPod(ctx, g.pod(cl.c, i)))
	}
	if cl.c.program == nil { // the floor binds as soon as the watch has reported the pods
		cl.until(ctx, 0, cl.o.patience, cl.pods.all(podNames(g), func(_ seenPod, exists bool) bool { return exists }))
		cl.post(ctx, []gang{g}, nil)
	}
	err := cl.pods.until(ctx, 0, cl.o.patience, cl.failed, cl.pods.allBound(podNames(g)))
	if late := (unfinished{}); errors.As(err, &late) {
		into.add(began, time.Now())
		into.never++
	} else {
		must(err)
		_, last := cl.pods.boundAt(podNames(g))
		into.add(began, last)
	}
	cl.deleteGangs(ctx, g)
	must(pause(ctx, probeGap))
}

// pause returns after so long, or with ctx's error.
func pause(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// probeMeanwhile probes with plain pods until the returned function is called; only then may the latencies be read.
func (cl *cluster) probeMeanwhile(ctx context.Context, into *latencies) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var (
		err  error
		done sync.WaitGroup
	)
	done.Go(func() {
		for ctx.Err() == nil && err == nil {
			err = attempt(func() { cl.probe(ctx, onePod, into) })
		}
		if ctx.Err() != nil {
			err = nil // it was stopped during a probe
		}
	})
	return func() error {
		cancel()
		done.Wait()
		return err
	}
}
