// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The PriorityClasses of the gangs that run, and of those that arrive.
const (
	lowPriority  = "low"
	highPriority = "high"
)

// preparePreemption fills the cluster with gangs of lower priority, which are bound at creation.
func preparePreemption(ctx context.Context, cl *cluster) error {
	if err := cl.createPriorityClasses(ctx); err != nil {
		return err
	}
	running := runningGangs(cl.o)
	if err := cl.createPodGroups(ctx, running...); err != nil {
		return err
	}
	var pods []*corev1.Pod
	for _, g := range running {
		for i := range g.pods {
			pod := g.pod(cl.c, i)
			pod.Spec.NodeName = cl.nodes[len(pods)/cl.o.gpus]
			pod.Spec.TerminationGracePeriodSeconds = new(int64) // no kubelet would end them
			pods = append(pods, pod)
		}
	}
	return inParallel(len(pods), func(i int) error {
		_, err := cl.client.CoreV1().Pods(namespace).Create(ctx, pods[i], metav1.CreateOptions{})
		return err
	})
}

func (cl *cluster) createPriorityClasses(ctx context.Context) error {
	for name, value := range map[string]int32{lowPriority: 10, highPriority: 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := cl.client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating PriorityClass %s: %w", name, err)
		}
	}
	return nil
}

// runningGangs returns gangs of one GPU per pod that fill the cluster. The last one may be smaller.
func runningGangs(o options) []gang {
	var gangs []gang
	for free := o.nodes * o.gpus; free > 0; free -= o.podsPerGang {
		gangs = append(gangs, gang{name: fmt.Sprintf("running-%04d", len(gangs)), pods: min(free, o.podsPerGang), gpus: 1, priorityClass: lowPriority})
	}
	return gangs
}

// measurePreemption creates gangs of higher priority, each after the one before it was bound, and measures how long that
// takes and which pods end for it.
func measurePreemption(ctx context.Context, cl *cluster, out *outcome) error {
	if err := pause(ctx, cl.o.settle); err != nil { // the status of the running gangs is written
		return err
	}
	reader, err := cl.preemptionReader(ctx)
	if err != nil {
		return err
	}
	before, err := cl.usage()
	if err != nil {
		return err
	}
	last, err := reader.read(ctx)
	if err != nil {
		return err
	}
	arriving := cl.o.equalGangs()
	var bound, decided, confirmed latencies
	for i := range arriving {
		arriving[i].priorityClass = highPriority
		if err := cl.untilArrived(ctx, arriving[i], &bound); err != nil {
			return err
		}
		now, err := reader.read(ctx)
		if err != nil {
			return err
		}
		decided.seconds = append(decided.seconds, now.decided.meanSince(last.decided)...)
		confirmed.seconds = append(confirmed.seconds, now.confirmed.meanSince(last.confirmed)...)
		last = now
	}
	out.add(arrivedBound50, bound.ms(0.5))
	out.add(arrivedBoundMax, bound.ms(1))
	out.add(decided50, decided.ms(0.5))
	out.add(decidedMax, decided.ms(1))
	out.add(confirmed50, confirmed.ms(0.5))
	out.add(confirmedMax, confirmed.ms(1))
	if cl.c.api == musterGangs {
		out.add(preemptionPlaced, last.placed)
		out.add(preemptionWasted, last.wasted)
	}
	if err := cl.addVictims(out, arriving); err != nil {
		return err
	}
	return cl.addUsage(out, before)
}

// untilArrived creates a gang and adds the time from then to its last binding. It returns a second later, when the scheduler
// has counted the outcome and written the status.
func (cl *cluster) untilArrived(ctx context.Context, g gang, bound *latencies) error {
	began := time.Now()
	if err := cl.createGangs(ctx, g); err != nil {
		return err
	}
	if err := cl.untilDone(ctx, cl.pods.allBound(g.podNames())); err != nil {
		return fmt.Errorf("waiting until the pods of gang %s are bound: %w", g.name, err)
	}
	_, last := cl.pods.boundAt(g.podNames())
	bound.add(began, last)
	return pause(ctx, 10*probeGap)
}

// addVictims adds what the running gangs have lost, and fails if a node has more pods than GPUs.
func (cl *cluster) addVictims(out *outcome, arrived []gang) error {
	running, gone := runningGangs(cl.o), cl.pods.deletedPods()
	l := lossesOf(running, gone)
	out.add(victimsPerPod, float64(l.pods)/float64(podsOf(arrived)))
	out.add(gangsHit, float64(l.gangs)/float64(len(arrived)))
	out.add(gangsCut, float64(l.incomplete))
	out.bindings = cl.pods.bindingsOf(arrived...)
	all := slices.Clone(out.bindings)
	for i, name := range podNames(running...) {
		if !slices.Contains(gone, name) {
			all = append(all, binding{pod: name, node: cl.nodes[i/cl.o.gpus]})
		}
	}
	return checkNodes(all, cl.o.gpus)
}

// losses describe what gangs have lost that need all of their pods: pods, gangs that lost any, and gangs of which some pods
// are left.
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

// preemptionReader reads the metrics of muster-scheduler about preemption. url "": the contestant has none.
type preemptionReader struct {
	client *http.Client
	url    string
}

func (cl *cluster) preemptionReader(ctx context.Context) (*preemptionReader, error) {
	if cl.c.api != musterGangs {
		return &preemptionReader{}, nil
	}
	client, err := profilerClient(ctx, cl.cp)
	return &preemptionReader{client: client, url: "https://" + hostOf(cl.program) + "/metrics"}, err
}

// preemptionMetrics have the searches for victims by result, and the preemptions by outcome.
type preemptionMetrics struct {
	decided, confirmed searches
	placed, wasted     float64
}

// searches are the samples of a histogram.
type searches struct {
	count   uint64
	seconds float64
}

// meanSince returns the mean duration of the searches after the earlier ones, in a list. nil: there were none.
func (s searches) meanSince(earlier searches) []float64 {
	if s.count == earlier.count {
		return nil
	}
	return []float64{(s.seconds - earlier.seconds) / float64(s.count-earlier.count)}
}

func (r *preemptionReader) read(ctx context.Context) (preemptionMetrics, error) {
	if r.url == "" {
		return preemptionMetrics{}, nil
	}
	families, err := fetchMetrics(ctx, r.client, r.url)
	return preemptionMetricsOf(families), err
}

// preemptionMetricsOf returns the metrics that are there, and zeros for the others: a series begins with its first event.
func preemptionMetricsOf(families map[string]*dto.MetricFamily) preemptionMetrics {
	var m preemptionMetrics
	for _, series := range families["muster_preemption_decision_duration_seconds"].GetMetric() {
		s := searches{count: series.GetHistogram().GetSampleCount(), seconds: series.GetHistogram().GetSampleSum()}
		switch label(series, "result") {
		case "decided":
			m.decided = s
		case "confirmed":
			m.confirmed = s
		}
	}
	for _, series := range families["muster_preemptions_total"].GetMetric() {
		switch label(series, "outcome") {
		case "placed":
			m.placed = series.GetCounter().GetValue()
		case "wasted":
			m.wasted = series.GetCounter().GetValue()
		}
	}
	return m
}
