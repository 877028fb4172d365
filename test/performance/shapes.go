// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-project/muster/test/controlplane"
)

// shape is one kind of work for the contestants.
type shape struct {
	name, about string
	// defaults are the numbers that differ from shape to shape; values that the user sets override them.
	defaults options
	variants string // its forms, separated by commas
	// prepare creates what exists before the scheduler starts; nil: nothing. measure does the work and adds the
	// figures.
	prepare func(context.Context, *cluster)
	measure func(context.Context, *cluster, *outcome)
	servers controlplane.Options // that run beside etcd and the API server

	startsScheduler bool // measure does, rather than that it runs before
	full            bool // the cluster is: there need be no room for the gangs, and the floor has no part
	noFloor         bool // the floor has no part, because other pods have to end first
	withoutGangs    bool // every contestant schedules the pods one by one
	targets         []target
}

// variant is one form of a shape: a kind and up to two numbers, as in "gangs:250" or "trees:10x1024". "" is the only
// form of a shape without variants.
type variant struct {
	name, kind string
	n, m       int
}

func parseVariant(name string) (v variant, err error) {
	kind, numbers, found := strings.Cut(name, ":")
	v = variant{name: name, kind: kind}
	if !found {
		return v, nil
	}
	first, second, found := strings.Cut(numbers, "x")
	if v.n, err = strconv.Atoi(first); err == nil && found {
		v.m, err = strconv.Atoi(second)
	}
	if err != nil {
		return v, fmt.Errorf("variant %q: want KIND, KIND:NUMBER or KIND:NUMBERxNUMBER", name)
	}
	return v, nil
}

// target is a target of the project: a figure of muster, or its ratio to the same figure of another contestant or
// variant. The benchmark reports whether it is reached, and does not fail otherwise.
type target struct {
	key     string
	variant string // the variant; "" with no other: every variant
	// The ratio is to this contestant (same variant) or to muster in this variant; both "": the figure itself.
	contestant, otherVariant string
	bound                    float64 // 0: the figure is only printed
	atLeast                  bool    // otherwise at most
}

// allShapes are the shapes, in the order in which they run.
var allShapes = []shape{
	{
		name: "drain-1000", about: "250 gangs of 16 on 1,000 nodes, all there before the scheduler starts",
		defaults: options{nodes: 1000, gangs: 250, podsPerGang: 16},
		prepare:  prepareDrain, measure: measureDrain, startsScheduler: true,
		targets: []target{{key: lastBind, contestant: floor, bound: 1.5}, {key: lastBind, contestant: stock, bound: 0.4}},
	},
	{
		name: "drain-5000", about: "500 gangs of 16 on 5,000 nodes",
		defaults: options{nodes: 5000, gangs: 500, podsPerGang: 16},
		prepare:  prepareDrain, measure: measureDrain, startsScheduler: true,
		targets: []target{{key: lastBind, contestant: floor, bound: 1.5}, {key: schedulerMemory, contestant: stock, bound: 1.3}},
	},
	{
		name: "small-gangs", about: "1,000 gangs of 3 on 1,000 nodes",
		defaults: options{nodes: 1000, gangs: 1000, podsPerGang: 3},
		prepare:  prepareDrain, measure: measureDrain, startsScheduler: true,
		targets: []target{{key: lastBind, contestant: floor, bound: 2}},
	},
	{
		name: "trees", about: "100 trees of 4 sub-groups of 8, three needed; beside them such of which all are needed, and 100 flat gangs of 32, with a label for the role or bare",
		defaults: options{nodes: 1000, gangs: 100, podsPerGang: 32, subGroups: 4, minSubGroups: 3}, variants: "trees,whole,flat,bare",
		prepare: prepareDrain, measure: measureDrain, startsScheduler: true,
		targets: []target{{key: lastBind, variant: "trees", otherVariant: "flat", bound: 1}, {key: lastBind, variant: "whole", otherVariant: "flat", bound: 1}},
	},
	{
		name: "plain", about: "4,000 pods without gangs on 1,000 nodes",
		defaults: options{nodes: 1000, gangs: 250, podsPerGang: 16},
		prepare:  prepareDrain, measure: measureDrain, startsScheduler: true, withoutGangs: true,
		targets: []target{{key: podsPerSecond, contestant: stock, bound: 0.95, atLeast: true}},
	},
	{
		name: "big-gang", about: "one gang of 1,000 pods arrives on 5,000 nodes, like pods and pods with an index label each",
		defaults: options{nodes: 5000, gangs: 1, podsPerGang: 1000}, variants: "alike,index",
		measure: measureArrival,
		targets: []target{{key: firstToLast, contestant: floor, bound: 2}, {key: toFirstBind, bound: 100}},
	},
	{
		name: "refused", about: "a gang of 10 x 8 GPUs that cannot fit on a full cluster of 5,000 nodes, until it is refused",
		defaults: options{nodes: 5000, gangs: 1, podsPerGang: 10, probes: 10},
		prepare:  func(ctx context.Context, cl *cluster) { cl.fill(ctx) }, measure: measureRefusals, full: true,
		targets: []target{{key: at(refusal, 0.5), bound: 1000}},
	},
	{
		name: "restart", about: "kill -9 with 5,000 nodes and 8,000 bound pods, until the first bind",
		defaults: options{nodes: 5000, gangs: 500, podsPerGang: 16},
		prepare:  prepareDrain, measure: measureRestart, noFloor: true,
		targets: []target{{key: restartFirst, bound: 5}, {key: schedulerMemory, contestant: stock, bound: 1.3}},
	},
	{
		name: "waiting", about: "gangs of 8 x 8 GPUs wait on a full cluster of 1,000 nodes, and pods that fit come along",
		defaults: options{nodes: 1000, gangs: 1, podsPerGang: waitingPods, probes: 40},
		variants: "none,gangs:250,gangs:500,gangs:2000,images:500,levels:2000,preemptors:500,trees:10x1024,plain:2000",
		prepare:  prepareWaiting, measure: measureWaiting, full: true,
		targets: []target{
			{key: at(plainPod, 0.5), bound: 30}, {key: at(plainPod, 0.99), bound: 250},
			{key: at(gangOfFour, 0.5), bound: 60}, {key: at(gangOfFour, 0.99), bound: 250},
			{key: quietWrites, bound: 10}, {key: quietCPU, bound: 1},
		},
	},
	{
		name: "throughput", about: "250 gangs of 16 that fit become ready at a stroke, without and with gangs that wait on a full cluster of 1,000 nodes",
		defaults: options{nodes: 1000, gangs: 250, podsPerGang: 16}, variants: "none,gangs:500",
		prepare: prepareThroughput, measure: measureThroughput, full: true,
		targets: []target{{key: podsPerSecond, variant: "gangs:500", otherVariant: "none", bound: 0.95, atLeast: true}},
	},
	{
		name: "huge-gang", about: "one gang of 5,000 pods, one of 20,000, one of 1,024 sub-groups: created, bound, deleted, with plain pods beside it",
		defaults: options{nodes: 5000, gangs: 1, podsPerGang: 1, probes: 40}, variants: "pods:5000,pods:20000,subgroups:1024x2",
		measure: measureArrival,
		targets: []target{{key: firstToLast, contestant: floor, bound: 1.5}},
	},
	{
		name: "devices", about: "a gang of 512 on 64 nodes, all there before the scheduler starts, with a ResourceClaim of a device for each pod and with extended resources",
		defaults: options{nodes: 64, gangs: 1, podsPerGang: 512}, variants: "claims,resources",
		prepare: prepareDevices, measure: measureDrain, startsScheduler: true,
		targets: []target{{key: lastBind, variant: "claims", otherVariant: "resources", bound: 1.5}, {key: lastBind, variant: "claims", contestant: stock}},
	},
	{
		name: "preempt", about: "20 gangs of 32 arrive, one after the other, on 1,000 nodes full of gangs of lower priority, or 40 at once; and 1,000 pods at once, on 1,000 nodes full of pods",
		defaults: options{nodes: 1000, gangs: 20, podsPerGang: 32}, variants: "gangs,gangs:40,pods:1000",
		prepare: preparePreemption, measure: measurePreemption, noFloor: true,
		targets: []target{
			{key: at(decided, 0.5), bound: 100}, {key: victimsPerPod, bound: 1}, {key: preemptionWasted}, {key: gangsCut},
			{key: at(arrivedBound, 0.5), variant: "gangs", contestant: stock}, {key: at(arrivedBound, 0.5), variant: "pods:1000", contestant: stock, bound: 1.2},
		},
	},
	{
		name: workloadShape, about: "PodCliqueSets, from apply to ready and back to nothing",
		measure: measureWorkload, startsScheduler: true, servers: controlplane.Options{WithControllerManager: true, WithKubelets: true},
		targets: []target{
			{key: podsReady, variant: "create", contestant: floor}, {key: podsGone, variant: "zero", contestant: floor},
			{key: podsReady, variant: "create", bound: 30}, {key: podsGone, variant: "zero", bound: 15},
		},
	},
}

func shapeNames() (names []string) {
	for _, s := range allShapes {
		names = append(names, s.name)
	}
	return names
}
