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

// Sum is a gauge to which each object contributes a number, as far as this process knows.
type Sum struct {
	set func(sum float64)

	mu       sync.Mutex
	byObject map[string]int // without entries of 0; guarded by mu
	sum      int            // guarded by mu
}

// ReplacementsUnderWay is the number of replicas of objects of the kind level of which an object of an earlier attempt
// exists. It begins at 0.
func ReplacementsUnderWay(level string) *Sum {
	return newSum(func(sum float64) { underWay.WithLabelValues(level).Set(sum) })
}

// SilentSchedulers is the number of PodCliques whose minimum depends on pods for which their scheduler has not
// answered. It begins at 0.
func SilentSchedulers() *Sum { return newSum(func(sum float64) { schedulerSilent.Set(sum) }) }

func newSum(set func(float64)) *Sum {
	set(0)
	return &Sum{set: set, byObject: map[string]int{}}
}

// Record sets what an object contributes. An object that is gone contributes 0.
func (s *Sum) Record(object string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum += n - s.byObject[object]
	if n == 0 {
		delete(s.byObject, object)
	} else {
		s.byObject[object] = n
	}
	s.set(float64(s.sum))
}
