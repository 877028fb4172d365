// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-project/muster/pkg/apis/scheduling/v2alpha2"
	"github.com/muster-project/muster/test/controlplane"
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
	err := attempt(func() { cl.until(ctx, 0, cl.o.patience, cl.pods.allBound(podNames(g))) })
	if late := (unfinished{}); errors.As(err, &late) {
		into.add(began, time.Now())
		into.never++
	} else {
		must(err)
		_, last := cl.pods.boundAt(podNames(g))
		into.add(began, last)
	}
	cl.deleteGangs(ctx, g)
	pause(ctx, probeGap)
}

// prepareWaiting fills the cluster, and creates the gangs that wait.
func prepareWaiting(ctx context.Context, cl *cluster) {
	cl.fill(ctx)
	cl.createPriorityClasses(ctx)
	cl.createGangs(ctx, waitingGangs(cl.o, cl.variant)...)
}

// measureWaiting replaces pods of the full cluster continuously, and times plain pods and gangs that fit, in turn,
// o.probes of each or until o.window is over. After that the cluster does not change, and the remaining work of the
// scheduler is measured.
func measureWaiting(ctx context.Context, cl *cluster, out *outcome) {
	// 1. While it changes.
	pause(ctx, cl.o.settle)
	before, began := cl.usage(), time.Now()
	var plain, gangs latencies
	stop := cl.meanwhile(ctx, cl.churn)
	defer stop()
	for end := began.Add(cl.o.window); len(plain.seconds) == 0 || len(plain.seconds) < cl.o.probes && time.Now().Before(end); {
		cl.probe(ctx, onePod, &plain)
		cl.probe(ctx, fourPods, &gangs)
	}
	stop()
	after := cl.usage()
	out.addQuantiles(plainPod, plain.seconds, 0.5, 0.99)
	out.add(plainNever, float64(plain.never))
	out.addQuantiles(gangOfFour, gangs.seconds, 0.5, 0.99)
	out.add("gang_never", float64(gangs.never))
	out.add("probes", float64(len(plain.seconds)))
	out.add("busy_cpu_percent", after.percentSince(before, time.Since(began)))

	// 2. While nothing changes.
	pause(ctx, cl.o.settle)
	writesBefore := cl.countWrites(ctx)
	before, began = cl.usage(), time.Now()
	pause(ctx, cl.o.quiet)
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

// prepareThroughput creates fitting gangs, which request CPU only, beside those that wait; their PodGroups, or without
// gangs their pods, are still missing.
func prepareThroughput(ctx context.Context, cl *cluster) {
	prepareWaiting(ctx, cl)
	if cl.c.api != noGangs {
		cl.createPods(ctx, fittingGangs(cl.o)...)
	}
}

// measureThroughput makes the fitting gangs ready at the same time, and measures the time until the last of them is
// bound.
func measureThroughput(ctx context.Context, cl *cluster, out *outcome) {
	pause(ctx, cl.o.settle)
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

// measureRefusals times the refusal of gangs that cannot fit, o.probes of them one after the other: from the creation
// of the last pod until its PodGroup has the reason, and until a first pod is marked as unschedulable.
func measureRefusals(ctx context.Context, cl *cluster, out *outcome) {
	var answers, refusals latencies
	for i := range cl.o.probes {
		g := gang{name: fmt.Sprintf("refused-%03d", i), pods: cl.o.podsPerGang, gpus: int64(cl.o.gpus)}
		cl.createGangs(ctx, g)
		began := time.Now()
		if cl.c.api == musterGangs {
			cl.untilObjects(ctx, podGroups, metav1.ListOptions{FieldSelector: "metadata.name=" + g.name}, cl.o.patience,
				func(found []*unstructured.Unstructured) bool { return len(found) == 1 && final(found[0]) })
			answers.add(began, time.Now())
		}
		cl.until(ctx, 0, cl.o.patience, func() bool {
			for _, name := range podNames(g) {
				if at := cl.pods.pods[name].refused; !at.IsZero() {
					if at.Before(began) { // while the last pod was created
						at = began
					}
					refusals.add(began, at)
					return true
				}
			}
			return false
		})
		cl.deleteGangs(ctx, g)
		pause(ctx, 10*probeGap)
	}
	out.addQuantiles(refusal, answers.seconds, 0.5, 0.99)
	out.addQuantiles("pod_refused_%s_ms", refusals.seconds, 0.5, 0.99)
	cl.usage().add(out, usage{})
}

// final reports whether a PodGroup has the reason why it cannot be admitted, rather than that another gang goes first.
func final(podGroup *unstructured.Unstructured) bool {
	reason, _, _ := unstructured.NestedString(podGroup.Object, "status", "reason")
	switch v2alpha2.Reason(reason) {
	case v2alpha2.ReasonTooLarge, v2alpha2.ReasonInsufficientGPUs, v2alpha2.ReasonInsufficientResources, v2alpha2.ReasonTopologyUnavailable, v2alpha2.ReasonFragmented, v2alpha2.ReasonNoNodeMatches, v2alpha2.ReasonNodesUnavailable:
		return true
	}
	return false
}
