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
func report(out io.Writer, p plan, all results) error {
	fmt.Fprintf(out, "Median of %d, in parentheses least and most. Clients of stock and coscheduling: %d requests per second, burst %d. %d CPUs for\neverything: the programs, API server, etcd and the watching client.\n\n",
		p.o.repeat, p.o.qps, p.o.burst, runtime.NumCPU())
	for _, v := range p.o.variants {
		if err := table(out, p, v, all); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	for _, t := range p.shape.targets {
		for _, v := range p.o.variants {
			if t.variant == "" || t.variant == v.name {
				t.print(out, v.name, all)
			}
		}
	}
	fmt.Fprintln(out)
	return nil
}

func table(out io.Writer, p plan, v variant, all results) error {
	var columns []string
	var runs [][]outcome
	for _, name := range p.o.contestants {
		if found := all[entry{v.name, name}]; len(found) > 0 {
			columns, runs = append(columns, name), append(runs, found)
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	titled := func(title string) { fmt.Fprintf(w, "%-50s", title) } // to the left; figures go to the right
	titled(v.name)
	for _, name := range columns {
		fmt.Fprintf(w, "\t%s", name)
	}
	fmt.Fprintln(w, "\t")
	for _, k := range kindsOf(runs...) {
		titled(k.title)
		for _, r := range runs {
			fmt.Fprintf(w, "\t%s", spread(k.format, series(r, k.key)))
		}
		fmt.Fprintln(w, "\t")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, name := range columns {
		for round, r := range runs[i] {
			if r.unfinished != "" {
				fmt.Fprintf(out, "%s did not finish round %d: %s\n", name, round+1, firstLine(r.unfinished))
			}
		}
	}
	return nil
}

// print prints muster's figure, or its ratio to another's round by round, and whether the median is good enough.
func (t target) print(out io.Writer, variant string, all results) {
	runs := all[entry{variant, muster}]
	what, format, values := "muster", "%.0f", series(runs, t.kind.key)
	switch {
	case t.contestant != "":
		what, format, values = "muster / "+t.contestant, "%.2f", ratios(runs, all[entry{variant, t.contestant}], t.kind.key)
	case t.otherVariant != "":
		what, format, values = "muster / "+t.otherVariant, "%.2f", ratios(runs, all[entry{t.otherVariant, muster}], t.kind.key)
	}
	if len(values) == 0 {
		return
	}
	if variant != "" {
		what = variant + ": " + what
	}
	fmt.Fprintf(out, "%s, %s: %s", what, t.kind.key, spread(format, values))
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
func (p plan) appendLine(now time.Time, contestant string, round int, r outcome) error {
	if p.o.out == "" {
		return nil
	}
	one := line{
		Time: now.UTC().Truncate(time.Second), Shape: p.shape.name, Variant: r.variant.name, Contestant: contestant, Round: round + 1,
		CPUs: runtime.NumCPU(), Load: r.load, Nodes: p.o.nodes, GPUs: p.o.gpus, Gangs: p.o.gangs, Pods: p.o.podsPerGang,
		Unfinished: r.unfinished, Figures: map[string]float64{},
	}
	for _, f := range r.figures {
		one.Figures[f.kind.key] = f.value
	}
	if err := os.MkdirAll(p.o.out, 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(p.o.out, "results.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	return json.NewEncoder(file).Encode(one)
}
