// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The keys of the figures that targets, tests or several shapes have; the others are where they are added. A key names
// a figure in the tables and in results.jsonl, and tells its unit. A family has %s in place of one of its quantiles;
// see at.
const (
	lastBind         = "last_bind_seconds"
	firstToLast      = "first_to_last_bind_seconds"
	toFirstBind      = "last_created_to_first_bind_ms"
	podsPerSecond    = "pods_per_second"
	plainPod         = "plain_%s_ms"
	plainNever       = "plain_never"
	gangOfFour       = "gang_%s_ms"
	quietCPU         = "quiet_cpu_percent"
	quietWrites      = "quiet_writes_per_minute"
	refusal          = "verdict_%s_ms"
	arrivedBound     = "arrival_to_last_bind_%s_ms"
	victimsPerPod    = "victims_per_pod"
	gangsCut         = "incomplete_victim_gangs"
	decided          = "decision_%s_ms"
	preemptionWasted = "preemptions_wasted"
	restartFirst     = "restart_first_bind_seconds"
	schedulerMemory  = "scheduler_peak_mib"
	serverCPU        = "server_cpu_seconds"
	writesPerPod     = "writes_per_pod"
	writesButEvents  = "writes_per_pod_but_events"
	podsReady        = "last_ready_seconds"
	podsGone         = "last_gone_seconds"
	settled          = "settled_seconds" // the sets are Available, or nothing is left
)

// at returns the key of a quantile of a family.
func at(family string, q float64) string {
	return strings.Replace(family, "%s", map[float64]string{0.5: "p50", 0.99: "p99", 1: "max"}[q], 1)
}

// figure is one measured value.
type figure struct {
	key   string
	value float64
}

// outcome is one run of one contestant in figures; of the workload, one step of a run.
type outcome struct {
	variant variant
	figures []figure
	// unfinished is the reason why the run did not finish; the figures may be missing then. "" for a complete run.
	unfinished string
	load       string    // load average before
	steps      []outcome // of the workload, in place of figures
	// For the floor: bindings in order, and of the workload the objects that muster made.
	bindings []binding
	objects  []client.Object
}

// inSteps returns the steps of the workload, of other shapes the run itself.
func (r outcome) inSteps() []outcome {
	if r.steps != nil {
		return r.steps
	}
	return []outcome{r}
}

// add appends a figure, unless it is NaN: the median of no values.
func (r *outcome) add(key string, value float64) {
	if !math.IsNaN(value) {
		r.figures = append(r.figures, figure{key, value})
	}
}

// addPositive is add without zeros.
func (r *outcome) addPositive(key string, value float64) {
	if value > 0 {
		r.add(key, value)
	}
}

// addQuantiles adds quantiles of durations in seconds, in the unit of the family.
func (r *outcome) addQuantiles(family string, seconds []float64, quantiles ...float64) {
	for _, q := range quantiles {
		value := quantile(seconds, q)
		if strings.HasSuffix(family, "_ms") {
			value *= 1000
		}
		r.add(at(family, q), value)
	}
}

// addWrites adds the writes per pod, and the share of each resource that is not next to none.
func (r *outcome) addWrites(total string, writes map[string]int64, pods float64) {
	all := 0.0
	for resource, n := range writes {
		if total != writesButEvents || resource != "events" {
			all += float64(n) / pods
		}
	}
	r.add(total, all)
	for _, resource := range slices.Sorted(maps.Keys(writes)) {
		if perPod := float64(writes[resource]) / pods; perPod >= 0.005 {
			r.add(writesPerPod+":"+resource, perPod)
		}
	}
}

// get returns the value of the key, NaN if the run has none.
func (r outcome) get(key string) float64 {
	for _, f := range r.figures {
		if f.key == key {
			return f.value
		}
	}
	return math.NaN()
}

// headline returns the first figure as a line of progress.
func (r outcome) headline() string {
	if r.unfinished != "" {
		return "did not finish: " + firstLine(r.unfinished)
	}
	if len(r.figures) == 0 {
		return "nothing measured"
	}
	return r.figures[0].key + " " + digits(r.figures[0].value)
}

// firstLine leaves out the scheduler's log, which results.jsonl has.
func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}

// series are the values of one key over the runs that have it.
func series(runs []outcome, key string) []float64 {
	var all []float64
	for _, r := range runs {
		if value := r.get(key); !math.IsNaN(value) {
			all = append(all, value)
		}
	}
	return all
}

func since(a, b time.Time) float64 { return b.Sub(a).Seconds() }

// digits prints three digits of a value, and all before the point.
func digits(value float64) string {
	places := 2
	for limit := 10.0; value >= limit && places > 0; limit *= 10 {
		places--
	}
	return fmt.Sprintf("%.*f", places, value)
}

// quantile returns the smallest of the values that at least the share q of them does not exceed; for the median of an
// even number, the mean of the two in the middle. NaN for none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if q == 0.5 && n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[max(0, int(math.Ceil(q*float64(n)))-1)]
}
