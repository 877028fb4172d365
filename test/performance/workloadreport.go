// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// The targets for 1,000 pods in 500 cliques, in seconds; the benchmark reports whether they are reached, and does not
// fail otherwise.
const (
	mostUntilReady = 30.0
	mostUntilGone  = 15.0
)

// times returns the results of a step, with their times.
func (s stepResult) times() string {
	var parts []string
	for _, at := range []struct {
		what string
		s    float64
	}{{"created", s.created}, {"bound", s.bound}, {"ready", s.ready}, {"gone", s.gone}, {"settled", s.settled}} {
		if at.s > 0 {
			parts = append(parts, fmt.Sprintf("%s %.1f", at.what, at.s))
		}
	}
	return strings.Join(parts, ", ") + " s"
}

// end is when the pods had the wanted state, in seconds since the step began.
func (s stepResult) end() float64 { return max(s.ready, s.gone) }

// reportWorkload prints a table for each step, and the ratios.
func reportWorkload(out io.Writer, o workloadOptions, results map[string][][]stepResult) error {
	fmt.Fprintf(out, "Least and, in parentheses, median and most of %d. %d CPUs for everything.\n", o.repeat, runtime.NumCPU())
	for _, name := range o.steps {
		of := map[string][]stepResult{}
		var contestants []string
		for _, contestant := range o.contestants {
			for _, steps := range results[contestant] {
				for _, s := range steps {
					if s.name == name {
						of[contestant] = append(of[contestant], s)
					}
				}
			}
			if len(of[contestant]) > 0 {
				contestants = append(contestants, contestant)
			}
		}
		fmt.Fprintf(out, "\n%s\n\n", strings.ToUpper(name))
		if err := stepTable(out, contestants, of); err != nil {
			return err
		}
		if ratios := against(of["muster"], of["floor"]); len(ratios) > 0 {
			fmt.Fprintf(out, "muster / floor: %s\n", least("%.2f", ratios))
		}
		if o.pods() == 1000 && o.sets*o.replicas*o.cliques == 500 {
			most, what := mostUntilReady, "ready"
			switch name {
			case "create":
			case "zero":
				most, what = mostUntilGone, "gone"
			default:
				continue
			}
			result, times := "reached", column(of["muster"], stepResult.end)
			if quantile(times, 0.5) > most {
				result = "NOT reached"
			}
			fmt.Fprintf(out, "%s after %s s, to reach: at most %g: %s\n", what, least("%.1f", times), most, result)
		}
	}
	return nil
}

// stepTable prints the figures of one step, of those contestants that did it.
func stepTable(out io.Writer, contestants []string, of map[string][]stepResult) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%-36s", "")
	for _, name := range contestants {
		fmt.Fprintf(table, "\t%s", name)
	}
	fmt.Fprintln(table, "\t")
	line := func(title, format string, figure func(stepResult) float64) {
		some := false
		text := fmt.Sprintf("%-36s", title)
		for _, name := range contestants {
			values := column(of[name], figure)
			some = some || slices.Max(values) > 0
			text += "\t" + least(format, values)
		}
		if some {
			fmt.Fprintln(table, text+"\t")
		}
	}
	line("last pod created, s", "%.1f", func(s stepResult) float64 { return s.created })
	line("last pod bound, s", "%.1f", func(s stepResult) float64 { return s.bound })
	line("last pod ready, s", "%.1f", func(s stepResult) float64 { return s.ready })
	line("last pod gone, s", "%.1f", func(s stepResult) float64 { return s.gone })
	line("Available, or nothing left, s", "%.1f", func(s stepResult) float64 { return s.settled })
	keys := func(of map[string][]stepResult, pick func(stepResult) map[string]float64) []string {
		found := map[string]bool{}
		for _, runs := range of {
			for _, s := range runs {
				for key, value := range pick(s) {
					found[key] = found[key] || value >= 0.005
				}
			}
		}
		maps.DeleteFunc(found, func(_ string, some bool) bool { return !some })
		return slices.Sorted(maps.Keys(found))
	}
	for _, program := range keys(of, func(s stepResult) map[string]float64 { return s.cpu }) {
		line("CPU of "+program+", s", "%.1f", func(s stepResult) float64 { return s.cpu[program] })
	}
	line("peak memory of muster-controller, MiB", "%.0f", func(s stepResult) float64 { return s.controllerMiB })
	line("peak memory of muster-scheduler, MiB", "%.0f", func(s stepResult) float64 { return s.schedulerMiB })
	line("API writes per pod, but events", "%.2f", func(s stepResult) float64 { return s.writesPerPod })
	for _, resource := range keys(of, func(s stepResult) map[string]float64 { return s.writes }) {
		line("  "+resource, "%.2f", func(s stepResult) float64 { return s.writes[resource] })
	}
	for _, controller := range keys(of, func(s stepResult) map[string]float64 { return s.reconciles }) {
		line("passes of "+controller, "%.0f", func(s stepResult) float64 { return s.reconciles[controller] })
	}
	line("calls of webhooks", "%.0f", func(s stepResult) float64 { return s.webhook })
	line("their latency, mean, ms", "%.1f", func(s stepResult) float64 { return s.webhookMillis })
	return table.Flush()
}

func column(steps []stepResult, figure func(stepResult) float64) []float64 {
	var all []float64
	for _, s := range steps {
		all = append(all, figure(s))
	}
	return all
}

// against returns the times of a as multiples of those of b, round by round.
func against(a, b []stepResult) []float64 {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, a[i].end()/b[i].end())
	}
	return ratios
}

// least prints the least and, of several, the median and the most.
func least(format string, values []float64) string {
	switch len(values) {
	case 0:
		return "-"
	case 1:
		return fmt.Sprintf(format, values[0])
	default:
		return fmt.Sprintf(format+" ("+format+", "+format+")", slices.Min(values), quantile(values, 0.5), slices.Max(values))
	}
}
