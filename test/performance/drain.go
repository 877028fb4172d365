// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// drained has the raw observations of a drain.
type drained struct {
	created     time.Duration // time it took to create the pods
	load        string        // load average when the clock started
	start       time.Time     // of the scheduler's process, or of the plain client
	bindings    []binding     // in the API server's order
	gangOf      map[string]string
	needed      int              // pods that a gang needs; 0: all that it has
	process     usage            // the scheduler's, at the last binding; zero for the floor
	server      time.Duration    // CPU time of API server and etcd, from start to the last binding
	collections float64          // of garbage by the API server, as long
	writes      map[string]int64 // by resource, from the start until writes ended
	quiet       time.Time        // when the last of them was seen, to a quarter of a second
}

// runDrain creates all pods before the scheduler starts, and measures until the last is bound.
func runDrain(ctx context.Context, r run) (outcome, error) {
	r.o = r.o.inVariant(r.variant)
	d, err := drain(ctx, r)
	if err != nil {
		return outcome{}, err
	}
	out := measure(d, r.c.program != nil)
	out.bindings, out.load = d.bindings, d.load
	return out, nil
}

func drain(ctx context.Context, r run) (*drained, error) {
	o, c := r.o, r.c
	cl, err := newCluster(ctx, o, c)
	if err != nil {
		return nil, err
	}
	defer cl.stop()

	// 1. The gangs and their pods.
	gangs := o.equalGangs()
	d := &drained{gangOf: gangOf(gangs), needed: gangs[0].needed()}
	if err := cl.createPodGroups(ctx, gangs...); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cl.createPods(ctx, gangs...); err != nil {
		return nil, err
	}
	d.created = time.Since(began)

	// 2. Who watches.
	profiles, err := cl.profiler(ctx)
	if err != nil {
		return nil, err
	}
	seen, err := watchSights(ctx, cl.client)
	if err != nil {
		return nil, err
	}
	defer seen.stop()
	writesBefore, err := countWrites(ctx, cl.client)
	if err != nil {
		return nil, err
	}
	if err := collectGarbage(ctx, cl.client); err != nil {
		return nil, err
	}
	collectionsBefore, err := countCollections(ctx, cl.client)
	if err != nil {
		return nil, err
	}
	serverBefore := childrenCPU("kube-apiserver", "etcd")
	d.load = loadAverage()

	// 3. From the start to the last binding.
	d.start = time.Now()
	failed := make(chan error, 1)
	if c.program == nil {
		go func() {
			if err := cl.post(ctx, gangs, r.earlier); err != nil {
				failed <- err
			}
		}()
	} else {
		if err := cl.startScheduler(); err != nil {
			return nil, err
		}
		failed = cl.failed
		if profiles != nil {
			defer profiles.begin(ctx, cl.program)()
		}
	}
	err = seen.until(ctx, o.stall, 0, failed, seen.allBound(podNames(gangs...)))
	d.bindings = seen.bindingsOf(gangs...)
	if late := (unfinished{}); errors.As(err, &late) {
		err = unfinished{fmt.Errorf("%w, %d of %d pods are bound", late.error, len(d.bindings), podsOf(gangs))}
	}
	if err != nil {
		return nil, cl.withLog(err)
	}
	d.server = childrenCPU("kube-apiserver", "etcd") - serverBefore
	if d.process, err = cl.usage(); err != nil {
		return nil, err
	}
	if d.collections, err = countCollections(ctx, cl.client); err != nil {
		return nil, err
	}
	d.collections -= collectionsBefore

	// 4. Events and conditions may be written later than the bindings to which they refer.
	if d.writes, d.quiet, err = settledWrites(ctx, cl.client, writesBefore); err != nil {
		return nil, err
	}
	if profiles != nil {
		if err := profiles.heap(ctx, cl.program); err != nil {
			return nil, err
		}
	}
	return d, checkNodes(d.bindings, o.gpus)
}

// checkNodes reports a node that got more pods than it has GPUs.
func checkNodes(bindings []binding, gpus int) error {
	pods := map[string]int{}
	for _, b := range bindings {
		if pods[b.node]++; pods[b.node] > gpus {
			return fmt.Errorf("node %s got more pods than its %d GPUs", b.node, gpus)
		}
	}
	return nil
}
