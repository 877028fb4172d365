package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the shape of the drain and how to run it. Each flag has an environment variable for use with make.
type options struct {
	nodes, gpus, gangs, podsPerGang int
	repeat                          int
	contestants                     []string
	bin                             string        // directory of the programs
	musterScheduler                 string        // path
	stall                           time.Duration // without a new binding for so long the run is given up
	profiles                        string        // directory for CPU profiles of the schedulers; "" = none
	profileFor                      time.Duration
	qps, burst                      int
	verbose                         io.Writer
}

func (o options) pods() int { return o.gangs * o.podsPerGang }

func main() {
	run, err := benchmark(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// benchmark returns the benchmark that the arguments ask for: the drain, or if the first is "workload" that.
func benchmark(args []string) (func(context.Context) error, error) {
	if len(args) > 0 && args[0] == "workload" {
		o, err := parseWorkload(args[1:])
		return func(ctx context.Context) error { return benchWorkload(ctx, o, os.Stdout) }, err
	}
	o, err := parse(args)
	return func(ctx context.Context) error { return bench(ctx, o, os.Stdout) }, err
}

// environment defines flags whose default comes from an environment variable of the same name, if that is set.
type environment struct {
	flags *flag.FlagSet
	err   error // variables that cannot be read
}

func (e *environment) number(p *int, name string, value int, usage string) {
	env := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	if set := os.Getenv(env); set != "" {
		n, err := strconv.Atoi(set)
		if err != nil {
			e.err = errors.Join(e.err, fmt.Errorf("$%s is %q, which is no number", env, set))
		}
		value = n
	}
	e.flags.IntVar(p, name, value, usage+" ($"+env+")")
}

func (e *environment) word(p *string, name, value, usage string) {
	env := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	if set := os.Getenv(env); set != "" {
		value = set
	}
	e.flags.StringVar(p, name, value, usage+" ($"+env+")")
}

func parse(args []string) (options, error) {
	var o options
	var contestants string
	flags := flag.NewFlagSet("performance", flag.ContinueOnError)
	with := &environment{flags: flags}
	with.number(&o.nodes, "nodes", 1000, "nodes")
	with.number(&o.gpus, "gpus", 8, "GPUs per node")
	with.number(&o.gangs, "gangs", 250, "gangs")
	with.number(&o.podsPerGang, "pods-per-gang", 16, "pods per gang, each with one GPU, all of them the gang's minimum")
	with.number(&o.repeat, "repeat", 3, "how often every contestant runs")
	with.number(&o.qps, "qps", 5000, "requests per second that the schedulers' clients allow themselves")
	with.number(&o.burst, "burst", 10000, "burst of the same")
	with.word(&contestants, "contestants", "muster,stock,floor", "which run; also known: stock-default")
	with.word(&o.bin, "bin", "bin", "directory of the programs")
	with.word(&o.musterScheduler, "muster-scheduler", "", "the program to measure; empty: muster-scheduler in the directory of the programs")
	with.word(&o.profiles, "profiles", "", "directory for CPU profiles of the schedulers; profiling costs a few percent")
	flags.DurationVar(&o.profileFor, "profile-for", 5*time.Second, "length of a CPU profile, from the start of the scheduler")
	flags.DurationVar(&o.stall, "stall", time.Minute, "give up when nothing was bound for so long")
	verbose := flags.Bool("v", false, "one line per step of the control plane")
	if err := errors.Join(with.err, flags.Parse(args)); err != nil {
		return o, err
	}
	if o.nodes < 1 || o.gpus < 1 || o.gangs < 1 || o.podsPerGang < 1 || o.repeat < 1 {
		return o, fmt.Errorf("nodes, gpus, gangs, pods-per-gang and repeat must be positive")
	}
	if o.pods() > o.nodes*o.gpus {
		return o, fmt.Errorf("%d pods do not fit on %d GPUs: a drain needs room for all", o.pods(), o.nodes*o.gpus)
	}
	o.contestants = strings.Split(contestants, ",")
	for _, name := range o.contestants {
		if _, known := contests[name]; !known {
			return o, fmt.Errorf("unknown contestant %q; known: muster, stock, stock-default, floor", name)
		}
	}
	if o.musterScheduler == "" {
		o.musterScheduler = filepath.Join(o.bin, "muster-scheduler")
	}
	o.verbose = io.Discard
	if *verbose {
		o.verbose = os.Stderr
	}
	return o, nil
}

// bench runs every contestant o.repeat times, interleaved, and prints the comparison.
func bench(ctx context.Context, o options, out io.Writer) error {
	fmt.Fprintf(out, "Drain: %d nodes x %d GPUs, %d gangs x %d pods of one GPU = %d pods.\n\n", o.nodes, o.gpus, o.gangs, o.podsPerGang, o.pods())
	results := map[string][]result{}
	for round := range o.repeat {
		var bindings []binding // of the round, for the floor
		for _, name := range inTurn(o.contestants, round) {
			r, err := drain(ctx, o, contests[name], bindings)
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, name, err)
			}
			if bindings == nil || name == "muster" {
				bindings = r.bindings
			}
			f := measure(r)
			results[name] = append(results[name], f)
			fmt.Fprintf(out, "round %d  %-14s last bind after %6.2f s  (pods created in %.1f s, load average before %s)\n", round+1, name, f.lastBind, r.created.Seconds(), r.load)
		}
	}
	fmt.Fprintln(out)
	return report(out, o, results)
}

// inTurn returns the contestants in the order of a round: who goes first changes, so that neither always finds the
// machine as the other left it; the floor comes last, since it repeats what was bound before.
func inTurn(contestants []string, round int) []string {
	var schedulers, floor []string
	for _, name := range contestants {
		if name == "floor" {
			floor = append(floor, name)
		} else {
			schedulers = append(schedulers, name)
		}
	}
	if n := len(schedulers); n > 0 {
		schedulers = append(schedulers[round%n:n:n], schedulers[:round%n]...)
	}
	return append(schedulers, floor...)
}
