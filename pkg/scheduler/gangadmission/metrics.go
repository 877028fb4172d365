// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// No metric has a label per gang, because the number of gangs in a cluster is unbounded.
var (
	plans = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "plans_total", StabilityLevel: metrics.ALPHA,
		Help: "Attempts to plan a gang, by task (minimum, refill, lost-unit, surplus-unit, surplus-single) and result (committed, refused, stale).",
	}, []string{"task", "result"})
	planDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: "muster", Name: "plan_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time the scheduling loop spent on one plan.",
		Buckets: metrics.ExponentialBuckets(0.0005, 2, 15),
	}, []string{"result"})
	planPods = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: "muster", Name: "plan_pods", StabilityLevel: metrics.ALPHA,
		Help:    "Pods of a committed plan.",
		Buckets: metrics.ExponentialBuckets(1, 2, 12),
	})
	plansAborted = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "plans_aborted_total", StabilityLevel: metrics.ALPHA,
		Help: "Plans aborted before any pod was bound, by cause: refused (the planned node refused a member), unprepared (a volume, a claim or another reservation failed), late (a member was not ready in time), changed (a pod was removed or bound in the meantime), overtaken (surplus of a gang that fell below its minimum), preempted (a gang of higher priority needs the room). Divided by muster_plans_total{result=\"committed\"} it is the fraction of plans that are not carried out.",
	}, []string{"cause"})
	bindingsFailed = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "muster", Name: "bindings_failed_total", StabilityLevel: metrics.ALPHA,
		Help: "Bindings of gang members that the API server did not accept.",
	})
	preemptions = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "preemption_decisions_total", StabilityLevel: metrics.ALPHA,
		Help: "Searches for pods of lower priority that a gang, or a pod without one, could preempt, by result: decided, confirmed (on a new snapshot, before the evictions), unneeded (the room of pods that are ending is enough), aborts (the room of plans that are not being bound yet is needed), hopeless (preemption would not help), cut (the time was over).",
	}, []string{"result"})
	preemptionDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: "muster", Name: "preemption_decision_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time the scheduling loop spent on one search for pods to preempt.",
		Buckets: metrics.ExponentialBuckets(0.0005, 2, 15),
	}, []string{"result"})
	preemptionVictims = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "preemption_victims_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods that were evicted for gangs, by the greatest loss of their owner: surplus-pod (pods above minMember), surplus-sub-group (a sub-group above minSubGroup), plain-pod (a pod without a gang), whole-gang, unknown (an earlier process decided it).",
	}, []string{"loss"})
	preemptionTime = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: "muster", Name: "preemption_duration_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time from the decision of a preemption until the last pod of the gang's minimum was bound, or the pod without a gang, for preemptions with the outcome placed. The grace periods of the victims are part of it.",
		Buckets: metrics.ExponentialBuckets(0.1, 2, 15),
	})
	preemptionsEnded = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "preemptions_total", StabilityLevel: metrics.ALPHA,
		Help: "Preemptions, by outcome: placed (the preemptor was bound), spared (other room became free before the first eviction), cancelled (given up before the first eviction), overtaken (pods were evicted, and a gang of higher priority took some of the room or preempted this one, or others used the room while a victim needed long), wasted (pods were evicted, and the gang was not bound: a node was lost, or a pod did not end).",
	}, []string{"outcome"})
	gatedPods = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "gated_pods", StabilityLevel: metrics.ALPHA,
		Help: "Pods of gangs that wait outside of the scheduling queue. scheduler_pending_pods does not count them.",
	})
	waitingGangs = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "refused_gangs", StabilityLevel: metrics.ALPHA,
		Help: "Gangs whose last attempt found no plan and that wait for a change in the cluster that may help them.",
	})
	reservationsNow = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "kept_rooms", StabilityLevel: metrics.ALPHA,
		Help: "Deleted pods of gangs whose room is kept for their replacements, including those that are still terminating.",
	})
	markKeys = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "mark_keys", StabilityLevel: metrics.ALPHA,
		Help: "Keys with which the marks of bound pods are verified. 0: there is none, so bindings carry no mark and partially bound gangs are not released.",
	})
	registerMetrics sync.Once
)

// RegisterMetrics adds the metrics of this package to those that the scheduler serves. Calls after the first do
// nothing.
func RegisterMetrics() {
	registerMetrics.Do(func() {
		legacyregistry.MustRegister(plans, planDuration, planPods, plansAborted, bindingsFailed, preemptions, preemptionDuration, preemptionVictims, preemptionTime, preemptionsEnded, gatedPods, waitingGangs, reservationsNow, markKeys)
	})
}
