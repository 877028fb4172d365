package main

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"text/tabwriter"
)

// What this project holds itself to; the bench tells whether it is reached and does not fail on it.
const (
	mostOfStock = 0.4
	mostOfFloor = 3.0
)

// report prints the table of contestants and the ratios.
func report(out io.Writer, o options, results map[string][]result) error {
	fmt.Fprintf(out, "Median of %d, in parentheses least and most. Clients of the schedulers: %d requests per second, burst %d. %d CPUs for\neverything: scheduler, API server, etcd and the watching client.\n\n",
		o.repeat, o.qps, o.burst, runtime.NumCPU())
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	titled := func(title string) { fmt.Fprintf(table, "%-36s", title) } // to the left; figures go to the right
	titled("")
	for _, name := range o.contestants {
		fmt.Fprintf(table, "\t%s", name)
	}
	fmt.Fprintln(table, "\t")
	line := func(title, format string, figure func(result) float64, also ...string) {
		titled(title)
		for _, name := range o.contestants {
			if name == "floor" && slices.Contains(also, "schedulers only") {
				fmt.Fprint(table, "\t-")
				continue
			}
			fmt.Fprintf(table, "\t%s", spread(format, figures(results[name], figure)))
		}
		fmt.Fprintln(table, "\t")
	}
	line("last bind, s", "%.2f", func(r result) float64 { return r.lastBind })
	line("last write of any kind, s", "%.1f", func(r result) float64 { return r.lastWrite })
	line("first bind, s", "%.2f", func(r result) float64 { return r.firstBind })
	line("pods per second", "%.0f", func(r result) float64 { return r.podsPerSecond })
	line("gang latency, median, s", "%.2f", func(r result) float64 { return r.latencyMedian })
	line("gang latency, 99 of 100, s", "%.2f", func(r result) float64 { return r.latency99 })
	line("bind spread of a gang, median, ms", "%.0f", func(r result) float64 { return 1000 * r.spreadMedian })
	line("bind spread of a gang, longest, ms", "%.0f", func(r result) float64 { return 1000 * r.spreadLongest })
	line("partial gangs, gang-seconds", "%.1f", func(r result) float64 { return r.partialGangSeconds })
	line("held by partial gangs, GPU-seconds", "%.1f", func(r result) float64 { return r.heldGPUSeconds })
	line("scheduler CPU, s", "%.2f", func(r result) float64 { return r.cpu }, "schedulers only")
	line("scheduler peak memory, MiB", "%.0f", func(r result) float64 { return r.memory }, "schedulers only")
	line("API server and etcd CPU, s", "%.2f", func(r result) float64 { return r.serverCPU })
	line("API writes per pod", "%.2f", func(r result) float64 { return r.writesPerPod })
	for _, resource := range resources(results) {
		line("  of them "+resource, "%.2f", func(r result) float64 { return r.writes[resource] })
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	target(out, results, "stock", mostOfStock)
	target(out, results, "floor", mostOfFloor)
	if slices.Contains(o.contestants, "stock") && !slices.Contains(o.contestants, "stock-default") {
		fmt.Fprintf(out, "With its default limit of 50 requests per second the stock scheduler needs at least %.0f s for these pods.\n", float64(o.pods()-100)/50)
	}
	return nil
}

// target prints muster's time as a multiple of another's, round by round, and whether the median is low enough.
func target(out io.Writer, results map[string][]result, other string, most float64) {
	var ratios []float64
	for i := range min(len(results["muster"]), len(results[other])) {
		ratios = append(ratios, results["muster"][i].lastBind/results[other][i].lastBind)
	}
	if len(ratios) == 0 {
		return
	}
	verdict := "reached"
	if quantile(ratios, 0.5) > most {
		verdict = "NOT reached"
	}
	fmt.Fprintf(out, "muster / %s: %s, to reach: at most %g: %s\n", other, spread("%.2f", ratios), most, verdict)
}

func figures(results []result, figure func(result) float64) []float64 {
	var all []float64
	for _, r := range results {
		all = append(all, figure(r))
	}
	return all
}

// spread prints the median and, of several, the range.
func spread(format string, values []float64) string {
	switch len(values) {
	case 0:
		return "-"
	case 1:
		return fmt.Sprintf(format, values[0])
	default:
		return fmt.Sprintf(format+" ("+format+" to "+format+")", quantile(values, 0.5), slices.Min(values), slices.Max(values))
	}
}

// resources returns what anybody wrote noticeably often, sorted.
func resources(results map[string][]result) []string {
	found := map[string]bool{}
	for _, runs := range results {
		for _, r := range runs {
			for resource, perPod := range r.writes {
				if perPod >= 0.005 {
					found[resource] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
