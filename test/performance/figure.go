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

// kind is a kind of figure. The key names it in the JSON lines and ends in its unit; the title names it in the table. A family has %s in
// both, for one of its quantiles; see at.
type kind struct{ key, title, format string }

// The kinds that targets, tests or several shapes have; the others are where they are added.
var (
	firstBind          = kind{"first_bind_seconds", "first bind, s", "%.2f"}
	lastBind           = kind{"last_bind_seconds", "last bind, s", "%.2f"}
	lastWrite          = kind{"last_write_seconds", "last write of any kind, s", "%.1f"}
	podsPerSecond      = kind{"pods_per_second", "pods per second", "%.0f"}
	gangLatency        = kind{"gang_latency_%s_seconds", "gang latency, %s, s", "%.2f"}
	bindSpread         = kind{"bind_spread_%s_ms", "bind spread of a gang, %s, ms", "%.0f"}
	partialGangSeconds = kind{"partial_gang_seconds", "partial gangs, gang-seconds", "%.1f"}
	heldGPUSeconds     = kind{"held_gpu_seconds", "held by partial gangs, GPU-seconds", "%.1f"}
	toFirstBind        = kind{"last_created_to_first_bind_ms", "last pod created to first bind, ms", "%.0f"}
	firstToLast        = kind{"first_to_last_bind_seconds", "first to last bind, s", "%.2f"}
	plainPod           = kind{"plain_%s_ms", "plain pod, %s, ms", "%.0f"}
	plainNever         = kind{"plain_never", "plain pods not bound in time", "%.0f"}
	gangOfFour         = kind{"gang_%s_ms", "gang of 4, %s, ms", "%.0f"}
	quietCPU           = kind{"quiet_cpu_percent", "scheduler CPU when nothing changes, % of a core", "%.1f"}
	quietWrites        = kind{"quiet_writes_per_minute", "API writes per minute when nothing changes", "%.0f"}
	refusal            = kind{"verdict_%s_ms", "refusal of the gang, %s, ms", "%.0f"}
	arrivedBound       = kind{"arrival_to_last_bind_%s_ms", "first pod created to last bind of a gang, %s, ms", "%.0f"}
	victimsPerPod      = kind{"victims_per_pod", "victims per pod", "%.2f"}
	gangsCut           = kind{"incomplete_victim_gangs", "gangs left without a part of their minimum", "%.0f"}
	decided            = kind{"decision_%s_ms", "decision, %s, ms", "%.1f"}
	preemptionWasted   = kind{"preemptions_wasted", "evictions without placement", "%.0f"}
	restartFirst       = kind{"restart_first_bind_seconds", "new process to first bind, s", "%.2f"}
	schedulerCPU       = kind{"scheduler_cpu_seconds", "scheduler CPU, s", "%.2f"}
	schedulerMemory    = kind{"scheduler_peak_mib", "scheduler peak memory, MiB", "%.0f"}
	serverCPU          = kind{"server_cpu_seconds", "API server and etcd CPU, s", "%.2f"}
	serverCollected    = kind{"server_collections", "API server garbage collections", "%.0f"}
	writesPerPod       = kind{"writes_per_pod", "API writes per pod", "%.2f"}
	podsReady          = kind{"last_ready_seconds", "last pod ready, s", "%.1f"}
	podsGone           = kind{"last_gone_seconds", "last pod gone, s", "%.1f"}
	settled            = kind{"settled_seconds", "Available, or nothing left, s", "%.1f"}
	writesButEvents    = kind{"writes_per_pod_but_events", "API writes per pod, but events", "%.2f"}
)

// at returns the kind of a quantile of a family.
func (k kind) at(q float64) kind {
	name := map[float64][2]string{0.5: {"p50", "median"}, 0.99: {"p99", "99 of 100"}, 1: {"max", "longest"}}[q]
	return kind{strings.Replace(k.key, "%s", name[0], 1), strings.Replace(k.title, "%s", name[1], 1), k.format}
}

// writesOf is the share of one resource in writesPerPod.
func writesOf(resource string) kind {
	return kind{"writes_per_pod:" + resource, "  of them " + resource, "%.2f"}
}

// figure is one measured value.
type figure struct {
	kind  kind
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
func (r *outcome) add(k kind, value float64) {
	if !math.IsNaN(value) {
		r.figures = append(r.figures, figure{k, value})
	}
}

// addPositive is add without zeros.
func (r *outcome) addPositive(k kind, value float64) {
	if value > 0 {
		r.add(k, value)
	}
}

// addQuantiles adds quantiles of durations in seconds, in the unit of the family.
func (r *outcome) addQuantiles(family kind, seconds []float64, quantiles ...float64) {
	for _, q := range quantiles {
		value := quantile(seconds, q)
		if strings.HasSuffix(family.key, "_ms") {
			value *= 1000
		}
		r.add(family.at(q), value)
	}
}

// get returns the value of the key, NaN if the run has none.
func (r outcome) get(key string) float64 {
	for _, f := range r.figures {
		if f.kind.key == key {
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
	f := r.figures[0]
	return f.kind.title + " " + fmt.Sprintf(f.kind.format, f.value)
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

// kindsOf returns the kinds that any of the runs has: those of the first run first, in its order.
func kindsOf(runs ...[]outcome) []kind {
	var found []kind
	for _, r := range slices.Concat(runs...) {
		for _, f := range r.figures {
			if !slices.Contains(found, f.kind) {
				found = append(found, f.kind)
			}
		}
	}
	return found
}

// addWrites adds the writes per pod, and the share of each resource that is not next to none.
func (r *outcome) addWrites(total kind, writes map[string]int64, pods float64) {
	all := 0.0
	for resource, n := range writes {
		if total != writesButEvents || resource != "events" {
			all += float64(n) / pods
		}
	}
	r.add(total, all)
	for _, resource := range slices.Sorted(maps.Keys(writes)) {
		if perPod := float64(writes[resource]) / pods; perPod >= 0.005 {
			r.add(writesOf(resource), perPod)
		}
	}
}

func since(a, b time.Time) float64 { return b.Sub(a).Seconds() }

// quantile returns the smallest of the values that at least the share q of them does not exceed; for the median of an even
// number, the mean of the two in the middle. NaN for none.
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
