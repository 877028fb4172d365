// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// report prints a table for each variant of the shape, a column for each contestant, and whether targets are reached.
func report(out io.Writer, p plan, all results) {
	fmt.Fprintf(out, "Median of %d, in parentheses least and most. Clients of stock and coscheduling: %d requests per second, burst %d. %d CPUs for\neverything: the programs, API server, etcd and the watching client.\n\n",
		p.o.repeat, p.o.qps, p.o.burst, runtime.NumCPU())
	for _, v := range p.o.variants {
		table(out, p, v, all)
	}
	for _, t := range p.shape.targets {
		for _, v := range p.o.variants {
			if t.variant == "" || t.variant == v.name {
				t.print(out, v.name, all)
			}
		}
	}
	fmt.Fprintln(out)
}

// table has a line for each figure that any of the runs has: those of the first run first, in its order.
func table(out io.Writer, p plan, v variant, all results) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%-50s", v.name) // to the left; figures go to the right
	var runs [][]outcome
	var keys []string
	for _, name := range p.o.contestants {
		found := all[entry{v.name, name}]
		if len(found) == 0 {
			continue
		}
		fmt.Fprintf(w, "\t%s", name)
		runs = append(runs, found)
		for _, r := range found {
			for _, f := range r.figures {
				if !slices.Contains(keys, f.key) {
					keys = append(keys, f.key)
				}
			}
		}
	}
	fmt.Fprintln(w, "\t")
	for _, key := range keys {
		fmt.Fprintf(w, "%-50s", key)
		for _, r := range runs {
			fmt.Fprintf(w, "\t%s", spread(series(r, key)))
		}
		fmt.Fprintln(w, "\t")
	}
	must(w.Flush())
	for _, name := range p.o.contestants {
		for round, r := range all[entry{v.name, name}] {
			if r.unfinished != "" {
				fmt.Fprintf(out, "%s did not finish round %d: %s\n", name, round+1, firstLine(r.unfinished))
			}
		}
	}
	fmt.Fprintln(out)
}

// print prints muster's figure, or its ratio to another's round by round, and whether the median is good enough.
func (t target) print(out io.Writer, variant string, all results) {
	runs := all[entry{variant, muster}]
	what, values := muster, series(runs, t.key)
	switch {
	case t.contestant != "":
		what, values = "muster / "+t.contestant, ratios(runs, all[entry{variant, t.contestant}], t.key)
	case t.otherVariant != "":
		what, values = "muster / "+t.otherVariant, ratios(runs, all[entry{t.otherVariant, muster}], t.key)
	}
	if len(values) == 0 {
		return
	}
	if variant != "" {
		what = variant + ": " + what
	}
	fmt.Fprintf(out, "%s, %s: %s", what, t.key, spread(values))
	if t.bound != 0 {
		median, word, result := quantile(values, 0.5), "at most", "NOT reached"
		if t.atLeast {
			word = "at least"
		}
		if median == t.bound || (median > t.bound) == t.atLeast {
			result = "reached"
		}
		fmt.Fprintf(out, ", to reach: %s %g: %s", word, t.bound, result)
	}
	fmt.Fprintln(out)
}

// ratios returns the first's values as multiples of the second's, round by round. Rounds that either did not finish are
// left out.
func ratios(first, second []outcome, key string) []float64 {
	var all []float64
	for i := range min(len(first), len(second)) {
		a, b := first[i].get(key), second[i].get(key)
		if ratio := a / b; b != 0 && !math.IsNaN(ratio) {
			all = append(all, ratio)
		}
	}
	return all
}

// spread prints the median and, of several, the range.
func spread(values []float64) string {
	switch len(values) {
	case 0:
		return "-"
	case 1:
		return digits(values[0])
	default:
		return fmt.Sprintf("%s (%s to %s)", digits(quantile(values, 0.5)), digits(slices.Min(values)), digits(slices.Max(values)))
	}
}

// line is one run as a line of results.jsonl.
type line struct {
	Time       time.Time          `json:"time"`
	Shape      string             `json:"shape"`
	Variant    string             `json:"variant,omitempty"`
	Contestant string             `json:"contestant"`
	Round      int                `json:"round"` // from 1
	CPUs       int                `json:"cpus"`
	Load       string             `json:"loadAverageBefore,omitempty"`
	Nodes      int                `json:"nodes"`
	GPUs       int                `json:"gpusPerNode"`
	Gangs      int                `json:"gangs"`
	Pods       int                `json:"podsPerGang"`
	Unfinished string             `json:"unfinished,omitempty"` // the reason why the run did not finish
	Figures    map[string]float64 `json:"figures"`              // by key, which ends in the unit
}

// appendLine appends a run to the results, if there is a directory for them.
func (p plan) appendLine(now time.Time, contestant string, round int, r outcome) {
	if p.o.out == "" {
		return
	}
	one := line{
		Time: now.UTC().Truncate(time.Second), Shape: p.shape.name, Variant: r.variant.name, Contestant: contestant, Round: round + 1,
		CPUs: runtime.NumCPU(), Load: r.load, Nodes: p.o.nodes, GPUs: p.o.gpus, Gangs: p.o.gangs, Pods: p.o.podsPerGang,
		Unfinished: r.unfinished, Figures: map[string]float64{},
	}
	for _, f := range r.figures {
		one.Figures[f.key] = f.value
	}
	must(os.MkdirAll(p.o.out, 0o755))
	file := got(os.OpenFile(filepath.Join(p.o.out, "results.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))
	defer file.Close()
	must(json.NewEncoder(file).Encode(one))
}
