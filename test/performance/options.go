// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// options are the numbers of a shape and how to run it. Each flag has an environment variable for use with make. 0 and
// empty mean the default of the shape.
type options struct {
	nodes, gpus, gangs, podsPerGang int
	subGroups, minSubGroups         int // of a gang; 0: flat
	roles                           int // of a flat gang; 0: none
	variants                        []variant
	probes                          int // of each kind, in a run
	noProbes                        bool
	churn                           int // pods replaced each second while gangs wait
	kills                           int // restarts in a run
	settle, window, quiet, patience time.Duration

	// The workload.
	sets, replicas, cliques, podsPerClique int
	groupReplicas, groupMin                int // 0: the cliques are standalone
	steps                                  []variant
	workloadFloor                          bool

	repeat                        int
	contestants                   []string
	bin                           string        // directory of the programs
	musterScheduler, musterBefore string        // paths
	stall                         time.Duration // the run is given up after this time without a new binding
	limit                         time.Duration // likewise, altogether
	profiles                      string        // directory for CPU profiles of the schedulers; "" = none
	profileFor                    time.Duration
	qps, burst                    int
	out                           string // directory of results.jsonl; "" = none
	verbose                       io.Writer
}

func (o options) pods() int { return o.gangs * o.podsPerGang }

// setFromEnvironment gives each flag the value of the environment variable of its name, if that is set.
func setFromEnvironment(flags *flag.FlagSet) (err error) {
	flags.VisitAll(func(f *flag.Flag) {
		env := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		f.Usage += " ($" + env + ")"
		if set := os.Getenv(env); set != "" && f.Value.Set(set) != nil {
			err = errors.Join(err, fmt.Errorf("$%s is %q, which is no number", env, set))
		}
	})
	return err
}

// plan is the options of one shape.
type plan struct {
	shape shape
	o     options
}

// parse returns the shapes to run, with their options.
func parse(args []string) ([]plan, error) {
	var o options
	var shapes, contestants, variants, steps string
	var floored int
	var settle, window, quiet, patience int
	flags := flag.NewFlagSet("performance", flag.ContinueOnError)
	flags.StringVar(&shapes, "shape", "drain-1000", "shapes, separated by commas, or all, which is all but workload; known: "+strings.Join(shapeNames(), ", "))
	flags.IntVar(&o.nodes, "nodes", 0, "nodes; 0 here and below: what the shape has")
	flags.IntVar(&o.gpus, "gpus", 8, "GPUs per node")
	flags.IntVar(&o.gangs, "gangs", 0, "gangs")
	flags.IntVar(&o.podsPerGang, "pods-per-gang", 0, "pods per gang")
	flags.StringVar(&variants, "variants", "", "forms of the shape, separated by commas; waiting has none, gangs:N, images:N, levels:N, preemptors:N, trees:NxSUBGROUPS and plain:N, huge-gang pods:N and subgroups:NxPODS")
	flags.IntVar(&o.probes, "probes", 0, "pods and gangs that are timed, of each kind")
	flags.IntVar(&o.churn, "churn", 5, "pods replaced each second while gangs wait")
	flags.IntVar(&o.kills, "kills", 3, "restarts in one run of the shape restart")
	flags.IntVar(&settle, "settle", 15, "seconds before a measurement of what is to be steady")
	flags.IntVar(&window, "window", 120, "seconds after which no probe begins")
	flags.IntVar(&quiet, "quiet", 30, "seconds for which what goes on when nothing changes is measured")
	flags.IntVar(&patience, "patience", 30, "seconds after which a probe is given up")
	flags.IntVar(&o.sets, "sets", 1, "PodCliqueSets of the workload, created together")
	flags.IntVar(&o.replicas, "replicas", 500, "replicas of each")
	flags.IntVar(&o.cliques, "cliques", 1, "cliques of each replica")
	flags.IntVar(&o.podsPerClique, "pods-per-clique", 2, "pods of each clique, each with one GPU, all of them its minimum")
	flags.IntVar(&o.groupReplicas, "group-replicas", 0, "if not 0, the cliques of a replica are a scaling group with so many replicas")
	flags.IntVar(&o.groupMin, "group-min", 1, "how many of those are its minimum; below it nothing can be scaled")
	flags.StringVar(&steps, "steps", "create,zero", "what is done with the workload, in this order: "+strings.Join(allSteps, ", "))
	flags.IntVar(&floored, "floor", 1, "0: the workload without the floor")
	flags.IntVar(&o.repeat, "repeat", 3, "how often every contestant runs")
	flags.IntVar(&o.qps, "qps", 5000, "requests per second that the schedulers' clients allow themselves")
	flags.IntVar(&o.burst, "burst", 10000, "burst of the same")
	flags.StringVar(&contestants, "contestants", "", "which run, separated by commas; known: "+strings.Join(contestNames, ", "))
	flags.StringVar(&o.bin, "bin", "bin", "directory of the programs")
	flags.StringVar(&o.musterScheduler, "muster-scheduler", "", "the program to measure; empty: muster-scheduler in the directory of the programs")
	flags.StringVar(&o.musterBefore, "muster-before", "", "another build of it, which runs as muster-before beside the first")
	flags.StringVar(&o.profiles, "profiles", "", "directory for CPU profiles of the schedulers in a drain, and of a huge gang from when its pods are created; of the programs in a workload; profiling costs a few percent")
	flags.StringVar(&o.out, "out", "", "directory for results.jsonl, to which the runs are added")
	fromEnvironment := setFromEnvironment(flags)
	flags.DurationVar(&o.profileFor, "profile-for", 0, "length of a CPU profile; in a drain from the start of the scheduler; 0: 5 s, of a workload 15 s")
	flags.DurationVar(&o.stall, "stall", time.Minute, "give up when nothing was bound for so long")
	flags.DurationVar(&o.limit, "limit", 10*time.Minute, "give up when not all was bound after so long")
	verbose := flags.Bool("v", false, "one line per step of the control plane")
	if err := errors.Join(fromEnvironment, flags.Parse(args)); err != nil {
		return nil, err
	}
	for seconds, to := range map[*int]*time.Duration{&settle: &o.settle, &window: &o.window, &quiet: &o.quiet, &patience: &o.patience} {
		*to = time.Duration(*seconds) * time.Second
	}
	for name := range strings.SplitSeq(variants, ",") {
		if name == "" {
			continue
		}
		v, err := parseVariant(name)
		if err != nil {
			return nil, err
		}
		o.variants = append(o.variants, v)
	}
	var err error
	if o.steps, err = parseSteps(steps); err != nil {
		return nil, err
	}
	if o.musterScheduler == "" {
		o.musterScheduler = filepath.Join(o.bin, "muster-scheduler")
	}
	o.verbose = io.Discard
	if *verbose {
		o.verbose = os.Stderr
	}
	if err := o.setContestants(contestants); err != nil {
		return nil, err
	}
	o.workloadFloor = floored != 0
	return plans(shapes, o)
}

// setContestants sets the given names, or the default ones if none are given: muster, the other build of it if there is
// one, and the contestants that are built.
func (o *options) setContestants(names string) error {
	if names == "" {
		o.contestants = []string{muster}
		if o.musterBefore != "" {
			o.contestants = append(o.contestants, musterBefore)
		}
		if _, err := os.Stat(filepath.Join(o.bin, coscheduling)); err == nil {
			o.contestants = append(o.contestants, coscheduling)
		}
		o.contestants = append(o.contestants, stock, floor)
		return nil
	}
	o.contestants = strings.Split(names, ",")
	for _, name := range o.contestants {
		if _, known := contests[name]; !known {
			return fmt.Errorf("unknown contestant %q; known: %s", name, strings.Join(contestNames, ", "))
		}
	}
	if slices.Contains(o.contestants, musterBefore) && o.musterBefore == "" {
		return fmt.Errorf("muster-before needs the path of that build ($MUSTER_BEFORE)")
	}
	return nil
}

// plans returns the shapes of these names with the given options, and the shapes' own defaults for the others.
func plans(names string, o options) ([]plan, error) {
	if names == "all" {
		names = strings.TrimSuffix(strings.Join(shapeNames(), ","), ","+workloadShape)
	}
	var all []plan
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(allShapes, func(s shape) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown shape %q; known: %s", name, strings.Join(shapeNames(), ", "))
		}
		p := plan{shape: allShapes[i], o: o.over(allShapes[i].defaults)}
		if name == workloadShape {
			if err := p.setWorkload(); err != nil {
				return nil, err
			}
		}
		if p.o.nodes < 1 || p.o.gpus < 1 || p.o.gangs < 1 || p.o.podsPerGang < 1 || p.o.repeat < 1 {
			return nil, fmt.Errorf("nodes, gpus, gangs, pods-per-gang and repeat must be positive")
		}
		if needed := p.room(); needed > p.o.nodes*p.o.gpus {
			return nil, fmt.Errorf("%s: %d pods do not fit on %d GPUs: there must be room for all", name, needed, p.o.nodes*p.o.gpus)
		}
		all = append(all, p)
	}
	return all, nil
}

// setWorkload sets what is different for the workload: its steps are variants, and it has all the nodes that it needs.
func (p *plan) setWorkload() error {
	o := &p.o
	if o.sets < 1 || o.replicas < 1 || o.cliques < 1 || o.podsPerClique < 1 || o.groupReplicas < 0 {
		return fmt.Errorf("sets, replicas, cliques and pods-per-clique must be positive")
	}
	o.variants, o.contestants = o.steps, []string{muster}
	if o.workloadFloor {
		o.contestants = append(o.contestants, floor) // after muster: it creates the same objects
	}
	o.nodes = (o.workloadPods() + o.gpus - 1) / o.gpus
	p.shape.targets = o.workloadTargets()
	return nil
}

// room returns how many pods of one GPU are to be bound at a time. Where a cluster is full anyway, none.
func (p plan) room() int {
	switch p.shape.name {
	case "waiting", "refused", "throughput", workloadShape:
		return 0
	case "huge-gang":
		most := 0
		for _, v := range p.o.variants {
			most = max(most, arriving(p.o, v).pods)
		}
		return most
	default:
		return p.o.pods()
	}
}

// over returns the options, with the defaults of the shape for options that are not set.
func (o options) over(shape options) options {
	for _, number := range []struct {
		set  *int
		have int
	}{
		{&o.nodes, shape.nodes}, {&o.gangs, shape.gangs}, {&o.podsPerGang, shape.podsPerGang}, {&o.probes, shape.probes},
		{&o.subGroups, shape.subGroups}, {&o.minSubGroups, shape.minSubGroups},
	} {
		if *number.set == 0 {
			*number.set = number.have
		}
	}
	if shape.noProbes {
		o.probes = 0
	}
	o.profileFor = cmp.Or(o.profileFor, shape.profileFor, 5*time.Second)
	if len(o.variants) == 0 {
		o.variants = shape.variants
	}
	if len(o.variants) == 0 {
		o.variants = []variant{{}}
	}
	return o
}

func shapeNames() []string {
	names := make([]string, len(allShapes))
	for i, s := range allShapes {
		names[i] = s.name
	}
	return names
}
