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
func (l *latencies) add(began, ended time.Time, bound bool) {
	l.began, l.seconds = append(l.began, began), append(l.seconds, since(began, ended))
	if !bound {
		l.never++
	}
}

// prober creates pods that fit, one probe at a time, and returns the time until each was bound. They request a small
// amount of CPU, of which every node has plenty.
type prober struct {
	cl   *cluster
	seen *sights
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
	if cl.c.program == nil {
		if err := p.bind(ctx, g); err != nil {
			return err
		}
	}
	err := p.seen.until(ctx, 0, cl.o.patience, cl.failed, p.seen.allBound(g.podNames()))
	var late unfinished
	switch {
	case err == nil:
		_, last := p.seen.boundAt(g.podNames())
		into.add(began, last, true)
	case errors.As(err, &late):
		into.add(began, time.Now(), false)
	default:
		return err
	}
	if err := cl.deleteGangs(ctx, g); err != nil {
		return err
	}
	return pause(ctx, probeGap)
}

// bind binds pods of the floor, which has no scheduler, as soon as the watch has reported them.
func (p *prober) bind(ctx context.Context, g gang) error {
	for _, name := range g.podNames() {
		if err := p.seen.until(ctx, p.cl.o.stall, p.cl.o.patience, p.cl.failed, p.seen.exists(name)); err != nil {
			return err
		}
	}
	return p.cl.post(ctx, []gang{g}, nil)
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

// meanwhile probes with plain pods until the returned function is called, which returns the measurements.
func (p *prober) meanwhile(ctx context.Context) (stop func() (latencies, error)) {
	ctx, cancel := context.WithCancel(ctx)
	var (
		all  latencies
		err  error
		done sync.WaitGroup
	)
	done.Go(func() {
		for ctx.Err() == nil && err == nil {
			err = p.plain(ctx, &all)
		}
		if ctx.Err() != nil {
			err = nil // it was stopped during a probe
		}
	})
	return func() (latencies, error) {
		cancel()
		done.Wait()
		return all, err
	}
}
