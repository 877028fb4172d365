// SPDX-License-Identifier: Apache-2.0

package gangadmission

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/muster-project/muster/pkg/scheduler/evictions"
	"github.com/muster-project/muster/pkg/scheduler/gangs"
)

// waitBuckets range from what a scheduler needs to what a gang may wait for room.
var waitBuckets = []float64{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600}

// No metric has a label per gang or user, because their number is unbounded.
var (
	plans = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "plans_total", StabilityLevel: metrics.ALPHA,
		Help: "Attempts to plan a gang, by task (minimum, refill, lost-unit, surplus-unit, surplus-single) and result: committed, refused, cut (refused because its time was over; it goes on later), stale (the gang or the cluster changed meanwhile).",
	}, []string{"task", "result"})
	planRefusals = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "plan_refusals_total", StabilityLevel: metrics.ALPHA,
		Help: "Attempts that were refused or cut, by the plugins that refused nodes to pods of the gang. An attempt counts once for each of them.",
	}, []string{"plugin"})
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
	victimsEnded = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "preemption_pods_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods that preemptions evicted, by the outcome of the preemption: placed, overtaken, wasted. Those of wasted ones have ended in vain. Pods whose deletion is under way when the outcome is known count, too.",
	}, []string{"outcome"})
	releasedPods = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "released_pods_total", StabilityLevel: metrics.ALPHA,
		Help: "Bound pods that were deleted because what they belong to never became whole, by what that is: gang or sub-group.",
	}, []string{"of"})
	admissionDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: "muster", Name: "gang_admission_duration_seconds", StabilityLevel: metrics.ALPHA, Buckets: waitBuckets,
		Help: "Time from when the pods of a gang sufficed for its minimum until the minimum was bound, by the GPUs that its pods request and by band of its priority.",
	}, []string{"gpus", "priority"})
	readyDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: "muster", Name: "gang_ready_duration_seconds", StabilityLevel: metrics.ALPHA, Buckets: waitBuckets,
		Help: "Time from when the minimum of a gang was bound until its pods were ready, by the GPUs that the pods of the gang request.",
	}, []string{"gpus"})
	waitingGangs = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "waiting_gangs", StabilityLevel: metrics.ALPHA,
		Help: "Gangs whose minimum is not bound, by the reason in the status of their PodGroup and by the GPUs that their pods request. Without PodGroups that are idle.",
	}, []string{"reason", "gpus"})
	waitingGPUs = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "waiting_gpus", StabilityLevel: metrics.ALPHA,
		Help: "GPUs that the unbound pods of waiting gangs request, by the reason for which the gangs wait.",
	}, []string{"reason"})
	oldestWaiting = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "oldest_waiting_gang_age_seconds", StabilityLevel: metrics.ALPHA,
		Help: "How long the gang has been waiting that has waited longest since its pods sufficed for its minimum, by the GPUs that its pods request. 0: none waits. Gangs that have lost pods of a minimum that was bound do not count.",
	}, []string{"gpus"})
	gpuSeconds = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "gpu_seconds_total", StabilityLevel: metrics.ALPHA,
		Help: "GPU seconds, by what the GPUs were used for: docs/operations.md explains the states. The states of a resource sum to what is allocatable.",
	}, []string{"resource", "state"})
	startablePods = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "startable_pods", StabilityLevel: metrics.ALPHA,
		Help: "Pods of so many GPUs each that would find free GPUs now: the largest gang of such pods that would start. Nothing but GPUs is considered.",
	}, []string{"resource", "gpus"})
	gatedPods = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "gated_pods", StabilityLevel: metrics.ALPHA,
		Help: "Pods of gangs that wait outside of the scheduling queue. scheduler_pending_pods does not count them.",
	})
	keptRooms = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "kept_rooms", StabilityLevel: metrics.ALPHA,
		Help: "Rooms on nodes that are kept, by purpose: replacement (one for each deleted pod of a gang, also while it is still terminating), preemptor and reservation (one on each node for each gang for which others are preempted, or that has waited for long).",
	}, []string{"purpose"})
	promises = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "reservations_total", StabilityLevel: metrics.ALPHA,
		Help: "What happened to room that is reserved for gangs that have waited for long: made, and one of placed (the gang has started), given-up (nothing of it has become free for reservationTimeout), unfit (a node was lost, and the gang fits nowhere else), cancelled (the gang was deleted or changed, or preempts).",
	}, []string{"event"})
	overduePods = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "overdue_pods", StabilityLevel: metrics.ALPHA,
		Help: "Pods on nodes that run for longer than the annotation scheduling.run.ai/max-runtime of their PodGroup promises.",
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
		legacyregistry.MustRegister(
			plans, planRefusals, planDuration, planPods, plansAborted, bindingsFailed, releasedPods,
			preemptions, preemptionDuration, preemptionVictims, preemptionTime, preemptionsEnded, victimsEnded,
			admissionDuration, readyDuration, waitingGangs, waitingGPUs, oldestWaiting, gatedPods,
			gpuSeconds, startablePods, keptRooms, promises, overduePods, markKeys,
		)
		// A rate, or an increase, over the first event needs the series before it.
		for _, outcome := range []evictions.Outcome{evictions.Placed, evictions.Overtaken, evictions.Wasted} {
			victimsEnded.WithLabelValues(string(outcome))
		}
		for _, event := range []gangs.PromiseEvent{gangs.PromiseMade, gangs.PromisePlaced, gangs.PromiseGivenUp, gangs.PromiseUnfit, gangs.PromiseCancelled} {
			promises.WithLabelValues(string(event))
		}
		for _, of := range []string{"gang", "sub-group"} {
			releasedPods.WithLabelValues(of)
		}
	})
}
