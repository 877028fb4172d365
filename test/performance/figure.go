// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// kind is a kind of figure. The key names it in the JSON lines and ends in its unit; the title names it in the table.
type kind struct{ key, title, format string }

// The kinds of figures, in the order of a table. Times are in seconds unless the title says milliseconds.
var (
	firstBind          = kind{"first_bind_seconds", "first bind, s", "%.2f"}
	lastBind           = kind{"last_bind_seconds", "last bind, s", "%.2f"}
	lastWrite          = kind{"last_write_seconds", "last write of any kind, s", "%.1f"}
	podsPerSecond      = kind{"pods_per_second", "pods per second", "%.0f"}
	gangLatencyMedian  = kind{"gang_latency_p50_seconds", "gang latency, median, s", "%.2f"}
	gangLatency99      = kind{"gang_latency_p99_seconds", "gang latency, 99 of 100, s", "%.2f"}
	spreadMedian       = kind{"bind_spread_p50_ms", "bind spread of a gang, median, ms", "%.0f"}
	spreadLongest      = kind{"bind_spread_max_ms", "bind spread of a gang, longest, ms", "%.0f"}
	partialGangSeconds = kind{"partial_gang_seconds", "partial gangs, gang-seconds", "%.1f"}
	heldGPUSeconds     = kind{"held_gpu_seconds", "held by partial gangs, GPU-seconds", "%.1f"}

	created      = kind{"created_seconds", "created, s", "%.1f"}
	perCreated   = kind{"last_bind_per_created_ratio", "last bind, as a multiple of created", "%.2f"}
	toFirstBind  = kind{"last_created_to_first_bind_ms", "last pod created to first bind, ms", "%.0f"}
	firstToLast  = kind{"first_to_last_bind_seconds", "first to last bind, s", "%.2f"}
	deleted      = kind{"deleted_seconds", "deleted, s", "%.1f"}
	aloneMedian  = kind{"plain_alone_p50_ms", "plain pod without the gang, median, ms", "%.0f"}
	alone99      = kind{"plain_alone_p99_ms", "plain pod without the gang, 99 of 100, ms", "%.0f"}
	meanwhile50  = kind{"plain_meanwhile_p50_ms", "plain pod meanwhile, median, ms", "%.0f"}
	meanwhile99  = kind{"plain_meanwhile_p99_ms", "plain pod meanwhile, 99 of 100, ms", "%.0f"}
	meanwhileMax = kind{"plain_meanwhile_max_ms", "plain pod meanwhile, longest, ms", "%.0f"}

	whileCreated50 = kind{"plain_while_created_p50_ms", "plain pod while the gang is created, median, ms", "%.0f"}
	whileCreated99 = kind{"plain_while_created_p99_ms", "plain pod while the gang is created, 99 of 100, ms", "%.0f"}
	whileBound50   = kind{"plain_while_bound_p50_ms", "plain pod while the gang is bound, median, ms", "%.0f"}
	whileBound99   = kind{"plain_while_bound_p99_ms", "plain pod while the gang is bound, 99 of 100, ms", "%.0f"}
	whileDeleted50 = kind{"plain_while_deleted_p50_ms", "plain pod while the gang is deleted, median, ms", "%.0f"}
	whileDeleted99 = kind{"plain_while_deleted_p99_ms", "plain pod while the gang is deleted, 99 of 100, ms", "%.0f"}

	plainMedian   = kind{"plain_p50_ms", "plain pod, median, ms", "%.0f"}
	plain99       = kind{"plain_p99_ms", "plain pod, 99 of 100, ms", "%.0f"}
	plainNever    = kind{"plain_never", "plain pods not bound in time", "%.0f"}
	fittingMedian = kind{"gang_p50_ms", "gang of 4, median, ms", "%.0f"}
	fitting99     = kind{"gang_p99_ms", "gang of 4, 99 of 100, ms", "%.0f"}
	fittingNever  = kind{"gang_never", "gangs of 4 not bound in time", "%.0f"}
	probes        = kind{"probes", "of each so many", "%.0f"}
	busyCPU       = kind{"busy_cpu_percent", "scheduler CPU meanwhile, % of a core", "%.0f"}
	quietCPU      = kind{"quiet_cpu_percent", "scheduler CPU when nothing changes, % of a core", "%.1f"}
	quietWrites   = kind{"quiet_writes_per_minute", "API writes per minute when nothing changes", "%.0f"}

	refusalMedian = kind{"verdict_p50_ms", "refusal of the gang, median, ms", "%.0f"}
	refusal99     = kind{"verdict_p99_ms", "refusal of the gang, 99 of 100, ms", "%.0f"}
	podRefused50  = kind{"pod_refused_p50_ms", "first pod told unschedulable, median, ms", "%.0f"}
	podRefused99  = kind{"pod_refused_p99_ms", "first pod told unschedulable, 99 of 100, ms", "%.0f"}

	arrivedBound50   = kind{"arrival_to_last_bind_p50_ms", "first pod created to last bind of a gang, median, ms", "%.0f"}
	arrivedBoundMax  = kind{"arrival_to_last_bind_max_ms", "first pod created to last bind of a gang, longest, ms", "%.0f"}
	victimsPerPod    = kind{"victims_per_pod", "victims per pod", "%.2f"}
	gangsHit         = kind{"victim_gangs_per_gang", "gangs that lost pods, per gang", "%.1f"}
	gangsCut         = kind{"incomplete_victim_gangs", "gangs left without a part of their minimum", "%.0f"}
	decided50        = kind{"decision_p50_ms", "decision, median, ms", "%.1f"}
	decidedMax       = kind{"decision_max_ms", "decision, longest, ms", "%.1f"}
	confirmed50      = kind{"confirmation_p50_ms", "confirmation on a new snapshot, median, ms", "%.1f"}
	confirmedMax     = kind{"confirmation_max_ms", "confirmation on a new snapshot, longest, ms", "%.1f"}
	preemptionPlaced = kind{"preemptions_placed", "preemptions after which the gang was bound", "%.0f"}
	preemptionWasted = kind{"preemptions_wasted", "evictions without placement", "%.0f"}

	restartFirst = kind{"restart_first_bind_seconds", "new process to first bind, s", "%.2f"}
	restartReady = kind{"restart_ready_seconds", "new process to ready, s", "%.2f"}
	restartGang  = kind{"restart_gang_seconds", "new process to a bound gang of 4, s", "%.2f"}

	schedulerCPU    = kind{"scheduler_cpu_seconds", "scheduler CPU, s", "%.2f"}
	schedulerMemory = kind{"scheduler_peak_mib", "scheduler peak memory, MiB", "%.0f"}
	serverCPU       = kind{"server_cpu_seconds", "API server and etcd CPU, s", "%.2f"}
	serverCollected = kind{"server_collections", "API server garbage collections", "%.0f"}
	writesPerPod    = kind{"writes_per_pod", "API writes per pod", "%.2f"}

	podsCreated      = kind{"last_created_seconds", "last pod created, s", "%.1f"}
	podsBound        = kind{"last_bound_seconds", "last pod bound, s", "%.1f"}
	podsReady        = kind{"last_ready_seconds", "last pod ready, s", "%.1f"}
	podsGone         = kind{"last_gone_seconds", "last pod gone, s", "%.1f"}
	settled          = kind{"settled_seconds", "Available, or nothing left, s", "%.1f"}
	controllerMemory = kind{"controller_peak_mib", "muster-controller peak memory, MiB", "%.0f"}
	writesButEvents  = kind{"writes_per_pod_but_events", "API writes per pod, but events", "%.2f"}
	webhookCalls     = kind{"webhook_calls", "calls of webhooks", "%.0f"}
	webhookLatency   = kind{"webhook_latency_ms", "their latency, mean, ms", "%.1f"}
)

// writesOf is the share of one resource in writesPerPod.
func writesOf(resource string) kind {
	return kind{"writes_per_pod:" + resource, "  of them " + resource, "%.2f"}
}

// figure is one measured value.
type figure struct {
	kind  kind
	value float64
}

// outcome is one run of one contestant in figures.
type outcome struct {
	figures []figure
	// unfinished is the reason why the run did not finish; the figures may be missing then. "" for a complete run.
	unfinished string
	bindings   []binding // in order, for the floor
	load       string    // load average before
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

// get returns the value of the key, and false if the run has none.
func (r outcome) get(key string) (float64, bool) {
	i := slices.IndexFunc(r.figures, func(f figure) bool { return f.kind.key == key })
	if i < 0 {
		return 0, false
	}
	return r.figures[i].value, true
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
		if value, ok := r.get(key); ok {
			all = append(all, value)
		}
	}
	return all
}

// kindsOf returns the kinds that any of the runs has: those of the first run first, in its order.
func kindsOf(runs ...[]outcome) []kind {
	var found []kind
	for _, rs := range runs {
		for _, r := range rs {
			for _, f := range r.figures {
				if !slices.Contains(found, f.kind) {
					found = append(found, f.kind)
				}
			}
		}
	}
	return found
}
