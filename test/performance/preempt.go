// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The PriorityClasses of the gangs that run, and of those that arrive.
const (
	lowPriority  = "low"
	highPriority = "high"
)

// preparePreemption fills the cluster with gangs of lower priority, which are bound at creation.
func preparePreemption(ctx context.Context, cl *cluster) {
	cl.createPriorityClasses(ctx)
	running := runningGangs(cl.o, cl.variant)
	cl.createPodGroups(ctx, running...)
	inParallel(cl.o.nodes*cl.o.gpus, func(i int) error {
		pod := running[i/cl.o.podsPerGang].pod(cl.c, i%cl.o.podsPerGang)
		pod.Spec.NodeName = cl.nodes[i/cl.o.gpus]
		return cl.createPod(ctx, pod)
	})
}

func (cl *cluster) createPriorityClasses(ctx context.Context) {
	for name, value := range map[string]int32{lowPriority: 10, highPriority: 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		got(cl.client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}))
	}
}

// runningGangs returns gangs of one GPU per pod, or pods without a gang, that fill the cluster. The last one may be
// smaller.
func runningGangs(o options, v variant) []gang {
	var gangs []gang
	for free := o.nodes * o.gpus; free > 0; free -= o.podsPerGang {
		gangs = append(gangs, gang{name: fmt.Sprintf("running-%04d", len(gangs)), pods: min(free, o.podsPerGang), gpus: 1, priorityClass: lowPriority, plain: v.kind == "pods"})
	}
	return gangs
}

// preemptors returns what arrives, one after the other: gangs, so many gangs at once, or so many pods without a gang at
// once.
func preemptors(o options, v variant) [][]gang {
	if v.kind == "gangs" && v.n > 0 {
		o.gangs = v.n
	}
	gangs := o.equalGangs()
	if v.kind == "pods" {
		gangs = []gang{{name: "pod", pods: v.n, gpus: 1, plain: true}}
	}
	for i := range gangs {
		gangs[i].priorityClass = highPriority
	}
	if v.n > 0 {
		return [][]gang{gangs}
	}
	return slices.Collect(slices.Chunk(gangs, 1))
}

// measurePreemption creates what preempts, each after the one before it was bound, and measures how long that takes and
// which pods end for it.
func measurePreemption(ctx context.Context, cl *cluster, out *outcome) {
	pause(ctx, cl.o.settle)                                    // the status of the running gangs is written
	outcomes := func(metric, label string) map[string]sample { // of muster only
		if cl.c.api != musterGangs {
			return nil
		}
		return byLabel(cl.metrics(ctx, addressOf(cl.program.ReadyURL))[metric], label)
	}
	searches := func() map[string]sample { return outcomes("muster_preemption_decision_duration_seconds", "result") }
	before, last := cl.usage(), searches()
	arriving := preemptors(cl.o, cl.variant)
	var bound latencies
	var decisions, confirmations []float64
	defer cl.profileScheduler(ctx)()
	for i := range arriving {
		began := time.Now()
		cl.createGangs(ctx, arriving[i]...)
		_, whole := cl.untilBound(ctx, arriving[i]...)
		bound.add(began, whole)
		pause(ctx, 10*probeGap) // the scheduler counts the outcome and writes the status
		now := searches()
		decisions = append(decisions, now["decided"].meanSince(last["decided"])...)
		confirmations = append(confirmations, now["confirmed"].meanSince(last["confirmed"])...)
		last = now
	}
	out.addQuantiles(arrivedBound, bound.seconds, 0.5, 1)
	out.addQuantiles(decided, decisions, 0.5, 1)
	out.addQuantiles("confirmation_%s_ms", confirmations, 0.5, 1)
	if results := outcomes("muster_preemptions_total", "outcome"); results != nil {
		out.add("preemptions_placed", results["placed"].sum)
		out.add(preemptionWasted, results["wasted"].sum)
	}
	cl.addVictims(out, slices.Concat(arriving...))
	cl.usage().add(out, before)
}

// addVictims adds what the running gangs have lost, and the bindings of their other pods to those of the gangs that
// arrived.
func (cl *cluster) addVictims(out *outcome, arrived []gang) {
	running, gone := runningGangs(cl.o, cl.variant), cl.pods.deletedPods()
	l := lossesOf(running, gone)
	out.add(victimsPerPod, float64(l.pods)/float64(len(podNames(arrived...))))
	out.add("victim_gangs_per_gang", float64(l.gangs)/float64(len(arrived)))
	out.add(gangsCut, float64(l.incomplete))
	out.bindings = cl.pods.bindingsOf(arrived...)
	for i, name := range podNames(running...) {
		if !slices.Contains(gone, name) {
			out.bindings = append(out.bindings, binding{pod: name, node: cl.nodes[i/cl.o.gpus]})
		}
	}
}

// losses describe what gangs have lost that need all of their pods: pods, gangs that lost any, and gangs of which some
// pods are left.
type losses struct{ pods, gangs, incomplete int }

// lossesOf returns the losses of the gangs. gone may contain pods of other gangs.
func lossesOf(gangs []gang, gone []string) losses {
	of, lost := gangOf(gangs), map[string]int{}
	var l losses
	for _, name := range gone {
		if g := of[name]; g != "" {
			lost[g]++
			l.pods++
		}
	}
	for _, g := range gangs {
		if lost[g.name] > 0 {
			l.gangs++
		}
		if lost[g.name] > 0 && lost[g.name] < g.pods {
			l.incomplete++
		}
	}
	return l
}
