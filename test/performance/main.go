// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

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

// benchmark returns the benchmark that the arguments select: shapes; with "workload" as the first argument that
// benchmark; with "plot" or "markdown" and a directory, a picture or tables of the results there.
func benchmark(args []string) (func(context.Context) error, error) {
	if len(args) > 0 && args[0] == "workload" {
		o, err := parseWorkload(args[1:])
		return func(ctx context.Context) error { return benchWorkload(ctx, o, os.Stdout) }, err
	}
	if len(args) == 2 && args[0] == "plot" {
		return func(context.Context) error { return writePicture(args[1]) }, nil
	}
	if len(args) == 2 && args[0] == "markdown" {
		return func(context.Context) error {
			runs, err := readLines(args[1])
			fmt.Print(markdown(runs))
			return err
		}, nil
	}
	plans, err := parse(args)
	return func(ctx context.Context) error { return bench(ctx, plans, os.Stdout) }, err
}
