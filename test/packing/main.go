// SPDX-License-Identifier: Apache-2.0

// Command packing measures how well gangs are packed into the racks and blocks of uneven fabrics. Streams of jobs of
// real clusters are played in virtual time by several contestants:
//
//   - muster: each job is a gang that prefers a rack, on nodes ordered by the built-in profile's scores (GPUPacking)
//   - muster-required: the same, but gangs that fit in an empty rack require one
//   - muster-least-allocated, muster-required-least-allocated: the same two with the stock scores
//   - least-allocated, most-allocated: the stock scheduler's cycle with this strategy for each pod
//
// What differs is only where pods are placed. All contestants place all pods of a job or none, jobs that wait are tried
// in the order in which they came whenever one comes or ends, and those that do not fit let later ones pass. The
// planner, the filters, the scores and the cycle of a pod are the real ones, on the scheduler's own cache; there is no
// API server and no loop.
//
// Who is right about free GPUs is a judge (occupancy) that sees only the placements. A run fails if a node gets too
// much, if a required gang is split, and if a contestant refuses a job for which there is room: for equal pods the
// numbers decide.
//
//	go run ./test/packing -settings gangs -contestants muster,most-allocated -seeds 5
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/muster-project/muster/pkg/scheduler/kubescheduler"
	"github.com/muster-project/muster/test/shapes"
	"github.com/muster-project/muster/test/stock"
)

// setting is a stream of jobs on a fabric.
type setting struct {
	name, fabric, stream string
	blocks               []string // of the fabric; nil: all
	copies, jitter       int
	window               int // seconds
}

const day = 24 * 3600

var settings = []setting{
	{name: "burst", fabric: "uneven-64x8", stream: "knavigator-gang-53", copies: 1, jitter: 1, window: 540},
	{name: "gangs", fabric: "uneven-64x8", stream: "helios-venus-gangs-24h", copies: 1, jitter: 600, window: day},
	{name: "storm", fabric: "uneven-64x8", stream: "helios-venus-storm-24h", copies: 1, jitter: 600, window: day},
	{name: "lingjun", fabric: "lingjun-847", blocks: []string{"p8"}, stream: "helios-venus-gangs-24h", copies: 3, jitter: 3600, window: day},
}

// contestant is a way to place jobs.
type contestant struct {
	name     string
	scores   stock.Scores
	gangs    bool // Muster plans jobs as gangs
	required bool // those that fit in an empty rack require one
}

var contestants = []contestant{
	{"muster", stock.GPUPacking, true, false},
	{"muster-required", stock.GPUPacking, true, true},
	{"muster-least-allocated", stock.LeastAllocated, true, false},
	{"muster-required-least-allocated", stock.LeastAllocated, true, true},
	{"least-allocated", stock.LeastAllocated, false, false},
	{"most-allocated", stock.MostAllocated, false, false},
}

// run plays jobs on a fabric. Ties of stock scores are broken at random, as the stock scheduler does.
func (c contestant) run(ctx context.Context, f *fabric, jobs []job, window int) (*figures, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	base, err := newCluster(ctx, c.scores, f)
	if err != nil {
		return nil, err
	}
	requires := func(j job) bool { return c.required && f.holds(rack, j) }
	var s scheduler = plain{base}
	if c.gangs {
		s = muster{base, kubescheduler.NewFilterCache(), requires}
	}
	return play(f, jobs, window, s, requires)
}

// read returns the fabric and the jobs of a setting. The seed decides the names of the nodes and when jobs come.
func (at setting) read(seed uint64) (*fabric, []job, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	topologies, err := shapes.Topologies()
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(topologies, func(t shapes.Topology) bool { return t.Name == at.fabric })
	f := newFabric(topologies[i], at.blocks)
	jobs, err := shapes.Stream(at.stream)
	return f.shuffled(random), jittered(jobs, at.copies, at.jitter, random), err
}

// columns are the figures of the table.
var columns = []struct {
	title, format string
	of            func(*figures) float64
}{
	{"split over racks, %", "%.1f", func(r *figures) float64 { return percent(r.split[rack], r.gangs[rack]) }},
	{"needlessly, %", "%.1f", func(r *figures) float64 { return percent(r.needless[rack], r.gangs[rack]) }},
	{"split over blocks, %", "%.1f", func(r *figures) float64 { return percent(r.split[block], r.gangs[block]) }},
	{"needlessly, %", "%.1f", func(r *figures) float64 { return percent(r.needless[block], r.gangs[block]) }},
	{"racks / fewest", "%.2f", func(r *figures) float64 { return float64(r.racks) / float64(r.fewest) }},
	{"largest free rack, GPUs", "%.1f", func(r *figures) float64 { return float64(r.free[rack]) / float64(r.window) }},
	{"at least", "%.0f", func(r *figures) float64 { return float64(r.leastFree[rack]) }},
	{"GPU-hours", "%.0f", func(r *figures) float64 { return float64(r.used) / 3600 }},
	{"mean wait, min", "%.1f", func(r *figures) float64 { return float64(r.wait) / float64(r.jobs) / 60 }},
	{"last end, h", "%.2f", func(r *figures) float64 { return float64(r.makespan) / 3600 }},
}

func percent(part, all int) float64 { return 100 * float64(part) / float64(max(all, 1)) }

// report prints a row of the table: mean, and in parentheses least and most.
func report(out io.Writer, name string, rounds []*figures) {
	fmt.Fprintf(out, "| %s ", name)
	for _, c := range columns {
		var sum float64
		var all []float64
		for _, r := range rounds {
			sum, all = sum+c.of(r), append(all, c.of(r))
		}
		fmt.Fprintf(out, "| "+c.format+" ("+c.format+" to "+c.format+") ", sum/float64(len(all)), slices.Min(all), slices.Max(all))
	}
	fmt.Fprintln(out, "|")
}

func main() {
	seeds := flag.Uint64("seeds", 5, "rounds, each with other names of nodes and other times at which jobs come")
	which := flag.String("settings", "", "settings to play, separated by commas; empty: all")
	who := flag.String("contestants", "", "likewise, contestants")
	flag.Parse()
	chosen := func(list, name string) bool { return list == "" || slices.Contains(strings.Split(list, ","), name) }
	for _, at := range settings {
		if !chosen(*which, at.name) {
			continue
		}
		fmt.Printf("\n%s: %d x %s on %s\n\n|", at.name, at.copies, at.stream, at.fabric)
		for _, c := range columns {
			fmt.Printf(" | %s", c.title)
		}
		fmt.Printf(" |\n|---%s|\n", strings.Repeat("|---", len(columns)))
		for _, c := range contestants {
			if !chosen(*who, c.name) {
				continue
			}
			var rounds []*figures
			for seed := range *seeds {
				var r *figures
				f, jobs, err := at.read(seed)
				if err == nil {
					r, err = c.run(context.Background(), f, jobs, at.window)
				}
				if err != nil {
					fmt.Fprintf(os.Stderr, "%s, %s, seed %d: %v\n", at.name, c.name, seed, err)
					os.Exit(1)
				}
				rounds = append(rounds, r)
			}
			report(os.Stdout, c.name, rounds)
		}
	}
}
