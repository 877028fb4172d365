// SPDX-License-Identifier: Apache-2.0

// Command simulate plays job streams of real clusters in virtual time, to compare which jobs go first. A day of a
// thousand jobs takes about a second.
//
// The registry of gangs with its order of the queue and its list of those that wait, the planner, the filters and the
// scores are the real ones, on the cache of a scheduler without an API server. Each job is a PodGroup; its pods start
// at once when they are bound, run as long as the stream says, and take CPU and memory in proportion to their GPUs.
// Policies:
//
//   - default: that of the built-in configuration of muster-scheduler
//   - greedy: what fits starts, in the order of the queue; what does not fit lets the others pass; with the scores of
//     kube-scheduler
//   - fifo: no job starts before one that came earlier
//   - reservations: greedy, and a job that has waited for five minutes, or for -after, is promised room, one at a time
//   - backfill: the same, and jobs say how long they run; what ends in time may use that room
//   - backfill-2-10: the same, and they say two to ten times as much
//   - packed, packed-reservations, packed-backfill: greedy, reservations and backfill, with the scores of
//     muster-scheduler: pods go where most GPUs are in use, instead of where least is
//
// A run fails if a node gets too much, if a part of a job starts, or if a job never does.
//
//	make simulate
//	go run ./test/simulate -settings helios-7d,itp-7d -policies greedy -loads 0.7,0.9,1.1 -out /tmp/simulate
//	go run ./test/simulate -policies greedy,reservations -after 1m,15m,1h
//	go run ./test/simulate -stream jobs.csv -nodes 64
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	settings []setting
	policies []policy
	loads    []float64
	out      string // directory for runs.jsonl and the pictures; "": none
}

func main() {
	which := flag.String("settings", "", "streams to play, separated by commas; empty: all")
	who := flag.String("policies", "greedy,fifo,default,packed,packed-backfill", "policies, likewise")
	after := flag.String("after", "", "reservationAfter of policies with reservations, each of these; empty: 5m")
	loads := flag.String("loads", "0.9", "loads: part of the GPUs that would be in use on average if no job had to wait; streams are stretched or shortened to it")
	stream := flag.String("stream", "", "file of a stream to play instead: submit_s, duration_s, pods, gpus_per_pod")
	nodes := flag.Int("nodes", 64, "nodes of 8 GPUs for it")
	out := flag.String("out", "", "directory for runs.jsonl, a line for each run, and for a picture of each setting; empty: none")
	flag.Parse()
	debug.SetGCPercent(400) // a run makes many short-lived objects, and needs little memory
	o := options{out: *out}
	var err error
	o.settings, err = choose(settings, *which, func(s setting) string { return s.name })
	if *stream != "" {
		o.settings, err = []setting{file(*stream, *nodes)}, nil
	}
	if err == nil {
		o.policies, err = choose(policies, *who, func(p policy) string { return p.name })
	}
	if err == nil && *after != "" {
		o.policies, err = withAfter(o.policies, strings.Split(*after, ","))
	}
	for _, text := range strings.Split(*loads, ",") {
		load, e := strconv.ParseFloat(text, 64)
		if e != nil || load <= 0 {
			err = fmt.Errorf("load %q: want a number above 0", text)
		}
		o.loads = append(o.loads, load)
	}
	if err == nil {
		err = o.run(context.Background(), os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "simulate: %v\n", err)
		os.Exit(1)
	}
}

// choose returns those with the names in a list separated by commas; all, if it is empty.
func choose[T any](all []T, list string, nameOf func(T) string) ([]T, error) {
	if list == "" {
		return all, nil
	}
	var chosen []T
next:
	for _, name := range strings.Split(list, ",") {
		for _, x := range all {
			if nameOf(x) == name {
				chosen = append(chosen, x)
				continue next
			}
		}
		var names []string
		for _, x := range all {
			names = append(names, nameOf(x))
		}
		return nil, fmt.Errorf("there is no %q: there are %s", name, strings.Join(names, ", "))
	}
	return chosen, nil
}

// withAfter returns the policies, those with reservations once for each time after which room is reserved.
func withAfter(list []policy, after []string) ([]policy, error) {
	var all []policy
	for _, p := range list {
		if p.after == 0 {
			all = append(all, p)
			continue
		}
		for _, text := range after {
			d, err := time.ParseDuration(text)
			if err != nil || d <= 0 {
				return nil, fmt.Errorf("after %q: want a duration above 0", text)
			}
			q := p
			q.name, q.after = p.name+" after "+text, d
			all = append(all, q)
		}
	}
	return all, nil
}

// run plays all settings, and reports each when its runs have ended.
func (o *options) run(ctx context.Context, out io.Writer) error {
	lines := io.Discard
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return err
		}
		f, err := os.Create(filepath.Join(o.out, "runs.jsonl"))
		if err != nil {
			return err
		}
		defer f.Close()
		lines = f
	}
	type result struct {
		figures *figures
		err     error
	}
	var runs []func() (*figures, error)
	for _, at := range o.settings {
		jobs, err := at.read()
		if err != nil {
			return fmt.Errorf("setting %s: %w", at.name, err)
		}
		for _, load := range o.loads {
			loaded, err := atLoad(jobs, load, at.nodes*gpusPerNode)
			if err != nil {
				return fmt.Errorf("setting %s: %w", at.name, err)
			}
			for _, policy := range o.policies {
				runs = append(runs, func() (*figures, error) {
					f, err := simulate(ctx, loaded, at.nodes, policy)
					if err != nil {
						return nil, fmt.Errorf("setting %s, load %g, policy %s: %w", at.name, load, policy.name, err)
					}
					f.Setting, f.Load, f.Policy = at.name, load, policy.name
					return f, nil
				})
			}
		}
	}
	// As many at a time as there are processors, also of different settings, and reported in their order.
	results, free := make([]chan result, len(runs)), make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range runs {
		results[i] = make(chan result, 1)
	}
	go func() {
		for i, run := range runs {
			free <- struct{}{}
			go func() {
				defer func() { <-free }()
				f, err := run()
				results[i] <- result{f, err}
			}()
		}
	}()
	for first := 0; first < len(runs); first += len(o.policies) {
		var ended []*figures
		for _, of := range results[first : first+len(o.policies)] {
			r := <-of
			if r.err != nil {
				return r.err
			}
			if err := json.NewEncoder(lines).Encode(r.figures); err != nil {
				return err
			}
			ended = append(ended, r.figures)
		}
		table(out, ended)
		if f := ended[0]; o.out != "" {
			if err := os.WriteFile(filepath.Join(o.out, fmt.Sprintf("%s-%g.svg", filepath.Base(f.Setting), f.Load)), picture(ended), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// table prints the figures of one setting.
func table(out io.Writer, runs []*figures) {
	f := runs[0]
	fmt.Fprintf(out, "\n%s at load %g: %d jobs on %d GPUs\n\n| policy", f.Setting, f.Load, f.Jobs, f.GPUs)
	for _, c := range f.Classes {
		fmt.Fprintf(out, " | wait of %s GPUs (%d): p50, p90, p99, max; slowdown", c.Name, c.Jobs)
	}
	fmt.Fprintf(out, " | utilisation, %% | held GPU-hours | makespan / lower bound | inversions per job |\n|---%s|---|---|---|---|\n", strings.Repeat("|---", len(f.Classes)))
	for _, f := range runs {
		fmt.Fprintf(out, "| %s", f.Policy)
		for _, c := range f.Classes {
			if c.Jobs == 0 {
				fmt.Fprint(out, " |")
				continue
			}
			fmt.Fprintf(out, " | %s, %s, %s, %s; %.1f", span(c.P50), span(c.P90), span(c.P99), span(c.Max), c.Slowdown)
		}
		fmt.Fprintf(out, " | %.1f | %.0f | %.3f | %.1f |\n", 100*f.Utilisation, f.Held, f.Makespan/f.LowerBound, float64(f.Inversions)/float64(f.Jobs))
	}
}

// span returns a time in the largest unit of which it has one.
func span(s float64) string {
	switch {
	case s == 0:
		return "0"
	case s < 60:
		return fmt.Sprintf("%.0f s", s)
	case s < 3600:
		return fmt.Sprintf("%.0f min", s/60)
	}
	return fmt.Sprintf("%.1f h", s/3600)
}
