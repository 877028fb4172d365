// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// shape is one kind of work for the contestants.
type shape struct {
	name, about string
	// defaults are the numbers that differ from shape to shape; values that the user sets override them.
	defaults options
	// prepare creates what exists before the scheduler starts; nil: nothing. measure does the work and adds the figures.
	prepare         func(context.Context, *cluster) error
	measure         func(context.Context, *cluster, *outcome) error
	startsScheduler bool // measure does, rather than that it runs before
	withoutGangs    bool // every contestant schedules the pods one by one
	targets         []target
}

// variant is one form of a shape: a kind and up to two numbers, as in "gangs:250" or "trees:10x1024". The zero value is
// the only form of a shape without variants.
type variant struct {
	kind string
	n, m int
}

func (v variant) String() string {
	switch {
	case v.m != 0:
		return fmt.Sprintf("%s:%dx%d", v.kind, v.n, v.m)
	case v.n != 0:
		return fmt.Sprintf("%s:%d", v.kind, v.n)
	default:
		return v.kind
	}
}

// parseVariant is the inverse of String.
func parseVariant(s string) (v variant, err error) {
	kind, numbers, found := strings.Cut(s, ":")
	v.kind = kind
	if !found {
		return v, nil
	}
	first, second, found := strings.Cut(numbers, "x")
	if v.n, err = strconv.Atoi(first); err == nil && found {
		v.m, err = strconv.Atoi(second)
	}
	if err != nil {
		return v, fmt.Errorf("variant %q: want KIND, KIND:NUMBER or KIND:NUMBERxNUMBER", s)
	}
	return v, nil
}

// target is a target of the project: a figure of muster, or its ratio to the same figure of another contestant or
// variant. The benchmark reports whether it is reached, and does not fail otherwise.
type target struct {
	kind    kind
	variant string // the variant; "" with no other: every variant
	// The ratio is to this contestant (same variant) or to muster in this variant; both "": the figure itself.
	contestant, otherVariant string
	bound                    float64 // 0: the figure is only printed
	atLeast                  bool    // otherwise at most
}

const (
	mostOfFloor      = 1.5
	mostOfFloorSmall = 2.0
	leastOfStock     = 0.95
)

// allShapes are the shapes, in the order in which they run.
var allShapes = []shape{
	{
		name: "drain-1000", about: "250 gangs of 16 on 1,000 nodes, all there before the scheduler starts",
		defaults: options{nodes: 1000, gangs: 250, podsPerGang: 16},
		prepare:  prepareDrain, measure: measureDrain, startsScheduler: true,
		targets: []target{{kind: lastBind, contestant: floor, bound: mostOfFloor}, {kind: lastBind, contestant: stock, bound: 0.4}},
	},
	{
		name: "drain-5000", about: "500 gangs of 16 on 5,000 nodes",
		defaults: options{nodes: 5000, gangs: 500, podsPerGang: 16},
		prepare:  prepareDrain, measure: measureDrain, startsScheduler: true,
		targets: []target{
			{kind: lastBind, contestant: floor, bound: mostOfFloor},
			{kind: schedulerMemory, contestant: stock, bound: 1.3},
		},
	},
	{
		name: "small-gangs", about: "1,000 gangs of 3 on 1,000 nodes",
		defaults: options{nodes: 1000, gangs: 1000, podsPerGang: 3},
		prepare:  prepareDrain, measure: measureDrain, startsScheduler: true,
		targets: []target{{kind: lastBind, contestant: floor, bound: mostOfFloorSmall}},
	},
	{
		name: "trees", about: "100 trees of 4 sub-groups of 8, three needed; beside them such of which all are needed, and 100 flat gangs of 32, with a label for the role or bare",
		defaults: options{nodes: 1000, gangs: 100, podsPerGang: 32, subGroups: 4, minSubGroups: 3, variants: []variant{{kind: "trees"}, {kind: "whole"}, {kind: "flat"}, {kind: "bare"}}},
		prepare:  prepareDrain, measure: measureDrain, startsScheduler: true,
		targets: []target{
			{kind: lastBind, variant: "trees", otherVariant: "flat", bound: 1},
			{kind: lastBind, variant: "whole", otherVariant: "flat", bound: 1},
		},
	},
	{
		name: "plain", about: "4,000 pods without gangs on 1,000 nodes",
		defaults: options{nodes: 1000, gangs: 250, podsPerGang: 16},
		prepare:  prepareDrain, measure: measureDrain, startsScheduler: true, withoutGangs: true,
		targets: []target{{kind: podsPerSecond, contestant: stock, bound: leastOfStock, atLeast: true}},
	},
	{
		name: "big-gang", about: "one gang of 1,000 pods arrives on 5,000 nodes, like pods and pods with an index label each",
		defaults: options{nodes: 5000, gangs: 1, podsPerGang: 1000, variants: []variant{{kind: "alike"}, {kind: "index"}}, noProbes: true},
		measure:  measureArrival,
		targets: []target{
			{kind: firstToLast, contestant: floor, bound: 2},
			{kind: toFirstBind, bound: 100},
		},
	},
	{
		name: "refused", about: "a gang of 10 x 8 GPUs that cannot fit on a full cluster of 5,000 nodes, until it is refused",
		defaults: options{nodes: 5000, gangs: 1, podsPerGang: 10, probes: 10},
		prepare:  func(ctx context.Context, cl *cluster) error { return cl.fill(ctx) }, measure: measureRefusals,
		targets: []target{{kind: refusalMedian, bound: 1000}},
	},
	{
		name: "restart", about: "kill -9 with 5,000 nodes and 8,000 bound pods, until the first bind",
		defaults: options{nodes: 5000, gangs: 500, podsPerGang: 16},
		prepare:  prepareDrain, measure: measureRestart,
		targets: []target{{kind: restartFirst, bound: 5}, {kind: schedulerMemory, contestant: stock, bound: 1.3}},
	},
	{
		name: "waiting", about: "gangs of 8 x 8 GPUs wait on a full cluster of 1,000 nodes, and pods that fit come along",
		defaults: options{nodes: 1000, gangs: 1, podsPerGang: waitingPods, probes: 40, variants: []variant{
			{kind: "none"}, {kind: "gangs", n: 250}, {kind: "gangs", n: 500}, {kind: "gangs", n: 2000},
			{kind: "images", n: 500}, {kind: "levels", n: 2000}, {kind: "preemptors", n: 500}, {kind: "trees", n: 10, m: 1024}, {kind: "plain", n: 2000}}},
		prepare: prepareWaiting, measure: measureWaiting,
		targets: []target{
			{kind: plainMedian, bound: 30}, {kind: plain99, bound: 250},
			{kind: fittingMedian, bound: 60}, {kind: fitting99, bound: 250},
			{kind: quietWrites, bound: 10}, {kind: quietCPU, bound: 1},
		},
	},
	{
		name: "throughput", about: "250 gangs of 16 that fit become ready at a stroke, without and with gangs that wait on a full cluster of 1,000 nodes",
		defaults: options{nodes: 1000, gangs: 250, podsPerGang: 16, variants: []variant{{kind: "none"}, {kind: "gangs", n: 500}}},
		prepare:  prepareThroughput, measure: measureThroughput,
		targets: []target{{kind: podsPerSecond, variant: "gangs:500", otherVariant: "none", bound: 0.95, atLeast: true}},
	},
	{
		name: "huge-gang", about: "one gang of 5,000 pods, one of 20,000, one of 1,024 sub-groups: created, bound, deleted, with plain pods beside it",
		defaults: options{nodes: 5000, gangs: 1, podsPerGang: 1, probes: 40,
			variants: []variant{{kind: "pods", n: 5000}, {kind: "pods", n: 20000}, {kind: "subgroups", n: 1024, m: 2}}},
		measure: measureArrival,
		targets: []target{{kind: firstToLast, contestant: floor, bound: 1.5}},
	},
	{
		name: "preempt", about: "20 gangs of 32 arrive, one after the other, on 1,000 nodes full of gangs of lower priority",
		defaults: options{nodes: 1000, gangs: 20, podsPerGang: 32},
		prepare:  preparePreemption, measure: measurePreemption,
		targets: []target{
			{kind: decided50, bound: 100}, {kind: victimsPerPod, bound: 1},
			{kind: preemptionWasted}, {kind: gangsCut}, {kind: arrivedBound50, contestant: stock},
		},
	},
	{
		name: workloadShape, about: "PodCliqueSets, from apply to ready and back to nothing",
		defaults: options{nodes: 1, gangs: 1, podsPerGang: 1, profileFor: 15 * time.Second},
	},
}

// inVariant returns the options for a variant of the trees.
func (o options) inVariant(v variant) options {
	switch v.kind {
	case "whole":
		o.minSubGroups = o.subGroups
	case "flat":
		o.roles, o.subGroups, o.minSubGroups = o.subGroups, 0, 0
	case "bare":
		o.subGroups, o.minSubGroups = 0, 0
	}
	return o
}

// equalGangs returns the gangs of a drain: every pod wants one GPU.
func (o options) equalGangs() []gang {
	gangs := make([]gang, o.gangs)
	for i := range gangs {
		gangs[i] = gang{name: fmt.Sprintf("gang-%04d", i), pods: o.podsPerGang, subGroups: o.subGroups, minSubGroups: o.minSubGroups, roles: o.roles, gpus: 1}
	}
	return gangs
}
