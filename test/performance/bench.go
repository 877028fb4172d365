// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// entry is one column of a table: a contestant in one variant of the shape.
type entry struct{ variant, contestant string }

// results are the runs of one shape, round after round.
type results map[entry][]outcome

// bench runs the shapes one after the other and prints a table of each.
func bench(ctx context.Context, plans []plan, out io.Writer) error {
	var failed error
	for _, p := range plans {
		fmt.Fprintf(out, "%s: %s.\n%d nodes x %d GPUs, %d rounds.\n\n", p.shape.name, p.shape.about, p.o.nodes, p.o.gpus, p.o.repeat)
		do := benchShape
		if p.shape.name == workloadShape {
			do = benchWorkload
		}
		all, err := do(ctx, p, out)
		if err != nil {
			return fmt.Errorf("%s: %w", p.shape.name, err)
		}
		fmt.Fprintln(out)
		if err := report(out, p, all); err != nil {
			return err
		}
		for _, v := range p.o.variants {
			for _, r := range all[entry{v.String(), muster}] {
				if r.unfinished != "" {
					failed = errors.Join(failed, fmt.Errorf("%s %s: muster did not finish", p.shape.name, v))
				}
			}
		}
	}
	if dir := plans[0].o.out; dir != "" {
		fmt.Fprintf(out, "results.jsonl is in %s\n", dir)
	}
	return failed
}

// benchShape runs every contestant in every variant o.repeat times, interleaved. Every round begins with another variant.
func benchShape(ctx context.Context, p plan, out io.Writer) (results, error) {
	all := results{}
	for round := range p.o.repeat {
		for _, v := range rotated(p.o.variants, round) {
			var bindings []binding // of the round, for the floor
			for _, name := range p.inTurn(round) {
				r, err := p.shape.run(ctx, p.o, contests[name], v, bindings)
				var late unfinished
				if errors.As(err, &late) {
					r.unfinished = late.Error()
				} else if err != nil {
					return nil, fmt.Errorf("round %d, %s %s: %w", round+1, v, name, err)
				}
				if bindings == nil || name == muster {
					bindings = r.bindings
				}
				if err := p.record(out, all, round, v, name, r); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// record adds a run to the results, prints a line about it, and appends it to results.jsonl.
func (p plan) record(out io.Writer, all results, round int, v variant, name string, r outcome) error {
	r.bindings = nil
	all[entry{v.String(), name}] = append(all[entry{v.String(), name}], r)
	fmt.Fprintf(out, "round %d  %-12s %-14s %s  (load average before %s)\n", round+1, v, name, r.headline(), r.load)
	return p.appendLine(p.line(time.Now(), v, name, round, r))
}

// inTurn returns the contestants in the order of a round: the first one changes, so that neither always finds the
// machine as the other left it. The floor comes last, since it repeats earlier bindings. It does not take part if no
// pods are to be bound, or if others have to end first.
func (p plan) inTurn(round int) []string {
	order := inTurn(p.o.contestants, round)
	if p.room() == 0 || p.shape.name == "restart" || p.shape.name == "preempt" {
		order = slices.DeleteFunc(order, func(name string) bool { return name == floor })
	}
	return order
}

// inTurn is the order of the contestants in a round.
func inTurn(contestants []string, round int) []string {
	var schedulers, last []string
	for _, name := range contestants {
		if name == floor {
			last = append(last, name)
		} else {
			schedulers = append(schedulers, name)
		}
	}
	return append(rotated(schedulers, round), last...)
}

// rotated returns the list from another element on in every round, and what is before it at the end.
func rotated[T any](list []T, round int) []T {
	if len(list) == 0 {
		return nil
	}
	first := round % len(list)
	return slices.Concat(list[first:], list[:first])
}
