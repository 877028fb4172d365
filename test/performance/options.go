// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// bin is the directory of the programs.
	bin = "bin"
	// A run is given up after stall without a new binding, and if it has a limit, after limit altogether.
	stall, limit = time.Minute, 10 * time.Minute
)

// options are the numbers of a shape and how to run it. Each has a flag, and an environment variable for use with make.
type options struct {
	nodes, gpus, gangs, podsPerGang int
	subGroups, minSubGroups         int // of a gang; 0: flat
	variants                        []variant
	probes                          int // of each kind, in a run
	churn                           int // pods replaced each second while gangs wait
	kills                           int // restarts in a run
	settle, window, quiet, patience time.Duration

	// The workload.
	sets, replicas, cliques, podsPerClique int
	groupReplicas, groupMin                int // 0: the cliques are standalone

	repeat                        int
	contestants                   []string
	musterScheduler, musterBefore string // paths
	profiles                      string // directory for profiles; "": none
	qps, burst                    int
	out                           string // directory of results.jsonl; "": none
}

func (o options) pods() int { return o.gangs * o.podsPerGang }

// plan is the options of one shape.
type plan struct {
	shape shape
	o     options
}

// parse returns the shapes to run, with their options.
func parse(args []string) ([]plan, error) {
	_, names, err := allShapes[0].plan(args)
	if err != nil {
		return nil, err
	}
	known := shapeNames()
	if names == "all" {
		names = strings.Join(known[:slices.Index(known, workloadShape)], ",")
	}
	var plans []plan
	for name := range strings.SplitSeq(names, ",") {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, fmt.Errorf("unknown shape %q; known: %s", name, strings.Join(known, ", "))
		}
		p, _, err := allShapes[i].plan(args)
		if err == nil {
			err = p.check()
		}
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// plan returns the shape with its own numbers where neither the environment nor a flag has others, and the names of the
// shapes to run.
func (s shape) plan(args []string) (p plan, shapes string, err error) {
	o := s.defaults
	var contestants, variants, steps string
	var settle, window, quiet, patience, floored int
	flags := flag.NewFlagSet("performance", flag.ContinueOnError)
	flags.StringVar(&shapes, "shape", "drain-1000", "shapes, separated by commas, or all, which is all but workload; known: "+strings.Join(shapeNames(), ", "))
	flags.IntVar(&o.nodes, "nodes", o.nodes, "nodes; the defaults here and below are those of the first shape")
	flags.IntVar(&o.gpus, "gpus", 8, "GPUs per node")
	flags.IntVar(&o.gangs, "gangs", o.gangs, "gangs")
	flags.IntVar(&o.podsPerGang, "pods-per-gang", o.podsPerGang, "pods per gang")
	flags.StringVar(&variants, "variants", s.variants, "forms of the shape, separated by commas; waiting has none, gangs:N, images:N, levels:N, preemptors:N, trees:NxSUBGROUPS and plain:N, huge-gang pods:N and subgroups:NxPODS, preempt gangs, gangs:N and pods:N")
	flags.IntVar(&o.probes, "probes", o.probes, "pods and gangs that are timed, of each kind")
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
	flags.StringVar(&contestants, "contestants", "", "which run, separated by commas; known: "+strings.Join(contestNames(), ", "))
	flags.StringVar(&o.musterScheduler, "muster-scheduler", filepath.Join(bin, "muster-scheduler"), "the program to measure")
	flags.StringVar(&o.musterBefore, "muster-before", "", "another build of it, which runs as muster-before beside the first; in a workload with the muster-controller that lies beside it")
	flags.StringVar(&o.profiles, "profiles", "", "directory for CPU and heap profiles of the schedulers in a drain, and of a huge gang once its pods are created; of the programs in a workload; profiling costs a few percent")
	flags.StringVar(&o.out, "out", "", "directory for results.jsonl, to which the runs are added")
	if err := errors.Join(setFromEnvironment(flags), flags.Parse(args)); err != nil {
		return p, "", err
	}
	for seconds, to := range map[*int]*time.Duration{&settle: &o.settle, &window: &o.window, &quiet: &o.quiet, &patience: &o.patience} {
		*to = time.Duration(*seconds) * time.Second
	}
	if s.defaults.probes == 0 { // the shape has none, whatever the user sets
		o.probes = 0
	}
	p = plan{s, o}
	if s.name == workloadShape {
		return p, shapes, p.setWorkload(steps, floored != 0)
	}
	return p, shapes, errors.Join(p.o.setVariants(variants), p.o.setContestants(contestants))
}

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

// setVariants sets the variants of these names.
func (o *options) setVariants(names string) error {
	for name := range strings.SplitSeq(names, ",") {
		v, err := parseVariant(name)
		if err != nil {
			return err
		}
		o.variants = append(o.variants, v)
	}
	return nil
}

// setContestants sets the given names, or the default ones if none are given: muster, the other build of it if there is
// one, Coscheduling if it is built, the stock scheduler and the floor.
func (o *options) setContestants(names string) error {
	o.contestants = strings.Split(names, ",")
	if names == "" {
		_, missing := os.Stat(filepath.Join(bin, coscheduling))
		out := map[string]bool{musterBefore: o.musterBefore == "", coscheduling: missing != nil, stockDefault: true}
		o.contestants = slices.DeleteFunc(contestNames(), func(name string) bool { return out[name] })
	}
	for _, name := range o.contestants {
		if !slices.Contains(contestNames(), name) {
			return fmt.Errorf("unknown contestant %q; known: %s", name, strings.Join(contestNames(), ", "))
		}
	}
	if slices.Contains(o.contestants, musterBefore) && o.musterBefore == "" {
		return fmt.Errorf("muster-before needs the path of that build ($MUSTER_BEFORE)")
	}
	return nil
}

// setWorkload sets what is different for the workload: its steps are variants, and it has all the nodes that it needs.
func (p *plan) setWorkload(steps string, floored bool) error {
	o := &p.o
	if o.sets < 1 || o.replicas < 1 || o.cliques < 1 || o.podsPerClique < 1 || o.groupReplicas < 0 {
		return fmt.Errorf("sets, replicas, cliques and pods-per-clique must be positive")
	}
	for i, step := range strings.Split(steps, ",") {
		if !slices.Contains(allSteps, step) || (i == 0) != (step == "create") {
			return fmt.Errorf("step %q: the first is create, the others are some of %s", step, strings.Join(allSteps[1:], ", "))
		}
	}
	o.contestants = []string{muster}
	if o.musterBefore != "" {
		o.contestants = append(o.contestants, musterBefore)
	}
	if floored {
		o.contestants = append(o.contestants, floor) // after muster: it creates the same objects
	}
	pods := o.workloadPods()
	o.nodes, o.gangs, o.podsPerGang = (pods+o.gpus-1)/max(o.gpus, 1), 1, 1 // gangs mean nothing here
	if pods != 1000 || o.sets*o.replicas*o.cliques != 500 {                // for others there is only the ratio to the floor
		p.shape.targets = slices.DeleteFunc(slices.Clone(p.shape.targets), func(t target) bool { return t.bound != 0 })
	}
	p.shape.about = fmt.Sprintf("%d PodCliqueSets x %d replicas x %d replicas of a scaling group (0: none) x %d cliques x %d pods of one GPU = %d pods",
		o.sets, o.replicas, o.groupReplicas, o.cliques, o.podsPerClique, pods)
	return o.setVariants(steps)
}

// check returns an error if there is no work, or no room for it. Where the cluster is full anyway, none is needed.
func (p plan) check() error {
	o := p.o
	if o.nodes < 1 || o.gpus < 1 || o.gangs < 1 || o.podsPerGang < 1 || o.repeat < 1 {
		return fmt.Errorf("nodes, gpus, gangs, pods-per-gang and repeat must be positive")
	}
	needed := o.pods()
	for _, v := range o.variants {
		needed = max(needed, arriving(o, v).pods)
	}
	if needed > o.nodes*o.gpus && !p.shape.full {
		return fmt.Errorf("%s: %d pods do not fit on %d GPUs: there must be room for all", p.shape.name, needed, o.nodes*o.gpus)
	}
	return nil
}
