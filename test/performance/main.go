// SPDX-License-Identifier: Apache-2.0

// Command performance is the benchmarks; docs/performance.md explains the shapes, the contestants and the figures.
//
// Each shape of work is done by every contestant in turn, each time on a fresh control plane, all in one invocation,
// since times move with the machine and only the ratios mean something. The shape "workload" measures the workload API,
// the others schedulers.
//
// Nothing here fails for being slow. It fails when a scheduler ends or puts too much on a node, or when
// muster-scheduler stops binding; another contestant that does so has not finished, and the report says it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() {
	plans, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := attempt(func() { bench(ctx, plans, os.Stdout) }); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// ended is the panic by which must ends a run.
type ended struct{ error }

// must ends the run of a contestant at an error, as FailNow ends a test: attempt returns the error.
func must(err error) {
	if err != nil {
		panic(ended{err})
	}
}

// got is must for a function that has a result, which it returns.
func got[T any](result T, err error) T {
	must(err)
	return result
}

// attempt calls do, and returns the error at which must ended it, on the same goroutine.
func attempt(do func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case ended:
			err = r.error
		default:
			panic(r)
		}
	}()
	do()
	return nil
}

// entry is one column of a table: a contestant in one variant of the shape.
type entry struct{ variant, contestant string }

// results are the runs of one shape, round after round.
type results map[entry][]outcome

// bench runs the shapes one after the other and prints a table of each. It ends with an error if muster did not finish
// one.
func bench(ctx context.Context, plans []plan, out io.Writer) {
	var failed error
	for _, p := range plans {
		fmt.Fprintf(out, "%s: %s.\n%d nodes x %d GPUs, %d rounds.\n\n", p.shape.name, p.shape.about, p.o.nodes, p.o.gpus, p.o.repeat)
		all := p.run(ctx, out)
		report(out, p, all)
		for _, v := range p.o.variants {
			if slices.ContainsFunc(all[entry{v.name, muster}], func(r outcome) bool { return r.unfinished != "" }) {
				failed = errors.Join(failed, fmt.Errorf("%s %s: muster did not finish", p.shape.name, v.name))
			}
		}
	}
	if dir := plans[0].o.out; dir != "" {
		fmt.Fprintf(out, "results.jsonl is in %s\n", dir)
	}
	must(failed)
}

// run runs every contestant in every variant o.repeat times, interleaved. Every round begins with another variant. A
// run of the workload has all of its variants, which are its steps.
func (p plan) run(ctx context.Context, out io.Writer) results {
	all, variants := results{}, p.o.variants
	if p.shape.name == workloadShape {
		variants = []variant{{}}
	}
	for round := range p.o.repeat {
		for _, v := range rotated(variants, round) {
			var earlier outcome // in this round, of muster if it has run, for the floor
			for _, name := range p.inTurn(round) {
				r := outcome{variant: v}
				err := attempt(func() { p.shape.run(ctx, p.o, contestNamed(name), earlier, &r) })
				if late := (unfinished{}); errors.As(err, &late) {
					r.unfinished = err.Error()
				} else if err != nil {
					must(fmt.Errorf("%s: round %d, %s %s: %w", p.shape.name, round+1, v.name, name, err))
				}
				if earlier.bindings == nil || name == muster {
					earlier = r
				}
				for _, step := range r.inSteps() {
					of := entry{step.variant.name, name}
					all[of] = append(all[of], step)
					fmt.Fprintf(out, "round %d  %-12s %-14s %s  (load average before %s)\n", round+1, of.variant, name, step.headline(), step.load)
					p.appendLine(time.Now(), name, round, step)
				}
			}
		}
	}
	fmt.Fprintln(out)
	return all
}

// inTurn returns the contestants in the order of a round: the first one changes, so that neither always finds the
// machine as the other left it. The floor comes last, since it repeats earlier bindings.
func (p plan) inTurn(round int) []string {
	isFloor := func(name string) bool { return name == floor }
	order := rotated(slices.DeleteFunc(slices.Clone(p.o.contestants), isFloor), round)
	if slices.ContainsFunc(p.o.contestants, isFloor) && !p.shape.full && !p.shape.noFloor {
		order = append(order, floor)
	}
	return order
}

// rotated returns the list from another element on in every round, and what is before it at the end.
func rotated[T any](list []T, round int) []T {
	if len(list) == 0 {
		return nil
	}
	first := round % len(list)
	return slices.Concat(list[first:], list[:first])
}
