// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// latencies are those of one kind of probe.
type latencies struct {
	seconds []float64   // of a probe that was given up: the time until then, a lower bound of its latency
	began   []time.Time // of each
	never   int         // how many were given up
}

func (l latencies) ms(q float64) float64 { return 1000 * quantile(l.seconds, q) }

// report adds the median and what 99 of 100 do not exceed, in milliseconds; nothing without probes.
func (l latencies) report(out *outcome, median, nearlyAll kind) {
	out.add(median, l.ms(0.5))
	out.add(nearlyAll, l.ms(0.99))
}

func (l latencies) longest() float64 { return 1000 * slices.Max(l.seconds) }

// between returns the latencies of the probes that began in this time.
func (l latencies) between(from, to time.Time) latencies {
	var within latencies
	for i, at := range l.began {
		if !at.Before(from) && at.Before(to) {
			within.seconds, within.began = append(within.seconds, l.seconds[i]), append(within.began, at)
		}
	}
	return within
}

// add adds the latency of one probe.
func (l *latencies) add(began, ended time.Time) {
	l.began, l.seconds = append(l.began, began), append(l.seconds, since(began, ended))
}

// prober creates pods that fit, one probe at a time, and returns the time until each was bound. They request a small
// amount of CPU, of which every node has plenty.
type prober struct {
	cl   *cluster
	name string // of the probes, without a number
	n    int    // probes so far
}

// probeGap is between two probes: at most ten a second, so that probes are no load of their own.
const probeGap = 100 * time.Millisecond

// plain times one pod without a gang.
func (p *prober) plain(ctx context.Context, into *latencies) error {
	return p.probe(ctx, 1, true, into)
}

// gang times one gang of so many pods, from the moment its last pod is created.
func (p *prober) gang(ctx context.Context, pods int, into *latencies) error {
	return p.probe(ctx, pods, false, into)
}

func (p *prober) probe(ctx context.Context, pods int, plain bool, into *latencies) error {
	cl := *p.cl
	if plain {
		cl.c.api = noGangs
	}
	p.n++
	g := gang{name: fmt.Sprintf("%s-%05d", p.name, p.n), pods: pods}
	if err := cl.createPodGroups(ctx, g); err != nil {
		return err
	}
	var began time.Time
	for i := range g.pods {
		began = time.Now()
		if _, err := cl.client.CoreV1().Pods(namespace).Create(ctx, g.pod(cl.c, i), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if cl.c.program == nil { // the floor binds as soon as the watch has reported the pods
		if err := cl.pods.until(ctx, 0, cl.o.patience, nil, cl.pods.allExist(g.podNames())); err != nil {
			return err
		}
		if err := cl.post(ctx, []gang{g}, nil); err != nil {
			return err
		}
	}
	err := cl.pods.until(ctx, 0, cl.o.patience, cl.failed, cl.pods.allBound(g.podNames()))
	var late unfinished
	switch {
	case err == nil:
		_, last := cl.pods.boundAt(g.podNames())
		into.add(began, last)
	case errors.As(err, &late):
		into.add(began, time.Now())
		into.never++
	default:
		return err
	}
	if err := cl.deleteGangs(ctx, g); err != nil {
		return err
	}
	return pause(ctx, probeGap)
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

// meanwhile probes with plain pods until the returned function is called; only then may the latencies be read.
func (p *prober) meanwhile(ctx context.Context, into *latencies) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var (
		err  error
		done sync.WaitGroup
	)
	done.Go(func() {
		for ctx.Err() == nil && err == nil {
			err = p.plain(ctx, into)
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
