// SPDX-License-Identifier: Apache-2.0

// Package metrics defines the metrics of muster-controller's controllers. None has a label per object. All are per
// process: counters begin at 0 when it starts.
package metrics

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Values of the label end of a breach.
const (
	// EndRecovered: the minimum was reached again.
	EndRecovered = "recovered"
	// EndRemoved: the object was deleted while the breach lasted: terminated, scaled in, or replaced.
	EndRemoved = "removed"
)

// buckets range from a second to some days: termination delays are seconds in tests and hours in production.
var buckets = []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600}

var (
	breaches = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "min_available_breaches_total", StabilityLevel: metrics.ALPHA,
		Help: "Breaches of minAvailable that began, by kind: PodClique or PodCliqueScalingGroup.",
	}, []string{"kind"})
	breachDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: "muster", Name: "min_available_breach_duration_seconds", StabilityLevel: metrics.ALPHA, Buckets: buckets,
		Help: "How long breaches of minAvailable lasted, by kind and by how they ended: recovered or removed.",
	}, []string{"kind", "end"})
	replacements = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "muster", Name: "replica_replacements_total", StabilityLevel: metrics.ALPHA,
		Help: "Replicas that were replaced as a whole, by the kind that they are a replica of, PodCliqueSet or PodCliqueScalingGroup, and by reason: Termination, Restart, Preemption, NodesLost, Update or PodCliquesDeleted.",
	}, []string{"level", "reason"})
	replacementDuration = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: "muster", Name: "replica_replacement_duration_seconds", StabilityLevel: metrics.ALPHA, Buckets: buckets,
		Help: "Time from the decision to replace a replica until it was available again, by level and reason.",
	}, []string{"level", "reason"})
	underWay = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "replica_replacements_under_way", StabilityLevel: metrics.ALPHA,
		Help: "Replicas that wait until pods or PodCliques of an earlier attempt are gone, by level.",
	}, []string{"level"})
	updates = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "muster", Name: "updates_total", StabilityLevel: metrics.ALPHA,
		Help: "Updates of PodCliqueSets that began: changes of a template that replace pods.",
	})
	updateDuration = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: "muster", Name: "update_duration_seconds", StabilityLevel: metrics.ALPHA, Buckets: buckets,
		Help: "Time from the beginning of an update of a PodCliqueSet to its end. An update that is superseded by another change of the template is not observed.",
	})
	schedulerSilent = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: "muster", Name: "scheduler_silent", StabilityLevel: metrics.ALPHA,
		Help: "PodCliques whose minimum depends on pods for which their scheduler has not answered. Nothing of them is terminated or restarted meanwhile.",
	})
	stalledUpdates = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "muster", Name: "updates_stalled_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of times an update of a PodCliqueSet stalled: it made no progress for --stalled-update-after.",
	})
)

// allMetrics are the metrics of this package.
func allMetrics() []metrics.Registerable {
	return []metrics.Registerable{breaches, breachDuration, replacements, replacementDuration, underWay, updates, updateDuration, stalledUpdates, schedulerSilent}
}

// Register adds the metrics to those that a controller-runtime manager serves. Call it once.
func Register() error {
	for _, m := range allMetrics() {
		m.Create(nil)
		if err := ctrlmetrics.Registry.Register(m); err != nil {
			return fmt.Errorf("registering metric %s: %w", m.FQName(), err)
		}
	}
	return nil
}

// BreachBegan counts a breach of the minimum of an object of the given kind.
func BreachBegan(kind string) { breaches.WithLabelValues(kind).Inc() }

// BreachEnded records how long a breach lasted, and how it ended: EndRecovered or EndRemoved.
func BreachEnded(kind, end string, lasted time.Duration) {
	breachDuration.WithLabelValues(kind, end).Observe(max(lasted, 0).Seconds())
}

// CountReplacement counts the decision to replace a replica of an object of the kind level.
func CountReplacement(level, reason string) { replacements.WithLabelValues(level, reason).Inc() }

// AvailableAgain records how long it took from the decision to replace a replica until it was available.
func AvailableAgain(level, reason string, took time.Duration) {
	replacementDuration.WithLabelValues(level, reason).Observe(max(took, 0).Seconds())
}

// UpdateBegan counts an update of a PodCliqueSet.
func UpdateBegan() { updates.Inc() }

// UpdateEnded records how long an update of a PodCliqueSet took.
func UpdateEnded(took time.Duration) { updateDuration.Observe(max(took, 0).Seconds()) }

// UpdateStalled counts an update of a PodCliqueSet that stalls.
func UpdateStalled() { stalledUpdates.Inc() }

// pending are the replicas under replacement of each object.
var pending = struct {
	sync.Mutex
	replicas map[string]map[string]int // by level and object; without entries of 0
}{replicas: map[string]map[string]int{}}

// RecordReplacements records the number of replicas of an object, of the kind level, of which an object of an earlier
// attempt exists. 0 removes the entry.
func RecordReplacements(level, object string, replicas int) {
	pending.Lock()
	defer pending.Unlock()
	if pending.replicas[level] == nil {
		pending.replicas[level] = map[string]int{}
	}
	if replicas == 0 {
		delete(pending.replicas[level], object)
	} else {
		pending.replicas[level][object] = replicas
	}
	updateGauge(level)
}

// updateGauge updates the gauge. pending must be locked.
func updateGauge(level string) {
	sum := 0
	for _, n := range pending.replicas[level] {
		sum += n
	}
	underWay.WithLabelValues(level).Set(float64(sum))
}

// unanswered are the PodCliques whose scheduler does not answer.
var unanswered = struct {
	sync.Mutex
	cliques map[string]bool // without entries of false
}{cliques: map[string]bool{}}

// RecordSilentScheduler records whether the minimum of a PodClique depends on pods for which their scheduler has not
// answered.
func RecordSilentScheduler(clique string, silent bool) {
	unanswered.Lock()
	defer unanswered.Unlock()
	if silent {
		unanswered.cliques[clique] = true
	} else {
		delete(unanswered.cliques, clique)
	}
	schedulerSilent.Set(float64(len(unanswered.cliques)))
}

// ResetReplacements resets the replicas under replacement, as at the start of a process. It is for simulations that run
// controllers one after the other in one process.
func ResetReplacements() {
	pending.Lock()
	defer pending.Unlock()
	for level := range pending.replicas {
		clear(pending.replicas[level])
		updateGauge(level)
	}
}
